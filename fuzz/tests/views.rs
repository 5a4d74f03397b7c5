//! Two modules of `tests/it`: views of foreign memory, and elements of size 0. Miri runs them here,
//! because it compiles the few dependencies of this package in a fraction of the time.

#[path = "../../tests/it/contracts.rs"]
mod contracts;
#[path = "../../tests/it/zero_sized.rs"]
mod zero_sized;

#[path = "../../tests/common"]
mod common {
    #[allow(dead_code, reason = "the tests of the crate use more of this module")]
    pub mod pools;
}
