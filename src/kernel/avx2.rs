//! Vectors for x86-64 with AVX2 and F16C, where compilers generate slower code.
//!
//! The module knows machine instructions. Its types give the same bits as the portable loops. A
//! type exists only where the portable loop was measured to be slower than the type by a third or
//! more.
//!
//! Code that uses the types must run only on machines with AVX2 and F16C. The kernel table
//! guarantees this for all types except [`Eight`]: it names them only for
//! [`Avx2`](super::InstructionSet::Avx2) and for AVX-512, which includes AVX2. The function
//! [`filter`](super::filter::filter) guarantees this for [`Eight`]. The safety comments that name
//! the module `avx2` depend on this guarantee.

mod complex;
mod filter;
mod half;
mod order;

pub(super) use complex::{FourComplex, TwoComplex};
pub(super) use filter::Eight;
pub(super) use half::{EightF16, F16c};
pub(super) use order::Four;
