//! Checks the tensors of writes: their types and formats, and that they share no memory.
//!
//! This module knows types, formats and memory. It does not know indices or plans.

use super::conversion::Conversion;
use super::scales::{self, Broadcast};
use super::write::Write;
use crate::conversion::{Format, Rounding};
use crate::element::DType;
use crate::error::ScatterError;
use crate::execution::Execution;
use crate::kernel::{ConvertFn, InstructionSet, RunsFn, convert_fn};
use crate::memory::with_room;
use crate::operand::overlap::{self, Overlap};
use crate::operand::{Contents, Elements, Indices, Input as _, Source, Target};
use crate::reduction::Reducing;
use crate::run;

/// How a write moves its elements.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mover {
    /// The updates have the type of data, and keep all bits.
    Copy(RunsFn),
    /// The updates are converted to the format.
    Convert(ConvertFn, Format),
}

/// A scale or a zero point: the tensor, and the tensor broadcast to the shape of the updates.
type Input<'w> = (Source<'w>, Broadcast);

/// The checked tensors of one write, and how the write moves elements.
#[derive(Debug)]
pub(super) struct Tensors<'w> {
    pub(super) data: Target<'w>,
    pub(super) updates: Source<'w>,
    pub(super) scale: Option<Input<'w>>,
    pub(super) zero_point: Option<Input<'w>>,
    pub(super) mover: Mover,
}

impl<'w> Tensors<'w> {
    /// Checks the types of one write.
    fn new(write: &'w mut Write<'_>, execution: &Execution<'_>) -> Result<Self, ScatterError> {
        let Write {
            data,
            updates,
            conversion,
        } = write;
        let (to, from) = (data.dtype(), updates.dtype());
        let mover = match conversion {
            Some(conversion) => conversion.mover(from, to, execution)?,
            None => Mover::plain(from, to, execution)?,
        };
        let updates = updates.source();
        let (mut scale, mut zero_point) = (None, None);
        if let Some(conversion) = conversion {
            (scale, zero_point) = conversion.inputs(mover, updates.shape())?;
        }
        let tensors = Self {
            data: data.target(),
            updates,
            scale,
            zero_point,
            mover,
        };
        if tensors.data.contents() == Contents::Unwritten {
            return Err(ScatterError::Uninitialized);
        }
        let moved = matches!(mover, Mover::Copy(_)).then_some(&tensors.updates);
        run::check_bools(&tensors.data, [("updates", moved)])?;
        Ok(tensors)
    }

    /// Whether two elements of the updates are one element of data.
    pub(super) fn is_packed(&self) -> bool {
        matches!(self.mover, Mover::Convert(_, format) if format.is_packed())
    }

    /// Returns the tensors that the write only reads, with their names.
    fn inputs(&self) -> impl Iterator<Item = (&'static str, &Source<'w>)> {
        let scale = self.scale.as_ref().map(|(scale, _)| ("scale", scale));
        let zero_point = self
            .zero_point
            .as_ref()
            .map(|(zero, _)| ("zero_point", zero));
        let updates = Some(("updates", &self.updates));
        [updates, scale, zero_point].into_iter().flatten()
    }
}

impl Mover {
    fn plain(from: DType, to: DType, execution: &Execution<'_>) -> Result<Self, ScatterError> {
        let (from, to) = (Elements::Plain(from), Elements::Plain(to));
        run::check_dtype("updates", from, to)?;
        let operation = run::operation(to, Reducing::default(), execution)?;
        Ok(Self::Copy(operation.kernels.copy))
    }
}

impl Conversion<'_> {
    /// Checks the scale and the zero point for updates of shape `updates`.
    fn inputs(
        &self,
        mover: Mover,
        updates: &[usize],
    ) -> Result<(Option<Input<'_>>, Option<Input<'_>>), ScatterError> {
        let scale = self.scale.as_ref().map(|scale| {
            let source = scale.source();
            let broadcast = scales::scale(&source, updates, self.scaling)?;
            Ok((source, broadcast))
        });
        let zero_point = match (&self.zero_point, mover) {
            (Some(zero_point), Mover::Convert(_, format)) => {
                let source = zero_point.source();
                let broadcast = scales::zero_point(&source, updates, format)?;
                Some((source, broadcast))
            }
            _ => None,
        };
        Ok((scale.transpose()?, zero_point))
    }

    /// Returns how elements of type `from` are written to data of type `to`.
    fn mover(
        &self,
        from: DType,
        to: DType,
        execution: &Execution<'_>,
    ) -> Result<Mover, ScatterError> {
        let format = self.format.or(of_dtype(to));
        let Some(format) = format.filter(|&format| holds(to, format)) else {
            return Err(ScatterError::DataFormat { dtype: to, format });
        };
        let is_scaled = self.scale.is_some() || self.zero_point.is_some();
        let keeps = !is_scaled && self.rounding == Rounding::NearestEven;
        if keeps && from == to && of_dtype(from) == Some(format) && !format.is_integer() {
            return Mover::plain(from, to, execution);
        }
        let set = execution.instructions().min(InstructionSet::best());
        let function = convert_fn(from, format, self.rounding, self.scaling, set);
        let unsupported = ScatterError::UnsupportedConversion { from, to: format };
        Ok(Mover::Convert(function.ok_or(unsupported)?, format))
    }
}

/// Returns the only format that data of type `dtype` can hold by its name, if there is one.
fn of_dtype(dtype: DType) -> Option<Format> {
    Some(match dtype {
        DType::F32 => Format::F32,
        DType::F16 => Format::F16,
        DType::BF16 => Format::BF16,
        DType::I8 => Format::I8,
        DType::U8 => Format::U8,
        _ => return None,
    })
}

/// Whether data of type `dtype` can hold elements of format `format`. Runtimes without 8-bit floats
/// and 4-bit integers store them as bytes.
fn holds(dtype: DType, format: Format) -> bool {
    match format {
        Format::F32 => dtype == DType::F32,
        Format::F16 => dtype == DType::F16,
        Format::BF16 => dtype == DType::BF16,
        Format::I8 => matches!(dtype, DType::I8 | DType::Bytes1),
        Format::U8 => matches!(dtype, DType::U8 | DType::Bytes1),
        Format::F8E4M3Fn | Format::F8E5M2 | Format::I4 | Format::U4 => {
            matches!(dtype, DType::I8 | DType::U8 | DType::Bytes1)
        }
    }
}

/// Checks the types of all writes, and that no tensor that a write changes shares memory with
/// another tensor of the call.
pub(super) fn check<'w>(
    writes: &'w mut [Write<'_>],
    indices: Option<&Indices<'_>>,
    execution: &Execution<'_>,
) -> Result<Vec<Tensors<'w>>, ScatterError> {
    let mut checked = with_room(writes.len())?;
    for write in writes {
        checked.push(Tensors::new(write, execution)?);
    }
    refuse_shared(&checked, indices)?;
    Ok(checked)
}

/// Returns an error if a tensor that a write changes shares memory with another tensor.
fn refuse_shared(
    writes: &[Tensors<'_>],
    indices: Option<&Indices<'_>>,
) -> Result<(), ScatterError> {
    let indices = indices.map(Indices::as_source);
    let given = indices.iter().map(|indices| ("indices", indices));
    let inputs = || given.clone().chain(writes.iter().flat_map(Tensors::inputs));
    // Rust borrows do not overlap if one of them is exclusive.
    if writes
        .iter()
        .all(|write| write.data.contents().is_borrowed())
        && inputs().all(|(_, input)| input.contents().is_borrowed())
    {
        return Ok(());
    }
    let outputs = writes.len();
    let mut tensors = with_room(outputs + inputs().count())?;
    let mut borrowed = with_room(tensors.capacity())?;
    tensors.extend(writes.iter().map(|write| write.data.footprint()));
    borrowed.extend(
        writes
            .iter()
            .map(|write| write.data.contents().is_borrowed()),
    );
    tensors.extend(inputs().map(|(_, input)| input.footprint()));
    borrowed.extend(inputs().map(|(_, input)| input.contents().is_borrowed()));
    // Two inputs may share memory.
    let is_known =
        |first: usize, second: usize| first >= outputs || (borrowed[first] && borrowed[second]);
    let Some((overlap, first, second)) = overlap::among(&tensors, is_known)? else {
        return Ok(());
    };
    let input = second.checked_sub(outputs).and_then(|at| inputs().nth(at));
    let tensor = input.map_or("data", |(name, _)| name);
    Err(match (overlap, input) {
        (Overlap::Undecided, _) => ScatterError::OverlapUndecided { tensor },
        (_, None) => ScatterError::TensorsOverlap { first, second },
        (_, Some(_)) => ScatterError::InputOverlap { tensor },
    })
}
