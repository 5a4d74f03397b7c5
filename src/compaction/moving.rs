//! Moves the rows of the tensors of a call.
//!
//! This module knows ordered moves, the memory of tensors and workers. It does not know how moves
//! were ordered.

#![expect(unsafe_code, reason = "copies between rows of one tensor")]

use std::mem::MaybeUninit;
use std::ops::Range;

use super::division::{Cuts, piece_bytes, written_bytes};
use super::order::{Group, Move, Order};
use super::tensors::{Offsets, Rowed};
use crate::error::ScatterError;
use crate::exec::Buffers;
use crate::execution::Execution;
use crate::kernel::{Job, Kernels, RunsFn, Steps};
use crate::memory::with_room;
use crate::plan::{Dim, Span};

/// Bytes that a call writes, below which it runs on the calling thread. On a hot cache, rows of
/// these bytes take 15 microseconds, and a worker begins 5 to 30 microseconds late.
const SMALL_BYTES: usize = 512 << 10;

/// Maximum bytes of a run that the moves of a group move before the next piece of the run. The
/// source of one move is the destination of another, and is still in the first-level cache then.
const PIECE_BYTES: usize = 4096;

/// Maximum number of jobs in one kernel call.
const JOBS: usize = 64;

/// Number of moves from which on elements that are not contiguous are moved one by one. All moves
/// then move their first element, then all move their second element. The rows are often
/// neighbours, so the elements of one column are closer in memory than the elements of one row.
const MANY_MOVES: usize = 16;

/// The memory and the rows of one tensor.
struct Tensor {
    buffers: Buffers,
    kernels: &'static Kernels,
    /// Copies runs of single moves.
    copy: RunsFn,
    offsets: Offsets,
    row: Span,
    cuts: Cuts,
    /// Number of pieces of the tensors before this one.
    first_piece: usize,
}

/// Runs the moves of `order` on each tensor of `rowed`.
///
/// # Safety
///
/// - All row numbers of `order` are rows of each tensor.
/// - The elements of each tensor are initialised.
/// - No two tensors share a byte.
pub(super) unsafe fn run(
    order: &Order,
    rowed: Vec<Rowed<'_>>,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    let bytes = (rowed.iter()).fold(0, |sum: usize, tensor| {
        sum.saturating_add(written_bytes(order, tensor))
    });
    if bytes < SMALL_BYTES {
        for tensor in rowed {
            let tensor = Tensor::new(tensor, Cuts::NONE, 0, false);
            // SAFETY: one piece has all moves of a tensor, and no other task runs.
            unsafe { tensor.run(order, 0) };
        }
        return Ok(());
    }
    let call = execution.begin();
    let workers = call.workers();
    let parts = workers.parts();
    let streams = bytes as u64 >= workers.machine().variants.stream_bytes;
    let mut tensors: Vec<Tensor> = with_room(rowed.len())?;
    let mut pieces = 0;
    for tensor in rowed {
        let cuts = match parts {
            1 => Cuts::NONE,
            _ => Cuts::new(order, &tensor, piece_bytes(bytes, parts)),
        };
        tensors.push(Tensor::new(tensor, cuts, pieces, streams));
        pieces += cuts.pieces();
    }
    workers.run_pieces(parts.min(pieces), pieces, &|piece| {
        let at = tensors.partition_point(|tensor| tensor.first_piece <= piece);
        let tensor = &tensors[at - 1];
        // SAFETY: `run_pieces` runs no piece twice. Pieces of different tensors share no byte,
        // because the caller guarantees that the tensors do not. Two pieces of one tensor have
        // different columns or different ranges of moves, as `Cuts` states. The caller guarantees
        // that all rows exist and that their elements are initialised.
        unsafe { tensor.run(order, piece - tensor.first_piece) };
    })
}

impl Tensor {
    fn new(tensor: Rowed<'_>, cuts: Cuts, first_piece: usize, streams: bool) -> Self {
        let Rowed {
            target,
            kernels,
            place,
        } = tensor;
        let output = target.as_mut_ptr();
        let copy = match kernels.stream {
            Some(stream) if streams && place.row.run().dst == 1 => stream.prefetching,
            _ => kernels.copy,
        };
        Self {
            buffers: Buffers {
                output,
                source: output.cast_const().cast(),
                data: None,
            },
            kernels,
            copy,
            offsets: place.offsets,
            row: place.row,
            cuts,
            first_piece,
        }
    }

    /// Runs one piece of the work.
    ///
    /// # Safety
    ///
    /// - All row numbers of `order` are rows of the tensor, whose elements are initialised.
    /// - No other thread accesses the elements that the piece writes, or writes the elements that
    ///   the piece reads.
    unsafe fn run(&self, order: &Order, piece: usize) {
        let part = self.cuts.columns(&self.row, piece);
        let row = part.as_ref().unwrap_or(&self.row);
        let moves = self.cuts.moves(order, piece);
        let run = row.run();
        let is_split = run.dst != 1 && moves.len() >= MANY_MOVES;
        let (loops, run) = match is_split {
            true => (&*row.dims, Dim::ONE),
            false => (row.loops(), run),
        };
        let singles = moves.start..moves.end.min(order.singles).max(moves.start);
        // SAFETY: the loops and the run visit the elements of a row, or of a part of its columns.
        // The caller guarantees that the rows of all moves are rows of the tensor, and that no
        // other thread interferes.
        unsafe {
            self.move_singles(&order.moves[singles], row.dst, loops, run);
            self.move_groups(order, moves, row.dst, loops, run);
        }
    }

    /// Moves rows. No row is both a source and a destination. `first` is the offset of the first
    /// element of a row.
    ///
    /// # Safety
    ///
    /// - For each iteration of `loops`, `run` are elements of each row, with the offset `first`.
    /// - No destination of a move is the source or the destination of another.
    /// - No other thread accesses the destinations, or writes the sources.
    unsafe fn move_singles(&self, moves: &[Move], first: isize, loops: &[Dim], run: Dim) {
        let mut jobs = [Job {
            dst: 0,
            src: 0,
            len: 0,
        }; JOBS];
        let (steps, mut count) = (steps_of(run), 0);
        for base in bases(first, loops) {
            for &Move { from, to } in moves {
                jobs[count] = Job {
                    dst: base + self.offsets.of(to),
                    src: base + self.offsets.of(from),
                    len: run.size,
                };
                count += 1;
                if count == JOBS {
                    // SAFETY: each job is a run of elements of a source and a destination. The
                    // caller guarantees that no destination is a source, and that no other thread
                    // interferes.
                    unsafe { self.copy(self.copy, &jobs, steps) };
                    count = 0;
                }
            }
        }
        // SAFETY: as for the full lists of jobs.
        unsafe { self.copy(self.copy, &jobs[..count], steps) };
    }

    /// Moves the rows of the groups in the range `moves`, piece by piece of a run.
    ///
    /// # Safety
    ///
    /// - `moves` has whole groups.
    /// - For each iteration of `loops`, `run` are elements of each row, with the offset `first`.
    /// - No other thread accesses the destinations, or writes the sources.
    unsafe fn move_groups(
        &self,
        order: &Order,
        moves: Range<usize>,
        first: isize,
        loops: &[Dim],
        run: Dim,
    ) {
        let from = order
            .groups
            .partition_point(|group| group.start < moves.start);
        let to = order.groups.partition_point(|group| group.end <= moves.end);
        let groups = order.groups.get(from..to).unwrap_or(&[]);
        if groups.is_empty() {
            return;
        }
        let len = PIECE_BYTES / self.kernels.size;
        for base in bases(first, loops) {
            for group in groups {
                for start in (0..run.size).step_by(len) {
                    let piece = Dim {
                        size: len.min(run.size - start),
                        ..run
                    };
                    let base = base + start.cast_signed() * run.dst;
                    // SAFETY: the piece is a part of the run. The caller guarantees the rest.
                    unsafe { self.move_group(order, *group, base, piece) };
                }
            }
        }
    }

    /// Moves one piece of the rows of a group. `base` is the offset of the piece in a row. The
    /// piece has at most [`PIECE_BYTES`].
    ///
    /// # Safety
    ///
    /// - `piece` are elements of each row, with the offset `base`.
    /// - No other thread accesses the destinations, or writes the sources.
    unsafe fn move_group(&self, order: &Order, group: Group, base: isize, piece: Dim) {
        let steps = steps_of(piece);
        let mut moves = &order.moves[group.start..group.end];
        let mut saved = [MaybeUninit::<u8>::uninit(); PIECE_BYTES];
        let mut last = None;
        if group.is_cycle
            && let Some((cut, before)) = moves.split_last()
        {
            (last, moves) = (Some(cut.to), before);
            let job = [self.job(0, base + self.offsets.of(cut.from), piece)];
            let gathering = Steps { dst: 1, ..steps };
            // SAFETY: the piece is initialised elements of the source row of the last move, and
            // fits in `saved`.
            unsafe {
                (self.kernels.copy)(
                    saved.as_mut_ptr().cast(),
                    self.buffers.source,
                    &job,
                    gathering,
                );
            }
        }
        for &Move { from, to } in moves {
            let (dst, src) = (self.offsets.of(to), self.offsets.of(from));
            // SAFETY: a move is never from a row to itself, and views refuse tensors that overlap
            // themselves. So the two runs share no memory. The caller guarantees the rest.
            unsafe {
                self.copy(
                    self.kernels.copy,
                    &[self.job(base + dst, base + src, piece)],
                    steps,
                )
            };
        }
        if let Some(to) = last {
            let job = [self.job(base + self.offsets.of(to), 0, piece)];
            let scattering = Steps { src: 1, ..steps };
            // SAFETY: `saved` has the piece of the source row. The caller guarantees that the
            // destination row has the piece, and that no other thread accesses it.
            unsafe {
                let output = self.buffers.output.cast();
                (self.kernels.copy)(output, saved.as_ptr().cast(), &job, scattering);
            }
        }
    }

    fn job(&self, dst: isize, src: isize, run: Dim) -> Job {
        Job {
            dst,
            src,
            len: run.size,
        }
    }

    /// Calls `copy` for jobs between rows of the tensor.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`RunsFn`] requires.
    #[inline(always)]
    unsafe fn copy(&self, copy: RunsFn, jobs: &[Job], steps: Steps) {
        // SAFETY: the caller guarantees what `RunsFn` requires.
        unsafe { copy(self.buffers.output.cast(), self.buffers.source, jobs, steps) };
    }
}

/// Returns the offsets of the runs of a row.
fn bases(first: isize, loops: &[Dim]) -> impl Iterator<Item = isize> {
    let runs = loops.iter().map(|dim| dim.size).product();
    (0..runs).map(move |number| first + Span::at(loops, number).0)
}

/// Returns the strides of a run in both rows of a move.
fn steps_of(run: Dim) -> Steps {
    Steps {
        dst: run.dst,
        src: run.src,
    }
}
