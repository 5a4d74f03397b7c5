//! Loads of integers from memory that other threads or processes may write at the same time. Hosts
//! must not write to this memory during a call, but some hosts do.
//!
//! This module knows the addresses and the sizes of the integers. It does not know what the loaded
//! values mean.
//!
//! On x86-64, instructions of inline assembly load the integers. By the rules of the language, a
//! write at the same time is then no data race: the assembly stands for one relaxed atomic load per
//! integer.
//!
//! Atomic types are not used, for two reasons. `AtomicU64::from_ptr` and its siblings require
//! writable memory, and a file that is mapped for reading is not writable. The compiler also does
//! not vectorise atomic loads. Scatters with contiguous `i32` indices and plans with contiguous
//! `i32` indices took 1.14 to 1.27 times as long with atomic loads as with plain copies (Zen 5).
//!
//! On other processors, contiguous integers are copied by plain reads, and all other loads are
//! volatile. Miri does not run assembly, so the same holds under Miri. In both cases, a write at
//! the same time is a data race.

#![expect(unsafe_code, reason = "loads from addresses for which callers vouch")]

pub(crate) use loads::{copy, copy_strided, load, load_at};

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod loads {
    use std::arch::asm;
    use std::arch::x86_64::{__m128i, __m256i};
    use std::mem::transmute_copy;

    /// Bytes that one iteration of the AVX loop copies.
    const PIECE: usize = 64;

    /// Emits one instruction that loads a value from address `ptr + at`.
    macro_rules! load {
        ($instruction:literal, $class:ident, $ptr:expr, $at:expr) => {{
            let value;
            asm!(
                $instruction,
                value = lateout($class) value,
                ptr = in(reg) $ptr,
                at = const $at,
                options(nostack, preserves_flags, readonly)
            );
            value
        }};
    }

    /// Loads the integer that is `AT` integers after `ptr`, once. The remaining upper bits of the
    /// result are 0.
    ///
    /// # Safety
    ///
    /// The type of the integer has 1, 2, 4 or 8 bytes, and the loaded integer can be read. Other
    /// threads may write it at the same time.
    #[inline(always)]
    pub(crate) unsafe fn load_at<T: Copy, const AT: usize>(ptr: *const T) -> u64 {
        // SAFETY: the caller guarantees that the integer can be read. The instruction loads exactly
        // the integer's bytes.
        unsafe {
            match size_of::<T>() {
                1 => load!("movzx {value:e}, byte ptr [{ptr} + {at}]", reg, ptr, AT),
                2 => load!("movzx {value:e}, word ptr [{ptr} + {at}]", reg, ptr, 2 * AT),
                4 => load!("mov {value:e}, dword ptr [{ptr} + {at}]", reg, ptr, 4 * AT),
                _ => load!("mov {value}, qword ptr [{ptr} + {at}]", reg, ptr, 8 * AT),
            }
        }
    }

    /// Loads an integer once.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`load_at`] requires.
    #[inline(always)]
    pub(crate) unsafe fn load<T: Copy>(ptr: *const T) -> T {
        // SAFETY: the caller guarantees that the integer can be read. The bytes of the integer are
        // the first bytes of the loaded value, because x86-64 is little-endian.
        unsafe { transmute_copy(&load_at::<T, 0>(ptr)) }
    }

    /// Copies contiguous integers. Each integer is loaded once.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`load_at`] requires, for `run.len()` integers from `ptr` on.
    #[inline(always)]
    pub(crate) unsafe fn copy<T: Copy>(ptr: *const T, run: &mut [T]) {
        // SAFETY: the caller guarantees that `run.len()` integers can be read, and `run` has room
        // for them.
        unsafe { copy_bytes(ptr.cast(), run.as_mut_ptr().cast(), size_of_val(run)) };
    }

    /// Copies integers at a stride of `step` integers from `ptr` on into `run`. Each integer is
    /// loaded once.
    ///
    /// Strides of 2 and 3 are the most frequent: pairs and triples of coordinates. Each of the two
    /// has a separate loop, whose instructions contain the stride as a constant. With one loop for
    /// all strides, plans of 100,000 pairs took 1.09 (`i64`) and 1.12 (`i32`) times as long as with
    /// plain copies (Zen 5). With the separate loops, they took 1.02 and 1.04 times as long. The
    /// function is large and therefore not inlined.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`load_at`] requires, for `run.len()` integers at this stride
    /// from `ptr` on.
    #[inline(never)]
    pub(crate) unsafe fn copy_strided<T: Copy>(ptr: *const T, step: isize, run: &mut [T]) {
        macro_rules! apart {
            ($step:literal) => {
                copy_fours(ptr, $step, run, |ptr| {
                    [
                        load_at::<T, 0>(ptr),
                        load_at::<T, $step>(ptr),
                        load_at::<T, { 2 * $step }>(ptr),
                        load_at::<T, { 3 * $step }>(ptr),
                    ]
                })
            };
        }
        // SAFETY: the caller guarantees that `run.len()` integers at the stride `step` can be read.
        // Each integer is loaded once.
        unsafe {
            match step {
                2 => apart!(2),
                3 => apart!(3),
                _ => copy_fours(ptr, step, run, |ptr| {
                    [0, 1, 2, 3].map(|at| load_at::<T, 0>(ptr.wrapping_offset(at * step)))
                }),
            }
        }
    }

    /// Copies integers as [`copy_strided`] does. `four` loads four integers at a stride of `step`
    /// from its argument on.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`copy_strided`] requires.
    #[inline(always)]
    unsafe fn copy_fours<T: Copy>(
        mut ptr: *const T,
        step: isize,
        run: &mut [T],
        four: impl Fn(*const T) -> [u64; 4],
    ) {
        let mut fours = run.chunks_exact_mut(4);
        for values in &mut fours {
            for (value, loaded) in values.iter_mut().zip(four(ptr)) {
                // SAFETY: the loaded value begins with the bytes of the integer, as in `load`.
                *value = unsafe { transmute_copy(&loaded) };
            }
            ptr = ptr.wrapping_offset(4 * step);
        }
        for value in fours.into_remainder() {
            // SAFETY: the caller guarantees that the integer can be read.
            *value = unsafe { load(ptr) };
            ptr = ptr.wrapping_offset(step);
        }
    }

    /// Copies `len` bytes from `from` to `to`. The function is not inlined, so that the compiler
    /// emits `vzeroupper` before the call. Without `vzeroupper`, the SSE instructions of this
    /// function would be slow after AVX instructions of the caller.
    ///
    /// # Safety
    ///
    /// The `len` bytes at `from` can be read, and other threads may write them at the same time.
    /// The `len` bytes at `to` can be written, and nothing else accesses them.
    #[inline(never)]
    unsafe fn copy_bytes(mut from: *const u8, mut to: *mut u8, len: usize) {
        let mut rest = len;
        /// Copies pieces of the size of `$type` until the rest is shorter than such a piece.
        macro_rules! pieces {
            ($type:ty, $from:ident => $load:expr) => {
                while rest >= size_of::<$type>() {
                    let $from = from;
                    // SAFETY: `rest` bytes are readable at `from` and writable at `to`, and the
                    // piece has at most `rest` bytes.
                    unsafe { to.cast::<$type>().write_unaligned($load) };
                    from = from.wrapping_add(size_of::<$type>());
                    to = to.wrapping_add(size_of::<$type>());
                    rest -= size_of::<$type>();
                }
            };
        }
        if rest >= PIECE && is_x86_feature_detected!("avx") {
            rest %= PIECE;
            // SAFETY: the processor has AVX. The caller guarantees that `len` bytes can be read
            // from `from` on and written from `to` on.
            unsafe { copy_pieces(from, to, len / PIECE) };
            (from, to) = (from.wrapping_add(len - rest), to.wrapping_add(len - rest));
        }
        pieces!(__m128i, from => load!("movups {value}, [{ptr} + {at}]", xmm_reg, from, 0));
        pieces!(u64, from => load_at::<u64, 0>(from.cast()));
        pieces!(u32, from => load(from.cast::<u32>()));
        pieces!(u16, from => load(from.cast::<u16>()));
        pieces!(u8, from => load(from));
    }

    /// Copies pieces with vectors of 32 bytes, because readers of the copy also load vectors of 32
    /// bytes. If two stores of 16 bytes had written these bytes, the processor could not forward
    /// the stores to the load. The load would wait until both stores have reached the cache. On Zen
    /// 5, making a plan of 100,000 `i32` indices took 1.16 times as long with vectors of 16 bytes
    /// as with plain copies.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`copy_bytes`] requires, for `count` pieces of [`PIECE`] bytes.
    #[target_feature(enable = "avx")]
    unsafe fn copy_pieces(from: *const u8, to: *mut u8, count: usize) {
        for at in (0..count).map(|number| number * PIECE) {
            // SAFETY: the caller guarantees that the piece can be read at `from` and written at
            // `to`.
            unsafe {
                let (from, to) = (from.add(at), to.add(at).cast::<__m256i>());
                let first = load!("vmovups {value}, [{ptr} + {at}]", ymm_reg, from, 0);
                let second = load!("vmovups {value}, [{ptr} + {at}]", ymm_reg, from, 32);
                to.write_unaligned(first);
                to.add(1).write_unaligned(second);
            }
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod loads {
    use std::sync::atomic::{Ordering, compiler_fence};

    /// Loads the integer that is `AT` integers after `ptr`, once. The remaining upper bits of the
    /// result are 0.
    ///
    /// # Safety
    ///
    /// The type of the integer has 1, 2, 4 or 8 bytes, and the loaded integer can be read.
    #[inline(always)]
    pub(crate) unsafe fn load_at<T: Copy, const AT: usize>(ptr: *const T) -> u64 {
        let ptr = ptr.wrapping_add(AT);
        // SAFETY: the caller guarantees that the integer can be read. The type that is read has the
        // size of the integer.
        unsafe {
            match size_of::<T>() {
                1 => ptr.cast::<u8>().read_volatile().into(),
                2 => ptr.cast::<u16>().read_volatile().into(),
                4 => ptr.cast::<u32>().read_volatile().into(),
                _ => ptr.cast::<u64>().read_volatile(),
            }
        }
    }

    /// Loads an integer once.
    ///
    /// # Safety
    ///
    /// The integer can be read.
    #[inline(always)]
    pub(crate) unsafe fn load<T: Copy>(ptr: *const T) -> T {
        // SAFETY: the caller guarantees that the integer can be read.
        unsafe { ptr.read_volatile() }
    }

    /// Copies contiguous integers. Each integer is loaded once.
    ///
    /// # Safety
    ///
    /// `run.len()` integers can be read from `ptr` on.
    #[inline(always)]
    pub(crate) unsafe fn copy<T: Copy>(ptr: *const T, run: &mut [T]) {
        // SAFETY: the caller guarantees that `run.len()` integers can be read. `run` is an
        // exclusive borrow, so the integers and `run` do not overlap.
        unsafe { ptr.copy_to_nonoverlapping(run.as_mut_ptr(), run.len()) };
        // The fence makes the compiler assume that the memory may have changed. The caller checks
        // values of the copy, and the compiler cannot read them from the original memory again.
        compiler_fence(Ordering::SeqCst);
    }

    /// Copies integers at a stride of `step` integers from `ptr` on into `run`. Each integer is
    /// loaded once.
    ///
    /// # Safety
    ///
    /// `run.len()` integers can be read at this stride, from `ptr` on.
    pub(crate) unsafe fn copy_strided<T: Copy>(mut ptr: *const T, step: isize, run: &mut [T]) {
        for value in run {
            // SAFETY: the caller guarantees that the integer can be read.
            *value = unsafe { load(ptr) };
            ptr = ptr.wrapping_offset(step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{copy, copy_strided, load, load_at};

    /// Copies all lengths below 200 bytes, from 16 successive addresses.
    #[test]
    fn copies_are_exact() {
        let bytes: Vec<u8> = (0..=255).collect();
        for first in 0..16 {
            for len in 0..200 {
                let mut run = [0xAA; 216];
                // SAFETY: the vector has at least `len` bytes from index `first` on.
                unsafe { copy(bytes[first..].as_ptr(), &mut run[8..8 + len]) };
                assert_eq!(run[8..8 + len], bytes[first..first + len], "{first}, {len}");
                let is_kept = [&run[..8], &run[8 + len..]]
                    .concat()
                    .iter()
                    .all(|&b| b == 0xAA);
                assert!(is_kept, "{first}, {len}");
            }
        }
    }

    fn check_strided<T: Copy + PartialEq + std::fmt::Debug>(values: &[T]) {
        let many = values.repeat(70);
        for step in [-5, -2, -1, 0, 1, 2, 3, 4, 7_isize] {
            for len in 0..16_usize {
                let places = (0..).map(|at: isize| 80_usize.wrapping_add_signed(at * step));
                let wanted: Vec<T> = places.take(len).map(|at| many[at]).collect();
                let mut run = vec![values[0]; len];
                // SAFETY: `copy_strided` reads at most 15 elements, and the first is `many[80]`.
                // Strides are from -5 to 7 elements, so all of them are in `many[10..=178]`. `many`
                // has at least 210 elements.
                unsafe { copy_strided(&raw const many[80], step, &mut run) };
                assert_eq!(run, wanted, "{step}, {len}");
            }
        }
    }

    #[test]
    fn elements_of_every_size() {
        fn check<T: Copy + PartialEq + std::fmt::Debug>(values: &[T]) {
            let mut run = values.to_vec();
            run.rotate_left(1);
            for (at, value) in values.iter().enumerate() {
                // SAFETY: the address is that of an element of the slice `values`.
                assert_eq!(unsafe { load(&raw const values[at]) }, *value, "{at}");
            }
            // SAFETY: the lengths of `run` and `values` are equal.
            unsafe { copy(values.as_ptr(), &mut run) };
            assert_eq!(run, values, "a copy");
            check_strided(values);
        }
        check(&[1_i8, -2, i8::MIN, i8::MAX]);
        check(&[1_u8, 2, u8::MAX]);
        check(&[1_i16, -2, i16::MIN, i16::MAX, 0]);
        check(&[1_i32, -2, i32::MIN, i32::MAX, 0]);
        check(&[1_u32, u32::MAX, 0x8000_0001]);
        check(&[1_i64, -2, i64::MIN, i64::MAX, 0]);
        let halves = [1_u32, u32::MAX, 0x8000_0001];
        // SAFETY: both loads read elements of the array `halves`.
        let wide = unsafe {
            [
                load_at::<_, 1>(&raw const halves[0]),
                load_at::<_, 0>(&raw const halves[2]),
            ]
        };
        assert_eq!(wide, [u64::from(u32::MAX), 0x8000_0001]);
        check(&[1_u64, u64::MAX, 0x8000_0000_0000_0001]);
    }
}
