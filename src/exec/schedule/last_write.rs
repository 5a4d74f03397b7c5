//! The schedule by last write. Without a reduction, only the last tuple of each destination counts.
//! In place, only the windows of last writes are moved. Out of place, each slice of the output is
//! written once, from its last write or from `data`.

use std::ops::Range;

use super::super::sink::Sink;
use super::super::tile::{Part, Tile};
use super::super::transfer::Transfer;
use super::super::workload::Order;
use super::{Divided, Division, Preparation, Reason, Scheduler, Step, Stop, Workload};
use crate::plan::{CopyGeometry, Sorted, Span, signed};

pub(super) struct LastWrite;

impl Scheduler for LastWrite {
    /// In place, parts of the sorted last writes share no destination. Out of place, ranges of
    /// slices share none.
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

    /// The memory is the list of last writes, which the plan stores, and the scratch memory of the
    /// sort.
    fn preparation(&self, work: &Workload<'_>, _: Division) -> Preparation {
        match work.order {
            Order::Increasing => Preparation::NOTHING,
            _ => Preparation::new(Step::FindLastWrites, work.tuples.saturating_mul(16)),
        }
    }

    #[expect(unsafe_code, reason = "every piece is a separate tile")]
    fn run(&self, divided: &Divided<'_, '_>) -> Result<(), Stop> {
        let (transfer, work, division) = (divided.transfer, divided.work, divided.division);
        let last_writes = transfer.plan().last_writes()?;
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

/// Returns the division with more parts. Ranges of slices are cut as well, because the last writes
/// of a range are found by a binary search, without a pass over all tuples.
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
    /// Moves windows in place. `positions` are positions in the list of last writes. They belong
    /// to the caller's tile.
    fn overwrite(&self, repetition: usize, positions: &Range<usize>) {
        let transfer = self.transfer;
        let destinations = transfer.plan().destinations();
        let origin = transfer.geometry().repetition(repetition);
        let (copy, window) = (transfer.kernels().copy, &transfer.geometry().window);
        #[expect(unsafe_code, reason = "writes to the tile of the task")]
        // SAFETY: the loop pushes windows of the tile only, each destination once.
        let mut sink = unsafe { transfer.window_sink(copy, window, self.streams) };
        for position in positions.clone() {
            let (number, tuple) = self.last_writes.get(destinations, position);
            self.push(&mut sink, transfer.window_at(number, tuple, origin));
        }
        sink.finish();
    }

    /// Writes a range of slices out of place, in order and each once. The slices belong to the
    /// caller's tile.
    fn rewrite(&self, copy: &CopyGeometry, repetition: usize, slices: &Range<u64>) {
        let (transfer, last_writes) = (self.transfer, self.last_writes);
        let window = &transfer.geometry().window;
        let destinations = transfer.plan().destinations();
        let origin = transfer.geometry().repetition(repetition);
        #[expect(unsafe_code, reason = "writes to the tile of the task")]
        // SAFETY: the loop pushes slices of the tile only, each once. The first sink gets the
        // windows of last writes. The second sink gets the slices without a last write; a
        // `CopyGeometry` places them in data as well.
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

    /// Pushes a window, joined to the previous window where both are neighbours.
    fn push(&self, sink: &mut Sink<'_>, (dst, src): (isize, isize)) {
        if self.transfer.geometry().joins {
            sink.push_joined(dst, src);
        } else {
            sink.push(dst, src);
        }
    }
}

/// Pushes a range of slices of `data`. Contiguous slices are pushed as one run.
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
