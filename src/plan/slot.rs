//! A slot in a plan for data that another module computes from the plan once.
//!
//! This module does not depend on the type of the data.

use std::any::Any;
use std::sync::OnceLock;

use crate::memory::with_room;

/// A value of any type that is set at most once. If several threads set the value at the same time,
/// the slot keeps one of their values.
#[derive(Debug, Default)]
pub(crate) struct Slot(OnceLock<Box<dyn Any + Send + Sync>>);

impl Slot {
    /// Returns the value of the slot. `None` if the slot is empty, or if the value is not a `T`.
    pub(crate) fn get<T: Any>(&self) -> Option<&T> {
        let [value] = self.0.get()?.downcast_ref::<[T; 1]>()?;
        Some(value)
    }

    /// Stores `value` if the slot is empty. Returns the value that the slot then holds: `value`, or
    /// the value that was stored before. Returns `None` if the value that was stored before is not
    /// a `T`, or if the allocation for `value` failed.
    pub(crate) fn get_or_put<T: Any + Send + Sync>(&self, value: T) -> Option<&T> {
        if self.0.get().is_none() {
            // `Box::new` would abort the process after a failed allocation. `with_room` returns an
            // error instead.
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
