//! Tests of reductions of runs, rows, single elements and groups.

use super::super::Group;
use super::super::GroupRun;
use super::super::InstructionSet;
use super::super::Job;
use super::super::Kernels;
use super::super::Operation;
use super::super::Sources;
use super::super::Steps;
use super::Bits;
use super::Buffer;
use super::call;
use super::call_elements;
use super::call_rows;
use super::forms_of_rows;
use super::jobs_of;
use super::positions;
use super::reference;
use crate::element::DType;
use crate::reduction::{Accumulate, Reducing, Reduction};

/// Kernels of one element type, one reduction and one instruction set.
struct Case {
    element: DType,
    reduction: Reduction,
    isa: InstructionSet,
    row: &'static Kernels,
}

/// Returns a case for each element type, reduction and instruction set of this machine that has
/// kernels.
fn cases() -> impl Iterator<Item = Case> {
    InstructionSet::available().iter().flat_map(|&isa| {
        DType::ALL.into_iter().flat_map(move |element| {
            Reduction::ALL.into_iter().filter_map(move |reduction| {
                let row = Kernels::plain(element, reduction, isa);
                let supported = reference::is_supported(element, reduction);
                assert_eq!(row.is_some(), supported, "{element} {reduction}");
                Some(Case {
                    element,
                    reduction,
                    isa,
                    row: row?,
                })
            })
        })
    })
}

/// Returns random elements. About one third of the elements (of the parts of complex numbers) are
/// unusual values, for example a limit of the type or NaN.
fn elements(element: DType, count: usize, bits: &mut Bits) -> Vec<u8> {
    let part = match element {
        DType::Complex64 => DType::F32,
        DType::Complex128 => DType::F64,
        DType::Bytes16 => DType::Bytes8,
        other => other,
    };
    let parts = count * element.size() / part.size();
    let unusual = unusual(part);
    let mut bytes = Vec::new();
    for _ in 0..parts {
        let value = if bits.below(3) == 0 {
            unusual[bits.below(unusual.len())]
        } else {
            bits.next()
        };
        bytes.extend_from_slice(&low_bytes(value, part.size()));
    }
    bytes
}

fn low_bytes(value: u64, size: usize) -> Vec<u8> {
    let bytes = value.to_le_bytes();
    let mut bytes = bytes[..size].to_vec();
    if cfg!(target_endian = "big") {
        bytes.reverse();
    }
    bytes
}

/// Returns the bits of unusual values of a type, for example limits, infinities and NaN.
fn unusual(part: DType) -> Vec<u64> {
    let (one, infinity, sign): (u64, u64, u64) = match part {
        DType::F16 => (0x3c00, 0x7c00, 0x8000),
        DType::BF16 => (0x3f80, 0x7f80, 0x8000),
        DType::F32 => (0x3f80_0000, 0x7f80_0000, 0x8000_0000),
        DType::F64 => (0x3ff0 << 48, 0x7ff0 << 48, 1 << 63),
        // Limits of integer types, and small numbers. Two of the numbers, 0 and 1, are the `bool`
        // values.
        _ => {
            return vec![
                0,
                1,
                2,
                0x7f,
                0x80,
                0x7fff,
                0x8000,
                !0,
                !0 >> 1,
                1 << 63,
                1 << 31,
            ];
        }
    };
    // Zero, a subnormal, 1, the next value above 1, the largest finite value, infinity, a
    // signalling NaN and a quiet NaN, each with both signs.
    [
        0,
        1,
        one,
        one + 1,
        infinity - 1,
        infinity,
        infinity + 1,
        infinity + (infinity & infinity.wrapping_neg()) / 2,
    ]
    .into_iter()
    .flat_map(|bits| [bits, bits | sign])
    .collect()
}

/// Applies `jobs` to `dst` with the reference reduction, element by element and in order.
fn expect(case: &Case, dst: &mut [u8], src: &[u8], jobs: &[Job], steps: Steps) {
    let size = case.element.size();
    for job in jobs {
        let dsts = positions(job.dst, steps.dst, job.len);
        for (d, s) in dsts.zip(positions(job.src, steps.src, job.len)) {
            let current = &mut dst[d * size..][..size];
            let update = &src[s * size..][..size];
            reference::apply(case.element, case.reduction, current, update);
        }
    }
}

fn check(case: &Case, what: &str, ours: &[u8], expected: &[u8]) {
    let size = case.element.size();
    let Case {
        element,
        reduction,
        isa,
        ..
    } = case;
    for (i, (a, b)) in ours.chunks(size).zip(expected.chunks(size)).enumerate() {
        assert!(
            reference::same(*element, a, b),
            "{element} {reduction} {isa}, {what}, element {i}: {a:x?}, not {b:x?}"
        );
    }
}

/// Runs `jobs` on random elements with the kernel and with the reference, and compares the whole
/// destination, including elements that must not change.
fn run(case: &Case, what: &str, count: usize, misalignment: usize, jobs: &[Job], steps: Steps) {
    let size = case.element.size();
    let mut bits = Bits(count as u64 + 1);
    let src = Buffer::new(&elements(case.element, count, &mut bits), misalignment);
    let mut expected = elements(case.element, count, &mut bits);
    let mut dst = Buffer::new(&expected, misalignment);
    expect(case, &mut expected, src.content(), jobs, steps);
    call(
        case.row.apply,
        size,
        dst.content_mut(),
        src.content(),
        jobs,
        steps,
    );
    check(case, what, dst.content(), &expected);
}

/// Returns the lengths 0 and 1, and lengths around each number of lanes of a vector (4 to 64).
fn lengths() -> impl Iterator<Item = usize> {
    let around = |lanes| [lanes - 1, lanes, lanes + 1, 2 * lanes + 3];
    let lanes = [4, 8, 16, 32, 64];
    [0, 1].into_iter().chain(lanes.into_iter().flat_map(around))
}

#[test]
fn contiguous_runs_of_every_length() {
    for case in cases() {
        let alignment = case.element.alignment();
        for len in lengths() {
            for (start, misalignment) in [(0, 0), (1, alignment), (3, 5 * alignment)] {
                let job = Job {
                    dst: start,
                    src: 2,
                    len,
                };
                let what = format!("{len} elements from {start}");
                run(&case, &what, len + 6, misalignment, &[job], Steps::UNIT);
            }
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
    for case in cases() {
        for (dst, src) in steps {
            for len in [0_usize, 1, 2, 7, 33] {
                let start = |step: isize| if step < 0 { -step * 40 } else { 1 };
                let job = Job {
                    dst: start(dst),
                    src: start(src),
                    len,
                };
                let what = format!("{len} elements, steps {dst} and {src}");
                run(&case, &what, 130, 0, &[job], Steps { dst, src });
            }
        }
    }
}

#[test]
fn repeated_destinations_are_met_in_order() {
    for case in cases() {
        let lens = [3, 16, 1, 40, 0, 7, 40];
        let jobs = [3, 0, 5, 1, 2, 3, 1].into_iter().zip([9, 0, 4, 7, 1, 2, 6]);
        let jobs: Vec<Job> = jobs
            .zip(lens)
            .map(|((dst, src), len)| Job { dst, src, len })
            .collect();
        run(&case, "a list of jobs", 64, 0, &jobs, Steps::UNIT);
        run(
            &case,
            "a stepped list",
            96,
            0,
            &jobs,
            Steps { dst: 2, src: 1 },
        );
    }
}

#[test]
fn single_elements_with_repeated_offsets() {
    for case in cases() {
        let size = case.element.size();
        let kernel = case.row.apply_elements.expect("plain bytes");
        for (len, scale, wide) in [(0, 1, true), (1, 1, false), (100, 1, true), (77, 3, false)] {
            let mut bits = Bits(len as u64);
            let offsets: Vec<usize> = (0..len).map(|_| bits.below(20)).collect();
            let src = Buffer::new(&elements(case.element, len, &mut bits), 0);
            let mut expected = elements(case.element, 64, &mut bits);
            let mut dst = Buffer::new(&expected, 0);
            for (i, &offset) in offsets.iter().enumerate() {
                let job = Job {
                    dst: offset as isize * scale,
                    src: i as isize,
                    len: 1,
                };
                expect(&case, &mut expected, src.content(), &[job], Steps::UNIT);
            }
            let (d, s) = (dst.content_mut(), src.content());
            call_elements(kernel, size, wide, d, s, &offsets, scale);
            check(&case, "single elements", dst.content(), &expected);
        }
    }
}

#[test]
fn rows_with_repeated_numbers() {
    for case in cases() {
        let kernel = case.row.apply_rows.expect("plain bytes");
        for form in forms_of_rows() {
            let mut bits = Bits(form.len as u64);
            let numbers: Vec<u32> = (0..40).map(|_| bits.number(10)).collect();
            let src = elements(case.element, 40 * (form.len + 3), &mut bits);
            let src = Buffer::new(&src, 0);
            let mut expected = elements(case.element, 12 * (form.len + 3), &mut bits);
            let mut dst = Buffer::new(&expected, 0);
            let jobs = jobs_of(&numbers, form);
            expect(&case, &mut expected, src.content(), &jobs, Steps::UNIT);
            let (d, s) = (dst.content_mut(), src.content());
            call_rows(kernel, case.row.size, d, s, &numbers, form);
            check(&case, &format!("{form:?}"), dst.content(), &expected);
        }
    }
}

/// Reduces three groups whose runs have `len` elements. The source numbers of the groups are `[0,
/// 2, 1]`, `[4]` and `[3, 3]`. Run `n` of the source begins at element `40 * n`.
fn call_groups(case: &Case, dst: &mut [u8], src: &[u8], len: usize, steps: Steps) {
    let reducing = Reducing {
        reduction: case.reduction,
        include_self: true,
        accumulate: Accumulate::Native,
    };
    let kernels = Operation::plain(case.element, reducing, case.isa).expect("as the row");
    let kernel = kernels.group.expect("a reduction");
    let group = |dst: isize, start, end| Group { dst, start, end };
    let reach = |step: isize| 4 * 40 + (len as isize - 1) * step;
    assert!(
        reach(steps.dst) * case.row.size as isize <= dst.len() as isize,
        "destination"
    );
    assert!(
        reach(steps.src) * case.row.size as isize <= src.len() as isize,
        "source"
    );
    let sources = Sources {
        list: Some(&[0xf0, 0xf2, 0xf1, 0xf4, 0xf3, 0xf3]),
        mask: 0xf,
        step: 40,
    };
    let run = GroupRun {
        sources,
        len,
        steps,
        include_self: true,
        factor: 1.0,
    };
    let groups = [group(80, 0, 3), group(0, 3, 4), group(120, 4, 6)];
    // SAFETY: each run begins at element 160 or before. A run that begins at element 160 is inside
    // the buffers, as checked above.
    unsafe { kernel(dst.as_mut_ptr(), src.as_ptr(), &groups, run) };
}

#[test]
fn groups_combine_their_sources_in_order() {
    for case in cases().filter(|case| case.reduction != Reduction::None) {
        for len in [1, 3, 4, 31, 32, 33, 39] {
            for steps in [
                Steps::UNIT,
                Steps { dst: 1, src: 2 },
                Steps { dst: 2, src: 1 },
            ] {
                let mut bits = Bits(len as u64);
                let src = Buffer::new(&elements(case.element, 260, &mut bits), 0);
                let mut expected = elements(case.element, 260, &mut bits);
                let mut dst = Buffer::new(&expected, 0);
                let jobs = [
                    (80, 0),
                    (80, 80),
                    (80, 40),
                    (0, 160),
                    (120, 120),
                    (120, 120),
                ];
                let jobs = jobs.map(|(dst, src)| Job { dst, src, len });
                // Runs that overlap in the destination are skipped, because the reference would
                // combine their elements in another order.
                if steps.dst == 2 && len > 20 {
                    continue;
                }
                expect(&case, &mut expected, src.content(), &jobs, steps);
                call_groups(&case, dst.content_mut(), src.content(), len, steps);
                check(
                    &case,
                    &format!("groups of {len}, {steps:?}"),
                    dst.content(),
                    &expected,
                );
            }
        }
    }
}

#[test]
fn an_identity_changes_nothing() {
    for case in cases() {
        let reducing = Reducing {
            reduction: case.reduction,
            include_self: true,
            accumulate: Accumulate::Native,
        };
        let kernels = Operation::plain(case.element, reducing, case.isa).expect("as the row");
        let Some(private) = kernels.private() else {
            continue;
        };
        let size = case.row.size;
        let mut dst = Buffer::new(&elements(case.element, 100, &mut Bits(1)), 0);
        let expected = dst.content().to_vec();
        let all = Job {
            dst: 0,
            src: 0,
            len: 100,
        };
        let src = private.identity.repeat(100);
        let src: Vec<u8> = src
            .chunks(16)
            .flat_map(|one| &one[..size])
            .copied()
            .collect();
        let src = Buffer::new(&src, 0);
        let (d, s) = (dst.content_mut(), src.content());
        call(private.merge.apply, size, d, s, &[all], Steps::UNIT);
        assert!(
            dst.content() == expected,
            "{} {}",
            case.element,
            case.reduction
        );
    }
}

#[test]
fn a_nan_stays_and_a_tie_keeps_the_current_value() {
    let cases = [
        // Ties: -0 is equal to 0, so the current value stays.
        (0.0_f32, -0.0_f32, 0.0_f32),
        (-0.0, 0.0, -0.0),
        // NaN on each side.
        (f32::NAN, 1.0, f32::NAN),
        (1.0, f32::NAN, f32::NAN),
        (f32::NAN, f32::INFINITY, f32::NAN),
        (f32::NEG_INFINITY, f32::NAN, f32::NAN),
    ];
    for &isa in InstructionSet::available() {
        for reduction in [Reduction::Min, Reduction::Max] {
            for (current, update, expected) in cases {
                let row = Kernels::plain(DType::F32, reduction, isa).expect("ordered");
                // A run of 19 elements has whole vectors and a tail.
                let (mut dst, src) = ([current; 19], [update; 19]);
                let job = Job {
                    dst: 0,
                    src: 0,
                    len: 19,
                };
                // SAFETY: both arrays have 19 elements.
                unsafe {
                    let (dst, src) = (dst.as_mut_ptr().cast(), src.as_ptr().cast());
                    (row.apply)(dst, src, &[job], Steps::UNIT);
                }
                for value in dst {
                    let same = value.to_bits() == expected.to_bits();
                    assert!(
                        same || (value.is_nan() && expected.is_nan()),
                        "{isa} {value}"
                    );
                }
            }
        }
    }
}
