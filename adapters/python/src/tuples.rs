//! Conversion of tuples of coordinates to row-major positions. Each axis has one array of
//! coordinates. A position is an index along the axis that results from merging all these axes.
//!
//! This module computes with integers and sizes. The module does not depend on the indexed array.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use ndscatter::{DType, Pool};
use smallvec::SmallVec;

use crate::array::Line;

/// Runs a block in which `$type` is the Rust type of the integer dtype `$dtype`. For the dtype
/// `Bool`, `$type` is `u8`. For a dtype that is neither an integer nor `Bool`, the block does not
/// run.
macro_rules! for_integers {
    ($dtype:expr, $type:ident => $block:expr) => {
        for_integers! {
            $dtype, $type => $block,
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, Bool u8, U16 u16, U32 u32, U64 u64
        }
    };
    ($dtype:expr, $type:ident => $block:expr, $($variant:ident $rust:ty),*) => {
        match $dtype {
            $(DType::$variant => {
                type $type = $rust;
                $block
            })*
            _ => {}
        }
    };
}

pub(crate) use for_integers;

/// Number of tuples in a block. All axes of one block are converted before the next block, so the
/// positions of the block stay in the L1 cache.
const BLOCK: usize = 1024;

/// Smallest number of tuples in a task of the pool. Only the last task may have fewer.
const SHARE: usize = 1 << 15;

/// The coordinates of one row of tuples. There is one [`Line`] per axis. It has one coordinate per
/// tuple of the row.
pub(crate) type Lines = SmallVec<[Line; 4]>;

/// Tuples of coordinates, divided into rows of `width` tuples. The function `row` returns the
/// coordinates of all tuples of one row. Its argument is the number of the row.
#[derive(Clone, Copy)]
pub(crate) struct Tuples<'a> {
    pub(crate) width: usize,
    pub(crate) row: &'a (dyn Fn(usize) -> Lines + Sync),
}

/// Writes the row-major position of each tuple to `to`. `sizes` has the size of each axis.
///
/// Returns true if all coordinates are in bounds. Returns false if a coordinate is out of bounds,
/// or if the product of `sizes` exceeds `isize::MAX`. The content of `to` is then meaningless.
///
/// Negative coordinates count from the end of their axis. On entry, `to` must have one zero per
/// tuple. The function reads each coordinate only once, so another thread that changes coordinates
/// cannot cause a position that was not checked.
pub(crate) fn positions(
    tuples: Tuples<'_>,
    sizes: &[usize],
    pool: &dyn Pool,
    to: &mut [isize],
) -> bool {
    let total = (sizes.iter()).try_fold(1_usize, |all, &size| all.checked_mul(size));
    if total.is_none_or(|total| isize::try_from(total).is_err()) {
        return false;
    }
    let share = match pool.workers().unwrap_or(1) {
        0 | 1 => to.len(),
        workers => to.len().div_ceil(workers).max(SHARE),
    };
    if share >= to.len() {
        return tuples.fill(sizes, 0, to);
    }
    let mut shares = Vec::new();
    if shares.try_reserve_exact(to.len().div_ceil(share)).is_err() {
        return tuples.fill(sizes, 0, to);
    }
    shares.extend(to.chunks_mut(share).map(Mutex::new));
    let are_inside = AtomicBool::new(true);
    pool.run(shares.len(), &|number| {
        let is_inside = shares
            .get(number)
            .and_then(|part| part.lock().ok())
            .is_some_and(|mut part| tuples.fill(sizes, number * share, &mut part));
        if !is_inside {
            are_inside.store(false, Ordering::Relaxed);
        }
    });
    are_inside.into_inner()
}

impl Tuples<'_> {
    /// Writes the positions of `to.len()` tuples to `to`. The first of these tuples has the number
    /// `first`. Returns whether all their coordinates are in bounds.
    fn fill(&self, sizes: &[usize], first: usize, to: &mut [isize]) -> bool {
        let mut is_inside = true;
        let mut done = 0;
        while done < to.len() {
            let (row, start) = ((first + done) / self.width, (first + done) % self.width);
            let len = BLOCK.min(self.width - start).min(to.len() - done);
            let block = &mut to[done..done + len];
            for (line, &size) in (self.row)(row).iter().zip(sizes) {
                is_inside &= append(line, size.cast_signed(), start, block);
            }
            done += len;
        }
        is_inside
    }
}

/// Adds one more axis of size `size` to the positions in `block`: replaces each position by
/// `position * size + coordinate`. `line` has the coordinates. The coordinate of the first position
/// is number `start` of `line`. Returns whether all these coordinates are in bounds.
fn append(line: &Line, size: isize, start: usize, block: &mut [isize]) -> bool {
    let mut is_inside = true;
    for_integers!(line.dtype(), T => {
        let mut places = block.iter_mut();
        line.read_blocks(start..start + places.len(), |values: &[T]| {
            for (&value, place) in values.iter().zip(places.by_ref()) {
                // A `u64` above `i64::MAX` would wrap to a negative coordinate, which may be in
                // bounds. `unwrap_or` replaces it by the maximum, which is out of bounds.
                #[allow(
                    clippy::useless_conversion,
                    clippy::unnecessary_fallible_conversions,
                    reason = "of signed integers it is one"
                )]
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                let value = isize::try_from(value).unwrap_or(isize::MAX);
                let value = if value < 0 { value.wrapping_add(size) } else { value };
                is_inside &= value.cast_unsigned() < size.cast_unsigned();
                *place = place.wrapping_mul(size).wrapping_add(value);
            }
        });
    });
    is_inside
}
