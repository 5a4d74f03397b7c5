//! Prepares a write: combines a plan with the strides of the tensors of the write.
//!
//! This module knows plans, strides and packed formats. It does not know workers, or how a window
//! is written.

use super::operands::{Mover, Tensors};
use super::scales::Broadcast;
use crate::error::ScatterError;
use crate::memory::{copied, with_room};
use crate::operand::{Dims, Elements};
use crate::plan::{Form, IndexPlan, Sorted, WindowOffsets};

/// A tensor of a write: the address of element `[0, 0, ...]`, and the offsets of its windows.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) base: *mut u8,
    /// Bytes of an element.
    pub(super) size: usize,
    pub(super) place: WindowOffsets,
    /// Packed formats: the stride from the source of the low 4 bits to the source of the high 4
    /// bits.
    pub(super) pair: isize,
    /// Stride between the elements of a line, in elements.
    pub(super) step: isize,
    /// Stride between the lines of a block, in elements.
    pub(super) line_step: isize,
}

/// How the elements of a window are cut. In each tensor, the elements of a line are at one stride.
/// The lines of a block are at one stride too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    /// Number of elements of a line.
    pub(super) len: usize,
    /// Number of lines of a block.
    pub(super) block: usize,
}

/// A write that is checked and ready to run. All memory that it needs is allocated.
#[derive(Debug)]
pub(super) struct Prepared<'p> {
    pub(super) plan: &'p IndexPlan,
    /// The tuples to write: at most one for each destination.
    pub(super) last_writes: &'p Sorted,
    pub(super) mover: Mover,
    pub(super) data: Placed,
    pub(super) updates: Placed,
    /// At most one scale. With an `Option`, compiled code may test fields of an absent scale before
    /// it tests whether there is a scale. The result is then ignored, but valgrind reports the test.
    pub(super) scale: Vec<Placed>,
    /// At most one tensor of zero points, for the same reason.
    pub(super) zero_point: Vec<Placed>,
    pub(super) repetitions: usize,
    /// Number of elements of a window.
    pub(super) window: usize,
    pub(super) lines: Lines,
}

impl Placed {
    /// Places a tensor. Its lines are not cut yet.
    fn new(base: *mut u8, size: usize, place: WindowOffsets, pair: isize) -> Self {
        let (_, step) = place.run();
        Self {
            base,
            size,
            place,
            pair,
            step,
            line_step: 0,
        }
    }
}

impl<'p> Prepared<'p> {
    /// Checks the shapes of one write, and prepares it.
    ///
    /// The addresses of the result are those of `tensors`, which it borrows like the plan.
    pub(super) fn new(plan: &'p IndexPlan, tensors: &'p Tensors<'_>) -> Result<Self, ScatterError> {
        plan.check_output(tensors.data.layout())?;
        let packed = tensors.is_packed();
        match packed {
            true => {
                let has_axis = plan.has_last_axis_in_window();
                let (expected, actual) = (plan.updates_shape(), tensors.updates.shape());
                check_packed(has_axis, expected, actual, plan.one_tuple())?;
            }
            false => plan.check_updates(tensors.updates.shape())?,
        }
        let updates = &Broadcast {
            base: tensors.updates.as_ptr(),
            strides: tensors.updates.layout().all_strides()?,
        };
        let scale = tensors.scale.as_ref().map(|(_, scale)| scale);
        let zero_point = tensors.zero_point.as_ref().map(|(_, zero)| zero);
        let listed = |tensor: &Broadcast, size| listed(plan, packed, tensor, size);
        let data_strides = tensors.data.layout().all_strides()?;
        // The data has the layout of the plan, so its windows have offsets.
        let place = plan.numbered(&data_strides)?;
        let place = place.ok_or_else(|| plan.mismatch(tensors.data.layout()))?;
        let counted = plan.counted()?;
        let mut prepared = Self {
            plan,
            last_writes: last_writes(plan)?,
            mover: tensors.mover,
            data: Placed::new(
                tensors.data.as_mut_ptr().cast(),
                tensors.data.elements().size(),
                place,
                0,
            ),
            updates: listed(updates, Elements::size(tensors.updates.elements()))?,
            scale: at_most_one(scale.map(|scale| listed(scale, size_of::<f32>())))?,
            zero_point: at_most_one(zero_point.map(|zero| listed(zero, size_of::<i32>())))?,
            repetitions: counted.outer.elements(),
            window: counted.window.elements(),
            lines: Lines { len: 1, block: 1 },
        };
        prepared.cut_lines();
        Ok(prepared)
    }

    /// Computes the lines of a window, and the strides of the lines in each tensor.
    fn cut_lines(&mut self) {
        let mut tensors = [
            Some(&mut self.data),
            Some(&mut self.updates),
            self.scale.first_mut(),
            self.zero_point.first_mut(),
        ];
        let placed = tensors.iter().flatten();
        let len = placed.map(|placed| placed.place.run().0).min();
        let len = len.unwrap_or(1).max(1);
        let mut block = usize::MAX;
        for placed in tensors.iter_mut().flatten() {
            let (lines, line_step) = placed.place.lines(len);
            block = block.min(lines.max(1));
            placed.line_step = line_step;
        }
        self.lines = Lines { len, block };
    }

    /// Returns the number of windows that the write changes, in all repetitions. Windows without
    /// elements do not count, because there may be more of them than a loop can visit.
    pub(super) fn windows(&self) -> usize {
        if self.window == 0 {
            return 0;
        }
        self.repetitions * self.last_writes.len(self.plan.tuples())
    }

    /// Returns the number of bytes that the write reads and writes.
    pub(super) fn bytes(&self) -> usize {
        let updates = match self.mover {
            Mover::Convert(_, format) if format.is_packed() => 2 * self.updates.size,
            _ => self.updates.size,
        };
        let each = self.data.size + updates;
        self.windows()
            .saturating_mul(self.window)
            .saturating_mul(each)
    }
}

/// Returns the last tuple of each destination. Tuples with distinct destinations stay in their
/// order, which needs no sort.
fn last_writes(plan: &IndexPlan) -> Result<&Sorted, ScatterError> {
    match plan.first_duplicate()? {
        None => Ok(&Sorted::InOrder),
        Some(_) => plan.last_writes(),
    }
}

/// Checks the shapes of one write, before its plan is made. `form` is the form of the call, and
/// `indices` the shape of the indices.
pub(super) fn check_shapes(
    form: &Form,
    indices: &[usize],
    tensors: &Tensors<'_>,
) -> Result<(), ScatterError> {
    let (shape, updates) = (tensors.data.shape(), tensors.updates.shape());
    if !tensors.is_packed() {
        return form.check_updates(shape, indices, updates);
    }
    let has_axis = form.has_last_axis_in_window(shape.len());
    let expected = form.updates_shape(shape, indices)?;
    check_packed(has_axis, &expected, updates, form.one_tuple(indices))
}

/// Checks the shape of updates of a packed format. Along the last axis, updates have two elements for
/// each element of data. The argument `expected` is the shape without this factor. The argument
/// `has_axis` states whether the last axis of the updates is an axis of the window. The argument `one_tuple`
/// is the result of [`Form::one_tuple`].
fn check_packed(
    has_axis: bool,
    expected: &[usize],
    updates: &[usize],
    one_tuple: Option<usize>,
) -> Result<(), ScatterError> {
    if !has_axis {
        return Err(ScatterError::UnsupportedOption { option: "format" });
    }
    let is_doubled = |(axis, (&expected, &actual)): (usize, (&usize, &usize))| {
        let pairs = if axis + 1 == updates.len() { 2 } else { 1 };
        expected.checked_mul(pairs) == Some(actual)
    };
    let mut axes = expected.iter().zip(updates).enumerate();
    if updates.len() == expected.len() && axes.all(is_doubled) {
        return Ok(());
    }
    Err(ScatterError::with_facts(|| {
        let mut expected = copied(expected)?;
        if let Some(last) = expected.last_mut() {
            *last = last.saturating_mul(2);
        }
        Ok(ScatterError::UpdatesShape {
            expected,
            actual: copied(updates)?,
            one_tuple,
        })
    }))
}

/// Places the windows of a tensor that has the shape of the updates. Windows of a packed format are
/// counted in pairs of elements.
fn listed(
    plan: &IndexPlan,
    packed: bool,
    tensor: &Broadcast,
    size: usize,
) -> Result<Placed, ScatterError> {
    let (base, mut strides) = (tensor.base, Dims::copied(&tensor.strides)?);
    let mut pair = 0;
    if let (true, Some(last)) = (packed, strides.last_mut()) {
        pair = *last;
        *last *= 2;
    }
    let place = plan.listed(&strides)?;
    Ok(Placed::new(base.cast_mut(), size, place, pair))
}

/// Returns a list of the tensor, if there is one.
fn at_most_one(placed: Option<Result<Placed, ScatterError>>) -> Result<Vec<Placed>, ScatterError> {
    let mut list = with_room(usize::from(placed.is_some()))?;
    list.extend(placed.transpose()?);
    Ok(list)
}

/// Prepares all writes. `plan_of` returns the plan of a write.
pub(super) fn prepare<'p>(
    writes: &'p [Tensors<'_>],
    plan_of: impl Fn(usize) -> &'p IndexPlan,
) -> Result<Vec<Prepared<'p>>, ScatterError> {
    let mut prepared = with_room(writes.len())?;
    for (at, tensors) in writes.iter().enumerate() {
        prepared.push(Prepared::new(plan_of(at), tensors)?);
    }
    Ok(prepared)
}
