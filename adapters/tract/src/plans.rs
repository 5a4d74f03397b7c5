//! Kept plans of a node with constant indices.
//!
//! A plan belongs to one tensor of indices, one shape of data and one operator. This module does not
//! know what a plan does.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ndscatter::{Operator, ScatterError};
use tract_core::internal::{TVec, Tensor};

/// Maximum number of kept plans of a node. A node of a model with fixed shapes needs one plan. If a
/// node already keeps the maximum number, a new plan replaces the oldest kept plan.
const KEPT: usize = 4;

/// The kept plans of a node, shared by the copies of the node.
pub(crate) struct Plans<P>(Arc<Mutex<Vec<Kept<P>>>>);

struct Kept<P> {
    /// The indices. While this reference exists, no other tensor has their address and no one
    /// changes them, because tensors are changed only through the sole reference.
    indices: Weak<Tensor>,
    shape: TVec<usize>,
    operator: Operator,
    plan: Arc<P>,
}

impl<P> Plans<P> {
    /// Returns the kept plan for these indices, this shape of data and this operator. If there is
    /// none, makes a plan with `make` and keeps it. Returns `None` if there is not enough memory
    /// for a plan.
    pub(crate) fn get(
        &self,
        indices: &Arc<Tensor>,
        shape: &[usize],
        operator: Operator,
        make: impl FnOnce() -> Result<P, ScatterError>,
    ) -> Result<Option<Arc<P>>, ScatterError> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |kept: &&Kept<P>| {
            kept.indices.as_ptr() == Arc::as_ptr(indices)
                && *kept.shape == *shape
                && kept.operator == operator
        };
        let found = lock().iter().find(fits).map(|kept| Arc::clone(&kept.plan));
        if found.is_some() {
            return Ok(found);
        }
        // The lock is not held here, so that concurrent runs with other shapes do not wait.
        let plan = match make() {
            Err(ScatterError::OutOfMemory { .. }) => return Ok(None),
            plan => Arc::new(plan?),
        };
        let mut plans = lock();
        // Another run may have made the same plan meanwhile.
        if let Some(kept) = plans.iter().find(fits) {
            return Ok(Some(Arc::clone(&kept.plan)));
        }
        if plans.len() >= KEPT {
            plans.remove(0);
        }
        plans.push(Kept {
            indices: Arc::downgrade(indices),
            shape: shape.into(),
            operator,
            plan: Arc::clone(&plan),
        });
        Ok(Some(plan))
    }
}

impl<P> Default for Plans<P> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<P> Clone for Plans<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Plans do not change results, so nodes with different plans may be equal.
impl<P> PartialEq for Plans<P> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<P> Eq for Plans<P> {}

impl<P> fmt::Debug for Plans<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Plans")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ndscatter::{Operator, ScatterError};
    use tract_core::internal::{IntoArcTensor, Tensor, tensor1};

    use super::{KEPT, Plans};

    const ROWS: Operator = Operator::Nd { batch_dims: 0 };

    fn indices() -> Arc<Tensor> {
        tensor1(&[0_i64]).into_arc_tensor()
    }

    #[test]
    fn a_plan_is_made_once_for_its_key_and_replaces_the_oldest_plan() {
        let plans = Plans::<usize>::default();
        let (first, equal) = (indices(), indices());
        let get = |indices: &Arc<Tensor>, size: usize, operator, number: usize| {
            let plan = plans.get(indices, &[size], operator, || Ok(number));
            *plan.expect("no error").expect("a plan")
        };
        assert_eq!(get(&first, 5, ROWS, 1), 1);
        assert_eq!(get(&first, 5, ROWS, 2), 1, "kept");
        assert_eq!(get(&first, 6, ROWS, 3), 3, "another shape");
        assert_eq!(get(&equal, 5, ROWS, 4), 4, "another tensor of indices");
        assert_eq!(
            get(&first, 5, Operator::Elements { axis: 0 }, 5),
            5,
            "another operator"
        );
        assert_eq!(get(&first, 5, ROWS, 6), 1, "still kept");
        assert_eq!(KEPT, 4, "the next plan replaces the first plan");
        assert_eq!(get(&first, 7, ROWS, 7), 7);
        assert_eq!(get(&first, 5, ROWS, 8), 8, "replaced");
        assert_eq!(
            *plans
                .clone()
                .0
                .lock()
                .expect("a lock")
                .last()
                .expect("a plan")
                .plan,
            8
        );
    }

    #[test]
    fn errors_are_returned_and_a_lack_of_memory_gives_no_plan() {
        let plans = Plans::<usize>::default();
        let get = |error| plans.get(&indices(), &[1], ROWS, || Err(error));
        assert_eq!(
            get(ScatterError::OutOfMemory { bytes: 1 }).map(|plan| plan.is_none()),
            Ok(true)
        );
        let error = ScatterError::IndicesRank;
        assert!(get(error).is_err(), "an error");
    }
}
