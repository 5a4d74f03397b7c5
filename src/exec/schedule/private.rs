//! Each worker combines consecutive tuples in a private copy of all windows; the
//! copies are then merged with the output, in order.

use super::super::copies::{Copies, Merged};
use super::super::one_value::OneValue;
use super::super::thresholds::{PRIVATE_BYTES, PRIVATE_ROW_BYTES};
use super::super::tile::{Tile, part};
use super::super::transfer::Transfer;
use super::{Divided, Division, Preparation, Reason, Scheduler, Step, Stop, Workload};
use crate::kernel::{Elements, RowsFn, RowsForm, Spread};
use crate::plan::Destinations;

pub(super) struct PrivateCopies;

impl Scheduler for PrivateCopies {
    /// Where partial results of consecutive updates combine to the bits of the
    /// sequence.
    fn divide(&self, work: &Workload<'_>, parts: usize) -> Result<Division, Reason> {
        if !work.can_merge {
            return Err(Reason("partial results cannot be merged"));
        }
        let most = match work.window_elements {
            ..=1 => PRIVATE_BYTES,
            _ => PRIVATE_ROW_BYTES,
        };
        if work.copy_bytes() > most {
            return Err(Reason("a copy of all windows is too large for the caches"));
        }
        if work.tuples < parts {
            return Err(Reason("there are fewer tuples than workers"));
        }
        Ok(Division::Copies { parts })
    }

    fn preparation(&self, work: &Workload<'_>, division: Division) -> Preparation {
        let words = work.copy_words().saturating_mul(division.tasks());
        Preparation::new(Step::TakeCopies, words.saturating_mul(size_of::<u64>()))
    }

    #[expect(unsafe_code, reason = "every task has a tile of its own")]
    fn run(&self, divided: &Divided<'_, '_>) -> Result<(), Stop> {
        let (transfer, work) = (divided.transfer, divided.work);
        // All windows fit in a copy, so that their numbers are narrow.
        let (Some(loops), Some(private), Destinations::Narrow(numbers)) = (
            Loops::of(transfer),
            transfer.operation().private(),
            transfer.plan().destinations(),
        ) else {
            debug_assert!(false, "a division of another schedule");
            return Ok(());
        };
        let parts = divided.division.tasks();
        let windows = usize::try_from(work.slices).unwrap_or(usize::MAX);
        let shape = (windows, work.window_elements);
        let copies = Copies::take(private, transfer.kernels(), shape, parts);
        let mut copies = copies.map_err(Stop::unprepared)?;
        divided.copy_before()?;
        let whole = transfer.whole(None);
        for repetition in 0..work.repetitions {
            let (dst, src) = transfer.geometry().repetition(repetition);
            copies.fill(&divided.workers, &|index, copy| {
                let tuples = part(numbers.len(), parts, index);
                let first = tuples.start;
                loops.combine(transfer, copy, src, first, &numbers[tuples]);
            })?;
            let into = Merged {
                output: transfer.written_at(dst + transfer.geometry().window.dst),
                unit: transfer.geometry().unit,
            };
            let merge = |tile: &Tile| {
                if let Some(numbers) = tile.destinations() {
                    // SAFETY: the tile has these slices of the output, of contiguous
                    // windows (`Workload::can_merge`), which hold data by now.
                    unsafe { copies.merge(into, numbers) };
                }
            };
            // SAFETY: `divide` has made the division of this transfer.
            unsafe { divided.each_tile(divided.division, &whole, merge) }?;
        }
        copies.put_back();
        Ok(())
    }
}

/// The loops that combine updates in a copy.
struct Loops {
    rows: RowsFn,
    /// Where windows are single elements, with sources side by side or all one.
    elements: Option<Elements>,
    form: RowsForm<'static>,
}

impl Loops {
    fn of(transfer: &Transfer<'_>) -> Option<Self> {
        let (kernels, geometry) = (transfer.kernels(), transfer.geometry());
        let (len, step) = (geometry.window.elements(), geometry.source_step()?);
        let form = RowsForm {
            unit: len.cast_signed(),
            step,
            len,
            sources: None,
            is_near: true,
            prefetches_sources: false,
        };
        let are_elements = len == 1 && matches!(step, 0 | 1);
        Some(Self {
            rows: kernels.apply_rows?,
            elements: kernels.apply_elements.filter(|_| are_elements),
            form,
        })
    }

    /// Combines consecutive tuples, from `first` on, of a repetition whose
    /// sources begin at `src`. `copy` is cleared, and the caller's alone.
    fn combine(
        &self,
        transfer: &Transfer<'_>,
        copy: *mut u8,
        src: isize,
        first: usize,
        numbers: &[u32],
    ) {
        let src = src + transfer.geometry().window.src + first.cast_signed() * self.form.step;
        let src = transfer.read_at(src);
        #[expect(unsafe_code, reason = "hands a worker's own copy to the kernels")]
        // SAFETY: the copy holds all windows, apart from everything else and
        // initialised, and numbers are less than that; who made the transfer
        // vouches for the updates, which lie side by side where there are
        // `elements`.
        unsafe {
            match self.elements {
                Some(elements) if self.form.step == 0 => {
                    let (size, spread) = (transfer.kernels().size, Spread::NEIGHBOURS);
                    OneValue::apply_once(elements.u32, size, copy, src, numbers, spread);
                }
                Some(elements) => (elements.u32)(copy, src, numbers, Spread::NEIGHBOURS),
                None => (self.rows)(copy, src, numbers, self.form),
            }
        }
    }
}
