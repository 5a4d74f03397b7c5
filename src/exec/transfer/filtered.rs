//! Applies the tuples of a range of destinations. The tuples are first collected from the whole
//! list, in blocks.
//!
//! The module knows the buffers of a list, and what a list needs beside its numbers. It does not
//! know how numbers are filtered.

use std::ops::Range;

use super::Transfer;
use super::walk::{Positions, TupleList, Width};
use crate::kernel::filter::{NoEntries, PositionEntries, ValueEntries, filter};
use crate::kernel::{Elements, InstructionSet};
use crate::plan::{Number, Span};

/// Number of tuples that are filtered together. The tuples that pass form a list, and windows are
/// prefetched within a list.
const FILTERED_TUPLES: usize = 1024;

/// Maximum number of tuples of a list: less than one block waits while one more block is filtered.
const ROOM: usize = 2 * FILTERED_TUPLES;

/// What a list of collected tuples has beside its numbers.
#[derive(Clone, Copy, Debug)]
enum Beside {
    /// Nothing, for single elements that all have the value at this address.
    OneValue(Elements, *const u8),
    /// Values, for single elements whose values are contiguous from this address on.
    Values(Elements, *const u8),
    /// Positions, for all other windows.
    Positions,
}

/// Buffers of one list.
struct List<N> {
    numbers: [N; ROOM],
    /// Values of at most 8 bytes, or positions of 4 bytes.
    beside: [u64; ROOM],
    len: usize,
}

impl<N: Width> List<N> {
    fn new() -> Self {
        Self {
            numbers: [N::zeroed(); ROOM],
            beside: [0; ROOM],
            len: 0,
        }
    }

    /// Adds the tuples of a block whose number is in `range`.
    ///
    /// # Safety
    ///
    /// For [`Beside::Values`], the values of all tuples have `size` bytes. They are initialised,
    /// and nothing writes them during the call.
    #[expect(unsafe_code, reason = "reads values at their address")]
    #[inline(always)]
    unsafe fn add(
        &mut self,
        set: InstructionSet,
        (all, block): (&[N], Range<usize>),
        range: &Range<u64>,
        (beside, size): (Beside, usize),
    ) {
        let (first, numbers) = (block.start, &all[block]);
        let kept = &mut self.numbers[self.len..];
        macro_rules! keep_values {
            ($source:expr, $size:literal) => {{
                let source = $source.cast::<[u8; $size]>().wrapping_add(first);
                // SAFETY: the list has these tuples, and the caller guarantees their values.
                let values = unsafe { std::slice::from_raw_parts(source, numbers.len()) };
                let words = bytemuck::cast_slice_mut::<_, [u8; $size]>(&mut self.beside);
                let words = &mut words[self.len..];
                filter(
                    set,
                    numbers,
                    range,
                    kept,
                    ValueEntries {
                        values,
                        kept: words,
                    },
                )
            }};
        }
        self.len += match (beside, size) {
            (Beside::Values(_, source), 1) => keep_values!(source, 1),
            (Beside::Values(_, source), 2) => keep_values!(source, 2),
            (Beside::Values(_, source), 4) => keep_values!(source, 4),
            (Beside::Values(_, source), 8) => keep_values!(source, 8),
            (Beside::Values(..), _) => unreachable!("`Transfer::beside` excludes other sizes"),
            (Beside::OneValue(..), _) => filter(set, numbers, range, kept, NoEntries),
            (Beside::Positions, _) => {
                let positions = bytemuck::cast_slice_mut(&mut self.beside);
                let kept_positions = PositionEntries {
                    first: Number::new(first as u64),
                    kept: &mut positions[self.len..],
                };
                filter(set, numbers, range, kept, kept_positions)
            }
        };
    }
}

impl Transfer<'_> {
    /// Applies the tuples of the plan whose number is in `range`.
    ///
    /// The function is not inlined because the list is stored on its stack.
    #[inline(never)]
    pub(super) fn apply_filtered<N: Width>(
        &self,
        numbers: &[N],
        range: &Range<u64>,
        window: &Span,
        repetitions: Range<usize>,
        streams: bool,
    ) {
        // `ByDestination` makes these tiles and refuses lists with more tuples.
        debug_assert!(
            u32::try_from(numbers.len()).is_ok(),
            "positions have more than 32 bits"
        );
        let (set, size) = (self.access.context.set, self.kernels().size);
        let mut list = List::<N>::new();
        for repetition in repetitions {
            let origin = self.geometry.repetition(repetition);
            let beside = self.beside(window.src + origin.1);
            for first in (0..numbers.len()).step_by(FILTERED_TUPLES) {
                let end = numbers.len().min(first + FILTERED_TUPLES);
                let block = (numbers, first..end);
                #[expect(unsafe_code, reason = "only one task has the tile")]
                // SAFETY: `beside` returns the address of the values of all tuples. Each number was
                // stored with its value or position. The tile has the destinations, and `window` is
                // cut to its columns. If windows are streamed, the caller of `apply` has
                // established that no two have one destination.
                unsafe {
                    list.add(set, block, range, (beside, size));
                    if list.len >= FILTERED_TUPLES || end == numbers.len() {
                        self.apply_collected(&list, beside, window, origin, streams);
                        list.len = 0;
                    }
                }
            }
        }
    }

    /// Returns what lists have beside their numbers. The source of tuple 0 has the offset `read`.
    fn beside(&self, read: isize) -> Beside {
        match self.single_elements() {
            Some(elements) if self.is_one_value() => {
                Beside::OneValue(elements, self.access.read_at(read))
            }
            Some(elements) if matches!(self.kernels().size, 1 | 2 | 4 | 8) => {
                Beside::Values(elements, self.access.read_at(read))
            }
            _ => Beside::Positions,
        }
    }

    /// # Safety
    ///
    /// The caller guarantees what [`Self::apply_listed`] requires, for the tuples of `list`.
    #[expect(unsafe_code, reason = "passes single elements directly to a kernel")]
    unsafe fn apply_collected<N: Width>(
        &self,
        list: &List<N>,
        beside: Beside,
        window: &Span,
        origin: (isize, isize),
        streams: bool,
    ) {
        let numbers = &list.numbers[..list.len];
        let (elements, source) = match beside {
            Beside::OneValue(elements, value) => (elements, value),
            Beside::Values(elements, _) => (elements, list.beside.as_ptr().cast()),
            Beside::Positions => {
                let positions: &[u32] = bytemuck::cast_slice(&list.beside);
                let list = TupleList {
                    numbers,
                    positions: Positions::Each(&positions[..list.len]),
                };
                // SAFETY: the caller guarantees what this call requires.
                return unsafe { self.apply_listed(list, window, origin, false, streams) };
            }
        };
        let written = window.dst + origin.0;
        // SAFETY: `list.beside` has one value per number, and is aligned for all types of at most
        // 8 bytes. The caller guarantees the rest.
        unsafe { self.apply_elements(elements, numbers, written, source, self.is_near()) }
    }
}
