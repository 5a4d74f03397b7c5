//! Tests that compare every row of the kernel table, on every instruction set of this machine, with
//! scalar code that shares nothing with the kernels.

#![allow(unsafe_code, reason = "calls kernels")]
#![allow(clippy::cast_possible_wrap, reason = "positions in small buffers")]

mod conversions;
mod copies;
mod filters;
mod gradients;
mod halves;
mod reductions;
mod reference;

use super::Elements;
use super::InstructionSet;
use super::Job;
use super::RowsFn;
use super::RowsForm;
use super::RunsFn;
use super::Spread;
use super::Steps;

/// Bytes that begin `misalignment` bytes after an address that is aligned to a cache line.
struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    fn new(content: &[u8], misalignment: usize) -> Self {
        let mut bytes = vec![0; content.len() + 64 + misalignment];
        let start = bytes.as_ptr().align_offset(64) + misalignment;
        bytes[start..start + content.len()].copy_from_slice(content);
        Self {
            bytes,
            start,
            len: content.len(),
        }
    }

    fn content(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    fn content_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

/// A generator of pseudorandom bits (splitmix64). The tests pass fixed seeds, so every execution of
/// the tests uses the same values.
struct Bits(u64);

impl Bits {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a usize")
    }

    /// Returns a pseudorandom destination number below `bound`.
    fn number(&mut self, bound: usize) -> u32 {
        u32::try_from(self.below(bound)).expect("a small bound")
    }
}

/// Returns the positions of the `len` elements of a run that begins at position `start` and has the
/// stride `step`. The run is the destination or the source of a job.
fn positions(start: isize, step: isize, len: usize) -> impl Iterator<Item = usize> {
    (0..len as isize).map(move |i| usize::try_from(start + i * step).expect("inside"))
}

/// Checks that every element of `jobs` is inside the buffers, then calls `kernel`.
fn call(kernel: RunsFn, size: usize, dst: &mut [u8], src: &[u8], jobs: &[Job], steps: Steps) {
    for job in jobs {
        for position in positions(job.dst, steps.dst, job.len) {
            assert!((position + 1) * size <= dst.len(), "destination");
        }
        for position in positions(job.src, steps.src, job.len) {
            assert!((position + 1) * size <= src.len(), "source");
        }
    }
    // SAFETY: the elements are inside two initialised buffers, as checked above. The callers pass
    // buffers that are aligned for the element type.
    unsafe { kernel(dst.as_mut_ptr(), src.as_ptr(), jobs, steps) };
}

/// Checks that every element is inside the buffers, then calls a kernel for single elements.
/// `wide`: whether the kernel gets the offsets as `u64` instead of `u32`.
fn call_elements(
    kernel: Elements,
    size: usize,
    wide: bool,
    dst: &mut [u8],
    src: &[u8],
    offsets: &[usize],
    scale: isize,
) {
    assert!(offsets.len() * size <= src.len(), "source");
    for &offset in offsets {
        let position = usize::try_from(offset as isize * scale).expect("inside");
        assert!((position + 1) * size <= dst.len(), "destination");
    }
    let (dst, src) = (dst.as_mut_ptr(), src.as_ptr());
    // `is_near` turns prefetching off. So 64-bit offsets run without prefetching, and 32-bit
    // offsets run with prefetching if their list is long enough.
    let is_near = wide;
    let spread = Spread { scale, is_near };
    if wide {
        let offsets: Vec<u64> = offsets.iter().map(|&o| o as u64).collect();
        // SAFETY: the elements are inside two initialised buffers, as checked above.
        unsafe { (kernel.u64)(dst, src, &offsets, spread) };
    } else {
        let narrow = |&o: &usize| u32::try_from(o).expect("small");
        let offsets: Vec<u32> = offsets.iter().map(narrow).collect();
        // SAFETY: the elements are inside two initialised buffers, as checked above.
        unsafe { (kernel.u32)(dst, src, &offsets, spread) };
    }
}

/// Checks that every row is inside the buffers, then calls a kernel for rows.
fn call_rows(
    kernel: RowsFn,
    size: usize,
    dst: &mut [u8],
    src: &[u8],
    numbers: &[u32],
    rows: RowsForm<'_>,
) {
    for job in jobs_of(numbers, rows) {
        let end = |start: isize| (usize::try_from(start).expect("inside") + job.len) * size;
        assert!(end(job.dst) <= dst.len(), "destination");
        assert!(end(job.src) <= src.len(), "source");
    }
    // SAFETY: the rows are inside two initialised buffers, as checked above.
    unsafe { kernel(dst.as_mut_ptr(), src.as_ptr(), numbers, rows) };
}

/// Returns one job for each row of a [`RowsFn`] call. The job has the same destination elements and
/// source elements as the row.
fn jobs_of(numbers: &[u32], rows: RowsForm<'_>) -> Vec<Job> {
    let job = |(position, &number): (usize, &u32)| Job {
        dst: number as isize * rows.unit,
        src: rows
            .sources
            .map_or(position, |list| list[position] as usize) as isize
            * rows.step,
        len: rows.len,
    };
    numbers.iter().enumerate().map(job).collect()
}

/// Source numbers of 40 rows. The numbers are not in order, and each number from 0 to 19 occurs
/// twice.
const SOURCES: [u32; 40] = {
    let mut sources = [0; 40];
    let mut row = 0;
    while row < 40 {
        sources[row as usize] = (row * 7 + 3) % 20;
        row += 1;
    }
    sources
};

/// Returns the [`RowsForm`]s of the tests: for each length of a row, four kinds of strides. The
/// first kind has adjacent rows in the source and the destination. The second kind has gaps between
/// the rows of both. The third kind has gaps only between the rows of the source. In the fourth
/// kind, rows of the destination overlap (from 2 elements on), and all rows read one source row.
/// Each form occurs with and without a list of source numbers, and with `is_near` true and false.
fn forms_of_rows() -> impl Iterator<Item = RowsForm<'static>> {
    let steps = [(0, 0), (1, 3), (0, 1), (-1, -1)];
    // Lengths of rows, in elements. Some lengths have a separate loop. Other lengths are divided
    // into arrays of 8, 4, 2 and 1 elements.
    [1_usize, 2, 3, 4, 5, 7, 8, 12, 16, 24, 32, 33, 63, 64, 130]
        .into_iter()
        .flat_map(move |len| {
            steps.into_iter().map(move |(unit, step)| RowsForm {
                unit: (len as isize + unit).max(1),
                step: if step < 0 { 0 } else { len as isize + step },
                len,
                sources: None,
                is_near: false,
                prefetches_sources: true,
            })
        })
        .flat_map(|form| {
            let sources = Some(SOURCES.as_slice());
            let is_near = true;
            [
                form,
                RowsForm { is_near, ..form },
                RowsForm { sources, ..form },
                RowsForm {
                    is_near,
                    sources,
                    ..form
                },
            ]
        })
}

#[test]
fn every_instruction_set_is_listed() {
    // The other tests run for each instruction set in `InstructionSet::available`, so that list
    // must have all sets of the machine.
    #[cfg(target_arch = "x86_64")]
    assert_eq!(
        InstructionSet::available().contains(&InstructionSet::Avx2),
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c"),
        "avx2"
    );
    #[cfg(target_arch = "x86_64")]
    assert_eq!(
        InstructionSet::available().contains(&InstructionSet::Avx512),
        is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("popcnt"),
        "avx512"
    );
    assert!(
        InstructionSet::available().contains(&InstructionSet::Portable),
        "portable"
    );
}
