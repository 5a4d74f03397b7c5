//! How a scatter is to be run: reduction, pool, and what is forced.

use crate::kernel::InstructionSet;
use crate::pool::{Pool, Rayon};
use crate::reduction::{Accumulate, Reduction};
use crate::schedule::Schedule;

/// How a scatter is to be run. A [`Reduction`] alone is one, with every other
/// choice left to the crate.
///
/// # Examples
///
/// ```
/// use ndscatter::{CallingThread, Execution, Reduction, ScatterNd, TensorView, TensorViewMut};
///
/// let mut data = [5.0_f32; 3];
/// ScatterNd::new()
///     .execution(Execution::new(Reduction::Max).pool(&CallingThread))
///     .in_place(
///         TensorViewMut::contiguous(&mut data, &[3])?,
///         TensorView::contiguous(&[0_i32, 2], &[2, 1])?,
///         TensorView::contiguous(&[9.0, 1.0], &[2])?,
///     )?;
/// assert_eq!(data, [9.0, 5.0, 5.0]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Execution<'p> {
    pub(crate) reduction: Reduction,
    pub(crate) include_self: bool,
    pub(crate) accumulate: Accumulate,
    pub(crate) pool: &'p dyn Pool,
    pub(crate) max_workers: Option<usize>,
    pub(crate) schedule: Option<Schedule>,
    pub(crate) instruction_set: Option<InstructionSet>,
}

impl Execution<'static> {
    /// With rayon, and every choice left to the crate.
    pub fn new(reduction: Reduction) -> Self {
        Self {
            reduction,
            include_self: true,
            accumulate: Accumulate::Native,
            pool: &Rayon,
            max_workers: None,
            schedule: None,
            instruction_set: None,
        }
    }
}

impl Default for Execution<'static> {
    fn default() -> Self {
        Self::new(Reduction::None)
    }
}

impl From<Reduction> for Execution<'static> {
    fn from(reduction: Reduction) -> Self {
        Self::new(reduction)
    }
}

impl<'p> Execution<'p> {
    /// How updates meet the value that is there.
    #[must_use]
    pub fn reduction(self, reduction: Reduction) -> Self {
        Self { reduction, ..self }
    }

    /// Whether the value that is there takes part in a reduction (the default).
    /// If not, the first update of a destination replaces it and later ones are
    /// combined with that; `Sub` begins at zero. Destinations without updates
    /// keep their value. Without a reduction it makes no difference.
    #[must_use]
    pub fn include_self(self, include_self: bool) -> Self {
        Self {
            include_self,
            ..self
        }
    }

    /// In what type 16-bit floats are summed. Default: their own.
    #[must_use]
    pub fn accumulate(self, accumulate: Accumulate) -> Self {
        Self { accumulate, ..self }
    }

    /// Runs tasks on `pool` and on no other threads.
    #[must_use]
    pub fn pool<'q>(self, pool: &'q dyn Pool) -> Execution<'q>
    where
        'p: 'q,
    {
        Execution { pool, ..self }
    }

    /// Divides the work among at most `workers` (at least one).
    #[must_use]
    pub fn max_workers(self, workers: usize) -> Self {
        Self {
            max_workers: Some(workers),
            ..self
        }
    }

    /// Forces a schedule, for tests and measurements. Where it does not apply
    /// or would not keep the bits of the sequential loop, the serial one runs.
    #[must_use]
    pub fn schedule(self, schedule: Schedule) -> Self {
        Self {
            schedule: Some(schedule),
            ..self
        }
    }

    /// Forces an instruction set, for tests and measurements. One that the
    /// machine does not have is not used.
    #[must_use]
    pub fn instruction_set(self, instruction_set: InstructionSet) -> Self {
        Self {
            instruction_set: Some(instruction_set),
            ..self
        }
    }

    /// The instruction set to work with; kernels hold it against the machine's.
    #[inline]
    pub(crate) fn instructions(&self) -> InstructionSet {
        self.instruction_set.unwrap_or_else(InstructionSet::best)
    }
}
