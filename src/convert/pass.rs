//! Runs prepared writes: divides their windows among workers and calls the kernels.
//!
//! Each destination is written at most once, so any division of the windows gives the same bits.
//! This module knows windows, addresses and workers. It does not know formats.

#![expect(unsafe_code, reason = "passes addresses of checked tensors to kernels")]

use std::ops::Range;

use super::operands::Mover;
use super::prepared::{Lines, Placed, Prepared};
use crate::error::ScatterError;
use crate::exec::part;
use crate::execution::Execution;
use crate::kernel::{ConvertRun, Job, LineSteps, Steps};
use crate::memory::with_room;

/// Number of bytes that a call reads and writes from which the work is divided among workers. Waking
/// a worker takes 10 to 12 us on two cores of a Zen 5. One core writes 1 MiB in 45 us from bf16 to
/// f8e4m3fn, in 60 us to i8 with a scale, and in 14 us without a conversion.
const DIVIDED_BYTES: usize = 1 << 20;

/// Number of pieces for each worker. A worker that begins late then delays the call less.
const PIECES: usize = 4;

/// Columns are cut at multiples of this number of elements: one cache line of 8-bit elements.
const COLUMN: usize = 64;

// SAFETY: an address alone gives no access to memory. Only kernels use the address, and each task
// writes elements that no other task accesses (see `Prepared::run_piece`).
unsafe impl Sync for Placed {}

/// How the windows of a write are cut: into parts of the list of windows, and each window into parts
/// of its elements.
#[derive(Clone, Copy, Debug)]
struct Cut {
    windows: usize,
    columns: usize,
}

impl Cut {
    /// Cuts a write into about `pieces` pieces.
    fn new(write: &Prepared<'_>, pieces: usize) -> Self {
        let windows = write.windows();
        if windows >= pieces {
            return Self {
                windows: pieces.max(1),
                columns: 1,
            };
        }
        let columns = pieces.div_ceil(windows.max(1));
        Self {
            windows: windows.max(1),
            columns: columns.clamp(1, write.window.div_ceil(COLUMN).max(1)),
        }
    }

    fn pieces(self) -> usize {
        self.windows * self.columns
    }
}

/// Runs all writes. No error is possible after the first write, except the failure of the pool.
pub(super) fn run(writes: &[Prepared<'_>], execution: &Execution<'_>) -> Result<(), ScatterError> {
    let bytes = writes
        .iter()
        .fold(0_usize, |sum, write| sum.saturating_add(write.bytes()));
    if bytes < DIVIDED_BYTES {
        run_whole(writes);
        return Ok(());
    }
    let call = execution.begin();
    let workers = call.workers();
    let parts = workers.parts();
    if parts == 1 {
        run_whole(writes);
        return Ok(());
    }
    let each = bytes.div_ceil(parts * PIECES).max(1);
    // For each write, the number of its first piece and its cut.
    let mut cuts = with_room(writes.len())?;
    let mut pieces = 0;
    for write in writes {
        let cut = Cut::new(write, write.bytes().div_ceil(each));
        cuts.push((pieces, cut));
        pieces += cut.pieces();
    }
    workers.run_pieces(parts.min(pieces), pieces, &|piece| {
        let at = cuts.partition_point(|&(first, _)| first <= piece) - 1;
        let (first, cut) = cuts[at];
        // SAFETY: `run_pieces` passes each number once, and the pieces of a write have different
        // numbers. The data of two writes shares no memory (`operands::refuse_shared`).
        unsafe { writes[at].run_piece(cut, piece - first) };
    })
}

fn run_whole(writes: &[Prepared<'_>]) {
    let cut = Cut {
        windows: 1,
        columns: 1,
    };
    // SAFETY: no other task is running, and each write has one piece.
    writes
        .iter()
        .for_each(|write| unsafe { write.run_piece(cut, 0) });
}

impl Prepared<'_> {
    /// Writes piece `piece` of the pieces of `cut`.
    ///
    /// # Safety
    ///
    /// During the call, no other thread runs this piece, or a piece of another cut of this write.
    /// Different pieces of one cut may run at the same time: they are different windows, or
    /// different elements of one window. Two windows are those of different destinations or of
    /// different repetitions, because `last_writes` has each destination once. They share no
    /// memory, because views refuse data that overlaps itself.
    unsafe fn run_piece(&self, cut: Cut, piece: usize) {
        let windows = part(self.windows(), cut.windows, piece / cut.columns);
        let lines = self.window.div_ceil(COLUMN);
        let lines = part(lines, cut.columns, piece % cut.columns);
        let columns = lines.start * COLUMN..(lines.end * COLUMN).min(self.window);
        let listed = self.last_writes.len(self.plan.tuples()).max(1);
        for window in windows {
            let (repetition, position) = (window / listed, window % listed);
            let (number, tuple) = self.last_writes.get(self.plan.destinations(), position);
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            let at = [number, self.plan.tuple_at(tuple)];
            // SAFETY: the caller guarantees exclusive access to the elements at `columns` of this
            // window. The plan has checked the destination number.
            unsafe { self.run_window(repetition, at, columns.clone()) };
        }
    }

    /// Writes the elements at `columns` of one window. `number` is its destination number, and
    /// `tuple` is its position among the updates.
    ///
    /// # Safety
    ///
    /// `number` is a destination number of the plan and `tuple` a position of a tuple. During the
    /// call, nothing else accesses the written elements.
    unsafe fn run_window(
        &self,
        repetition: usize,
        [number, tuple]: [usize; 2],
        columns: Range<usize>,
    ) {
        let listed = |placed: &Placed| placed.window(repetition, tuple);
        let windows = Windows {
            data: self.data.window(repetition, number),
            updates: listed(&self.updates),
            scale: self.scale.first().map(listed),
            zero: self.zero_point.first().map(listed),
        };
        let mut column = columns.start;
        while column < columns.end {
            let (len, lines) = self.lines.after(column, columns.end);
            // SAFETY: the elements are elements of the window, for which the caller guarantees
            // exclusive access.
            unsafe { self.run_lines(&windows, column, len, lines) };
            column += len * lines;
        }
    }

    /// Writes `lines` lines of `len` elements, which begin at `column`.
    ///
    /// # Safety
    ///
    /// The elements are elements of the window. [`Lines::after`] has returned `len` and `lines`.
    /// During the call, nothing else accesses the written elements.
    unsafe fn run_lines(&self, windows: &Windows, column: usize, len: usize, lines: usize) {
        let (data, updates) = (&self.data, &self.updates);
        let dst = data.element(windows.data, column);
        let src = updates.element(windows.updates, column);
        let convert = match self.mover {
            Mover::Copy(copy) => {
                let steps = Steps {
                    dst: data.step,
                    src: updates.step,
                };
                for line in 0..lines.cast_signed() {
                    let job = Job {
                        dst: line * data.line_step,
                        src: line * updates.line_step,
                        len,
                    };
                    // SAFETY: all elements are inside the tensors, whose shapes `Prepared::new` has
                    // checked. The data shares no byte with another tensor (`operands::check`). The
                    // caller guarantees exclusive access to the written elements.
                    unsafe { copy(dst, src, &[job], steps) };
                }
                return;
            }
            Mover::Convert(convert, _) => convert,
        };
        let input = |placed: &[Placed], window: Option<isize>| match (placed.first(), window) {
            (Some(placed), Some(window)) => {
                let steps = [placed.step, placed.line_step, placed.pair];
                (placed.element(window, column), steps)
            }
            _ => (std::ptr::null_mut(), [0; 3]),
        };
        let (scale, [scale_step, scale_line, scale_pair]) = input(&self.scale, windows.scale);
        let (zero, [zero_step, zero_line, zero_pair]) = input(&self.zero_point, windows.zero);
        let run = ConvertRun {
            len,
            lines,
            line_steps: LineSteps {
                dst: data.line_step,
                src: updates.line_step,
                scale: scale_line,
                zero: zero_line,
            },
            dst_step: data.step,
            src_step: updates.step,
            src_pair: updates.pair,
            scale: scale.cast(),
            scale_step,
            scale_pair,
            zero: zero.cast(),
            zero_step,
            zero_pair,
        };
        // SAFETY: as above. The scale and the zero point have the shape of the updates, so they have
        // an element for each update. `Conversion::mover` has chosen a function for this machine.
        unsafe { convert(dst, src, &run) };
    }
}

/// Offsets of the windows of all tensors of a write, in elements.
struct Windows {
    data: isize,
    updates: isize,
    scale: Option<isize>,
    zero: Option<isize>,
}

impl Lines {
    /// Returns the length and the number of the lines that begin at `column`, inside one block. They
    /// end at `end` or before it. A part of a line is one line.
    fn after(self, column: usize, end: usize) -> (usize, usize) {
        let Self { len, block } = self;
        let (line, within) = match column {
            0 => (0, 0),
            _ => (column / len, column % len),
        };
        if within != 0 || end - column < len {
            return ((len - within).min(end - column), 1);
        }
        (len, (block - line % block).min((end - column) / len))
    }
}

impl Placed {
    /// Returns the offset of a window in a repetition, in elements.
    fn window(&self, repetition: usize, window: usize) -> isize {
        self.place.of_repetition(repetition) + self.place.of_window(window)
    }

    /// Returns the address of the element at `column` of the window at offset `window`.
    fn element(&self, window: isize, column: usize) -> *mut u8 {
        let within = match column {
            0 => 0,
            _ => self.place.in_window(column),
        };
        self.base
            .wrapping_offset((window + within) * self.size.cast_signed())
    }
}
