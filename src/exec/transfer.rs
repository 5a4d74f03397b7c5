//! A transfer: the movement of elements in one call, between the numbered tensor and the listed
//! tensor. Destination numbers address the windows of the numbered tensor (the output of a scatter,
//! the data of a gather). The listed tensor has one window per tuple, in the order of the tuples
//! (the updates of a scatter, the output of a gather).
//!
//! This module knows the addresses of both tensors and the offset of each tuple's window in each
//! tensor. This module does not know which schedule divides the transfer.

mod copy;
mod filtered;
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
use crate::kernel::{InstructionSet, Kernels, Operation, RunsFn};
use crate::plan::{CopyGeometry, Geometry, IndexPlan, Sorted, Span};

/// The zero that a gather writes to all elements of a skipped tuple's window. An element has at
/// most 16 bytes.
static ZERO: [u8; 16] = [0; 16];

/// A computation on groups that is not a scatter. A group has all tuples of one destination.
pub(crate) trait GroupPass: Debug + Sync {
    /// Processes some groups, in some columns of the groups' windows and in some repetitions.
    ///
    /// - `positions`: positions of the groups' tuples in the plan's list that is sorted by
    ///   destination.
    /// - `columns`: positions of the elements in a window.
    /// - `repetitions`: range of repetition numbers.
    ///
    /// # Safety
    ///
    /// During the call, nothing else reads or writes the elements at `columns` of the windows of
    /// the groups' destinations and of the windows of the groups' tuples, in these `repetitions`.
    #[expect(unsafe_code, reason = "the caller ensures exclusive access")]
    unsafe fn run(&self, positions: Range<usize>, columns: Range<usize>, repetitions: Range<usize>);
}

/// One transfer (the movement of elements in one call), ready to run.
#[derive(Debug)]
pub(crate) struct Transfer<'a> {
    direction: Direction,
    plan: &'a IndexPlan,
    access: Access,
    /// Offsets of windows: `dst` in the tensor that is written, `src` in the tensor that is read.
    geometry: Geometry,
    /// Loops of the copy from data to the output. `None`: no data is copied.
    copy: Option<CopyGeometry>,
    /// The pass that processes groups (all tuples of one destination), instead of kernels that move
    /// windows. If there is a pass, `geometry` has the numbers of repetitions and of elements in a
    /// window, but no offsets in a tensor.
    pass: Option<&'a dyn GroupPass>,
}

impl<'a> Transfer<'a> {
    /// Makes a transfer by `plan`. The argument `geometry` has the offsets of windows as a scatter
    /// uses them: `dst` in the numbered tensor, `src` in the listed tensor. The argument `copy`
    /// describes the data that is copied to the output before windows are applied.
    ///
    /// # Safety
    ///
    /// - The numbered tensor (the output of a scatter, the data of a gather) has the plan's shape
    ///   and the strides that `geometry` was made for. In this tensor, the offset of a window is
    ///   its destination number times a constant stride, plus a constant. The listed tensor (the
    ///   updates of a scatter, the output of a gather) has the plan's shape of updates and the
    ///   strides that `geometry` was made for. Data that is copied has the plan's shape and the
    ///   strides that `copy` was made for. A gather copies no data.
    /// - All tensors hold elements of the operation's type. Only this call uses the output. The
    ///   output shares no byte with the other tensors, and the other tensors are readable.
    /// - The output's elements are initialised if the call is in place, or if the operation clones.
    /// - The operation of a gather only copies elements, or it multiplies initialised and aligned
    ///   elements while it copies them. If the operation of a gather clones, no tuple is skipped.
    #[expect(
        unsafe_code,
        reason = "its caller gives the guarantees for every later access"
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

    /// Makes a transfer that runs `pass` over the groups of a plan. A group has all tuples of one
    /// destination. The transfer has the number of repetitions and the number of elements in a
    /// window, but no offsets in a tensor. The pass knows the offsets in its tensors. `written` is
    /// the base address of a tensor that the pass writes. This address aligns the cuts of windows
    /// into columns to cache lines.
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

    /// Returns the transfer with the instruction set `set` for its filters, the loops that select
    /// the tuples of a range of destinations.
    pub(crate) fn with_set(mut self, set: InstructionSet) -> Self {
        self.access.context = self.access.context.with_set(set);
        self
    }

    /// Returns the transfer with another context.
    pub(super) fn with_context(mut self, context: Context) -> Self {
        self.access.context = context;
        self
    }

    /// Returns the description of the transfer from which a schedule is chosen: sizes, and
    /// properties of the list of destinations.
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

    /// Returns the loops of the copy from data to the output. `None`: no data is copied.
    pub(super) fn data_geometry(&self) -> Option<&CopyGeometry> {
        self.copy.as_ref()
    }

    pub(super) fn repetitions(&self) -> usize {
        self.geometry.outer.elements()
    }

    /// Whether the transfer is a scatter that writes no element, because the output is empty.
    pub(super) fn writes_nothing(&self) -> bool {
        self.direction == Direction::Scatter && self.plan.shape().contains(&0)
    }

    /// Whether no window is moved: there are no tuples, no repetitions, or no elements in a window.
    pub(super) fn moves_nothing(&self) -> bool {
        self.plan.tuples() == 0 || self.geometry.window.elements() == 0 || self.repetitions() == 0
    }

    /// Returns the description of the whole transfer, from which tiles are cut. `sorted` is the
    /// list of tuples sorted by destination, for divisions that cut this list.
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

    /// Writes zeros to the windows of the tuples that a gather skips, before any task begins. If an
    /// allocation fails, the function has written nothing.
    pub(super) fn clear_skipped(&self) -> Result<(), ScatterError> {
        if self.direction == Direction::Scatter || self.plan.skips_none() {
            return Ok(());
        }
        let window = self.geometry.window.of_one_source()?;
        let kernel = Runs::Plain(self.kernels().copy);
        #[expect(unsafe_code, reason = "fills a sink")]
        // SAFETY: the caller of `Transfer::new` guarantees that the output of the gather has the
        // plan's shape of updates, and that only this call uses it. The loop pushes each window of
        // the output at most once. All pushed windows read only the element `ZERO`. No task is
        // running.
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

    /// Returns two offsets, of the window that is written and of the window that is read, for the
    /// tuple at `position` of the plan's list. The argument `number` is the destination number of
    /// the tuple. The argument `origin` has the offsets of the repetition in the two tensors.
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

    /// Returns the offset of the window that is written and of the window that is read. The
    /// argument `numbered` is the window's offset in the numbered tensor (the output of a scatter,
    /// the data of a gather). The argument `listed` is the window's offset in the listed tensor
    /// (the updates of a scatter, the output of a gather). Both offsets are relative to the offsets
    /// in `origin`.
    #[inline(always)]
    fn placed(&self, numbered: isize, listed: isize, origin: (isize, isize)) -> (isize, isize) {
        match self.direction {
            Direction::Scatter => (origin.0 + numbered, origin.1 + listed),
            Direction::Gather => (origin.0 + listed, origin.1 + numbered),
        }
    }

    /// Returns the distance, in elements, between the windows of consecutive tuples in the listed
    /// tensor. The listed tensor is the updates of a scatter, or the output of a gather. Returns
    /// `None` if the distance is not constant, or if the plan skips tuples.
    pub(super) fn source_step(&self) -> Option<isize> {
        let step = self.geometry.source_step();
        step.filter(|_| self.plan.skips_none())
    }

    /// Makes a sink for windows of tuples, of the form `window`. If `streams` is set, the sink
    /// usually writes by streaming stores, if the runs of `window` are contiguous (see
    /// [`Access::streaming`]). A gather that multiplies ignores `streams`.
    ///
    /// # Safety
    ///
    /// - The offsets that are pushed are offsets of windows, as [`Self::window_at`] returns them.
    /// - While the sink exists, nothing else reads or writes the windows that the sink writes (see
    ///   [`Tile`](super::tile::Tile)).
    /// - If `streams` is set, no two windows that the sink writes share an element.
    #[expect(
        unsafe_code,
        reason = "makes a sink, which needs the caller's guarantees"
    )]
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
        // SAFETY: the Safety section of `Transfer::new` requires that both tensors have the shapes
        // and strides of the plan, and elements of the operation's type. The windows that
        // destination numbers address are inside their tensor, because the plan has checked every
        // destination number. The listed windows are inside the listed tensor, because this tensor
        // has the plan's shape of updates. The Safety section of this function requires that
        // nothing else uses the windows that the sink writes.
        unsafe { Sink::new(&self.access, kernel, self.access.buffers.source, window) }
    }
}
