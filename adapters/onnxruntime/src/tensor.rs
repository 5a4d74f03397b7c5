//! Tensors of a run, as views. Those that do not lie as their elements need, as a buffer of a
//! caller's may, are copied.

use ndscatter::{AnyView, AnyViewMut, DType, Layout, ScatterError};
use ort_sys::OrtValue;

use crate::api::{Api, Shape};
use crate::failure::Failure;

/// A tensor of the host's: where its elements are, and their shape.
#[derive(Debug)]
pub(crate) struct Tensor {
    pub(crate) value: *const OrtValue,
    pub(crate) shape: Shape,
    /// Of the elements, or of their copy.
    address: *mut u8,
    /// Words that hold the elements where the host's do not suit.
    copy: Vec<u64>,
}

impl Tensor {
    /// # Safety
    ///
    /// `value` is a tensor of the host's, for as long as this is used.
    pub(crate) unsafe fn new(api: Api, value: *const OrtValue) -> Result<Self, Failure> {
        if value.is_null() {
            return Err(Failure::invalid("an input is missing"));
        }
        // SAFETY: the caller vouches for the value.
        unsafe {
            Ok(Self {
                value,
                shape: api.shape(value)?,
                address: api.address(value)?,
                copy: Vec::new(),
            })
        }
    }

    /// The output of a run, which was asked for with this shape.
    ///
    /// # Safety
    ///
    /// As for [`Self::new`].
    pub(crate) unsafe fn output(
        api: Api,
        value: *const OrtValue,
        shape: Shape,
    ) -> Result<Self, Failure> {
        Ok(Self {
            value,
            shape,
            // SAFETY: the caller vouches for the value.
            address: unsafe { api.address(value)? },
            copy: Vec::new(),
        })
    }

    fn suits(&self, dtype: DType) -> bool {
        self.address.addr().is_multiple_of(dtype.alignment())
    }

    /// Puts elements that do not suit where they do: those of the copy have any value.
    fn make_room(&mut self, dtype: DType) -> Result<*mut u8, ScatterError> {
        let bytes = self.len().saturating_mul(dtype.size());
        let words = bytes.div_ceil(size_of::<u64>());
        let reserved = self.copy.try_reserve_exact(words);
        reserved.map_err(|_| ScatterError::OutOfMemory { bytes })?;
        self.copy.resize(words, 0);
        let room = self.copy.as_mut_ptr().cast();
        Ok(std::mem::replace(&mut self.address, room))
    }

    /// Copies an input that does not lie as elements of this type need.
    ///
    /// # Safety
    ///
    /// It holds as many of them as its shape says.
    pub(crate) unsafe fn suit(&mut self, dtype: DType) -> Result<(), ScatterError> {
        if self.suits(dtype) {
            return Ok(());
        }
        let bytes = self.len() * dtype.size();
        let given = self.make_room(dtype)?;
        // SAFETY: the caller vouches for what was given; the copy is as long.
        unsafe { self.address.copy_from_nonoverlapping(given, bytes) };
        Ok(())
    }

    /// Hands `write` an output that lies as elements of this type need, and puts what was
    /// written where the host wants it if that does not.
    ///
    /// # Safety
    ///
    /// As for [`Self::suit`].
    pub(crate) unsafe fn suiting<E: From<ScatterError>>(
        &mut self,
        dtype: DType,
        write: impl FnOnce(&Self) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.suits(dtype) {
            return write(self);
        }
        let bytes = self.len() * dtype.size();
        let wanted = self.make_room(dtype)?;
        write(self)?;
        // SAFETY: as above, the other way round.
        unsafe { wanted.copy_from_nonoverlapping(self.address, bytes) };
        Ok(())
    }

    /// As many elements as the shape says.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether both lie at one address.
    pub(crate) fn is_at(&self, other: &Self) -> bool {
        self.address == other.address && self.len() > 0
    }

    /// # Safety
    ///
    /// The tensor holds as many elements of this type as `shape` says.
    pub(crate) unsafe fn view<'a>(
        &'a self,
        dtype: DType,
        shape: &'a [usize],
    ) -> Result<AnyView<'a>, ScatterError> {
        // SAFETY: the host has initialised its tensor and keeps it during the run.
        unsafe { AnyView::from_raw_parts(self.address, dtype, Layout::contiguous(shape)) }
    }

    /// `holds`: whether it holds values, as where it is also an input.
    ///
    /// # Safety
    ///
    /// As for [`Self::view`], and the tensor is an output of the run; where `holds`, it is
    /// initialised.
    pub(crate) unsafe fn view_mut<'a>(
        &'a self,
        dtype: DType,
        shape: &'a [usize],
        holds: bool,
    ) -> Result<AnyViewMut<'a>, ScatterError> {
        let layout = Layout::contiguous(shape);
        // SAFETY: the host lets no one else touch an output during the run.
        unsafe {
            if holds {
                AnyViewMut::from_raw_parts(self.address, dtype, layout)
            } else {
                AnyViewMut::uninit_from_raw_parts(self.address, dtype, layout)
            }
        }
    }
}
