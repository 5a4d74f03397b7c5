//! [`ShardedPlan`], and the methods that make it.
//!
//! This module knows operators and plans. It does not know how a list is split.

use std::ops::Range;

use super::Sharding;
use super::distinct::Distinct;
use super::owners::Owners;
use super::split::{Split, split, starts};
use crate::error::ScatterError;
use crate::execution::Execution;
use crate::memory::{with_room, zeroed};
use crate::operand::{Indices, Layout};
use crate::ops::{Gather, Operator, Scatter, resolve_axis};
use crate::plan::{Destinations, IndexPlan};
use crate::reduction::Reduction;
use crate::run::{Planning, make_plan};

/// The tuples of one sender, split by the parts of a table that have their destinations.
///
/// [`Scatter::shard`] and [`Gather::shard`] make a plan from indices that address the whole table.
/// The plan has a list of *entries*, in the order of the parts. For each part, the sender sends the
/// numbers of the destinations ([`destinations`](Self::destinations)) and the packed updates
/// ([`packing`](Self::packing)) of the part's entries ([`range`](Self::range)).
///
/// The owner of a part views its rows as a tensor of shape `[slices, window...]`, and applies the
/// received entries along axis 0. For indices of rows, a slice is a row. For tuples of `k`
/// coordinates, a row has `data.shape[1..k].product()` slices.
///
/// Each owner applies the entries in the order of [`MergeOrder`](crate::MergeOrder). The result then
/// has the bits of one loop over the tuples of sender 0, then those of sender 1, and so on. The
/// numbers of parts and threads do not change the bits.
///
/// A plan does not depend on values or element types, and can be used for any number of calls.
///
/// # Examples
///
/// Two senders add rows to a table of five rows. Two parts store the table.
///
/// ```
/// use ndscatter::{
///     Gather, Packing, Reduction, Scatter, Sharding, TensorView, TensorViewMut,
/// };
///
/// let sharding = Sharding::blocks(2)?;
/// let sums = Scatter::along(0).reduction(Reduction::Add);
/// let senders = [([4_i64, 0, 4], [1.0_f32, 2.0, 3.0]), ([1, 4, 0], [4.0, 5.0, 6.0])];
/// // Each sender splits its tuples, and packs its updates for the parts.
/// let mut sent = Vec::new();
/// for (indices, updates) in &senders {
///     let plan = sums.shard(&[5], TensorView::from(indices), &sharding)?;
///     let Packing::Gather { order } = plan.packing() else { unreachable!() };
///     let packed = Gather::along(0).allocate(TensorView::from(updates), TensorView::from(order))?;
///     sent.push((plan, packed.into_vec()));
/// }
/// // Each part applies the entries of sender 0, and then those of sender 1.
/// let (mut first, mut second) = ([0.0; 3], [0.0; 2]);
/// for (part, table) in [&mut first[..], &mut second[..]].into_iter().enumerate() {
///     for (plan, packed) in &sent {
///         let entries = plan.range(part);
///         sums.in_place(
///             TensorViewMut::from(&mut *table),
///             TensorView::from(&plan.destinations()[entries.clone()]),
///             TensorView::from(&packed[entries]),
///         )?;
///     }
/// }
/// assert_eq!(first, [8.0, 4.0, 0.0]);
/// assert_eq!(second, [0.0, 9.0]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Debug)]
pub struct ShardedPlan {
    counts: Vec<usize>,
    /// Position of the first entry of each part.
    starts: Vec<usize>,
    destinations: Vec<i64>,
    packing: Packing<Vec<i64>>,
    tuples: usize,
    skipped: usize,
}

/// How a sender packs its updates, and how it puts back the answers of a gather.
///
/// The list is a list of indices for axis 0, if the dims of the list of tuples are merged to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing<List> {
    /// Each entry has one tuple. Entry `i` is the update of tuple `order[i]`, so the packed updates
    /// are a gather along axis 0. In a gather, answer `i` is the result of tuple `order[i]`.
    Gather {
        /// The tuple of each entry.
        order: List,
    },
    /// An entry may have several tuples, which have the same destination. The update of tuple `t` is
    /// combined into entry `slots[t]`. The packed updates are therefore a scatter along axis 0 with
    /// `reduction`, `include_self(false)`, `negative_indices(false)` and
    /// [`Bounds::SkipNegative`](crate::Bounds::SkipNegative). In a gather, the result of tuple `t` is
    /// answer `slots[t]`. The results are therefore a gather along axis 0 with the same rules for
    /// negative numbers.
    Scatter {
        /// The entry of each tuple. A skipped tuple has -1.
        slots: List,
        /// The reduction that combines the updates of an entry. `None` for gathers.
        reduction: Reduction,
    },
}

impl ShardedPlan {
    /// Returns the number of parts.
    pub fn parts(&self) -> usize {
        self.counts.len()
    }

    /// Returns the number of entries of each part.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Returns the positions of the entries of part `part`. The range is empty if there is no such
    /// part.
    pub fn range(&self, part: usize) -> Range<usize> {
        match self.counts.get(part) {
            Some(count) => self.starts[part]..self.starts[part] + count,
            None => 0..0,
        }
    }

    /// Returns the number of each entry's destination among the slices of its part.
    pub fn destinations(&self) -> &[i64] {
        &self.destinations
    }

    /// Returns how the updates are packed.
    pub fn packing(&self) -> Packing<&[i64]> {
        match &self.packing {
            Packing::Gather { order } => Packing::Gather { order },
            &Packing::Scatter {
                ref slots,
                reduction,
            } => Packing::Scatter { slots, reduction },
        }
    }

    /// Returns the lists of [`destinations`](Self::destinations) and [`packing`](Self::packing)
    /// without a copy.
    pub fn into_lists(self) -> (Vec<i64>, Packing<Vec<i64>>) {
        (self.destinations, self.packing)
    }

    /// Returns the number of all tuples. The number includes skipped tuples.
    pub fn tuples(&self) -> usize {
        self.tuples
    }

    /// Returns the number of tuples that the rule for bounds has skipped. No entry has such a tuple.
    pub fn skipped(&self) -> usize {
        self.skipped
    }
}

/// Tables that are divided among several owners.
impl Scatter<'_> {
    /// Splits the tuples of `indices` by the parts of a table. `shape` is the shape of the whole
    /// table, and `sharding` divides the rows of axis 0. The table may be larger than memory.
    ///
    /// The operator must address rows: [`along`](Self::along) axis 0, [`nd`](Self::nd) with at least
    /// one coordinate, [`paged`](Self::paged), or [`elements`](Self::elements) of a table of rank 1.
    /// [`ShardedPlan`] has an example.
    ///
    /// # Errors
    ///
    /// - The errors of [`plan`](Self::plan) about shapes, options and indices.
    /// - [`ScatterError::UnsupportedOption`] for another operator.
    /// - [`ScatterError::OutOfMemory`] and [`ScatterError::PoolFailed`].
    pub fn shard<'i>(
        &self,
        shape: &[usize],
        indices: impl Into<Indices<'i>>,
        sharding: &Sharding,
    ) -> Result<ShardedPlan, ScatterError> {
        let table = self.sharded_table(shape, &indices.into())?;
        table.each_tuple(sharding)
    }

    /// Like [`shard`](Self::shard), but combines the updates of one destination before they are
    /// sent. The plan has one entry for each destination that has tuples, in ascending order of the
    /// destinations of a part.
    ///
    /// - Without a reduction, only the last update of a destination is sent. The bits do not change.
    /// - `Min` and `Max` do not change the bits, except the payload of a NaN. `Add`, `Sub` and `Mul`
    ///   of integers do not change the bits either, and neither do `Add` and `Mul` of booleans.
    /// - `Add`, `Sub` and `Mul` of floats and of complex numbers compute the updates of each sender
    ///   first, and then combine the results of the senders. The rounding errors therefore differ
    ///   from those of the loop, and depend on how the tuples are divided among senders. They do not
    ///   depend on the numbers of parts and threads.
    /// - `Mean` is refused, because the count of the summands would be lost.
    ///
    /// The updates of a subtraction are combined with `Add`. For booleans, `Add` is `or` and `Sub` is
    /// `xor`, so a combined subtraction of booleans has another result than the loop.
    ///
    /// # Errors
    ///
    /// As [`shard`](Self::shard). Also [`ScatterError::UnsupportedOption`] for
    /// [`Reduction::Mean`].
    pub fn shard_combined<'i>(
        &self,
        shape: &[usize],
        indices: impl Into<Indices<'i>>,
        sharding: &Sharding,
    ) -> Result<ShardedPlan, ScatterError> {
        let reduction = match self.meaning.reducing.reduction {
            Reduction::Mean => return Err(unsupported("reduction")),
            Reduction::Sub => Reduction::Add,
            reduction => reduction,
        };
        let table = self.sharded_table(shape, &indices.into())?;
        match reduction {
            Reduction::None => table.last_writes(sharding),
            reduction => table.each_destination(sharding, reduction),
        }
    }

    fn sharded_table(
        &self,
        shape: &[usize],
        indices: &Indices<'_>,
    ) -> Result<Table<'_>, ScatterError> {
        self.form_of(shape, indices, None)?;
        Table::new(
            self.operator,
            self.planning,
            &self.execution,
            shape,
            indices,
        )
    }
}

/// Tables that are divided among several owners.
impl Gather<'_> {
    /// Splits the tuples of `indices` by the parts of a table. `shape` is the shape of the whole
    /// table, and `sharding` divides the rows of axis 0. The table may be larger than memory.
    ///
    /// The sender sends the numbers of the destinations to the parts. Each part gathers these
    /// slices along axis 0, and sends them back in their order. [`ShardedPlan::packing`] says which
    /// answer belongs to which tuple. The result of a skipped tuple is zeros.
    ///
    /// The operator must address rows, as for [`Scatter::shard`].
    ///
    /// # Errors
    ///
    /// - The errors of [`plan`](Self::plan) about shapes, options and indices.
    /// - [`ScatterError::UnsupportedOption`] for another operator.
    /// - [`ScatterError::OutOfMemory`] and [`ScatterError::PoolFailed`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Gather, Packing, Sharding, TensorView};
    ///
    /// let indices = TensorView::from(&[6_i64, 0, 6]);
    /// let plan = Gather::along(0).shard(&[7], indices, &Sharding::modulo(2)?)?;
    /// assert_eq!(plan.counts(), [3, 0]);
    /// assert_eq!(plan.destinations(), [3, 0, 3]);
    /// assert_eq!(plan.packing(), Packing::Gather { order: &[0, 1, 2][..] });
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn shard<'i>(
        &self,
        shape: &[usize],
        indices: impl Into<Indices<'i>>,
        sharding: &Sharding,
    ) -> Result<ShardedPlan, ScatterError> {
        let table = self.sharded_table(shape, &indices.into())?;
        table.each_tuple(sharding)
    }

    /// Like [`shard`](Self::shard), but asks for each destination once. Several tuples with one
    /// destination use the same answer. The result does not change.
    ///
    /// # Errors
    ///
    /// As [`shard`](Self::shard).
    pub fn shard_combined<'i>(
        &self,
        shape: &[usize],
        indices: impl Into<Indices<'i>>,
        sharding: &Sharding,
    ) -> Result<ShardedPlan, ScatterError> {
        let table = self.sharded_table(shape, &indices.into())?;
        table.each_destination(sharding, Reduction::None)
    }

    fn sharded_table(
        &self,
        shape: &[usize],
        indices: &Indices<'_>,
    ) -> Result<Table<'_>, ScatterError> {
        let parts = indices.layout().parts();
        self.operator.form(shape, parts, None)?;
        Table::new(
            self.operator,
            self.planning,
            &self.execution,
            shape,
            indices,
        )
    }
}

fn unsupported(option: &'static str) -> ScatterError {
    ScatterError::UnsupportedOption { option }
}

/// Returns the number of leading axes that tuples address, if axis 0 is one of them.
fn addressed_axes(
    operator: Operator,
    rank: usize,
    indices: &[usize],
) -> Result<usize, ScatterError> {
    match operator {
        Operator::Along { axis } if resolve_axis(axis, rank)? == 0 => Ok(1),
        Operator::Elements { .. } if rank == 1 => Ok(1),
        Operator::Along { .. } | Operator::Elements { .. } => Err(unsupported("axis")),
        Operator::Nd { batch_dims: 0 } => match indices.last() {
            Some(&axes) if axes > 0 => Ok(axes),
            _ => Err(unsupported("indices")),
        },
        Operator::Nd { .. } => Err(unsupported("batch_dims")),
        Operator::Paged => Ok(2),
        Operator::Cache { .. } => Err(unsupported("mode")),
    }
}

/// The destinations of a call in a whole table.
struct Table<'a> {
    plan: IndexPlan,
    execution: &'a Execution<'a>,
}

impl<'a> Table<'a> {
    /// Checks the indices of a call. The shapes of the call have been checked.
    fn new(
        operator: Operator,
        planning: Planning,
        execution: &'a Execution<'a>,
        shape: &[usize],
        indices: &Indices<'_>,
    ) -> Result<Self, ScatterError> {
        let axes = addressed_axes(operator, shape.len(), indices.layout().shape())?;
        // The windows have no effect on destinations, and may be too large for memory. With their
        // sizes, a plan for empty windows would have no destinations.
        let addressed = Layout::contiguous(&shape[..axes]);
        addressed.check(1)?;
        let form = operator.form(&shape[..axes], indices.layout().parts(), None)?;
        let plan = make_plan(&addressed, form, indices.integers()?, planning, execution)?;
        Ok(Self { plan, execution })
    }

    /// Returns a plan with one entry for each applied tuple.
    fn each_tuple(&self, sharding: &Sharding) -> Result<ShardedPlan, ScatterError> {
        let label = |position| self.plan.tuple_at(position);
        let split = self.split(self.plan.destinations(), sharding, &label)?;
        self.finish(
            split.counts,
            split.destinations,
            Packing::Gather {
                order: split.labels,
            },
        )
    }

    /// Returns a plan with one entry for each destination. The entry has the last tuple of the
    /// destination.
    fn last_writes(&self, sharding: &Sharding) -> Result<ShardedPlan, ScatterError> {
        let distinct = Distinct::new(&self.plan)?;
        let mut last: Vec<usize> = zeroed(distinct.destinations.len())?;
        for (position, &at) in distinct.positions.iter().enumerate() {
            last[at] = self.plan.tuple_at(position);
        }
        let split = self.split(&distinct.destinations, sharding, &|at| last[at])?;
        self.finish(
            split.counts,
            split.destinations,
            Packing::Gather {
                order: split.labels,
            },
        )
    }

    /// Returns a plan with one entry for each destination. The entry has all tuples of the
    /// destination.
    fn each_destination(
        &self,
        sharding: &Sharding,
        reduction: Reduction,
    ) -> Result<ShardedPlan, ScatterError> {
        let distinct = Distinct::new(&self.plan)?;
        let split = self.split(&distinct.destinations, sharding, &|at| at)?;
        let mut entries: Vec<i64> = zeroed(split.labels.len())?;
        for (entry, &at) in (0..).zip(&split.labels) {
            // Labels are positions of the list, so they are never negative.
            entries[usize::try_from(at).unwrap_or_default()] = entry;
        }
        let listed = self.plan.listed_tuples();
        let mut slots: Vec<i64> = with_room(listed)?;
        slots.resize(listed, -1);
        for (position, &at) in distinct.positions.iter().enumerate() {
            slots[self.plan.tuple_at(position)] = entries[at];
        }
        let packing = Packing::Scatter { slots, reduction };
        self.finish(split.counts, split.destinations, packing)
    }

    fn split(
        &self,
        destinations: &Destinations,
        sharding: &Sharding,
        label: &(impl Fn(usize) -> usize + Sync),
    ) -> Result<Split, ScatterError> {
        let each = self.plan.shape()[1..].iter().product::<usize>();
        let owners = Owners::new(sharding, self.plan.shape()[0], each as u64)?;
        split(destinations, &owners, sharding.parts, label, self.execution)
    }

    fn finish(
        &self,
        counts: Vec<usize>,
        destinations: Vec<i64>,
        packing: Packing<Vec<i64>>,
    ) -> Result<ShardedPlan, ScatterError> {
        let mut first = with_room(counts.len())?;
        first.extend(starts(&counts));
        Ok(ShardedPlan {
            starts: first,
            counts,
            destinations,
            packing,
            tuples: self.plan.listed_tuples(),
            skipped: self.plan.skipped(),
        })
    }
}
