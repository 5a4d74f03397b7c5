//! Plans that run with other operands than those for which they were made: other values, types,
//! strides, shapes, reductions and pools. A run either writes the bits of the naive loop, or returns
//! an error and does not change the output. It may fail only if something does not fit the plan.

mod gathers;
mod scatters;

use crate::common::Tensor;
use crate::common::elements::{Palette, Ref};
use crate::common::layouts::{Arrangement, Strided};
use crate::common::random::Random;
use crate::draw::{Run, draw_layout, draw_shape};

/// What differs between a run and the call that made the plan.
#[derive(Debug)]
struct Change {
    run: Run,
    /// Layout of the output of a scatter or of the data of a gather. A plan is for one layout.
    numbered: Arrangement,
    /// Layout of the output of a gather.
    listed: Arrangement,
    /// Layout of the inputs of a scatter.
    inputs: Arrangement,
    /// Other shapes of data, and of the updates or the output of a gather.
    shapes: [Option<Vec<usize>>; 2],
    palette: Palette,
}

impl Change {
    fn draw(planned: Arrangement, all: &[Arrangement], random: &mut Random) -> Self {
        let mut shape = || random.one_in(8).then(|| draw_shape(random));
        let shapes = [shape(), shape()];
        Self {
            shapes,
            run: Run::draw(random),
            numbered: match random.one_in(4) {
                true => random.pick(all),
                false => planned,
            },
            listed: draw_layout(&Arrangement::OUTPUTS, random),
            inputs: draw_layout(&Arrangement::INPUTS, random),
            palette: random.pick(&Palette::ALL),
        }
    }

    /// Draws a tensor of this shape, or of the other shape with this number.
    fn tensor<T: Ref>(
        &self,
        number: usize,
        shape: &[usize],
        arrangement: Arrangement,
        random: &mut Random,
    ) -> Strided<T> {
        let shape = self.shapes[number].as_deref().unwrap_or(shape);
        let tensor = Tensor::generate(shape, || T::sample(self.palette, random));
        Strided::new(&tensor, arrangement, 1, T::sentinel())
    }
}

/// Runs a case from the bytes of the fuzzer.
pub fn fuzz(bytes: &[u8]) {
    let mut random = Random::of_bytes(bytes);
    match random.one_in(4) {
        true => gathers::check(&mut random),
        false => scatters::check(&mut random),
    }
}
