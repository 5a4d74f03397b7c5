//! The options of a call: the C struct, its checks, and their conversion to options of the crate.
//!
//! This module knows the number that C passes for each value of an option, such as 1 for the
//! reduction add. It knows nothing of tensors.

use ndscatter::{
    Accumulate, Bounds, Duplicates, Execution, Gather, Goal, NoneGradient, Operator, Pool,
    Reduction, Scatter,
};

use crate::failure::Failure;
use crate::structs::{self, Sized32};
use crate::threads::{Threads, nds_pool};

/// Options of a call. Set `size`. A field that is 0 or null has its default. A null pointer to
/// options selects all defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct nds_options {
    /// sizeof(nds_options) in the caller's header. Fields beyond it have their defaults.
    pub size: u32,
    /// Reduction: 0 none, 1 add, 2 sub, 3 mul, 4 min, 5 max, 6 mean.
    pub reduction: i32,
    /// Treatment of indices out of bounds: 0 error, 1 skip, 2 clamp.
    pub bounds: i32,
    /// 0: negative indices count from the end. 1: negative indices are out of bounds.
    pub forbid_negative: i32,
    /// 0: the existing value takes part in the reduction. 1: it does not.
    pub exclude_self: i32,
    /// Accumulator of float16 and bfloat16: 0 the element type, 1 float32.
    pub accumulate: i32,
    /// 0: duplicates are allowed. 1: two tuples with the same destination are an error.
    pub reject_duplicates: i32,
    /// 0: all threads of the pool. 1: the calling thread. n: at most n threads of the pool.
    pub max_threads: i32,
    /// Pool of the host. Null: the pool of the library.
    pub pool: *const nds_pool,
    /// Gradient of a scatter without a reduction: 0 for the last update of a destination, 1 for
    /// every duplicate.
    pub none_gradient: i32,
    /// Never read. Callers with an older header have padding here, which may hold any bytes.
    pub reserved: i32,
    /// 0: concurrent calls share the pool's threads. 1, latency: the call uses all threads that it
    /// may use. 2, throughput: the call runs on the calling thread. No result depends on the goal.
    pub goal: i32,
}

// SAFETY: the struct is `repr(C)` and begins with its size. Its fields are integers and a nullable
// pointer of 64 bits, so any bytes are valid. Only padding follows the last field.
unsafe impl Sized32 for nds_options {
    const NAME: &'static str = "nds_options";
    const ENDS: &'static [usize] = &[4, 8, 12, 16, 20, 24, 28, 32, 40, 44, 48, 52];
}

/// Checked options.
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
    /// `options` is null or points to readable memory of the size that its `size` declares. Its
    /// pool satisfies the contract of [`Threads::new`].
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
        // C passes the value of an option as a number. This number is the position of the value in
        // the array of all values that the calls of `one_of` below pass, such as `Reduction::ALL`.
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
            goal: one_of(
                "goal",
                given.goal,
                [None, Some(Goal::Latency), Some(Goal::Throughput)],
            )?,
            // SAFETY: the pool satisfies the contract of `Threads::new` (contract of this
            // function).
            threads: unsafe { Threads::new(given.pool)? },
        })
    }

    /// Returns the pool and the number of workers that run the call.
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

    /// Returns the scatter of `operator` with these options.
    pub(crate) fn scatter(&self, operator: Operator) -> Result<Scatter<'_>, Failure> {
        Ok(Scatter::new(operator)?
            .reduction(self.reduction)
            .include_self(self.include_self)
            .accumulate(self.accumulate)
            .duplicates(self.duplicates)
            .negative_indices(self.negative_indices)
            .bounds(self.bounds)
            .none_gradient(self.none_gradient)
            .execution(self.execution()))
    }

    /// Returns the gather of `operator` with these options. Fails for options that a gather does
    /// not have: `reject_duplicates` and `reduction`.
    pub(crate) fn gather(&self, operator: Operator) -> Result<Gather<'_>, Failure> {
        let refused = |option| Err(ndscatter::ScatterError::UnsupportedOption { option }.into());
        if self.duplicates == Duplicates::Reject {
            return refused("reject_duplicates");
        }
        if self.reduction != Reduction::None {
            return refused("reduction");
        }
        Ok(Gather::new(operator)?
            .negative_indices(self.negative_indices)
            .bounds(self.bounds)
            .execution(self.execution()))
    }
}

/// Returns `meanings[value]`: the option's value for the number `value` that C passes.
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
