//! The public methods that write and convert.
//!
//! This module knows builders. It does not know how a write runs.

use super::conversion::Conversion;
use super::operands;
use super::write::Write;
use super::{pass, prepared};
use crate::error::ScatterError;
use crate::exec::scratch;
use crate::memory::{out_of_memory, with_room};
use crate::operand::{AnyView, AnyViewMut, Indices, Layout};
use crate::ops::Scatter;
use crate::plan::{Form, IndexPlan};
use crate::reduction::Reduction;
use crate::run::{ScatterRun, make_plan};

/// A scatter that converts its updates to the elements of data, made by [`Scatter::convert`].
#[derive(Clone, Debug)]
pub struct ConvertingScatter<'p, 'c> {
    scatter: Scatter<'p>,
    conversion: Conversion<'c>,
}

/// A call with a plan that converts its updates to the elements of data, made by
/// [`ScatterRun::convert`].
#[derive(Clone, Copy, Debug)]
pub struct ConvertingRun<'p, 'c> {
    run: ScatterRun<'p>,
    conversion: Conversion<'c>,
}

/// Writes that convert.
impl<'p> Scatter<'p> {
    /// Converts updates to the elements of data while they are written. [`Conversion`] has the
    /// types, the roundings and the scales.
    ///
    /// The scatter must have no reduction. The last update of a destination stays. [`Conversion`] has
    /// an example too.
    #[inline]
    pub fn convert<'c>(self, conversion: Conversion<'c>) -> ConvertingScatter<'p, 'c> {
        ConvertingScatter {
            scatter: self,
            conversion,
        }
    }

    /// Runs several writes with the same indices, each in place and with its own tensors.
    ///
    /// All writes are checked before the first element is written. A call without writes checks only
    /// the type of the indices. The result is that of one call after another. The tensors may have
    /// different shapes, layouts, types and conversions, as far as the operator allows. One plan
    /// serves all data of one layout. The workers of the pool divide the work of all writes.
    ///
    /// [`Write`] has an example.
    ///
    /// # Errors
    ///
    /// Those of [`in_place`](Self::in_place) and of [`ConvertingScatter::in_place`], for any of the
    /// writes. All data is then unchanged. Also:
    ///
    /// - [`ScatterError::TensorsOverlap`] if the data of two writes shares memory.
    /// - [`ScatterError::UnsupportedOption`] if the scatter has a reduction.
    pub fn write_all<'i>(
        &self,
        indices: impl Into<Indices<'i>>,
        writes: &mut [Write<'_>],
    ) -> Result<(), ScatterError> {
        let indices = indices.into();
        refuse_reduction(self.meaning.reducing.reduction)?;
        indices.integers()?;
        let checked = operands::check(writes, Some(&indices), &self.execution)?;
        let mut forms = with_room(checked.len())?;
        for tensors in &checked {
            let updates = Some(tensors.updates.shape());
            let form = self.form_of(tensors.data.shape(), &indices, updates)?;
            prepared::check_shapes(&form, indices.layout().shape(), tensors)?;
            forms.push(form);
        }
        let mut plans: Vec<IndexPlan> = Vec::new();
        let mut plan_of = with_room(checked.len())?;
        for (tensors, &form) in checked.iter().zip(&forms) {
            plan_of.push(self.plan_for(tensors.data.layout(), form, &indices, &mut plans)?);
        }
        let prepared = prepared::prepare(&checked, |at| &plans[plan_of[at]])?;
        pass::run(&prepared, &self.execution)?;
        drop(prepared);
        let spares = plans.into_iter().flat_map(IndexPlan::into_spares);
        spares.for_each(scratch::put_back);
        Ok(())
    }

    /// Returns the position in `plans` of a plan for data with the layout `layout`, for a call of
    /// the form `form`. Makes the plan if `plans` has none.
    fn plan_for(
        &self,
        layout: &Layout<'_>,
        form: Form,
        indices: &Indices<'_>,
        plans: &mut Vec<IndexPlan>,
    ) -> Result<usize, ScatterError> {
        let fits = |plan: &IndexPlan| plan.serves(&form, layout);
        if let Some(found) = plans.iter().position(fits) {
            return Ok(found);
        }
        let integers = indices.integers()?;
        let plan = make_plan(layout, form, integers, self.planning, &self.execution)?;
        let room = plans.try_reserve(1);
        room.map_err(|_| out_of_memory::<IndexPlan>(1))?;
        plans.push(plan);
        Ok(plans.len() - 1)
    }
}

impl ConvertingScatter<'_, '_> {
    /// Writes the converted updates to `data`.
    ///
    /// # Errors
    ///
    /// Those of [`Scatter::in_place`], and:
    ///
    /// - [`ScatterError::UnsupportedConversion`] and [`ScatterError::DataFormat`] for types and
    ///   formats that do not fit.
    /// - [`ScatterError::InvalidScale`], [`ScatterError::ZeroPointOutOfRange`] and
    ///   [`ScatterError::BroadcastShape`] for the scale and the zero point.
    /// - [`ScatterError::UnsupportedOption`] if the scatter has a reduction, if floats have a zero
    ///   point, or if the windows of a packed format have no axis.
    ///
    /// `data` is then unchanged. After [`ScatterError::PoolFailed`], `data` may have changed.
    pub fn in_place<'i, 'd>(
        &self,
        data: impl Into<AnyViewMut<'d>>,
        indices: impl Into<Indices<'i>>,
        updates: impl Into<AnyView<'d>>,
    ) -> Result<(), ScatterError> {
        let mut write = Write::new(data, updates).convert(self.conversion);
        self.scatter
            .write_all(indices, std::slice::from_mut(&mut write))
    }
}

impl<'p> ScatterRun<'p> {
    /// Converts updates to the elements of data while they are written. [`Conversion`] has the
    /// types, the roundings and the scales.
    ///
    /// The call must have no reduction. The last update of a destination stays.
    /// [`write_all`](Self::write_all) has an example.
    #[inline]
    pub fn convert<'c>(self, conversion: Conversion<'c>) -> ConvertingRun<'p, 'c> {
        ConvertingRun {
            run: self,
            conversion,
        }
    }

    /// Runs several writes with the indices of the plan, each in place and with its own tensors.
    /// All data must have the shape and the strides that the plan was made for.
    ///
    /// All writes are checked before the first element is written.
    ///
    /// # Errors
    ///
    /// Those of [`in_place`](Self::in_place) and of [`ConvertingRun::in_place`], for any of the
    /// writes. All data is then unchanged. Also:
    ///
    /// - [`ScatterError::TensorsOverlap`] if the data of two writes shares memory.
    /// - [`ScatterError::UnsupportedOption`] if the call has a reduction.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Conversion, Layout, Scatter, TensorView, TensorViewMut, Write};
    ///
    /// // One plan for the slots of a step serves all layers of a model.
    /// let (slots, shape) = ([2_i64, 0], [2, 2, 2]);
    /// let plan = Scatter::paged().plan(Layout::contiguous(&shape), TensorView::from(&slots))?;
    /// let (mut first, mut second) = ([0_i8; 8], [0_i8; 8]);
    /// let rows = [1.5_f32, -2.5, 3.0, 4.0];
    /// let mut writes = Vec::new();
    /// for layer in [&mut first, &mut second] {
    ///     let data = TensorViewMut::contiguous(layer, &shape)?;
    ///     let updates = TensorView::contiguous(&rows, &[2, 2])?;
    ///     writes.push(Write::new(data, updates).convert(Conversion::new()));
    /// }
    /// plan.run().write_all(&mut writes)?;
    /// assert_eq!(first, [3, 4, 0, 0, 2, -2, 0, 0]);
    /// assert_eq!(second, first);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn write_all(&self, writes: &mut [Write<'_>]) -> Result<(), ScatterError> {
        refuse_reduction(self.meaning.reducing.reduction)?;
        let checked = operands::check(writes, None, &self.execution)?;
        let prepared = prepared::prepare(&checked, |_| self.plan)?;
        pass::run(&prepared, &self.execution)
    }
}

impl ConvertingRun<'_, '_> {
    /// Writes the converted updates to `data`.
    ///
    /// # Errors
    ///
    /// Those of [`ScatterRun::in_place`] and the additional errors of
    /// [`ConvertingScatter::in_place`].
    pub fn in_place<'d>(
        &self,
        data: impl Into<AnyViewMut<'d>>,
        updates: impl Into<AnyView<'d>>,
    ) -> Result<(), ScatterError> {
        let mut write = Write::new(data, updates).convert(self.conversion);
        self.run.write_all(std::slice::from_mut(&mut write))
    }
}

/// Returns an error if the call has a reduction. A converted value cannot be combined with an
/// existing value.
fn refuse_reduction(reduction: Reduction) -> Result<(), ScatterError> {
    match reduction {
        Reduction::None => Ok(()),
        _ => Err(ScatterError::UnsupportedOption {
            option: "reduction",
        }),
    }
}
