//! Reference reductions of one element, in scalar code that follows the definition of each
//! reduction.

use crate::element::DType;
use crate::reduction::Reduction;

/// Checks whether an element type has a reduction.
pub(super) fn is_supported(element: DType, reduction: Reduction) -> bool {
    let complex = matches!(element, DType::Complex64 | DType::Complex128);
    match reduction {
        Reduction::None => true,
        Reduction::Min | Reduction::Max => !complex && !element.is_opaque(),
        Reduction::Mean => false,
        _ => !element.is_opaque(),
    }
}

/// Reads the bytes `$current` and `$update` as `$type`, calls `$body` with the two values, and
/// writes the result to `$current`.
macro_rules! on {
    ($type:ty, $current:ident, $update:ident, $body:expr) => {{
        let read = |bytes: &[u8]| <$type>::from_ne_bytes(bytes.try_into().expect("size"));
        let body: fn($type, $type) -> $type = $body;
        let result = body(read($current), read($update));
        $current.copy_from_slice(&result.to_ne_bytes());
    }};
}

macro_rules! integer {
    ($type:ty, $reduction:ident, $current:ident, $update:ident) => {
        match $reduction {
            Reduction::None => on!($type, $current, $update, |_, u| u),
            Reduction::Add => on!($type, $current, $update, <$type>::wrapping_add),
            Reduction::Sub => on!($type, $current, $update, <$type>::wrapping_sub),
            Reduction::Mul => on!($type, $current, $update, <$type>::wrapping_mul),
            Reduction::Min => on!($type, $current, $update, |c, u| if u < c { u } else { c }),
            Reduction::Max => on!($type, $current, $update, |c, u| if u > c { u } else { c }),
            Reduction::Mean => unreachable!("a row has no mean"),
        }
    };
}

macro_rules! float {
    ($type:ty, $reduction:ident, $current:ident, $update:ident) => {
        match $reduction {
            Reduction::None => on!($type, $current, $update, |_, u| u),
            Reduction::Add => on!($type, $current, $update, |c, u| c + u),
            Reduction::Sub => on!($type, $current, $update, |c, u| c - u),
            Reduction::Mul => on!($type, $current, $update, |c, u| c * u),
            Reduction::Min => on!($type, $current, $update, |c, u| {
                if c.is_nan() || u.is_nan() {
                    <$type>::NAN
                } else if u < c {
                    u
                } else {
                    c
                }
            }),
            Reduction::Max => on!($type, $current, $update, |c, u| {
                if c.is_nan() || u.is_nan() {
                    <$type>::NAN
                } else if u > c {
                    u
                } else {
                    c
                }
            }),
            Reduction::Mean => unreachable!("a row has no mean"),
        }
    };
}

/// Replaces `current` by the reduction of `current` and `update`.
pub(super) fn apply(element: DType, reduction: Reduction, current: &mut [u8], update: &[u8]) {
    match element {
        DType::I8 => integer!(i8, reduction, current, update),
        DType::I16 => integer!(i16, reduction, current, update),
        DType::I32 => integer!(i32, reduction, current, update),
        DType::I64 => integer!(i64, reduction, current, update),
        DType::U8 => integer!(u8, reduction, current, update),
        DType::U16 => integer!(u16, reduction, current, update),
        DType::U32 => integer!(u32, reduction, current, update),
        DType::U64 => integer!(u64, reduction, current, update),
        DType::F32 => float!(f32, reduction, current, update),
        DType::F64 => float!(f64, reduction, current, update),
        DType::F16 => half(FLOAT16, reduction, current, update),
        DType::BF16 => half(BFLOAT16, reduction, current, update),
        DType::Bool => current[0] = boolean(reduction, current[0], update[0]),
        DType::Complex64 => complex::<4>(DType::F32, reduction, current, update),
        DType::Complex128 => complex::<8>(DType::F64, reduction, current, update),
        DType::Bytes1 | DType::Bytes2 | DType::Bytes4 | DType::Bytes8 | DType::Bytes16 => {
            assert_eq!(reduction, Reduction::None, "{element} is only moved");
            current.copy_from_slice(update);
        }
    }
}

fn boolean(reduction: Reduction, current: u8, update: u8) -> u8 {
    let (c, u) = (current != 0, update != 0);
    match reduction {
        Reduction::None => update,
        Reduction::Add | Reduction::Max => u8::from(c || u),
        Reduction::Sub => u8::from(c != u),
        Reduction::Mul | Reduction::Min => u8::from(c && u),
        Reduction::Mean => unreachable!("a row has no mean"),
    }
}

fn complex<const N: usize>(part: DType, reduction: Reduction, current: &mut [u8], update: &[u8]) {
    if reduction != Reduction::Mul {
        apply(part, reduction, &mut current[..N], &update[..N]);
        return apply(part, reduction, &mut current[N..], &update[N..]);
    }
    let of = |reduction, a: &[u8], b: &[u8]| -> [u8; N] {
        let mut result: [u8; N] = a.try_into().expect("size");
        apply(part, reduction, &mut result, b);
        result
    };
    let ((a, b), (c, d)) = (current.split_at(N), update.split_at(N));
    let product = |x, y| of(Reduction::Mul, x, y);
    let re = of(Reduction::Sub, &product(a, c), &product(b, d));
    let im = of(Reduction::Add, &product(a, d), &product(b, c));
    current[..N].copy_from_slice(&re);
    current[N..].copy_from_slice(&im);
}

/// A format of 16-bit floats: the number of bits of the fraction, and the exponent of the smallest
/// normal number.
#[derive(Clone, Copy)]
pub(super) struct Format {
    fraction_bits: i32,
    smallest_exponent: i32,
}

pub(super) const FLOAT16: Format = Format {
    fraction_bits: 10,
    smallest_exponent: -14,
};

pub(super) const BFLOAT16: Format = Format {
    fraction_bits: 7,
    smallest_exponent: -126,
};

impl Format {
    fn infinity(self) -> u16 {
        0x7fff >> self.fraction_bits << self.fraction_bits
    }

    pub(super) fn is_nan(self, bits: u16) -> bool {
        bits & 0x7fff > self.infinity()
    }

    /// Returns the value that `bits` have by the definition of the format.
    pub(super) fn value(self, bits: u16) -> f64 {
        let magnitude = i32::from(bits & 0x7fff);
        let value = if self.is_nan(bits) {
            f64::NAN
        } else if bits & 0x7fff == self.infinity() {
            f64::INFINITY
        } else {
            let exponent = (magnitude >> self.fraction_bits).max(1) - 1;
            let one = i32::from(magnitude >> self.fraction_bits != 0) << self.fraction_bits;
            let fraction = magnitude & ((1 << self.fraction_bits) - 1);
            let scale = self.smallest_exponent + exponent - self.fraction_bits;
            f64::from(one + fraction) * f64::from(scale).exp2()
        };
        if bits >> 15 == 0 { value } else { -value }
    }

    /// Rounds `value` to the nearest value of this 16-bit format, ties to even, and returns the
    /// bits of the result. The function bisects over the bit patterns of the format.
    pub(super) fn nearest(self, value: f32) -> u16 {
        let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
        let magnitude = f64::from(value.abs());
        if value.is_nan() {
            return 0x7fff;
        }
        let (mut low, mut high) = (0, self.infinity());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.value(middle) <= magnitude {
                low = middle;
            } else {
                high = middle;
            }
        }
        // For rounding, infinity has the value that would follow the largest finite value.
        let below = self.value(low);
        let above = if high == self.infinity() {
            below + (below - self.value(low - 1))
        } else {
            self.value(high)
        };
        let middle = f64::midpoint(below, above);
        let up = magnitude > middle || (magnitude == middle && low % 2 == 1);
        sign | if up { high } else { low }
    }
}

fn half(format: Format, reduction: Reduction, current: &mut [u8], update: &[u8]) {
    let bits = |bytes: &[u8]| u16::from_ne_bytes(bytes.try_into().expect("size"));
    let (c, u) = (bits(current), bits(update));
    #[expect(
        clippy::cast_possible_truncation,
        reason = "every value of a 16-bit format is an `f32`"
    )]
    let (x, y) = (format.value(c) as f32, format.value(u) as f32);
    let either_nan = x.is_nan() || y.is_nan();
    let result = match reduction {
        Reduction::None => u,
        Reduction::Add => format.nearest(x + y),
        Reduction::Sub => format.nearest(x - y),
        Reduction::Mul => format.nearest(x * y),
        Reduction::Min | Reduction::Max if either_nan => 0x7fff,
        Reduction::Min if y < x => u,
        Reduction::Max if y > x => u,
        Reduction::Min | Reduction::Max => c,
        Reduction::Mean => unreachable!("a row has no mean"),
    };
    current.copy_from_slice(&result.to_ne_bytes());
}

/// Checks whether two results have equal bits or are both NaN. The two parts of a complex number
/// are compared separately.
pub(super) fn same(element: DType, a: &[u8], b: &[u8]) -> bool {
    let is_nan = |bytes: &[u8]| match element {
        DType::F16 => FLOAT16.is_nan(u16::from_ne_bytes(bytes.try_into().expect("size"))),
        DType::BF16 => BFLOAT16.is_nan(u16::from_ne_bytes(bytes.try_into().expect("size"))),
        DType::F32 => f32::from_ne_bytes(bytes.try_into().expect("size")).is_nan(),
        DType::F64 => f64::from_ne_bytes(bytes.try_into().expect("size")).is_nan(),
        _ => false,
    };
    match element {
        DType::Complex64 => {
            same(DType::F32, &a[..4], &b[..4]) && same(DType::F32, &a[4..], &b[4..])
        }
        DType::Complex128 => {
            same(DType::F64, &a[..8], &b[..8]) && same(DType::F64, &a[8..], &b[8..])
        }
        _ => a == b || (is_nan(a) && is_nan(b)),
    }
}
