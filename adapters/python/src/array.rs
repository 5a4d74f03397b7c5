//! Arrays as calls see them: an address, an element type, a shape and strides, and what
//! keeps the memory alive.
//!
//! Knows where arrays come from: numpy, DLPack, or anything that numpy makes an array of.
//! Knows nothing of operators. All of the package's dealings with foreign memory are here
//! and in the modules below.

#![allow(
    unsafe_code,
    reason = "numpy's structs, DLPack's, and views of the memory that they tell of"
)]

mod dlpack;
mod line;
mod numpy;
mod source;

use ndscatter::{AnyView, AnyViewMut, DType, Layout, ScatterError};
use ndscatter_host::dlpack::DLDataType;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smallvec::SmallVec;

use crate::failure::Failure;
use dlpack::{Handed, Lent};
use numpy::{Described, Elements, Fields};

pub(crate) use dlpack::{Describe, describe_of, described};
pub(crate) use line::Line;
pub(crate) use numpy::{array_type, is_exactly};
pub(crate) use source::{Source, note_written};

/// Sizes and strides; those of most arrays without an allocation.
pub(crate) type Dims<T> = SmallVec<[T; 6]>;

/// Who keeps the memory.
enum Owner<'py> {
    /// An array of numpy's, and the type of its elements when it was read.
    Numpy(Bound<'py, PyAny>, Described),
    Lent(Borrowed<'py>),
    /// A result for another library, which takes it over at the end.
    Handed(Handed),
}

/// An array of another library.
struct Borrowed<'py> {
    object: Bound<'py, PyAny>,
    lent: Lent,
    /// Where the library said that its elements lie, if it can be asked again without running
    /// Python code.
    described: Option<*const u8>,
}

/// Number of elements of a shape; the largest number where there are more.
pub(crate) fn elements_of(shape: &[usize]) -> usize {
    if shape.contains(&0) {
        return 0;
    }
    let multiply = |all: usize, &size: &usize| all.saturating_mul(size);
    shape.iter().fold(1, multiply)
}

/// A number of a type that Python has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Float(f64),
    Bool(bool),
    Integer(i64),
}

/// The type of elements of [`Array::zeros`].
///
/// # Safety
///
/// It is `f64` where it is a float, else `isize`.
pub(crate) unsafe trait Zero: Copy {
    const IS_FLOAT: bool;
}

// SAFETY: as is asked.
unsafe impl Zero for isize {
    const IS_FLOAT: bool = false;
}

// SAFETY: as is asked.
unsafe impl Zero for f64 {
    const IS_FLOAT: bool = true;
}

/// An array.
pub(crate) struct Array<'py> {
    owner: Owner<'py>,
    /// Of element `[0, 0, ...]`.
    address: *mut u8,
    /// What a call is told of. `None` as long as the elements do not lie as it needs them:
    /// in the other byte order, not aligned, or of a type that is only moved.
    dtype: Option<DType>,
    elements: Elements,
    shape: Dims<usize>,
    /// In elements of `dtype`, or in bytes where there is none.
    strides: Dims<isize>,
    is_contiguous: bool,
    /// Shape and strides as its owner has them, where those above are others.
    original: Option<Box<Original>>,
    is_writable: bool,
    /// numpy has made it of something that is no array.
    is_converted: bool,
    /// numpy has made it for this call, so that nobody else can change it.
    is_new: bool,
}

/// Shape and strides of an array as its owner has them, to find out whether they have changed.
struct Original {
    shape: Dims<usize>,
    strides: Dims<isize>,
    /// Bytes that strides are in.
    unit: usize,
    is_contiguous: bool,
}

impl<'py> Array<'py> {
    /// That of numpy's, if it is one.
    #[inline]
    pub(crate) fn of_numpy(object: &Bound<'py, PyAny>) -> Option<Self> {
        let fields = Fields::of(object)?;
        Some(Self::read(object.clone(), fields))
    }

    /// That of an object with these fields.
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

    /// The array of a tensor that another library has lent.
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

    /// Turns strides in bytes into strides in units of that size, if they are multiples
    /// of it wherever there is something to step over.
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

    /// Number of elements.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        elements_of(&self.shape)
    }

    /// The type that a call is told of, where elements lie as it needs them.
    #[inline]
    pub(crate) fn dtype(&self) -> Option<DType> {
        self.dtype
    }

    /// The type that its elements have, wherever they lie.
    pub(crate) fn plain(&self) -> Option<DType> {
        self.elements.plain
    }

    pub(crate) fn is_converted(&self) -> bool {
        self.is_converted
    }

    pub(crate) fn is_numpy(&self) -> bool {
        matches!(self.owner, Owner::Numpy(..))
    }

    /// The object that it is the array of.
    pub(crate) fn object(&self) -> Option<&Bound<'py, PyAny>> {
        match &self.owner {
            Owner::Numpy(object, _) => Some(object),
            Owner::Lent(borrowed) => Some(&borrowed.object),
            Owner::Handed(_) => None,
        }
    }

    /// The type of elements, for people.
    pub(crate) fn type_name(&self) -> String {
        let named =
            |object: &Bound<'py, PyAny>| Ok::<_, PyErr>(object.getattr("dtype")?.to_string());
        let name = self.object().and_then(|object| named(object).ok());
        name.unwrap_or_else(|| format!("elements of {} bytes", self.elements.size))
    }

    /// Whether elements of both are of one type, byte order included.
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

    /// Whether it can be moved as bytes.
    pub(crate) fn check_movable(&self) -> PyResult<()> {
        if self.elements.is_movable {
            return Ok(());
        }
        Err(PyTypeError::new_err(format!(
            "arrays of {} are not supported: their elements are references",
            self.type_name()
        )))
    }

    /// A contiguous copy in the byte order of the machine, made by numpy.
    pub(crate) fn regular_copy(&self) -> PyResult<Self> {
        let Owner::Numpy(object, _) = &self.owner else {
            return Err(PyTypeError::new_err("only arrays of numpy are copied"));
        };
        let py = object.py();
        let dtype = numpy::dtype_of(object)?;
        let native = dtype.call_method1(intern!(py, "newbyteorder"), ("=",))?;
        self.cast(&native, "equiv")
    }

    /// A contiguous copy of the dtype of `other`: of values that it can have by numpy's rule
    /// of that name.
    pub(crate) fn cast_like(&self, other: &Self, rule: &str) -> PyResult<Self> {
        match &other.owner {
            Owner::Numpy(object, _) => self.cast(&numpy::dtype_of(object)?, rule),
            Owner::Lent(borrowed) => {
                let dtype = borrowed.object.py().import("numpy")?.getattr("dtype")?;
                self.cast(&dtype.call1((numpy_name(other.known()?),))?, rule)
            }
            Owner::Handed(_) => Err(PyTypeError::new_err("a result is no model")),
        }
    }

    /// The method is that of numpy's own type: one that a subclass has may do anything.
    fn cast(&self, dtype: &Bound<'py, PyAny>, rule: &str) -> PyResult<Self> {
        let py = dtype.py();
        let Some(object) = self.object() else {
            return Err(PyTypeError::new_err("a result is not copied"));
        };
        let options = PyDict::new(py);
        options.set_item(intern!(py, "order"), "C")?;
        options.set_item(intern!(py, "casting"), rule)?;
        options.set_item(intern!(py, "subok"), false)?;
        let copy = match self.is_numpy() {
            true => {
                let astype = numpy::array_type(py).getattr(intern!(py, "astype"))?;
                astype.call((object, dtype), Some(&options))?
            }
            false => object.call_method(intern!(py, "astype"), (dtype,), Some(&options))?,
        };
        Self::of_numpy(&copy).ok_or_else(|| PyTypeError::new_err("numpy made no array"))
    }

    /// A copy of its elements, in the shape that it was stretched to: an array of numpy's,
    /// which `like` is.
    pub(crate) fn dense_copy(&self, like: Option<&Bound<'py, PyAny>>) -> PyResult<Self> {
        let Some(py) = like.map(Bound::py) else {
            return Err(PyTypeError::new_err("no array"));
        };
        let copy = self.new_like(py, &self.shape)?;
        let (view, into) = (self.view()?, copy.view_new()?);
        // A gather of all of it.
        let all = ndscatter::Gather::nd(0);
        let tuple: [i64; 0] = [];
        let whole = ndscatter::TensorView::contiguous(&tuple, &[0]).map_err(Failure)?;
        all.write_into(view, whole, into).map_err(Failure)?;
        Ok(copy)
    }

    /// Writes the elements of `from` into this one, both of numpy.
    pub(crate) fn assign(&self, from: &Self) -> PyResult<()> {
        if let (Some(into), Some(from)) = (self.object(), from.object()) {
            let py = into.py();
            let numpy = py.import(intern!(py, "numpy"))?;
            numpy.call_method1(intern!(py, "copyto"), (into, from, "equiv"))?;
        }
        Ok(())
    }

    /// A new contiguous array like this one. Its elements are not initialised.
    #[inline]
    pub(crate) fn new_like(&self, py: Python<'py>, shape: &[usize]) -> PyResult<Self> {
        match &self.owner {
            Owner::Numpy(object, _) => {
                let made = Fields::of(object).map(|fields| fields.allocate(py, shape));
                Self::made(made)
            }
            Owner::Lent(borrowed) => self.new_handed(shape, borrowed.lent.code()),
            Owner::Handed(_) => Err(PyTypeError::new_err("a result of a result")),
        }
    }

    /// A new array of numpy's that `fill` makes of zeros.
    pub(crate) fn filled<T: Zero>(
        py: Python<'py>,
        len: usize,
        fill: impl FnOnce(&mut [T]) -> PyResult<()>,
    ) -> PyResult<Self> {
        let zeros = Self::zeros(py, T::IS_FLOAT, len)?;
        if len > 0 {
            // SAFETY: so many elements of the type side by side, initialised, which nobody
            // else has yet.
            fill(unsafe { std::slice::from_raw_parts_mut(zeros.address.cast(), len) })?;
        }
        Ok(zeros)
    }

    /// A new array of zeros of numpy's, of `intp` or of floats of 64 bits.
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
        let made = made.ok_or_else(|| PyTypeError::new_err("numpy made no array"))?;
        Ok(Self {
            is_new: true,
            ..made
        })
    }

    #[cold]
    fn new_handed(&self, shape: &[usize], code: DLDataType) -> PyResult<Self> {
        let handed = Handed::new(shape, self.elements.size, code)?;
        Ok(Self {
            address: handed.address(),
            dtype: self.dtype,
            elements: self.elements,
            shape: shape.into(),
            strides: Dims::new(),
            is_contiguous: true,
            original: None,
            is_writable: true,
            is_converted: false,
            is_new: true,
            owner: Owner::Handed(handed),
        })
    }

    /// The object that a caller gets: this result, as the library that `like` is of has
    /// arrays.
    #[inline]
    pub(crate) fn into_object(self, like: &Self) -> PyResult<Bound<'py, PyAny>> {
        match (self.owner, like.object()) {
            (Owner::Numpy(object, _), _) => Ok(object),
            (Owner::Lent(borrowed), _) => Ok(borrowed.object),
            (Owner::Handed(handed), Some(like)) => dlpack::hand_over(handed, like),
            (Owner::Handed(_), None) => Err(PyTypeError::new_err("a result of a result")),
        }
    }

    /// The largest unit of bytes, a size that the crate moves, that elements and strides
    /// are multiples of.
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

    /// Takes its elements as units that are moved: one for each, or, where they are larger,
    /// an axis of them behind the others.
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

    /// Bytes of an element as its owner sees it.
    pub(crate) fn size(&self) -> usize {
        self.elements.size
    }

    /// Gives it another axis behind the others, along which nothing changes.
    pub(crate) fn repeat(&mut self, len: usize) {
        self.keep_original();
        self.write_strides_out();
        self.shape.push(len);
        self.strides.push(0);
        self.is_contiguous = false;
    }

    /// Stretches it to a shape by numpy's rules of broadcasting; false if it does not fit.
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
            // Where there is no element, strides mean nothing and may wrap.
            step = step.wrapping_mul(size.max(1).cast_signed());
        }
    }

    /// Where the elements lie.
    #[inline]
    pub(crate) fn layout(&self) -> PyResult<Layout<'_>> {
        if self.is_contiguous {
            return Ok(Layout::contiguous(&self.shape));
        }
        Layout::strided(&self.shape, &self.strides).map_err(|error| Failure(error).into())
    }

    #[inline]
    fn known(&self) -> PyResult<DType> {
        self.dtype.ok_or_else(|| {
            PyTypeError::new_err(format!(
                "arrays of {} are not supported here",
                self.type_name()
            ))
        })
    }

    /// Whether its owner says of its memory and shape what was read.
    #[inline]
    pub(crate) fn is_unchanged(&self) -> bool {
        match &self.owner {
            _ if self.is_new => true,
            Owner::Numpy(object, described) => Fields::of(object)
                .is_some_and(|now| now.described() == *described && self.lies_as(now)),
            Owner::Lent(borrowed) => {
                let described = borrowed.described;
                described.is_none() || described == dlpack::described_address(&borrowed.object)
            }
            Owner::Handed(_) => true,
        }
    }

    /// Whether its owner has the shape and strides that were read.
    #[inline]
    fn lies_as(&self, now: Fields<'_>) -> bool {
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
        // The stride of an axis that nothing is stepped along may be any number of bytes.
        let unit = unit.cast_signed();
        let mut strides = shape.iter().zip(strides).zip(now.strides());
        shape[..] == *now.shape()
            && strides.all(|((&size, stride), &bytes)| size <= 1 || stride * unit == bytes)
    }

    /// Keeps shape and strides as they are, before they are replaced.
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

    /// Bytes that strides are in.
    #[inline]
    fn stride_unit(&self) -> usize {
        self.dtype.map_or(1, DType::size)
    }

    /// Refuses an array whose memory or shape has changed since they were read. Python code
    /// that ran since then may have resized it: a finaliser, or a method of another argument.
    #[inline]
    fn check_unchanged(&self) -> PyResult<()> {
        match self.is_unchanged() {
            true => Ok(()),
            false => Err(PyValueError::new_err(
                "an array was resized while the arguments of the call were read",
            )),
        }
    }

    /// To read.
    #[inline]
    pub(crate) fn view(&self) -> PyResult<AnyView<'_>> {
        self.check_unchanged()?;
        let (dtype, layout) = (self.known()?, self.layout()?);
        // SAFETY: whoever owns the memory tells where the elements lie, as was checked just
        // now, and it is kept alive for as long as this is. No Python code runs until the view
        // is used. That no other thread writes or resizes the array meanwhile is for the caller
        // to see to, as with every function of numpy that lets others run.
        let view = unsafe { AnyView::from_raw_parts(self.address, dtype, layout) };
        view.map_err(|error| Failure(error).into())
    }

    /// To read, of numbers of bins: booleans are 0 and 1.
    pub(crate) fn index_view(&self) -> PyResult<AnyView<'_>> {
        if self.dtype != Some(DType::Bool) {
            return self.view();
        }
        self.check_unchanged()?;
        // SAFETY: as above; a boolean of numpy's is a byte.
        let view = unsafe { AnyView::from_raw_parts(self.address, DType::U8, self.layout()?) };
        view.map_err(|error| Failure(error).into())
    }

    /// To write, where the elements are initialised.
    #[inline]
    pub(crate) fn view_mut(&self) -> PyResult<AnyViewMut<'_>> {
        self.check_writable()?;
        self.check_unchanged()?;
        let (dtype, layout) = (self.known()?, self.layout()?);
        // SAFETY: as above; that it may be written was checked, and whether inputs share
        // memory with it is checked by the call.
        let view = unsafe { AnyViewMut::from_raw_parts(self.address, dtype, layout) };
        view.map_err(|error| Failure(error).into())
    }

    /// Whether two of its elements may be the same memory.
    pub(crate) fn may_overlap_itself(&self) -> PyResult<bool> {
        let (dtype, layout) = (self.known()?, self.layout()?);
        // SAFETY: as above; nothing is written through the view.
        let view = unsafe { AnyViewMut::from_raw_parts(self.address, dtype, layout) };
        Ok(matches!(
            view,
            Err(ScatterError::SelfOverlap { .. } | ScatterError::SelfOverlapUndecided { .. })
        ))
    }

    /// To write, where the elements are not initialised: that of [`Self::new_like`].
    #[inline]
    pub(crate) fn view_new(&self) -> PyResult<AnyViewMut<'_>> {
        let (dtype, layout) = (self.known()?, self.layout()?);
        // SAFETY: a new array, which nobody else has.
        let view = unsafe { AnyViewMut::uninit_from_raw_parts(self.address, dtype, layout) };
        let view = view.map(AnyViewMut::of_new_memory);
        view.map_err(|error| Failure(error).into())
    }

    /// The same, of one of [`Self::zeros`].
    pub(crate) fn view_zeros(&self) -> PyResult<AnyViewMut<'_>> {
        self.view_mut().map(AnyViewMut::of_new_memory)
    }

    #[inline]
    pub(crate) fn check_writable(&self) -> PyResult<()> {
        if self.is_writable {
            return Ok(());
        }
        Err(PyValueError::new_err(
            "the output is read-only; give one that can be written",
        ))
    }

    /// Its elements in row-major order, where they are evenly spaced.
    pub(crate) fn line(&self) -> Option<Line> {
        self.check_unchanged().ok()?;
        let step = match (self.is_contiguous, &self.strides[..]) {
            (true, _) => 1,
            (false, &[step]) => step,
            _ => return None,
        };
        let dtype = self.dtype?;
        // SAFETY: those of this array, as was checked just now, which are aligned as they have
        // a `dtype`; its owner keeps them.
        Some(unsafe { Line::from_raw_parts(self.address, self.len(), step, dtype) })
    }

    /// The value of an array without axes, if it is a number of a type that Python has.
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

    /// A contiguous array in another shape of as many elements.
    pub(crate) fn in_shape(mut self, shape: &[usize]) -> Self {
        self.keep_original();
        debug_assert!(self.is_contiguous && elements_of(shape) == self.len());
        self.shape = shape.into();
        self.strides.clear();
        self
    }

    /// Of a contiguous array, the same with its first axes as one. Else nothing changes.
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

/// Strides of a lent tensor, such that no offset of an element leaves the range of `isize`.
/// `None` where the tensor is contiguous. Strides of axes that nothing is stepped along are 0.
fn regular_strides(
    shape: &[usize],
    strides: Option<Dims<isize>>,
    dtype: DType,
) -> PyResult<Option<Dims<isize>>> {
    let too_large = || PyBufferError::new_err("a tensor is larger than memory can be");
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

/// What numpy calls a type, or would.
fn numpy_name(dtype: DType) -> String {
    match (dtype, dtype.as_str()) {
        (DType::Bool | DType::Complex64 | DType::Complex128, name) => name.to_owned(),
        (DType::BF16, _) => "bfloat16".to_owned(),
        (_, name) => {
            let name = name.replace('u', "uint").replace('f', "float");
            match name.strip_prefix('i') {
                Some(bits) => format!("int{bits}"),
                None => name,
            }
        }
    }
}
