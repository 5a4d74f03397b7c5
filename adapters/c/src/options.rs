//! The options of a call: the C struct, its checks, and its conversion to options of the crate
//! `ndscatter`.
//!
//! This file converts the number that C passes for an option to the value of the option, for
//! example 1 to the reduction add. This file does not depend on tensors.

use ndscatter::{
    Accumulate, Bounds, Duplicates, Execution, Gather, Goal, MoveRows, NoneGradient, Operator,
    Pool, Reduction, Scatter, ScatterError,
};

use crate::failure::Failure;
use crate::structs::{self, Sized32};
use crate::threads::{Threads, nds_pool};

/// Options of a call. The caller must set `size`. A field that is 0 or null selects the default of
/// its option. A null pointer to nds_options selects all defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct nds_options {
    /// Size of this struct in bytes: sizeof(nds_options) in the header that the caller was compiled
    /// with. The library uses the defaults for fields beyond this size.
    pub size: u32,
    /// Reduction: a value of nds_reduction.
    pub reduction: i32,
    /// Treatment of an index out of bounds: a value of nds_bounds.
    pub bounds: i32,
    /// 0: negative indices count from the end. 1: negative indices are out of bounds. Slots of a
    /// paged cache never count from the end: if bounds is NDS_BOUNDS_ERROR and this field is 0,
    /// negative slots are skipped, as with NDS_BOUNDS_SKIP_NEGATIVE.
    pub forbid_negative: i32,
    /// 0: the reduction of a destination includes the value of data at this destination. 1: the
    /// reduction excludes this value.
    pub exclude_self: i32,
    /// Type in which the values of float16 and bfloat16 are accumulated: a value of nds_accumulate.
    pub accumulate: i32,
    /// 0: several tuples may have the same destination. 1: the call fails if two tuples have the
    /// same destination.
    pub reject_duplicates: i32,
    /// Limit of the threads that run the call. 0: all threads of the pool. 1: only the calling
    /// thread. n: at most n threads of the pool.
    pub max_threads: i32,
    /// Thread pool of the host that runs the call. If null, the thread pool of the library runs the
    /// call.
    pub pool: *const nds_pool,
    /// Updates that receive a gradient in a scatter without a reduction: a value of
    /// nds_none_gradient.
    pub none_gradient: i32,
    /// The library ignores this field. In older headers, these bytes are padding and may have any
    /// values.
    pub reserved: i32,
    /// Use of the pool's threads: a value of nds_goal. No result depends on this field.
    pub goal: i32,
}

// SAFETY: the struct is `repr(C)` and begins with its size. Its fields are integers and a nullable
// 64-bit pointer, so any bytes are valid field values. Each offset in `ENDS` is the end of a field.
// The last field ends at byte 52, and only padding follows it.
unsafe impl Sized32 for nds_options {
    const NAME: &'static str = "nds_options";
    const ENDS: &'static [usize] = &[4, 8, 12, 16, 20, 24, 28, 32, 40, 44, 48, 52];
}

/// The goals of calls, at the positions of the values of `nds_goal`.
pub(crate) const GOALS: [Option<Goal>; 3] = [None, Some(Goal::Latency), Some(Goal::Throughput)];

/// Options of a call after their check.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) reduction: Reduction,
    include_self: bool,
    accumulate: Accumulate,
    bounds: Bounds,
    negative_indices: bool,
    duplicates: Duplicates,
    none_gradient: NoneGradient,
    max_workers: Option<usize>,
    goal: Option<Goal>,
    pub(crate) threads: Threads,
}

impl Options {
    /// Reads and checks the options that C passes. A null pointer selects all defaults.
    ///
    /// # Safety
    ///
    /// `options` is null or points to readable memory of the size that its field `size` declares.
    /// Its field `pool` satisfies the safety contract of [`Threads::new`].
    pub(crate) unsafe fn new(options: *const nds_options) -> Result<Self, Failure> {
        let given = if options.is_null() {
            structs::zero::<nds_options>()
        } else {
            // SAFETY: `options` is not null, so its bytes are readable (contract of this function).
            unsafe { structs::read(options)? }
        };
        let is_set = |name, value| one_of(name, value, [false, true]);
        let max_threads = usize::try_from(given.max_threads).map_err(|_| {
            let given = given.max_threads;
            Failure::invalid(format_args!(
                "`nds_options.max_threads` is {given}; use 0 or a positive number"
            ))
        })?;
        // C passes each option as a number. `one_of` uses this number as a position in the array of
        // all values of the option, such as `Reduction::ALL`. Position 0 holds the default. The
        // constants of the header have these positions (`values.rs`).
        Ok(Self {
            reduction: one_of("reduction", given.reduction, Reduction::ALL)?,
            include_self: !is_set("exclude_self", given.exclude_self)?,
            accumulate: one_of("accumulate", given.accumulate, Accumulate::ALL)?,
            bounds: one_of("bounds", given.bounds, Bounds::ALL)?,
            negative_indices: !is_set("forbid_negative", given.forbid_negative)?,
            duplicates: one_of(
                "reject_duplicates",
                given.reject_duplicates,
                Duplicates::ALL,
            )?,
            none_gradient: one_of("none_gradient", given.none_gradient, NoneGradient::ALL)?,
            max_workers: (max_threads > 0).then_some(max_threads),
            goal: one_of("goal", given.goal, GOALS)?,
            // SAFETY: the field `pool` satisfies the contract of `Threads::new` (contract of this
            // function).
            threads: unsafe { Threads::new(given.pool)? },
        })
    }

    /// Returns the pool, the limit of workers and the goal with which the call runs.
    pub(crate) fn execution(&self) -> Execution<'_> {
        let pool: &dyn Pool = &self.threads;
        let mut execution = Execution::new().pool(pool);
        if let Some(workers) = self.max_workers {
            execution = execution.max_workers(workers);
        }
        if let Some(goal) = self.goal {
            execution = execution.goal(goal);
        }
        execution
    }

    /// Returns a scatter with the operator `operator` and these options.
    pub(crate) fn scatter(&self, operator: Operator) -> Result<Scatter<'_>, Failure> {
        let (negative_indices, bounds) = self.rules(operator);
        Ok(Scatter::new(operator)?
            .reduction(self.reduction)
            .include_self(self.include_self)
            .accumulate(self.accumulate)
            .duplicates(self.duplicates)
            .negative_indices(negative_indices)
            .bounds(bounds)
            .none_gradient(self.none_gradient)
            .execution(self.execution()))
    }

    /// Returns a gather with the operator `operator` and these options. Fails if
    /// `reject_duplicates` is 1 or `reduction` is not none, because a gather does not have these
    /// options.
    pub(crate) fn gather(&self, operator: Operator) -> Result<Gather<'_>, Failure> {
        if self.duplicates == Duplicates::Reject {
            return Err(refused("reject_duplicates"));
        }
        self.refuse_reduction()?;
        let (negative_indices, bounds) = self.rules(operator);
        Ok(Gather::new(operator)?
            .negative_indices(negative_indices)
            .bounds(bounds)
            .execution(self.execution()))
    }

    /// Returns moves of the rows that `moves` selects, with these options. Fails if `reduction` is
    /// not none.
    pub(crate) fn moves<'a>(&'a self, moves: MoveRows<'a>) -> Result<MoveRows<'a>, Failure> {
        self.refuse_reduction()?;
        Ok(moves
            .duplicates(self.duplicates)
            .bounds(self.bounds)
            .execution(self.execution()))
    }

    /// Fails if `reduction` is not none, for functions without reductions.
    pub(crate) fn refuse_reduction(&self) -> Result<(), Failure> {
        match self.reduction {
            Reduction::None => Ok(()),
            _ => Err(refused("reduction")),
        }
    }

    /// Returns whether negative indices count from the end, and the rule for indices that are out
    /// of bounds. With the default options, negative slots of a paged cache are skipped.
    fn rules(&self, operator: Operator) -> (bool, Bounds) {
        match (operator, self.bounds) {
            (Operator::Paged, Bounds::Error) if self.negative_indices => {
                (false, Bounds::SkipNegative)
            }
            (Operator::Paged, bounds) => (false, bounds),
            (_, bounds) => (self.negative_indices, bounds),
        }
    }
}

/// Returns the failure for an option that a function does not have.
fn refused(option: &'static str) -> Failure {
    ScatterError::UnsupportedOption { option }.into()
}

/// Returns `meanings[value]`: the value of the option `name` for the number `value` that C passes.
/// Fails if `value` is not a position of `meanings`.
pub(crate) fn one_of<T: Copy, const N: usize>(
    name: &'static str,
    value: i32,
    meanings: [T; N],
) -> Result<T, Failure> {
    let meaning = usize::try_from(value)
        .ok()
        .and_then(|value| meanings.get(value));
    meaning
        .copied()
        .ok_or_else(|| Failure::invalid(format_args!("`{name}` is {value}; use 0 to {}", N - 1)))
}
