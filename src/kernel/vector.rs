//! Vectors for the portable loops, which use only the instruction set that the crate is compiled
//! for.
//!
//! The module implements the reductions with the vector types of the crate `wide`. It has no
//! minimum and maximum of floats, for two reasons. The minimum and maximum of `wide` have other
//! rules for NaN and ties. A loop that compares vectors and blends them is slower than the scalar
//! loop (SSE2: 151 ns instead of 105 ns for 4 KiB of `f32`). All other operations with `wide`
//! measured as fast as scalar loops, or faster.

use super::reduce::{Arithmetic, Ordered, Vector, arithmetic, ordered};
use wide::{f32x8, f64x4, i8x32, i16x16, i32x8, i64x4, u8x32, u16x16, u32x8, u64x4};

macro_rules! vector {
    ($($vector:ident = [$element:ty; $lanes:literal]),* $(,)?) => {$(
        impl Vector<$element> for $vector {
            const LANES: usize = $lanes;

            #[inline(always)]
            fn load(src: &[$element]) -> Self {
                Self::new(src.try_into().expect("one vector"))
            }
            #[inline(always)]
            fn store(self, dst: &mut [$element]) {
                dst.copy_from_slice(&self.to_array());
            }
        }
    )*};
}

vector! {
    f32x8 = [f32; 8], f64x4 = [f64; 4],
    i8x32 = [i8; 32], i16x16 = [i16; 16], i32x8 = [i32; 8], i64x4 = [i64; 4],
    u8x32 = [u8; 32], u16x16 = [u16; 16], u32x8 = [u32; 8], u64x4 = [u64; 4],
}

arithmetic!(f32x8, f64x4, u8x32, u16x16, u32x8, u64x4: |a, b| a + b, a - b, a * b);
ordered!(i8x32, i16x16, i32x8, i64x4, u8x32, u16x16, u32x8, u64x4: |a, b| a.min(b), a.max(b));
