//! Plans of gathers.

use ndscatter::{GatherPlan, TensorViewMut};

use super::Change;
use crate::common::Tensor;
use crate::common::api::Method;
use crate::common::elements::{Ref, element_types};
use crate::common::harness::check_run;
use crate::common::layouts::{Arrangement, Strided};
use crate::common::random::Random;
use crate::common::refused::numbers;
use crate::draw::gathers::Gathering;
use crate::with_element;

/// Makes a plan, or checks the error, and runs the plan.
pub(crate) fn check(random: &mut Random) {
    let gathering = Gathering::draw(random);
    let indices = gathering.draw_indices(random);
    let planned = Strided::marked(&gathering.data, gathering.data_layout, 0, 0_u8);
    let logical = indices.logical();
    let checked = gathering.run.workers.with(|pool| {
        let gather = gathering.options(pool).gather();
        let plan = gather.plan(planned.layout(), indices.typed());
        match (plan, gathering.refusal(&*indices)) {
            (Ok(plan), None) => (0..=random.below(3)).try_for_each(|_| {
                let element = random.pick(&element_types());
                with_element!(element, T => run::<T>(&gathering, &plan, &logical, random))
            }),
            (Err(got), Some(error)) if got == error => Ok(()),
            (got, expected) => Err(format!("the plan is {got:?}, not {expected:?}")),
        }
    });
    checked.unwrap_or_else(|what| panic!("{what}\n{gathering:#?}\nindices: {logical:?}"));
}

/// Draws operands, and runs the plan with them.
fn run<T: Ref>(
    gathering: &Gathering,
    plan: &GatherPlan,
    indices: &Tensor<i128>,
    random: &mut Random,
) -> Result<(), String> {
    let (gatherer, rule) = (gathering.gatherer, gathering.rule);
    let method = Method::draw_planned(Method::of_gathers(), random);
    let change = Change::draw(gathering.data_layout, &Arrangement::INPUTS, random);
    let listed = gatherer.output_shape(&gathering.data, &gathering.indices);
    let data = change.tensor::<T>(0, &gathering.data, change.numbered, random);
    let other = change.shapes[1].as_ref().filter(|_| !method.allocates());
    let shape = other.unwrap_or(&listed);
    let output = Strided::marked(shape, change.listed, 1, T::sentinel());
    let fits = *shape == listed && data.shape() == gathering.data;
    let expected = fits.then(|| gatherer.expected(rule, &data.read(), indices));
    let is_required = fits && change.numbered == gathering.data_layout;
    change
        .run
        .workers
        .with(|pool| {
            let mut options = gathering.options(pool);
            options.execution = change.run.execution(pool);
            let explained = plan
                .run()
                .execution(options.execution)
                .explain(T::DTYPE, method.allocates());
            explained.map_err(|error| format!("explaining: {error}"))?;
            // A run of a plan reads no indices.
            let unused = numbers(&[1], &[0_i8]);
            let call = |output: TensorViewMut<'_, T>| {
                method.gather(&options, &unused, Some(plan), data.view(), output)
            };
            check_run(output, expected.as_ref(), is_required, true, call)
        })
        .map_err(|what| format!("{what}\n{method:?} {} {change:#?}", T::DTYPE))
}
