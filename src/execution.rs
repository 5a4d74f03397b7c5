//! Who runs a call: pool, number of workers, and what is forced for tests.
//!
//! Knows nothing of what the call means: to set or to replace any of this
//! changes no bit of a result.

use crate::exec::tasks::{Call, Workers};
use crate::goal::Goal;
use crate::kernel::InstructionSet;
use crate::machine::Machine;
use crate::pool::{Pool, Rayon};
use crate::schedule::Schedule;

/// Who runs a call. It holds nothing that the result depends on.
///
/// # Examples
///
/// ```
/// use ndscatter::{CallingThread, Execution, Reduction, Scatter, TensorView, TensorViewMut};
///
/// let mut data = [5.0_f32; 3];
/// Scatter::nd()
///     .reduction(Reduction::Max)
///     .execution(Execution::new().pool(&CallingThread))
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
    pub(crate) pool: &'p dyn Pool,
    pub(crate) max_workers: Option<usize>,
    pub(crate) goal: Option<Goal>,
    pub(crate) schedule: Option<Schedule>,
    pub(crate) instruction_set: Option<InstructionSet>,
    pub(crate) machine: Option<&'p Machine>,
}

impl Execution<'static> {
    /// On rayon, with every choice left to the crate.
    #[inline]
    pub fn new() -> Self {
        Self {
            pool: &Rayon,
            max_workers: None,
            goal: None,
            schedule: None,
            instruction_set: None,
            machine: None,
        }
    }
}

impl Default for Execution<'static> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'p> Execution<'p> {
    /// Divides work into tasks on `pool`. What is not divided runs on the calling
    /// thread; no other thread is used.
    #[must_use]
    #[inline]
    pub fn pool(self, pool: &'p dyn Pool) -> Self {
        Self { pool, ..self }
    }

    /// Divides the work among at most `workers` (at least one).
    #[must_use]
    #[inline]
    pub fn max_workers(mut self, workers: usize) -> Self {
        self.max_workers = Some(workers);
        self
    }

    /// Says what the call is to have least of: time or CPU time.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Execution, Goal, Reduction, Scatter, TensorView, TensorViewMut};
    ///
    /// // One of many threads that serve requests: no other is disturbed.
    /// let mut counts = [0_u32; 4];
    /// Scatter::nd()
    ///     .reduction(Reduction::Add)
    ///     .execution(Execution::new().goal(Goal::Throughput))
    ///     .in_place(
    ///         TensorViewMut::contiguous(&mut counts, &[4])?,
    ///         TensorView::contiguous(&[1_i64, 1, 3], &[3, 1])?,
    ///         TensorView::contiguous(&[1, 1, 1], &[3])?,
    ///     )?;
    /// assert_eq!(counts, [0, 2, 0, 1]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    /// Chooses schedules as for this machine, and not as for the one that calls of the
    /// process [go by](Machine::current).
    #[must_use]
    #[inline]
    pub fn machine(mut self, machine: &'p Machine) -> Self {
        self.machine = Some(machine);
        self
    }

    /// For tests and measurements: forces a schedule. Where it does not apply
    /// or would not keep the bits of the sequential loop, the serial one runs, or
    /// [`Schedule::Grouped`] where nothing else gives the result (means,
    /// reductions without self, wide sums).
    #[must_use]
    #[inline]
    pub fn force_schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = Some(schedule);
        self
    }

    /// For tests and measurements: forces an instruction set. One that the
    /// machine does not have is not used.
    #[must_use]
    #[inline]
    pub fn force_instruction_set(mut self, instruction_set: InstructionSet) -> Self {
        self.instruction_set = Some(instruction_set);
        self
    }

    /// The workers of a call without a neighbour.
    pub(crate) fn workers(&self) -> Workers<'p> {
        let mut workers = Workers::new(self.pool, self.max_workers).with_machine(self.machine);
        workers.goal = self.goal;
        workers
    }

    /// Begins a call, which shares the pool with the calls that are at work on it.
    pub(crate) fn begin(&self) -> Call<'p> {
        Call::begin(self.workers())
    }

    /// The machine that schedules and variants of kernels are chosen by.
    pub(crate) fn machine_in_use(&self) -> &'p Machine {
        self.machine.unwrap_or_else(|| Machine::current())
    }

    /// The best instruction set to work with. Whoever uses it takes the lesser of it
    /// and what the machine has, for which a call need not ask twice.
    #[inline]
    pub(crate) fn instructions(&self) -> InstructionSet {
        self.instruction_set.unwrap_or(InstructionSet::LAST)
    }
}
