//! Vectors for x86-64 with AVX2 and F16C, where compilers generate slower code.
//!
//! The module knows machine instructions. Its types give the same bits as the portable loops. A
//! type exists only where the portable loop measured slower by a third or more. Code that uses the
//! types must run only on machines with AVX2 and F16C. The kernel table guarantees this: the table
//! names the types only for the instruction set [`Avx2`](super::InstructionSet::Avx2). The filter
//! guarantees this for [`Eight`]. Every safety comment of the submodules depends on this guarantee.

mod complex;
mod filter;
mod half;
mod order;

pub(super) use complex::{FourComplex, TwoComplex};
pub(super) use filter::Eight;
pub(super) use half::{EightF16, F16c};
pub(super) use order::Four;
