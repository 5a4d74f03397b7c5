//! Conversions of writes, and the elements that a loop over the updates stores.

use arbitrary::Unstructured;
use half::{bf16, f16};
use ndscatter::{DType, Format, Rounding, Scaling};
use ndscatter_c::{DLDataType, nds_conversion};

use super::calls::draw_type;
use super::reference::every;
use super::tensor::{Claim, Given, Tensor};
use crate::common::formats::code;
use crate::conversions::rules::{is_scale, scaled};
use crate::geometry::{bytes_of, integer};

/// Size of the struct, as a caller declares it.
const SIZE: i32 = size_of::<nds_conversion>() as i32;

#[derive(Clone, Debug)]
pub(super) struct Conversion {
    /// Size, format, rounding and scaling.
    pub(super) numbers: [i32; 4],
    pub(super) scale: Option<Given>,
    pub(super) zero_point: Option<Given>,
}

/// Updates after their conversion.
pub(super) struct Converted {
    /// Shape of the updates in elements of data.
    pub(super) shape: Vec<usize>,
    pub(super) elements: Vec<Vec<u8>>,
    pub(super) is_packed: bool,
}

/// The valid numbers of a conversion.
#[derive(Clone, Copy)]
struct Rule {
    format: Format,
    rounding: Rounding,
    scaling: Scaling,
}

/// Draws the type of data of a converting write, with the number of a format.
pub(super) fn draw_format(u: &mut Unstructured<'_>) -> arbitrary::Result<(DLDataType, i32)> {
    let format = u.int_in_range(0..=9)?;
    let types: &[(u8, u8)] = match format {
        0 => &[(2, 32), (2, 16), (4, 16), (0, 8), (1, 8), (10, 8), (12, 8)],
        1 => &[(2, 32)],
        2 => &[(2, 16)],
        3 => &[(4, 16)],
        4 => &[(0, 8), (1, 8), (10, 8)],
        5 => &[(0, 8), (1, 8), (12, 8)],
        6 => &[(0, 8)],
        7 => &[(1, 8)],
        _ => &[(0, 8), (1, 8)],
    };
    Ok((draw_type(u, types)?, format))
}

/// Draws a tensor of the type `dtype` that broadcasts to the shape `updates`, or no tensor.
fn draw_broadcast(
    u: &mut Unstructured<'_>,
    (code, bits): (u8, u8),
    updates: &[usize],
) -> arbitrary::Result<Option<Given>> {
    let mut shape = updates.to_vec();
    match u.int_in_range(0..=3)? {
        0 | 1 => return Ok(None),
        2 => shape.clear(),
        _ => {
            if u.arbitrary()? {
                for size in &mut shape {
                    if u.arbitrary()? {
                        *size = 1;
                    }
                }
            }
        }
    }
    let dtype = draw_type(u, &[(code, bits)])?;
    Given::draw_any(u, dtype, &shape, true).map(Some)
}

/// Returns the tensor that a caller passes, or `Some(None)` for a null pointer. Returns `None` if the
/// library must refuse the tensor.
fn optional(given: Option<&Given>) -> Option<Option<(&Given, Tensor)>> {
    let Some(given) = given.filter(|given| !given.is_null()) else {
        return Some(None);
    };
    match given.claim(false, true) {
        Claim::Tensor(tensor) => Some(Some((given, tensor))),
        _ => None,
    }
}

/// Returns the number of the element of `small` that each element of `shape` uses. Returns `None` if
/// `small` does not broadcast to `shape`.
fn broadcast(small: &[usize], shape: &[usize]) -> Option<Vec<usize>> {
    let missing = shape.len().checked_sub(small.len())?;
    let mut pairs = small.iter().zip(&shape[missing..]);
    if pairs.any(|(&small, &size)| small != 1 && small != size) {
        return None;
    }
    let number = |place: Vec<usize>| {
        let axes = place[missing..].iter().zip(small);
        axes.fold(0, |number, (&at, &size)| number * size + at.min(size - 1))
    };
    Some(every(shape).into_iter().map(number).collect())
}

/// Returns the value of an element of a float type. `None`: the type is not a type of updates that
/// are converted.
fn float(dtype: DType, bytes: &[u8]) -> Option<f32> {
    let half = || u16::from_ne_bytes([bytes[0], bytes[1]]);
    Some(match dtype {
        DType::F32 => f32::from_ne_bytes(bytes.try_into().expect("4 bytes")),
        DType::F16 => f16::from_bits(half()).into(),
        DType::BF16 => bf16::from_bits(half()).into(),
        _ => return None,
    })
}

impl Conversion {
    pub(super) fn draw(
        u: &mut Unstructured<'_>,
        format: i32,
        updates: &[usize],
    ) -> arbitrary::Result<Self> {
        let (rounding, scaling) = (u.int_in_range(0..=3)?, u.int_in_range(0..=1)?);
        let mut numbers = [SIZE, format, rounding, scaling];
        if u.ratio(1, 16)? {
            let at = u.choose_index(4)?;
            // A larger size would describe memory beyond the struct.
            numbers[at] = if at == 0 {
                u.int_in_range(0..=SIZE)?
            } else {
                u.arbitrary()?
            };
        }
        let scale = draw_broadcast(u, (2, 32), updates)?;
        // Only integers may have a zero point.
        let is_float = (1..=5).contains(&format);
        let zero_point = if is_float && !u.ratio(1, 16)? {
            None
        } else {
            draw_broadcast(u, (0, 32), updates)?
        };
        Ok(Self {
            numbers,
            scale,
            zero_point,
        })
    }

    /// Returns the rule, if the numbers are valid and data can hold the format.
    fn rule(&self, data: &Tensor) -> Option<Rule> {
        let [size, format, rounding, scaling] = self.numbers;
        let pick = |number: i32| usize::try_from(number).ok();
        let named = data.given.format();
        let of_type = match data.dtype {
            DType::I8 => Some(Format::I8),
            DType::U8 => Some(Format::U8),
            _ => named,
        };
        let format = match pick(format)? {
            0 => of_type?,
            number => *Format::ALL.get(number - 1)?,
        };
        let is_byte = matches!(data.dtype, DType::I8 | DType::U8);
        let is_bits = matches!(
            format,
            Format::F8E4M3Fn | Format::F8E5M2 | Format::I4 | Format::U4
        );
        let fits = of_type == Some(format) || is_byte && is_bits;
        (size == SIZE && fits).then_some(Rule {
            format,
            rounding: *Rounding::ALL.get(pick(rounding)?)?,
            scaling: *Scaling::ALL.get(pick(scaling)?)?,
        })
    }

    /// Returns the scale of each update.
    fn scales(&self, rule: Rule, shape: &[usize]) -> Option<Option<Vec<f32>>> {
        let Some((given, tensor)) = optional(self.scale.as_ref())? else {
            return Some(None);
        };
        let places = broadcast(tensor.shape(), shape).filter(|_| tensor.dtype == DType::F32)?;
        let elements = given.read(&tensor).into_iter();
        let values: Vec<_> = elements
            .filter_map(|bytes| float(DType::F32, &bytes))
            .collect();
        let is_valid = |&scale: &f32| is_scale(scale, rule.scaling);
        let each = || places.into_iter().map(|at| values[at]).collect();
        values.iter().all(is_valid).then(|| Some(each()))
    }

    /// Returns the zero point of each update.
    fn zero_points(&self, rule: Rule, shape: &[usize]) -> Option<Option<Vec<i32>>> {
        let Some((given, tensor)) = optional(self.zero_point.as_ref())? else {
            return Some(None);
        };
        let (low, high) = rule.format.integer_range()?;
        let places = broadcast(tensor.shape(), shape).filter(|_| tensor.dtype == DType::I32)?;
        let elements = given.read(&tensor).into_iter();
        let values: Vec<_> = elements.map(|bytes| integer(&bytes, DType::I32)).collect();
        let narrow = |at: usize| i32::try_from(values[at]).expect("an i32");
        let each = || places.into_iter().map(narrow).collect();
        let is_valid = |zero: &i128| (low.into()..=high.into()).contains(zero);
        values.iter().all(is_valid).then(|| Some(each()))
    }

    /// Returns the updates as elements of data. `None`: the call must fail.
    pub(super) fn convert(
        &self,
        data: &Tensor,
        given: &Given,
        updates: &Tensor,
    ) -> Option<Converted> {
        let rule = self.rule(data)?;
        if !matches!(updates.dtype, DType::F32 | DType::F16 | DType::BF16) {
            return None;
        }
        let scales = self.scales(rule, updates.shape())?;
        let zeros = self.zero_points(rule, updates.shape())?;
        let is_packed = rule.format.is_packed();
        let mut shape = updates.shape().to_vec();
        if is_packed {
            let last = shape.last_mut()?;
            *last = last.is_multiple_of(2).then_some(*last / 2)?;
        }
        let is_plain = scales.is_none() && rule.rounding == Rounding::NearestEven;
        let mut elements = given.read(updates);
        // An update that is neither scaled nor converted to another type keeps its bits.
        if updates.dtype != data.dtype || !is_plain {
            let value = |(at, bytes): (usize, &Vec<u8>)| {
                let scale = scales.as_ref().map(|scales| scales[at]);
                let value = scaled(float(updates.dtype, bytes)?, scale, rule.scaling);
                Some((value, zeros.as_ref().map_or(0, |zeros| zeros[at])))
            };
            let values = elements.iter().enumerate().map(value);
            let values = values.collect::<Option<Vec<_>>>()?;
            let codes = values.chunks(if is_packed { 2 } else { 1 });
            let codes = codes.map(|values| code(rule.format, rule.rounding, values));
            let bytes = codes.map(|code| bytes_of(code.into(), data.dtype.size()));
            elements = bytes.collect();
        }
        Some(Converted {
            shape,
            elements,
            is_packed,
        })
    }
}
