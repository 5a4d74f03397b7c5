//! The reasons why a call was refused.
//!
//! This module knows the facts of a refusal (shapes, positions, sizes) and their text. It does not
//! know how a fact was found.

use std::fmt;

use crate::element::DType;
use crate::reduction::{CacheMode, Reduction};

/// The reason why a scatter, a gather or a gradient was refused.
///
/// An error means that nothing has been written. There are two exceptions:
/// [`ScatterError::PoolFailed`], and an output of new memory
/// ([`AnyViewMut::of_new_memory`](crate::AnyViewMut::of_new_memory)).
///
/// The error does not depend on the number of threads. Errors about shapes and options come first.
/// Errors about indices out of bounds come next. An error about an index out of bounds reports the
/// first invalid tuple in row-major order, and its first invalid axis. Errors about duplicates come
/// last.
///
/// The text of an error starts in lower case, contains every field, and ends without a full
/// stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScatterError {
    /// The slice of a contiguous view has another length than the shape requires.
    #[error(
        "shape {shape:?} has {expected} elements but the slice has {actual}; pass a slice of that length, or an offset and strides"
    )]
    SliceLength {
        /// The requested shape.
        shape: Vec<usize>,
        /// Number of elements of the shape.
        expected: usize,
        /// Number of elements of the slice.
        actual: usize,
    },

    /// The elements of a shape, gaps between them included, need more bytes than memory can
    /// address.
    ///
    /// Sizes of 0 are left out of the product of the sizes, so an empty shape can be refused
    /// too.
    #[error("shape {shape:?} reaches beyond what memory can address; use smaller sizes or strides")]
    ShapeOverflow {
        /// The shape.
        shape: Vec<usize>,
    },

    /// The number of strides is not the number of dimensions.
    #[error("shape {shape:?} needs {} strides but {} were given: {strides:?}", shape.len(), strides.len())]
    StridesRank {
        /// The shape.
        shape: Vec<usize>,
        /// The strides, in elements.
        strides: Vec<isize>,
    },

    /// Offset and strides place an element outside the slice.
    #[error(
        "offset {offset} with shape {shape:?} and strides {strides:?} leaves the slice of {len} elements; pass a longer slice or another offset"
    )]
    OutsideSlice {
        /// Position of element `[0, 0, ...]` in the slice.
        offset: usize,
        /// The shape.
        shape: Vec<usize>,
        /// The strides, in elements.
        strides: Vec<isize>,
        /// Number of elements of the slice.
        len: usize,
    },

    /// Two elements of an output have one address.
    #[error(
        "an output of shape {shape:?} and strides {strides:?} overlaps itself; use strides that give each element its own address"
    )]
    SelfOverlap {
        /// The shape.
        shape: Vec<usize>,
        /// The strides, in elements.
        strides: Vec<isize>,
    },

    /// A search of bounded effort could not decide whether an output overlaps itself.
    #[error(
        "a bounded search could not decide whether an output of shape {shape:?} and strides {strides:?} overlaps itself; use a contiguous output"
    )]
    SelfOverlapUndecided {
        /// The shape.
        shape: Vec<usize>,
        /// The strides, in elements.
        strides: Vec<isize>,
    },

    /// A search of bounded effort could not decide whether a tensor shares memory with a
    /// tensor that the call writes.
    #[error(
        "a bounded search could not decide whether `{tensor}` shares memory with a tensor that the call writes; copy `{tensor}` to separate memory"
    )]
    OverlapUndecided {
        /// Name of the tensor.
        tensor: &'static str,
    },

    /// A slice of bytes is too short for the tensor.
    #[error(
        "shape {shape:?} of {dtype} needs {needed} bytes, gaps included, but the slice has {actual}; pass a longer slice"
    )]
    BytesLength {
        /// The shape.
        shape: Vec<usize>,
        /// The element type.
        dtype: DType,
        /// Bytes from the start of the lowest element to the end of the highest.
        needed: usize,
        /// Bytes of the slice.
        actual: usize,
    },

    /// A stride in bytes is not a multiple of the size of an element.
    #[error("{stride} bytes, the stride of axis {axis}, is not a multiple of the size of {dtype}")]
    ByteStride {
        /// The axis.
        axis: usize,
        /// The stride, in bytes.
        stride: isize,
        /// The element type.
        dtype: DType,
    },

    /// An input, or a second output, shares memory with a tensor that the call writes.
    #[error(
        "`{tensor}` shares memory with a tensor that the call writes; use separate memory (the `data` of a scatter may also be the output itself: same address, shape and strides)"
    )]
    InputOverlap {
        /// Name of the tensor, such as `data`, `indices` or `updates`.
        tensor: &'static str,
    },

    /// Booleans that may be any byte would be moved into memory of Rust's `bool`.
    ///
    /// Views from bytes or raw parts have such booleans.
    #[error(
        "`{tensor}` has booleans that may be any byte, but the output holds those of Rust; make both views from bytes or raw parts, or both from `bool`"
    )]
    ForeignBool {
        /// Name of the tensor: `data` or `updates`.
        tensor: &'static str,
    },

    /// The output of an in-place call may be uninitialised memory.
    #[error(
        "`data` is a view that is only written, but an in-place call reads it; use `AnyViewMut::from_raw_parts`"
    )]
    Uninitialized,

    /// An address is not a multiple of the alignment of the element type.
    #[error("address {address:#x} is not aligned for {dtype}; use a multiple of {alignment}")]
    Misaligned {
        /// The address of element `[0, 0, ...]`, or of the slice of bytes.
        address: usize,
        /// The element type.
        dtype: DType,
        /// The alignment of the element type, in bytes.
        alignment: usize,
    },

    /// `indices` of [`Scatter::nd`](crate::Scatter::nd) or [`Gather::nd`](crate::Gather::nd) has
    /// rank 0. The last dimension of `indices` must hold the coordinates of a tuple.
    #[error("`indices` must have rank 1 or more; its last dimension holds the coordinates")]
    IndicesRank,

    /// A tuple has more coordinates than `data` has dimensions.
    #[error(
        "tuples of {tuple_len} coordinates (the last size of `indices`) do not fit `data`, which has rank {rank} without batch dimensions; use at most {rank} coordinates"
    )]
    TupleLength {
        /// Number of coordinates of a tuple, `indices.shape[-1]`.
        tuple_len: usize,
        /// Rank of `data`, minus the batch dimensions of a gather.
        rank: usize,
    },

    /// The axis is not in `-rank..rank`.
    #[error("axis {axis} is out of range for data of rank {rank}")]
    AxisOutOfRange {
        /// The axis, as the caller gave it.
        axis: isize,
        /// Rank of `data`.
        rank: usize,
    },

    /// `updates` has another shape than the operator requires.
    #[error("`updates` has shape {actual:?} but `data` and `indices` require {expected:?}")]
    UpdatesShape {
        /// The shape that `data` and `indices` require.
        expected: Vec<usize>,
        /// The shape of `updates`.
        actual: Vec<usize>,
    },

    /// `indices` of an element-wise operator has another rank than `data`.
    #[error(
        "`indices` has rank {indices} but `data` has rank {rank}; element-wise operators require equal ranks"
    )]
    IndicesRankMismatch {
        /// Rank of `data`.
        rank: usize,
        /// Rank of `indices`.
        indices: usize,
    },

    /// `indices` of an element-wise operator is longer than `data` along an axis that is not
    /// indexed.
    #[error(
        "`indices` has size {size} along axis {axis} but `data` has size {data_size}; `indices` may be longer only along the indexed axis"
    )]
    IndicesTooLong {
        /// The axis.
        axis: usize,
        /// Size of `indices` along the axis.
        size: usize,
        /// Size of `data` along the axis.
        data_size: usize,
    },

    /// The indices of a cache do not have one position per sequence, nor one position for all.
    #[error(
        "`write_indices` has shape {actual:?}; use shape [{batch}] for one position per sequence, or shape [] for one position that all sequences share"
    )]
    WriteIndicesShape {
        /// Number of sequences, which is the size of axis 0.
        batch: usize,
        /// The shape of the indices.
        actual: Vec<usize>,
    },

    /// A cache position is negative or, in linear mode, leaves no room for the update.
    #[error(
        "write index {index} of sequence {batch} is out of range: an update of length {update_len} in a cache of length {cache_len} must begin {}",
        Positions(.update_len, .cache_len, .mode)
    )]
    WriteIndex {
        /// Number of the sequence.
        batch: usize,
        /// The index, as the caller gave it.
        index: i128,
        /// Length of the update along the axis.
        update_len: usize,
        /// Length of the cache along the axis.
        cache_len: usize,
        /// Behaviour at the end of the cache.
        mode: CacheMode,
    },

    /// The updates of a cache have another rank than the cache.
    ///
    /// Other sizes along other axes are [`Self::UpdatesShape`]. A larger size along the written
    /// axis is [`Self::UpdateTooLong`].
    #[error(
        "`updates` has shape {actual:?} but must have the shape of the cache, {cache:?}, with any size up to {} along axis {axis}",
        .cache[*.axis]
    )]
    CacheUpdatesShape {
        /// The shape of the cache.
        cache: Vec<usize>,
        /// The axis that is written.
        axis: usize,
        /// The shape of `updates`.
        actual: Vec<usize>,
    },

    /// An update is longer than its cache.
    #[error(
        "an update of length {update_len} along axis {axis} does not fit a cache of length {cache_len}"
    )]
    UpdateTooLong {
        /// The axis.
        axis: usize,
        /// Length of the update along the axis.
        update_len: usize,
        /// Length of the cache along the axis.
        cache_len: usize,
    },

    /// The written axis of a cache is axis 0, which holds the sequences.
    #[error(
        "axis 0 of `data` holds the sequences, and `data` has rank {rank}; write along axis 1 or a later axis of data of rank 2 or more"
    )]
    BatchAxis {
        /// Rank of `data`.
        rank: usize,
    },

    /// The number of batch dimensions is too large for `data` or `indices`. The last dimension of
    /// `indices` holds coordinates and cannot be a batch dimension.
    #[error(
        "{batch_dims} batch dimensions do not fit data of rank {data_rank} and indices of rank {indices_rank}; use at most {data_rank} batch dimensions, and fewer than {indices_rank}"
    )]
    BatchDims {
        /// The requested number of batch dimensions.
        batch_dims: usize,
        /// Rank of `data`.
        data_rank: usize,
        /// Rank of `indices`.
        indices_rank: usize,
    },

    /// The batch dimensions of `data` and `indices` differ.
    #[error(
        "the batch dimensions of `data` are {data:?} but the batch dimensions of `indices` are {indices:?}; they must be equal"
    )]
    BatchShape {
        /// Batch dimensions of `data`.
        data: Vec<usize>,
        /// Batch dimensions of `indices`.
        indices: Vec<usize>,
    },

    /// The output of a gather has another shape than the operator requires.
    #[error("`output` has shape {actual:?} but `data` and `indices` require {expected:?}")]
    OutputShape {
        /// The shape that `data` and `indices` require.
        expected: Vec<usize>,
        /// The shape of `output`.
        actual: Vec<usize>,
    },

    /// The operator or the element type does not support an option.
    #[error("option `{option}` is not supported here; use its default or another operator")]
    UnsupportedOption {
        /// Name of the option.
        option: &'static str,
    },

    /// `data` does not have the shape of the output.
    #[error("`data` has shape {actual:?} but the output has {expected:?}; they must be equal")]
    DataShape {
        /// The shape of the output.
        expected: Vec<usize>,
        /// The shape of `data`.
        actual: Vec<usize>,
    },

    /// The element type of `indices` is not an integer type.
    #[error("`indices` is {actual}; use an integer type from i8 to i64 or u8 to u64")]
    IndexType {
        /// The element type of `indices`.
        actual: DType,
    },

    /// One tensor of the call (`tensor`) has another element type than the other tensors of the
    /// call.
    #[error("`{tensor}` is {actual} but the others are {expected}; all must have one type")]
    DTypeMismatch {
        /// Name of the tensor with the other element type.
        tensor: &'static str,
        /// The element type that all tensors of the call except `tensor` have.
        expected: DType,
        /// The element type of the named tensor.
        actual: DType,
    },

    /// The element type does not have the reduction.
    #[error("reduction {reduction} is not defined for {dtype}; use another reduction or type")]
    UnsupportedReduction {
        /// The requested reduction.
        reduction: Reduction,
        /// The element type.
        dtype: DType,
    },

    /// Elements of this type have no gradient.
    #[error("{dtype} has no gradient; use floats or complex numbers")]
    NoGradient {
        /// The element type.
        dtype: DType,
    },

    /// Elements that are cloned ([`Cloned`](crate::Cloned)) have no gradient.
    #[error("elements in `Cloned` have no gradient; use floats or complex numbers")]
    GradientOfClones,

    /// The factor of a gradient is not finite.
    ///
    /// The factor must be finite before and after rounding to the type in which the gradient is
    /// computed.
    #[error("`scale` is not finite in {dtype}; pass a finite number")]
    Scale {
        /// The type that the gradient is computed in: `f32` or `f64`.
        dtype: DType,
    },

    /// The gradient of a reduction depends on a tensor of the forward pass that is missing.
    #[error("the gradient of {reduction} needs `{tensor}` of the forward pass; pass `{tensor}`")]
    MissingInput {
        /// Name of the tensor: `data` or `updates`.
        tensor: &'static str,
        /// The reduction.
        reduction: Reduction,
    },

    /// A tensor of a gradient has another shape than the other tensors require.
    #[error("`{tensor}` has shape {actual:?} but the other tensors require {expected:?}")]
    GradientShape {
        /// Name of the tensor.
        tensor: &'static str,
        /// The shape that the other tensors require.
        expected: Vec<usize>,
        /// The shape of the named tensor.
        actual: Vec<usize>,
    },

    /// Elements that are cloned ([`Cloned`](crate::Cloned)) have no reduction.
    #[error(
        "elements in `Cloned` can only be replaced; reduction {reduction} needs a numeric type"
    )]
    ReductionOfClones {
        /// The requested reduction.
        reduction: Reduction,
    },

    /// An index is outside its axis.
    #[error("index {index} of tuple {tuple} is out of bounds for axis {axis} of size {size}")]
    IndexOutOfBounds {
        /// Position of the tuple among all tuples, in row-major order.
        tuple: usize,
        /// Axis of `data` that the index addresses.
        axis: usize,
        /// The index, as the caller gave it.
        index: i128,
        /// Number of elements along the axis.
        size: usize,
    },

    /// Two tuples have one destination under
    /// [`Duplicates::Reject`](crate::Duplicates::Reject).
    #[error("tuple {tuple} has the destination of tuple {earlier}, but duplicates are rejected")]
    DuplicateIndex {
        /// The first tuple, in row-major order, that has the destination of an earlier tuple.
        tuple: usize,
        /// The last tuple before `tuple` with that destination.
        earlier: usize,
    },

    /// A plan was run with another shape or other strides than it was made for.
    ///
    /// The checked tensor is the output of a scatter, and the data of a gather.
    #[error(
        "the plan was made for shape {planned_shape:?} and strides {planned_strides:?}, not for shape {shape:?} and strides {strides:?}; plan again for this layout"
    )]
    PlanMismatch {
        /// The planned shape.
        planned_shape: Vec<usize>,
        /// The planned strides, in elements.
        planned_strides: Vec<isize>,
        /// The shape of the given tensor.
        shape: Vec<usize>,
        /// The strides of the given tensor, in elements.
        strides: Vec<isize>,
    },

    /// An allocation failed.
    ///
    /// The allocation was for a result, a plan, ranks above 8, or the fields of another error,
    /// or for a run that must sort its tuples. Means, reductions without self and wide sums
    /// sort their tuples.
    #[error("an allocation of {bytes} bytes failed")]
    OutOfMemory {
        /// The requested bytes.
        bytes: usize,
    },

    /// A pool did not run every task exactly once.
    ///
    /// The output may have changed, and its values are undefined.
    #[error(
        "the pool completed {completed} of {tasks} tasks, and made {surplus} calls beyond one for each task; do not use the output"
    )]
    PoolFailed {
        /// Tasks given to the pool.
        tasks: usize,
        /// Tasks that were completed. Each one ran once, whatever the pool did.
        completed: usize,
        /// Calls beyond one for each task: repeated calls, and calls with the number of no task.
        /// These additional calls had no effect.
        surplus: usize,
    },
}

/// The positions at which an update of a cache may begin: length of the update, length of the
/// cache, mode. The positions are formatted without an allocation.
struct Positions<'a>(&'a usize, &'a usize, &'a CacheMode);

impl fmt::Display for Positions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(update_len, cache_len, mode) = self;
        match mode {
            CacheMode::Linear => write!(f, "at 0 to {}", cache_len.saturating_sub(**update_len)),
            CacheMode::Circular => f.write_str("at 0 or later"),
        }
    }
}

impl ScatterError {
    /// Returns an error whose fields need memory. If the allocation fails, that failure is the
    /// error.
    #[cold]
    pub(crate) fn with_facts(error: impl FnOnce() -> Result<Self, Self>) -> Self {
        error().unwrap_or_else(|out_of_memory| out_of_memory)
    }
}
