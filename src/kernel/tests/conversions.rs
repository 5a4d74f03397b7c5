//! Tests that compare every conversion, on every instruction set of this machine, with a search
//! over the codes of the format.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "random bits are truncated, and other numbers are small"
)]

use super::super::convert::{ConvertRun, LineSteps, convert_fn};
use super::{Bits, Buffer};
use crate::conversion::{Format, Rounding, Scaling};
use crate::element::DType;
use crate::kernel::InstructionSet;

/// A float format, defined by its codes. A code without the sign bit is a magnitude.
#[derive(Clone, Copy)]
struct Codes {
    bits: i32,
    fraction_bits: i32,
    /// Exponent of the smallest normal value.
    smallest_exponent: i32,
    /// Code of the largest finite value.
    largest: u32,
    /// Code of the values that round beyond the largest finite value.
    overflow: u32,
    /// Code of the NaN that an 8-bit float gets. Of 16-bit floats, one of the NaNs.
    nan: u32,
}

/// Returns the codes of a float format other than `f32`.
fn codes(format: Format) -> Option<Codes> {
    let (bits, fraction_bits, smallest_exponent, largest, overflow, nan) = match format {
        Format::F16 => (16, 10, -14, 0x7bff, 0x7c00, 0x7fff),
        Format::BF16 => (16, 7, -126, 0x7f7f, 0x7f80, 0x7fff),
        Format::F8E4M3Fn => (8, 3, -6, 0x7e, 0x7f, 0x7f),
        Format::F8E5M2 => (8, 2, -14, 0x7b, 0x7c, 0x7f),
        _ => return None,
    };
    Some(Codes {
        bits,
        fraction_bits,
        smallest_exponent,
        largest,
        overflow,
        nan,
    })
}

impl Codes {
    /// Returns the value of a magnitude. The magnitude after the largest finite value has the value
    /// that it would have if it were a number.
    fn value(self, magnitude: u32) -> f64 {
        let exponent = (magnitude >> self.fraction_bits).cast_signed();
        let fraction = magnitude & ((1 << self.fraction_bits) - 1);
        let one = if exponent == 0 {
            0
        } else {
            1 << self.fraction_bits
        };
        let power = self.smallest_exponent + exponent.max(1) - 1 - self.fraction_bits;
        f64::from(fraction + one) * 2_f64.powi(power)
    }

    /// Returns the largest magnitude whose value is at most `value`.
    fn below(self, value: f64) -> u32 {
        let (mut low, mut high) = (0, self.largest + 1);
        while high - low > 1 {
            let middle = u32::midpoint(low, high);
            if self.value(middle) <= value {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    fn nearest(self, value: f64) -> u32 {
        let below = self.below(value);
        let middle = f64::midpoint(self.value(below), self.value(below + 1));
        let up = value > middle || (value == middle && below % 2 == 1);
        let nearest = below + u32::from(up);
        if nearest > self.largest {
            self.overflow
        } else {
            nearest
        }
    }

    fn rounded(self, rounding: Rounding, value: f32) -> u32 {
        let sign = u32::from(value.is_sign_negative()) << (self.bits - 1);
        let magnitude = f64::from(value).abs();
        match rounding {
            Rounding::SaturateNan | Rounding::Truncate if value.is_nan() => self.largest,
            _ if value.is_nan() => sign | self.nan,
            Rounding::NearestEven => sign | self.nearest(magnitude),
            _ if magnitude > self.value(self.largest) => sign | self.largest,
            Rounding::Truncate if value == 0.0 => 0,
            Rounding::Truncate => sign | self.below(magnitude),
            _ => sign | self.nearest(magnitude),
        }
    }

    /// Returns the `f32` values at which the rounding changes: every value of the format, every
    /// midpoint, and their neighbours among the `f32` values, with both signs.
    fn corners(self) -> impl Iterator<Item = f32> {
        (0..=self.largest).flat_map(move |magnitude| {
            let [value, next] = [magnitude, magnitude + 1].map(|code| self.value(code));
            [value, f64::midpoint(value, next)]
                .into_iter()
                .flat_map(|x| neighbours(x as f32))
        })
    }
}

/// Returns `value` and the two `f32` values next to it, with both signs.
fn neighbours(value: f32) -> impl Iterator<Item = f32> {
    [value, value.next_up(), value.next_down()]
        .into_iter()
        .flat_map(|x| [x, -x])
}

fn integer(format: Format, rounding: Rounding, value: f32, zero: i32) -> u32 {
    let (min, max) = format.integer_range().expect("an integer format");
    let rounded = match rounding {
        Rounding::SaturateNan | Rounding::Truncate if value.is_nan() => f64::INFINITY,
        _ if value.is_nan() => 0.0,
        Rounding::Truncate => f64::from(value).trunc(),
        _ => f64::from(value).round_ties_even(),
    };
    let sum = (rounded + f64::from(zero)).clamp(f64::from(min), f64::from(max));
    let bits = if format.is_packed() { 0xf } else { 0xff };
    (sum as i32).cast_unsigned() & bits
}

fn single(rounding: Rounding, value: f32) -> f32 {
    match rounding {
        Rounding::NearestEven => value,
        Rounding::Saturate if value.is_nan() => value,
        _ if value.is_nan() => f32::MAX,
        Rounding::Truncate if value == 0.0 => 0.0,
        _ => value.clamp(f32::MIN, f32::MAX),
    }
}

/// Returns the bits of `value` in `format`: the reference.
fn reference(format: Format, rounding: Rounding, value: f32, zero: i32) -> u32 {
    match codes(format) {
        Some(codes) => codes.rounded(rounding, value),
        None if format == Format::F32 => single(rounding, value).to_bits(),
        None => integer(format, rounding, value, zero),
    }
}

/// Checks whether two codes are equal, or both NaN of a format of at least 16 bits.
fn same(format: Format, a: u32, b: u32) -> bool {
    let is_nan = |code: u32| match format {
        Format::F32 => f32::from_bits(code).is_nan(),
        Format::F16 => code & 0x7fff > 0x7c00,
        Format::BF16 => code & 0x7fff > 0x7f80,
        _ => false,
    };
    a == b || (is_nan(a) && is_nan(b))
}

/// Bytes of a destination element.
fn size(format: Format) -> usize {
    match format {
        Format::F32 => 4,
        Format::F16 | Format::BF16 => 2,
        _ => 1,
    }
}

/// Returns the value of an element of the type `from`.
fn widened(from: DType, element: &[u8]) -> f32 {
    let half = || u16::from_ne_bytes(element.try_into().expect("2 bytes"));
    match from {
        DType::F32 => f32::from_ne_bytes(element.try_into().expect("4 bytes")),
        DType::BF16 => f32::from_bits(u32::from(half()) << 16),
        _ => {
            let codes = codes(Format::F16).expect("a float");
            let (magnitude, is_negative) = (u32::from(half() & 0x7fff), half() >> 15 == 1);
            let value = match magnitude {
                0x7c00 => f32::INFINITY,
                0x7c01.. => f32::NAN,
                _ => codes.value(magnitude) as f32,
            };
            if is_negative { -value } else { value }
        }
    }
}

fn scaled(value: f32, scale: Option<f32>, scaling: Scaling) -> f32 {
    match (scale, scaling) {
        _ if value.is_nan() => value,
        (None, _) => value,
        (Some(scale), Scaling::Divide) => value / scale,
        (Some(scale), Scaling::Reciprocal) => value * (1.0 / scale),
    }
}

/// Returns a run without scale and zero point, with both sides contiguous.
fn contiguous(len: usize, format: Format) -> ConvertRun {
    let values = if format.is_packed() { 2 } else { 1 };
    ConvertRun {
        len,
        lines: 1,
        line_steps: LineSteps::default(),
        dst_step: 1,
        src_step: values,
        src_pair: 1,
        scale: std::ptr::null(),
        scale_step: 0,
        scale_pair: 0,
        zero: std::ptr::null(),
        zero_step: 0,
        zero_pair: 0,
    }
}

/// Reads destination element `position`.
fn code(bytes: &[u8], format: Format, position: usize) -> u32 {
    let at = position * size(format);
    match size(format) {
        4 => u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes")),
        2 => u32::from(u16::from_ne_bytes(
            bytes[at..at + 2].try_into().expect("2 bytes"),
        )),
        _ => u32::from(bytes[at]),
    }
}

/// Returns the bytes of a destination element.
fn stored(code: u32, size: usize) -> Vec<u8> {
    match size {
        4 => code.to_ne_bytes().to_vec(),
        2 => (code as u16).to_ne_bytes().to_vec(),
        _ => vec![code as u8],
    }
}

/// Converts all elements of `src` with every rounding, every format and every instruction set, and
/// compares each result with the reference. Formats of 8 bits are written with the strides 1 and 2:
/// different loops convert contiguous and other elements.
fn check_all(from: DType, src: &[u8], scale: Option<f32>, scaling: Scaling) {
    let values: Vec<f32> = (src.chunks_exact(from.size()))
        .map(|element| scaled(widened(from, element), scale, scaling))
        .collect();
    let src = Buffer::new(src, 0);
    for format in Format::ALL {
        let steps = if size(format) == 1 { 1..=2 } else { 1..=1 };
        for rounding in Rounding::ALL {
            let expected: Vec<u32> = (values.iter())
                .map(|&value| reference(format, rounding, value, 0))
                .collect();
            for (&isa, step) in (InstructionSet::available().iter())
                .flat_map(|isa| steps.clone().map(move |step| (isa, step)))
            {
                let function = convert_fn(from, format, rounding, scaling, isa).expect("a float");
                let packing = if format.is_packed() { 2 } else { 1 };
                let run = ConvertRun {
                    scale: scale.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
                    dst_step: step,
                    ..contiguous(values.len() / packing, format)
                };
                let step = step.unsigned_abs();
                let mut dst = Buffer::new(&vec![0; run.len * step * size(format)], 0);
                let (to, at) = (dst.content_mut().as_mut_ptr(), src.content().as_ptr());
                // SAFETY: both buffers are aligned, and have `run.len` elements at their strides.
                unsafe { function(to, at, &run) };
                for (position, (&expected, value)) in expected.iter().zip(&values).enumerate() {
                    let code = code(dst.content(), format, position / packing * step);
                    let code = match (packing, position % 2) {
                        (1, _) => code,
                        (_, 0) => code & 0xf,
                        _ => code >> 4,
                    };
                    assert!(
                        same(format, code, expected),
                        "{from} {value:e} to {format} ({rounding}, {scaling} by {scale:?}, {isa}, \
                         stride {step}): {code:#x}, not {expected:#x}",
                    );
                }
            }
        }
    }
}

/// Scales: none, 1, a power of two, and numbers whose reciprocals are rounded. The large and small
/// scales move many values beyond the formats, or to their subnormal values.
const SCALES: [Option<f32>; 6] = [
    None,
    Some(1.0),
    Some(0.25),
    Some(0.013),
    Some(7.3e-6),
    Some(3.1e4),
];

fn check_with_scales(from: DType, src: &[u8]) {
    for scale in SCALES {
        for scaling in Scaling::ALL {
            if scale.is_some() || scaling == Scaling::Divide {
                check_all(from, src, scale, scaling);
            }
        }
    }
}

fn every_half() -> Vec<u8> {
    (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect()
}

#[test]
fn every_f16_converts_as_the_reference() {
    check_with_scales(DType::F16, &every_half());
}

#[test]
fn every_bf16_converts_as_the_reference() {
    check_with_scales(DType::BF16, &every_half());
}

/// Returns `f32` values with `random` random bit patterns, every exponent, and the values at which
/// a rounding changes.
fn floats(random: usize) -> Vec<u8> {
    let mut bits = Bits(41);
    let random = (0..random).map(|_| f32::from_bits((bits.next() >> 32) as u32));
    let exponents = (0..512_u32).flat_map(|exponent| {
        [
            0, 1, 2, 0x3f_ffff, 0x40_0000, 0x40_0001, 0x7f_fffe, 0x7f_ffff,
        ]
        .map(|fraction| f32::from_bits(exponent << 23 | fraction))
    });
    let formats = [Format::F8E4M3Fn, Format::F8E5M2, Format::F16, Format::BF16];
    let corners = (formats.into_iter())
        .filter_map(codes)
        .flat_map(Codes::corners);
    let halves_of_integers = (0..1200).flat_map(|n| neighbours(n as f32 * 0.5));
    let limits = [4_194_304.0, 8_388_608.0, 2_147_483_648.0, 4.0e9]
        .into_iter()
        .flat_map(neighbours);
    let mut floats: Vec<f32> = (random.chain(exponents).chain(corners))
        .chain(halves_of_integers)
        .chain(limits)
        .collect();
    floats.truncate(floats.len() / 2 * 2);
    floats
        .iter()
        .flat_map(|float| float.to_ne_bytes())
        .collect()
}

#[test]
fn f32_converts_as_the_reference() {
    check_all(DType::F32, &floats(1 << 18), None, Scaling::Divide);
    let few = floats(1 << 10);
    check_all(DType::F32, &few, Some(0.013), Scaling::Divide);
    check_all(DType::F32, &few, Some(0.013), Scaling::Reciprocal);
}

#[test]
#[ignore = "takes minutes"]
fn many_f32_convert_as_the_reference() {
    check_with_scales(DType::F32, &floats(1 << 26));
}

/// A sequence of elements in a buffer, at a stride.
#[derive(Clone, Copy, Debug)]
struct Strided {
    first: isize,
    step: isize,
    pair: isize,
}

impl Strided {
    /// Returns a sequence with two elements for each of `len` positions: the second is `pair`
    /// elements after the first. Also returns how many elements the buffer needs.
    fn new(len: usize, step: isize, pair: isize) -> (Self, usize) {
        let last = (len.max(1) - 1) as isize * step;
        let corners = [0, last, pair, last + pair];
        let min = corners.into_iter().min().expect("four corners");
        let max = corners.into_iter().max().expect("four corners");
        let first = -min;
        let needed = usize::try_from(max - min).expect("max is not less") + 1;
        (Self { first, step, pair }, needed)
    }

    fn position(self, i: usize, pair: usize) -> usize {
        let position = self.first + i as isize * self.step + pair as isize * self.pair;
        usize::try_from(position).expect("inside")
    }
}

/// A run in random buffers, with the strides of each sequence.
struct Case {
    from: DType,
    format: Format,
    rounding: Rounding,
    scaling: Scaling,
    len: usize,
    dst: (Strided, usize),
    src: (Strided, usize),
    scale: Option<(Strided, usize)>,
    zero: Option<(Strided, usize)>,
}

impl Case {
    fn random(bits: &mut Bits) -> Self {
        fn any<T: Copy>(bits: &mut Bits, list: &[T]) -> T {
            list[bits.below(list.len())]
        }
        let len = match bits.below(4) {
            0 => any(bits, &[127, 128, 129, 255, 256, 257, 511, 512, 513, 600]),
            _ => bits.below(201),
        };
        let steps = [0, 1, 1, 2, 2, -1, 3, -7];
        // In half of the cases, the two values of a byte alternate in every sequence.
        let alternates = bits.below(2) == 0;
        let sequence = |bits: &mut Bits| {
            let pairs = [0, 1, 1, -1, 5, 700];
            let (step, pair) = match alternates {
                true => [(0, 0), (2, 1), (2, 1), (-6, -3)][bits.below(4)],
                false => (any(bits, &steps), any(bits, &pairs)),
            };
            Strided::new(len, step, pair)
        };
        Self {
            from: any(bits, &[DType::F32, DType::F16, DType::BF16]),
            format: any(bits, &Format::ALL),
            rounding: any(bits, &Rounding::ALL),
            scaling: any(bits, &Scaling::ALL),
            len,
            src: sequence(bits),
            scale: (bits.below(3) > 0).then(|| sequence(bits)),
            zero: (bits.below(3) > 0).then(|| sequence(bits)),
            dst: Strided::new(len, any(bits, &[1, 1, 1, 2, -1, 16, -5]), 0),
        }
    }

    /// Runs the case on every instruction set, and compares every byte of the destination with the
    /// reference.
    fn check(&self, bits: &mut Bits) {
        let src: Vec<u8> = (0..self.src.1 * self.from.size())
            .map(|_| bits.next() as u8)
            .collect();
        let scales: Vec<f32> = (0..self.scale.map_or(0, |scale| scale.1))
            .map(|_| 2_f32.powi(bits.below(24) as i32 - 12) * (1.0 + bits.below(100) as f32 * 0.01))
            .collect();
        let (min, max) = self.format.integer_range().unwrap_or((0, 0));
        let zeros: Vec<i32> = (0..self.zero.map_or(0, |zero| zero.1))
            .map(|_| min + bits.below((max - min) as usize + 1) as i32)
            .collect();
        let src = Buffer::new(&src, 0);
        let size = size(self.format);
        let before: Vec<u8> = (0..self.dst.1 * size).map(|_| bits.next() as u8).collect();
        let mut expected = before.clone();
        for i in 0..self.len {
            let at = self.dst.0.position(i, 0) * size;
            let code = self.expected(src.content(), &scales, &zeros, i);
            expected[at..at + size].copy_from_slice(&stored(code, size));
        }
        let run = ConvertRun {
            len: self.len,
            lines: 1,
            line_steps: LineSteps::default(),
            dst_step: self.dst.0.step,
            src_step: self.src.0.step,
            src_pair: self.src.0.pair,
            scale: self.scale.map_or(std::ptr::null(), |(at, _)| {
                &raw const scales[at.position(0, 0)]
            }),
            scale_step: self.scale.map_or(0, |(at, _)| at.step),
            scale_pair: self.scale.map_or(0, |(at, _)| at.pair),
            zero: self.zero.map_or(std::ptr::null(), |(at, _)| {
                &raw const zeros[at.position(0, 0)]
            }),
            zero_step: self.zero.map_or(0, |(at, _)| at.step),
            zero_pair: self.zero.map_or(0, |(at, _)| at.pair),
        };
        for &isa in InstructionSet::available() {
            let mut dst = Buffer::new(&before, 0);
            let from = src.content()[self.src.0.position(0, 0) * self.from.size()..].as_ptr();
            let function = convert_fn(self.from, self.format, self.rounding, self.scaling, isa);
            let to = dst.content_mut()[self.dst.0.position(0, 0) * size..].as_mut_ptr();
            // SAFETY: `Strided::new` has returned the sizes of buffers that hold all elements.
            unsafe { function.expect("a float")(to, from, &run) };
            for (at, (bytes, expected)) in (dst.content().chunks_exact(size))
                .zip(expected.chunks_exact(size))
                .enumerate()
            {
                assert!(
                    same(
                        self.format,
                        code(bytes, self.format, 0),
                        code(expected, self.format, 0)
                    ),
                    "{bytes:x?}, not {expected:x?}, at {at}: {} to {}, {}, {}, {isa}, {run:?}",
                    self.from,
                    self.format,
                    self.rounding,
                    self.scaling,
                );
            }
        }
    }

    /// Returns the code of destination element `i`.
    fn expected(&self, src: &[u8], scales: &[f32], zeros: &[i32], i: usize) -> u32 {
        let size = self.from.size();
        let value = |pair: usize| {
            let at = self.src.0.position(i, pair) * size;
            let scale = self.scale.map(|(scale, _)| scales[scale.position(i, pair)]);
            let value = scaled(widened(self.from, &src[at..at + size]), scale, self.scaling);
            let zero = self
                .zero
                .map_or(0, |(zero, _)| zeros[zero.position(i, pair)]);
            reference(self.format, self.rounding, value, zero)
        };
        if self.format.is_packed() {
            value(0) | value(1) << 4
        } else {
            value(0)
        }
    }
}

/// A run of several lines writes what one run for each line writes.
#[test]
fn lines_are_runs() {
    const ROOM: usize = 4096;
    let mut bits = Bits(11);
    for round in 0..3000 {
        let (format, from) = (Format::ALL[round % Format::ALL.len()], DType::BF16);
        let (len, lines) = ([1, 3, 128, 300, 512, 600][bits.below(6)], 1 + bits.below(4));
        let steps = |bits: &mut Bits| [0, 1, 2][bits.below(3)];
        let line_steps = |bits: &mut Bits| [0, 1, 128, 301][bits.below(4)];
        let scales: Vec<f32> = (0..ROOM)
            .map(|_| 0.5 + 0.5 * bits.below(20) as f32)
            .collect();
        let zeros: Vec<i32> = (0..ROOM).map(|_| bits.below(7) as i32).collect();
        let src: Vec<u8> = (0..ROOM * 2).map(|_| bits.next() as u8).collect();
        let src = Buffer::new(&src, 0);
        let run = ConvertRun {
            len,
            lines,
            line_steps: LineSteps {
                dst: [600, 601, 700][bits.below(3)],
                src: line_steps(&mut bits),
                scale: line_steps(&mut bits),
                zero: line_steps(&mut bits),
            },
            dst_step: 1,
            src_step: steps(&mut bits),
            src_pair: 1,
            scale: if bits.below(4) > 0 {
                scales.as_ptr()
            } else {
                std::ptr::null()
            },
            scale_step: steps(&mut bits),
            scale_pair: 1,
            zero: if bits.below(2) > 0 {
                zeros.as_ptr()
            } else {
                std::ptr::null()
            },
            zero_step: steps(&mut bits),
            zero_pair: 1,
        };
        let scaling = Scaling::ALL[bits.below(2)];
        for &isa in InstructionSet::available() {
            let function = convert_fn(from, format, Rounding::Saturate, scaling, isa);
            let function = function.expect("a float");
            let before = vec![0xa5; ROOM * size(format)];
            let mut dst = [Buffer::new(&before, 0), Buffer::new(&before, 0)];
            // SAFETY: each buffer has `ROOM` elements, more than the largest position of a run.
            unsafe {
                function(
                    dst[0].content_mut().as_mut_ptr(),
                    src.content().as_ptr(),
                    &run,
                )
            };
            for line in 0..lines {
                let at = |step: isize| step.unsigned_abs() * line;
                let steps = run.line_steps;
                let single = ConvertRun {
                    lines: 1,
                    scale: if run.scale.is_null() {
                        run.scale
                    } else {
                        &raw const scales[at(steps.scale)]
                    },
                    zero: if run.zero.is_null() {
                        run.zero
                    } else {
                        &raw const zeros[at(steps.zero)]
                    },
                    ..run
                };
                let to = dst[1].content_mut()[at(steps.dst) * size(format)..].as_mut_ptr();
                let from = src.content()[at(steps.src) * 2..].as_ptr();
                // SAFETY: as above.
                unsafe { function(to, from, &single) };
            }
            assert_eq!(
                dst[0].content(),
                dst[1].content(),
                "{format}, {isa}, {run:?}"
            );
        }
    }
}

#[test]
fn strides_scales_and_zero_points() {
    let mut bits = Bits(7);
    for _ in 0..20_000 {
        Case::random(&mut bits).check(&mut bits);
    }
}

#[test]
fn other_types_have_no_conversion() {
    for from in DType::ALL {
        let is_float = matches!(from, DType::F32 | DType::F16 | DType::BF16);
        for format in Format::ALL {
            let isa = InstructionSet::Portable;
            let function = convert_fn(from, format, Rounding::Saturate, Scaling::Divide, isa);
            assert_eq!(function.is_some(), is_float, "{from} to {format}");
        }
    }
}
