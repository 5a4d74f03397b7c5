//! One call of a PyTorch function: the function, its arguments, and the trait of their rules.
//!
//! This module does not know the rules of any function.

use ndscatter::ScatterError;
use pyo3::PyResult;
use pyo3::exceptions::PyKeyError;
use smallvec::SmallVec;

use super::connection::NoResult;
use super::reason::Reason;
use super::tensor::Tensor;

/// A function of PyTorch that kernels of the crate run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    ScatterAdd,
    ScatterReduce,
    /// `scatter` with a tensor.
    Scatter,
    /// `scatter` with one number for all indices. `updates` is a tensor of rank 0.
    ScatterValue,
    IndexAdd,
    IndexCopy,
    IndexReduce,
    IndexPut,
    EmbeddingDenseBackward,
    IndexFill,
    /// `put_`.
    FlatPut,
    /// `t[i, j]`.
    Index,
    IndexSelect,
    Take,
    Gather,
}

impl Function {
    /// All functions with their names in Python. The C++ kernels use the position in this list.
    pub(super) const ALL: [(&str, Self); 15] = [
        ("scatter_add", Self::ScatterAdd),
        ("scatter_reduce", Self::ScatterReduce),
        ("scatter", Self::Scatter),
        ("scatter_value", Self::ScatterValue),
        ("index_add", Self::IndexAdd),
        ("index_copy", Self::IndexCopy),
        ("index_reduce", Self::IndexReduce),
        ("index_put", Self::IndexPut),
        ("embedding_dense_backward", Self::EmbeddingDenseBackward),
        ("index_fill", Self::IndexFill),
        ("put", Self::FlatPut),
        ("index", Self::Index),
        ("index_select", Self::IndexSelect),
        ("take", Self::Take),
        ("gather", Self::Gather),
    ];

    /// Returns the function with this name in Python.
    pub(super) fn named(name: &str) -> PyResult<Self> {
        let known = Self::ALL.iter().find(|(known, _)| *known == name);
        let &(_, function) = known.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        Ok(function)
    }

    /// The limits of the calls that the crate may run faster than PyTorch.
    pub(super) const fn limits(self) -> Limits {
        match self {
            Self::ScatterAdd | Self::ScatterReduce | Self::Scatter => Limits {
                few: 128,
                ..Limits::many(1 << 18)
            },
            Self::ScatterValue | Self::IndexAdd => Limits::many(1 << 18),
            Self::IndexCopy => Limits {
                few: 1 << 15,
                ..Limits::many(usize::MAX)
            },
            Self::IndexReduce | Self::IndexPut => Limits::NONE,
            Self::EmbeddingDenseBackward => Limits::rows(1 << 11),
            Self::IndexFill => Limits::rows(1 << 13),
            Self::FlatPut => Limits::many(1 << 12),
            Self::Index => Limits {
                rows: 1 << 10,
                ..Limits::many(1 << 8)
            },
            Self::IndexSelect => Limits {
                rows: 1 << 18,
                ..Limits::many(1 << 18)
            },
            Self::Take => Limits::many(1 << 10),
            Self::Gather => Limits {
                rows: 1 << 18,
                ..Limits::many(1 << 10)
            },
        }
    }
}

/// Limits of the size of a call. A kernel passes a call outside of the limits to PyTorch's own kernel
/// before any other check.
///
/// The C++ kernels read this struct.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Smallest number of elements that a call moves, if it moves rows.
    pub(super) rows: usize,
    /// Largest number of indices of a call that moves few single elements.
    pub(super) few: usize,
    /// Smallest number of indices of a call that moves many single elements.
    pub(super) many: usize,
}

impl Limits {
    const NONE: Self = Self::many(0);

    const fn rows(rows: usize) -> Self {
        Self {
            rows,
            ..Self::many(usize::MAX)
        }
    }

    const fn many(many: usize) -> Self {
        Self {
            rows: 0,
            few: 0,
            many,
        }
    }
}

/// The factor `alpha` of `index_add`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Alpha {
    Bool(bool),
    Integer(i64),
    Float(f64),
    Complex,
}

/// The arguments of a call. A function does not read the arguments that it does not have.
#[derive(Debug)]
pub(super) struct Arguments<'a> {
    pub(super) output: Tensor,
    /// The initial values of the output. `None` if the output contains the initial values.
    pub(super) data: Option<Tensor>,
    /// The argument `dim`. `padding_idx` for the gradient of an embedding.
    pub(super) dim: i64,
    /// One index tensor. `index_put` and `index` have one item per axis, which is `None` for an axis
    /// without an index.
    pub(super) indices: SmallVec<[Option<Tensor>; 1]>,
    pub(super) updates: Option<Tensor>,
    pub(super) reduce: Option<&'a str>,
    pub(super) include_self: bool,
    pub(super) accumulate: bool,
    /// Whether the output is a new tensor, which the kernel drops if the crate refuses the call.
    pub(super) is_new: bool,
    pub(super) alpha: Alpha,
}

impl Arguments<'_> {
    /// Returns the index tensor of a function with one index tensor.
    pub(super) fn index(&self) -> Result<&Tensor, Reason> {
        let index = self.indices.first().and_then(Option::as_ref);
        let index = index.ok_or(Reason::Shape)?;
        index.is_index().then_some(index).ok_or(Reason::Dtype)
    }

    /// Returns the table of a gather: the argument `self`.
    pub(super) fn table(&self) -> &Tensor {
        self.data.as_ref().unwrap_or(&self.output)
    }

    /// Returns the axis `dim`, counted from 0. PyTorch treats a tensor of rank 0 as a vector.
    pub(super) fn axis(&self, tensor: &Tensor) -> Result<usize, Reason> {
        let rank = i64::try_from(tensor.shape.len().max(1)).map_err(|_| Reason::Shape)?;
        let axis = if self.dim < 0 {
            self.dim + rank
        } else {
            self.dim
        };
        let inside = usize::try_from(axis).ok().filter(|_| axis < rank);
        inside.ok_or(Reason::Argument)
    }
}

/// Why a step of a call has no result.
#[derive(Debug)]
pub(super) enum Stop {
    /// PyTorch's own kernel must run the call. The output is unchanged.
    Declined(Reason),
    /// The call failed, and may have written a part of the output.
    Failed(NoResult),
}

impl From<Reason> for Stop {
    fn from(reason: Reason) -> Self {
        Self::Declined(reason)
    }
}

impl From<NoResult> for Stop {
    /// PyTorch's own kernel runs the calls that the crate refuses. The error `PoolFailed` remains an
    /// error, because a call with this error may have written a part of the output.
    fn from(failed: NoResult) -> Self {
        match failed {
            NoResult::Error(error) if !matches!(error, ScatterError::PoolFailed { .. }) => {
                Self::Declined(Reason::from(&error))
            }
            failed => Self::Failed(failed),
        }
    }
}

/// A call of one PyTorch function with arguments that have been checked.
pub(super) trait Call<'a>: Sized {
    /// Whether the crate may run this call faster than PyTorch. The check comes before [`of`](Self::of)
    /// and uses the sizes of the tensors only, so that it is fast.
    fn may_gain(_function: Function, _arguments: &Arguments<'_>) -> bool {
        true
    }

    /// Checks the arguments. Returns the reason if PyTorch's own kernel must run the call.
    fn of(function: Function, arguments: &'a Arguments<'a>) -> Result<Self, Reason>;

    /// Whether the crate runs this call faster than PyTorch.
    fn gains(&self) -> bool;

    /// Shape of the result of a gather.
    fn result_shape(&self) -> &[usize] {
        &[]
    }

    /// Runs the call.
    fn run(&self) -> Result<(), Stop>;
}
