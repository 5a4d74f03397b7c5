//! The tensors of a call: where their elements lie, what they are, and what is
//! known of their bytes.
//!
//! A constructor here is the one place where memory and layout are held against
//! each other: whoever holds a view may touch every element of it. Knows
//! nothing of operators, plans or threads.

mod any;
mod cloned;
mod dims;
pub(crate) mod indices;
mod layout;
pub(crate) mod memory;
#[cfg(feature = "ndarray")]
mod ndarray;
pub(crate) mod overlap;
mod owned;
mod typed;

pub use any::{AnyView, AnyViewMut};
pub use cloned::Cloned;
pub use indices::{Index, Indices};
pub use layout::{Layout, LayoutBuf};
pub use memory::{Input, Output};
pub use owned::{AnyTensor, Tensor};
pub use typed::{TensorView, TensorViewMut};

pub(crate) use dims::Dims;
pub(crate) use layout::{offset_of, unravel};
pub(crate) use memory::{Contents, Elements, Readable, Source, Start, Target};
