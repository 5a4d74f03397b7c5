//! Arguments and results of a call as arrays: an address, an element type, a shape, strides, and
//! the owner of the memory.
//!
//! This module reads numpy arrays, DLPack tensors, and objects that numpy converts to an array. The
//! module does not depend on operators. All code that accesses memory of other libraries is in this
//! module and its submodules. The only exception is the access to PyTorch's tensors in
//! `torch/tensor.rs` and `torch/native.rs`.

#![allow(
    unsafe_code,
    reason = "structs of numpy and DLPack, and views of the memory that they describe"
)]

mod dlpack;
mod line;
mod numpy;
mod source;

use ndscatter::{AnyView, AnyViewMut, DType, Format, Layout, ScatterError};
use ndscatter_host::dlpack::DLDataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smallvec::SmallVec;

use crate::failure::{Failure, foreign};
use crate::types::numpy_name;
use dlpack::{Exported, Lent};
use numpy::{Described, Elements, Fields};

pub(crate) use dlpack::{Describe, describe_of, described};
pub(crate) use line::Line;
pub(crate) use numpy::{array_type, is_exactly, is_number};
pub(crate) use source::{Source, note_written, refuse_masked};

/// Sizes or strides, one per axis. A value with at most 6 axes needs no heap allocation.
pub(crate) type Dims<T> = SmallVec<[T; 6]>;

/// The owner of an array's memory.
enum Owner<'py> {
    /// A numpy array. `Described` holds the address of the elements and the element type of the
    /// array at the time when this package read the array.
    Numpy(Bound<'py, PyAny>, Described),
    /// A tensor of another library.
    Lent(Borrowed<'py>),
    /// A result in memory of this package. Another library takes over the result at the end of the
    /// call.
    Exported(Exported),
}

/// A DLPack tensor of another library, and the Python object that lent the tensor.
struct Borrowed<'py> {
    object: Bound<'py, PyAny>,
    lent: Lent,
    /// Address of the elements that [`dlpack::described_address`] returned when this package
    /// requested the tensor. `None` if the address cannot be read again later without running
    /// Python code.
    described: Option<*const u8>,
}

/// Returns the number of elements of a shape, or `usize::MAX` if the number exceeds `usize::MAX`.
pub(crate) fn elements_of(shape: &[usize]) -> usize {
    if shape.contains(&0) {
        return 0;
    }
    let multiply = |all: usize, &size: &usize| all.saturating_mul(size);
    shape.iter().fold(1, multiply)
}

/// The value of a Python float, bool or int, or of an array of rank 0.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Float(f64),
    Bool(bool),
    Integer(i64),
}

/// A Rust type of the elements of arrays that [`Array::filled`] allocates.
///
/// # Safety
///
/// The implementing type must be `f64` if `IS_FLOAT` is true, and `isize` if `IS_FLOAT` is false.
pub(crate) unsafe trait Zero: Copy {
    const IS_FLOAT: bool;
}

// SAFETY: the type is `isize`, and `IS_FLOAT` is false.
unsafe impl Zero for isize {
    const IS_FLOAT: bool = false;
}

// SAFETY: the type is `f64`, and `IS_FLOAT` is true.
unsafe impl Zero for f64 {
    const IS_FLOAT: bool = true;
}

/// An argument or a result of a call.
pub(crate) struct Array<'py> {
    owner: Owner<'py>,
    /// Address of element `[0, 0, ...]`.
    address: *mut u8,
    /// The dtype of views of this array. `None` if no view of this array is possible, for one of
    /// these reasons:
    ///
    /// - the byte order of the elements is not the machine's,
    /// - the elements are not aligned,
    /// - a stride in bytes is not a multiple of the element size,
    /// - the crate has no arithmetic for the element type, and [`Self::take_as_units`] has not been
    ///   called.
    dtype: Option<DType>,
    elements: Elements,
    shape: Dims<usize>,
    /// Strides in elements of `dtype`, or in bytes if `dtype` is `None`. The list may be empty if
    /// the array is contiguous.
    strides: Dims<isize>,
    is_contiguous: bool,
    /// The shape and strides of the owner (the Python array object), saved before a method of this
    /// type replaced `shape` and `strides`. The value is `None` if no method has replaced `shape`
    /// or `strides`, or if `is_new` is true.
    original: Option<Box<Original>>,
    is_writable: bool,
    /// Whether numpy made this array from an object that is not an array.
    is_converted: bool,
    /// Whether this package allocated the array during this call. No other code can change a new
    /// array.
    is_new: bool,
}

/// The shape and strides that a Python array object had when [`Array`] was made from the object.
/// The object is the owner of the elements.
///
/// [`Array::is_unchanged`] compares the present shape and strides of the object with these values.
struct Original {
    shape: Dims<usize>,
    strides: Dims<isize>,
    /// Unit of `strides`, in bytes: a stride of 1 stands for this number of bytes.
    unit: usize,
    is_contiguous: bool,
}

impl<'py> Array<'py> {
    /// Reads a numpy array. Returns `None` if `object` is not a numpy array.
    #[inline]
    pub(crate) fn of_numpy(object: &Bound<'py, PyAny>) -> Option<Self> {
        let fields = Fields::of(object)?;
        Some(Self::read(object.clone(), fields))
    }

    /// Reads the numpy array `object`. `fields` must be the fields of `object`.
    #[inline]
    fn read(object: Bound<'py, PyAny>, fields: Fields<'_>) -> Self {
        let elements = fields.elements(object.py());
        let mut array = Self {
            address: fields.address(),
            dtype: None,
            elements,
            shape: Dims::from_slice(fields.shape()),
            strides: Dims::from_slice(fields.strides()),
            is_contiguous: fields.is_contiguous(),
            original: None,
            is_writable: fields.is_writable(),
            is_converted: false,
            is_new: false,
            owner: Owner::Numpy(object, fields.described()),
        };
        let plain = elements.plain.filter(|_| !elements.is_swapped);
        if let Some(dtype) = plain
            && fields.is_aligned()
            && array.divide_strides(dtype.size())
        {
            array.dtype = Some(dtype);
        }
        array
    }

    /// Converts a DLPack tensor of another library to an array of this call.
    #[cold]
    fn of_lent(borrowed: Borrowed<'py>) -> PyResult<Self> {
        let lent = &borrowed.lent;
        let dtype = dlpack::dtype_of(lent.code())?;
        let shape: Dims<usize> = lent.shape()?.collect();
        let strides = lent.strides().map(Iterator::collect::<Dims<isize>>);
        let strides = regular_strides(&shape, strides, dtype)?;
        let address = lent.address();
        lent.check_memory(elements_of(&shape), dtype)?;
        Ok(Self {
            address,
            dtype: Some(dtype),
            elements: Elements {
                plain: (!dtype.is_opaque()).then_some(dtype),
                size: dtype.size(),
                is_movable: true,
                is_swapped: false,
            },
            is_contiguous: strides.is_none(),
            strides: strides.unwrap_or_default(),
            shape,
            original: None,
            is_writable: lent.is_writable(),
            is_converted: false,
            is_new: false,
            owner: Owner::Lent(borrowed),
        })
    }

    /// Converts the strides from bytes to units of `size` bytes. Returns false, and changes
    /// nothing, if an axis with two or more positions has a stride that is not a multiple of `size`
    /// bytes.
    #[inline]
    fn divide_strides(&mut self, size: usize) -> bool {
        let size = size.cast_signed();
        let mut dims = self.shape.iter().zip(&self.strides);
        if !self.is_contiguous && !dims.all(|(&len, stride)| len <= 1 || stride % size == 0) {
            return false;
        }
        for stride in &mut self.strides {
            *stride /= size;
        }
        true
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    #[inline]
    pub(crate) fn rank(&self) -> usize {
        self.shape.len()
    }

    pub(crate) fn is_contiguous(&self) -> bool {
        self.is_contiguous
    }

    /// Returns the number of elements.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        elements_of(&self.shape)
    }

    /// Returns the dtype of views of this array, or `None` if no view is possible. The field
    /// `dtype` lists the reasons.
    #[inline]
    pub(crate) fn dtype(&self) -> Option<DType> {
        self.dtype
    }

    /// Returns the arithmetic dtype of the elements, also if their byte order is not the machine's
    /// or the elements are not aligned. Returns `None` if the crate has no arithmetic for the
    /// elements.
    pub(crate) fn plain(&self) -> Option<DType> {
        self.elements.plain
    }

    pub(crate) fn is_converted(&self) -> bool {
        self.is_converted
    }

    pub(crate) fn is_numpy(&self) -> bool {
        matches!(self.owner, Owner::Numpy(..))
    }

    /// Returns the numpy array, or the object that lent the tensor. Returns `None` for a result
    /// that another library has not taken over yet.
    pub(crate) fn object(&self) -> Option<&Bound<'py, PyAny>> {
        match &self.owner {
            Owner::Numpy(object, _) => Some(object),
            Owner::Lent(borrowed) => Some(&borrowed.object),
            Owner::Exported(_) => None,
        }
    }

    /// Returns the name of the element type, for error messages.
    pub(crate) fn type_name(&self) -> String {
        let named =
            |object: &Bound<'py, PyAny>| Ok::<_, PyErr>(object.getattr("dtype")?.to_string());
        let name = self.object().and_then(|object| named(object).ok());
        name.unwrap_or_else(|| format!("elements of {} bytes", self.elements.size))
    }

    /// Checks whether this array and `other` have the same element type and the same byte order.
    pub(crate) fn has_type_of(&self, other: &Self) -> bool {
        match (&self.owner, &other.owner) {
            (Owner::Numpy(ours, _), Owner::Numpy(theirs, _)) => {
                match (Fields::of(ours), Fields::of(theirs)) {
                    (Some(a), Some(b)) => a.has_type_of(ours.py(), b),
                    _ => false,
                }
            }
            (Owner::Lent(ours), Owner::Lent(theirs)) => ours.lent.code() == theirs.lent.code(),
            (Owner::Lent(ours), Owner::Numpy(..)) if self.elements.plain.is_none() => {
                ours.lent.code().is_called(&other.type_name())
            }
            (Owner::Numpy(..), Owner::Lent(theirs)) if self.elements.plain.is_none() => {
                theirs.lent.code().is_called(&self.type_name())
            }
            _ => self.elements.plain.is_some() && self.dtype == other.dtype,
        }
    }

    /// Returns the format that the element type names, if it is an 8-bit float.
    pub(crate) fn float8(&self) -> Option<Format> {
        let named = match &self.owner {
            Owner::Lent(borrowed) => borrowed.lent.code().format(),
            Owner::Numpy(..) if self.elements.plain.is_none() => self.type_name().parse().ok(),
            _ => None,
        };
        named.filter(|format| matches!(format, Format::F8E4M3Fn | Format::F8E5M2))
    }

    /// Returns an error if the elements cannot be copied as bytes.
    pub(crate) fn check_movable(&self) -> PyResult<()> {
        if self.elements.is_movable {
            return Ok(());
        }
        Err(PyTypeError::new_err(format!(
            "arrays of {} are not supported: the elements are references",
            self.type_name()
        )))
    }

    /// Returns a contiguous and aligned copy of a numpy array, in the machine's byte order. numpy
    /// makes the copy.
    pub(crate) fn regular_copy(&self) -> PyResult<Self> {
        let Owner::Numpy(object, _) = &self.owner else {
            return Err(PyTypeError::new_err("only numpy arrays are copied"));
        };
        let py = object.py();
        let dtype = numpy::dtype_of(object)?;
        let native = dtype.call_method1(intern!(py, "newbyteorder"), ("=",))?;
        self.cast(&native, "equiv")
    }

    /// Returns a contiguous copy of this array, converted to the element type of `other`. `rule` is
    /// the argument `casting` of numpy's `astype`.
    pub(crate) fn cast_like(&self, other: &Self, rule: &str) -> PyResult<Self> {
        match &other.owner {
            Owner::Numpy(object, _) => self.cast(&numpy::dtype_of(object)?, rule),
            Owner::Lent(borrowed) => {
                let dtype = borrowed.object.py().import("numpy")?.getattr("dtype")?;
                self.cast(&dtype.call1((numpy_name(other.known()?),))?, rule)
            }
            Owner::Exported(_) => Err(PyTypeError::new_err("a result has no dtype of numpy")),
        }
    }

    /// Returns a contiguous copy of this numpy array, converted to numpy's type `name`. `rule` is the
    /// argument `casting` of numpy's `astype`.
    pub(crate) fn cast_to(&self, name: &str, rule: &str) -> PyResult<Self> {
        let object = self.object();
        let object = object.ok_or_else(|| PyTypeError::new_err("a result is never copied"))?;
        let dtype = object.py().import("numpy")?.getattr("dtype")?;
        self.cast(&dtype.call1((name,))?, rule)
    }

    /// Returns a contiguous copy of this array, converted to `dtype` by `astype`. `rule` is the
    /// argument `casting` of `astype`.
    ///
    /// For a numpy array, this function calls `numpy.ndarray.astype`, because a subclass of
    /// `numpy.ndarray` may override `astype`.
    fn cast(&self, dtype: &Bound<'py, PyAny>, rule: &str) -> PyResult<Self> {
        let py = dtype.py();
        let Some(object) = self.object() else {
            return Err(PyTypeError::new_err("a result is never copied"));
        };
        let options = PyDict::new(py);
        options.set_item(intern!(py, "order"), "C")?;
        options.set_item(intern!(py, "casting"), rule)?;
        options.set_item(intern!(py, "subok"), false)?;
        let copy = match self.is_numpy() {
            true => {
                let astype = numpy::array_type(py).getattr(intern!(py, "astype"))?;
                astype.call((object, dtype), Some(&options))
            }
            false => object.call_method(intern!(py, "astype"), (dtype,), Some(&options)),
        };
        let copy = copy.map_err(|error| foreign(py, error))?;
        Self::of_numpy(&copy).ok_or_else(|| PyTypeError::new_err("numpy returned no array"))
    }

    /// Returns a contiguous copy of this array. The copy has the present shape of this array, which
    /// is the broadcast shape after [`Self::broadcast`].
    ///
    /// The function uses `like` only to call Python. Returns an error if `like` is `None`.
    pub(crate) fn dense_copy(&self, like: Option<&Bound<'py, PyAny>>) -> PyResult<Self> {
        let Some(py) = like.map(Bound::py) else {
            return Err(PyTypeError::new_err("the object is not an array"));
        };
        let copy = self.new_like(py, &self.shape)?;
        let (view, into) = (self.view()?, copy.view_new()?);
        // A gather with one tuple of zero coordinates copies the whole array.
        let all = ndscatter::Gather::nd(0);
        let tuple: [i64; 0] = [];
        let whole = ndscatter::TensorView::contiguous(&tuple, &[0]).map_err(Failure)?;
        all.write_into(view, whole, into).map_err(Failure)?;
        Ok(copy)
    }

    /// Copies the elements of `from` into this array by `numpy.copyto`. This array and `from` must
    /// be numpy arrays.
    pub(crate) fn assign(&self, from: &Self) -> PyResult<()> {
        if let (Some(into), Some(from)) = (self.object(), from.object()) {
            let py = into.py();
            let numpy = py.import(intern!(py, "numpy"))?;
            numpy.call_method1(intern!(py, "copyto"), (into, from, "equiv"))?;
        }
        Ok(())
    }

    /// Allocates a contiguous array of shape `shape`, with the element type of this array and for
    /// the library of this array. The elements are not initialised.
    #[inline]
    pub(crate) fn new_like(&self, py: Python<'py>, shape: &[usize]) -> PyResult<Self> {
        match &self.owner {
            Owner::Numpy(object, _) => {
                let made = Fields::of(object).map(|fields| fields.allocate(py, shape));
                Self::made(made)
            }
            Owner::Lent(borrowed) => self.new_exported(shape, borrowed.lent.code()),
            Owner::Exported(_) => Err(PyTypeError::new_err("a result belongs to no library")),
        }
    }

    /// Allocates a numpy array of `len` zeros, and passes the elements to `fill`. Does not call
    /// `fill` if `len` is 0.
    pub(crate) fn filled<T: Zero>(
        py: Python<'py>,
        len: usize,
        fill: impl FnOnce(&mut [T]) -> PyResult<()>,
    ) -> PyResult<Self> {
        let zeros = Self::zeros(py, T::IS_FLOAT, len)?;
        if len > 0 {
            // SAFETY: `zeros` has `len` contiguous elements of the type `T` (by the contract of
            // `Zero`), and all elements are initialised. The array `zeros` is new, so no other code
            // has access to the array.
            fill(unsafe { std::slice::from_raw_parts_mut(zeros.address.cast(), len) })?;
        }
        Ok(zeros)
    }

    /// Allocates a numpy array of `len` zeros. The dtype is numpy's `float64` if `is_float` is
    /// true, and numpy's `intp` if `is_float` is false.
    pub(crate) fn zeros(py: Python<'py>, is_float: bool, len: usize) -> PyResult<Self> {
        use ::numpy::npyffi::NPY_TYPES::{NPY_DOUBLE, NPY_LONG, NPY_LONGLONG};
        const INTP: ::numpy::npyffi::NPY_TYPES = match size_of::<std::ffi::c_long>() {
            8 => NPY_LONG,
            _ => NPY_LONGLONG,
        };
        let number = if is_float { NPY_DOUBLE } else { INTP };
        Self::made(Some(numpy::zeros(py, number, &[len])))
    }

    fn made(made: Option<PyResult<Bound<'py, PyAny>>>) -> PyResult<Self> {
        let made = made.transpose()?.and_then(|made| Self::of_numpy(&made));
        let made = made.ok_or_else(|| PyTypeError::new_err("numpy returned no array"))?;
        Ok(Self {
            is_new: true,
            ..made
        })
    }

    #[cold]
    fn new_exported(&self, shape: &[usize], code: DLDataType) -> PyResult<Self> {
        let result = Exported::new(shape, self.elements.size, code)?;
        Ok(Self {
            address: result.address(),
            dtype: self.dtype,
            elements: self.elements,
            shape: shape.into(),
            strides: Dims::new(),
            is_contiguous: true,
            original: None,
            is_writable: true,
            is_converted: false,
            is_new: true,
            owner: Owner::Exported(result),
        })
    }

    /// Returns this result as a Python object. If the result is in memory of this package, the
    /// library of `like` takes over the result, and the returned object is an array of this
    /// library.
    #[inline]
    pub(crate) fn into_object(self, like: &Self) -> PyResult<Bound<'py, PyAny>> {
        match (self.owner, like.object()) {
            (Owner::Numpy(object, _), _) => Ok(object),
            (Owner::Lent(borrowed), _) => Ok(borrowed.object),
            (Owner::Exported(result), Some(like)) => dlpack::export(result, like),
            (Owner::Exported(_), None) => {
                Err(PyTypeError::new_err("a result belongs to no library"))
            }
        }
    }

    /// Returns the largest unit size that divides the element size in bytes and the stride in bytes
    /// of each axis with two or more positions. The unit sizes are 1, 2, 4, 8 and 16 bytes.
    pub(crate) fn unit(&self) -> usize {
        let bytes = |stride: isize| match self.dtype {
            Some(dtype) => stride.unsigned_abs() * dtype.size(),
            None => stride.unsigned_abs(),
        };
        let steps = self
            .shape
            .iter()
            .zip(&self.strides)
            .filter(|&(&len, _)| len > 1);
        let all = steps.fold(self.elements.size | 16, |all, (_, &stride)| {
            all | bytes(stride)
        });
        1 << all.trailing_zeros()
    }

    /// Divides each element into opaque units of `unit` bytes. If an element has more than one
    /// unit, the array gets an additional last axis, with one position per unit of an element.
    pub(crate) fn take_as_units(&mut self, unit: usize) -> PyResult<()> {
        self.check_movable()?;
        self.keep_original();
        let known = self.dtype.map_or(1, DType::size).cast_signed();
        for stride in &mut self.strides {
            *stride = *stride * known / unit.cast_signed();
        }
        if self.elements.size != unit {
            self.shape.push(self.elements.size / unit);
            self.strides.push(1);
        }
        self.dtype = DType::opaque(unit);
        Ok(())
    }

    /// Returns the size in bytes of one element of the owner. [`Self::take_as_units`] does not
    /// change this size.
    pub(crate) fn size(&self) -> usize {
        self.elements.size
    }

    /// Adds a last axis with `len` positions and stride 0 to this array.
    pub(crate) fn repeat(&mut self, len: usize) {
        self.keep_original();
        self.write_strides_out();
        self.shape.push(len);
        self.strides.push(0);
        self.is_contiguous = false;
    }

    /// Broadcasts this array to `shape` by numpy's rules. Returns false, and changes nothing, if
    /// these rules do not allow the broadcast.
    pub(crate) fn broadcast(&mut self, shape: &[usize]) -> bool {
        let Some(new) = shape.len().checked_sub(self.rank()) else {
            return false;
        };
        let mut sizes = self.shape.iter().zip(&shape[new..]);
        if !sizes.all(|(&own, &wanted)| own == wanted || own == 1) {
            return false;
        }
        self.keep_original();
        self.write_strides_out();
        let mut strides: Dims<isize> = SmallVec::from_elem(0, new);
        for (axis, &stride) in self.strides.iter().enumerate() {
            let is_kept = self.shape[axis] == shape[new + axis] && self.shape[axis] != 1;
            strides.push(if is_kept { stride } else { 0 });
        }
        self.strides = strides;
        self.shape = shape.into();
        self.is_contiguous = false;
        true
    }

    fn write_strides_out(&mut self) {
        if self.strides.len() == self.shape.len() {
            return;
        }
        let mut step = 1_isize;
        self.strides = SmallVec::from_elem(0, self.shape.len());
        for (stride, &size) in self.strides.iter_mut().zip(&self.shape).rev() {
            *stride = step;
            // No element uses the strides of an array without elements, so their overflow is
            // allowed.
            step = step.wrapping_mul(size.max(1).cast_signed());
        }
    }

    /// Returns the shape and strides of this array as a `Layout` of the crate.
    #[inline]
    pub(crate) fn layout(&self) -> PyResult<Layout<'_>> {
        if self.is_contiguous {
            return Ok(Layout::contiguous(&self.shape));
        }
        Layout::strided(&self.shape, &self.strides).map_err(|error| Failure(error).into())
    }

    /// Checks whether this array and `other` are the same elements in the same order.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_contiguous = self.is_contiguous && other.is_contiguous;
        self.address == other.address
            && self.shape == other.shape
            && (is_contiguous || self.strides == other.strides)
    }

    #[inline]
    pub(crate) fn known(&self) -> PyResult<DType> {
        self.dtype.ok_or_else(|| {
            PyTypeError::new_err(format!(
                "arrays of {} are not supported here",
                self.type_name()
            ))
        })
    }

    /// Checks whether the owner (the Python array object) still has the values that were read when
    /// this array was made. These values are the address of the elements, the element type, the
    /// shape and the strides. Always true if `is_new` is true.
    ///
    /// For a tensor of another library, only the address is compared, and only if
    /// [`Borrowed::described`] is an address.
    #[inline]
    pub(crate) fn is_unchanged(&self) -> bool {
        match &self.owner {
            _ if self.is_new => true,
            Owner::Numpy(object, described) => Fields::of(object)
                .is_some_and(|now| now.described() == *described && self.has_layout(now)),
            Owner::Lent(borrowed) => {
                let described = borrowed.described;
                described.is_none() || described == dlpack::described_address(&borrowed.object)
            }
            Owner::Exported(_) => true,
        }
    }

    /// Checks whether the shape and strides in `now` are equal to the shape and strides that were
    /// read from the owner (the Python array object).
    #[inline]
    fn has_layout(&self, now: Fields<'_>) -> bool {
        let (shape, strides, unit, is_contiguous) = match &self.original {
            None => (
                &self.shape,
                &self.strides,
                self.stride_unit(),
                self.is_contiguous,
            ),
            Some(original) => (
                &original.shape,
                &original.strides,
                original.unit,
                original.is_contiguous,
            ),
        };
        if is_contiguous {
            return now.is_contiguous() && shape[..] == *now.shape();
        }
        // The stride of an axis with at most one position has no effect, so it is not compared.
        let unit = unit.cast_signed();
        let mut strides = shape.iter().zip(strides).zip(now.strides());
        shape[..] == *now.shape()
            && strides.all(|((&size, stride), &bytes)| size <= 1 || stride * unit == bytes)
    }

    /// Saves the shape and strides in `original`, unless `original` already has saved values. The
    /// caller replaces the shape or the strides afterwards.
    fn keep_original(&mut self) {
        if self.original.is_none() && !self.is_new {
            self.original = Some(Box::new(Original {
                shape: self.shape.clone(),
                strides: self.strides.clone(),
                unit: self.stride_unit(),
                is_contiguous: self.is_contiguous,
            }));
        }
    }

    /// Returns the unit of `strides` in bytes: the size of `dtype`, or 1 if `dtype` is `None`.
    #[inline]
    fn stride_unit(&self) -> usize {
        self.dtype.map_or(1, DType::size)
    }

    /// Returns an error if the array has changed since the array was read
    /// ([`Self::is_unchanged`]).
    ///
    /// Python code that ran after the read may have resized the array. Examples are a finaliser and
    /// a method of another argument.
    #[inline]
    fn check_unchanged(&self) -> PyResult<()> {
        match self.is_unchanged() {
            true => Ok(()),
            false => Err(PyValueError::new_err(
                "an array was resized while the arguments of the call were converted",
            )),
        }
    }

    /// Returns a view for reading.
    #[inline]
    pub(crate) fn view(&self) -> PyResult<AnyView<'_>> {
        self.check_unchanged()?;
        let (dtype, layout) = (self.known()?, self.layout()?);
        // SAFETY: the owner of the memory reports this address, shape and strides
        // (`check_unchanged` above), and `self.owner` keeps the memory alive. This thread runs no
        // Python code between `check_unchanged` and the last use of the view. The documentation
        // forbids the Python program to write or resize the array in another thread during the
        // call. numpy's functions that release Python's lock have the same rule.
        let view = unsafe { AnyView::from_raw_parts(self.address, dtype, layout) };
        view.map_err(|error| Failure(error).into())
    }

    /// Returns a view for reading bin numbers. For a boolean array, the view has the dtype `u8` and
    /// the elements 0 and 1.
    pub(crate) fn index_view(&self) -> PyResult<AnyView<'_>> {
        if self.dtype != Some(DType::Bool) {
            return self.view();
        }
        self.check_unchanged()?;
        // SAFETY: as in `view`. numpy stores a boolean as one byte.
        let view = unsafe { AnyView::from_raw_parts(self.address, DType::U8, self.layout()?) };
        view.map_err(|error| Failure(error).into())
    }

    /// Returns a view for writing to initialised elements.
    #[inline]
    pub(crate) fn view_mut(&self) -> PyResult<AnyViewMut<'_>> {
        self.check_writable()?;
        self.check_unchanged()?;
        let (dtype, layout) = (self.known()?, self.layout()?);
        // SAFETY: as in `view`. `check_writable` above has checked that the array may be written.
        // The kernel call checks whether inputs share memory with the view.
        let view = unsafe { AnyViewMut::from_raw_parts(self.address, dtype, layout) };
        view.map_err(|error| Failure(error).into())
    }

    /// Checks whether two elements of this array share memory. Also returns true if the check could
    /// not decide.
    pub(crate) fn may_overlap_itself(&self) -> PyResult<bool> {
        let (dtype, layout) = (self.known()?, self.layout()?);
        // SAFETY: nothing is read or written through the view. Only the layout of the view is
        // checked.
        let view = unsafe { AnyViewMut::from_raw_parts(self.address, dtype, layout) };
        Ok(matches!(
            view,
            Err(ScatterError::SelfOverlap { .. } | ScatterError::SelfOverlapUndecided { .. })
        ))
    }

    /// Returns a view for writing to the uninitialised elements of this array, which must come from
    /// [`Self::new_like`].
    #[inline]
    pub(crate) fn view_new(&self) -> PyResult<AnyViewMut<'_>> {
        let (dtype, layout) = (self.known()?, self.layout()?);
        // SAFETY: the array is new, so no other code has access to the elements. `self.owner` keeps
        // the memory alive.
        let view = unsafe { AnyViewMut::uninit_from_raw_parts(self.address, dtype, layout) };
        let view = view.map(AnyViewMut::of_new_memory);
        view.map_err(|error| Failure(error).into())
    }

    /// Returns a view for writing to this array, which must come from [`Self::zeros`].
    pub(crate) fn view_zeros(&self) -> PyResult<AnyViewMut<'_>> {
        self.view_mut().map(AnyViewMut::of_new_memory)
    }

    #[inline]
    pub(crate) fn check_writable(&self) -> PyResult<()> {
        if self.is_writable {
            return Ok(());
        }
        Err(PyValueError::new_err(
            "the output is read-only; pass an array that can be written",
        ))
    }

    /// Returns the elements in row-major order as a [`Line`] if the array is contiguous or has one
    /// axis.
    ///
    /// Returns `None` for other arrays, if `dtype` is `None`, and if the array has changed since
    /// the array was read ([`Self::is_unchanged`]).
    pub(crate) fn line(&self) -> Option<Line> {
        self.check_unchanged().ok()?;
        let step = match (self.is_contiguous, &self.strides[..]) {
            (true, _) => 1,
            (false, &[step]) => step,
            _ => return None,
        };
        let dtype = self.dtype?;
        // SAFETY: the owner reports this address, shape and strides (`check_unchanged` above) and
        // keeps the memory alive. The elements are aligned, because `dtype` is not `None`.
        Some(unsafe { Line::from_raw_parts(self.address, self.len(), step, dtype) })
    }

    /// Returns the value of an array of rank 0. The dtype must be `f32`, `f64`, a signed integer,
    /// or an unsigned integer of at most 32 bits. Returns `None` for all other arrays.
    pub(crate) fn number(&self) -> Option<Number> {
        let dtype = self.dtype.filter(|_| self.rank() == 0)?;
        let line = self.line()?;
        let integer = |value: i64| Some(Number::Integer(value));
        match dtype {
            DType::F32 => line.get::<f32>(0).map(|value| Number::Float(value.into())),
            DType::F64 => line.get::<f64>(0).map(Number::Float),
            DType::I8 => integer(line.get::<i8>(0)?.into()),
            DType::I16 => integer(line.get::<i16>(0)?.into()),
            DType::I32 => integer(line.get::<i32>(0)?.into()),
            DType::I64 => integer(line.get::<i64>(0)?),
            DType::U8 => integer(line.get::<u8>(0)?.into()),
            DType::U16 => integer(line.get::<u16>(0)?.into()),
            DType::U32 => integer(line.get::<u32>(0)?.into()),
            _ => None,
        }
    }

    /// Reshapes this array to `shape`. The array must be contiguous, and `shape` must have the same
    /// number of elements as the array.
    pub(crate) fn in_shape(mut self, shape: &[usize]) -> Self {
        self.keep_original();
        debug_assert!(self.is_contiguous && elements_of(shape) == self.len());
        self.shape = shape.into();
        self.strides.clear();
        self
    }

    /// Merges the first `axes` axes of a contiguous array into one axis. Returns false, and changes
    /// nothing, if the array is not contiguous or has fewer than `axes` axes.
    pub(crate) fn merge_first(&mut self, axes: usize) -> bool {
        if !self.is_contiguous || axes > self.rank() {
            return false;
        }
        self.keep_original();
        let merged = self.shape[..axes].iter().product();
        self.shape.drain(..axes);
        self.shape.insert(0, merged);
        self.strides.clear();
        true
    }
}

/// Returns the strides of a tensor of another library, with stride 0 for each axis of size 1.
///
/// The argument `strides` is `None` for a tensor whose library gives no strides. Such a tensor is
/// contiguous. The function returns `None` for such a tensor and for a tensor without elements.
/// Returns an error if the byte range from the lowest to the highest element is longer than
/// `isize::MAX`.
fn regular_strides(
    shape: &[usize],
    strides: Option<Dims<isize>>,
    dtype: DType,
) -> PyResult<Option<Dims<isize>>> {
    let too_large = || PyValueError::new_err("a tensor is larger than the address space");
    let count = |all: usize, &size: &usize| all.checked_mul(size);
    let count = match shape.contains(&0) {
        true => Some(0),
        false => shape.iter().try_fold(1, count),
    };
    let count = count.ok_or_else(too_large)?;
    let Some(mut strides) = strides.filter(|_| count > 0) else {
        let bytes = count.checked_mul(dtype.size());
        let fits = bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok());
        return fits.then_some(None).ok_or_else(too_large);
    };
    let mut span = 0_usize;
    for (&size, stride) in shape.iter().zip(&mut strides) {
        if size == 1 {
            *stride = 0;
        }
        let reach = stride.unsigned_abs().checked_mul(size - 1);
        span = reach
            .and_then(|reach| span.checked_add(reach))
            .ok_or_else(too_large)?;
    }
    let bytes = span
        .checked_add(1)
        .and_then(|span| span.checked_mul(dtype.size()));
    let fits = bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok());
    fits.then_some(Some(strides)).ok_or_else(too_large)
}
