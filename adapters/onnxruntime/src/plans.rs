//! Kept plans for constant indices.
//!
//! A plan is made for one shape of data and, for TensorScatter, one length of the updates. A run
//! makes a plan if none is kept for its shapes. Later runs with the same shapes use the kept plan.
//! This module knows shapes and plans. It knows nothing of the host.

use std::sync::{Arc, Mutex, PoisonError};

use ndscatter::{Operator, ScatterError, ScatterPlan};

use crate::api::Shape;

/// Maximum number of kept plans of a node. A node of a model with fixed shapes needs one plan. If a
/// node already keeps the maximum number, a new plan replaces the oldest kept plan.
const KEPT: usize = 4;

/// The shape and operator for which a plan was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// Shape of data.
    pub(crate) shape: Shape,
    /// The operator with its parameters. One parameter of [`Operator::Cache`] is the length of the
    /// updates along the axis, so updates of different lengths have different plans.
    pub(crate) operator: Operator,
}

/// The kept plans of a node.
#[derive(Debug, Default)]
pub(crate) struct Plans(Mutex<Vec<(Key, Arc<ScatterPlan>)>>);

impl Plans {
    /// Returns the kept plan of `key`. If no plan of `key` is kept, makes a plan with `make` and
    /// keeps it.
    ///
    /// If several concurrent runs find no plan of `key`, each run makes a plan. The plan that is
    /// stored first is kept. The other runs use the kept plan and drop the plans that they made.
    pub(crate) fn get(
        &self,
        key: &Key,
        make: impl FnOnce() -> Result<ScatterPlan, ScatterError>,
    ) -> Result<Arc<ScatterPlan>, ScatterError> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let find = |plans: &[(Key, Arc<ScatterPlan>)]| {
            let found = plans.iter().find(|(kept, _)| kept == key);
            found.map(|(_, plan)| Arc::clone(plan))
        };
        let found = find(&lock());
        if let Some(plan) = found {
            return Ok(plan);
        }
        // This run does not hold the lock while it makes the plan, so that concurrent runs with
        // other shapes do not wait.
        let made = Arc::new(make()?);
        let mut plans = lock();
        if let Some(plan) = find(&plans) {
            return Ok(plan);
        }
        if plans.len() == KEPT {
            plans.remove(0);
        }
        // Without memory for the list, the plan serves only this run.
        if plans.try_reserve(1).is_ok() {
            plans.push((key.clone(), Arc::clone(&made)));
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ndscatter::{Layout, Operator, Scatter, ScatterError, TensorView};

    use super::{KEPT, Key, Plans};

    fn key(len: usize) -> Key {
        Key {
            shape: [len].as_slice().into(),
            operator: Operator::Nd { batch_dims: 0 },
        }
    }

    #[test]
    fn a_plan_is_made_once_for_a_shape_and_replaces_the_oldest_plan() {
        let plans = Plans::default();
        let mut made = 0;
        let mut get = |len: usize| {
            let plan = plans.get(&key(len), || {
                made += 1;
                let indices = TensorView::contiguous(&[0_i64], &[1, 1])?;
                Scatter::nd().plan(Layout::line(len), indices)
            });
            (plan.expect("a plan"), made)
        };
        let (first, _) = get(1);
        let (again, made) = get(1);
        assert!(Arc::ptr_eq(&first, &again), "kept");
        assert_eq!(made, 1);
        (2..=KEPT + 1).for_each(|len| assert_eq!(get(len).1, len));
        assert_eq!(get(KEPT + 1).1, KEPT + 1, "the newest plan is kept");
        assert_eq!(get(1).1, KEPT + 2, "the oldest plan was replaced");
        let failed = plans.get(&key(99), || Err(ScatterError::OutOfMemory { bytes: 1 }));
        failed.expect_err("a failure is returned");
    }
}
