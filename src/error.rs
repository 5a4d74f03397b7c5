//! Why a scatter was refused.
//!
//! Knows facts (shapes, positions, sizes) and how to say them to a person.
//! Knows nothing of how they were found.

use std::fmt;

use crate::element::DType;
use crate::reduction::{CacheMode, Reduction};

/// Why a scatter or a gather was refused.
///
/// Nothing has been written when one is returned, with one exception that
/// says so ([`ScatterError::PoolFailed`]). Which error is reported does not
/// depend on the number of threads: shapes and options come first, then
/// bounds (the first tuple in row-major order, its lowest axis), then
/// duplicates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScatterError {
    /// A contiguous view was asked for over a slice of another length.
    #[error(
        "shape {shape:?} has {expected} elements but the slice has {actual}; give a slice of that length, or offset and strides"
    )]
    SliceLength {
        /// The shape asked for.
        shape: Vec<usize>,
        /// Number of elements of that shape.
        expected: usize,
        /// Length of the slice.
        actual: usize,
    },

    /// The sizes of a shape multiply to more than memory can address.
    #[error("the sizes of shape {shape:?} multiply to more than memory can address")]
    ShapeOverflow {
        /// The shape.
        shape: Vec<usize>,
    },

    /// There is not one stride for each dimension.
    #[error("shape {shape:?} needs {} strides but {} were given: {strides:?}", shape.len(), strides.len())]
    StridesRank {
        /// The shape.
        shape: Vec<usize>,
        /// The strides, in elements.
        strides: Vec<isize>,
    },

    /// Offset and strides reach elements outside the slice.
    #[error(
        "offset {offset} with shape {shape:?} and strides {strides:?} leaves the slice of {len} elements"
    )]
    OutsideSlice {
        /// Position of element `[0, 0, ...]` in the slice.
        offset: usize,
        /// The shape.
        shape: Vec<usize>,
        /// The strides, in elements.
        strides: Vec<isize>,
        /// Length of the slice.
        len: usize,
    },

    /// Two elements of an output lie at one address.
    #[error(
        "an output of shape {shape:?} and strides {strides:?} overlaps itself; write into a tensor whose elements are distinct"
    )]
    SelfOverlap {
        /// The shape.
        shape: Vec<usize>,
        /// The strides, in elements.
        strides: Vec<isize>,
    },

    /// A search of bounded effort could not tell whether an output overlaps
    /// itself.
    #[error(
        "could not decide within bounded effort whether an output of shape {shape:?} and strides {strides:?} overlaps itself; write into a contiguous tensor"
    )]
    SelfOverlapUndecided {
        /// The shape.
        shape: Vec<usize>,
        /// The strides, in elements.
        strides: Vec<isize>,
    },

    /// A search of bounded effort could not tell whether memory is shared.
    #[error(
        "could not decide within bounded effort whether `{tensor}` shares memory with what is written; copy it into memory of its own"
    )]
    OverlapUndecided {
        /// Which tensor.
        tensor: &'static str,
    },

    /// A tensor does not fit in the bytes that it was to be viewed in.
    #[error(
        "shape {shape:?} of {dtype} needs {needed} bytes, gaps included, but the slice has {actual}"
    )]
    BytesLength {
        /// The shape.
        shape: Vec<usize>,
        /// The element type.
        dtype: DType,
        /// Bytes from the lowest element to the end of the highest.
        needed: usize,
        /// Length of the slice.
        actual: usize,
    },

    /// A stride in bytes leads to no element.
    #[error("a stride of {stride} bytes along axis {axis} is no multiple of the size of {dtype}")]
    ByteStride {
        /// The axis.
        axis: usize,
        /// The stride, in bytes.
        stride: isize,
        /// The element type.
        dtype: DType,
    },

    /// What is written shares memory with an input, or with what else is written.
    #[error(
        "`{tensor}` shares memory with what is written; use separate memory, or the in-place form (same address, shape and strides) where there is one"
    )]
    InputOverlap {
        /// Which input: `data`, `indices` or `updates`.
        tensor: &'static str,
    },

    /// Booleans of a foreign runtime, which may be any byte, would be moved into
    /// memory of Rust's `bool`.
    #[error(
        "`{tensor}` has booleans of a foreign runtime, which may be any byte, and the output those of Rust; view both from raw parts, or both as `bool`"
    )]
    ForeignBool {
        /// Which tensor: `data` or `updates`.
        tensor: &'static str,
    },

    /// A call in place was given an output that is only written.
    #[error(
        "`data` is a view that is only written, and a call in place reads it; use `AnyViewMut::from_raw_parts`"
    )]
    Uninitialized,

    /// An address is not a multiple of the alignment of the element type.
    #[error("address {address:#x} does not suit {dtype}, which needs a multiple of {alignment}")]
    Misaligned {
        /// The address of element `[0, 0, ...]`.
        address: usize,
        /// The element type.
        dtype: DType,
        /// The alignment that it needs, in bytes.
        alignment: usize,
    },

    /// `indices` of `scatter_nd` needs a last dimension that holds the coordinates.
    #[error("`indices` must have rank 1 or more; its last dimension holds the coordinates")]
    IndicesRank,

    /// A tuple has more coordinates than `data` has dimensions.
    #[error(
        "tuples of {tuple_len} coordinates (the last size of `indices`) do not fit data of rank {rank}, batch dimensions left out"
    )]
    TupleLength {
        /// Number of coordinates in a tuple, `indices.shape[-1]`.
        tuple_len: usize,
        /// Rank of `data`, less the batch dimensions of a gather.
        rank: usize,
    },

    /// The axis lies outside `-rank..rank`.
    #[error("axis {axis} is out of range for data of rank {rank}")]
    AxisOutOfRange {
        /// The axis as given.
        axis: isize,
        /// Rank of `data`.
        rank: usize,
    },

    /// `updates` does not have the shape that the operator derives.
    #[error("`updates` has shape {actual:?} but data and indices ask for {expected:?}")]
    UpdatesShape {
        /// The shape that `data` and `indices` ask for.
        expected: Vec<usize>,
        /// The shape of `updates`.
        actual: Vec<usize>,
    },

    /// `indices` of an element-wise operator needs the rank of `data`.
    #[error(
        "`indices` has rank {indices} but `data` has rank {rank}; element-wise operators need the same rank"
    )]
    IndicesRankMismatch {
        /// Rank of `data`.
        rank: usize,
        /// Rank of `indices`.
        indices: usize,
    },

    /// `indices` reaches further than `data` along an axis that it does not index.
    #[error(
        "`indices` has size {size} along axis {axis} but `data` only {data_size}; only the indexed axis may be longer"
    )]
    IndicesTooLong {
        /// The axis.
        axis: usize,
        /// Size of `indices` along it.
        size: usize,
        /// Size of `data` along it.
        data_size: usize,
    },

    /// `write_indices` must hold one position for each sequence.
    #[error(
        "`write_indices` has shape {actual:?}; give shape [{batch}], or no dimension for one position that all sequences share"
    )]
    WriteIndicesShape {
        /// Number of sequences, the size of the first axis.
        batch: usize,
        /// The shape of `write_indices`.
        actual: Vec<usize>,
    },

    /// A cache position is negative or, in linear mode, leaves no room for the update.
    #[error(
        "write index {index} of sequence {batch} is out of range: an update of {update_len} in a cache of {cache_len} begins {}",
        Positions(.update_len, .cache_len, .mode)
    )]
    WriteIndex {
        /// The sequence.
        batch: usize,
        /// The index as given.
        index: i128,
        /// Length of the update along the axis.
        update_len: usize,
        /// Length of the cache along the axis.
        cache_len: usize,
        /// How the cache is written at its end.
        mode: CacheMode,
    },

    /// The updates of a cache have another rank. (Other sizes off the axis that is
    /// written are [`Self::UpdatesShape`], longer ones along it
    /// [`Self::UpdateTooLong`].)
    #[error(
        "`updates` has shape {actual:?} but must have that of the cache, {cache:?}, with any size up to {} along axis {axis}",
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

    /// An update is longer than the cache that it is to be written to.
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

    /// A cache needs an axis of sequences before the one that is written.
    #[error(
        "axis 0 holds the sequences; write along a later axis of data of rank 2 or more (rank is {rank})"
    )]
    BatchAxis {
        /// Rank of `data`.
        rank: usize,
    },

    /// There are not as many batch dimensions.
    #[error(
        "{batch_dims} batch dimensions do not fit data of rank {data_rank} and indices of rank {indices_rank}, which has one more for coordinates"
    )]
    BatchDims {
        /// The number asked for.
        batch_dims: usize,
        /// Rank of `data`.
        data_rank: usize,
        /// Rank of `indices`.
        indices_rank: usize,
    },

    /// Batch dimensions of `data` and `indices` differ.
    #[error(
        "the batch dimensions of `data` are {data:?} but those of `indices` {indices:?}; they must be the same"
    )]
    BatchShape {
        /// Batch dimensions of `data`.
        data: Vec<usize>,
        /// Batch dimensions of `indices`.
        indices: Vec<usize>,
    },

    /// The output of a gather has another shape than the operator derives.
    #[error("`output` has shape {actual:?} but data and indices ask for {expected:?}")]
    OutputShape {
        /// The shape that `data` and `indices` ask for.
        expected: Vec<usize>,
        /// The shape of `output`.
        actual: Vec<usize>,
    },

    /// An option that the operator does not have.
    #[error("this operator has no option `{option}`; leave it at its default")]
    UnsupportedOption {
        /// The option.
        option: &'static str,
    },

    /// `data` does not have the shape of `output`.
    #[error("`data` has shape {actual:?} but the output has {expected:?}; they must be the same")]
    DataShape {
        /// The shape of the output.
        expected: Vec<usize>,
        /// The shape of `data`.
        actual: Vec<usize>,
    },

    /// `indices` has an element type that is no integer.
    #[error("`indices` cannot be {actual}; use an integer type from i8 to i64 or u8 to u64")]
    IndexType {
        /// The element type of `indices`.
        actual: DType,
    },

    /// A tensor has another element type than the others.
    #[error("`{tensor}` is {actual} but the others are {expected}; all must have one type")]
    DTypeMismatch {
        /// Which tensor.
        tensor: &'static str,
        /// The element type of the others.
        expected: DType,
        /// The element type of that tensor.
        actual: DType,
    },

    /// The reduction has no meaning for the element type.
    #[error("reduction {reduction} is not defined for {dtype}")]
    UnsupportedReduction {
        /// The reduction asked for.
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

    /// A gradient was asked of elements that are cloned
    /// ([`Cloned`](crate::Cloned)).
    #[error("elements that are cloned have no gradient; use floats or complex numbers")]
    GradientOfClones,

    /// The factor of a gradient is no finite number in the type that gradients are
    /// computed in.
    #[error("`scale` is not a finite {dtype}")]
    Scale {
        /// The type that it was rounded to: `f32` or `f64`.
        dtype: DType,
    },

    /// The gradient of a reduction depends on a tensor that was not handed over.
    #[error("the gradient of {reduction} needs `{tensor}` of the forward pass")]
    MissingInput {
        /// Which tensor: `data` or `updates`.
        tensor: &'static str,
        /// The reduction.
        reduction: Reduction,
    },

    /// A tensor of a gradient has another shape than the others ask for.
    #[error("`{tensor}` has shape {actual:?} but {expected:?} is asked for")]
    GradientShape {
        /// Which tensor.
        tensor: &'static str,
        /// The shape that the other tensors ask for.
        expected: Vec<usize>,
        /// Its shape.
        actual: Vec<usize>,
    },

    /// A reduction was asked of elements that are cloned
    /// ([`Cloned`](crate::Cloned)).
    #[error(
        "elements that are cloned can only be replaced; reduction {reduction} needs a numeric type"
    )]
    ReductionOfClones {
        /// The reduction asked for.
        reduction: Reduction,
    },

    /// An index lies outside its axis.
    #[error("index {index} of tuple {tuple} is out of bounds for axis {axis} of size {size}")]
    IndexOutOfBounds {
        /// Position of the tuple among all tuples, in row-major order.
        tuple: usize,
        /// Axis of `data` that the index addresses.
        axis: usize,
        /// The index as given.
        index: i128,
        /// Number of elements along that axis.
        size: usize,
    },

    /// Two tuples have one destination and [`Duplicates::Reject`](crate::Duplicates::Reject) is set.
    #[error("tuple {tuple} has the destination of tuple {earlier}; duplicates were to be rejected")]
    DuplicateIndex {
        /// The first tuple, in row-major order, that repeats a destination.
        tuple: usize,
        /// The last tuple before it with that destination.
        earlier: usize,
    },

    /// A plan was run on an output (a gather's on data) of another shape or other
    /// strides.
    #[error(
        "the plan was made for shape {planned_shape:?} and strides {planned_strides:?}, not {shape:?} and {strides:?}; plan again for this layout"
    )]
    PlanMismatch {
        /// Shape that was planned for.
        planned_shape: Vec<usize>,
        /// Strides that were planned for, in elements.
        planned_strides: Vec<isize>,
        /// Shape of the output given.
        shape: Vec<usize>,
        /// Strides of the output given, in elements.
        strides: Vec<isize>,
    },

    /// An allocation failed: for the result, for the plan, for a run that takes
    /// sorted tuples (means, reductions without self, wide sums), for ranks above 8,
    /// or for the facts of another error.
    #[error("an allocation of {bytes} bytes failed")]
    OutOfMemory {
        /// The bytes asked for.
        bytes: usize,
    },

    /// A pool did not run every task exactly once. The output is then undefined
    /// in its values: this is the one error after which it may have changed.
    #[error(
        "the pool completed {completed} of {tasks} tasks, and made {surplus} calls beyond one for each; the output cannot be relied on"
    )]
    PoolFailed {
        /// Tasks handed to the pool.
        tasks: usize,
        /// Tasks that were completed, each once whatever the pool did.
        completed: usize,
        /// Calls that were made beyond one for each task: repeated ones, and
        /// those with numbers of no task. Nothing was done in them.
        surplus: usize,
    },
}

/// Where an update of a cache may begin: the lengths of both, and the mode. In
/// words, without an allocation.
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
    /// An error whose facts take memory. Where that cannot be had, this is the
    /// error.
    #[cold]
    pub(crate) fn with_facts(error: impl FnOnce() -> Result<Self, Self>) -> Self {
        error().unwrap_or_else(|out_of_memory| out_of_memory)
    }
}
