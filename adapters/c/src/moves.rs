//! The C functions that move rows of tensors onto rows of the same tensors.
//!
//! Each function converts its arguments and makes one call of the crate `ndscatter`.

use ndscatter::MoveRows;
use ndscatter_host::dlpack::DLTensor;

use crate::boundary;
use crate::dlpack;
use crate::failure::Failure;
use crate::memory::with_room;
use crate::options::{Options, nds_options};
use crate::status::nds_status;

/// Moves the rows that `moves` selects.
///
/// # Safety
///
/// Every pointer is null or valid, as docs/c.md requires.
unsafe fn move_rows(
    moves: MoveRows<'static>,
    [from, to]: [*const DLTensor; 2],
    (tensors, count): (*const *mut DLTensor, usize),
    options: *const nds_options,
) -> nds_status {
    boundary::cross(|| {
        // SAFETY: all pointers are null or valid, and the memory of the tensors is valid during the
        // call (contract of this function). The array `tensors` is read only if it is not null.
        unsafe {
            let options = Options::new(options)?;
            let moves = options.moves(moves)?;
            if tensors.is_null() && count > 0 {
                return Err(Failure::invalid(format_args!("`tensors` is null")));
            }
            let tensor = |at| tensors.add(at).read_unaligned().cast_const();
            let lists = [("from", from), ("to", to)];
            let from = dlpack::view("from", from)?;
            let to = dlpack::view("to", to)?;
            let mut views = with_room(count)?;
            for at in 0..count {
                views.push(dlpack::view_in_place("tensors", tensor(at))?);
            }
            let given = (0..count).map(|at| ("tensors", tensor(at)));
            dlpack::check_all_descriptions((0..count).map(tensor), given.chain(lists))?;
            let done = moves.in_place(views, from, to);
            options.threads.check()?;
            Ok(done?)
        }
    })
}

/// Moves rows of each of the count tensors, in place. The row that to names gets the old contents
/// of the row that from names, as if all rows were read first. The rows are the slices along axis.
/// The tensors have the same number of rows, and may have different element types, shapes and
/// strides. The lists from and to have one shape and any integer types. Row numbers never count
/// from the end. If several moves have the same destination, the last of them stays. The call uses
/// the options bounds (not NDS_BOUNDS_CLAMP), reject_duplicates, max_threads, pool and goal. With
/// NDS_BOUNDS_SKIP, a move with a row number that is out of bounds is not made. With
/// NDS_BOUNDS_SKIP_NEGATIVE, a move with a negative row number is not made, and a row number that
/// is too large is an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_move_rows(
    from: *const DLTensor,
    to: *const DLTensor,
    axis: i64,
    tensors: *const *mut DLTensor,
    count: usize,
    options: *const nds_options,
) -> nds_status {
    // An axis that does not fit in `isize` is replaced by `isize::MAX`, which is out of range for
    // every rank.
    let moves = MoveRows::along(isize::try_from(axis).unwrap_or(isize::MAX));
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { move_rows(moves, [from, to], (tensors, count), options) }
}

/// Moves slots of paged caches of shape [blocks, block_size, ..], in place. The rows of a tensor are
/// its slots: slot s is the slice [s / block_size, s % block_size, ..]. The description of
/// nds_move_rows also applies to this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_move_slots(
    from: *const DLTensor,
    to: *const DLTensor,
    tensors: *const *mut DLTensor,
    count: usize,
    options: *const nds_options,
) -> nds_status {
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { move_rows(MoveRows::paged(), [from, to], (tensors, count), options) }
}
