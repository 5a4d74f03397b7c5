//! Gathers of every operator, type, layout and method. A valid call must return the bits of the
//! naive loop. Any other call must return the error of the reference, or any error if shapes do not
//! fit, and must not change the output.

use crate::common::elements::Ref;
use crate::common::harness::GatherProblem;
use crate::common::random::Random;
use crate::draw::gathers::Gathering;
use crate::with_element;
use ndscatter::Pool;

fn check<T: Ref>(gathering: &Gathering, random: &mut Random) {
    let indices = gathering.draw_indices(random);
    let problem = gathering.problem::<T>(&*indices, random);
    let checked = (gathering.run.workers).with(|pool| run(gathering, &problem, pool));
    let logical = || indices.logical().values;
    checked.unwrap_or_else(|what| panic!("{what}\n{gathering:#?}\nindices: {:?}", logical()));
}

fn run<T: Ref>(
    gathering: &Gathering,
    problem: &GatherProblem<'_, T>,
    pool: &dyn Pool,
) -> Result<(), String> {
    let (options, method) = (gathering.options(pool), gathering.method);
    let Gathering { data, indices, .. } = gathering;
    let output = (gathering.fits()).then(|| gathering.gatherer.output_shape(data, indices));
    let refused = |shape: &[usize], error| problem.check_refused(method, &options, shape, error);
    match (output, &gathering.misfit) {
        (None, shape) => refused(shape.as_deref().unwrap_or_default(), None),
        // The output has a wrong shape.
        (Some(output), Some(shape)) if *shape != output && !method.allocates() => {
            refused(shape, None)
        }
        (Some(output), _) => match gathering.refusal(problem.indices) {
            Some(error) => refused(&output, Some(&error)),
            None => problem.check(method, &options),
        },
    }
}

/// Runs a case from the bytes of the fuzzer.
pub fn fuzz(bytes: &[u8]) {
    let mut random = Random::of_bytes(bytes);
    let mut gathering = Gathering::draw(&mut random);
    if random.one_in(8) {
        gathering.spoil(&mut random);
    }
    with_element!(gathering.element, T => check::<T>(&gathering, &mut random));
}
