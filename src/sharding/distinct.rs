//! The distinct destinations of a plan.
//!
//! This module knows the destinations of a plan. It does not know parts.

use crate::error::ScatterError;
use crate::memory::zeroed;
use crate::plan::{Destinations, IndexPlan, Spare};

/// The distinct destinations of a plan, in ascending order.
#[derive(Debug)]
pub(super) struct Distinct {
    pub(super) destinations: Destinations,
    /// For each applied tuple, the position of its destination in `destinations`.
    pub(super) positions: Vec<usize>,
}

impl Distinct {
    pub(super) fn new(plan: &IndexPlan) -> Result<Self, ScatterError> {
        let (numbers, groups) = (plan.destinations(), plan.groups()?);
        let tuples = numbers.len();
        let count = groups.groups(numbers, 0..tuples).count();
        let bound = plan.scale().count;
        let mut destinations = Destinations::with_len(count, bound, Spare::default())?;
        let mut positions = zeroed(tuples)?;
        let mut rest = groups.groups(numbers, 0..tuples);
        destinations.fill(|position| {
            let (number, entries) = rest.next().unwrap_or_default();
            for entry in entries {
                positions[groups.get(numbers, entry).1] = position;
            }
            number
        });
        Ok(Self {
            destinations,
            positions,
        })
    }
}
