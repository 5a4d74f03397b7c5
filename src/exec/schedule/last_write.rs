//! The schedule by last write. Without a reduction, only the last tuple of each destination counts:
//! the last write of the destination. A call in place moves only the windows of last writes. A call
//! out of place writes each slice of the output once, from its last write or from `data`.

use std::ops::Range;

use super::super::sink::Sink;
use super::super::tile::{Part, Tile};
use super::super::transfer::Transfer;
use super::super::workload::Order;
use super::{Divided, Division, Preparation, Reason, Scheduler, Step, Stop, Workload};
use crate::plan::{CopyGeometry, Sorted, Span, signed};

pub(super) struct LastWrite;

impl Scheduler for LastWrite {
    /// A call in place is divided into parts of the list of last writes, which is sorted by
    /// destination. Two parts share no destination, because each destination has one last write. A
    /// call out of place is divided into disjoint ranges of output slices.
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

    /// The step allocates the list of last writes, which the plan stores, and the scratch memory of
    /// the sort.
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
        // SAFETY: `LastWrite::divide` has made the division of this transfer, and `last_writes` is
        // the sorted list that it cuts. Last writes have different destinations.
        Ok(unsafe { divided.each_tile(pieces, &whole, move_tile) }?)
    }
}

/// Returns the division with `pieces` times the number of parts. In contrast to
/// [`Division::finer`], the function also cuts ranges of slices: a binary search finds the last
/// writes of a range, without a pass over all tuples.
fn in_pieces(mut division: Division, pieces: usize) -> Division {
    if let Division::Destinations { parts, .. } = &mut division {
        *parts *= pieces;
        return division;
    }
    division.finer(pieces)
}

/// The data that all tasks of a call read.
struct Moves<'a> {
    transfer: &'a Transfer<'a>,
    last_writes: &'a Sorted,
    streams: bool,
}

impl Moves<'_> {
    /// Moves the windows of the last writes at `positions` of the sorted list, in place. The
    /// windows belong to the caller's tile.
    fn overwrite(&self, repetition: usize, positions: &Range<usize>) {
        let transfer = self.transfer;
        let destinations = transfer.plan().destinations();
        let origin = transfer.geometry().repetition(repetition);
        let (copy, window) = (transfer.kernels().copy, &transfer.geometry().window);
        #[expect(unsafe_code, reason = "writes to the tile of the task")]
        // SAFETY: the loop below pushes only windows of the caller's tile to the sink. The list
        // has each destination once, so no two pushed windows overlap.
        let mut sink = unsafe { transfer.window_sink(copy, window, self.streams) };
        for position in positions.clone() {
            let (number, tuple) = self.last_writes.get(destinations, position);
            self.push(&mut sink, transfer.window_at(number, tuple, origin));
        }
        sink.finish();
    }

    /// Writes each slice of a range of the output once, in order, for a call out of place. The
    /// slices belong to the caller's tile.
    fn rewrite(&self, copy: &CopyGeometry, repetition: usize, slices: &Range<u64>) {
        let (transfer, last_writes) = (self.transfer, self.last_writes);
        let window = &transfer.geometry().window;
        let destinations = transfer.plan().destinations();
        let origin = transfer.geometry().repetition(repetition);
        #[expect(unsafe_code, reason = "writes to the tile of the task")]
        // SAFETY: the loop below pushes only slices of the caller's tile, and pushes each slice
        // once, to one of the two sinks. The sink `updates` gets a window for each destination
        // with tuples: the window of the destination's last tuple, which is its last write. The
        // sink `data` gets all other slices. `copy` gives the positions of these other slices in
        // the output and in data.
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

    /// Pushes a window to `sink`. If windows of the plan can be joined, the sink joins the window
    /// to the previous window when the two are contiguous in the source and in the destination.
    fn push(&self, sink: &mut Sink<'_>, (dst, src): (isize, isize)) {
        if self.transfer.geometry().joins {
            sink.push_joined(dst, src);
        } else {
            sink.push(dst, src);
        }
    }
}

/// Pushes a range of slices to the sink that copies `data`. Contiguous slices are pushed as one
/// run.
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
