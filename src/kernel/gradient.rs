//! Gradients, group by group: what the value that is there and each update get of the
//! gradient of their result.
//!
//! Knows values, lists of sources and pointers. Knows nothing of where groups come from.

#![allow(unsafe_code, reason = "goes to addresses")]

use std::marker::PhantomData;
use std::ops::Neg;

use super::dispatch::with_avx2;
use super::fold::{ComputedIn, Divided};
use super::half::{Bf16, F16};
use super::multiply::Multiplied;
use super::prefetch::{Distance, are_prefetched, prefetch_run};
use super::scalar::Complex;
use super::{GradientGroup, GradientTensors, Numbered, PerTuple, Shares};

/// Elements of a run that are worked on together: by plain instructions, and by AVX2.
const WIDTH: usize = 4;
const AVX2_WIDTH: usize = 16;

/// Groups of fewer updates count their ties in 32 bits. A vector then holds as many counts
/// as values.
const COUNTED: usize = if cfg!(test) { 20 } else { i32::MAX as usize };

/// Updates of a group whose products of later ones are kept at once.
const LEVEL_PARTS: usize = 32;

/// An element type that has gradients, and the type that they are computed in.
pub(super) trait Graded: ComputedIn<Self::Computed> {
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
    #[inline(always)]
    fn conjugated(self) -> Self {
        self
    }
}

/// One whose values have an order.
pub(super) trait Compared: Computed + PartialOrd + Neg<Output = Self> {
    /// Divided by a count that 32 bits hold, in vectors.
    fn among(self, count: i32) -> Self;
}

macro_rules! floats {
    ($($float:ty),*) => {$(
        impl Computed for $float {}
        impl Compared for $float {
            #[allow(clippy::cast_precision_loss, clippy::cast_lossless, reason = "rounded once")]
            #[inline(always)]
            fn among(self, count: i32) -> Self {
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

/// `N` neighbours of the runs of a group, from `first` on. Made by [`each_group`] alone,
/// whose caller vouches for every element of them.
pub(super) struct Lanes<'g, T> {
    tensors: &'g GradientTensors<'g>,
    group: &'g GradientGroup,
    shares: &'g Shares,
    first: isize,
    element: PhantomData<T>,
}

impl<T: Graded> Lanes<'_, T> {
    #[inline(always)]
    fn load<const N: usize>(&self, tensor: Numbered, offset: isize) -> [T::Computed; N] {
        let base = self.at(tensor, offset);
        if tensor.step == 1 {
            // SAFETY: so many neighbours, side by side.
            return unsafe { *base.cast::<[T; N]>() }.map(T::computed);
        }
        // SAFETY: as above, `step` apart.
        std::array::from_fn(|lane| unsafe {
            (*base.offset(lane.cast_signed() * tensor.step)).computed()
        })
    }

    #[inline(always)]
    fn store<const N: usize>(&self, tensor: Numbered, offset: isize, values: [T::Computed; N]) {
        let base = self.at(tensor, offset);
        let values = values.map(T::rounded);
        if tensor.step == 1 {
            // SAFETY: so many neighbours, side by side, of a tensor that is written.
            unsafe { *base.cast::<[T; N]>() = values };
            return;
        }
        for (lane, value) in values.into_iter().enumerate() {
            // SAFETY: as above, `step` apart.
            unsafe { *base.offset(lane.cast_signed() * tensor.step) = value };
        }
    }

    #[inline(always)]
    fn at(&self, tensor: Numbered, offset: isize) -> *mut T {
        (tensor.base.cast::<T>()).wrapping_offset(offset + self.first * tensor.step)
    }

    #[inline(always)]
    fn grad_output<const N: usize>(&self) -> [T::Computed; N] {
        self.load(self.tensors.grad_output, self.group.grad_output)
    }

    /// The value that was there, where it takes part.
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
    fn give_data<const N: usize>(&self, values: impl FnOnce() -> [T::Computed; N]) {
        if let Some(grad_data) = self.tensors.grad_data {
            self.store(grad_data, self.group.grad_data, values());
        }
    }

    #[inline(always)]
    fn give_update<const N: usize>(
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

/// Who gets what of the gradient of a result, as a type.
pub(super) trait GradientRule<T: Graded> {
    /// For `N` neighbours.
    fn give<const N: usize>(lanes: &Lanes<'_, T>);
}

/// Everyone the same: sums and means, and what is replaced.
pub(super) struct Alike;

impl<T: Graded> GradientRule<T> for Alike {
    #[inline(always)]
    fn give<const N: usize>(lanes: &Lanes<'_, T>) {
        let (group, shares) = (lanes.group, lanes.shares);
        let zero = [T::Computed::default(); N];
        let mut share = lanes.grad_output::<N>();
        if shares.divides {
            let count = (group.end - group.start) as u64 + u64::from(shares.include_self);
            share = share.map(|gradient| gradient.divided(count));
        }
        let of = |factor: f64| share.map(|share| share.multiplied(factor));
        let [of_data, of_updates] = [of(shares.factor), of(shares.factor_of_updates)];
        lanes.give_data(|| if shares.include_self { of_data } else { zero });
        for position in group.start..group.end {
            let is_last = position + 1 == group.end;
            let gets = is_last || !shares.last_only;
            lanes.give_update(position, || if gets { of_updates } else { zero });
        }
    }
}

/// The product of all others.
pub(super) struct Product;

impl<T: Graded> GradientRule<T> for Product {
    #[inline(always)]
    fn give<const N: usize>(lanes: &Lanes<'_, T>) {
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
        let of_updates = products.give(group.start..group.end, None);
        lanes.give_data(|| match of_updates.filter(|_| lanes.shares.include_self) {
            Some(product) => weighted(gradient, product, factor),
            None => [T::Computed::default(); N],
        });
    }
}

/// Gradients times other values, and the factor at last.
#[inline(always)]
fn weighted<C: Computed, const N: usize>(gradient: [C; N], others: [C; N], factor: f64) -> [C; N] {
    std::array::from_fn(|lane| {
        let gradient = gradient[lane].mul(others[lane].conjugated());
        gradient.multiplied(factor)
    })
}

/// The product of both, or the right one alone.
#[inline(always)]
fn after<C: Computed, const N: usize>(left: Option<[C; N]>, right: [C; N]) -> [C; N] {
    let times = |left: [C; N]| std::array::from_fn(|lane| left[lane].mul(right[lane]));
    left.map_or(right, times)
}

/// The updates of a group on their way from the first to the last.
struct Products<'g, T: Graded, const N: usize> {
    lanes: &'g Lanes<'g, T>,
    updates: PerTuple<'g>,
    gradient: [T::Computed; N],
    /// What came before, from the left to the right; `None` where nothing did.
    prefix: Option<[T::Computed; N]>,
}

impl<T: Graded, const N: usize> Products<'_, T, N> {
    /// Gives the updates at these positions theirs, where `suffix` is the product, from
    /// the right to the left, of all that come later. Returns that of these and later
    /// ones.
    ///
    /// More updates than a block holds are divided into [`LEVEL_PARTS`] parts. Each level
    /// reads each update once more, and no list is kept.
    #[inline(never)]
    fn give(
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
                product = Some(after(product, self.lanes.update(self.updates, position)));
            }
        }
        for (number, &suffix) in suffixes[..parts].iter().enumerate() {
            if each > 1 {
                self.give(part(number), suffix);
            } else {
                self.give_one(positions.start + number, suffix);
            }
        }
        product
    }

    #[inline(always)]
    fn give_one(&mut self, position: usize, suffix: Option<[T::Computed; N]>) {
        let factor = self.lanes.shares.factor;
        let with_suffix = suffix.map(|suffix| after(self.prefix, suffix));
        let others = with_suffix.or(self.prefix);
        self.lanes.give_update(position, || match others {
            Some(others) => weighted(self.gradient, others, factor),
            None => self.gradient.map(|gradient| gradient.multiplied(factor)),
        });
        let update = self.lanes.update(self.updates, position);
        self.prefix = Some(after(self.prefix, update));
    }
}

/// All who are equal to the smallest or the largest one, in equal parts.
pub(super) struct Ties;

impl<T: Graded> GradientRule<T> for Ties
where
    T::Computed: Compared,
{
    #[inline(always)]
    fn give<const N: usize>(lanes: &Lanes<'_, T>) {
        let tuples = lanes.group.end - lanes.group.start;
        if tuples < COUNTED {
            give_ties::<T, i32, N>(lanes, |gradient, count| gradient.among(count));
        } else {
            give_many_ties(lanes, N);
        }
    }
}

/// With counts of 64 bits, for so many neighbours one by one: of so long groups no vector
/// is worth its code.
#[inline(never)]
fn give_many_ties<T: Graded<Computed: Compared>>(lanes: &Lanes<'_, T>, count: usize) {
    for first in lanes.first..lanes.first + count.cast_signed() {
        let one = Lanes { first, ..*lanes };
        give_ties::<T, i64, 1>(&one, |gradient, count| {
            gradient.divided(count.unsigned_abs())
        });
    }
}

/// With counts of the type `K`.
#[inline(always)]
fn give_ties<T, K, const N: usize>(
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
    // The largest of the negative values is the smallest.
    let turn = |value: T::Computed| if shares.smallest { -value } else { value };
    let turned = |values: [T::Computed; N]| values.map(turn);
    let update = |position| turned(lanes.update(updates, position));
    let data = lanes.data().map(turned);
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
        lanes.give_update(position, || part_of(update(position)));
    }
    lanes.give_data(|| data.map_or([T::Computed::default(); N], part_of));
}

/// Whether a value comes before the best so far: NaN does before any number.
#[inline(always)]
#[expect(clippy::eq_op, reason = "NaN alone is not itself")]
fn beats<C: PartialOrd + Copy>(value: C, best: C) -> bool {
    (value > best) | ((value != value) & (best == best))
}

/// Whether two values are as good: zeros of either sign, and any two NaN.
#[inline(always)]
#[expect(clippy::eq_op, reason = "NaN alone is not itself")]
fn is_tied<C: PartialOrd + Copy>(value: C, best: C) -> bool {
    (value == best) | ((value != value) & (best != best))
}

/// The `GradientFn` of a type and a rule, compiled for AVX2 and F16C if `AVX2`.
///
/// # Safety
///
/// As for `GradientFn`, for elements of type `T`. With `AVX2`, the machine has both.
pub(super) unsafe fn each_group<T: Graded, R: GradientRule<T>, const AVX2: bool>(
    tensors: &GradientTensors<'_>,
    groups: &[GradientGroup],
    shares: &Shares,
) {
    // SAFETY: handed on as it is.
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

/// [`each_group`], so many elements at a time.
///
/// # Safety
///
/// As for [`each_group`].
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
            R::give::<WIDTH>(&lanes(done));
            done += WIDTH;
        }
        while done < tensors.len {
            R::give::<1>(&lanes(done));
            done += 1;
        }
    }
}

/// Prefetches what later groups read, and where they write: as many sources as the first
/// of them has, of elements of `size` bytes.
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
