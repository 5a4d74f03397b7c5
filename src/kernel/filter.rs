//! Keeps the numbers of a list that are in a range, in order. With each kept number, a filter can
//! also keep the position of the number in the list, or a value.
//!
//! The module knows numbers, bytes of values and instruction sets. The module does not know what
//! the numbers address.

#![allow(unsafe_code, reason = "calls functions that enable an instruction set")]
#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "only x86-64 has vectors of its own")
)]

use std::ops::Range;

use super::InstructionSet;
#[cfg(target_arch = "x86_64")]
use super::dispatch::{with_avx2, with_avx512};
use super::lanes::Vectors;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};

/// Writes the values whose bits are set in `mask` to the first elements of `to`, in order.
#[inline(always)]
fn keep_lanes<V: Vectors, const W: usize>(values: &[[u8; W]], mask: u32, to: &mut [[u8; W]]) {
    if W == 8 {
        let (values, _) = values.as_flattened().as_chunks();
        let (to, _) = to.as_flattened_mut().as_chunks_mut();
        V::keep_wide(values, mask, to);
    } else {
        V::store(V::compress(V::load(values), mask), to);
    }
}

/// A range of numbers. A number is inside if the unsigned, wrapping difference `number - start` is
/// at most `span`.
#[derive(Clone, Copy)]
pub(crate) struct Inside<N> {
    start: N,
    span: N,
}

/// An integer type of destination numbers. The filter keeps the numbers as integers of type `K`.
pub(crate) trait Filtered<K: Copy = Self>: Copy {
    /// Returns the numbers of `range` that `Self` and `K` can represent. `None`: there is no such
    /// number.
    fn inside(range: &Range<u64>) -> Option<Inside<Self>>;
    fn is_inside(self, inside: Inside<Self>) -> bool;
    /// Converts a number that is inside the range to `K`. For all other numbers, the result is
    /// unspecified.
    fn kept(self) -> K;
    /// Returns the mask of the numbers that are inside the range, and writes these numbers to the
    /// first elements of `to`.
    fn keep_inside<V: Vectors>(numbers: &[Self], inside: Inside<Self>, to: &mut [K]) -> u32;
}

macro_rules! impl_filtered {
    ($($type:ty => $kept:ty, $inside:ident, $keep:ident;)*) => {$(
        impl Filtered<$kept> for $type {
            fn inside(range: &Range<u64>) -> Option<Inside<Self>> {
                let start = <$kept>::try_from(range.start).ok()?;
                let last = range.end.checked_sub(1)?;
                let last = <$kept>::try_from(last).unwrap_or(<$kept>::MAX);
                let span = last.checked_sub(start)?;
                Some(Inside { start: start.into(), span: span.into() })
            }

            #[inline(always)]
            fn is_inside(self, Inside { start, span }: Inside<Self>) -> bool {
                self.wrapping_sub(start) <= span
            }

            #[allow(clippy::cast_possible_truncation, reason = "`inside` has checked the range")]
            #[inline(always)]
            fn kept(self) -> $kept {
                self as $kept
            }

            #[inline(always)]
            fn keep_inside<V: Vectors>(
                numbers: &[Self],
                inside: Inside<Self>,
                to: &mut [$kept],
            ) -> u32 {
                let mask = V::$inside(numbers, inside.start, inside.span);
                $keep::<V>(numbers, mask, to);
                mask
            }
        }
    )*};
}

impl_filtered! {
    u32 => u32, inside_u32, keep_u32;
    u64 => u64, inside_u64, keep_u64;
    u64 => u32, inside_u64, keep_narrow;
}

#[inline(always)]
fn keep_u32<V: Vectors>(numbers: &[u32], mask: u32, to: &mut [u32]) {
    let to = bytemuck::cast_slice_mut::<_, [u8; 4]>(to);
    keep_lanes::<V, 4>(bytemuck::cast_slice(numbers), mask, to);
}

#[inline(always)]
fn keep_u64<V: Vectors>(numbers: &[u64], mask: u32, to: &mut [u64]) {
    let to = bytemuck::cast_slice_mut::<_, [u8; 8]>(to);
    keep_lanes::<V, 8>(bytemuck::cast_slice(numbers), mask, to);
}

#[inline(always)]
fn keep_narrow<V: Vectors>(numbers: &[u64], mask: u32, to: &mut [u32]) {
    let lanes = V::compress(V::narrow(numbers), mask);
    V::store::<4>(lanes, bytemuck::cast_slice_mut(to));
}

/// The entries of a filter: one entry for each number of the list. An entry is nothing, the
/// position of the number, or a value. The filter keeps the entries of the kept numbers.
pub(crate) trait Entries {
    /// Checks whether there are entries for `tuples` numbers, and room to keep all these entries.
    fn has_room(&self, tuples: usize) -> bool;
    /// Copies the entry of the number at position `from` of the list to position `to` of the kept
    /// entries.
    fn keep_one(&mut self, from: usize, to: usize);
    /// Copies entries of one vector of numbers to the kept entries. Bit `i` of `mask` belongs to
    /// the number at position `from + i` of the list. The entries whose bits are set become the
    /// kept entries from position `to` on.
    fn keep<V: Vectors>(&mut self, from: usize, mask: u32, to: usize);
}

/// Entries that are nothing: the filter keeps only numbers.
pub(crate) struct NoEntries;

impl Entries for NoEntries {
    fn has_room(&self, _: usize) -> bool {
        true
    }

    #[inline(always)]
    fn keep_one(&mut self, _: usize, _: usize) {}

    #[inline(always)]
    fn keep<V: Vectors>(&mut self, _: usize, _: u32, _: usize) {}
}

/// Entries that are the positions of the numbers in the list. The first number that is filtered has
/// the position `first`.
pub(crate) struct PositionEntries<'a> {
    pub(crate) first: u32,
    pub(crate) kept: &'a mut [u32],
}

impl PositionEntries<'_> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the caller's positions have 32 bits"
    )]
    #[inline(always)]
    fn at(&self, from: usize) -> u32 {
        self.first.wrapping_add(from as u32)
    }
}

impl Entries for PositionEntries<'_> {
    fn has_room(&self, tuples: usize) -> bool {
        self.kept.len() >= tuples
    }

    #[inline(always)]
    fn keep_one(&mut self, from: usize, to: usize) {
        self.kept[to] = self.at(from);
    }

    #[inline(always)]
    fn keep<V: Vectors>(&mut self, from: usize, mask: u32, to: usize) {
        let positions = V::compress(V::positions(self.at(from)), mask);
        let kept = &mut self.kept[to..to + V::LANES];
        V::store::<4>(positions, bytemuck::cast_slice_mut(kept));
    }
}

/// Entries that are values of `W` bytes: `values` has one value for each number of the list. The
/// filter copies the values of the kept numbers to `kept`. `W` is 1, 2, 4 or 8.
pub(crate) struct ValueEntries<'a, const W: usize> {
    pub(crate) values: &'a [[u8; W]],
    pub(crate) kept: &'a mut [[u8; W]],
}

impl<const W: usize> Entries for ValueEntries<'_, W> {
    fn has_room(&self, tuples: usize) -> bool {
        const {
            assert!(
                matches!(W, 1 | 2 | 4 | 8),
                "vectors have no lanes of this size"
            )
        };
        self.values.len() >= tuples && self.kept.len() >= tuples
    }

    #[inline(always)]
    fn keep_one(&mut self, from: usize, to: usize) {
        self.kept[to] = self.values[from];
    }

    #[inline(always)]
    fn keep<V: Vectors>(&mut self, from: usize, mask: u32, to: usize) {
        let values = &self.values[from..from + V::LANES];
        keep_lanes::<V, W>(values, mask, &mut self.kept[to..to + V::LANES]);
    }
}

/// Checks whether filters of `set` are fast enough that each of several workers can filter a whole
/// list. The result is true only for AVX-512, on machines with AVX-512: only filters with AVX-512
/// were measured.
pub(crate) fn is_fast(set: InstructionSet) -> bool {
    set.min(InstructionSet::best()) >= InstructionSet::Avx512
}

/// Writes the numbers that are in `range` to the first elements of `kept`, in order. Keeps the
/// entries of these numbers in `entries` too. Returns how many numbers were kept. The elements
/// behind the kept numbers and entries have unspecified values.
///
/// A step reads one vector of numbers and writes one whole vector behind the numbers that were kept
/// before. At most as many numbers were kept before as were read before. The written vector
/// therefore ends at most at position `numbers.len()`, and `kept` needs no more room.
///
/// # Panics
///
/// Panics if `kept` is shorter than `numbers`, or if `entries` has too few entries, or too little
/// room, for all numbers.
#[inline(never)]
pub(crate) fn filter<N: Filtered<K>, K: Copy, B: Entries>(
    set: InstructionSet,
    numbers: &[N],
    range: &Range<u64>,
    kept: &mut [K],
    entries: B,
) -> usize {
    assert!(
        kept.len() >= numbers.len() && entries.has_room(numbers.len()),
        "one entry for each number"
    );
    let Some(inside) = N::inside(range) else {
        return 0;
    };
    match set.min(InstructionSet::best()) {
        // SAFETY: the selected set is at most `best`, so the machine has the selected set.
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512 => unsafe {
            with_avx512(
                #[inline(always)]
                || by_vectors::<avx512::Sixteen, N, K, B>(numbers, inside, kept, entries),
            )
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx2 => unsafe {
            with_avx2(
                #[inline(always)]
                || by_vectors::<avx2::Eight, N, K, B>(numbers, inside, kept, entries),
            )
        },
        _ => one_by_one(numbers, inside, kept, entries, (0, 0)),
    }
}

/// [`filter`] with vectors. The last numbers, fewer than a vector, are filtered one by one.
#[inline(always)]
fn by_vectors<V: Vectors, N: Filtered<K>, K: Copy, B: Entries>(
    numbers: &[N],
    inside: Inside<N>,
    kept: &mut [K],
    mut entries: B,
) -> usize {
    let (mut from, mut to) = (0, 0);
    for block in numbers.chunks_exact(V::LANES) {
        let mask = N::keep_inside::<V>(block, inside, &mut kept[to..to + V::LANES]);
        entries.keep::<V>(from, mask, to);
        from += V::LANES;
        to += V::count(mask);
    }
    one_by_one(numbers, inside, kept, entries, (from, to))
}

/// [`filter`] of the numbers from position `first` on, one by one. `to` is the number of numbers
/// that were kept before. The loop has no branch on a number: such a branch would be mispredicted,
/// because about half of the numbers may be kept, at random.
#[inline(always)]
fn one_by_one<N: Filtered<K>, K: Copy, B: Entries>(
    numbers: &[N],
    inside: Inside<N>,
    kept: &mut [K],
    mut entries: B,
    (first, mut to): (usize, usize),
) -> usize {
    for (from, &number) in numbers.iter().enumerate().skip(first) {
        kept[to] = number.kept();
        entries.keep_one(from, to);
        to += usize::from(number.is_inside(inside));
    }
    to
}
