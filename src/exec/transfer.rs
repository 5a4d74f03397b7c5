//! A transfer: one call's movement of elements between a list of windows and
//! numbered windows, one way or the other.
//!
//! Knows where both lie and where each tuple's windows are. Knows nothing of
//! which schedule divides it.

mod copy;
mod tiles;
pub(super) mod walk;

pub(super) use self::tiles::Divided;

use std::fmt::Debug;
use std::ops::Range;

use super::access::{Access, Buffers, Runs};
use super::context::Context;
use super::sink::Sink;
use super::tile::Whole;
use super::workload::{Direction, Workload};
use crate::error::ScatterError;
use crate::kernel::{Kernels, Operation, RunsFn};
use crate::plan::{CopyGeometry, Geometry, IndexPlan, Sorted, Span};

/// What stands for elements that no index names.
static ZERO: [u8; 16] = [0; 16];

/// A pass over groups of tuples that is no scatter.
pub(crate) trait GroupPass: Debug + Sync {
    /// Works on the groups at these positions of the plan's sorted tuples.
    ///
    /// # Safety
    ///
    /// In these repetitions, no one else reads or writes these columns of the windows of
    /// these groups and of their tuples.
    #[expect(unsafe_code, reason = "the caller owns what is written")]
    unsafe fn run(&self, positions: Range<usize>, columns: Range<usize>, repetitions: Range<usize>);
}

/// One transfer, ready to run.
#[derive(Debug)]
pub(crate) struct Transfer<'a> {
    direction: Direction,
    plan: &'a IndexPlan,
    access: Access,
    /// Its `dst` side is written, its `src` side read.
    geometry: Geometry,
    /// How `data` lies; `None` where none is copied.
    copy: Option<CopyGeometry>,
    /// The pass that groups are handed to. Windows of such a transfer are places in none of
    /// the tensors above.
    pass: Option<&'a dyn GroupPass>,
}

impl<'a> Transfer<'a> {
    /// A transfer by `plan`. `geometry` says how the listed tensor lies beside the numbered
    /// one, and `copy` how data lies that is copied to the output first.
    ///
    /// # Safety
    ///
    /// - The numbered tensor (the output of a scatter, the data of a gather) has the plan's
    ///   shape and the strides that `geometry` was made for. Numbers are evenly spaced in
    ///   these strides. The listed tensor (the updates of a scatter, the output of a gather) has
    ///   the shape that the plan asks of updates and the strides that `geometry` was made
    ///   for. Data that is copied has the plan's shape and the strides that `copy` was made
    ///   for. A gather copies none.
    /// - All hold elements of the operation. The output is this call's alone, and shares no
    ///   byte with the others, which are readable.
    /// - The output's elements are initialised in place, and where the operation clones.
    /// - The operation of a gather only moves, or multiplies initialised and aligned
    ///   elements on their way. Where it clones, no tuple is skipped.
    #[expect(
        unsafe_code,
        reason = "the contract of every later access is made here"
    )]
    pub(crate) unsafe fn new(
        direction: Direction,
        plan: &'a IndexPlan,
        access: Access,
        geometry: Geometry,
        copy: Option<CopyGeometry>,
    ) -> Self {
        let geometry = match direction {
            Direction::Scatter => geometry,
            Direction::Gather => geometry.exchanged(),
        };
        Self {
            direction,
            plan,
            access,
            geometry,
            copy,
            pass: None,
        }
    }

    /// A pass over the groups of a plan, which writes around an address. Windows and
    /// repetitions are counted as if they lay side by side.
    pub(crate) fn by_groups(
        plan: &'a IndexPlan,
        operation: Operation,
        pass: &'a dyn GroupPass,
        written: *mut u8,
        context: Context,
    ) -> Result<Self, ScatterError> {
        let buffers = Buffers {
            output: written.cast(),
            source: std::ptr::null(),
            data: None,
        };
        Ok(Self {
            direction: Direction::Scatter,
            plan,
            access: Access {
                operation,
                buffers,
                context,
            },
            geometry: plan.counted()?,
            copy: None,
            pass: Some(pass),
        })
    }

    /// The same transfer in these circumstances.
    pub(super) fn with_context(mut self, context: Context) -> Self {
        self.access.context = context;
        self
    }

    /// What the choice of a schedule depends on.
    pub(super) fn workload(&self) -> Workload<'a> {
        Workload::new(
            self.direction,
            self.plan,
            &self.geometry,
            self.copy.as_ref(),
            &self.access.operation,
            self.access.context,
        )
    }

    pub(super) fn plan(&self) -> &'a IndexPlan {
        self.plan
    }

    pub(super) fn pass(&self) -> Option<&'a dyn GroupPass> {
        self.pass
    }

    pub(super) fn access(&self) -> &Access {
        &self.access
    }

    pub(super) fn kernels(&self) -> &'static Kernels {
        self.access.operation.kernels
    }

    pub(super) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// How data lies, where it is copied.
    pub(super) fn data_geometry(&self) -> Option<&CopyGeometry> {
        self.copy.as_ref()
    }

    pub(super) fn repetitions(&self) -> usize {
        self.geometry.outer.elements()
    }

    /// Whether no window is moved, and no element of data copied.
    pub(super) fn writes_nothing(&self) -> bool {
        self.direction == Direction::Scatter && self.plan.shape().contains(&0)
    }

    /// Whether no window is moved: there are no tuples, or windows or
    /// repetitions reach nowhere.
    pub(super) fn moves_nothing(&self) -> bool {
        self.plan.tuples() == 0 || self.geometry.window.elements() == 0 || self.repetitions() == 0
    }

    /// All of it, as it is cut into tiles. `sorted` has the tuples by
    /// destination, for divisions that cut that list.
    pub(super) fn whole<'s>(&'s self, sorted: Option<&'s Sorted>) -> Whole<'s> {
        let first = self.geometry.repetition(0).0 + self.geometry.window.dst;
        Whole {
            plan: self.plan,
            repetitions: self.repetitions(),
            window: &self.geometry.window,
            size: self.kernels().size,
            address: self.access.written_at(first).addr(),
            sorted,
            cuts: None,
        }
    }

    /// Zeros where a gather skips a tuple, before any task begins. Whatever
    /// memory that takes is asked for before the first write.
    pub(super) fn clear_skipped(&self) -> Result<(), ScatterError> {
        if self.direction == Direction::Scatter || self.plan.skips_none() {
            return Ok(());
        }
        let window = self.geometry.window.of_one_source()?;
        let kernel = Runs::Plain(self.kernels().copy);
        #[expect(unsafe_code, reason = "as the sink that it fills")]
        // SAFETY: who made the transfer vouches for the result. What is pushed are
        // windows of it, each once; all of them read the one element of zeros; no
        // task is running.
        let mut sink = unsafe { Sink::new(&self.access, kernel, ZERO.as_ptr(), &window) };
        for repetition in 0..self.repetitions() {
            let (result, _) = self.geometry.repetition(repetition);
            let applied = (0..self.plan.tuples()).map(|at| self.plan.tuple_at(at));
            let mut applied = applied.peekable();
            for tuple in 0..self.plan.listed_tuples() {
                if applied.next_if_eq(&tuple).is_none() {
                    sink.push(result + self.geometry.source(tuple), 0);
                }
            }
        }
        sink.finish();
        Ok(())
    }

    /// Offsets, written and read, of the window at `position` of the list, whose
    /// destination is `number`, in the repetition that begins at `origin`.
    #[inline]
    pub(super) fn window_at(
        &self,
        number: u64,
        position: usize,
        origin: (isize, isize),
    ) -> (isize, isize) {
        let listed = self.geometry.source(self.plan.tuple_at(position));
        self.placed(
            crate::plan::signed(number) * self.geometry.unit,
            listed,
            origin,
        )
    }

    /// Offsets, written and read, of a window from that of the numbered side
    /// and that of the list.
    #[inline(always)]
    fn placed(&self, numbered: isize, listed: isize, origin: (isize, isize)) -> (isize, isize) {
        match self.direction {
            Direction::Scatter => (origin.0 + numbered, origin.1 + listed),
            Direction::Gather => (origin.0 + listed, origin.1 + numbered),
        }
    }

    /// The distance between the windows of neighbours in the list, where it is
    /// constant.
    pub(super) fn source_step(&self) -> Option<isize> {
        let step = self.geometry.source_step();
        step.filter(|_| self.plan.skips_none())
    }

    /// A sink for windows of tuples, of the form `window`, to a kernel, streaming where that
    /// is wanted and `window` allows it.
    ///
    /// # Safety
    ///
    /// - What is pushed are offsets of windows, from [`Self::window_at`] or as
    ///   it has them.
    /// - No one else reads or writes those that are written until the sink is
    ///   gone ([`Tile`](super::tile::Tile)).
    /// - Where `streams`, no two of them have an element in common.
    #[expect(unsafe_code, reason = "the one sink of a transfer")]
    pub(super) unsafe fn window_sink<'s>(
        &self,
        kernel: RunsFn,
        window: &'s Span,
        streams: bool,
    ) -> Sink<'s> {
        let kernel = match self.access.multiplying() {
            Some(multiplying) if self.direction == Direction::Gather => multiplying,
            _ => self.access.streaming(kernel, window, streams),
        };
        // SAFETY: who made the transfer vouches for the tensors; windows lie
        // inside the numbered ones because the plan has checked every number to be
        // below how many these have, and inside the list because its shape is the
        // plan's; the caller vouches for the rest.
        unsafe { Sink::new(&self.access, kernel, self.access.buffers.source, window) }
    }
}
