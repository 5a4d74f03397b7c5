//! One value that a call uses for all updates, in the dtype of the output.
//!
//! This module converts Python's numbers by the rules of numpy's type promotion. The module does
//! not depend on arrays.

use ndscatter::DType;

/// The bytes of one value, with the alignment that every dtype requires. A value of fewer than 16
/// bytes is stored in the first bytes.
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

    /// Returns the number 1 in `dtype`, which must have arithmetic.
    pub(crate) fn one(dtype: DType) -> Self {
        // Bits of 1.0 as f16 (`HALF`) and as bf16 (`BRAIN`).
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

    /// Converts a Python float to `dtype`. Returns `None` if a computation with the converted value
    /// could give another result than numpy.
    ///
    /// numpy computes with a Python float in f64, and rounds the result to the dtype of the array.
    /// If the dtype is f32 and f32 represents the float exactly, a computation in f32 gives the
    /// same result.
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

    /// Converts a Python integer to `dtype`. Returns `None` if a computation with the converted
    /// value could give another result than numpy.
    ///
    /// numpy computes with a Python integer in 64 bits, and truncates the result to the dtype of
    /// the array. The variable `wraps` is true for sums, differences and products. These operations
    /// give an equal result if the integer is truncated before the computation. Minima and maxima
    /// can give another result, so their integer must fit in `dtype`.
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
            // f64 represents every i32 exactly. `of_float` checks whether f32 represents it
            // exactly.
            DType::F32 | DType::F64 => Self::of_float(dtype, f64::from(i32::try_from(value).ok()?)),
            _ => None,
        }
    }
}
