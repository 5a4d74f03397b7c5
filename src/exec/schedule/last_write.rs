//! Without a reduction only the last tuple of each destination counts. In place
//! only those are moved; out of place one pass over the output writes each slice
//! once, from its last write or from `data`.

use std::ops::Range;

use super::super::division::Division;
use super::super::sink::Sink;
use super::super::tasks::Workers;
use super::super::tile::{Part, Tile};
use super::super::transfer::Transfer;
use super::super::workload::Order;
use super::super::workload::Workload;
use super::scheduler::{Preparation, Reason, Scheduler, Step, Stop};
use crate::plan::{CopyGeometry, Sorted, Span, signed};

pub(super) struct LastWrite;

impl Scheduler for LastWrite {
    /// Last writes have different destinations, and so have ranges of slices.
    fn divide(&self, work: &Workload<'_>, parts: usize) -> Result<Division, Reason> {
        if !work.replaces {
            return Err(Reason("every update counts, not only the last"));
        }
        let repetitions = if work.repetitions >= 4 * parts || work.repetitions == parts {
            parts
        } else {
            1
        };
        let each = parts / repetitions;
        if work.in_place {
            Ok(Division::Sorted {
                repetitions,
                parts: each,
                columns: 1,
            })
        } else if work.has_slices {
            Ok(Division::Destinations {
                repetitions,
                ranges: each,
            })
        } else {
            Err(Reason("the output is not made of evenly spaced slices"))
        }
    }

    /// The sorted list, which the plan keeps, and the sort's own.
    fn preparation(&self, work: &Workload<'_>, _: Division) -> Preparation {
        match work.order {
            Order::Increasing => Preparation::NOTHING,
            _ => Preparation {
                step: Step::FindLastWrites,
                bytes: work.tuples.saturating_mul(16),
            },
        }
    }

    fn run(
        &self,
        transfer: &Transfer<'_>,
        work: &Workload<'_>,
        division: Division,
        workers: &Workers<'_>,
    ) -> Result<(), Stop> {
        let last_writes = transfer.plan().last_writes().map_err(Stop::unprepared)?;
        let written = match transfer.data_geometry() {
            Some(_) => work.copied_bytes,
            None => last_writes
                .len(work.tuples)
                .saturating_mul(work.window_bytes()),
        };
        let streams = work.streams(written);
        let whole = transfer.whole(Some(last_writes));
        let pieces = in_pieces(division, work.pieces(division));
        workers.run_pieces(division.tasks(), pieces.tasks(), &|index| {
            #[expect(unsafe_code, reason = "every piece is a tile of its own")]
            // SAFETY: `divide` has made the division of this transfer, in fewer
            // parts; last writes have different destinations; `run_pieces` hands
            // out every number once.
            let tile = unsafe { Tile::new(pieces, index, &whole) };
            for repetition in tile.repetitions() {
                match (tile.part(), transfer.data_geometry()) {
                    (Part::Sorted(positions), None) => {
                        overwrite(transfer, last_writes, repetition, positions, streams);
                    }
                    (Part::Destinations(slices), Some(copy)) => {
                        rewrite(transfer, copy, last_writes, repetition, slices, streams);
                    }
                    _ => debug_assert!(false, "a division of another schedule"),
                }
            }
        })?;
        Ok(())
    }
}

/// Ranges of slices, too, are finer at no price: their last writes are found at once.
fn in_pieces(division: Division, pieces: usize) -> Division {
    match division {
        Division::Destinations {
            repetitions,
            ranges,
        } => Division::Destinations {
            repetitions,
            ranges: ranges * pieces,
        },
        other => other.finer(pieces),
    }
}

/// In place: moves the windows at these positions of the last writes, which a
/// tile of the caller's has.
fn overwrite(
    transfer: &Transfer<'_>,
    last_writes: &Sorted,
    repetition: usize,
    positions: &Range<usize>,
    streams: bool,
) {
    let destinations = transfer.plan().destinations();
    let origin = transfer.geometry().repetition(repetition);
    let window = &transfer.geometry().window;
    let kernel = transfer.window_kernel(transfer.kernels().copy, window, streams);
    #[expect(unsafe_code, reason = "a tile is its task's own")]
    // SAFETY: what is pushed are the windows of the tile, each destination once.
    let mut sink = unsafe { transfer.window_sink(kernel, window) };
    for position in positions.clone() {
        let (number, tuple) = last_writes.get(destinations, position);
        push(
            &mut sink,
            transfer,
            transfer.window_at(number, tuple, origin),
        );
    }
    sink.finish();
}

/// Out of place: writes a range of slices, which a tile of the caller's has, in
/// order and each once.
fn rewrite(
    transfer: &Transfer<'_>,
    copy: &CopyGeometry,
    last_writes: &Sorted,
    repetition: usize,
    slices: &Range<u64>,
    streams: bool,
) {
    let window = &transfer.geometry().window;
    let destinations = transfer.plan().destinations();
    let origin = transfer.geometry().repetition(repetition);
    let move_window = transfer.window_kernel(transfer.kernels().copy, window, streams);
    #[expect(unsafe_code, reason = "a tile is its task's own")]
    // SAFETY: what is pushed are slices of the tile, each once: the windows of
    // last writes to one sink, and to the other those that have none, which a
    // `CopyGeometry` places in data as well.
    let (mut updates, data) = unsafe {
        (
            transfer.window_sink(move_window, window),
            transfer.access().data_sink(&copy.window, streams),
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
        let at = transfer.window_at(number, tuple, origin);
        push(&mut updates, transfer, at);
        next = number + 1;
    }
    push_slices(&mut data, copy, repetition, next..slices.end);
    data.finish();
    updates.finish();
}

fn push(sink: &mut Sink<'_>, transfer: &Transfer<'_>, (dst, src): (isize, isize)) {
    if transfer.geometry().joins {
        sink.push_joined(dst, src);
    } else {
        sink.push(dst, src);
    }
}

/// Pushes a range of slices of `data`, as one run where they join.
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
