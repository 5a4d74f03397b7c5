//! What compilers do not find by themselves on x86-64 with AVX2 and F16C.
//!
//! Knows machine instructions. Gives the same bits as the plain loops, and
//! exists only where those measured slower by a third or more. Code that uses
//! these types must only run where AVX2 and F16C were detected: the kernel
//! table names them for that instruction set alone, and every safety comment
//! below rests on it.

mod complex;
mod half;
mod order;

pub(super) use complex::{FourComplex, TwoComplex};
pub(super) use half::{EightF16, F16c};
pub(super) use order::Four;
