//! Draws conversions: the rule, the scale and the zero points.

use ndscatter::{Format, Rounding, Scaling};

use crate::common::api::DType;
use crate::common::elements::Ref;
use crate::common::formats::dtype_of;
use crate::common::layouts::{Arrangement, Strided};
use crate::common::random::Random;
use crate::common::{Tensor, ndindex};
use crate::draw::{draw_layout, plain_or};

/// A conversion without its scale and its zero points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) format: Format,
    /// Element type of data.
    pub(crate) stored: DType,
    pub(crate) rounding: Rounding,
    pub(crate) scaling: Scaling,
}

impl Rule {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let format = random.pick(&Format::ALL);
        let stored = match format {
            Format::F8E4M3Fn | Format::F8E5M2 | Format::I4 | Format::U4 => {
                random.pick(&[DType::Bytes1, DType::I8, DType::U8])
            }
            _ => dtype_of(format),
        };
        Self {
            format,
            stored,
            rounding: plain_or(Rounding::NearestEven, &Rounding::ALL, random),
            scaling: random.pick(&[Scaling::Divide, Scaling::Reciprocal]),
        }
    }

    /// Whether two codes are equal, or are NaN of a type whose NaN is not specified.
    pub(crate) fn same(self, a: u32, b: u32) -> bool {
        let is_nan = |code: u32| match self.format {
            Format::F32 => f32::from_bits(code).is_nan(),
            Format::F16 => code & 0x7fff > 0x7c00,
            Format::BF16 => code & 0x7fff > 0x7f80,
            _ => false,
        };
        a == b || (is_nan(a) && is_nan(b))
    }
}

/// A scale or zero points: one value for each place along some of the updates' dims.
pub(crate) struct Spread<T> {
    pub(crate) values: Strided<T>,
    /// The value of each update.
    pub(crate) each: Vec<T>,
}

impl<T: Ref> Spread<T> {
    pub(crate) fn draw(
        updates: &[usize],
        random: &mut Random,
        mut value: impl FnMut(&mut Random) -> T,
    ) -> Self {
        let left_out = random.below(updates.len() + 1);
        let mut size = |&size: &usize| if random.one_in(2) { size } else { 1 };
        let shape: Vec<usize> = updates[left_out..].iter().map(&mut size).collect();
        let tensor = Tensor::generate(&shape, || value(random));
        let values = Strided::new(
            &tensor,
            draw_layout(&Arrangement::INPUTS, random),
            1,
            T::sentinel(),
        );
        let tensor = values.read();
        let each = ndindex(updates).map(|place| {
            let place = place[left_out..].iter().zip(&shape);
            let place: Vec<usize> = place.map(|(&at, &size)| at.min(size - 1)).collect();
            *tensor.at(&place)
        });
        Self {
            each: each.collect(),
            values,
        }
    }
}

/// Whether a conversion may have this value as a scale.
pub(crate) fn is_scale(scale: f32, scaling: Scaling) -> bool {
    let is_factor = scaling == Scaling::Divide || (1.0 / scale).is_finite();
    scale > 0.0 && scale.is_finite() && is_factor
}

/// Returns an update after its scale.
pub(crate) fn scaled(update: f32, scale: Option<f32>, scaling: Scaling) -> f32 {
    match (scale, scaling) {
        (None, _) => update,
        (Some(scale), Scaling::Divide) => update / scale,
        (Some(scale), _) => update * (1.0 / scale),
    }
}

/// Draws a scale. A few scales are not valid.
pub(crate) fn draw_scale(random: &mut Random) -> f32 {
    let bits = u32::try_from(random.bits() >> 33).expect("31 bits");
    match random.below(32) {
        31 => f32::from_bits(bits),
        30 => random.pick(&[0.0, -1.0, f32::NAN, f32::INFINITY]),
        29 => random.pick(&[f32::MAX, f32::MIN_POSITIVE, f32::from_bits(1)]),
        number => f32::from_bits((0x3c00_0000 + (bits >> 7)) & !0xff) * (1.0 + number as f32),
    }
}
