//! The schedule by last write, for calls without a reduction. The last write of a destination is
//! the last tuple with this destination. Only last writes affect the result. A call in place moves
//! only the windows of last writes. A call out of place writes each slice of the output once: from
//! the slice's last write, or from `data` if the slice has no tuple.

use std::ops::Range;

use super::super::sink::Sink;
use super::super::tile::{Part, Tile};
use super::super::transfer::Transfer;
use super::super::workload::Order;
use super::{Divided, Division, Preparation, Reason, Scheduler, Step, Stop, Workload};
use crate::plan::{CopyGeometry, Sorted, Span, signed};

pub(super) struct LastWrite;

impl Scheduler for LastWrite {
    /// If there are exactly `parts` repetitions, or at least `4 * parts`, the function cuts only
    /// the repetitions. Otherwise, it cuts the list of last writes for a call in place, or the
    /// output slices into disjoint ranges for a call out of place. Parts of the list share no
    /// destination, because the list has each destination at most once.
    fn divide(&self, work: &Workload<'_>, parts: usize) -> Result<Division, Reason> {
        if !work.replaces {
            return Err(Reason("every update counts, not only the last"));
        }
        let repetitions = if work.repetitions >= 4 * parts || work.repetitions == parts {
            parts
        } else {
            1
        };
        let parts = parts / repetitions;
        if work.in_place {
            Ok(Division::Sorted {
                repetitions,
                parts,
                columns: 1,
            })
        } else if work.has_slices {
            Ok(Division::Destinations { repetitions, parts })
        } else {
            Err(Reason("the slices of the output are not evenly strided"))
        }
    }

    /// The step [`Step::FindLastWrites`] allocates the list of last writes and the scratch memory
    /// of the sort. The plan keeps the list of last writes.
    fn preparation(&self, work: &Workload<'_>, _: Division) -> Preparation {
        match work.order {
            Order::Increasing => Preparation::NOTHING,
            _ => Preparation::new(Step::FindLastWrites, work.tuples.saturating_mul(16)),
        }
    }

    #[expect(unsafe_code, reason = "every piece is a separate tile")]
    fn run(&self, divided: &Divided<'_, '_>) -> Result<(), Stop> {
        let (transfer, work, division) = (divided.transfer, divided.work, divided.division);
        let last_writes = transfer.plan().last_writes().map_err(Stop::unprepared)?;
        let written = match transfer.data_geometry() {
            Some(_) => work.copied_bytes,
            None => last_writes
                .len(work.tuples)
                .saturating_mul(work.window_bytes()),
        };
        let moves = Moves {
            transfer,
            last_writes,
            streams: work.streams(written),
        };
        let whole = transfer.whole(Some(last_writes));
        let pieces = in_pieces(division, work.pieces(division));
        let move_tile = |tile: &Tile| {
            for repetition in tile.repetitions() {
                match (tile.part(), transfer.data_geometry()) {
                    (Part::Sorted(positions), None) => moves.overwrite(repetition, positions),
                    (Part::Destinations(slices), Some(copy)) => {
                        moves.rewrite(copy, repetition, slices);
                    }
                    _ => debug_assert!(false, "a division of another schedule"),
                }
            }
        };
        // SAFETY: `LastWrite::divide` has made the division of this transfer. `last_writes` is the
        // sorted list that the division cuts. Last writes have distinct destinations.
        Ok(unsafe { divided.each_tile(pieces, &whole, move_tile) }?)
    }
}

/// Returns `division` with `pieces` times its number of parts. [`Division::finer`] does not cut
/// ranges of destinations into more ranges, but this function does. More ranges cost little here: a
/// binary search finds the last writes of a range, without a pass over all tuples.
fn in_pieces(mut division: Division, pieces: usize) -> Division {
    if let Division::Destinations { parts, .. } = &mut division {
        *parts *= pieces;
        return division;
    }
    division.finer(pieces)
}

/// Data that all tasks of one call read and no task changes.
struct Moves<'a> {
    transfer: &'a Transfer<'a>,
    last_writes: &'a Sorted,
    streams: bool,
}

impl Moves<'_> {
    /// Moves the windows of some last writes, for a call in place. `positions` is the range of
    /// these last writes in the sorted list. Their windows belong to the caller's tile.
    fn overwrite(&self, repetition: usize, positions: &Range<usize>) {
        let transfer = self.transfer;
        let destinations = transfer.plan().destinations();
        let origin = transfer.geometry().repetition(repetition);
        let (copy, window) = (transfer.kernels().copy, &transfer.geometry().window);
        #[expect(unsafe_code, reason = "writes to the tile of the task")]
        // SAFETY: the loop below pushes only windows of the caller's tile to the sink. The list has
        // each destination at most once, so no two pushed windows overlap in the output.
        let mut sink = unsafe { transfer.window_sink(copy, window, self.streams) };
        for position in positions.clone() {
            let (number, tuple) = self.last_writes.get(destinations, position);
            self.push(&mut sink, transfer.window_at(number, tuple, origin));
        }
        sink.finish();
    }

    /// Writes each output slice of the range `slices` once, for a call out of place. The slices
    /// belong to the caller's tile.
    fn rewrite(&self, copy: &CopyGeometry, repetition: usize, slices: &Range<u64>) {
        let (transfer, last_writes) = (self.transfer, self.last_writes);
        let window = &transfer.geometry().window;
        let destinations = transfer.plan().destinations();
        let origin = transfer.geometry().repetition(repetition);
        #[expect(unsafe_code, reason = "writes to the tile of the task")]
        // SAFETY: the loop below pushes only slices of the caller's tile, and pushes each slice
        // once, to one of the two sinks. The sink `updates` gets the slices whose destinations have
        // tuples, each with the window of its last write. The sink `data` gets all other slices of
        // the range. `copy` gives the positions of these other slices in the output and in `data`.
        let (mut updates, data) = unsafe {
            (
                transfer.window_sink(transfer.kernels().copy, window, self.streams),
                transfer.access().data_sink(&copy.window, self.streams),
            )
        };
        let Some(mut data) = data else {
            debug_assert!(false, "a copy without data");
            return;
        };
        let mut next = slices.start;
        let first = last_writes.first_from(destinations, slices.start);
        for position in first..last_writes.len(transfer.plan().tuples()) {
            let (number, tuple) = last_writes.get(destinations, position);
            if number >= slices.end {
                break;
            }
            push_slices(&mut data, copy, repetition, next..number);
            self.push(&mut updates, transfer.window_at(number, tuple, origin));
            next = number + 1;
        }
        push_slices(&mut data, copy, repetition, next..slices.end);
        data.finish();
        updates.finish();
    }

    /// Pushes a window of the updates to `sink`. If `Geometry::joins` is set, the window may extend
    /// the job of the previous window ([`Sink::push_joined`]).
    fn push(&self, sink: &mut Sink<'_>, (dst, src): (isize, isize)) {
        if self.transfer.geometry().joins {
            sink.push_joined(dst, src);
        } else {
            sink.push(dst, src);
        }
    }
}

/// Pushes a range of slices to the sink `data`, which copies them to the output. If neighbouring
/// slices are contiguous in `data` and in the output, the whole range is pushed as one run.
fn push_slices(data: &mut Sink<'_>, copy: &CopyGeometry, repetition: usize, slices: Range<u64>) {
    let Some(dim) = copy.slices.filter(|_| !slices.is_empty()) else {
        return;
    };
    let (dst, src) = Span::at(&copy.outer.dims, repetition);
    let at = |slice: u64| {
        let slice = signed(slice);
        (
            copy.outer.dst + dst + slice * dim.dst,
            copy.outer.src + src + slice * dim.src,
        )
    };
    if copy.slices_join() {
        let (dst, src) = at(slices.start);
        let count = usize::try_from(slices.end - slices.start).unwrap_or(usize::MAX);
        data.push_run(dst, src, count * copy.window.run().size);
    } else {
        for slice in slices {
            let (dst, src) = at(slice);
            data.push(dst, src);
        }
    }
}
