//! Checks the tensors of a scatter's gradient against one another.
//!
//! This module knows the tensors that the gradient of each reduction requires. This module does not
//! know plans.

use super::factor::Factor;
use crate::element::DType;
use crate::error::ScatterError;
use crate::execution::Execution;
use crate::kernel::{GradientFn, InstructionSet, Kernels};
use crate::memory::copied;
use crate::operand::{Dims, Indices, Source, Target};
use crate::reduction::{Reducing, Reduction};
use crate::run::{check_dtype, is_memory_of, refuse_overlap};

/// Tensors of a gradient's computation: the inputs, and the gradients to compute. `None`: the
/// caller has not passed the tensor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tensors<'a> {
    pub(crate) grad_output: &'a Source<'a>,
    pub(crate) data: Option<&'a Source<'a>>,
    pub(crate) updates: Option<&'a Source<'a>>,
    pub(crate) grad_data: Option<&'a Target<'a>>,
    pub(crate) grad_updates: Option<&'a Target<'a>>,
}

impl Tensors<'_> {
    /// Refuses elements without a gradient, tensors of different types, and requested gradients
    /// that share memory with another tensor. One exception: the gradient for data may be stored in
    /// the memory of the gradient of the output, with the same layout. Returns the factor of the
    /// gradients (`scale`, rounded and checked), and whether the gradient for data is stored in
    /// this memory.
    pub(super) fn check(
        &self,
        indices: Option<&Indices<'_>>,
        reduction: Reduction,
        scale: f64,
        execution: &Execution<'_>,
    ) -> Result<(Factor, bool), ScatterError> {
        let factor = Factor::new(self.grad_output.elements(), scale)?;
        gradient_kernel(factor.dtype, reduction, execution.instructions())?;
        let expected = self.grad_output.elements();
        let types = [
            ("data", self.data.map(Source::elements)),
            ("updates", self.updates.map(Source::elements)),
            ("grad_data", self.grad_data.map(Target::elements)),
            ("grad_updates", self.grad_updates.map(Target::elements)),
        ];
        for (tensor, actual) in types {
            actual.map_or(Ok(()), |actual| check_dtype(tensor, actual, expected))?;
        }
        let in_place = (self.grad_data).is_some_and(|data| is_memory_of(self.grad_output, data));
        let indices = indices.map(Indices::as_source);
        for (target, in_place) in [(self.grad_data, in_place), (self.grad_updates, false)] {
            let Some(target) = target else { continue };
            let apart = (!in_place).then_some(self.grad_output);
            refuse_overlap(
                target,
                [
                    ("grad_output", apart),
                    ("data", self.data),
                    ("indices", indices.as_ref()),
                    ("updates", self.updates),
                ],
            )?;
        }
        if let (Some(data), Some(updates)) = (self.grad_data, self.grad_updates) {
            updates.read(|updates| refuse_overlap(data, [("grad_updates", Some(updates))]))?;
        }
        Ok((factor, in_place))
    }

    /// Checks the shapes of the tensors. Data and the gradient for data must have the shape of
    /// `grad_output`. Updates and the gradient for updates must have the shape `updates_shape`. If
    /// the required shape has rank 0, a tensor other than the gradient for data may also have one
    /// element and any rank.
    pub(super) fn check_shapes(&self, updates_shape: &[usize]) -> Result<(), ScatterError> {
        let shape = self.grad_output.shape();
        let shapes = [
            ("data", self.data.map(Source::shape), shape),
            ("updates", self.updates.map(Source::shape), updates_shape),
            ("grad_data", self.grad_data.map(Target::shape), shape),
            (
                "grad_updates",
                self.grad_updates.map(Target::shape),
                updates_shape,
            ),
        ];
        for (tensor, actual, expected) in shapes {
            let Some(actual) = actual else { continue };
            let may_be_scalar = expected.is_empty() && tensor != "grad_data";
            let is_scalar = may_be_scalar && actual.iter().all(|&size| size == 1);
            if actual != expected && !is_scalar {
                return Err(shape_error(tensor, expected, actual));
            }
        }
        Ok(())
    }

    /// Refuses a gradient that depends on a missing tensor. `has_saved`: whether the forward pass
    /// has saved the values of data that it has overwritten. With these saved values, `data` may be
    /// missing.
    pub(super) fn check_inputs(
        &self,
        reducing: Reducing,
        has_saved: bool,
    ) -> Result<(), ScatterError> {
        let reduction = reducing.reduction;
        if !reduction.depends_on_values() {
            return Ok(());
        }
        let missing = |tensor| Err(ScatterError::MissingInput { tensor, reduction });
        match (self.data, self.updates) {
            (None, _) if reducing.include_self && !has_saved => missing("data"),
            (_, None) => missing("updates"),
            _ => Ok(()),
        }
    }
}

/// Returns the kernel of a reduction's gradient.
pub(super) fn gradient_kernel(
    dtype: DType,
    reduction: Reduction,
    set: InstructionSet,
) -> Result<GradientFn, ScatterError> {
    let unsupported = ScatterError::UnsupportedReduction { reduction, dtype };
    Kernels::gradient(dtype, reduction, set).ok_or(unsupported)
}

/// Returns a stride of 0 for each axis of a shape.
pub(super) fn zero_strides(shape: &[usize]) -> Result<Dims<isize>, ScatterError> {
    Dims::collect(shape.len(), shape.iter().map(|_| 0))
}

/// Returns the error for a tensor whose shape is wrong in the computation of a gradient. `tensor`
/// is the name of this tensor.
#[cold]
pub(super) fn shape_error(
    tensor: &'static str,
    expected: &[usize],
    actual: &[usize],
) -> ScatterError {
    ScatterError::with_facts(|| {
        Ok(ScatterError::GradientShape {
            tensor,
            expected: copied(expected)?,
            actual: copied(actual)?,
        })
    })
}
