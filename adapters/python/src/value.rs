//! One value that stands for all updates, in the type of what it meets.
//!
//! Knows Python's numbers and the rules by which numpy promotes them. Knows nothing of
//! arrays.

use ndscatter::DType;

/// The bytes of a value, aligned as any type.
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

    /// 1, of a type that is computed with.
    pub(crate) fn one(dtype: DType) -> Self {
        // The upper half of 1.0.
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

    /// A float, for which numpy computes in 64 bits: where the value has the same bits in
    /// the type, that makes no difference.
    pub(crate) fn of_float(dtype: DType, value: f64) -> Option<Self> {
        match dtype {
            DType::F64 => Some(Self::new(value.to_ne_bytes())),
            DType::F32 => {
                #[expect(clippy::cast_possible_truncation, reason = "held against the value")]
                let short = value as f32;
                (f64::from(short) == value).then(|| Self::new(short.to_ne_bytes()))
            }
            _ => None,
        }
    }

    /// An integer, for which numpy computes in 64 bits. What comes out is cut off to the
    /// type, which for sums and products can be done before.
    pub(crate) fn of_integer(dtype: DType, value: i64, wraps: bool) -> Option<Self> {
        macro_rules! cut {
            ($type:ty) => {{
                let fits = <$type>::try_from(value).is_ok();
                // It wraps.
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
            // Wider integers are not the floats that they are rounded to.
            DType::F32 | DType::F64 => Self::of_float(dtype, f64::from(i32::try_from(value).ok()?)),
            _ => None,
        }
    }
}
