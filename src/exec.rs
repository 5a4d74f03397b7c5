//! Runs a plan: divides it into tasks that share no destination, and hands
//! each task's runs to the kernels.
//!
//! Knows plans, tasks, pools, scratch memory and functions of the kernel table.
//! Knows nothing of operators, of the types of indices or of elements.

mod apply;
mod choose;
pub(crate) mod collect;
mod copy;
pub(crate) mod direct;
mod grouped;
mod partition;
mod places;
mod private;
pub(crate) mod scratch;
mod sink;
pub(crate) mod tasks;
mod tile;
mod winner;
mod workload;

use std::mem::MaybeUninit;

pub(crate) use choose::{Choice, choose};
pub(crate) use private::copy_words;
pub(crate) use tile::part;
pub(crate) use workload::Workload;

use self::tasks::Workers;
use self::tile::Tile;
use crate::error::ScatterError;
use crate::kernel::{Kernels, Operation};
use crate::plan::{CopyGeometry, Geometry, IndexPlan};
use crate::schedule::Schedule;

/// The memory of one call: addresses of element `[0, 0, ...]` of each tensor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffers {
    pub(crate) output: *mut MaybeUninit<u8>,
    pub(crate) updates: *const u8,
    /// `None`: in place, `output` holds the data.
    pub(crate) data: Option<*const u8>,
}

#[expect(unsafe_code, reason = "tasks share the addresses of one call")]
mod shared {
    use super::Buffers;

    // SAFETY: the addresses are only used through `Sink` and the kernels, whose
    // callers establish that no two tasks write the same element.
    unsafe impl Send for Buffers {}
    // SAFETY: as above.
    unsafe impl Sync for Buffers {}
}

/// One scatter, ready to run.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    plan: &'a IndexPlan,
    operation: Operation,
    kernels: &'static Kernels,
    geometry: Geometry,
    /// How `data` lies; `None` in place.
    copy: Option<CopyGeometry>,
    buffers: Buffers,
    /// Whether long windows are written past the caches. Only where no two
    /// tuples have one destination: such stores are not ordered.
    streams: bool,
    /// Whether the plan will be run again, so that what a run finds out about
    /// indices is worth keeping.
    plan_is_kept: bool,
}

impl<'a> Call<'a> {
    /// A call of `plan` on updates and data of its shapes, which lie beside the
    /// output as `geometry` and `copy` say.
    ///
    /// # Safety
    ///
    /// - `buffers.output` has the layout that the plan is bound to, holds
    ///   elements of `kernels`, and is this call's alone.
    /// - `updates` has the shape that the plan asks for and the strides that
    ///   `geometry` was made for; `data`, if there is one, the plan's shape and
    ///   the strides that `copy` was made for. Both are readable, and share no
    ///   byte with `output`.
    /// - In place, or where `kernels` clone, the output's elements are initialised.
    #[expect(
        unsafe_code,
        reason = "the contract of every later access is made here"
    )]
    pub(crate) unsafe fn new(
        plan: &'a IndexPlan,
        operation: Operation,
        buffers: Buffers,
        geometry: Geometry,
        copy: Option<CopyGeometry>,
    ) -> Self {
        Self {
            geometry,
            copy,
            plan,
            kernels: operation.kernels,
            operation,
            buffers,
            streams: false,
            plan_is_kept: false,
        }
    }

    /// The same call, of a plan that will be run again.
    pub(crate) fn of_kept_plan(self, plan_is_kept: bool) -> Self {
        Self {
            plan_is_kept,
            ..self
        }
    }

    /// Runs it. `forced` is used where it applies and keeps the bits.
    pub(crate) fn run(
        mut self,
        workers: &Workers<'_>,
        forced: Option<Schedule>,
    ) -> Result<(), ScatterError> {
        if self.plan.shape().contains(&0) {
            return Ok(());
        }
        let geometry = &self.geometry;
        if self.plan.tuples() == 0
            || geometry.window.elements() == 0
            || geometry.outer.elements() == 0
        {
            // No tuples, or windows that reach nowhere, of an output that has
            // elements.
            return self.copy_before(workers, 1);
        }
        let choice = choose(&self.workload(), workers, forced);
        // Found out once, before any task begins.
        self.streams = self.workload().streams_windows(choice.schedule);
        match choice.schedule {
            Schedule::Serial if forced.is_none() => self.apply_alone(workers),
            Schedule::Serial => {
                self.run_serial();
                Ok(())
            }
            Schedule::LastWrite => self.run_winners(workers, &choice),
            Schedule::ByPartition => self.run_partitioned(workers, &choice),
            Schedule::Grouped => self.run_grouped(workers, &choice),
            Schedule::Private => self.run_private(workers, &choice),
            _ => self.run_tiles(workers, &choice),
        }
    }

    /// What the choice of a schedule depends on.
    pub(crate) fn workload(&self) -> Workload<'_> {
        Workload {
            plan: self.plan,
            geometry: &self.geometry,
            copy: self.copy.as_ref(),
            kernels: self.kernels,
            operation: &self.operation,
        }
    }

    /// Also what is left where another schedule finds no memory. Nothing else
    /// works on the call meanwhile.
    fn run_serial(&self) {
        self.copy_alone();
        self.apply_all();
    }

    /// One worker applies all updates; where there is much to copy, several do
    /// that before.
    fn apply_alone(&self, workers: &Workers<'_>) -> Result<(), ScatterError> {
        self.copy_before(workers, 1)?;
        self.apply_all();
        Ok(())
    }

    /// Copies all data before so many tasks begin: by several workers where
    /// several will work anyway, or where it is worth to wake them.
    fn copy_before(&self, workers: &Workers<'_>, tasks: usize) -> Result<(), ScatterError> {
        match &self.copy {
            Some(copy) if tasks > 1 || self.workload().copies_much() => {
                self.copy_in_parallel(workers, copy)
            }
            _ => {
                self.copy_alone();
                Ok(())
            }
        }
    }

    fn copy_alone(&self) {
        if let Some(copy) = &self.copy {
            #[expect(unsafe_code, reason = "one worker has the whole output")]
            // SAFETY: a `CopyGeometry` places elements of the one shape that
            // data and output have, and no task is running.
            unsafe {
                self.copy_span(&copy.whole, (0, 0), self.workload().is_sparse());
            }
        }
    }

    fn apply_all(&self) {
        #[expect(unsafe_code, reason = "one worker has the whole output")]
        // SAFETY: the output is this call's alone, and no task is running.
        let all = unsafe { Tile::whole(&self.workload()) };
        self.apply(&all);
    }

    /// Every task one tile; data is copied with the tile where a tile is a
    /// region of its own, else before.
    fn run_tiles(&self, workers: &Workers<'_>, choice: &Choice) -> Result<(), ScatterError> {
        let grid = choice.grid;
        let fused = (self.copy.as_ref()).filter(|copy| choice.fuses_copy(&self.workload(), copy));
        if let (Some(copy), None) = (&self.copy, fused) {
            self.copy_in_parallel(workers, copy)?;
        }
        workers.run(grid.tasks(), &|index| {
            let phase = self
                .output_at(self.geometry.repetition(0).0 + self.geometry.window.dst)
                .addr();
            #[expect(unsafe_code, reason = "every task has a tile of its own")]
            // SAFETY: the choice is `divide`'s, of this work, and `run` hands
            // out every number once.
            let tile = unsafe { grid.tile(index, choice.schedule, &self.workload(), phase) };
            if let Some(copy) = fused {
                self.copy_tile(copy, &tile);
            }
            self.apply(&tile);
        })
    }
}
