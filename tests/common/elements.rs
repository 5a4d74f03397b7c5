//! The element types of the reference: the arithmetic of each type, the comparison of two results,
//! and the values that tests draw.

use std::fmt::Debug;

use ndscatter::{Accumulate, Element, Reduction};
use num_traits::Bounded;
use num_traits::float::FloatCore;

use super::api::DType;
use super::arithmetic::{How, boolean, float, integer, reduce_native};
#[cfg(feature = "half")]
use super::arithmetic::{half_combine, half_divide, half_reduce};
use super::random::Random;

/// The kind of values that a tensor is filled with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Palette {
    /// Finite values of many magnitudes. Their sums depend on the order.
    Ordinary,
    /// Extreme values: zeros of both signs, infinities, NaN, subnormals, the limits of the type.
    Wild,
}

impl Palette {
    pub(crate) const ALL: [Self; 2] = [Self::Ordinary, Self::Wild];
}

/// An element type that the reference supports.
pub(crate) trait Ref: Element + Debug + PartialEq {
    /// The reductions that are defined for this type.
    const REDUCTIONS: &'static [Reduction] = &Reduction::ALL;

    /// Returns the mark for memory that no call may write.
    fn sentinel() -> Self;
    fn zero_value() -> Self;
    /// Applies one step of a reduction. `Mean` is not a step: its steps are steps of `Add`.
    fn combine(reduction: Reduction, current: Self, update: Self) -> Self;
    /// Divides the sum of a mean by the count.
    fn divide(self, count: usize) -> Self;

    /// Returns an element after one or more updates.
    fn reduce(how: How, current: Self, updates: &[Self]) -> Self {
        match how.accumulate {
            // `None` keeps no running value, so `accumulate` has no effect.
            Accumulate::Wide if how.reduction != Reduction::None => {
                Self::reduce_wide(how, current, updates)
            }
            _ => reduce_native(how, current, updates),
        }
    }

    /// Computes [`Self::reduce`] with the running value in a wider type, where the type has one.
    fn reduce_wide(how: How, current: Self, updates: &[Self]) -> Self {
        reduce_native(how, current, updates)
    }

    /// Draws a value.
    fn sample(palette: Palette, random: &mut Random) -> Self;
    /// Returns a number that differs for different bit patterns.
    fn bits(self) -> u128;

    /// Returns [`Self::bits`], with the same number for every NaN.
    fn bits_of_any_nan(self) -> u128 {
        self.bits()
    }

    /// Whether every component that differs is NaN in both values.
    fn both_nan(self, _other: Self) -> bool {
        false
    }
}

/// Whether two values have equal bits. Without `exact`, two NaN are equal, because arithmetic does
/// not define the payload of a NaN.
pub(crate) fn same<T: Ref>(a: T, b: T, exact: bool) -> bool {
    a.bits() == b.bits() || (!exact && a.both_nan(b))
}

/// Compares two slices. An `Err` names the first difference.
pub(crate) fn compare<T: Ref>(got: &[T], expected: &[T], exact: bool) -> Result<(), String> {
    if got.len() != expected.len() {
        return Err(format!("{} elements, not {}", got.len(), expected.len()));
    }
    match first_difference(got, expected, exact) {
        None => Ok(()),
        Some(at) => {
            let (got, expected) = (got[at], expected[at]);
            Err(format!("element {at} is {got:?}, not {expected:?}"))
        }
    }
}

/// Returns the position of the first difference. Equal parts are compared as bytes, which is fast in
/// test builds. Test builds have few optimisations.
fn first_difference<T: Ref>(got: &[T], expected: &[T], exact: bool) -> Option<usize> {
    if bytes(got) == bytes(expected) {
        return None;
    }
    if got.len() <= 8 {
        return (0..got.len()).find(|&i| !same(got[i], expected[i], exact));
    }
    let middle = got.len() / 2;
    let (got, expected) = (got.split_at(middle), expected.split_at(middle));
    first_difference(got.0, expected.0, exact)
        .or_else(|| Some(middle + first_difference(got.1, expected.1, exact)?))
}

#[allow(
    unsafe_code,
    reason = "elements of all types are compared by their bytes"
)]
fn bytes<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: the pointer and the length are those of the slice. All bytes are initialised, because
    // no element type has padding: integers, floats, `bool`, and pairs of floats.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

/// Whether results must be equal in all bits, including NaN. This holds where values are only
/// moved.
pub(crate) fn is_exact(reduction: Reduction) -> bool {
    reduction == Reduction::None
}

fn sample_integer<T: Bounded + Copy>(
    palette: Palette,
    random: &mut Random,
    from_bits: impl Fn(u64) -> T,
) -> T {
    match palette {
        Palette::Ordinary => from_bits(random.bits() % 100),
        Palette::Wild if random.one_in(4) => random.pick(&[T::min_value(), T::max_value()]),
        Palette::Wild => from_bits(random.bits()),
    }
}

/// Draws `m * 2^e` with `|m| <= 120` and `|e| <= exponents`.
fn ordinary(random: &mut Random, exponents: i128) -> f64 {
    let exponent = u64::try_from(1023 + random.between(-exponents, exponents));
    let mantissa = i32::try_from(random.between(-120, 120)).expect("the value is small");
    f64::from(mantissa) * f64::from_bits(exponent.expect("the value is small") << 52)
}

/// Draws `from_bits` of random bits, or one of `extremes`. It never returns a NaN from random bits:
/// passing a signalling NaN through a register may change its bits. NaN comes from `extremes`.
fn wild<T: Ref>(random: &mut Random, extremes: &[T], from_bits: impl Fn(u64) -> T) -> T {
    let value = from_bits(random.bits());
    if value.both_nan(value) || random.one_in(2) {
        return random.pick(extremes);
    }
    value
}

/// Returns the first `N` bytes of `bits`.
fn low<const N: usize>(bits: u64) -> [u8; N] {
    let bytes = bits.to_le_bytes();
    std::array::from_fn(|i| bytes[i])
}

fn widen<const N: usize>(bytes: [u8; N]) -> u128 {
    let mut wide = [0; 16];
    wide[..N].copy_from_slice(&bytes);
    u128::from_le_bytes(wide)
}

macro_rules! impl_integer {
    ($($type:ty),*) => {$(
        impl Ref for $type {
            fn sentinel() -> Self {
                0x5a
            }

            fn zero_value() -> Self {
                0
            }

            fn combine(reduction: Reduction, current: Self, update: Self) -> Self {
                integer(reduction, current, update)
            }

            fn divide(self, count: usize) -> Self {
                let count = i128::try_from(count).expect("the count fits i128");
                let floor = i128::from(self).div_euclid(count);
                Self::try_from(floor).expect("the quotient fits the type")
            }

            fn sample(palette: Palette, random: &mut Random) -> Self {
                sample_integer(palette, random, |bits| Self::from_le_bytes(low(bits)))
            }

            fn bits(self) -> u128 {
                widen(self.to_le_bytes())
            }
        }
    )*};
}

impl_integer!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! impl_float {
    ($($(#[$feature:meta])? $type:ty, $exponents:literal, $from_f64:expr, $combine:expr, $divide:expr, $wide:expr;)*) => {$(
        $(#[$feature])?
        impl Ref for $type {
            fn sentinel() -> Self {
                $from_f64(-1234.0)
            }

            fn combine(reduction: Reduction, current: Self, update: Self) -> Self {
                $combine(reduction, current, update)
            }

            fn divide(self, count: usize) -> Self {
                $divide(self, count)
            }

            fn reduce_wide(how: How, current: Self, updates: &[Self]) -> Self {
                $wide(how, current, updates)
            }

            fn zero_value() -> Self {
                $from_f64(0.0)
            }

            fn sample(palette: Palette, random: &mut Random) -> Self {
                let extremes = [
                    $from_f64(0.0),
                    $from_f64(-0.0),
                    $from_f64(1.0),
                    Self::INFINITY,
                    Self::NEG_INFINITY,
                    Self::NAN,
                    Self::MIN_POSITIVE,
                    Self::MAX,
                    Self::MIN,
                ];
                match palette {
                    Palette::Ordinary => $from_f64(ordinary(random, $exponents)),
                    Palette::Wild => {
                        wild(random, &extremes, |bits| Self::from_le_bytes(low(bits)))
                    }
                }
            }

            fn bits(self) -> u128 {
                widen(self.to_le_bytes())
            }

            fn bits_of_any_nan(self) -> u128 {
                if self.is_nan() { Self::NAN } else { self }.bits()
            }

            fn both_nan(self, other: Self) -> bool {
                self.is_nan() && other.is_nan()
            }
        }
    )*};
}

impl_float! {
    f32, 20, single, float, |sum: f32, count: usize| sum / count as f32, reduce_native;
    f64, 40, f64::from, float, |sum: f64, count: usize| sum / count as f64, reduce_native;
    #[cfg(feature = "half")] half::f16, 6, half::f16::from_f64,
        |reduction, current, update| half_combine(reduction, current, update, Self::from_f32),
        |sum, count| half_divide(sum, count, Self::from_f32),
        |how, current, updates| half_reduce(how, current, updates, Self::from_f32);
    #[cfg(feature = "half")] half::bf16, 12, half::bf16::from_f64,
        |reduction, current, update| half_combine(reduction, current, update, Self::from_f32),
        |sum, count| half_divide(sum, count, Self::from_f32),
        |how, current, updates| half_reduce(how, current, updates, Self::from_f32);
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "ordinary values are exact in f32"
)]
fn single(value: f64) -> f32 {
    value as f32
}

impl Ref for bool {
    const REDUCTIONS: &'static [Reduction] = &[
        Reduction::None,
        Reduction::Add,
        Reduction::Sub,
        Reduction::Mul,
        Reduction::Min,
        Reduction::Max,
    ];

    fn sentinel() -> Self {
        true
    }

    fn zero_value() -> Self {
        false
    }

    fn combine(reduction: Reduction, current: Self, update: Self) -> Self {
        boolean(reduction, current, update)
    }

    fn divide(self, _: usize) -> Self {
        panic!("mean is not defined for bool")
    }

    fn sample(_: Palette, random: &mut Random) -> Self {
        random.one_in(2)
    }

    fn bits(self) -> u128 {
        self.into()
    }
}

#[cfg(feature = "complex")]
impl<T> Ref for num_complex::Complex<T>
where
    T: Ref + FloatCore,
    Self: Element,
{
    const REDUCTIONS: &'static [Reduction] = &[
        Reduction::None,
        Reduction::Add,
        Reduction::Sub,
        Reduction::Mul,
        Reduction::Mean,
    ];

    fn sentinel() -> Self {
        Self::new(T::sentinel(), T::sentinel())
    }

    fn zero_value() -> Self {
        Self::new(T::zero_value(), T::zero_value())
    }

    fn divide(self, count: usize) -> Self {
        Self::new(self.re.divide(count), self.im.divide(count))
    }

    /// Multiplies as (a + bi)(c + di): re = ac - bd, im = ad + bc. Each operation is rounded.
    fn combine(reduction: Reduction, current: Self, update: Self) -> Self {
        let (Self { re: a, im: b }, Self { re: c, im: d }) = (current, update);
        match reduction {
            Reduction::None => update,
            Reduction::Add => Self::new(a + c, b + d),
            Reduction::Sub => Self::new(a - c, b - d),
            Reduction::Mul => Self::new(a * c - b * d, a * d + b * c),
            other => panic!("{other} is not defined for complex numbers"),
        }
    }

    fn sample(palette: Palette, random: &mut Random) -> Self {
        Self::new(T::sample(palette, random), T::sample(palette, random))
    }

    fn bits(self) -> u128 {
        self.im.bits() << 64 | self.re.bits()
    }

    fn bits_of_any_nan(self) -> u128 {
        self.im.bits_of_any_nan() << 64 | self.re.bits_of_any_nan()
    }

    fn both_nan(self, other: Self) -> bool {
        same(self.re, other.re, false) && same(self.im, other.im, false)
    }
}

/// Evaluates an expression for the element type that a [`DType`](super::api::DType) names. `$type`
/// is the Rust type in the expression.
#[macro_export]
macro_rules! with_element {
    ($element:expr, $type:ident => $body:expr) => {{
        use $crate::common::api::DType as E;
        match $element {
            E::I8 => {
                type $type = i8;
                $body
            }
            E::I16 => {
                type $type = i16;
                $body
            }
            E::I32 => {
                type $type = i32;
                $body
            }
            E::I64 => {
                type $type = i64;
                $body
            }
            E::U8 => {
                type $type = u8;
                $body
            }
            E::U16 => {
                type $type = u16;
                $body
            }
            E::U32 => {
                type $type = u32;
                $body
            }
            E::U64 => {
                type $type = u64;
                $body
            }
            E::F32 => {
                type $type = f32;
                $body
            }
            E::F64 => {
                type $type = f64;
                $body
            }
            E::Bool => {
                type $type = bool;
                $body
            }
            #[cfg(feature = "half")]
            E::F16 => {
                type $type = half::f16;
                $body
            }
            #[cfg(feature = "half")]
            E::BF16 => {
                type $type = half::bf16;
                $body
            }
            #[cfg(feature = "complex")]
            E::Complex64 => {
                type $type = num_complex::Complex<f32>;
                $body
            }
            #[cfg(feature = "complex")]
            E::Complex128 => {
                type $type = num_complex::Complex<f64>;
                $body
            }
            other => panic!("{other} has no Rust type in this build"),
        }
    }};
}

/// Returns the dtypes that have a Rust type in this build.
pub(crate) fn element_types() -> Vec<DType> {
    use DType as E;
    let half = |element: &E| cfg!(feature = "half") || !matches!(element, E::F16 | E::BF16);
    let complex =
        |element: &E| cfg!(feature = "complex") || !matches!(element, E::Complex64 | E::Complex128);
    let all = E::ALL.into_iter();
    let known = |element: &E| !element.is_opaque();
    all.filter(half).filter(complex).filter(known).collect()
}

/// Whether this build has the feature that a reduction of an element type needs.
pub(crate) fn is_enabled(reduction: Reduction, element: DType) -> bool {
    use DType as E;
    match element {
        _ if reduction == Reduction::None => true,
        E::F16 | E::BF16 => cfg!(feature = "float16"),
        E::I8 | E::I16 | E::U8 | E::U16 => cfg!(feature = "narrow-integers"),
        E::Complex64 | E::Complex128 => cfg!(feature = "complex"),
        _ => true,
    }
}
