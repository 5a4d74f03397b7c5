//! The options of a call.

use ndscatter::{
    Accumulate, Bounds, Duplicates, Execution, Gather, Goal, NoneGradient, Operator, Pool,
    Reduction, Scatter,
};

use crate::failure::Failure;
use crate::structs::{self, Sized32};
use crate::threads::{Threads, nds_pool};

/// Options of a call. All zero but for `size` is the default, and so is a null
/// pointer to options.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct nds_options {
    /// sizeof(nds_options) as the caller knows it; fields beyond it take their default.
    pub size: u32,
    /// 0 none, 1 add, 2 sub, 3 mul, 4 min, 5 max, 6 mean.
    pub reduction: i32,
    /// 0 error, 1 skip, 2 clamp.
    pub bounds: i32,
    /// 0: negative indices count from the end; 1: they are out of bounds.
    pub forbid_negative: i32,
    /// 0: the value that is there takes part in the reduction; 1: it does not.
    pub exclude_self: i32,
    /// Of float16 and bfloat16: 0 in their own type, 1 in float32.
    pub accumulate: i32,
    /// 1: two tuples with one destination are an error.
    pub reject_duplicates: i32,
    /// 0: the pool's; 1: the calling thread; n: at most n, and at most the pool's.
    pub max_threads: i32,
    /// Null: the library's own threads.
    pub pool: *const nds_pool,
    /// For gradients of a scatter without a reduction: 0 the update that stays, 1
    /// every duplicate.
    pub none_gradient: i32,
    /// Never read: callers of an older header have padding here, with anything in it.
    pub reserved: i32,
    /// 0: calls side by side share the pool's threads out; 1 latency: this one takes all
    /// that it may; 2 throughput: it runs on the calling thread. No result depends on it.
    pub goal: i32,
}

// SAFETY: `repr(C)`; integers and a pointer of 64 bits that may be null; after the
// last field there is padding at most.
unsafe impl Sized32 for nds_options {
    const NAME: &'static str = "nds_options";
    const ENDS: &'static [usize] = &[4, 8, 12, 16, 20, 24, 28, 32, 40, 44, 48, 52];
}

/// Options that have been checked.
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
    /// # Safety
    ///
    /// `options` is null or points to as many bytes as its `size` says; its
    /// pool likewise.
    pub(crate) unsafe fn new(options: *const nds_options) -> Result<Self, Failure> {
        let given = if options.is_null() {
            structs::zero::<nds_options>()
        } else {
            // SAFETY: the caller vouches for the bytes.
            unsafe { structs::read(options)? }
        };
        let is_set = |name, value| one_of(name, value, [false, true]);
        let max_threads = usize::try_from(given.max_threads).map_err(|_| {
            let given = given.max_threads;
            Failure::invalid(format_args!("`nds_options.max_threads` is {given}"))
        })?;
        // Numbers of C are positions in the order of declaration.
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
            // SAFETY: the caller vouches for the pool.
            threads: unsafe { Threads::new(given.pool)? },
        })
    }

    /// Who runs a call.
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

    /// The scatter of an operator with these options.
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

    /// The gather, which has no duplicates to reject, and nothing to reduce.
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

/// What a number of C stands for.
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
