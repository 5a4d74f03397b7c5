//! Applies the tuples of a range of destinations. A filter selects these tuples from the plan's
//! list, block by block, and collects the selected tuples in a short list.
//!
//! The module knows the buffers of the short list of selected tuples: the destination numbers, and
//! the values or positions of these tuples. The module does not know how the filter selects
//! destination numbers.

use std::ops::Range;

use super::Transfer;
use super::walk::{Positions, TupleList, Width};
use crate::kernel::filter::{NoEntries, PositionEntries, ValueEntries, filter};
use crate::kernel::{Elements, InstructionSet};
use crate::plan::{Number, Span};

/// Number of tuples in a block that is filtered at once. The selected tuples are appended to a
/// list. The list is applied when it has at least this number of tuples. Only the windows of the
/// tuples in this list are prefetched.
const FILTERED_TUPLES: usize = 1024;

/// Maximum number of tuples in the list of selected tuples. A block of tuples is filtered only
/// while this list has fewer than `FILTERED_TUPLES` tuples. The block adds at most
/// `FILTERED_TUPLES` tuples to the list.
const ROOM: usize = 2 * FILTERED_TUPLES;

/// What a list of collected tuples stores for each tuple, in addition to the tuple's destination
/// number.
#[derive(Clone, Copy, Debug)]
enum Beside {
    /// Nothing. Windows are single elements. All tuples share the value at the pointer.
    OneValue(Elements, *const u8),
    /// The value of the tuple. Windows are single elements. The values of all tuples of the plan
    /// are contiguous. The pointer is the address of the first tuple's value.
    Values(Elements, *const u8),
    /// The position of the tuple in the plan's list. This variant is for all other windows.
    Positions,
}

/// Buffers of one list of collected tuples: the tuples that the filter has selected.
struct List<N> {
    numbers: [N; ROOM],
    /// Contiguous values of at most 8 bytes each, or contiguous positions of 4 bytes each.
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

    /// Appends the tuples of a block whose destination number is in `range`.
    ///
    /// # Safety
    ///
    /// For [`Beside::Values`], each tuple of the plan has a value of `size` bytes. The values are
    /// initialised, and nothing writes them during the call.
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
                // SAFETY: the plan's list has the tuples of the block. The Safety section of `add`
                // requires that each tuple of the plan has an initialised value of `size` bytes,
                // and that nothing writes the values during the call.
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
    /// Applies the tuples of the plan whose destination number is in `range`.
    ///
    /// The function is not inlined, because it stores the list of collected tuples on the stack.
    #[inline(never)]
    pub(super) fn apply_filtered<N: Width>(
        &self,
        numbers: &[N],
        range: &Range<u64>,
        window: &Span,
        repetitions: Range<usize>,
        streams: bool,
    ) {
        // `ByDestination` makes the tiles that are filtered. `ByDestination` refuses lists with
        // more than `u32::MAX` tuples.
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
                // SAFETY: `beside` has the address of the values of all tuples. `list` has each
                // selected destination number with the value or position of its tuple. The tile has
                // the destinations in `range`, and `window` is cut to the columns of the tile. If
                // windows are streamed, the caller of `apply` has established that no two tuples
                // have the same destination.
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

    /// Returns what a list of collected tuples stores for each tuple, in addition to the tuple's
    /// destination number. The argument `read` is the offset of the window of tuple 0 in the
    /// updates.
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

    /// Applies the collected tuples of `list` in one repetition.
    ///
    /// # Safety
    ///
    /// `list` has the destination number and the position (or value) of each collected tuple, as
    /// `beside` states. The argument `window` is the form of the tuples' windows. The argument
    /// `origin` has the offsets of the repetition. During the call, nothing else writes the windows
    /// that are read, and nothing else reads or writes the windows that are written. If `streams`
    /// is set, no two of these tuples write the same window.
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
                // SAFETY: `list.numbers` and `list.positions` belong to the same tuples. The Safety
                // section of `apply_collected` requires that nothing else uses the windows that are
                // written or writes the windows that are read. The section also requires that the
                // tuples write different windows if `streams` is set.
                return unsafe { self.apply_listed(list, window, origin, false, streams) };
            }
        };
        let written = window.dst + origin.0;
        // SAFETY: `source` has one value per number, or one value for all numbers. `list.beside` is
        // aligned for all types of at most 8 bytes. The Safety section of `apply_collected`
        // requires that nothing else uses the windows of these tuples in the output.
        unsafe { self.apply_elements(elements, numbers, written, source, self.is_near()) }
    }
}
