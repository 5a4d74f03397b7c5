//! A transfer: the movement of elements in one call, between the numbered tensor and the listed
//! tensor. Destination numbers address the windows of the numbered tensor (the output of a scatter,
//! the data of a gather). The listed tensor has one window per tuple, in the order of the tuples
//! (the updates of a scatter, the output of a gather).
//!
//! This module knows the positions of both tensors and of each tuple's windows. This module does
//! not know which schedule divides the transfer.

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

/// The element that a gather writes for a skipped tuple, of at most 16 bytes.
static ZERO: [u8; 16] = [0; 16];

/// A pass over groups of tuples that is not a scatter.
pub(crate) trait GroupPass: Debug + Sync {
    /// Processes groups in some columns of their windows and in some repetitions.
    ///
    /// - `positions`: range of the plan's sorted tuples with the tuples of the groups.
    /// - `columns`: range of positions in a window.
    /// - `repetitions`: range of repetitions.
    ///
    /// # Safety
    ///
    /// In the repetitions of `repetitions`, nothing else reads or writes the elements of `columns`
    /// in the windows of the groups' destinations and in the windows of the groups' tuples.
    #[expect(unsafe_code, reason = "the caller ensures exclusive access")]
    unsafe fn run(&self, positions: Range<usize>, columns: Range<usize>, repetitions: Range<usize>);
}

/// One transfer, ready to run.
#[derive(Debug)]
pub(crate) struct Transfer<'a> {
    direction: Direction,
    plan: &'a IndexPlan,
    access: Access,
    /// Positions of windows: `dst` in the tensor that is written, `src` in the tensor that is read.
    geometry: Geometry,
    /// Layout of `data` relative to the output. `None`: no data is copied.
    copy: Option<CopyGeometry>,
    /// The pass that processes the groups. If there is a pass, the windows of the transfer are only
    /// counted and are not positions in a tensor.
    pass: Option<&'a dyn GroupPass>,
}

impl<'a> Transfer<'a> {
    /// Makes a transfer by `plan`. `geometry` describes the listed tensor relative to the numbered
    /// tensor. `copy` describes the data that is copied to the output first.
    ///
    /// # Safety
    ///
    /// - The numbered tensor (the output of a scatter, the data of a gather) has the plan's shape
    ///   and the strides that `geometry` was made for. In this tensor, the offset of a window is
    ///   its destination number times a constant stride, plus a constant. The listed tensor (the
    ///   updates of a scatter, the output of a gather) has the plan's shape of updates and the
    ///   strides that `geometry` was made for. Data that is copied has the plan's shape and the
    ///   strides that `copy` was made for. A gather copies no data.
    /// - All tensors hold elements of the operation. Only this call uses the output. The output
    ///   shares no byte with the other tensors, and these are readable.
    /// - The output's elements are initialised if the call is in place, or if the operation clones.
    /// - The operation of a gather only copies, or it multiplies initialised and aligned elements
    ///   while it copies them. If it clones, no tuple is skipped.
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
    /// destination. `written` is the base address of a tensor that the pass writes. The offsets of
    /// windows and repetitions in the transfer are those of contiguous tensors.
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

    /// Returns the transfer with filters of the instruction set `set`.
    pub(crate) fn with_set(mut self, set: InstructionSet) -> Self {
        self.access.context = self.access.context.with_set(set);
        self
    }

    /// Returns the transfer with another context.
    pub(super) fn with_context(mut self, context: Context) -> Self {
        self.access.context = context;
        self
    }

    /// Returns the facts that the choice of a schedule depends on.
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

    /// Returns the layout of the data that is copied. `None`: no data is copied.
    pub(super) fn data_geometry(&self) -> Option<&CopyGeometry> {
        self.copy.as_ref()
    }

    pub(super) fn repetitions(&self) -> usize {
        self.geometry.outer.elements()
    }

    /// Whether the call writes no element, because the output is empty.
    pub(super) fn writes_nothing(&self) -> bool {
        self.direction == Direction::Scatter && self.plan.shape().contains(&0)
    }

    /// Whether no window is moved: there are no tuples, no repetitions, or no elements in a window.
    pub(super) fn moves_nothing(&self) -> bool {
        self.plan.tuples() == 0 || self.geometry.window.elements() == 0 || self.repetitions() == 0
    }

    /// Describes the whole transfer, which is then cut into tiles. `sorted` has the tuples by
    /// destination, for divisions that cut this list.
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

    /// Writes zeros to the windows of the tuples that a gather skips, before any task begins. An
    /// allocation is made before the first write.
    pub(super) fn clear_skipped(&self) -> Result<(), ScatterError> {
        if self.direction == Direction::Scatter || self.plan.skips_none() {
            return Ok(());
        }
        let window = self.geometry.window.of_one_source()?;
        let kernel = Runs::Plain(self.kernels().copy);
        #[expect(unsafe_code, reason = "fills a sink")]
        // SAFETY: the caller of `Transfer::new` vouches for the result. The loop pushes each window
        // of the result at most once. All pushed windows read the one element `ZERO`. No task is
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

    /// Returns the written offset and the read offset of the window at `position` of the list.
    /// `number` is its destination number. `origin` has the offsets of the repetition.
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

    /// Returns the written offset and the read offset of a window from its offsets in the numbered
    /// and in the listed tensor.
    #[inline(always)]
    fn placed(&self, numbered: isize, listed: isize, origin: (isize, isize)) -> (isize, isize) {
        match self.direction {
            Direction::Scatter => (origin.0 + numbered, origin.1 + listed),
            Direction::Gather => (origin.0 + listed, origin.1 + numbered),
        }
    }

    /// Returns the distance between the listed windows of consecutive tuples. `None`: the distance
    /// is not constant.
    pub(super) fn source_step(&self) -> Option<isize> {
        let step = self.geometry.source_step();
        step.filter(|_| self.plan.skips_none())
    }

    /// Makes a sink for windows of tuples, of the form `window`. `streams` requests streaming
    /// stores. The sink uses streaming stores if the runs of `window` are contiguous.
    ///
    /// # Safety
    ///
    /// - The offsets that are pushed are offsets of windows, as [`Self::window_at`] returns them.
    /// - No one else reads or writes the windows that are written while the sink exists (see
    ///   [`Tile`](super::tile::Tile)).
    /// - If `streams` is set, no two windows that are written share an element.
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
        // SAFETY: the caller of `Transfer::new` vouches for the tensors. The numbered windows are
        // inside their tensor, because the plan has checked every number. The listed windows are
        // inside their tensor, because it has the plan's shape. The caller vouches for the rest.
        unsafe { Sink::new(&self.access, kernel, self.access.buffers.source, window) }
    }
}
