//! Scatters of every operator, type, layout, method and schedule. A valid call must write the bits
//! of the naive loop. Any other call must return the error of the reference, or any error if shapes
//! do not fit, and must not change the output.

use crate::common::elements::Ref;
use crate::common::harness::Problem;
use crate::common::random::Random;
use crate::draw::scatters::Scattering;
use crate::with_element;

fn check<T: Ref>(scattering: &Scattering, random: &mut Random) {
    let case = &scattering.case;
    let indices = scattering.draw_indices(random);
    let problem = Problem {
        indices: &*indices,
        rounds: scattering.draw_rounds::<T>(random),
        output: case.output_layout,
        margin: random.below(4),
    };
    let checked = case.workers.with(|pool| {
        let options = scattering.options(case.reduction::<T>(), pool);
        match scattering.validity(&problem, &options) {
            Ok(()) => case.check(&problem, &options).map(drop),
            Err(error) => problem.check_refused(case.method, &options, error.as_ref()),
        }
    });
    let logical = || indices.logical().values;
    checked.unwrap_or_else(|what| panic!("{what}\n{scattering:#?}\nindices: {:?}", logical()));
}

/// Runs a case from the bytes of the fuzzer.
pub fn fuzz(bytes: &[u8]) {
    let mut random = Random::of_bytes(bytes);
    let mut scattering = Scattering::draw(&mut random);
    if random.one_in(8) {
        scattering.spoil(&mut random);
    }
    with_element!(scattering.case.element, T => check::<T>(&scattering, &mut random));
}
