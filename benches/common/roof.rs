//! Measures the bandwidth of the machine with three kinds of copy and with a read, on the
//! threads of the current rayon pool.

use std::hint::black_box;

use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::{ParallelSlice, ParallelSliceMut};

/// Kind of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copying {
    /// `memcpy` of the C library.
    Memcpy,
    /// Streaming stores, which bypass the caches.
    Streaming,
    /// The string instruction `rep movsb`.
    RepMovsb,
}

impl Copying {
    /// Kinds that exist on this target.
    pub(crate) const ALL: &'static [Self] = if cfg!(target_arch = "x86_64") {
        &[Self::Memcpy, Self::Streaming, Self::RepMovsb]
    } else {
        &[Self::Memcpy]
    };

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Memcpy => "memcpy",
            Self::Streaming => "streaming copy",
            Self::RepMovsb => "rep movsb",
        }
    }

    /// Copies `src` to `dst`, one part per thread.
    pub(crate) fn run(self, dst: &mut [f32], src: &[f32]) {
        let len = part_len(src.len());
        if len == src.len() {
            return self.run_part(dst, src);
        }
        (dst.par_chunks_mut(len).zip(src.par_chunks(len)))
            .for_each(|(dst, src)| self.run_part(dst, src));
    }

    fn run_part(self, dst: &mut [f32], src: &[f32]) {
        match self {
            Self::Memcpy => dst.copy_from_slice(src),
            Self::Streaming => native::stream(dst, src),
            Self::RepMovsb => native::rep_movsb(dst, src),
        }
    }
}

/// Reads all of `src`, one part per thread.
pub(crate) fn read(src: &[f32]) {
    src.par_chunks(part_len(src.len())).for_each(|part| {
        let bits = part.iter().map(|value| value.to_bits());
        black_box(bits.fold(0, u32::wrapping_add));
    });
}

/// Returns the elements of one part. Parts are whole cache lines, so no two threads write to
/// one line. A small copy is one part, because waking other threads costs more than the copy.
fn part_len(len: usize) -> usize {
    const LINE: usize = 16;
    const SMALL: usize = 64 * 1024;
    if len < SMALL {
        return len;
    }
    len.div_ceil(rayon::current_num_threads())
        .next_multiple_of(LINE)
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "instructions that no safe function offers")]
mod native {
    use std::arch::asm;
    use std::arch::x86_64::{_mm_loadu_ps, _mm_sfence, _mm_stream_ps};

    /// Elements of a vector of 16 bytes. Wider stores are not faster here, because streaming
    /// stores leave the core as whole cache lines.
    const LANES: usize = 4;

    pub(super) fn stream(dst: &mut [f32], src: &[f32]) {
        assert_eq!(dst.len(), src.len(), "lengths of a copy");
        let head = dst.as_ptr().align_offset(LANES * size_of::<f32>());
        let head = head.min(dst.len());
        let (dst_head, dst) = dst.split_at_mut(head);
        let (src_head, src) = src.split_at(head);
        dst_head.copy_from_slice(src_head);
        let mut dst_vectors = dst.chunks_exact_mut(LANES);
        let mut src_vectors = src.chunks_exact(LANES);
        for (dst, src) in dst_vectors.by_ref().zip(src_vectors.by_ref()) {
            // SAFETY: both chunks hold LANES elements. `dst` is aligned to 16 bytes, because the
            // `head` elements before it were split off.
            unsafe { _mm_stream_ps(dst.as_mut_ptr(), _mm_loadu_ps(src.as_ptr())) };
        }
        (dst_vectors.into_remainder()).copy_from_slice(src_vectors.remainder());
        // SAFETY: every x86-64 processor has this instruction.
        unsafe { _mm_sfence() };
    }

    pub(super) fn rep_movsb(dst: &mut [f32], src: &[f32]) {
        assert_eq!(dst.len(), src.len(), "lengths of a copy");
        // SAFETY: the slices have equal lengths (asserted above), and rcx is that length in bytes.
        // They do not overlap, because `dst` is a mutable borrow. The ABI guarantees that the
        // direction flag is clear.
        unsafe {
            asm!(
                "rep movsb",
                inout("rcx") size_of_val(src) => _,
                inout("rdi") dst.as_mut_ptr() => _,
                inout("rsi") src.as_ptr() => _,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod native {
    pub(super) fn stream(dst: &mut [f32], src: &[f32]) {
        dst.copy_from_slice(src);
    }

    pub(super) fn rep_movsb(dst: &mut [f32], src: &[f32]) {
        dst.copy_from_slice(src);
    }
}
