//! The reference's arithmetic: each reduction of two numbers, and the result of an element with
//! several updates. It shares no code with the crate.

use ndscatter::{Accumulate, Reduction};
use num_traits::float::FloatCore;
use num_traits::{WrappingAdd, WrappingMul, WrappingSub};

use super::elements::Ref;

/// The options that decide how an element and its updates are combined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) reduction: Reduction,
    pub(crate) include_self: bool,
    pub(crate) accumulate: Accumulate,
}

impl From<Reduction> for How {
    fn from(reduction: Reduction) -> Self {
        Self {
            reduction,
            include_self: true,
            accumulate: Accumulate::Native,
        }
    }
}

/// Returns an element after these updates, computed in the element's type. Without self, the first
/// update is the start value. `Sub` without self starts at zero.
pub(super) fn reduce_native<T: Ref>(how: How, current: T, updates: &[T]) -> T {
    let is_mean = how.reduction == Reduction::Mean;
    let reduction = if is_mean {
        Reduction::Add
    } else {
        how.reduction
    };
    let (start, rest) = match updates {
        all if how.include_self || reduction == Reduction::None => (current, all),
        all if reduction == Reduction::Sub => (T::zero_value(), all),
        [first, rest @ ..] => (*first, rest),
        [] => (current, updates),
    };
    let step = |current, &update| T::combine(reduction, current, update);
    let folded = rest.iter().fold(start, step);
    if is_mean {
        folded.divide(updates.len() + usize::from(how.include_self))
    } else {
        folded
    }
}

pub(super) fn integer<T>(reduction: Reduction, current: T, update: T) -> T
where
    T: Ord + WrappingAdd + WrappingSub + WrappingMul,
{
    match reduction {
        Reduction::None => update,
        Reduction::Add => current.wrapping_add(&update),
        Reduction::Sub => current.wrapping_sub(&update),
        Reduction::Mul => current.wrapping_mul(&update),
        Reduction::Min => current.min(update),
        Reduction::Max => current.max(update),
        other => panic!("the reference does not support {other}"),
    }
}

pub(super) fn float<T: FloatCore>(reduction: Reduction, current: T, update: T) -> T {
    let nan = current.is_nan() || update.is_nan();
    match reduction {
        Reduction::None => update,
        Reduction::Add => current + update,
        Reduction::Sub => current - update,
        Reduction::Mul => current * update,
        Reduction::Min | Reduction::Max if nan => T::nan(),
        Reduction::Min if update < current => update,
        Reduction::Max if update > current => update,
        // A tie keeps the current value, for zeros of any sign.
        Reduction::Min | Reduction::Max => current,
        other => panic!("the reference does not support {other}"),
    }
}

pub(super) fn boolean(reduction: Reduction, current: bool, update: bool) -> bool {
    match reduction {
        Reduction::None => update,
        Reduction::Add | Reduction::Max => current || update,
        Reduction::Sub => current != update,
        Reduction::Mul | Reduction::Min => current && update,
        other => panic!("the reference does not support {other}"),
    }
}

/// Combines f16 or bf16 values: one operation in f32, then one rounding. `Reduction::None` returns
/// the update without a conversion.
#[cfg(feature = "half")]
pub(super) fn half_combine<T: Into<f32>>(
    reduction: Reduction,
    current: T,
    update: T,
    round: impl Fn(f32) -> T,
) -> T {
    if reduction == Reduction::None {
        return update;
    }
    round(float(reduction, current.into(), update.into()))
}

#[cfg(feature = "half")]
pub(super) fn half_divide<T: Into<f32>>(sum: T, count: usize, round: impl Fn(f32) -> T) -> T {
    round(sum.into().divide(count))
}

/// Reduces f16 or bf16 values with all operations in f32, and rounds once at the end.
#[cfg(feature = "half")]
pub(super) fn half_reduce<T: Copy + Into<f32>>(
    how: How,
    current: T,
    updates: &[T],
    round: impl Fn(f32) -> T,
) -> T {
    let updates: Vec<f32> = updates.iter().map(|&update| update.into()).collect();
    round(f32::reduce(how, current.into(), &updates))
}
