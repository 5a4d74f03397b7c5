//! The reasons why a call was refused.
//!
//! This module knows the facts of a refusal (shapes, positions, sizes) and their text. This module
//! does not know how these facts were found.

use std::fmt;

#[cfg(feature = "conversions")]
use crate::conversion::Format;
use crate::element::DType;
use crate::reduction::{CacheMode, Reduction};

/// The reason why a scatter, a gather or a gradient was refused.
///
/// After an error, nothing has been written, with two exceptions. After
/// [`ScatterError::PoolFailed`], and in an output marked as new memory
/// ([`AnyViewMut::of_new_memory`](crate::AnyViewMut::of_new_memory)), elements may have changed.
///
/// The error does not depend on the number of threads. A call with several faults reports one
/// error. Errors about shapes and options have precedence over errors about indices out of bounds.
/// Errors about indices out of bounds have precedence over errors about duplicates. If several
/// indices are out of bounds, the error names the first invalid tuple in row-major order, and the
/// first invalid axis of this tuple.
///
/// The text of an error contains the value of every field. The text starts in lower case and ends
/// without a full stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScatterError {
    /// The length of the slice of a contiguous view is not the number of elements of the shape.
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

    /// The number of elements of a shape is above `isize::MAX`, or the elements, including the gaps
    /// between them, span more than `isize::MAX` bytes.
    ///
    /// A size of 0 counts as 1 in the number of elements. A shape without elements can therefore be
    /// refused too.
    #[error("shape {shape:?} reaches beyond what memory can address; use smaller sizes or strides")]
    ShapeOverflow {
        /// The shape.
        shape: Vec<usize>,
    },

    /// The number of strides differs from the number of dimensions.
    #[error("shape {shape:?} needs {} strides but {} were given: {strides:?}", shape.len(), strides.len())]
    StridesRank {
        /// The shape.
        shape: Vec<usize>,
        /// The strides, in elements.
        strides: Vec<isize>,
    },

    /// The offset and the strides place an element outside the slice.
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

    /// Two elements of an output have the same address.
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
        /// Bytes from the start of the element with the lowest address to the end of the element
        /// with the highest address.
        needed: usize,
        /// Bytes of the slice.
        actual: usize,
    },

    /// A stride, in bytes, is not a multiple of the size of an element.
    #[error("{stride} bytes, the stride of axis {axis}, is not a multiple of the size of {dtype}")]
    ByteStride {
        /// The axis.
        axis: usize,
        /// The stride, in bytes.
        stride: isize,
        /// The element type.
        dtype: DType,
    },

    /// An input shares memory with a tensor that the call writes, or two outputs of a gradient
    /// share memory.
    #[error(
        "`{tensor}` shares memory with a tensor that the call writes; use separate memory (the `data` of a scatter may also be the output itself: same address, shape and strides)"
    )]
    InputOverlap {
        /// Name of the tensor, such as `data`, `indices` or `updates`.
        tensor: &'static str,
    },

    /// The call would copy booleans that may be any byte into memory of Rust's `bool`, which holds
    /// only 0 and 1.
    ///
    /// Booleans may be any byte in a view that was made from bytes or raw parts.
    #[error(
        "`{tensor}` has booleans that may be any byte, but the output holds those of Rust; make both views from bytes or raw parts, or both from `bool`"
    )]
    ForeignBool {
        /// Name of the tensor: `data` or `updates`.
        tensor: &'static str,
    },

    /// An in-place scatter reads `data`, but `data` is a view of memory that may be uninitialised.
    #[error(
        "`data` is a view that is only written, but an in-place call reads it; use `AnyViewMut::from_raw_parts`"
    )]
    Uninitialized,

    /// An address is not a multiple of the alignment of the element type.
    #[error("address {address:#x} is not aligned for {dtype}; use a multiple of {alignment}")]
    Misaligned {
        /// The address of element `[0, 0, ...]`, or of the first byte of a slice of bytes.
        address: usize,
        /// The element type.
        dtype: DType,
        /// The alignment of the element type, in bytes.
        alignment: usize,
    },

    /// `indices` of [`Scatter::nd`](crate::Scatter::nd) or [`Gather::nd`](crate::Gather::nd) has
    /// rank 0. A last dimension is required, because it holds the coordinates of a tuple.
    #[error("`indices` must have rank 1 or more; its last dimension holds the coordinates")]
    IndicesRank,

    /// A tuple has more coordinates than `data` has dimensions, not counting batch dimensions.
    #[error(
        "tuples of {tuple_len} coordinates (the last size of `indices`) do not fit `data`, which has rank {rank} without batch dimensions; use at most {rank} coordinates{}",
        OneTuple(.is_one_tuple.then_some(*.tuple_len), "`scatter_update` or `gather` (in Rust: `along(0)`)")
    )]
    TupleLength {
        /// Number of coordinates of a tuple, `indices.shape[-1]`.
        tuple_len: usize,
        /// Rank of `data`, minus the number of batch dimensions of a gather.
        rank: usize,
        /// Whether `indices` has rank 1, and is therefore one tuple. The caller may have meant a
        /// list of positions along axis 0, which [`Scatter::along`](crate::Scatter::along) and
        /// [`Gather::along`](crate::Gather::along) read.
        is_one_tuple: bool,
    },

    /// The axis is outside the range `-rank..rank`.
    #[error("axis {axis} is out of range for data of rank {rank}")]
    AxisOutOfRange {
        /// The axis, as the caller gave it.
        axis: isize,
        /// Rank of `data`.
        rank: usize,
    },

    /// The shape of `updates` is not the shape that the operator requires.
    #[error(
        "`updates` has shape {actual:?} but `data` and `indices` require {expected:?}{}",
        OneTuple(*.one_tuple, "`scatter_update` (in Rust: `Scatter::along(0)`)")
    )]
    UpdatesShape {
        /// The required shape, computed from `data` and `indices`.
        expected: Vec<usize>,
        /// The shape of `updates`.
        actual: Vec<usize>,
        /// Number of coordinates of the only tuple, if `indices` of
        /// [`Scatter::nd`](crate::Scatter::nd) has rank 1. The caller may have meant a list of
        /// positions along axis 0, which [`Scatter::along`](crate::Scatter::along) reads. `None`
        /// for all other indices and operators.
        one_tuple: Option<usize>,
    },

    /// The ranks of `indices` and `data` of an element-wise operator differ.
    #[error(
        "`indices` has rank {indices} but `data` has rank {rank}; element-wise operators require equal ranks"
    )]
    IndicesRankMismatch {
        /// Rank of `data`.
        rank: usize,
        /// Rank of `indices`.
        indices: usize,
    },

    /// `indices` of an element-wise operator is longer than `data` along an axis other than the
    /// indexed axis.
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

    /// `write_indices` of a cache has neither shape `[batch]` (one position per sequence) nor shape
    /// `[]` (one position for all sequences).
    #[error(
        "`write_indices` has shape {actual:?}; use shape [{batch}] for one position per sequence, or shape [] for one position that all sequences share"
    )]
    WriteIndicesShape {
        /// Number of sequences, which is the size of axis 0.
        batch: usize,
        /// The shape of `write_indices`.
        actual: Vec<usize>,
    },

    /// A write index of a cache is negative. Or the mode is linear, and the update would extend
    /// beyond the end of the cache.
    #[error(
        "write index {index} of sequence {batch} is out of range: an update of length {update_len} in a cache of length {cache_len} must begin {}",
        Positions(.update_len, .cache_len, .mode)
    )]
    WriteIndex {
        /// Number of the sequence, counted from 0.
        batch: usize,
        /// The index, as the caller gave it.
        index: i128,
        /// Length of the update along the written axis.
        update_len: usize,
        /// Length of the cache along the written axis.
        cache_len: usize,
        /// The mode of the cache: linear or circular.
        mode: CacheMode,
    },

    /// A slot is beyond the last slot of a paged cache, or it is negative and negative slots are
    /// errors.
    #[error(
        "slot {slot} at position {position} is out of bounds: the cache has {blocks} blocks of {block_size} slots"
    )]
    SlotOutOfBounds {
        /// Position of the slot in the list of slots, in row-major order.
        position: usize,
        /// The slot, as the caller gave it.
        slot: i128,
        /// Number of blocks of the cache: the size of axis 0.
        blocks: usize,
        /// Number of slots of a block: the size of axis 1.
        block_size: usize,
    },

    /// The data of [`Scatter::paged`](crate::Scatter::paged), or a tensor of
    /// [`MoveRows::paged`](crate::MoveRows::paged), does not have the two axes of a paged cache.
    #[error(
        "a paged cache needs axis 0 (the blocks) and axis 1 (the rows of a block), but `data` has rank {rank}"
    )]
    PagedRank {
        /// Rank of `data`.
        rank: usize,
    },

    /// The rank of `updates` differs from the rank of the cache.
    ///
    /// If the ranks are equal but a size is wrong, the call returns another error.
    /// [`Self::UpdateTooLong`]: `updates` is longer than the cache along the written axis.
    /// [`Self::UpdatesShape`]: the sizes of `updates` and the cache differ along another axis.
    #[error(
        "`updates` has shape {actual:?} but must have the shape of the cache, {cache:?}, with any size up to {} along axis {axis}",
        .cache[*.axis]
    )]
    CacheUpdatesShape {
        /// The shape of the cache.
        cache: Vec<usize>,
        /// The written axis.
        axis: usize,
        /// The shape of `updates`.
        actual: Vec<usize>,
    },

    /// `updates` is longer than the cache along the written axis.
    #[error(
        "an update of length {update_len} along axis {axis} does not fit a cache of length {cache_len}"
    )]
    UpdateTooLong {
        /// The axis.
        axis: usize,
        /// Length of the update along the written axis.
        update_len: usize,
        /// Length of the cache along the written axis.
        cache_len: usize,
    },

    /// The written axis of a cache is axis 0, which holds the sequences, or `data` has rank 0 or 1.
    #[error(
        "axis 0 of `data` holds the sequences, and `data` has rank {rank}; write along axis 1 or a later axis of data of rank 2 or more"
    )]
    BatchAxis {
        /// Rank of `data`.
        rank: usize,
    },

    /// A write cannot convert elements of this type to this format.
    #[cfg(feature = "conversions")]
    #[error(
        "elements of type {from} cannot be converted to {to}; pass updates of f32, f16 or bf16"
    )]
    UnsupportedConversion {
        /// Element type of the updates.
        from: DType,
        /// The format.
        to: Format,
    },

    /// Data of this element type cannot hold elements of this format, or several formats are
    /// possible and the caller has set none.
    #[cfg(feature = "conversions")]
    #[error("data of type {dtype} {}", Holding(.format))]
    DataFormat {
        /// Element type of the data.
        dtype: DType,
        /// The format. `None`: the caller has set no format.
        format: Option<Format>,
    },

    /// A value of the scale of a [`Conversion`](crate::Conversion) is 0, negative, infinite or NaN.
    #[cfg(feature = "conversions")]
    #[error("the value at position {position} of `scale` is not a positive, finite number")]
    InvalidScale {
        /// Position of the value in the scale, in row-major order.
        position: usize,
    },

    /// A zero point of a [`Conversion`](crate::Conversion) is outside the range of its format.
    #[cfg(feature = "conversions")]
    #[error("the zero point {zero_point} at position {position} is out of the range of {format}")]
    ZeroPointOutOfRange {
        /// Position of the zero point among the zero points, in row-major order.
        position: usize,
        /// The zero point.
        zero_point: i32,
        /// The format.
        format: Format,
    },

    /// The scale or the zero point of a [`Conversion`](crate::Conversion) does not broadcast to the
    /// shape of the updates.
    #[cfg(feature = "conversions")]
    #[error(
        "`{tensor}` has shape {shape:?}, which does not broadcast to the shape of the updates, {updates:?}"
    )]
    BroadcastShape {
        /// Name of the tensor: `scale` or `zero_point`.
        tensor: &'static str,
        /// Shape of the tensor.
        shape: Vec<usize>,
        /// Shape of the updates.
        updates: Vec<usize>,
    },

    /// The lists `from` and `to` of [`MoveRows`](crate::MoveRows) have different shapes.
    #[error("`from` has shape {from:?} but `to` has shape {to:?}; they must be equal")]
    MovesShape {
        /// The shape of `from`.
        from: Vec<usize>,
        /// The shape of `to`.
        to: Vec<usize>,
    },

    /// A tensor does not have the number of rows of the other tensors of a
    /// [`MoveRows`](crate::MoveRows), or of the plan.
    #[error("tensor {tensor} has {rows} rows but must have {expected}")]
    RowCount {
        /// Position of the tensor among the tensors of the call.
        tensor: usize,
        /// Number of rows of the tensor.
        rows: usize,
        /// Number of rows of the first tensor of the call, or of the plan.
        expected: usize,
    },

    /// Two tensors that one call writes share memory: two tensors of a
    /// [`MoveRows`](crate::MoveRows), or the data of two [`Write`](crate::Write)s.
    #[error("tensors {first} and {second} share memory; use separate memory")]
    TensorsOverlap {
        /// Position of a tensor among the tensors of the call.
        first: usize,
        /// Position of the other tensor.
        second: usize,
    },

    /// The number of parts of a [`Sharding`](crate::Sharding) is 0 or above `u32::MAX`.
    #[cfg(feature = "sharding")]
    #[error(
        "a table cannot be divided among {parts} parts; use 1 to {} parts",
        u32::MAX
    )]
    PartCount {
        /// The requested number of parts.
        parts: usize,
    },

    /// The starts of a [`Sharding`](crate::Sharding) do not ascend, or the first start is not 0.
    #[cfg(feature = "sharding")]
    #[error(
        "part {part} starts at row {start}, but must start at row {least}{}",
        if *part == 0 { "" } else { " or later" }
    )]
    PartStart {
        /// The part.
        part: usize,
        /// Its first row.
        start: usize,
        /// The smallest first row that is allowed: 0 for part 0, and the start of the part before
        /// for other parts.
        least: usize,
    },

    /// The number of batch dimensions is above the rank of `data`, or not below the rank of
    /// `indices`. The last dimension of `indices` holds coordinates and cannot be a batch
    /// dimension.
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

    /// The sizes of the batch dimensions of `data` and of `indices` differ.
    #[error(
        "the batch dimensions of `data` are {data:?} but the batch dimensions of `indices` are {indices:?}; they must be equal"
    )]
    BatchShape {
        /// Batch dimensions of `data`.
        data: Vec<usize>,
        /// Batch dimensions of `indices`.
        indices: Vec<usize>,
    },

    /// The shape of the output of a gather is not the shape that the operator requires.
    #[error("`output` has shape {actual:?} but `data` and `indices` require {expected:?}")]
    OutputShape {
        /// The required shape, computed from `data` and `indices`.
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

    /// The shapes of `data` and of the output differ.
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

    /// Two tensors of the call have different element types. All tensors except `indices` must have
    /// one element type.
    #[error("`{tensor}` is {actual} but the others are {expected}; all must have one type")]
    DTypeMismatch {
        /// Name of the tensor whose element type is wrong.
        tensor: &'static str,
        /// The element type that the tensor must have.
        expected: DType,
        /// The element type of the named tensor.
        actual: DType,
    },

    /// The reduction is not defined for the element type. No reduction is defined for complex numbers
    /// without the feature `complex`, for 16-bit floats without `float16`, and for integers of 8 and
    /// 16 bits without `narrow-integers`.
    #[error(
        "reduction {reduction} is not defined for {dtype}; {}use another reduction or type",
        to_enable(.dtype)
    )]
    UnsupportedReduction {
        /// The requested reduction.
        reduction: Reduction,
        /// The element type.
        dtype: DType,
    },

    /// Elements of this type have no gradient. Complex numbers have gradients only with the feature
    /// `complex`, and 16-bit floats only with `float16`.
    #[error("{dtype} has no gradient; {}use floats or complex numbers", to_enable_gradient(.dtype))]
    NoGradient {
        /// The element type.
        dtype: DType,
    },

    /// Elements that are cloned ([`Cloned`](crate::Cloned)) have no gradient.
    #[error("elements in `Cloned` have no gradient; use floats or complex numbers")]
    GradientOfClones,

    /// The factor of a gradient (`scale`) is infinite or NaN.
    ///
    /// The check applies before and after the factor is rounded to the type in which the gradient
    /// is computed.
    #[error("`scale` is not finite in {dtype}; pass a finite number")]
    Scale {
        /// The type in which the gradient is computed: `f32` or `f64`.
        dtype: DType,
    },

    /// The gradient of the reduction depends on a tensor of the forward pass, but the caller has
    /// not passed this tensor.
    #[error("the gradient of {reduction} needs `{tensor}` of the forward pass; pass `{tensor}`")]
    MissingInput {
        /// Name of the tensor: `data` or `updates`.
        tensor: &'static str,
        /// The reduction.
        reduction: Reduction,
    },

    /// A tensor that was passed to a gradient call does not have the shape that the other tensors
    /// of the call require.
    #[error("`{tensor}` has shape {actual:?} but the other tensors require {expected:?}")]
    GradientShape {
        /// Name of the tensor with the wrong shape.
        tensor: &'static str,
        /// The shape that the other tensors of the call require.
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

    /// An index is outside the range of its axis.
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

    /// A row number of a [`MoveRows`](crate::MoveRows) is negative or too large.
    #[error("row {row} at position {position} of `{list}` is out of bounds for {rows} rows")]
    RowOutOfBounds {
        /// Name of the list: `from` or `to`.
        list: &'static str,
        /// Position in the list, in row-major order.
        position: usize,
        /// The row number, as the caller gave it.
        row: i128,
        /// Number of rows of the tensors.
        rows: usize,
    },

    /// Two tuples have the same destination, and the caller has set
    /// [`Duplicates::Reject`](crate::Duplicates::Reject).
    #[error("tuple {tuple} has the destination of tuple {earlier}, but duplicates are rejected")]
    DuplicateIndex {
        /// Position of the first tuple, in row-major order, whose destination is also the
        /// destination of a tuple before it.
        tuple: usize,
        /// Position of the tuple before `tuple` that has the destination of `tuple`. Only one tuple
        /// before `tuple` has this destination.
        earlier: usize,
    },

    /// A plan was run with a tensor whose shape or strides are not the shape and strides that the
    /// plan was made for.
    ///
    /// The tensor is the output of a scatter or the data of a gather.
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
    /// The memory was needed for a result, a plan with its detection of duplicates, a shape of rank
    /// above 8, the fields of another error, or a sort of tuples. Such a sort is required for
    /// means, for reductions that ignore the existing value (`include_self(false)`), for 16-bit
    /// floats that are accumulated in `f32`, and for some gradients.
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
        /// Number of tasks given to the pool.
        tasks: usize,
        /// Number of tasks that were completed. Each of these tasks ran only once, even if the pool
        /// called it several times.
        completed: usize,
        /// Number of surplus calls by the pool: repeated calls of a task, and calls with a number
        /// that no task has. Surplus calls had no effect.
        surplus: usize,
    },
}

/// Text for the positions at which an update of a cache may begin. The fields are the length of the
/// update, the length of the cache and the mode. The text is formatted without an allocation.
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

/// Text about indices of rank 1 that are read as one tuple. The fields are the number of coordinates,
/// and the names of the operators that read such indices as positions along axis 0. `None`: no text.
/// The text is formatted without an allocation.
struct OneTuple<'a>(Option<usize>, &'a str);

impl fmt::Display for OneTuple<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self(Some(n), operators) => write!(
                f,
                "; `indices` of shape [{n}] is one tuple of {n} coordinates: did you mean \
                 {operators}, or `indices` of shape [{n}, 1]?"
            ),
            Self(None, _) => Ok(()),
        }
    }
}

/// Returns the advice to enable the feature that reductions of an element type need. Returns no text
/// if the feature is enabled, or if the type needs none.
fn to_enable(dtype: &DType) -> &'static str {
    match dtype {
        DType::Complex64 | DType::Complex128 if cfg!(not(feature = "complex")) => {
            "enable the feature `complex` of ndscatter, or "
        }
        DType::F16 | DType::BF16 if cfg!(not(feature = "float16")) => {
            "enable the feature `float16` of ndscatter, or "
        }
        DType::I8 | DType::I16 | DType::U8 | DType::U16
            if cfg!(not(feature = "narrow-integers")) =>
        {
            "enable the feature `narrow-integers` of ndscatter, or "
        }
        _ => "",
    }
}

/// As [`to_enable`], for gradients. Integers have no gradients with any feature.
fn to_enable_gradient(dtype: &DType) -> &'static str {
    match dtype.computed() {
        Some(_) => to_enable(dtype),
        None => "",
    }
}

/// Text about a format that data does not hold. `None`: the caller has set no format. The text is
/// formatted without an allocation.
#[cfg(feature = "conversions")]
struct Holding<'a>(&'a Option<Format>);

#[cfg(feature = "conversions")]
impl fmt::Display for Holding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(format) => write!(f, "cannot hold elements of format {format}"),
            None => f.write_str("can hold several formats; set the format of the conversion"),
        }
    }
}

impl ScatterError {
    /// Returns the error that `error` builds. The fields of this error may need an allocation. If
    /// the allocation fails, the function returns the out-of-memory error instead.
    #[cold]
    pub(crate) fn with_facts(error: impl FnOnce() -> Result<Self, Self>) -> Self {
        error().unwrap_or_else(|out_of_memory| out_of_memory)
    }
}
