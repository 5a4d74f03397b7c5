//! Conversion of tuples of coordinates, one array per axis, to positions along one merged axis.
//!
//! Knows integers and sizes. Does not know the indexed array.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use ndscatter::{DType, Pool};
use smallvec::SmallVec;

use crate::array::Line;

/// Runs a block with `$type` as the Rust type of an integer dtype. Booleans are `u8`.
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

/// Number of tuples that are converted at a time, so that their positions stay in the L1 cache.
const BLOCK: usize = 1024;

/// Smallest number of tuples per thread.
const SHARE: usize = 1 << 15;

/// The coordinates of one row of tuples. Each axis has one [`Line`] with its coordinate of each
/// tuple.
pub(crate) type Lines = SmallVec<[Line; 4]>;

/// Tuples of coordinates, which are divided into rows of `width` tuples. `row` returns the
/// coordinates of the row with a given number.
#[derive(Clone, Copy)]
pub(crate) struct Tuples<'a> {
    pub(crate) width: usize,
    pub(crate) row: &'a (dyn Fn(usize) -> Lines + Sync),
}

/// Computes the row-major positions of tuples in axes of the sizes `sizes`, and returns whether all
/// tuples are in bounds. If not, `to` has no meaning.
///
/// Negative coordinates count from the end. `to` must have one zero per tuple. Each coordinate is
/// read once.
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
    let are_inside = AtomicBool::new(true);
    let shares: Vec<_> = to.chunks_mut(share).map(Mutex::new).collect();
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
    /// Computes the positions of the tuples from number `first` on, and returns whether all are in
    /// bounds.
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

/// Extends positions by the coordinate of one more axis of size `size`: `position * size +
/// coordinate`.
fn append(line: &Line, size: isize, start: usize, block: &mut [isize]) -> bool {
    let mut is_inside = true;
    for_integers!(line.dtype(), T => {
        let mut places = block.iter_mut();
        line.read_blocks(start..start + places.len(), |values: &[T]| {
            for (&value, place) in values.iter().zip(places.by_ref()) {
                // A large unsigned value would wrap to a negative one, which may be in bounds. It
                // becomes the maximum, which is out of bounds.
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
