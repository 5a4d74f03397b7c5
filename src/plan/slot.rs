//! A slot in a plan for data that a layer above computes from the plan once.
//!
//! This module knows whether the slot is filled. It knows nothing of the type of the data.

use std::any::Any;
use std::sync::OnceLock;

use crate::memory::with_room;

/// A value of any type, which is set at most once. If several calls set it at the same time, the
/// slot keeps the value of one call.
#[derive(Debug, Default)]
pub(crate) struct Slot(OnceLock<Box<dyn Any + Send + Sync>>);

impl Slot {
    /// Returns the value if the slot is filled and the value is a `T`.
    pub(crate) fn get<T: Any>(&self) -> Option<&T> {
        let [value] = self.0.get()?.downcast_ref::<[T; 1]>()?;
        Some(value)
    }

    /// Puts `value` into an empty slot. Returns the value of the slot: `value` or the earlier one.
    /// `None` if the earlier value is not a `T`, or if the allocation failed.
    pub(crate) fn get_or_put<T: Any + Send + Sync>(&self, value: T) -> Option<&T> {
        if self.0.get().is_none() {
            // `Box::new` would abort the process if the allocation failed.
            let mut one = with_room(1).ok()?;
            one.push(value);
            let one = <Box<[T; 1]>>::try_from(one.into_boxed_slice()).ok()?;
            self.0.get_or_init(|| one);
        }
        self.get()
    }
}

#[cfg(test)]
mod tests {
    use super::Slot;

    #[test]
    fn the_first_value_stays() {
        let slot = Slot::default();
        assert_eq!(slot.get::<u32>(), None, "an empty slot");
        assert_eq!(slot.get_or_put(5_u32), Some(&5), "the first value");
        assert_eq!(slot.get_or_put(6_u32), Some(&5), "the first value stays");
        assert_eq!(slot.get_or_put("six"), None, "a value of another type");
        assert_eq!(slot.get::<u32>(), Some(&5), "the first value is unchanged");
    }
}
