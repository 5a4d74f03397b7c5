//! Options of calls: valid and invalid structs, and what they mean.

use std::ffi::c_void;
use std::mem::offset_of;

use arbitrary::Unstructured;
use ndscatter::{Accumulate, Bounds, Duplicates, NoneGradient, Reduction};
use ndscatter_c::{nds_options, nds_pool};

/// The meaning of valid options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meaning {
    pub(crate) reduction: Reduction,
    pub(crate) include_self: bool,
    pub(crate) accumulate: Accumulate,
    pub(crate) bounds: Bounds,
    pub(crate) negative_indices: bool,
    pub(crate) duplicates: Duplicates,
    pub(crate) none_gradient: NoneGradient,
}

impl Meaning {
    const DEFAULT: Self = Self {
        reduction: Reduction::None,
        include_self: true,
        accumulate: Accumulate::Native,
        bounds: Bounds::Error,
        negative_indices: true,
        duplicates: Duplicates::Allow,
        none_gradient: NoneGradient::LastWrite,
    };
}

/// Options that a caller passes: null, or bytes that the struct occupies.
#[derive(Debug)]
pub(crate) struct Given {
    bytes: Option<Vec<u8>>,
    pool: Option<Box<nds_pool>>,
    /// `None`: the library must refuse the options.
    pub(crate) meaning: Option<Meaning>,
}

/// Size of the struct.
const WHOLE: usize = size_of::<nds_options>();

/// Sizes that callers with older headers pass.
const OLDER: [usize; 12] = [4, 8, 12, 16, 20, 24, 28, 32, 40, 44, 48, 52];

/// Offset and largest value of each field that is an integer. The library never reads `reserved`.
const FIELDS: [(usize, i32); 10] = [
    (offset_of!(nds_options, reduction), 6),
    (offset_of!(nds_options, bounds), 3),
    (offset_of!(nds_options, forbid_negative), 1),
    (offset_of!(nds_options, exclude_self), 1),
    (offset_of!(nds_options, accumulate), 1),
    (offset_of!(nds_options, reject_duplicates), 1),
    (offset_of!(nds_options, max_threads), i32::MAX),
    (offset_of!(nds_options, none_gradient), 1),
    (offset_of!(nds_options, goal), 2),
    (offset_of!(nds_options, reserved), i32::MAX),
];
const RESERVED: usize = 9;

impl Meaning {
    /// Returns the meaning of the fields below `size`. `None`: a field has no such value.
    fn of(fields: [i32; 10], size: usize) -> Option<Self> {
        // A field beyond the size has its default.
        let seen: [_; 10] = std::array::from_fn(|at| match FIELDS[at].0 < size {
            true => fields[at],
            false => 0,
        });
        let is_valid = |at: usize| at == RESERVED || (0..=FIELDS[at].1).contains(&seen[at]);
        let pick = |at: usize| usize::try_from(seen[at]).unwrap_or(0);
        (0..10).all(is_valid).then(|| Self {
            reduction: Reduction::ALL[pick(0)],
            bounds: Bounds::ALL[pick(1)],
            negative_indices: seen[2] == 0,
            include_self: seen[3] == 0,
            accumulate: Accumulate::ALL[pick(4)],
            duplicates: Duplicates::ALL[pick(5)],
            none_gradient: NoneGradient::ALL[pick(7)],
        })
    }
}

impl Given {
    pub(crate) fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        if u.ratio(1, 4)? {
            let meaning = Some(Meaning::DEFAULT);
            return Ok(Self {
                bytes: None,
                pool: None,
                meaning,
            });
        }
        let invalid = u.ratio(1, 4)?;
        let (pool, mut fields) = (pool(u, invalid)?, [0; 10]);
        for (field, (_, limit)) in fields.iter_mut().zip(FIELDS) {
            if u.ratio(1, 3)? {
                *field = u.int_in_range(0..=limit.min(9))?;
            }
        }
        if invalid {
            let at = u.choose_index(fields.len())?;
            fields[at] = u.arbitrary()?;
        }
        let (bytes, size) = sized(u, stored(fields, pool.as_deref()))?;
        let is_pool_valid = pool.as_ref().is_none_or(|pool| {
            pool.size as usize == size_of::<nds_pool>() && pool.parallel_for.is_some()
        });
        let is_pool_read = size > offset_of!(nds_options, pool);
        let beyond = bytes.get(WHOLE..).unwrap_or_default();
        let is_valid = (OLDER.contains(&size) || size >= WHOLE)
            && beyond.iter().all(|&byte| byte == 0)
            && (is_pool_valid || !is_pool_read);
        let meaning = Meaning::of(fields, size).filter(|_| is_valid);
        Ok(Self {
            bytes: Some(bytes),
            pool,
            meaning,
        })
    }

    /// Returns the pointer that the caller passes.
    pub(crate) fn raw(&self) -> *const nds_options {
        let bytes = self.bytes.as_ref();
        bytes.map_or(std::ptr::null(), |bytes| bytes.as_ptr().cast())
    }

    /// Whether the pool reports a failure. The status is then `NDS_INTERNAL`.
    pub(crate) fn has_failing_pool(&self) -> bool {
        (self.pool.as_ref()).is_some_and(|pool| !pool.ctx.is_null())
    }
}

/// Returns the bytes of the struct with a size of 0.
fn stored(fields: [i32; 10], pool: Option<&nds_pool>) -> Vec<u8> {
    let mut bytes = vec![0; WHOLE];
    for (value, (at, _)) in fields.into_iter().zip(FIELDS) {
        bytes[at..][..4].copy_from_slice(&value.to_ne_bytes());
    }
    let pool = pool.map_or(std::ptr::null(), std::ptr::from_ref);
    let place = &mut bytes[offset_of!(nds_options, pool)..][..size_of_val(&pool)];
    // SAFETY: `place` has the size of a pointer. The bytes of the pointer are copied as a pointer, so
    // that it keeps its provenance.
    unsafe {
        place
            .as_mut_ptr()
            .cast::<*const nds_pool>()
            .write_unaligned(pool)
    };
    bytes
}

/// Draws a size, and returns the bytes of the struct with this size.
fn sized(u: &mut Unstructured<'_>, mut bytes: Vec<u8>) -> arbitrary::Result<(Vec<u8>, usize)> {
    let size = match u.int_in_range(0..=7)? {
        0 => *u.choose(&OLDER)?,
        1 => WHOLE + u.int_in_range(0..=16)?,
        2 => u.int_in_range(0..=WHOLE)?,
        _ => WHOLE,
    };
    bytes.resize(WHOLE.max(size), 0);
    bytes[..4].copy_from_slice(&u32::try_from(size).expect("a small size").to_ne_bytes());
    if u.ratio(1, 2)? {
        // The library ignores the padding, and refuses other bytes than 0 beyond the struct.
        let end = u.int_in_range(52..=bytes.len())?;
        bytes[52..end].fill(7);
    }
    bytes.truncate(size.max(4));
    bytes.shrink_to_fit();
    Ok((bytes, size))
}

fn pool(u: &mut Unstructured<'_>, invalid: bool) -> arbitrary::Result<Option<Box<nds_pool>>> {
    if u.ratio(1, 2)? {
        return Ok(None);
    }
    let fails = u.ratio(1, 8)?;
    let mut pool = nds_pool {
        size: u32::try_from(size_of::<nds_pool>()).expect("a small size"),
        workers: u.int_in_range(0..=9)?,
        ctx: std::ptr::without_provenance_mut(usize::from(fails)),
        parallel_for: Some(run_all),
    };
    if invalid && u.arbitrary()? {
        match u.arbitrary()? {
            true => pool.parallel_for = None,
            false => pool.size = u.int_in_range(0..=pool.size)?,
        }
    }
    Ok(Some(Box::new(pool)))
}

/// Runs all tasks, the last task first. Reports a failure if `ctx` is not null.
unsafe extern "C" fn run_all(
    ctx: *mut c_void,
    tasks: usize,
    task: Option<unsafe extern "C" fn(argument: *mut c_void, index: usize)>,
    argument: *mut c_void,
) -> i32 {
    let task = task.expect("the library passes a function");
    for index in (0..tasks).rev() {
        // SAFETY: the library allows one call for each index below `tasks`.
        unsafe { task(argument, index) };
    }
    i32::from(!ctx.is_null())
}
