//! Plans of scatters.

use ndscatter::{Accumulate, Reduction, ScatterPlan, TensorViewMut};

use super::Change;
use crate::common::Tensor;
use crate::common::api::{Method, Options};
use crate::common::arithmetic::How;
use crate::common::elements::{Ref, element_types, is_exact};
use crate::common::harness::check_run;
use crate::common::layouts::{Arrangement, Strided};
use crate::common::operators::{Rules, are_updates};
use crate::common::random::Random;
use crate::draw::plain_or;
use crate::draw::scatters::Scattering;
use crate::with_element;

/// Makes a plan, or checks the error, and runs the plan.
pub(crate) fn check(random: &mut Random) {
    let scattering = Scattering::draw(random);
    let case = &scattering.case;
    let indices = scattering.draw_indices(random);
    let planned = Strided::marked(&case.data, case.output_layout, 0, 0_u8);
    let logical = indices.logical();
    let checked = case.workers.with(|pool| {
        let options = scattering.options(case.reduction, pool);
        let plan = options.scatter().plan(planned.layout(), indices.typed());
        let refusal = (case.operator).refusal(options.refusals(), &case.data, &logical);
        match (plan, refusal) {
            (Ok(plan), None) => (0..=random.below(3)).try_for_each(|_| {
                let run = Planned {
                    scattering: &scattering,
                    plan: &plan,
                    options: &options,
                };
                let element = random.pick(&element_types());
                with_element!(element, T => run.check::<T>(&logical, random))
            }),
            (Err(_), _) if !options.is_supported() => Ok(()),
            (Err(got), Some(error)) if got == error => Ok(()),
            (got, expected) => Err(format!("the plan is {got:?}, not {expected:?}")),
        }
    });
    checked.unwrap_or_else(|what| panic!("{what}\n{scattering:#?}\nindices: {logical:?}"));
}

/// A plan, and the options with which it was made.
struct Planned<'p> {
    scattering: &'p Scattering,
    plan: &'p ScatterPlan,
    options: &'p Options<'p>,
}

impl Planned<'_> {
    /// Draws a reduction that replaces the reduction of the plan, which is the frequent choice.
    fn draw_how(&self, random: &mut Random) -> How {
        let reduction = self.options.execution.reduction;
        How {
            reduction: plain_or(reduction, &Reduction::ALL, random),
            include_self: random.one_in(2),
            accumulate: random.pick(&[Accumulate::Native, Accumulate::Wide]),
        }
    }

    /// Whether the operator and the element type support the reduction.
    fn supports<T: Ref>(&self, how: How) -> bool {
        let execution = how.reduction.into();
        let is_supported = Options {
            execution,
            ..*self.options
        }
        .is_supported();
        is_supported && T::REDUCTIONS.contains(&how.reduction)
    }

    /// Draws operands, and runs the plan with them.
    fn check<T: Ref>(&self, indices: &Tensor<i128>, random: &mut Random) -> Result<(), String> {
        let case = &self.scattering.case;
        let method = Method::draw_planned(Method::ALL, random);
        let how = self.draw_how(random);
        let change = Change::draw(case.output_layout, &Arrangement::OUTPUTS, random);
        let listed = case.operator.updates_shape(&case.data, &case.indices);
        let data = change.tensor::<T>(0, &case.data, change.inputs, random);
        let updates = change.tensor::<T>(1, &listed, change.inputs, random);
        let numbered = match method.allocates() {
            true => Arrangement::Contiguous,
            false => change.numbered,
        };
        let mut output = Strided::marked(data.shape(), numbered, 1, T::sentinel());
        if method.is_in_place() {
            output.write(&data.read());
        }
        let is_shaped = data.shape() == case.data && are_updates(&listed, updates.shape());
        let fits = is_shaped && self.supports::<T>(how);
        let (operator, index) = (case.operator, self.options.rules().index);
        let rules = Rules { how, index };
        let expected =
            fits.then(|| operator.expected(rules, &data.read(), indices, &updates.read()));
        let is_required = fits && numbered == case.output_layout;
        change
            .run
            .workers
            .with(|pool| {
                let run = self
                    .plan
                    .run()
                    .reduction(how.reduction)
                    .include_self(how.include_self);
                let run = run
                    .accumulate(how.accumulate)
                    .execution(change.run.execution(pool));
                if let (true, Err(error)) =
                    (is_required, run.explain(T::DTYPE, method.is_in_place()))
                {
                    return Err(format!("explaining: {error}"));
                }
                let (exact, inputs) = (is_exact(how.reduction), (data.view(), updates.view()));
                let call = |output: TensorViewMut<'_, T>| method.run(&run, inputs, output);
                check_run(output, expected.as_ref(), is_required, exact, call)
            })
            .map_err(|what| format!("{what}\n{method:?} {} {how:?} {change:#?}", T::DTYPE))
    }
}
