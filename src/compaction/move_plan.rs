//! Defines [`MovePlan`], a kept plan of moves, and the call that a plan or a builder makes.
//!
//! This module knows the order of the steps of a call.

#![expect(unsafe_code, reason = "runs moves on checked tensors")]

use std::borrow::Borrow;

use super::moving;
use super::order::Order;
use super::tensors::{Rows, check};
use crate::error::ScatterError;
use crate::execution::Execution;
use crate::memory::{out_of_memory, with_room};
use crate::operand::{AnyViewMut, Target};

/// Moves of rows whose lists have been checked and ordered.
///
/// [`MoveRows::plan`](crate::MoveRows::plan) makes a plan, and [`run`](Self::run) returns a call
/// with the plan. A plan can run many times and from many threads, on any tensors with its number
/// of rows. A call with a plan does not read the lists again.
///
/// # Examples
///
/// ```
/// use ndscatter::{MoveRows, TensorView, TensorViewMut};
///
/// // Two rows change places.
/// let (from, to) = (TensorView::from(&[0_i64, 2]), TensorView::from(&[2_i64, 0]));
/// let plan = MoveRows::along(0).plan(3, from, to)?;
/// let (mut keys, mut values) = (*b"abc", [1.0_f32, 1.5, 2.0, 2.5, 3.0, 3.5]);
/// plan.run().in_place([TensorViewMut::from(&mut keys)])?;
/// plan.run().in_place([TensorViewMut::contiguous(&mut values, &[3, 2])?])?;
/// assert_eq!(keys, *b"cba");
/// assert_eq!(values, [3.0, 3.5, 2.0, 2.5, 1.0, 1.5]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Debug)]
pub struct MovePlan {
    pub(super) rows: Rows,
    /// Number of rows of the tensors.
    pub(super) count: usize,
    pub(super) skipped: usize,
    pub(super) order: Order,
}

impl MovePlan {
    /// Returns the number of rows that the tensors must have.
    pub fn rows(&self) -> usize {
        self.count
    }

    /// Returns the number of rows that a call writes. Moves from a row to itself, and moves whose
    /// destination a later move overwrites, write no row.
    pub fn moves(&self) -> usize {
        self.order.moves.len()
    }

    /// Returns the number of moves that the rule for bounds has dropped.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Returns a call with this plan, which runs on rayon unless
    /// [`execution`](MoveRun::execution) sets another pool.
    pub fn run(&self) -> MoveRun<'_> {
        MoveRun {
            plan: self,
            execution: Execution::new(),
        }
    }
}

/// A call with a [`MovePlan`], made by [`MovePlan::run`].
#[derive(Clone, Copy, Debug)]
pub struct MoveRun<'p> {
    plan: &'p MovePlan,
    execution: Execution<'p>,
}

impl<'p> MoveRun<'p> {
    /// Sets the pool and the number of workers of the call.
    #[must_use]
    pub fn execution<'q>(self, execution: Execution<'q>) -> MoveRun<'q>
    where
        'p: 'q,
    {
        MoveRun { execution, ..self }
    }

    /// Moves rows of each tensor of `tensors`, as [`MoveRows::in_place`](crate::MoveRows::in_place)
    /// does.
    ///
    /// # Errors
    ///
    /// The errors of `MoveRows::in_place` about tensors, [`ScatterError::OutOfMemory`], and
    /// [`ScatterError::PoolFailed`].
    pub fn in_place<'a, V: Into<AnyViewMut<'a>>>(
        &self,
        tensors: impl IntoIterator<Item = V>,
    ) -> Result<(), ScatterError> {
        let plan = self.plan;
        move_rows(
            plan.rows,
            Some(plan.count),
            tensors,
            &self.execution,
            |_| Ok(&plan.order),
        )
    }
}

/// Checks the tensors of a call, gets the ordered moves from `order`, and moves the rows. Each
/// tensor must have `count` rows, or the number of rows of the first tensor.
pub(super) fn move_rows<'a, V: Into<AnyViewMut<'a>>, O: Borrow<Order>>(
    rows: Rows,
    count: Option<usize>,
    tensors: impl IntoIterator<Item = V>,
    execution: &Execution<'_>,
    order: impl FnOnce(&[Target<'_>]) -> Result<O, ScatterError>,
) -> Result<(), ScatterError> {
    let mut views = collected(tensors)?;
    let mut targets = with_room(views.len())?;
    targets.extend(views.iter_mut().map(AnyViewMut::target));
    let rowed = check(rows, &targets, count, execution)?;
    let order = order(&targets)?;
    // SAFETY: `check` has established that each tensor has the number of rows for which `order`
    // was made, that its elements are initialised, and that no two tensors share a byte. The row
    // numbers of an `Order` are below this number of rows, which `Lists::read` has checked.
    unsafe { moving::run(order.borrow(), rowed, execution) }
}

/// Collects the views of a call.
fn collected<'a, V: Into<AnyViewMut<'a>>>(
    tensors: impl IntoIterator<Item = V>,
) -> Result<Vec<AnyViewMut<'a>>, ScatterError> {
    let tensors = tensors.into_iter();
    let mut views = with_room(tensors.size_hint().0)?;
    for view in tensors {
        if views.len() == views.capacity() {
            let more = views.len().max(4);
            (views.try_reserve_exact(more))
                .map_err(|_| out_of_memory::<AnyViewMut<'_>>(views.len() + more))?;
        }
        views.push(view.into());
    }
    Ok(views)
}
