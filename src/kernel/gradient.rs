//! Computes gradients of groups. A group has all updates of one destination. From the gradient of
//! the destination's result, a kernel computes the gradients of the existing value and of each
//! update.
//!
//! The module knows values, lists of sources (updates) and pointers. The module does not know how
//! groups are made.

#![allow(unsafe_code, reason = "dereferences raw pointers")]

use std::marker::PhantomData;
use std::ops::Neg;

use super::dispatch::with_avx2;
use super::fold::{ComputedIn, Divided};
use super::half::{Bf16, F16};
use super::multiply::Multiplied;
use super::prefetch::{Distance, are_prefetched, prefetch_run};
use super::scalar::Complex;
use super::{GradientGroup, GradientTensors, Numbered, PerTuple, Shares};

/// Number of elements of a run that are processed together, in loops without AVX2.
const WIDTH: usize = 4;
/// Number of elements of a run that are processed together, in loops with AVX2.
const AVX2_WIDTH: usize = 16;

/// The kernel counts the ties of a group in 64 bits if the group has at least this number of
/// updates. A group has all updates of one destination. Ties are the values of a group that equal
/// its minimum or maximum. Ties of smaller groups are counted in 32 bits, so that a vector of `f32`
/// values has one vector of counts.
const COUNTED_IN_64_BITS: usize = if cfg!(test) { 20 } else { i32::MAX as usize };

/// Maximum number of parts into which [`Products::compute`] divides a range of updates. For each
/// part, the function keeps one product: the product of all updates after the part.
const LEVEL_PARTS: usize = 32;

/// An element type that has gradients.
pub(super) trait Graded: ComputedIn<Self::Computed> {
    /// The type that the gradients are computed in.
    type Computed: Computed;
}

macro_rules! graded {
    ($($element:ty: $computed:ty),*) => {$(
        impl Graded for $element {
            type Computed = $computed;
        }
    )*};
}

graded!(F16: f32, Bf16: f32, f32: f32, f64: f64);
graded!(Complex<f32>: Complex<f32>, Complex<f64>: Complex<f64>);

/// A type that gradients are computed in.
pub(super) trait Computed: Default + Divided + Multiplied {
    /// Returns the complex conjugate. The conjugate of a real number is the number itself.
    #[inline(always)]
    fn conjugated(self) -> Self {
        self
    }
}

/// A type that gradients of minima and maxima are computed in.
pub(super) trait Compared: Computed + PartialOrd + Neg<Output = Self> {
    /// Divides by a count of 32 bits. The compiler can vectorise the conversion of a 32-bit count
    /// to a float.
    fn divided_by_i32(self, count: i32) -> Self;
}

macro_rules! floats {
    ($($float:ty),*) => {$(
        impl Computed for $float {}
        impl Compared for $float {
            #[allow(clippy::cast_precision_loss, clippy::cast_lossless, reason = "is rounded")]
            #[inline(always)]
            fn divided_by_i32(self, count: i32) -> Self {
                self / count as Self
            }
        }
        impl Computed for Complex<$float> {
            #[inline(always)]
            fn conjugated(self) -> Self {
                self.conjugate()
            }
        }
    )*};
}

floats!(f32, f64);

/// Access to successive elements of one group. A group has all updates of one destination. In the
/// gradient of the output, in data and in the gradient for data, a group has one run of elements.
/// In updates and in the gradient for updates, a group has one run per update. The accessed
/// elements begin at position `first` of each of these runs. Values of this type exist only during
/// a call of [`each_group`]. The caller of `each_group` guarantees that all elements of the runs
/// are valid for reads, and for writes if they are results.
pub(super) struct Lanes<'g, T> {
    tensors: &'g GradientTensors<'g>,
    group: &'g GradientGroup,
    shares: &'g Shares,
    first: isize,
    element: PhantomData<T>,
}

impl<T: Graded> Lanes<'_, T> {
    /// Loads `N` elements, from position `first` on, of the run at `offset` in `tensor`.
    #[inline(always)]
    fn load<const N: usize>(&self, tensor: Numbered, offset: isize) -> [T::Computed; N] {
        let base = self.at(tensor, offset);
        if tensor.step == 1 {
            // SAFETY: the caller of `each_group` guarantees that the elements can be read. With a
            // stride of 1 the elements are contiguous.
            return unsafe { *base.cast::<[T; N]>() }.map(T::computed);
        }
        // SAFETY: the caller of `each_group` guarantees that the elements at the stride `step` can
        // be read.
        std::array::from_fn(|lane| unsafe {
            (*base.offset(lane.cast_signed() * tensor.step)).computed()
        })
    }

    /// Stores `N` elements, from position `first` on, of the run at `offset` in `tensor`, which is
    /// a result.
    #[inline(always)]
    fn store<const N: usize>(&self, tensor: Numbered, offset: isize, values: [T::Computed; N]) {
        let base = self.at(tensor, offset);
        let values = values.map(T::rounded);
        if tensor.step == 1 {
            // SAFETY: the caller of `each_group` guarantees that the elements can be written. With
            // a stride of 1 the elements are contiguous.
            unsafe { *base.cast::<[T; N]>() = values };
            return;
        }
        for (lane, value) in values.into_iter().enumerate() {
            // SAFETY: the caller of `each_group` guarantees that the elements at the stride `step`
            // can be written.
            unsafe { *base.offset(lane.cast_signed() * tensor.step) = value };
        }
    }

    /// Returns the address of the element at position `first` of the run at `offset` in `tensor`.
    #[inline(always)]
    fn at(&self, tensor: Numbered, offset: isize) -> *mut T {
        (tensor.base.cast::<T>()).wrapping_offset(offset + self.first * tensor.step)
    }

    #[inline(always)]
    fn grad_output<const N: usize>(&self) -> [T::Computed; N] {
        self.load(self.tensors.grad_output, self.group.grad_output)
    }

    /// Returns elements of data before the scatter (the existing values). `None`: the existing
    /// value does not take part.
    #[inline(always)]
    fn data<const N: usize>(&self) -> Option<[T::Computed; N]> {
        let data = self.tensors.data.filter(|_| self.shares.include_self)?;
        Some(self.load(data, self.group.data))
    }

    #[inline(always)]
    fn update<const N: usize>(&self, updates: PerTuple<'_>, position: usize) -> [T::Computed; N] {
        self.load(updates.run, updates.sources.offset(position))
    }

    #[inline(always)]
    fn store_grad_data<const N: usize>(&self, values: impl FnOnce() -> [T::Computed; N]) {
        if let Some(grad_data) = self.tensors.grad_data {
            self.store(grad_data, self.group.grad_data, values());
        }
    }

    #[inline(always)]
    fn store_grad_update<const N: usize>(
        &self,
        position: usize,
        values: impl FnOnce() -> [T::Computed; N],
    ) {
        if let Some(grad_updates) = self.tensors.grad_updates {
            let offset = grad_updates.sources.offset(position);
            self.store(grad_updates.run, offset, values());
        }
    }
}

/// A rule that computes the gradients of a reduction. Each implementing type is one rule.
pub(super) trait GradientRule<T: Graded> {
    /// Computes and stores the gradients of `N` elements of the existing value and of each update.
    fn compute<const N: usize>(lanes: &Lanes<'_, T>);
}

/// The rule for sums, differences, means and replacements. All values that get a share of the
/// gradient get the same share, times the factor for data or the factor for updates. [`Shares`]
/// determines which values get a share. The gradients of the other values are zero.
pub(super) struct Alike;

impl<T: Graded> GradientRule<T> for Alike {
    #[inline(always)]
    fn compute<const N: usize>(lanes: &Lanes<'_, T>) {
        let (group, shares) = (lanes.group, lanes.shares);
        let zero = [T::Computed::default(); N];
        let mut share = lanes.grad_output::<N>();
        if shares.divides {
            let count = (group.end - group.start) as u64 + u64::from(shares.include_self);
            share = share.map(|gradient| gradient.divided(count));
        }
        let of = |factor: f64| share.map(|share| share.multiplied(factor));
        let [of_data, of_updates] = [of(shares.factor), of(shares.factor_of_updates)];
        lanes.store_grad_data(|| if shares.include_self { of_data } else { zero });
        for position in group.start..group.end {
            let is_last = position + 1 == group.end;
            let gets = is_last || !shares.last_only;
            lanes.store_grad_update(position, || if gets { of_updates } else { zero });
        }
    }
}

/// The rule for products. The gradient of a value is the gradient of the output times the conjugate
/// of the product of all other values, times the factor.
pub(super) struct Product;

impl<T: Graded> GradientRule<T> for Product {
    #[inline(always)]
    fn compute<const N: usize>(lanes: &Lanes<'_, T>) {
        let (group, factor) = (lanes.group, lanes.shares.factor);
        let Some(updates) = lanes.tensors.updates else {
            return;
        };
        let gradient = lanes.grad_output::<N>();
        let mut products = Products {
            lanes,
            updates,
            gradient,
            prefix: lanes.data(),
        };
        let of_updates = products.compute(group.start..group.end, None);
        lanes.store_grad_data(|| match of_updates.filter(|_| lanes.shares.include_self) {
            Some(product) => weighted(gradient, product, factor),
            None => [T::Computed::default(); N],
        });
    }
}

/// Returns `gradient` times the complex conjugate of `others`, then times `factor`, for each lane.
#[inline(always)]
fn weighted<C: Computed, const N: usize>(gradient: [C; N], others: [C; N], factor: f64) -> [C; N] {
    std::array::from_fn(|lane| {
        let gradient = gradient[lane].mul(others[lane].conjugated());
        gradient.multiplied(factor)
    })
}

/// Returns the product of `left` and `right`. Without `left`, returns `right`.
#[inline(always)]
fn times<C: Computed, const N: usize>(left: Option<[C; N]>, right: [C; N]) -> [C; N] {
    let times = |left: [C; N]| std::array::from_fn(|lane| left[lane].mul(right[lane]));
    left.map_or(right, times)
}

/// State of the pass that computes the gradients of a product, from the first update of a group to
/// the last update.
struct Products<'g, T: Graded, const N: usize> {
    lanes: &'g Lanes<'g, T>,
    updates: PerTuple<'g>,
    gradient: [T::Computed; N],
    /// Product of the existing value, if it takes part, and of all updates before the current
    /// update, multiplied from the first to the last. The value is `None` if the existing value
    /// does not take part, and no update comes before the current update.
    prefix: Option<[T::Computed; N]>,
}

impl<T: Graded, const N: usize> Products<'_, T, N> {
    /// Stores the gradients of the updates at `positions`. `suffix` is the product of all updates
    /// after `positions`, multiplied from the last to the first. `None`: there is no later update.
    /// Returns the product of `suffix` and all updates at `positions`.
    ///
    /// The function divides the updates into at most [`LEVEL_PARTS`] parts. If the parts have
    /// several updates, the function calls itself for each part. Each level of recursion reads each
    /// update once more. So the function needs no list with a product for each update.
    #[inline(never)]
    fn compute(
        &mut self,
        positions: std::ops::Range<usize>,
        suffix: Option<[T::Computed; N]>,
    ) -> Option<[T::Computed; N]> {
        let mut suffixes = [None; LEVEL_PARTS];
        let each = positions.len().div_ceil(LEVEL_PARTS).max(1);
        let parts = positions.len().div_ceil(each);
        let part = |number: usize| {
            let start = positions.start + number * each;
            start..(start + each).min(positions.end)
        };
        let mut product = suffix;
        for number in (0..parts).rev() {
            suffixes[number] = product;
            for position in part(number).rev() {
                product = Some(times(product, self.lanes.update(self.updates, position)));
            }
        }
        for (number, &suffix) in suffixes[..parts].iter().enumerate() {
            if each > 1 {
                self.compute(part(number), suffix);
            } else {
                self.compute_one(positions.start + number, suffix);
            }
        }
        product
    }

    /// Stores the gradient of one update, and multiplies `prefix` by the update. `suffix` is the
    /// product of all later updates.
    #[inline(always)]
    fn compute_one(&mut self, position: usize, suffix: Option<[T::Computed; N]>) {
        let factor = self.lanes.shares.factor;
        let with_suffix = suffix.map(|suffix| times(self.prefix, suffix));
        let others = with_suffix.or(self.prefix);
        self.lanes.store_grad_update(position, || match others {
            Some(others) => weighted(self.gradient, others, factor),
            None => self.gradient.map(|gradient| gradient.multiplied(factor)),
        });
        let update = self.lanes.update(self.updates, position);
        self.prefix = Some(times(self.prefix, update));
    }
}

/// The rule for minima and maxima. All values that are equal to the result get equal shares of the
/// gradient. The gradients of the other values are zero.
pub(super) struct Ties;

impl<T: Graded> GradientRule<T> for Ties
where
    T::Computed: Compared,
{
    #[inline(always)]
    fn compute<const N: usize>(lanes: &Lanes<'_, T>) {
        let tuples = lanes.group.end - lanes.group.start;
        if tuples < COUNTED_IN_64_BITS {
            compute_ties::<T, i32, N>(lanes, |gradient, count| gradient.divided_by_i32(count));
        } else {
            compute_many_ties(lanes, N);
        }
    }
}

/// Stores the gradients of `count` elements, one element at a time. Ties (values that equal the
/// minimum or maximum) are counted in 64 bits. The function processes groups of at least
/// [`COUNTED_IN_64_BITS`] updates. These groups are too rare for a vector loop.
#[inline(never)]
fn compute_many_ties<T: Graded<Computed: Compared>>(lanes: &Lanes<'_, T>, count: usize) {
    for first in lanes.first..lanes.first + count.cast_signed() {
        let one = Lanes { first, ..*lanes };
        compute_ties::<T, i64, 1>(&one, |gradient, count| {
            gradient.divided(count.unsigned_abs())
        });
    }
}

/// Stores the gradients of `N` elements. Ties (values that equal the minimum or maximum) are
/// counted in the type `K`.
#[inline(always)]
fn compute_ties<T, K, const N: usize>(
    lanes: &Lanes<'_, T>,
    divided: impl Fn(T::Computed, K) -> T::Computed,
) where
    T: Graded<Computed: Compared>,
    K: Copy + From<bool> + std::ops::Add<Output = K>,
{
    let Some(updates) = lanes.tensors.updates else {
        return;
    };
    let (group, shares) = (lanes.group, lanes.shares);
    // For a minimum, all values are negated. The code then searches the maximum.
    let oriented = |value: T::Computed| if shares.smallest { -value } else { value };
    let all_oriented = |values: [T::Computed; N]| values.map(oriented);
    let update = |position| all_oriented(lanes.update(updates, position));
    let data = lanes.data().map(all_oriented);
    let (mut best, first) = match data {
        Some(data) => (data, group.start),
        None => (update(group.start), group.start + 1),
    };
    let mut counts = [K::from(true); N];
    for position in first..group.end {
        let update = update(position);
        for lane in 0..N {
            let beats = beats(update[lane], best[lane]);
            let count = counts[lane] + K::from(is_tied(update[lane], best[lane]));
            counts[lane] = if beats { K::from(true) } else { count };
            best[lane] = if beats { update[lane] } else { best[lane] };
        }
    }
    let gradient = lanes.grad_output::<N>();
    let share: [T::Computed; N] =
        std::array::from_fn(|lane| divided(gradient[lane], counts[lane]).multiplied(shares.factor));
    let part_of = |values: [T::Computed; N]| {
        std::array::from_fn(|lane| match is_tied(values[lane], best[lane]) {
            true => share[lane],
            false => T::Computed::default(),
        })
    };
    for position in group.start..group.end {
        lanes.store_grad_update(position, || part_of(update(position)));
    }
    lanes.store_grad_data(|| data.map_or([T::Computed::default(); N], part_of));
}

/// Checks whether `value` replaces `best`, the best value so far. A value replaces the best value
/// if `value` is larger than `best`, or if `value` is NaN and `best` is not NaN.
#[inline(always)]
#[expect(clippy::eq_op, reason = "only NaN is not equal to itself")]
fn beats<C: PartialOrd + Copy>(value: C, best: C) -> bool {
    (value > best) | ((value != value) & (best == best))
}

/// Checks whether two values are equal. 0 and -0 are equal. Two NaN are equal too.
#[inline(always)]
#[expect(clippy::eq_op, reason = "only NaN is not equal to itself")]
fn is_tied<C: PartialOrd + Copy>(value: C, best: C) -> bool {
    (value == best) | ((value != value) & (best != best))
}

/// The `GradientFn` of the type `T` and the rule `R`. `AVX2`: whether the loop is compiled for AVX2
/// and F16C.
///
/// # Safety
///
/// The caller guarantees what `GradientFn` requires, for elements of type `T`. If `AVX2` is true,
/// the machine has AVX2 and F16C.
pub(super) unsafe fn each_group<T: Graded, R: GradientRule<T>, const AVX2: bool>(
    tensors: &GradientTensors<'_>,
    groups: &[GradientGroup],
    shares: &Shares,
) {
    // SAFETY: the caller guarantees what `GradientFn` requires, and that the machine has AVX2 and
    // F16C if `AVX2` is true.
    unsafe {
        if AVX2 {
            with_avx2(
                #[inline(always)]
                || each_group_by::<T, R, AVX2_WIDTH>(tensors, groups, shares),
            );
        } else {
            each_group_by::<T, R, WIDTH>(tensors, groups, shares);
        }
    }
}

/// Computes the gradients of each group. A group has all updates of one destination, and its runs
/// have `tensors.len` elements. The function computes the gradients of `WIDTH` elements of the runs
/// at a time. If `tensors.len` is not a multiple of `WIDTH`, the function computes the gradients of
/// the last elements of each group one at a time.
///
/// # Safety
///
/// The caller guarantees what [`each_group`] requires.
#[inline(always)]
unsafe fn each_group_by<T: Graded, R: GradientRule<T>, const WIDTH: usize>(
    tensors: &GradientTensors<'_>,
    groups: &[GradientGroup],
    shares: &Shares,
) {
    let is_prefetched = are_prefetched(tensors.len.saturating_mul(size_of::<T>()));
    for (position, group) in groups.iter().enumerate() {
        if is_prefetched {
            prefetch_later(tensors, &groups[position..], size_of::<T>());
        }
        let lanes = |first: usize| Lanes {
            tensors,
            group,
            shares,
            first: first.cast_signed(),
            element: PhantomData,
        };
        let mut done = 0;
        while tensors.len - done >= WIDTH {
            R::compute::<WIDTH>(&lanes(done));
            done += WIDTH;
        }
        while done < tensors.len {
            R::compute::<1>(&lanes(done));
            done += 1;
        }
    }
}

/// Prefetches contiguous runs that later groups read or write. A group has all sources (updates) of
/// one destination. `groups` begins with the current group. For each prefetch distance `d`, the
/// function prefetches the runs of the group that is `d` groups later. The function also prefetches
/// the runs of the sources that are `d` positions after the sources of the current group. Elements
/// have `size` bytes.
#[inline(never)]
fn prefetch_later(tensors: &GradientTensors<'_>, groups: &[GradientGroup], size: usize) {
    let bytes = tensors.len.saturating_mul(size);
    let fetch = |tensor: Option<Numbered>, offset: isize, level| {
        if let Some(tensor) = tensor.filter(|tensor| tensor.step == 1) {
            let offset = offset.wrapping_mul(size.cast_signed());
            let run = tensor.base.wrapping_offset(offset).cast_const();
            prefetch_run(run, bytes, level);
        }
    };
    for (distance, level) in Distance::of(bytes).each() {
        if let Some(later) = groups.get(distance) {
            fetch(Some(tensors.grad_output), later.grad_output, level);
            fetch(tensors.data, later.data, level);
            fetch(tensors.grad_data, later.grad_data, level);
        }
        let sides = [tensors.updates, tensors.grad_updates];
        for updates in sides.into_iter().flatten() {
            for offset in (updates.sources).later(groups[0].start..groups[0].end, distance) {
                fetch(Some(updates.run), offset, level);
            }
        }
    }
}
