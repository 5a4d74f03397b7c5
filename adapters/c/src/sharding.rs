//! The C functions for tables whose rows are divided among several owners, such as processes.
//!
//! This file reads the struct of a division, and makes one call of the crate `ndscatter`. The lists of
//! a plan are given to C without a copy. This file does not know the transport between the owners.

use ndscatter::{
    AnyView, DType, Operator, Packing, Reduction, ScatterError, ShardedPlan, Sharding,
};
use ndscatter_host::dlpack::DLTensor;

use crate::boundary;
use crate::dlpack::{self, Description};
use crate::failure::Failure;
use crate::memory::{boxed, with_room};
use crate::operators::Request::{self, Along, Nd, Paged};
use crate::options::{Options, nds_options, one_of};
use crate::status::nds_status;
use crate::structs::{self, Sized32};
use crate::values::nds_sharding_rule::{
    self, NDS_SHARDING_BLOCKS, NDS_SHARDING_MODULO, NDS_SHARDING_STARTS,
};

/// Division of the rows of a table among parts. Each row has one owner: the part that stores the row.
/// The caller must set `size` and `parts`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct nds_sharding {
    /// Size of this struct in bytes: sizeof(nds_sharding).
    pub size: u32,
    /// Rule of the division: a value of nds_sharding_rule.
    pub rule: i32,
    /// Number of parts, from 1 to 2^32 - 1.
    pub parts: usize,
    /// For NDS_SHARDING_STARTS: the first row of each part, an array of `parts` numbers. The first
    /// number is 0, and no number is less than the number before it. For the other rules: null.
    pub starts: *const i64,
}

// SAFETY: the struct is `repr(C)` and begins with its size. Its fields are integers and a nullable
// 64-bit pointer, so any bytes are valid field values. `ENDS` is empty.
unsafe impl Sized32 for nds_sharding {
    const NAME: &'static str = "nds_sharding";
    const ENDS: &'static [usize] = &[];
}

/// Reads and checks a division.
///
/// # Safety
///
/// `sharding` is null or valid, as docs/c.md requires.
unsafe fn read(sharding: *const nds_sharding) -> Result<Sharding, Failure> {
    if sharding.is_null() {
        return Err(Failure::invalid(format_args!("`sharding` is null")));
    }
    // SAFETY: `sharding` is not null, so the struct is readable (contract of this function).
    let given = unsafe { structs::read(sharding)? };
    let rule = one_of("nds_sharding.rule", given.rule, nds_sharding_rule::ALL)?;
    if rule != NDS_SHARDING_STARTS && !given.starts.is_null() {
        return Err(Failure::invalid(format_args!(
            "`nds_sharding.starts` is not null; only the rule NDS_SHARDING_STARTS has starts"
        )));
    }
    Ok(match rule {
        NDS_SHARDING_BLOCKS => Sharding::blocks(given.parts)?,
        NDS_SHARDING_MODULO => Sharding::modulo(given.parts)?,
        // SAFETY: `starts` is null, or has `parts` numbers (contract of this function).
        NDS_SHARDING_STARTS => Sharding::starts(&unsafe { starts_of(&given)? })?,
    })
}

/// Copies the first rows of the parts.
///
/// # Safety
///
/// `given.starts` is null, or points to `given.parts` numbers that do not change during the call.
unsafe fn starts_of(given: &nds_sharding) -> Result<Vec<usize>, Failure> {
    let nds_sharding { parts, starts, .. } = *given;
    if starts.is_null() || !starts.is_aligned() {
        return Err(Failure::invalid(format_args!(
            "`nds_sharding.starts` is null or not aligned"
        )));
    }
    if u32::try_from(parts).is_err() {
        // The number may be wrong, so the array is not read.
        return Err(ScatterError::PartCount { parts }.into());
    }
    // SAFETY: the array is aligned and not null, so it has `parts` numbers (contract of this
    // function). Their size in bytes fits in `isize`, because `parts` has 32 bits (checked above).
    let given = unsafe { std::slice::from_raw_parts(starts, parts) };
    let mut copied = with_room(parts)?;
    for &start in given {
        copied.push(number("nds_sharding.starts", start)?);
    }
    Ok(copied)
}

/// Returns the number `value` of C as a row or the number of a part.
fn number(name: &'static str, value: i64) -> Result<usize, Failure> {
    usize::try_from(value).map_err(|_| {
        Failure::invalid(format_args!(
            "`{name}` is {value}; use 0 or a positive number"
        ))
    })
}

/// Returns a row or the number of a part as a number of C.
fn given_number(value: usize) -> i64 {
    // Rows and parts are less than a number that C has passed as `i64` or that has 32 bits.
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Writes the number of rows that the part `part` has of a table of `rows` rows to *count. The number
/// is 0 if there is no such part.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_sharding_rows(
    sharding: *const nds_sharding,
    part: i64,
    rows: i64,
    count: *mut i64,
) -> nds_status {
    boundary::cross(|| {
        // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
        unsafe {
            let sharding = read(sharding)?;
            let counted = sharding.rows_of(number("part", part)?, number("rows", rows)?);
            boundary::write_result("count", count, given_number(counted))
        }
    })
}

/// Writes the part that has the row `row` of a table of `rows` rows to *part, and the position of the
/// row in this part to *local.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_sharding_owner(
    sharding: *const nds_sharding,
    row: i64,
    rows: i64,
    part: *mut i64,
    local: *mut i64,
) -> nds_status {
    boundary::cross(|| {
        // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
        unsafe {
            let owner = read(sharding)?.owner(number("row", row)?, number("rows", rows)?);
            let (owner, position) = owner.ok_or_else(|| {
                Failure::invalid(format_args!("a table of {rows} rows has no row {row}"))
            })?;
            if local.is_null() {
                return Err(Failure::invalid(format_args!("`local` is null")));
            }
            boundary::write_result("part", part, given_number(owner))?;
            boundary::write_result("local", local, given_number(position))
        }
    })
}

/// Writes the row of the table that is row `local` of the part `part` to *row. The table has `rows`
/// rows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_sharding_row(
    sharding: *const nds_sharding,
    part: i64,
    local: i64,
    rows: i64,
    row: *mut i64,
) -> nds_status {
    boundary::cross(|| {
        // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
        unsafe {
            let sharding = read(sharding)?;
            let position = number("local", local)?;
            let found = sharding.row(number("part", part)?, position, number("rows", rows)?);
            let found = found
                .ok_or_else(|| Failure::invalid(format_args!("part {part} has no row {local}")))?;
            boundary::write_result("row", row, given_number(found))
        }
    })
}

/// The tuples of one sender, split by the parts of a table that have their destinations. Several
/// threads may use one plan at the same time.
#[derive(Debug)]
pub struct nds_sharded_plan(ShardedPlan);

/// The lists of a sharded plan. The plan has a list of entries in the order of the parts. Before a
/// call of nds_sharded_plan_lists, set `size` to sizeof(nds_sharded_lists). The lists belong to the
/// plan, and are valid until nds_sharded_plan_free.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct nds_sharded_lists {
    /// sizeof(nds_sharded_lists), as the caller's header defines it.
    pub size: u32,
    /// If slots is not null: the reduction that combines the updates of an entry, a value of
    /// nds_reduction. Otherwise NDS_REDUCTION_NONE.
    pub reduction: i32,
    /// Number of parts.
    pub parts: usize,
    /// Number of all entries.
    pub entries: usize,
    /// Number of all tuples, with skipped tuples.
    pub tuples: usize,
    /// Number of tuples that the rule for bounds has skipped. No entry has such a tuple.
    pub skipped: usize,
    /// Number of entries of each part.
    pub counts: *const usize,
    /// For each entry, the number of its destination among the slices of its part.
    pub destinations: *const i64,
    /// For each entry, its tuple. Null if slots is not null.
    pub order: *const i64,
    /// For each tuple, its entry, or -1 for a skipped tuple. Null if each entry has one tuple: if
    /// combine is 0, and in a scatter without a reduction, which sends the last update of a
    /// destination.
    pub slots: *const i64,
}

// SAFETY: the struct is `repr(C)` and begins with its size. Its fields are integers and nullable
// 64-bit pointers, so any bytes are valid field values. `ENDS` is empty.
unsafe impl Sized32 for nds_sharded_lists {
    const NAME: &'static str = "nds_sharded_lists";
    const ENDS: &'static [usize] = &[];
}

impl nds_sharded_lists {
    fn new(plan: &ShardedPlan) -> Self {
        let (order, slots, reduction) = match plan.packing() {
            Packing::Gather { order } => (order.as_ptr(), std::ptr::null(), Reduction::None),
            Packing::Scatter { slots, reduction } => (std::ptr::null(), slots.as_ptr(), reduction),
        };
        // `values.rs` checks that the constants of C are the positions of the reductions.
        let reduction = (0..)
            .zip(Reduction::ALL)
            .find(|&(_, each)| each == reduction);
        Self {
            size: 0,
            reduction: reduction.map_or(0, |(position, _)| position),
            parts: plan.parts(),
            entries: plan.destinations().len(),
            tuples: plan.tuples(),
            skipped: plan.skipped(),
            counts: plan.counts().as_ptr(),
            destinations: plan.destinations().as_ptr(),
            order,
            slots,
        }
    }
}

/// The arguments of a plan, after their check.
struct Call<'a> {
    operator: Operator,
    data: Description<'a>,
    indices: AnyView<'a>,
    sharding: Sharding,
    combine: bool,
}

fn scatter(call: &Call<'_>, options: &Options) -> Result<ShardedPlan, Failure> {
    let (scatter, shape) = (options.scatter(call.operator)?, call.data.layout.shape());
    let is_difference = options.reduction == Reduction::Sub;
    if call.combine && is_difference && call.data.element.dtype == DType::Bool {
        // The updates of a difference are combined with add. For booleans, sub is `xor`, and add
        // is `or`.
        return Err(ScatterError::UnsupportedOption { option: "combine" }.into());
    }
    Ok(match call.combine {
        true => scatter.shard_combined(shape, call.indices, &call.sharding)?,
        false => scatter.shard(shape, call.indices, &call.sharding)?,
    })
}

fn gather(call: &Call<'_>, options: &Options) -> Result<ShardedPlan, Failure> {
    let (gather, shape) = (options.gather(call.operator)?, call.data.layout.shape());
    Ok(match call.combine {
        true => gather.shard_combined(shape, call.indices, &call.sharding)?,
        false => gather.shard(shape, call.indices, &call.sharding)?,
    })
}

/// Makes a plan with `make_plan` and writes a pointer to the plan to `*plan`. Writes null to `*plan`
/// if the plan cannot be made.
///
/// # Safety
///
/// Every pointer is null or valid, as docs/c.md requires.
unsafe fn make(
    make_plan: fn(&Call<'_>, &Options) -> Result<ShardedPlan, Failure>,
    request: Request,
    [data, indices]: [*const DLTensor; 2],
    (sharding, combine): (*const nds_sharding, i32),
    options: *const nds_options,
    plan: *mut *mut nds_sharded_plan,
) -> nds_status {
    boundary::cross(|| {
        // SAFETY: all pointers are null or valid, and the memory of `indices` is valid during the
        // call (contract of this function).
        unsafe {
            boundary::write_result("plan", plan, std::ptr::null_mut())?;
            let options = Options::new(options)?;
            let call = Call {
                combine: one_of("combine", combine, [false, true])?,
                sharding: read(sharding)?,
                data: dlpack::description("data", data)?,
                indices: dlpack::view("indices", indices)?,
                operator: request.operator()?,
            };
            let made = make_plan(&call, &options);
            options.threads.check()?;
            let made = boxed(nds_sharded_plan(made?))?;
            boundary::write_result("plan", plan, Box::into_raw(made))
        }
    })
}

/// Splits the tuples of nds_scatter_update along axis 0 by the parts of a table. The tensor data
/// describes the whole table: the call reads its shape, and data->data may be null. If combine is 0,
/// the plan has one entry for each tuple that is not skipped. If combine is 1, the plan has one entry
/// for each destination, and the updates of a destination are combined before they are sent. For
/// floats and complex numbers, this changes the rounding errors of NDS_REDUCTION_ADD,
/// NDS_REDUCTION_SUB and NDS_REDUCTION_MUL. NDS_REDUCTION_MEAN, and NDS_REDUCTION_SUB of booleans,
/// cannot be combined.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_shard_scatter_update(
    data: *const DLTensor,
    indices: *const DLTensor,
    sharding: *const nds_sharding,
    combine: i32,
    options: *const nds_options,
    plan: *mut *mut nds_sharded_plan,
) -> nds_status {
    let (rows, division) = (Along { axis: 0 }, (sharding, combine));
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { make(scatter, rows, [data, indices], division, options, plan) }
}

/// Splits the tuples of nds_scatter_nd by the parts of a table. The description of
/// nds_shard_scatter_update also applies to this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_shard_scatter_nd(
    data: *const DLTensor,
    indices: *const DLTensor,
    sharding: *const nds_sharding,
    combine: i32,
    options: *const nds_options,
    plan: *mut *mut nds_sharded_plan,
) -> nds_status {
    let (tuples, division) = (Nd { batch_dims: 0 }, (sharding, combine));
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { make(scatter, tuples, [data, indices], division, options, plan) }
}

/// Splits the slots of nds_scatter_paged by the parts of a table. The rows of the table are its
/// blocks. The description of nds_shard_scatter_update also applies to this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_shard_scatter_paged(
    data: *const DLTensor,
    indices: *const DLTensor,
    sharding: *const nds_sharding,
    combine: i32,
    options: *const nds_options,
    plan: *mut *mut nds_sharded_plan,
) -> nds_status {
    let division = (sharding, combine);
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { make(scatter, Paged, [data, indices], division, options, plan) }
}

/// Splits the tuples of nds_gather along axis 0 by the parts of a table. The tensor data describes the
/// whole table: the call reads its shape, and data->data may be null. If combine is 0, the plan has
/// one entry for each tuple that is not skipped. If combine is 1, the plan has one entry for each
/// destination, and several tuples use one answer. This does not change the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_shard_gather(
    data: *const DLTensor,
    indices: *const DLTensor,
    sharding: *const nds_sharding,
    combine: i32,
    options: *const nds_options,
    plan: *mut *mut nds_sharded_plan,
) -> nds_status {
    let (rows, division) = (Along { axis: 0 }, (sharding, combine));
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { make(gather, rows, [data, indices], division, options, plan) }
}

/// Splits the tuples of nds_gather_nd by the parts of a table. The description of nds_shard_gather
/// also applies to this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_shard_gather_nd(
    data: *const DLTensor,
    indices: *const DLTensor,
    sharding: *const nds_sharding,
    combine: i32,
    options: *const nds_options,
    plan: *mut *mut nds_sharded_plan,
) -> nds_status {
    let (tuples, division) = (Nd { batch_dims: 0 }, (sharding, combine));
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { make(gather, tuples, [data, indices], division, options, plan) }
}

/// Splits the slots of nds_gather_paged by the parts of a table. The rows of the table are its
/// blocks. The description of nds_shard_gather also applies to this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_shard_gather_paged(
    data: *const DLTensor,
    indices: *const DLTensor,
    sharding: *const nds_sharding,
    combine: i32,
    options: *const nds_options,
    plan: *mut *mut nds_sharded_plan,
) -> nds_status {
    let division = (sharding, combine);
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { make(gather, Paged, [data, indices], division, options, plan) }
}

/// Writes the sizes of a sharded plan and pointers to its lists to *lists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_sharded_plan_lists(
    plan: *const nds_sharded_plan,
    lists: *mut nds_sharded_lists,
) -> nds_status {
    boundary::cross(|| {
        // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
        unsafe {
            let plan = plan
                .as_ref()
                .ok_or_else(|| Failure::invalid(format_args!("`plan` is null")))?;
            structs::write("lists", lists, nds_sharded_lists::new(&plan.0))
        }
    })
}

/// Frees a sharded plan. During and after this call, no thread may use the plan or its lists. If plan
/// is null, the call does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_sharded_plan_free(plan: *mut nds_sharded_plan) {
    let _ = boundary::cross(|| {
        if !plan.is_null() {
            // SAFETY: `make` created the pointer with `Box::into_raw`. The caller frees each plan at
            // most once (docs/c.md).
            drop(unsafe { Box::from_raw(plan) });
        }
        Ok(())
    });
}
