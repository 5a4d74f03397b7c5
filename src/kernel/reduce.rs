//! Reductions of two values, and of two slices of values.
//!
//! The module knows values and slices. It does not know memory, jobs or instruction sets. Its
//! loops are safe. The compiler uses an instruction set for a loop that is inlined into a function
//! that enables the set. So every function here is `#[inline(always)]`: a function that remains a
//! call is compiled without the set.

use std::marker::PhantomData;

/// A reduction, as a type.
pub(super) trait Reducer<T> {
    /// Combines the current value of a destination with an update.
    fn apply(current: T, update: T) -> T;
}

/// `current + update`.
pub(super) struct Add;
/// `current - update`.
pub(super) struct Sub;
/// `current * update`.
pub(super) struct Mul;
/// The smaller value of `current` and `update`.
pub(super) struct Min;
/// The larger value of `current` and `update`.
pub(super) struct Max;

/// Types with the operations sum, difference and product: scalars, or vectors with one operation
/// per lane. Integer operations wrap. Each float operation is rounded.
pub(super) trait Arithmetic: Copy {
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;

    /// Returns the result of a reduction whose only value is `self`. The result is `self`, except
    /// that a boolean of any byte becomes 0 or 1.
    #[inline(always)]
    fn taken(self) -> Self {
        self
    }
}

/// Types with the operations minimum and maximum: scalars, or vectors with one operation per lane.
/// If one of the operands is NaN, the result is NaN. If the operands are equal, the result is
/// `self`.
pub(super) trait Ordered {
    fn min(self, update: Self) -> Self;
    fn max(self, update: Self) -> Self;
}

/// Implements [`Arithmetic`] for types with the given sum, difference and product.
macro_rules! arithmetic {
    ($($value:ty),+: |$a:ident, $b:ident| $sum:expr, $difference:expr, $product:expr) => {$(
        impl Arithmetic for $value {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $sum
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $difference
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $product
            }
        }
    )+};
}
pub(super) use arithmetic;

/// Implements [`Ordered`] for types with the given minimum and maximum.
macro_rules! ordered {
    ($($value:ty),+: |$a:ident, $b:ident| $smaller:expr, $larger:expr) => {$(
        impl Ordered for $value {
            #[inline(always)]
            fn min(self, update: Self) -> Self {
                let ($a, $b) = (self, update);
                $smaller
            }
            #[inline(always)]
            fn max(self, update: Self) -> Self {
                let ($a, $b) = (self, update);
                $larger
            }
        }
    )+};
}
pub(super) use ordered;

macro_rules! impl_reducer {
    ($($reducer:ident: $values:ident::$method:ident,)*) => {$(
        impl<T: $values> Reducer<T> for $reducer {
            #[inline(always)]
            fn apply(current: T, update: T) -> T {
                current.$method(update)
            }
        }
    )*};
}

impl_reducer! {
    Add: Arithmetic::add,
    Sub: Arithmetic::sub,
    Mul: Arithmetic::mul,
    Min: Ordered::min,
    Max: Ordered::max,
}

/// A loop over two slices, as a type.
pub(super) trait Loop<T, R> {
    /// Replaces each `dst[i]` by `R(dst[i], src[i])`.
    fn reduce(dst: &mut [T], src: &[T]);

    /// Replaces each `dst[i]` by `R(dst[i], src[i])`, for a length that is known at compile time.
    #[inline(always)]
    fn reduce_array<const N: usize>(dst: &mut [T; N], src: &[T; N]) {
        Self::reduce(dst, src);
    }
}

/// Processes elements one by one. The compiler can vectorise the loop.
pub(super) struct Plain;

impl<T: Copy, R: Reducer<T>> Loop<T, R> for Plain {
    #[inline(always)]
    fn reduce(dst: &mut [T], src: &[T]) {
        debug_assert_eq!(dst.len(), src.len(), "slices of one length");
        for (d, &s) in dst.iter_mut().zip(src) {
            *d = R::apply(*d, s);
        }
    }

    /// The function reads all elements before it writes the first element. The slices come from
    /// addresses, so the compiler may not know that they do not overlap. The compiler would then
    /// process the elements one by one.
    #[inline(always)]
    fn reduce_array<const N: usize>(dst: &mut [T; N], src: &[T; N]) {
        let (mut values, updates) = (*dst, *src);
        for (value, update) in values.iter_mut().zip(updates) {
            *value = R::apply(*value, update);
        }
        *dst = values;
    }
}

/// A vector of elements of type `T`.
pub(super) trait Vector<T>: Copy {
    /// Number of elements.
    const LANES: usize;
    /// Reads `LANES` elements.
    fn load(src: &[T]) -> Self;
    /// Writes `LANES` elements.
    fn store(self, dst: &mut [T]);
}

/// Processes whole vectors of type `V`, then the remaining elements one by one.
pub(super) struct By<V>(PhantomData<V>);

impl<T, V, R> Loop<T, R> for By<V>
where
    T: Copy,
    V: Vector<T>,
    R: Reducer<T> + Reducer<V>,
{
    #[inline(always)]
    fn reduce(dst: &mut [T], src: &[T]) {
        debug_assert_eq!(dst.len(), src.len(), "slices of one length");
        let mut dst_vectors = dst.chunks_exact_mut(V::LANES);
        let mut src_vectors = src.chunks_exact(V::LANES);
        for (d, s) in dst_vectors.by_ref().zip(src_vectors.by_ref()) {
            <R as Reducer<V>>::apply(V::load(d), V::load(s)).store(d);
        }
        let dst_tail = dst_vectors.into_remainder();
        <Plain as Loop<T, R>>::reduce(dst_tail, src_vectors.remainder());
    }
}
