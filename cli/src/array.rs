//! Arrays of `.npy` files.
//!
//! This file depends on the file format and on its element types. It does not depend on scatters.
//! It gives the other files views of arrays, whose dtype is known at run time.

use std::any::Any;
use std::fmt;
use std::io::{self, Read, Write};

use ndscatter::{AnyView, AnyViewMut, DType, Element, ScatterError};
use ndscatter::{TensorView, TensorViewMut};
use npyz::num_complex::Complex;
use npyz::{AutoSerialize, Deserialize, NpyFile, NpyHeader, Order, TypeChar, WriterBuilder, half};

/// An array: its elements in the order of the file, its shape and its strides.
///
/// The strides express whether the array has C or Fortran order. Reading an array does not reorder
/// its elements.
pub(crate) struct Array {
    elements: Box<dyn Elements>,
    shape: Vec<usize>,
    /// Strides, in elements.
    strides: Vec<isize>,
    order: Order,
}

/// Why a file cannot be read as an array.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("{0}")]
    Open(io::Error),

    #[error("not an .npy file: {0}")]
    Header(String),

    #[error("the file ends inside its .npy header; store it again")]
    CutHeader,

    #[error("its .npy header has {0} bytes; arrays of numbers have at most {MOST_HEADER_BYTES}")]
    LongHeader(u32),

    #[error("elements of type {0} cannot be scattered; store bool, int, uint, float or complex")]
    DType(String),

    #[error("the sizes of shape {0:?} multiply to more than memory can address")]
    Shape(Vec<u64>),

    #[error("the file ends before the elements of shape {0:?} do; store it again")]
    Truncated(Vec<u64>),

    #[error("its elements cannot be read: {0}")]
    Elements(io::Error),
}

/// Largest length of a header that is read. Version 1 of the format has no longer headers, and
/// numpy writes later versions only for the names of many fields.
const MOST_HEADER_BYTES: u32 = u16::MAX as u32;

/// Largest nesting of brackets in a header that is read. Headers of numbers have a nesting of 2, and
/// headers of records, which are refused with a better message, a nesting of 4 or more.
const MOST_NESTING: usize = 8;

impl Array {
    /// Reads a whole `.npy` file.
    pub(crate) fn read(mut source: impl Read) -> Result<Self, ReadError> {
        let header = read_header(&mut source)?;
        let npy = NpyFile::with_header(header, source);
        let sizes = npy.shape().to_vec();
        let order = npy.order();
        let (shape, strides) = lay_out(&sizes, order).ok_or(ReadError::Shape(sizes.clone()))?;
        let elements = read_elements(npy).map_err(|error| match error {
            ReadError::Elements(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                ReadError::Truncated(sizes)
            }
            error => error,
        })?;
        Ok(Self {
            elements,
            shape,
            strides,
            order,
        })
    }

    /// Writes the array to `target` as an `.npy` file, in the byte order of this machine.
    pub(crate) fn write(&self, target: &mut dyn Write) -> io::Result<()> {
        self.elements.write(&self.shape, self.order, target)
    }

    /// Returns an array of zeros with the shape `shape`, and with the element type and the order (C
    /// or Fortran) of `self`.
    pub(crate) fn blank(&self, shape: &[usize]) -> Result<Self, ScatterError> {
        let sizes: Vec<u64> = shape.iter().map(|&size| size as u64).collect();
        let (shape, strides) =
            lay_out(&sizes, self.order).ok_or_else(|| ScatterError::ShapeOverflow {
                shape: shape.to_vec(),
            })?;
        Ok(Self {
            elements: self.elements.blank(shape.iter().product())?,
            shape,
            strides,
            order: self.order,
        })
    }

    /// Copies the elements of `other` to `self`. Both arrays must have one element type, shape and
    /// order.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.elements.copy_from(&*other.elements);
    }

    pub(crate) fn view(&self) -> Result<AnyView<'_>, ScatterError> {
        self.elements.view(&self.shape, &self.strides)
    }

    pub(crate) fn view_mut(&mut self) -> Result<AnyViewMut<'_>, ScatterError> {
        self.elements.view_mut(&self.shape, &self.strides)
    }

    /// Returns the elements in the order of the file, or `None` if `T` is not their type.
    pub(crate) fn as_slice<T: Element>(&self) -> Option<&[T]> {
        let elements: &dyn Any = &*self.elements;
        elements.downcast_ref::<Vec<T>>().map(Vec::as_slice)
    }

    /// Returns the size of all elements together, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.elements.dtype().size()
    }

    pub(crate) fn dtype(&self) -> DType {
        self.elements.dtype()
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the element at `index` as text. The texts of two elements of one type are equal if
    /// the elements have equal bits. All NaNs have the same text.
    pub(crate) fn text(&self, index: &[usize]) -> String {
        let steps = index.iter().zip(&self.strides);
        (self.elements).text(steps.map(|(&i, stride)| i * stride.unsigned_abs()).sum())
    }
}

impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.elements.dtype(), self.shape)
    }
}

/// Returns the shape and the strides of an array with these sizes and this order. Returns `None` if
/// a size or the number of elements overflows.
fn lay_out(sizes: &[u64], order: Order) -> Option<(Vec<usize>, Vec<isize>)> {
    let shape: Vec<usize> = (sizes.iter())
        .map(|&size| usize::try_from(size).ok())
        .collect::<Option<_>>()?;
    let mut strides = vec![1; shape.len()];
    let mut stride: isize = 1;
    let mut step = |axis: usize| {
        strides[axis] = stride;
        // A dim of size 0 counts as a dim of size 1, so no stride becomes 0.
        let size = isize::try_from(shape[axis].max(1)).ok()?;
        stride = stride.checked_mul(size)?;
        Some(())
    };
    match order {
        Order::C => (0..shape.len()).rev().try_for_each(&mut step)?,
        Order::Fortran => (0..shape.len()).try_for_each(&mut step)?,
    }
    Some((shape, strides))
}

/// Reads the header of a file. Refuses headers for which npyz needs much memory or time: npyz
/// allocates the length that a header claims to have, and parses nested lists in exponential time.
fn read_header(source: &mut impl Read) -> Result<NpyHeader, ReadError> {
    let mut header = Vec::new();
    // The first 8 bytes are the magic string and the version. Version 1 stores the length of the
    // header in the next 2 bytes, and later versions in the next 4 bytes.
    read_up_to(10, source, &mut header)?;
    if header.get(6).is_some_and(|&version| version > 1) {
        read_up_to(2, source, &mut header)?;
    }
    let length = match header.get(8..) {
        Some(&[a, b]) => u32::from_le_bytes([a, b, 0, 0]),
        Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
        _ => 0,
    };
    if length > MOST_HEADER_BYTES {
        return Err(ReadError::LongHeader(length));
    }
    read_up_to(length, source, &mut header)?;
    if nesting(&header) > MOST_NESTING {
        return Err(ReadError::Header("its brackets nest too deeply".to_owned()));
    }
    NpyHeader::from_reader(&header[..]).map_err(header_error)
}

/// Reads `bytes` bytes, or fewer if the file ends before.
fn read_up_to(bytes: u32, source: &mut impl Read, to: &mut Vec<u8>) -> Result<(), ReadError> {
    let read = source.take(bytes.into()).read_to_end(to);
    read.map(|_| ()).map_err(header_error)
}

/// Returns the largest number of brackets that are open at one position of the text.
fn nesting(text: &[u8]) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for byte in text {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// Converts an error that occurred while the header of a file was read.
fn header_error(error: io::Error) -> ReadError {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return ReadError::CutHeader;
    }
    // The message of npyz may have several lines. The first line states the reason.
    let message = error.to_string();
    ReadError::Header(message.lines().next().unwrap_or_default().trim().to_owned())
}

/// A vector whose element type is known at run time.
trait Elements: Any {
    fn dtype(&self) -> DType;

    fn view<'a>(
        &'a self,
        shape: &'a [usize],
        strides: &'a [isize],
    ) -> Result<AnyView<'a>, ScatterError>;

    fn view_mut<'a>(
        &'a mut self,
        shape: &'a [usize],
        strides: &'a [isize],
    ) -> Result<AnyViewMut<'a>, ScatterError>;

    /// Returns a vector of `len` zeros with the element type of `self`.
    fn blank(&self, len: usize) -> Result<Box<dyn Elements>, ScatterError>;

    /// Copies the elements of `other` to `self`. Both vectors must have one element type and
    /// length.
    fn copy_from(&mut self, other: &dyn Elements);

    fn write(&self, shape: &[usize], order: Order, target: &mut dyn Write) -> io::Result<()>;

    /// See [`Array::text`].
    fn text(&self, position: usize) -> String;
}

/// An element type that both ndscatter and `.npy` files have.
trait Stored: Element + Default + AutoSerialize + Deserialize {}

impl<T: Element + Default + AutoSerialize + Deserialize> Stored for T {}

impl<T: Stored> Elements for Vec<T> {
    fn dtype(&self) -> DType {
        T::DTYPE
    }

    fn view<'a>(
        &'a self,
        shape: &'a [usize],
        strides: &'a [isize],
    ) -> Result<AnyView<'a>, ScatterError> {
        TensorView::strided(self, 0, shape, strides).map(AnyView::from)
    }

    fn view_mut<'a>(
        &'a mut self,
        shape: &'a [usize],
        strides: &'a [isize],
    ) -> Result<AnyViewMut<'a>, ScatterError> {
        TensorViewMut::strided(self, 0, shape, strides).map(AnyViewMut::from)
    }

    fn blank(&self, len: usize) -> Result<Box<dyn Elements>, ScatterError> {
        let mut zeros = Vec::new();
        let bytes = len.saturating_mul(size_of::<T>());
        (zeros.try_reserve_exact(len)).map_err(|_| ScatterError::OutOfMemory { bytes })?;
        zeros.resize(len, T::default());
        Ok(Box::new(zeros))
    }

    fn copy_from(&mut self, other: &dyn Elements) {
        let other: &dyn Any = other;
        if let Some(other) = other.downcast_ref::<Self>() {
            self.copy_from_slice(other);
        }
    }

    fn write(&self, shape: &[usize], order: Order, target: &mut dyn Write) -> io::Result<()> {
        let sizes: Vec<u64> = shape.iter().map(|&size| size as u64).collect();
        let mut writer = npyz::WriteOptions::new()
            .default_dtype()
            .shape(&sizes)
            .order(order)
            .writer(target)
            .begin_nd()?;
        writer.extend(self)?;
        writer.finish()
    }

    fn text(&self, position: usize) -> String {
        // `{:?}` writes a float as the shortest text that parses to the same value. The text of -0
        // has a sign.
        format!("{:?}", self[position])
    }
}

/// Reads the elements as a vector of the file's element type. This is the only function that
/// branches on the element type of a file.
fn read_elements<R: Read>(npy: NpyFile<R>) -> Result<Box<dyn Elements>, ReadError> {
    let dtype = npy.dtype();
    let unsupported = || Err(ReadError::DType(dtype.descr()));
    let npyz::DType::Plain(kind) = &dtype else {
        return unsupported();
    };
    match (kind.type_char(), kind.size_field()) {
        (TypeChar::Bool, 1) => read_vec::<bool>(npy),
        (TypeChar::Int, 1) => read_vec::<i8>(npy),
        (TypeChar::Int, 2) => read_vec::<i16>(npy),
        (TypeChar::Int, 4) => read_vec::<i32>(npy),
        (TypeChar::Int, 8) => read_vec::<i64>(npy),
        (TypeChar::Uint, 1) => read_vec::<u8>(npy),
        (TypeChar::Uint, 2) => read_vec::<u16>(npy),
        (TypeChar::Uint, 4) => read_vec::<u32>(npy),
        (TypeChar::Uint, 8) => read_vec::<u64>(npy),
        (TypeChar::Float, 2) => read_vec::<half::f16>(npy),
        (TypeChar::Float, 4) => read_vec::<f32>(npy),
        (TypeChar::Float, 8) => read_vec::<f64>(npy),
        (TypeChar::Complex, 8) => read_vec::<Complex<f32>>(npy),
        (TypeChar::Complex, 16) => read_vec::<Complex<f64>>(npy),
        _ => unsupported(),
    }
}

fn read_vec<T: Stored>(npy: NpyFile<impl Read>) -> Result<Box<dyn Elements>, ReadError> {
    let elements = npy.into_vec::<T>().map_err(ReadError::Elements)?;
    Ok(Box::new(elements))
}
