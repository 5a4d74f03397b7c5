//! Widens source elements to `f32`, and scales them.
//!
//! The module knows the types of the source and the scaling. The module does not know strides or
//! formats.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::slice;

use crate::kernel::dispatch::Kernel;
use crate::kernel::half::{Bf16, F16, Half};

/// Elements that [`Target::narrowed_block`](super::narrow::Target::narrowed_block) converts at once.
/// They fill one register of 512 bits.
pub(super) type Bf16Block = [Bf16; 32];

/// An element type that conversions read.
pub(super) trait Source: Copy {
    /// Whether the elements are `f32` values already. Without a scale, they are not loaded.
    const IS_F32: bool = false;

    /// Converts the element to `f32`. The conversion is exact.
    fn widened(self) -> f32;

    /// Returns the blocks of `elements`, in order, if the elements are `bf16`. The last elements are
    /// not a block.
    #[inline(always)]
    fn blocks(elements: &[Self]) -> &[Bf16Block] {
        let _ = elements;
        &[]
    }
}

impl Source for f32 {
    const IS_F32: bool = true;

    #[inline(always)]
    fn widened(self) -> f32 {
        self
    }
}

impl Source for F16 {
    #[inline(always)]
    fn widened(self) -> f32 {
        self.widen()
    }
}

impl Source for Bf16 {
    #[inline(always)]
    fn widened(self) -> f32 {
        self.widen()
    }

    #[inline(always)]
    fn blocks(elements: &[Self]) -> &[Bf16Block] {
        elements.as_chunks().0
    }
}

/// A way to apply a scale. The loop gets the scale, or its reciprocal.
pub(super) trait Apply {
    /// Whether the loop gets the reciprocal of the scale.
    const RECIPROCAL: bool;

    fn applied(value: f32, scale: f32) -> f32;
}

/// Divides by the scale.
pub(super) struct Dividing;

impl Apply for Dividing {
    const RECIPROCAL: bool = false;

    #[inline(always)]
    fn applied(value: f32, scale: f32) -> f32 {
        value / scale
    }
}

/// Multiplies by the reciprocal of the scale.
pub(super) struct Multiplying;

impl Apply for Multiplying {
    const RECIPROCAL: bool = true;

    #[inline(always)]
    fn applied(value: f32, scale: f32) -> f32 {
        value * scale
    }
}

/// Scales `value`. NaN stays unchanged, because the bits of a NaN that arithmetic makes are
/// unspecified.
#[inline(always)]
fn scaled<A: Apply>(value: f32, scale: f32) -> f32 {
    if value.is_nan() {
        value
    } else {
        A::applied(value, scale)
    }
}

/// Scales `value`, as [`scaled`]. The sign stays unchanged, because scales are positive. The other bits
/// of a NaN can change: formats of 8 bits do not have them. This takes fewer operations than
/// [`scaled`].
#[inline(always)]
pub(super) fn scaled_with_sign<A: Apply>(value: f32, scale: f32) -> f32 {
    A::applied(value, scale).copysign(value)
}

/// The loop that widens elements of type `S`, and applies scales by the rule `A`. The list has one
/// scale for each element, or is empty: there is no scale. The form is the number of elements.
pub(super) struct Load<S, A>(PhantomData<(S, A)>);

impl<S: Source, A: Apply> Kernel for Load<S, A> {
    type Entry = f32;
    type Form<'a> = usize;

    #[inline(always)]
    unsafe fn run<const AVX2: bool>(dst: *mut u8, src: *const u8, scales: &[f32], len: usize) {
        // SAFETY: the caller guarantees `len` elements on both sides, which do not overlap.
        let (values, elements) = unsafe {
            (
                slice::from_raw_parts_mut(dst.cast::<MaybeUninit<f32>>(), len),
                slice::from_raw_parts(src.cast::<S>(), len),
            )
        };
        let pairs = values.iter_mut().zip(elements);
        if scales.is_empty() {
            for (value, element) in pairs {
                value.write(element.widened());
            }
        } else {
            for ((value, element), &scale) in pairs.zip(scales) {
                value.write(scaled::<A>(element.widened(), scale));
            }
        }
    }
}
