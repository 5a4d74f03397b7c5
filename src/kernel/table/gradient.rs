//! The part of the kernel table that only gradients use.

use super::super::fold::{AddToZero, ByFactor};
use super::super::gradient::{Alike, Product, Ties, each_group};
use super::super::multiply::{copy_multiplied, multiply};
#[cfg(feature = "complex")]
use super::Complex;
#[cfg(feature = "float16")]
use super::{Bf16, F16};
use super::{Kernels, Operation, compiled, groups};
use crate::element::DType;
use crate::kernel::{GradientFn, InstructionSet, MultiplyFn, MultiplyingFn};
use crate::reduction::{Reducing, Reduction};

/// Returns the function that multiplies gradients in place, and the function that multiplies
/// gradients while copying them. `None`: the element type has no gradients.
fn multiplies(element: DType) -> Option<(MultiplyFn, MultiplyingFn)> {
    for_type!(graded element, T => (multiply::<T>, copy_multiplied::<T>))
}

impl Kernels {
    /// Returns the function that computes gradients group by group. `None`: the element type does
    /// not have the gradient of this reduction.
    pub(crate) fn gradient(
        element: DType,
        reduction: Reduction,
        isa: InstructionSet,
    ) -> Option<GradientFn> {
        let isa = isa.min(InstructionSet::best());
        match reduction {
            Reduction::Mul => for_type!(graded element, T => each_group::<T, Product, false>),
            // Only the gradients of minima and maxima have loops compiled for AVX2. The other
            // gradients compute little per memory access.
            Reduction::Min | Reduction::Max => for_type!(float element, T => match isa {
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx2 | InstructionSet::Avx512 => each_group::<T, Ties, true>,
                _ => each_group::<T, Ties, false>,
            }),
            Reduction::None | Reduction::Add | Reduction::Sub | Reduction::Mean => {
                for_type!(graded element, T => each_group::<T, Alike, false>)
            }
        }
    }
}

impl Operation {
    /// Returns the operation that adds the gradients of each destination, starting from zero, and
    /// multiplies each sum by `factor`. For 16-bit floats, the sum of a destination is computed in
    /// `f32`, multiplied, and only then rounded to 16 bits. Sums of other types are first written
    /// to the output and then multiplied there. `None`: the element type has no gradients.
    pub(crate) fn gradient_sum(element: DType, factor: f64, isa: InstructionSet) -> Option<Self> {
        let (multiply, _) = multiplies(element)?;
        let isa = isa.min(InstructionSet::best());
        let group = for_type!(half element, T =>
            compiled::<groups::Fold<T, f32, AddToZero, ByFactor>>(isa));
        let reducing = Reducing {
            reduction: Reduction::Add,
            ..Reducing::default()
        };
        let sum = Self::plain(element, reducing, isa)?;
        Some(Self {
            group: group.or(sum.group),
            needs_groups: group.is_some(),
            factor,
            multiply: (group.is_none() && factor != 1.0).then_some(multiply),
            ..sum
        })
    }

    /// Returns the operation that copies gradients and multiplies each copied element by `factor`.
    /// A scatter uses it to copy `data` (here gradients) to its output, and a gather uses it for
    /// all elements that it reads. `None`: the element type has no gradients.
    pub(crate) fn scaled_copy(element: DType, factor: f64, isa: InstructionSet) -> Option<Self> {
        let (_, multiplying) = multiplies(element)?;
        Some(Self {
            factor,
            multiplying: (factor != 1.0).then_some(multiplying),
            ..Self::moving(Kernels::plain(element, Reduction::None, isa)?)
        })
    }

    /// Returns the operation for gradients that a [`GradientFn`] computes group by group.
    pub(crate) fn gradient_groups(element: DType, isa: InstructionSet) -> Option<Self> {
        Some(Self {
            needs_groups: true,
            ..Self::moving(Kernels::plain(element, Reduction::None, isa)?)
        })
    }

    /// Returns the operation that multiplies gradients by `factor` in place. `None`: the element
    /// type has no gradients.
    pub(crate) fn scale_in_place(element: DType, factor: f64, isa: InstructionSet) -> Option<Self> {
        let (multiply, _) = multiplies(element)?;
        Some(Self {
            factor,
            multiply: (factor != 1.0).then_some(multiply),
            ..Self::moving(Kernels::plain(element, Reduction::None, isa)?)
        })
    }
}
