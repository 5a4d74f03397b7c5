//! Room in a plan for what a layer above works out from it, once.
//!
//! Knows that there is something. Knows nothing of what it is.

use std::any::Any;
use std::sync::OnceLock;

use crate::memory::with_room;

/// Filled at most once; of runs that fill it at the same time, one is heard.
#[derive(Debug, Default)]
pub(crate) struct Slot(OnceLock<Box<dyn Any + Send + Sync>>);

impl Slot {
    /// What lies there, if it is a `T`.
    pub(crate) fn get<T: Any>(&self) -> Option<&T> {
        let [value] = self.0.get()?.downcast_ref::<[T; 1]>()?;
        Some(value)
    }

    /// What lies there, which is `value` if nothing did. `None` if it is no `T`,
    /// or if the allocation failed.
    pub(crate) fn get_or_put<T: Any + Send + Sync>(&self, value: T) -> Option<&T> {
        if self.0.get().is_none() {
            // `Box::new` would abort where there is no memory.
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
        assert_eq!(slot.get::<u32>(), None, "nothing yet");
        assert_eq!(slot.get_or_put(5_u32), Some(&5), "the first");
        assert_eq!(slot.get_or_put(6_u32), Some(&5), "still the first");
        assert_eq!(slot.get_or_put("six"), None, "of another type");
        assert_eq!(slot.get::<u32>(), Some(&5), "as it was");
    }
}
