//! Plans for indices that are the same in every run: made at the first run with data of a
//! shape, and kept.
//!
//! Knows shapes and plans. Knows nothing of the host.

use std::sync::{Arc, Mutex, PoisonError};

use ndscatter::{Operator, ScatterError, ScatterPlan};

use crate::api::Shape;

/// Shapes that are remembered. A model with fixed shapes has one; the oldest makes room.
const KEPT: usize = 4;

/// What a plan was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) shape: Shape,
    /// With the length of the updates, where it is that of a cache.
    pub(crate) operator: Operator,
}

/// The plans of one node.
#[derive(Debug, Default)]
pub(crate) struct Plans(Mutex<Vec<(Key, Arc<ScatterPlan>)>>);

impl Plans {
    /// The plan for data of this shape, made by `make` where there is none: by several
    /// runs at once, if they all find none.
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
        // Not under the lock: other shapes need not wait.
        let made = Arc::new(make()?);
        let mut plans = lock();
        if let Some(plan) = find(&plans) {
            return Ok(plan);
        }
        if plans.len() == KEPT {
            plans.remove(0);
        }
        plans.push((key.clone(), Arc::clone(&made)));
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
    fn a_plan_is_made_once_for_a_shape_and_the_oldest_makes_room() {
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
        assert_eq!(get(KEPT + 1).1, KEPT + 1, "the newest is there");
        assert_eq!(get(1).1, KEPT + 2, "the first one is not");
        let failed = plans.get(&key(99), || Err(ScatterError::OutOfMemory { bytes: 1 }));
        failed.expect_err("what fails is told");
    }
}
