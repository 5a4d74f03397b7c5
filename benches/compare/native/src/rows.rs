//! Plain loops that write rows into paged caches, as inference engines write them: one value after
//! another, on one thread. For rows that keep their type, a loop of `memcpy` on all threads.
//!
//! No function checks its arguments. Callers guarantee that all slots are in the cache.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::time::Instant;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

/// Copies of at least this number of bytes use all threads, like those of `roof.rs`.
const DIVIDED: usize = 256 * 1024;

/// One write. The updates are row-major bfloat16 of shape `[tokens, heads, dim]`. The cache has
/// rows of `dim` contiguous elements.
#[repr(C)]
pub struct Rows {
    cache: *mut c_void,
    updates: *const u16,
    slots: *const i64,
    tokens: usize,
    heads: usize,
    dim: usize,
    block_size: usize,
    /// Strides of the cache, in elements.
    block_stride: usize,
    row_stride: usize,
    head_stride: usize,
    /// Scale of int8.
    scale: f32,
    /// 0: bfloat16. 1: float8_e4m3fn. 2: int8.
    format: c_int,
}

// SAFETY: different tokens write different rows, and nothing else is written.
unsafe impl Sync for Rows {}

impl Rows {
    /// # Safety
    ///
    /// As for [`compare_write_rows`].
    unsafe fn write(&self) {
        // SAFETY: the caller guarantees the pointers, and that slots are distinct.
        unsafe {
            match self.format {
                0 => self.copy(),
                _ => self.convert_for_machine(),
            }
        }
    }

    /// Returns the position of the row of `token` in the cache, in elements, unless its slot is
    /// negative.
    ///
    /// # Safety
    ///
    /// There is a slot for `token`.
    #[inline(always)]
    unsafe fn row(&self, token: usize) -> Option<usize> {
        // SAFETY: the caller guarantees the slot.
        let slot = usize::try_from(unsafe { *self.slots.add(token) }).ok()?;
        let (block, row) = (slot / self.block_size, slot % self.block_size);
        Some(block * self.block_stride + row * self.row_stride)
    }

    /// Inference engines compile their kernels for AVX2 or AVX-512, so this loop is compiled for
    /// AVX2 too.
    ///
    /// # Safety
    ///
    /// As for [`compare_write_rows`].
    #[cfg(target_arch = "x86_64")]
    unsafe fn convert_for_machine(&self) {
        #[target_feature(enable = "avx2")]
        unsafe fn with_avx2(rows: &Rows) {
            // SAFETY: as for the function outside.
            unsafe { rows.convert() };
        }
        // SAFETY: the machine has AVX2, and the caller guarantees the rest.
        unsafe {
            if is_x86_feature_detected!("avx2") {
                with_avx2(self);
            } else {
                self.convert();
            }
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    unsafe fn convert_for_machine(&self) {
        // SAFETY: as for this function.
        unsafe { self.convert() };
    }

    /// # Safety
    ///
    /// As for [`compare_write_rows`].
    #[inline(always)]
    unsafe fn convert(&self) {
        for token in 0..self.tokens {
            // SAFETY: the caller guarantees all slots, and rows inside the cache and the updates.
            unsafe {
                let Some(row) = self.row(token) else { continue };
                for head in 0..self.heads {
                    let from = self.updates.add((token * self.heads + head) * self.dim);
                    let to = self.cache.cast::<u8>().add(row + head * self.head_stride);
                    if self.format == 1 {
                        for at in 0..self.dim {
                            *to.add(at) = e4m3(widened(*from.add(at)));
                        }
                    } else {
                        for at in 0..self.dim {
                            let value = widened(*from.add(at)) / self.scale;
                            let value = value.round_ties_even().clamp(-128.0, 127.0);
                            *to.add(at) = (value as i8).cast_unsigned();
                        }
                    }
                }
            }
        }
    }

    /// # Safety
    ///
    /// As for [`compare_write_rows`].
    unsafe fn copy(&self) {
        let bytes = self.tokens * self.heads * self.dim * size_of::<u16>();
        // A row of all heads that is contiguous in the cache is one copy.
        let (heads, len) = match self.head_stride == self.dim {
            true => (1, self.heads * self.dim),
            false => (self.heads, self.dim),
        };
        let copy = |token: usize| {
            // SAFETY: the caller guarantees all slots, and rows inside the cache and the updates.
            // Distinct slots are distinct rows.
            unsafe {
                let Some(row) = self.row(token) else { return };
                for head in 0..heads {
                    let from = self.updates.add((token * heads + head) * len);
                    let to = self.cache.cast::<u16>().add(row + head * self.head_stride);
                    ptr::copy_nonoverlapping(from, to, len);
                }
            }
        };
        let threads = rayon::current_num_threads();
        if bytes < DIVIDED || threads == 1 {
            (0..self.tokens).for_each(copy);
        } else {
            let least = self.tokens.div_ceil(threads * 4);
            let tokens = (0..self.tokens).into_par_iter();
            tokens.with_min_len(least).for_each(copy);
        }
    }
}

#[inline(always)]
fn widened(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Rounds to the nearest value, ties to even. Values beyond the largest become NaN, as in torch.
#[inline(always)]
fn e4m3(value: f32) -> u8 {
    const SMALLEST_NORMAL: u32 = 121 << 23;
    const BEYOND: u32 = 0x43f0_0000;
    /// The spacing of `f32` at this value is that of the subnormal values of the format.
    const SUBNORMALS: u32 = 141 << 23;
    let bits = value.to_bits();
    let sign = (bits >> 24) as u8 & 0x80;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude >= BEYOND {
        return sign | 0x7f;
    }
    if magnitude < SMALLEST_NORMAL {
        let sum = f32::from_bits(magnitude) + f32::from_bits(SUBNORMALS);
        return sign | (sum.to_bits() - SUBNORMALS) as u8;
    }
    let odd = magnitude >> 20 & 1;
    sign | ((magnitude - (120 << 23) + 0x7_ffff + odd) >> 20) as u8
}

/// Writes all rows.
///
/// # Safety
///
/// `rows` describes valid memory: `tokens` distinct slots inside the cache or negative, and updates
/// of the stated shape. Nothing else accesses the cache during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_write_rows(rows: &Rows) {
    // SAFETY: the caller guarantees the contract of this function.
    unsafe { rows.write() };
}

/// Returns the nanoseconds of `calls` calls of [`compare_write_rows`].
///
/// # Safety
///
/// As for [`compare_write_rows`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_time_rows(rows: &Rows, calls: u32) -> i64 {
    let start = Instant::now();
    for _ in 0..calls {
        // SAFETY: the caller guarantees the contract of this function.
        unsafe { rows.write() };
    }
    i64::try_from(start.elapsed().as_nanos()).unwrap_or(i64::MAX)
}

/// Type of `nds_write_paged` and of `nds_plan_write` of the C interface, with opaque structs.
type WriteFn = unsafe extern "C" fn(*const c_void, *const c_void, usize, *const c_void) -> c_int;

/// Returns the nanoseconds of `calls` calls of `write`, or -1 if a call failed.
///
/// # Safety
///
/// `write` is one of both functions of the library, and the arguments fulfil its requirements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_time_writes(
    write: WriteFn,
    slots_or_plan: *const c_void,
    writes: *const c_void,
    count: usize,
    options: *const c_void,
    calls: u32,
) -> i64 {
    let mut statuses = 0;
    let start = Instant::now();
    for _ in 0..calls {
        // SAFETY: the caller guarantees the function and its arguments.
        statuses |= unsafe { write(slots_or_plan, writes, count, options) };
    }
    let nanoseconds = start.elapsed().as_nanos();
    if statuses == 0 {
        i64::try_from(nanoseconds).unwrap_or(i64::MAX)
    } else {
        -1
    }
}
