//! PyTorch's `scatter`, `scatter_add` and `scatter_reduce`, which have one index per update, and
//! `index_add`, `index_copy`, `index_reduce` and `index_fill`, which have one index per slice.
//!
//! This module knows the rules of these functions, and which calls were measured to be faster on
//! the crate's kernels than on PyTorch's.

use ndscatter::{Accumulate, DType, Execution, Reduction, Scatter, profile};

use super::call::{Alpha, Arguments, Call, Function, Stop};
use super::connection::run;
use super::reason::Reason;
use super::tensor::Tensor;
use crate::array::elements_of;

/// A call of one of the functions.
pub(super) struct Scattering<'a> {
    function: Function,
    arguments: &'a Arguments<'a>,
    index: &'a Tensor,
    reduction: Reduction,
    /// The axis `dim`, counted from 0. PyTorch treats a tensor of rank 0 as a vector.
    axis: usize,
}

impl<'a> Call<'a> for Scattering<'a> {
    fn of(function: Function, arguments: &'a Arguments<'a>) -> Result<Self, Reason> {
        let (output, index) = (&arguments.output, arguments.index()?);
        let mut inputs = arguments.data.iter().chain(&arguments.updates);
        if !inputs.all(|input| input.has_type_of(output)) || !output.has_common_type() {
            return Err(Reason::Dtype);
        }
        if let Some(data) = &arguments.data {
            if data.shape != output.shape {
                return Err(Reason::Shape);
            }
            if data.aliases_with_other_strides(output) {
                return Err(Reason::Overlap);
            }
        }
        let call = Self {
            function,
            arguments,
            index,
            reduction: reduction(function, arguments).ok_or(Reason::Argument)?,
            axis: arguments.axis(output)?,
        };
        if call.has_slices() {
            call.check_slices()?;
        }
        match call.computes_differently() {
            true => Err(Reason::Dtype),
            false => Ok(call),
        }
    }

    fn gains(&self) -> bool {
        match self.function {
            Function::IndexReduce => true,
            Function::IndexFill => self.fill_gains(),
            _ if self.has_rows() => self.rows_gain(),
            _ => self.single_elements_gain(),
        }
    }

    fn run(&self) -> Result<(), Stop> {
        let updates = self.updates().ok_or(Reason::Shape)?;
        let scatter = self.scatter();
        let output = &self.arguments.output;
        run(|pool| {
            let scatter = scatter.execution(Execution::new().pool(pool));
            let (index, updates) = (self.index.view()?, updates.view()?);
            match &self.arguments.data {
                None => scatter.in_place(output.view_mut()?, index, updates),
                Some(data) => {
                    scatter.write_into(data.view()?, index, updates, output.view_written(false)?)
                }
            }
        })?;
        Ok(())
    }
}

/// Returns the reduction of a call. Returns `None` if PyTorch's function does not have it.
fn reduction(function: Function, arguments: &Arguments<'_>) -> Option<Reduction> {
    let reduce = arguments.reduce;
    Some(match function {
        Function::ScatterAdd => Reduction::Add,
        Function::ScatterReduce => match reduce? {
            "sum" => Reduction::Add,
            "prod" => Reduction::Mul,
            "mean" => Reduction::Mean,
            "amax" => Reduction::Max,
            "amin" => Reduction::Min,
            _ => return None,
        },
        Function::IndexReduce => match reduce? {
            "prod" => Reduction::Mul,
            "mean" => Reduction::Mean,
            "amax" => Reduction::Max,
            "amin" => Reduction::Min,
            _ => return None,
        },
        Function::Scatter | Function::ScatterValue => match reduce {
            None => Reduction::None,
            Some("add") => Reduction::Add,
            Some("multiply") => Reduction::Mul,
            Some(_) => return None,
        },
        Function::IndexAdd => sum_or_difference(arguments)?,
        _ => Reduction::None,
    })
}

/// Returns the reduction of `index_add` for the factors `alpha` 1 and -1. PyTorch's own kernel runs
/// the calls with any other `alpha`, because PyTorch defines how products with `alpha` are rounded,
/// and which types of `alpha` are errors.
fn sum_or_difference(arguments: &Arguments<'_>) -> Option<Reduction> {
    let dtype = arguments.output.dtype;
    let is_bool = dtype == DType::Bool;
    let is_real_float = matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64);
    let is = |value: f64| match arguments.alpha {
        Alpha::Bool(alpha) => is_bool && alpha && value > 0.0,
        Alpha::Integer(alpha) => (alpha as f64 == value) && (!is_bool || value > 0.0),
        Alpha::Float(alpha) => is_real_float && alpha == value,
        Alpha::Complex => false,
    };
    match (is(1.0), is(-1.0)) {
        (true, _) => Some(Reduction::Add),
        (_, true) => Some(Reduction::Sub),
        _ => None,
    }
}

impl Scattering<'_> {
    /// Whether the function has one index per slice. The other functions have one per update.
    fn has_slices(&self) -> bool {
        matches!(
            self.function,
            Function::IndexAdd | Function::IndexCopy | Function::IndexReduce | Function::IndexFill
        )
    }

    /// Whether PyTorch computes the results of the call differently. PyTorch rounds products and means
    /// of complex numbers differently. PyTorch counts the updates of a mean in the element type, and a
    /// count in a small integer type wraps around.
    fn computes_differently(&self) -> bool {
        match self.arguments.output.dtype {
            DType::Complex64 | DType::Complex128 => {
                matches!(self.reduction, Reduction::Mul | Reduction::Mean)
            }
            DType::I8 | DType::U8 | DType::I16 => self.reduction == Reduction::Mean,
            _ => false,
        }
    }

    fn check_slices(&self) -> Result<(), Reason> {
        // `index_copy` and `index_fill` accept int64 indices only. PyTorch's own kernel raises the
        // error for other indices.
        let is_long = self.index.dtype == DType::I64;
        let needs_long = matches!(self.function, Function::IndexCopy | Function::IndexFill);
        if !is_long && needs_long {
            return Err(Reason::Dtype);
        }
        if self.index.shape.len() != 1 {
            return Err(Reason::Shape);
        }
        // PyTorch's `index_reduce` refuses some calls with boolean or complex elements. PyTorch's
        // own kernel runs all such calls.
        let is_bool_or_complex = matches!(
            self.arguments.output.dtype,
            DType::Bool | DType::Complex64 | DType::Complex128
        );
        match is_bool_or_complex && self.function == Function::IndexReduce {
            true => Err(Reason::Dtype),
            false => Ok(()),
        }
    }

    /// Returns the updates that the call uses. Along each axis, the updates of a scatter may be
    /// longer than the index; the additional updates are not used. One value stands for all updates
    /// of a `scatter` with a number, and of an `index_fill`.
    fn updates(&self) -> Option<Tensor> {
        let mut updates = self.arguments.updates.clone()?;
        match self.function {
            Function::ScatterValue => updates.expand(&self.index.shape)?,
            Function::IndexFill => {
                let mut shape = self.arguments.output.shape.clone();
                *shape.get_mut(self.axis)? = self.index.elements();
                updates.expand(&shape)?;
            }
            _ if self.has_slices() => {}
            _ => updates.narrow(&self.index.shape)?,
        }
        Some(updates)
    }

    fn scatter(&self) -> Scatter<'static> {
        let axis = self.axis.cast_signed();
        let scatter = match self.has_slices() {
            true => profile::torch::index_copy(axis)
                .negative_indices(self.function == Function::IndexFill),
            false => profile::torch::scatter(axis),
        };
        (scatter.reduction(self.reduction))
            .include_self(self.arguments.include_self)
            .accumulate(match self.is_wide() {
                true => Accumulate::Wide,
                false => Accumulate::Native,
            })
    }

    /// Whether PyTorch sums 16-bit floats of this call in f32.
    ///
    /// PyTorch's scatter functions do so. If the indices are int64, PyTorch runs a sum of slices
    /// along the first or last axis of a tensor of rank 2 or more by `scatter_add`. PyTorch rounds
    /// all other sums of slices, and all differences, to the element type after each update.
    fn is_wide(&self) -> bool {
        let rank = self.arguments.output.shape.len();
        let is_outermost = rank > 1 && (self.axis == 0 || self.axis + 1 == rank);
        let is_long = self.index.dtype == DType::I64;
        !self.has_slices() || (self.reduction == Reduction::Add && is_long && is_outermost)
    }

    fn is_half(&self) -> bool {
        matches!(self.arguments.output.dtype, DType::F16 | DType::BF16)
    }

    /// The number of elements that is compared with [`Limits`](super::call::Limits).
    fn count(&self) -> usize {
        let counted = match self.has_slices() {
            true => self.arguments.updates.as_ref().unwrap_or(self.index),
            false => self.index,
        };
        elements_of(&counted.shape)
    }

    /// Whether the call scatters rows. The index of a `scatter` of rows is expanded from one number
    /// per row. PyTorch runs a call along the last axis lane by lane.
    fn has_rows(&self) -> bool {
        let rank = self.arguments.output.shape.len();
        let is_expanded = self.has_slices() || self.index.strides.last() == Some(&0);
        rank > 1 && is_expanded && self.axis + 1 < rank
    }

    /// Whether a call of single elements is faster here than in PyTorch.
    ///
    /// PyTorch runs most of these calls by one loop on one thread, which has no cost per call and is
    /// fast if the output is in the cache.
    fn single_elements_gain(&self) -> bool {
        let limits = self.function.limits();
        let (count, output) = (self.count(), &self.arguments.output);
        let elements = elements_of(&output.shape);
        // PyTorch divides all elements of the output by their numbers of updates, also those without
        // an update.
        if self.reduction == Reduction::Mean && elements / MEAN_ELEMENTS >= count {
            return true;
        }
        let is_line = output.shape.len() < 2;
        // The loop of PyTorch's `index_add` is slower than the loops of its other functions.
        let is_sum = self.function == Function::IndexAdd && output.fits_second_cache();
        let size_gains = output.exceeds_the_cache() || is_sum;
        count <= limits.few || (is_line && size_gains && count >= limits.many)
    }

    /// Whether a call of rows is faster here than in PyTorch.
    fn rows_gain(&self) -> bool {
        // PyTorch sums 16-bit floats in f32, and is as fast as ndscatter.
        let is_sum = matches!(
            self.reduction,
            Reduction::Add | Reduction::Sub | Reduction::Mul | Reduction::Mean
        );
        let is_replaced_sum = is_sum && self.function != Function::IndexReduce;
        self.count() >= self.function.limits().rows && !(is_replaced_sum && self.is_half())
    }

    /// Whether an `index_fill` is faster here than in PyTorch.
    fn fill_gains(&self) -> bool {
        const LONG: usize = 64;
        const MANY: usize = 1 << 18;
        let output = &self.arguments.output;
        let slice =
            elements_of(&output.shape) / output.shape.get(self.axis).map_or(1, |&size| size.max(1));
        let elements = slice.saturating_mul(self.index.elements());
        let is_long = slice >= LONG && elements >= self.function.limits().rows;
        is_long || (slice > 1 && elements >= MANY)
    }
}

/// Smallest number of elements of the output per update for which `mean` gains.
const MEAN_ELEMENTS: usize = 64;
