//! Tuples sorted, in order, by destination: the updates of one destination
//! after another, while its window stays close.

use std::ops::Range;

use super::Call;
use super::choose::Choice;
use super::tasks::Workers;
use super::tile::{columns, part};
use crate::error::ScatterError;
use crate::kernel::{Group, GroupFn, GroupRun, Sources, Steps};
use crate::memory::zeroed;
use crate::plan::{Sorted, Span};

/// Groups of one kernel call: enough to hide the call.
const GROUPS: usize = 64;

/// What all tasks of a call read.
struct Grouped<'a> {
    kernel: GroupFn,
    sorted: &'a Sorted,
    sources: Sources<'a>,
}

impl Call<'_> {
    /// Whatever memory it needs is had before the first write. Without it, the
    /// serial schedule needs none, unless only groups give the result.
    pub(super) fn run_grouped(
        &self,
        workers: &Workers<'_>,
        choice: &Choice,
    ) -> Result<(), ScatterError> {
        let Some(kernel) = self.operation.group else {
            self.run_serial();
            return Ok(());
        };
        match self.sorted_groups() {
            Ok((sorted, offsets)) => {
                self.run_groups(kernel, sorted, offsets.as_deref(), workers, choice)
            }
            Err(ScatterError::OutOfMemory { .. }) if !self.operation.needs_groups => {
                self.run_serial();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn sorted_groups(&self) -> Result<(&Sorted, Option<Vec<u64>>), ScatterError> {
        let sorted = self.plan.groups()?;
        Ok((sorted, self.listed_sources(sorted)?))
    }

    fn run_groups(
        &self,
        kernel: GroupFn,
        sorted: &Sorted,
        offsets: Option<&[u64]>,
        workers: &Workers<'_>,
        choice: &Choice,
    ) -> Result<(), ScatterError> {
        let grouped = Grouped {
            kernel,
            sorted,
            sources: self.sources(sorted, offsets),
        };
        let grid = choice.grid;
        self.copy_before(workers, grid.tasks())?;
        workers.run(grid.tasks(), &|index| {
            let (_, middle, column) = grid.place(index);
            let positions = self.whole_groups(sorted, grid.middle, middle);
            let restricted = (grid.columns > 1).then(|| {
                let window = &self.geometry.window;
                let phase = self.output_at(self.geometry.repetition(0).0 + window.dst);
                columns(
                    window,
                    self.kernels.size,
                    phase.addr(),
                    grid.columns,
                    column,
                )
                .of(window)
            });
            let window = restricted.as_ref().unwrap_or(&self.geometry.window);
            for repetition in 0..self.geometry.outer.elements() {
                #[expect(unsafe_code, reason = "tasks fold groups of their own")]
                // SAFETY: tasks have whole groups, of different destinations,
                // or different columns of them.
                unsafe {
                    self.fold(&grouped, window, repetition, positions.clone());
                }
            }
        })
    }

    /// Offsets of all sources, where they are not multiples of one step.
    fn listed_sources(&self, sorted: &Sorted) -> Result<Option<Vec<u64>>, ScatterError> {
        let even = self.source_step().is_some();
        if even && (sorted.packed().is_some() || matches!(sorted, Sorted::InOrder)) {
            return Ok(None);
        }
        let tuples = self.plan.tuples();
        let mut offsets: Vec<u64> = zeroed(tuples)?;
        for (position, offset) in offsets.iter_mut().enumerate() {
            let (_, tuple) = sorted.get(self.plan.destinations(), position);
            let (_, src) = self.window_at(0, tuple, (0, 0));
            *offset = (src as i64).cast_unsigned();
        }
        Ok(Some(offsets))
    }

    fn sources<'s>(&self, sorted: &'s Sorted, offsets: Option<&'s [u64]>) -> Sources<'s> {
        let step = self.source_step().unwrap_or(1);
        match (offsets, sorted.packed()) {
            (Some(offsets), _) => Sources {
                list: Some(offsets),
                mask: u64::MAX,
                step: 1,
            },
            (None, Some((list, mask))) => Sources {
                list: Some(list),
                mask,
                step,
            },
            (None, None) => Sources {
                list: None,
                mask: 0,
                step,
            },
        }
    }

    /// Part `index` of the sorted tuples, from the start of a group to the
    /// start of another.
    fn whole_groups(&self, sorted: &Sorted, parts: usize, index: usize) -> Range<usize> {
        let destinations = self.plan.destinations();
        let tuples = self.plan.tuples();
        let start_of_group = |position: usize| {
            if position >= tuples {
                return tuples;
            }
            sorted.first_from(destinations, sorted.get(destinations, position).0)
        };
        let part = part(tuples, parts, index);
        start_of_group(part.start)..start_of_group(part.end)
    }

    /// Applies whole groups, in one repetition.
    ///
    /// # Safety
    ///
    /// `grouped` is of this plan, and no one else reads or writes `window` at
    /// the destinations of these positions in this repetition.
    #[expect(unsafe_code, reason = "as the kernel that it calls")]
    unsafe fn fold(
        &self,
        grouped: &Grouped<'_>,
        window: &Span,
        repetition: usize,
        positions: Range<usize>,
    ) {
        let destinations = self.plan.destinations();
        let origin = self.geometry.repetition(repetition);
        let mut groups = [Group {
            dst: 0,
            start: 0,
            end: 0,
        }; GROUPS];
        let mut len = 0;
        let mut position = positions.start;
        while position < positions.end {
            let (number, _) = grouped.sorted.get(destinations, position);
            let start = position;
            while position < positions.end && grouped.sorted.get(destinations, position).0 == number
            {
                position += 1;
            }
            let (dst, _) = self.geometry.window_at(number, 0, origin);
            groups[len] = Group {
                dst,
                start,
                end: position,
            };
            len += 1;
            if len == GROUPS || position == positions.end {
                // SAFETY: the caller vouches for the windows of these groups.
                unsafe { self.fold_runs(grouped, window, origin.1, &groups[..len]) };
                len = 0;
            }
        }
    }

    /// # Safety
    ///
    /// As for [`Self::fold`], which has found these groups.
    #[expect(unsafe_code, reason = "the one call of a kernel for groups")]
    unsafe fn fold_runs(&self, grouped: &Grouped<'_>, window: &Span, src: isize, groups: &[Group]) {
        let run = window.run();
        let run_of_groups = GroupRun {
            len: run.size,
            steps: Steps {
                dst: run.dst,
                src: run.src,
            },
            include_self: self.operation.include_self,
        };
        for number in 0..window.runs() {
            let (loop_dst, loop_src) = Span::at(window.loops(), number);
            let dst = self.output_at(window.dst + loop_dst);
            let src = self.updates_at(window.src + loop_src + src);
            // SAFETY: `Call::new` vouches for the buffers, the plan for the
            // destinations; sources are those of its tuples, as `sources` has
            // it; the caller vouches for the windows being its own.
            unsafe {
                (grouped.kernel)(dst, src, groups, grouped.sources, run_of_groups);
            }
        }
    }
}
