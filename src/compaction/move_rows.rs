//! The builder of moves: which slices are rows, the options, and the methods that move rows.
//!
//! This module knows the interface of a call. It does not know how moves are ordered or divided.

use super::lists::{Lists, check_shapes};
use super::move_plan::{MovePlan, move_rows};
use super::order::Order;
use super::tensors::{Rows, refuse_lists};
use crate::error::ScatterError;
use crate::execution::Execution;
use crate::operand::{AnyViewMut, Indices};
use crate::reduction::{Bounds, Duplicates};

/// Moves rows of tensors onto rows of the same tensors, as if all rows were read first.
///
/// Row `to[i]` of every tensor gets the old contents of row `from[i]`. A row may be both a source
/// and a destination, so sources and destinations may overlap in any way. One call moves the same
/// rows of a list of tensors, for example of the key and value caches of all layers of a model.
/// Inference engines move rows when speculative decoding accepts some of the proposed tokens, when
/// a beam search reorders its beams, and when a cache is compacted.
///
/// [`along`](Self::along) and [`paged`](Self::paged) select which slices of a tensor are its rows.
/// Other methods set options. [`in_place`](Self::in_place) moves rows once. [`plan`](Self::plan)
/// makes a plan for several calls.
///
/// - **Lists.** `from` and `to` have one shape, of any rank. Their elements are read in row-major
///   order. The two lists may have different integer types.
/// - **Row numbers** are in `0..rows`. A negative number does not count from the end: it is an
///   error, or its move is [skipped](Bounds::SkipNegative).
/// - **Duplicates.** If several moves have one destination, the last of these moves stays. A row
///   may be the source of several moves. A move from a row to itself changes nothing, but it is
///   also a move to this row.
/// - **Tensors** may have any element types, also different ones, and any shapes and strides. All
///   tensors of a call have the same number of rows, and share no byte with one another.
///
/// With any pool and any number of workers, the result is the same. A call that returns an error has
/// written nothing, with one exception: after [`ScatterError::PoolFailed`] rows may have changed. A
/// call allocates no memory for rows: a cycle of moves passes through a buffer of 4 KiB on the
/// stack.
///
/// The rule is that of torch's `cache[to] = cache[from]`, of sglang's
/// `copy_all_layer_kv_cache_cpu`, and of the `reorder_cache` of transformers.
///
/// # Examples
///
/// ```
/// use ndscatter::{AnyViewMut, MoveRows, TensorView, TensorViewMut};
///
/// // Two caches with four rows.
/// let mut keys = [[0, 1], [10, 11], [20, 21], [30, 31]].concat();
/// let mut values = *b"abcd";
/// let caches = [
///     AnyViewMut::from(TensorViewMut::contiguous(&mut keys, &[4, 2])?),
///     AnyViewMut::from(TensorViewMut::from(&mut values)),
/// ];
/// // Row 0 gets the old row 2. Rows 1 and 3 change places.
/// let (from, to) = ([2_i64, 3, 1], [0_i64, 1, 3]);
/// MoveRows::along(0).in_place(caches, TensorView::from(&from), TensorView::from(&to))?;
/// assert_eq!(keys, [20, 21, 30, 31, 20, 21, 10, 11]);
/// assert_eq!(values, *b"cdcb");
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Clone, Debug)]
pub struct MoveRows<'p> {
    rows: Rows,
    duplicates: Duplicates,
    bounds: Bounds,
    execution: Execution<'p>,
}

/// Which slices are rows.
impl MoveRows<'static> {
    fn of(rows: Rows) -> Self {
        Self {
            rows,
            duplicates: Duplicates::Allow,
            bounds: Bounds::Error,
            execution: Execution::new(),
        }
    }

    /// The rows of a tensor are its slices along one axis.
    ///
    /// `axis` is in `-rank..rank` of each tensor. A negative axis counts from the end.
    ///
    /// # Examples
    ///
    /// Four beams, each with two heads of one number. After this step of a beam search, beams 0 and
    /// 1 continue the old beam 2, and the others continue the old beam 0:
    ///
    /// ```
    /// use ndscatter::{MoveRows, TensorView, TensorViewMut};
    ///
    /// let mut cache = [[1.0_f32, 1.5], [2.0, 2.5], [3.0, 3.5], [4.0, 4.5]].concat();
    /// let cache_view = TensorViewMut::contiguous(&mut cache, &[4, 2, 1, 1])?;
    /// let (beams, all) = ([2_i32, 2, 0, 0], [0_i32, 1, 2, 3]);
    /// MoveRows::along(0).in_place([cache_view], TensorView::from(&beams), TensorView::from(&all))?;
    /// assert_eq!(cache, [3.0, 3.5, 3.0, 3.5, 1.0, 1.5, 1.0, 1.5]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[doc(alias = "reorder_cache")]
    #[doc(alias = "copy_all_layer_kv_cache")]
    pub fn along(axis: isize) -> Self {
        Self::of(Rows::Along(axis))
    }

    /// The rows of a tensor are the slots of a paged cache of shape `[blocks, block_size, ..]`.
    ///
    /// Row `slot` is the slice `[slot / block_size, slot % block_size, ..]`, with any strides. A
    /// cache that is stored as `[blocks, heads, block_size, dim]` is passed as a view of shape
    /// `[blocks, block_size, heads, dim]`. Tensors of one call may have different block sizes, if
    /// they have the same number of slots. A `block_size` of 0 gives no slots.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{MoveRows, TensorView, TensorViewMut};
    ///
    /// // Two blocks of two slots, for two heads of one number: [blocks, heads, block_size, dim].
    /// let mut cache = [0, 1, 100, 101, 2, 3, 102, 103];
    /// let (shape, strides) = ([2, 2, 2, 1], [4, 1, 2, 1]);
    /// let view = TensorViewMut::strided(&mut cache, 0, &shape, &strides)?;
    /// let (from, to) = (TensorView::from(&[3_i64]), TensorView::from(&[0_i64]));
    /// MoveRows::paged().in_place([view], from, to)?;
    /// assert_eq!(cache, [3, 1, 103, 101, 2, 3, 102, 103]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[doc(alias = "copy_blocks")]
    pub fn paged() -> Self {
        Self::of(Rows::Paged)
    }
}

/// Options.
impl<'p> MoveRows<'p> {
    /// Sets whether several moves may have the same destination. The default is
    /// [`Duplicates::Allow`]: the last of these moves stays.
    #[must_use]
    pub fn duplicates(mut self, duplicates: Duplicates) -> Self {
        self.duplicates = duplicates;
        self
    }

    /// Sets the rule for row numbers that are out of bounds. The default is [`Bounds::Error`].
    ///
    /// Under [`Bounds::SkipNegative`], a move with a negative row number is dropped, as for an unused
    /// entry of a list. A number that is too large is still an error, also if the other number of
    /// its move is negative. Under [`Bounds::Skip`], both are dropped. [`Bounds::Clamp`] is refused.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Sets how calls run, for example the pool and the number of workers. These settings do not
    /// change the result. A plan does not keep them.
    #[must_use]
    pub fn execution<'q>(self, execution: Execution<'q>) -> MoveRows<'q> {
        MoveRows {
            rows: self.rows,
            duplicates: self.duplicates,
            bounds: self.bounds,
            execution,
        }
    }
}

/// Methods that move rows.
impl MoveRows<'_> {
    /// Moves rows of each tensor of `tensors`: row `to[i]` gets the old contents of row `from[i]`.
    ///
    /// `tensors` has views of one type: [`TensorViewMut`](crate::TensorViewMut)s of one element
    /// type, or [`AnyViewMut`]s, whose element types may differ. To use a list of views again, pass
    /// `views.iter_mut().map(|view| view.reborrow())`. Without tensors, a call checks only the lists.
    ///
    /// # Errors
    ///
    /// - [`ScatterError::UnsupportedOption`] for [`Bounds::Clamp`].
    /// - [`ScatterError::AxisOutOfRange`] if a tensor does not have the axis, and
    ///   [`ScatterError::PagedRank`] if a paged cache does not have the axes 0 and 1.
    /// - [`ScatterError::RowCount`] if a tensor has another number of rows than the first one.
    /// - [`ScatterError::Uninitialized`] for a view that is only written
    ///   ([`AnyViewMut::uninit_from_raw_parts`]).
    /// - [`ScatterError::TensorsOverlap`] if two tensors share memory,
    ///   [`ScatterError::InputOverlap`] if a list shares memory with a tensor, and
    ///   [`ScatterError::OverlapUndecided`] if one of both may be the case.
    /// - [`ScatterError::IndexType`] if the elements of a list are not integers.
    /// - [`ScatterError::MovesShape`] if `from` and `to` have different shapes.
    /// - [`ScatterError::RowOutOfBounds`] for the first position at which a row number is out of
    ///   bounds. If both numbers are out of bounds there, the error is about `from`.
    /// - [`ScatterError::DuplicateIndex`] if two moves have one destination, under
    ///   [`Duplicates::Reject`].
    /// - [`ScatterError::OutOfMemory`] if an allocation fails.
    /// - [`ScatterError::PoolFailed`] if the pool skipped or repeated a task. Rows may then have
    ///   changed.
    pub fn in_place<'a, 'f, 't, V: Into<AnyViewMut<'a>>>(
        &self,
        tensors: impl IntoIterator<Item = V>,
        from: impl Into<Indices<'f>>,
        to: impl Into<Indices<'t>>,
    ) -> Result<(), ScatterError> {
        let (from, to) = (from.into(), to.into());
        self.check_options()?;
        move_rows(self.rows, None, tensors, &self.execution, |targets| {
            check_shapes(&from, &to)?;
            refuse_lists(targets, &from, &to)?;
            // Without tensors, every row number that is not negative is in bounds.
            let rows = targets
                .first()
                .map(|target| self.rows.count(target.layout()));
            self.order(rows.unwrap_or(Ok(usize::MAX))?, &from, &to)
                .map(|(order, _)| order)
        })
    }

    /// Makes a plan for tensors with `rows` rows. The plan checks the lists and orders the moves
    /// once.
    ///
    /// # Errors
    ///
    /// The errors of [`in_place`](Self::in_place) about options and lists, and
    /// [`ScatterError::OutOfMemory`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Bounds, MoveRows, TensorView, TensorViewMut};
    ///
    /// // Entries of -1 are unused.
    /// let (from, to) = ([1_i32, 2, -1, -1], [0_i64, 1, -1, -1]);
    /// let moves = MoveRows::along(0).bounds(Bounds::SkipNegative);
    /// let plan = moves.plan(3, TensorView::from(&from), TensorView::from(&to))?;
    /// assert_eq!((plan.rows(), plan.moves(), plan.skipped()), (3, 2, 2));
    ///
    /// // Layer by layer.
    /// let mut layers = [[5, 6, 7], [8, 9, 10]];
    /// for layer in &mut layers {
    ///     plan.run().in_place([TensorViewMut::from(layer)])?;
    /// }
    /// assert_eq!(layers, [[6, 7, 7], [9, 10, 10]]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn plan<'f, 't>(
        &self,
        rows: usize,
        from: impl Into<Indices<'f>>,
        to: impl Into<Indices<'t>>,
    ) -> Result<MovePlan, ScatterError> {
        let (from, to) = (from.into(), to.into());
        self.check_options()?;
        check_shapes(&from, &to)?;
        let (order, skipped) = self.order(rows, &from, &to)?;
        Ok(MovePlan {
            rows: self.rows,
            count: rows,
            skipped,
            order,
        })
    }

    fn check_options(&self) -> Result<(), ScatterError> {
        match self.bounds {
            Bounds::Error | Bounds::Skip | Bounds::SkipNegative => Ok(()),
            // A clamped move would overwrite a row that no entry of the list names.
            Bounds::Clamp => Err(ScatterError::UnsupportedOption { option: "bounds" }),
        }
    }

    /// Reads and checks the lists, and orders their moves. Also returns the number of skipped
    /// moves.
    fn order(
        &self,
        rows: usize,
        from: &Indices<'_>,
        to: &Indices<'_>,
    ) -> Result<(Order, usize), ScatterError> {
        let lists = Lists::read(from, to, rows, self.bounds, self.duplicates)?;
        Ok((Order::new(&lists, rows)?, lists.skipped))
    }
}
