//! What a reduction does to two values, and to two slices of them.
//!
//! Knows values and slices. Knows nothing of memory, jobs or instruction
//! sets: the loops are safe, and are compiled for an instruction set by being
//! inlined into a function that enables it. That is why everything here is
//! `#[inline(always)]`: a call left standing would be compiled without.

use std::marker::PhantomData;

/// A reduction, as a type.
pub(super) trait Reducer<T> {
    /// Combines the current value of a destination with an update.
    fn apply(current: T, update: T) -> T;
}

/// `current + update`
pub(super) struct Add;
/// `current - update`
pub(super) struct Sub;
/// `current * update`
pub(super) struct Mul;
/// The smaller of the two.
pub(super) struct Min;
/// The larger of the two.
pub(super) struct Max;

/// Values (single ones or vectors) that can be added and multiplied.
/// Integers wrap; floats round each operation.
pub(super) trait Arithmetic: Copy {
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;

    /// The first of several: itself, as a reduction would write it.
    #[inline(always)]
    fn taken(self) -> Self {
        self
    }
}

/// Values (single ones or vectors) that have a smaller and a larger one.
/// NaN propagates from either side; a tie keeps `self`.
pub(super) trait Ordered {
    fn min(self, update: Self) -> Self;
    fn max(self, update: Self) -> Self;
}

/// Lists types whose sum, difference and product are these expressions.
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

/// Lists types whose smaller and larger value are these expressions.
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

/// How slices are gone through, as a type.
pub(super) trait Loop<T, R> {
    /// Replaces each `dst[i]` by `R(dst[i], src[i])`.
    fn reduce(dst: &mut [T], src: &[T]);

    /// The same for slices of a length that is known.
    #[inline(always)]
    fn reduce_array<const N: usize>(dst: &mut [T; N], src: &[T; N]) {
        Self::reduce(dst, src);
    }
}

/// One by one, for the compiler to make vectors of.
pub(super) struct Plain;

impl<T: Copy, R: Reducer<T>> Loop<T, R> for Plain {
    #[inline(always)]
    fn reduce(dst: &mut [T], src: &[T]) {
        debug_assert_eq!(dst.len(), src.len(), "slices must match");
        for (d, &s) in dst.iter_mut().zip(src) {
            *d = R::apply(*d, s);
        }
    }

    /// All are read before the first is written: where both come from addresses, the
    /// compiler does not know them to be apart, and would go one by one.
    #[inline(always)]
    fn reduce_array<const N: usize>(dst: &mut [T; N], src: &[T; N]) {
        let (mut values, updates) = (*dst, *src);
        for (value, update) in values.iter_mut().zip(updates) {
            *value = R::apply(*value, update);
        }
        *dst = values;
    }
}

/// A vector of `T`.
pub(super) trait Vector<T>: Copy {
    /// Number of elements.
    const LANES: usize;
    /// Reads `LANES` elements.
    fn load(src: &[T]) -> Self;
    /// Writes `LANES` elements.
    fn store(self, dst: &mut [T]);
}

/// Whole vectors of type `V`, then the tail one by one.
pub(super) struct By<V>(PhantomData<V>);

impl<T, V, R> Loop<T, R> for By<V>
where
    T: Copy,
    V: Vector<T>,
    R: Reducer<T> + Reducer<V>,
{
    #[inline(always)]
    fn reduce(dst: &mut [T], src: &[T]) {
        debug_assert_eq!(dst.len(), src.len(), "slices must match");
        let mut dst_vectors = dst.chunks_exact_mut(V::LANES);
        let mut src_vectors = src.chunks_exact(V::LANES);
        for (d, s) in dst_vectors.by_ref().zip(src_vectors.by_ref()) {
            <R as Reducer<V>>::apply(V::load(d), V::load(s)).store(d);
        }
        let dst_tail = dst_vectors.into_remainder();
        <Plain as Loop<T, R>>::reduce(dst_tail, src_vectors.remainder());
    }
}
