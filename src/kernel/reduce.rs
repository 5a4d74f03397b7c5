//! Reductions of two values, and of two slices of values.
//!
//! The module knows values and slices. The module does not know memory, jobs or instruction sets.
//! Its loops are safe code. The compiler uses an instruction set only in a function that enables
//! it, and in code that is inlined into this function. So every function here is
//! `#[inline(always)]`: a function that is called instead of inlined would be compiled without the
//! instruction set.

use std::marker::PhantomData;

/// A reduction. Each implementing type is one reduction.
pub(super) trait Reducer<T> {
    /// Returns the combination of the current value of a destination with an update.
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

/// Types that have sums, differences and products: scalars, or vectors with one operation per lane.
/// Integer operations wrap. The result of each float operation is rounded to the float type.
pub(super) trait Arithmetic: Copy {
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;

    /// Returns the result of a reduction that combines only one value, `self`. The result is
    /// `self`. A boolean byte other than 0 gives 1.
    #[inline(always)]
    fn taken(self) -> Self {
        self
    }
}

/// Types that have minima and maxima: scalars, or vectors with one operation per lane. If one of
/// the operands is NaN, the result is NaN. If the operands are equal, as 0 and -0 are, the result
/// is `self`. Booleans need no order: their maxima are sums, and their minima are products.
pub(super) trait Ordered {
    fn min(self, update: Self) -> Self;
    fn max(self, update: Self) -> Self;
}

/// Implements [`Arithmetic`] for types, with the given expressions for sum, difference and product.
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

/// Implements [`Ordered`] for types, with the given expressions for minimum and maximum.
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

/// A loop that reduces two slices. Each implementing type is one form of the loop.
pub(super) trait Loop<T, R> {
    /// Replaces each `dst[i]` by `R::apply(dst[i], src[i])`.
    fn reduce(dst: &mut [T], src: &[T]);

    /// Replaces each `dst[i]` by `R::apply(dst[i], src[i])`. The length `N` is known at compile
    /// time.
    #[inline(always)]
    fn reduce_array<const N: usize>(dst: &mut [T; N], src: &[T; N]) {
        Self::reduce(dst, src);
    }
}

/// Processes one element per iteration. The compiler can vectorise this loop.
pub(super) struct Plain;

impl<T: Copy, R: Reducer<T>> Loop<T, R> for Plain {
    #[inline(always)]
    fn reduce(dst: &mut [T], src: &[T]) {
        debug_assert_eq!(dst.len(), src.len(), "slices of one length");
        for (d, &s) in dst.iter_mut().zip(src) {
            *d = R::apply(*d, s);
        }
    }

    /// Reads all elements of both arrays before the first write to `dst`. The arrays come from raw
    /// addresses, so the compiler may not know that they do not overlap. If the function wrote each
    /// element before it read the next one, the compiler would then not vectorise the loop.
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
