//! Every row of the table on every instruction set of this machine, against
//! plain scalar code that shares nothing with the kernels.

#![allow(unsafe_code, reason = "calls kernels")]
#![allow(clippy::cast_possible_wrap, reason = "positions in small buffers")]

mod copies;
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

/// Bytes at an address that is aligned to a cache line, plus `misalignment`.
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

/// A small generator of bits (splitmix64), so that every run is the same.
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

    /// The same as a destination number.
    fn number(&mut self, bound: usize) -> u32 {
        u32::try_from(self.below(bound)).expect("a small bound")
    }
}

/// Elements that a job names on one side, as positions.
fn positions(start: isize, step: isize, len: usize) -> impl Iterator<Item = usize> {
    (0..len as isize).map(move |i| usize::try_from(start + i * step).expect("inside"))
}

/// Calls `kernel` after checking that every job stays inside the buffers.
fn call(kernel: RunsFn, size: usize, dst: &mut [u8], src: &[u8], jobs: &[Job], steps: Steps) {
    for job in jobs {
        for position in positions(job.dst, steps.dst, job.len) {
            assert!((position + 1) * size <= dst.len(), "destination");
        }
        for position in positions(job.src, steps.src, job.len) {
            assert!((position + 1) * size <= src.len(), "source");
        }
    }
    // SAFETY: the elements lie in two buffers, as just checked, aligned as
    // the tests make them; both are initialised.
    unsafe { kernel(dst.as_mut_ptr(), src.as_ptr(), jobs, steps) };
}

/// The same for single elements, by both widths of offsets in turn.
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
    // Both ways through a list that is long enough to prefetch.
    let is_near = wide;
    let spread = Spread { scale, is_near };
    if wide {
        let offsets: Vec<u64> = offsets.iter().map(|&o| o as u64).collect();
        // SAFETY: as in `call`.
        unsafe { (kernel.u64)(dst, src, &offsets, spread) };
    } else {
        let narrow = |&o: &usize| u32::try_from(o).expect("small");
        let offsets: Vec<u32> = offsets.iter().map(narrow).collect();
        // SAFETY: as in `call`.
        unsafe { (kernel.u32)(dst, src, &offsets, spread) };
    }
}

/// The same for rows.
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
    // SAFETY: as in `call`.
    unsafe { kernel(dst.as_mut_ptr(), src.as_ptr(), numbers, rows) };
}

/// The jobs that rows stand for.
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

/// Sources of 40 rows: in another order than the rows, some of them twice.
const SOURCES: [u32; 40] = {
    let mut sources = [0; 40];
    let mut row = 0;
    while row < 40 {
        sources[row as usize] = (row * 7 + 3) % 20;
        row += 1;
    }
    sources
};

/// Rows one behind the other, apart, overlapping those before them, and all
/// from one source, each with sources in order, near or not, and with listed ones.
fn forms_of_rows() -> impl Iterator<Item = RowsForm<'static>> {
    let steps = [(0, 0), (1, 3), (0, 1), (-1, -1)];
    // With a loop of their own, and in arrays of 8, 4, 2 and 1.
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
    // The other tests go through this list: it must not fall short.
    #[cfg(target_arch = "x86_64")]
    assert_eq!(
        InstructionSet::available().contains(&InstructionSet::Avx2),
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c"),
        "avx2"
    );
    assert!(
        InstructionSet::available().contains(&InstructionSet::Portable),
        "portable"
    );
}
