//! Tests of the adapter in one program: values against a loop, and against burn where burn is right.

mod differential;
mod errors;
mod gradients;
mod host_cases;
mod layouts;
mod memory;
mod reference;
mod tensors;
