//! Tests of copies, copies with streaming stores, and clones.

use super::super::InstructionSet;
use super::super::Job;
use super::super::Kernels;
use super::super::RunsFn;
use super::super::Steps;
#[cfg(target_arch = "x86_64")]
use super::Bits;
use super::Buffer;
use super::call;
use super::call_elements;
use super::call_rows;
use super::forms_of_rows;
use super::jobs_of;
use super::positions;
use crate::element::DType;
use crate::reduction::Reduction;
use std::cell::Cell;
use std::rc::Rc;

/// Returns the kernels that copy elements, for each element width and each instruction set of this
/// machine.
fn rows() -> impl Iterator<Item = &'static Kernels> {
    let one_per_width = [
        DType::U8,
        DType::F16,
        DType::I32,
        DType::Complex64,
        DType::Complex128,
    ];
    InstructionSet::available().iter().flat_map(move |&isa| {
        one_per_width
            .into_iter()
            .map(move |element| Kernels::plain(element, Reduction::None, isa).expect("copies"))
    })
}

fn random_bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut bits = Bits(seed);
    (0..count).map(|_| bits.next().to_le_bytes()[0]).collect()
}

/// Runs `jobs` and compares the whole destination with the expected bytes, including elements that
/// must not change.
fn check(kernel: RunsFn, size: usize, misaligned: [usize; 2], jobs: &[Job], steps: Steps) {
    let end =
        |start: isize, step: isize, len| positions(start, step, len).max().map_or(0, |p| p + 2);
    let dst_count = jobs
        .iter()
        .map(|j| end(j.dst, steps.dst, j.len))
        .max()
        .unwrap_or(0);
    let src_count = jobs
        .iter()
        .map(|j| end(j.src, steps.src, j.len))
        .max()
        .unwrap_or(0);
    let src = Buffer::new(&random_bytes(src_count * size, 1), misaligned[1]);
    let mut expected = random_bytes(dst_count * size, 2);
    let mut dst = Buffer::new(&expected, misaligned[0]);
    for job in jobs {
        let dsts = positions(job.dst, steps.dst, job.len);
        for (d, s) in dsts.zip(positions(job.src, steps.src, job.len)) {
            expected[d * size..][..size].copy_from_slice(&src.content()[s * size..][..size]);
        }
    }
    call(kernel, size, dst.content_mut(), src.content(), jobs, steps);
    assert!(
        dst.content() == expected,
        "{size} bytes, {jobs:?}, {steps:?}, {misaligned:?}"
    );
}

#[test]
fn contiguous_runs_of_every_length() {
    for row in rows() {
        for len in 0..=300 {
            let job = Job {
                dst: 1,
                src: 2,
                len,
            };
            check(row.copy, row.size, [0, row.size], &[job], Steps::UNIT);
        }
    }
}

#[test]
fn steps_of_every_kind() {
    // Strides, in elements: (destination, source). With a source stride of 0, the whole run reads
    // one source element. A negative stride goes to lower addresses.
    let steps = [
        (1, 0),
        (2, 1),
        (1, 3),
        (-1, 1),
        (1, -2),
        (-3, -1),
        (3, 0),
        (2, 2),
    ];
    for row in rows() {
        for (dst, src) in steps {
            for len in [0, 1, 2, 7, 33, 100] {
                let start = |step: isize| if step < 0 { -step * 100 } else { 1 };
                let job = Job {
                    dst: start(dst),
                    src: start(src),
                    len,
                };
                check(row.copy, row.size, [0, 0], &[job], Steps { dst, src });
            }
        }
    }
}

#[test]
fn the_last_job_of_a_destination_stays() {
    let jobs = [(0, 9, 30), (7, 0, 5), (0, 50, 20), (0, 0, 0), (7, 3, 2)];
    let jobs = jobs.map(|(dst, src, len)| Job { dst, src, len });
    for row in rows() {
        check(row.copy, row.size, [0, 0], &jobs, Steps::UNIT);
        check(row.copy, row.size, [0, 0], &jobs, Steps { dst: 2, src: 3 });
    }
}

/// Returns the kernels that copy elements of `W` bytes with streaming stores. Each pair is `W` and
/// a kernel.
fn streams_of<const W: usize>(isa: InstructionSet) -> Vec<(usize, RunsFn)> {
    let element = match W {
        1 => DType::U8,
        2 => DType::F16,
        4 => DType::I32,
        8 => DType::Complex64,
        _ => DType::Complex128,
    };
    let row = Kernels::plain(element, Reduction::None, isa).expect("copies");
    assert_eq!(row.size, W, "{element}");
    assert_eq!(
        row.stream.is_some(),
        cfg!(target_arch = "x86_64"),
        "only x86-64 has streaming copies"
    );
    let streams = row
        .stream
        .map(|streams| [streams.plain, streams.prefetching]);
    (streams.into_iter().flatten())
        .map(|stream| (W, stream))
        .collect()
}

#[test]
fn streams_at_every_alignment() {
    let streams = InstructionSet::available().iter().flat_map(|&isa| {
        [
            streams_of::<1>(isa),
            streams_of::<2>(isa),
            streams_of::<4>(isa),
            streams_of::<8>(isa),
            streams_of::<16>(isa),
        ]
    });
    for (size, stream) in streams.flatten() {
        // Bytes of a copied run. The kernel uses streaming stores in runs of at least 256 bytes.
        // The longest runs have several cache lines and can end inside a cache line.
        for bytes in [0, 16, 240, 256, 272, 1008, 1104] {
            for start in (0..128).step_by(size) {
                let len = bytes / size;
                let jobs = [
                    Job {
                        dst: 0,
                        src: 1,
                        len,
                    },
                    Job {
                        dst: len as isize,
                        src: 0,
                        len,
                    },
                ];
                check(stream, size, [start, size], &jobs, Steps::UNIT);
            }
        }
    }
}

#[test]
fn single_elements_with_repeated_offsets() {
    for row in rows() {
        let kernel = row.copy_elements.expect("plain bytes");
        for (len, scale, wide) in [(0, 1, true), (1, 1, false), (100, 1, true), (77, 3, false)] {
            let mut bits = Bits(len as u64);
            let offsets: Vec<usize> = (0..len).map(|_| bits.below(20)).collect();
            let src = random_bytes(len * row.size, 1);
            let mut expected = random_bytes(64 * row.size, 2);
            let mut dst = expected.clone();
            for (offset, update) in offsets.iter().zip(src.chunks(row.size)) {
                let position = offset * usize::try_from(scale).expect("positive");
                expected[position * row.size..][..row.size].copy_from_slice(update);
            }
            call_elements(kernel, row.size, wide, &mut dst, &src, &offsets, scale);
            assert!(dst == expected, "{} bytes, {len} offsets", row.size);
        }
    }
}

#[test]
fn rows_with_repeated_numbers() {
    for row in rows() {
        let kernel = row.apply_rows.expect("plain bytes");
        for form in forms_of_rows() {
            let mut bits = Bits(form.len as u64);
            let numbers: Vec<u32> = (0..40).map(|_| bits.number(20)).collect();
            let src = random_bytes(42 * (form.len + 3) * row.size, 1);
            let mut expected = random_bytes(22 * (form.len + 3) * row.size, 2);
            let mut dst = expected.clone();
            for job in jobs_of(&numbers, form) {
                let [d, s] = [job.dst, job.src].map(|at| at.cast_unsigned() * row.size);
                let bytes = job.len * row.size;
                expected[d..][..bytes].copy_from_slice(&src[s..][..bytes]);
            }
            call_rows(kernel, row.size, &mut dst, &src, &numbers, form);
            assert!(dst == expected, "{} bytes, {form:?}", row.size);
        }
    }
}

/// Clones all elements of `src` into `dst`, in reversed order.
fn clone_backwards<T: Clone>(dst: &mut [T], src: &[T]) {
    assert_eq!(dst.len(), src.len(), "slices of one length");
    let row = Kernels::cloned::<T>();
    assert_eq!(row.size, size_of::<T>(), "size");
    let job = Job {
        dst: 0,
        src: src.len() as isize - 1,
        len: src.len(),
    };
    let steps = Steps { dst: 1, src: -1 };
    // SAFETY: the two slices have the same number of elements, and all elements are initialised.
    unsafe { (row.apply)(dst.as_mut_ptr().cast(), src.as_ptr().cast(), &[job], steps) };
}

#[test]
fn clones_drop_what_they_replace() {
    let counted = Rc::new(());
    let mut dst: Vec<Rc<()>> = (0..5).map(|_| Rc::clone(&counted)).collect();
    let src: Vec<Rc<()>> = (0..5).map(|_| Rc::new(())).collect();
    clone_backwards(&mut dst, &src);
    assert_eq!(
        Rc::strong_count(&counted),
        1,
        "all five old values were dropped"
    );
    for (d, s) in dst.iter().zip(src.iter().rev()) {
        assert!(Rc::ptr_eq(d, s), "the clone of its source");
    }
}

#[test]
fn clones_of_strings_and_of_nothing() {
    let mut dst = ["a", "b", "c"].map(String::from);
    clone_backwards(&mut dst, &["x", "y", "z"].map(String::from));
    assert_eq!(dst, ["z", "y", "x"], "backwards");
    clone_backwards(&mut [(); 4], &[(); 4]);
}

#[test]
fn a_clone_that_panics_leaves_valid_values() {
    /// A value that counts clones in a counter shared by all values. The third clone panics.
    struct Fuse<'a>(&'a Cell<u32>, Box<u32>);

    impl Clone for Fuse<'_> {
        fn clone(&self) -> Self {
            self.0.set(self.0.get() + 1);
            assert!(self.0.get() < 3, "the third clone");
            Self(self.0, self.1.clone())
        }
    }

    let clones = Cell::new(0);
    let mut dst: Vec<Fuse<'_>> = (0..4).map(|i| Fuse(&clones, Box::new(i))).collect();
    let src: Vec<Fuse<'_>> = (10..14).map(|i| Fuse(&clones, Box::new(i))).collect();
    let work = std::panic::AssertUnwindSafe(|| clone_backwards(&mut dst, &src));
    assert!(
        std::panic::catch_unwind(work).is_err(),
        "the panic propagates"
    );
    let left: Vec<u32> = dst.iter().map(|fuse| *fuse.1).collect();
    assert_eq!(
        left,
        [13, 12, 2, 3],
        "two elements are replaced, two are unchanged"
    );
}
