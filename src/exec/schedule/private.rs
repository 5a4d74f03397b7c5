//! The private schedule. The list of tuples is cut into parts of consecutive tuples. Each task
//! combines the updates of one part in a private copy of all windows. The private copies are then
//! merged with the output, in the order of the parts.

use super::super::copies::{Copies, Merged, copy_words};
use super::super::one_value::OneValue;
use super::super::thresholds::{PRIVATE_BYTES, PRIVATE_ROW_BYTES};
use super::super::tile::{Tile, part};
use super::super::transfer::Transfer;
use super::{Divided, Division, Preparation, Reason, Scheduler, Step, Stop, Workload};
use crate::kernel::{Elements, RowsFn, RowsForm, Spread};
use crate::plan::Destinations;

pub(super) struct PrivateCopies;

impl Scheduler for PrivateCopies {
    /// Requires a merge of partial results that gives the bits of the sequential reference loop
    /// (`Workload::can_merge`).
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
        let bytes = usize::try_from(work.copy_bytes()).unwrap_or(usize::MAX);
        let words = copy_words(bytes).saturating_mul(division.tasks());
        Preparation::new(Step::TakeCopies, words.saturating_mul(size_of::<u64>()))
    }

    #[expect(unsafe_code, reason = "every task has a separate tile")]
    fn run(&self, divided: &Divided<'_, '_>) -> Result<(), Stop> {
        let (transfer, work) = (divided.transfer, divided.work);
        // The private copy of a task has all windows of one repetition of the output. `divide` has
        // limited the bytes of a private copy, and thereby the number of windows. The plan
        // therefore stores destination numbers as `u32` (`Destinations::Narrow`).
        let (Some(kernels), Some(private), Destinations::Narrow(numbers)) = (
            CombineKernels::of(transfer),
            transfer.access().operation.private(),
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
                kernels.combine(transfer, copy, src, first, &numbers[tuples]);
            })?;
            let into = Merged {
                output: transfer
                    .access()
                    .written_at(dst + transfer.geometry().window.dst),
                unit: transfer.geometry().unit,
            };
            let merge = |tile: &Tile| {
                if let Some(numbers) = tile.destinations() {
                    // SAFETY: the slices with these numbers belong to the tile. The windows in
                    // these slices are contiguous (`Workload::can_merge`). The windows are
                    // initialised: either the call is in place, or `copy_before` has copied data to
                    // the output.
                    unsafe { copies.merge(into, numbers) };
                }
            };
            // SAFETY: `PrivateCopies::divide` has made the division of this transfer. The tiles of
            // this division require no preparation: they are ranges of destination numbers.
            unsafe { divided.each_tile(divided.division, &whole, merge) }?;
        }
        copies.put_back();
        Ok(())
    }
}

/// The kernels that combine updates in a private copy.
struct CombineKernels {
    rows: RowsFn,
    /// Kernel for windows of one element. `None` unless the updates are contiguous or all tuples
    /// read the same update element.
    elements: Option<Elements>,
    form: RowsForm<'static>,
}

impl CombineKernels {
    /// Returns the kernels for a transfer. Returns `None` if the windows of the updates do not
    /// begin at a constant stride, or if the operation has no kernel for rows.
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

    /// Combines the updates of consecutive tuples with the windows of the private copy at the
    /// address `copy`.
    ///
    /// The caller guarantees that all windows of the private copy are initialised, and that nothing
    /// else uses the private copy.
    ///
    /// - `numbers`: destination numbers of the tuples.
    /// - `first`: position of the first tuple in the list of tuples.
    /// - `src`: offset of the repetition in the updates.
    fn combine(
        &self,
        transfer: &Transfer<'_>,
        copy: *mut u8,
        src: isize,
        first: usize,
        numbers: &[u32],
    ) {
        let src = src + transfer.geometry().window.src + first.cast_signed() * self.form.step;
        let src = transfer.access().read_at(src);
        #[expect(unsafe_code, reason = "passes a worker's private copy to the kernels")]
        // SAFETY: the private copy has all windows, which are initialised (`Copies::fill`). The
        // private copy overlaps no other memory. The plan has checked that all destination numbers
        // are below the number of windows. `Transfer::new` requires valid updates. If
        // `self.elements` is set, the updates are contiguous or all tuples read the same element
        // (`Self::of`).
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
