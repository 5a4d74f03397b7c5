//! The tensors of a call: memory, layout, element type, and what is known about their bytes.
//!
//! Constructors of views check that every element of the layout is inside the memory. For raw
//! parts, the caller guarantees this. Calls may therefore access every element of a view. This
//! module does not know operators, plans or threads.

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
