//! Gradients of scatters and of gathers, by every method: the bits of their definitions, or the
//! error of the reference with outputs that are unchanged.

use crate::common::cases::Limit;
use crate::common::gradients::Graded;
use crate::common::random::Random;
use crate::common::{gather_gradients, scatter_gradients};
use crate::draw::gathers::Gathering;
use crate::draw::scatters::Scattering;
use crate::pick_graded;

fn check_scatter<T: Graded>(scattering: &Scattering, random: &mut Random) {
    let case = &scattering.case;
    let indices = scattering.draw_indices(random);
    case.workers.with(|pool| {
        let options = scattering.options(case.reduction::<T>(), pool);
        if options.is_supported() {
            scatter_gradients::check::<T>(&options, &case.data, &*indices, random);
        }
    });
}

fn check_gather<T: Graded>(gathering: &Gathering, random: &mut Random) {
    let indices = gathering.draw_indices(random);
    gathering.run.workers.with(|pool| {
        let options = gathering.options(pool);
        gather_gradients::check::<T>(&options, &gathering.data, &*indices, random);
    });
}

/// Runs a case from the bytes of the fuzzer.
pub fn fuzz(bytes: &[u8]) {
    let mut random = Random::of_bytes(bytes);
    if random.one_in(4) {
        let check = pick_graded!(random, check_gather);
        check(&Gathering::draw(&mut random), &mut random);
    } else {
        let check = pick_graded!(random, check_scatter);
        let mut scattering = Scattering::draw(&mut random);
        // The time of the reference is quadratic in the number of updates of a destination.
        scattering.shorten(Limit(2000));
        check(&scattering, &mut random);
    }
}
