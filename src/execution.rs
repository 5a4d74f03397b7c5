//! Settings of the execution of a call: the pool, the number of workers, the goal, the machine, and
//! overrides for tests.
//!
//! The module does not know which operator a call applies. No setting changes a bit of a result.

use crate::exec::tasks::{Call, Workers};
use crate::goal::Goal;
use crate::kernel::InstructionSet;
use crate::machine::Machine;
use crate::pool::{Pool, Rayon};
use crate::schedule::Schedule;

/// Settings of the execution of a call. The settings do not change results.
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
    /// Returns the default settings. Calls run on rayon, and the crate makes all other choices.
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
    /// Runs divided work as tasks on `pool`. Work that is not divided runs on the calling thread.
    /// The crate uses no other thread.
    #[must_use]
    #[inline]
    pub fn pool(self, pool: &'p dyn Pool) -> Self {
        Self { pool, ..self }
    }

    /// Divides the work among at most `workers` workers. 0 counts as 1.
    #[must_use]
    #[inline]
    pub fn max_workers(mut self, workers: usize) -> Self {
        self.max_workers = Some(workers);
        self
    }

    /// Sets the quantity that the call minimises: latency or CPU time.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Execution, Goal, Reduction, Scatter, TensorView, TensorViewMut};
    ///
    /// // One of many threads that serve requests. The call uses no other thread.
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

    /// Chooses schedules and variants of kernels for `machine`, instead of the [current
    /// machine](Machine::current) of the process.
    #[must_use]
    #[inline]
    pub fn machine(mut self, machine: &'p Machine) -> Self {
        self.machine = Some(machine);
        self
    }

    /// For tests and measurements: forces a schedule.
    ///
    /// The serial schedule runs instead if the forced schedule cannot run the call, or would not
    /// give the bits of the sequential loop. For means, reductions without the existing value, and
    /// wide sums ([`Accumulate::Wide`](crate::Accumulate::Wide) of f16 or bf16),
    /// [`Schedule::Grouped`] replaces every forced schedule, because no other schedule gives their
    /// results.
    #[must_use]
    #[inline]
    pub fn force_schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = Some(schedule);
        self
    }

    /// For tests and measurements: forces an instruction set. If the machine lacks this instruction
    /// set, the call uses the best instruction set that the machine has.
    #[must_use]
    #[inline]
    pub fn force_instruction_set(mut self, instruction_set: InstructionSet) -> Self {
        self.instruction_set = Some(instruction_set);
        self
    }

    /// Returns the workers of a call that is alone on the pool.
    pub(crate) fn workers(&self) -> Workers<'p> {
        let mut workers = Workers::new(self.pool, self.max_workers).with_machine(self.machine);
        workers.goal = self.goal;
        workers
    }

    /// Begins a call. The call shares the workers of the pool with all other calls that are running
    /// on the pool.
    pub(crate) fn begin(&self) -> Call<'p> {
        Call::begin(self.workers())
    }

    /// Returns the machine that schedules and variants of kernels are chosen for.
    pub(crate) fn machine_in_use(&self) -> &'p Machine {
        self.machine.unwrap_or_else(|| Machine::current())
    }

    /// Returns the forced instruction set, or the highest instruction set of the crate. The machine
    /// may lack the returned instruction set. Every user of the value therefore limits it to the
    /// instruction sets of the machine, and this function does not query the machine.
    #[inline]
    pub(crate) fn instructions(&self) -> InstructionSet {
        self.instruction_set.unwrap_or(InstructionSet::LAST)
    }
}
