//! Vector types for loops on x86-64 machines with AVX2 and F16C.
//!
//! The module knows machine instructions. A loop with a type of this module gives the same bits as
//! the portable loop, which uses no such type. The module has a type only for an operation whose
//! portable loop was measured to be slower than the loop with the type by a third or more.
//!
//! Code that uses the types must run only on machines with AVX2 and F16C. The kernel table
//! guarantees these instruction sets for all types except [`Eight`]: the table names these types
//! only for [`Avx2`](super::InstructionSet::Avx2) and for AVX-512, which includes AVX2. The
//! function [`filter`](super::filter::filter) guarantees the instruction sets for [`Eight`]. The
//! safety comments that name the module `avx2` depend on these two guarantees.

mod complex;
mod filter;
mod half;
mod order;

pub(super) use complex::{FourComplex, TwoComplex};
pub(super) use filter::Eight;
pub(super) use half::{EightF16, F16c};
pub(super) use order::Four;
