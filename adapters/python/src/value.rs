//! One value that stands for all updates, converted to the dtype of `data`.
//!
//! Knows Python's numbers and the rules by which numpy promotes them. Does not know arrays.

use ndscatter::DType;

/// The bytes of a value, aligned for every dtype.
#[repr(align(16))]
pub(crate) struct Value(pub(crate) [u8; 16]);

impl Value {
    pub(crate) const ZERO: Self = Self([0; 16]);

    fn new<const N: usize>(bytes: [u8; N]) -> Self {
        let mut all = Self::ZERO;
        all.0[..N].copy_from_slice(&bytes);
        all
    }

    pub(crate) fn of_bool(value: bool) -> Self {
        Self::new([u8::from(value)])
    }

    /// Returns 1 in an arithmetic dtype.
    pub(crate) fn one(dtype: DType) -> Self {
        // 1.0 as f16, and as bf16: the upper half of 1.0 as f32.
        const HALF: u16 = 0x3c00;
        const BRAIN: u16 = 0x3f80;
        match dtype {
            DType::F16 => Self::new(HALF.to_ne_bytes()),
            DType::BF16 => Self::new(BRAIN.to_ne_bytes()),
            DType::F32 | DType::Complex64 => Self::new(1_f32.to_ne_bytes()),
            DType::F64 | DType::Complex128 => Self::new(1_f64.to_ne_bytes()),
            dtype => match dtype.size() {
                1 => Self::new([1]),
                2 => Self::new(1_u16.to_ne_bytes()),
                4 => Self::new(1_u32.to_ne_bytes()),
                _ => Self::new(1_u64.to_ne_bytes()),
            },
        }
    }

    /// Converts a float to `dtype`, or returns `None` where the result could differ from numpy's.
    ///
    /// numpy computes with Python's floats in 64 bits. A value that `f32` represents exactly gives
    /// the same result in 32 bits.
    pub(crate) fn of_float(dtype: DType, value: f64) -> Option<Self> {
        match dtype {
            DType::F64 => Some(Self::new(value.to_ne_bytes())),
            DType::F32 => {
                #[expect(clippy::cast_possible_truncation, reason = "compared with the value")]
                let short = value as f32;
                (f64::from(short) == value).then(|| Self::new(short.to_ne_bytes()))
            }
            _ => None,
        }
    }

    /// Converts an integer to `dtype`, or returns `None` where the result could differ from
    /// numpy's.
    ///
    /// numpy computes with Python's integers in 64 bits and truncates the result. Sums and products
    /// (`wraps`) give the same result if the operand is truncated first.
    pub(crate) fn of_integer(dtype: DType, value: i64, wraps: bool) -> Option<Self> {
        macro_rules! cut {
            ($type:ty) => {{
                let fits = <$type>::try_from(value).is_ok();
                // The cast truncates.
                let short = value as $type;
                (wraps || fits).then(|| Self::new(short.to_ne_bytes()))
            }};
        }
        match dtype {
            DType::I64 => Some(Self::new(value.to_ne_bytes())),
            DType::I8 => cut!(i8),
            DType::I16 => cut!(i16),
            DType::I32 => cut!(i32),
            DType::U8 => cut!(u8),
            DType::U16 => cut!(u16),
            DType::U32 => cut!(u32),
            // Integers of at most 32 bits are exact in f64; `of_float` checks f32.
            DType::F32 | DType::F64 => Self::of_float(dtype, f64::from(i32::try_from(value).ok()?)),
            _ => None,
        }
    }
}
