//! numpy arrays: the fields of their structs, and allocation.
//!
//! This module uses numpy's C interface. It does not depend on the use of the arrays.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use ndscatter::DType;
use numpy::npyffi::flags::{
    NPY_ARRAY_ALIGNED, NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_WRITEABLE, NPY_ITEM_REFCOUNT,
};
use numpy::npyffi::{
    NPY_TYPES, NpyTypes, PyArray_Descr, PyArray_Descr_fields, PyArrayObject_fields,
    PyDataType_ELSIZE, PyDataType_FLAGS, get_type_object,
};
use numpy::{PY_ARRAY_API, npyffi};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt};
use pyo3::{PyTypeInfo, ffi};

/// The C struct of a numpy array. The array lives at least as long as the lifetime `'a`.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    fields: &'a PyArrayObject_fields,
}

/// Properties of the element type of an array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements {
    /// The crate's arithmetic dtype of the elements, also if their byte order is not the machine's.
    /// `None` if the crate has no arithmetic for the elements.
    pub(super) plain: Option<DType>,
    /// Bytes of one element.
    pub(super) size: usize,
    /// Whether elements can be copied as bytes. False if the elements contain references, such as
    /// Python objects, or if they may store data outside of the array, such as strings of variable
    /// length.
    pub(super) is_movable: bool,
    /// Whether the byte order of the elements differs from the machine's byte order.
    pub(super) is_swapped: bool,
}

/// numpy's type number of the type `bfloat16` of ml_dtypes. -1 until this package has read an array
/// with this type.
static BFLOAT16: AtomicI32 = AtomicI32::new(-1);

impl<'a> Fields<'a> {
    /// Returns the fields of a numpy array or of an array of a subclass. Returns `None` for other
    /// objects.
    #[inline]
    pub(super) fn of(object: &'a Bound<'_, PyAny>) -> Option<Self> {
        is_array(object).then(|| {
            // SAFETY: the struct of an array begins with these fields, and the object lives for
            // `'a`. Only Python code can replace the shape and the strides of an array. No method
            // of `Fields` that reads the shape or the strides runs Python code.
            let fields = unsafe { &*npyffi::_PyArray_GET_ITEM_DATA(object.as_ptr().cast()) };
            Self { fields }
        })
    }

    /// Returns the address of the elements and the element type, to detect later changes.
    #[inline]
    pub(super) fn described(self) -> Described {
        Described {
            data: self.fields.data.cast(),
            descr: self.fields.descr,
        }
    }

    #[inline]
    pub(super) fn address(self) -> *mut u8 {
        self.fields.data.cast()
    }

    #[inline]
    pub(super) fn shape(self) -> &'a [usize] {
        self.slice(self.fields.dimensions.cast())
    }

    /// Returns the strides in bytes.
    #[inline]
    pub(super) fn strides(self) -> &'a [isize] {
        self.slice(self.fields.strides)
    }

    #[inline]
    fn slice<T>(self, first: *mut T) -> &'a [T] {
        let rank = usize::try_from(self.fields.nd).unwrap_or(0);
        if rank == 0 {
            return &[];
        }
        // SAFETY: an array has one size and one stride for each of its `nd` dimensions. A size is
        // not negative, so a `usize` represents the size.
        unsafe { std::slice::from_raw_parts(first, rank) }
    }

    #[inline]
    pub(super) fn is_contiguous(self) -> bool {
        self.has(NPY_ARRAY_C_CONTIGUOUS)
    }

    #[inline]
    pub(super) fn is_writable(self) -> bool {
        self.has(NPY_ARRAY_WRITEABLE)
    }

    #[inline]
    pub(super) fn is_aligned(self) -> bool {
        self.has(NPY_ARRAY_ALIGNED)
    }

    #[inline]
    fn has(self, flag: c_int) -> bool {
        self.fields.flags & flag != 0
    }

    #[inline]
    fn descr(self) -> &'a PyArray_Descr_fields {
        // SAFETY: an array always has an element type, and the C struct of an element type begins
        // with these fields.
        unsafe { &*npyffi::_PyDataType_GET_ITEM_DATA(self.fields.descr) }
    }

    /// Returns the properties of the element type. The type is one of numpy's own types, or a type
    /// that another package has registered with numpy.
    #[inline]
    pub(super) fn elements(self, py: Python<'_>) -> Elements {
        let descr = self.descr();
        // `byteorder` is a `c_char`, whose sign differs between platforms.
        let is_swapped = descr.byteorder.to_ne_bytes() == [FOREIGN_ORDER];
        if let Some(plain) = plain(descr.type_num) {
            return Elements {
                plain: Some(plain),
                size: plain.size(),
                is_movable: true,
                is_swapped,
            };
        }
        self.other_elements(py, is_swapped)
    }

    #[cold]
    fn other_elements(self, py: Python<'_>, is_swapped: bool) -> Elements {
        let (descr, number) = (self.fields.descr, self.descr().type_num);
        // SAFETY: an array always has an element type, so `descr` points to a type.
        let (size, flags) = unsafe { (PyDataType_ELSIZE(py, descr), PyDataType_FLAGS(py, descr)) };
        // Strings of variable length (`NPY_VSTRING`) store their characters outside of the array.
        // Types with higher numbers are newer, and may also store data outside of the array.
        let is_plain_memory = (0..NPY_TYPES::NPY_VSTRING as c_int).contains(&number);
        let has_references = flags & NPY_ITEM_REFCOUNT != 0;
        Elements {
            plain: self.is_bfloat16().then_some(DType::BF16),
            size: usize::try_from(size).unwrap_or(0),
            is_movable: is_plain_memory && !has_references,
            is_swapped,
        }
    }

    fn is_bfloat16(self) -> bool {
        let number = self.descr().type_num;
        if number < NPY_TYPES::NPY_USERDEF as c_int {
            return false;
        }
        if BFLOAT16.load(Ordering::Relaxed) == number {
            return true;
        }
        // SAFETY: every element type has a Python type for its scalars, in the field `typeobj`.
        let scalar = unsafe {
            let scalar = self.descr().typeobj.cast::<ffi::PyObject>();
            Bound::from_borrowed_ptr(Python::assume_attached(), scalar)
        };
        let named = |attribute: &str, name: &str| {
            let value = scalar.getattr(attribute);
            value.is_ok_and(|value| value.extract::<&str>().is_ok_and(|found| found == name))
        };
        let found = named("__name__", "bfloat16") && named("__module__", "ml_dtypes");
        if found {
            BFLOAT16.store(number, Ordering::Relaxed);
        }
        found
    }

    /// Checks whether this array and `other` have the same element type and the same byte order.
    pub(super) fn has_type_of(self, py: Python<'_>, other: Self) -> bool {
        let (ours, theirs) = (self.fields.descr, other.fields.descr);
        // SAFETY: this array and `other` are alive, and each array keeps its element type alive.
        ours == theirs || unsafe { PY_ARRAY_API.PyArray_EquivTypes(py, ours, theirs) } != 0
    }

    /// Allocates an array of shape `shape` with the element type of this array. The elements are
    /// not initialised.
    #[inline]
    pub(super) fn allocate<'py>(
        self,
        py: Python<'py>,
        shape: &[usize],
    ) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: this array is alive and keeps its element type alive.
        unsafe { new_array(py, self.fields.descr, shape, false) }
    }
}

/// The address of an array's elements and the address of its element type, to detect that one of
/// them has changed.
///
/// Limit: the old element type may be freed, and a new element type may be stored at the same
/// address. A comparison of two `Described` does not detect this change. A comparison of the
/// arrays' shape and strides in bytes detects it only if the new type has another element size.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Described {
    data: *const u8,
    descr: *const PyArray_Descr,
}

/// Returns the element type of a numpy array as a Python object. The function reads the type from
/// the C struct of the array, because a subclass may override the attribute `dtype`.
pub(super) fn dtype_of<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let fields = Fields::of(array);
    let fields = fields.ok_or_else(|| PyTypeError::new_err("the object is not a numpy array"))?;
    // SAFETY: an array always has an element type, and an element type is a Python object.
    Ok(unsafe { Bound::from_borrowed_ptr(array.py(), fields.fields.descr.cast()) })
}

/// Returns the Python type `numpy.ndarray`.
pub(crate) fn array_type(py: Python<'_>) -> Bound<'_, PyAny> {
    // SAFETY: the types of numpy's C interface live as long as the process.
    unsafe {
        let array = get_type_object(py, NpyTypes::PyArray_Type);
        Bound::from_borrowed_ptr(py, array.cast())
    }
}

/// Allocates an array of zeros. `number` is the type number of one of numpy's own element types.
pub(super) fn zeros<'py>(
    py: Python<'py>,
    number: NPY_TYPES,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: `number` is the number of one of numpy's own types, so `PyArray_DescrFromType`
    // returns a new reference to an element type that is alive. `Py_DECREF` below releases this
    // reference.
    unsafe {
        let descr = PY_ARRAY_API.PyArray_DescrFromType(py, number as c_int);
        let made = new_array(py, descr, shape, true);
        ffi::Py_DECREF(descr.cast());
        made
    }
}

/// Allocates an array of shape `shape` with the element type `descr`. The elements are zeros if
/// `is_zero` is true. The elements are not initialised if `is_zero` is false.
///
/// # Safety
///
/// `descr` must point to an element type that is alive.
unsafe fn new_array<'py>(
    py: Python<'py>,
    descr: *mut PyArray_Descr,
    shape: &[usize],
    is_zero: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let rank = c_int::try_from(shape.len()).unwrap_or(c_int::MAX);
    let sizes = shape.as_ptr().cast_mut().cast::<isize>();
    // SAFETY: the type is alive by the contract of this function. numpy takes over one reference to
    // the type, and `Py_INCREF` adds this reference first. numpy only reads the sizes.
    unsafe {
        ffi::Py_INCREF(descr.cast());
        let made = match is_zero {
            true => PY_ARRAY_API.PyArray_Zeros(py, rank, sizes, descr, 0),
            false => PY_ARRAY_API.PyArray_Empty(py, rank, sizes, descr, 0),
        };
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// numpy's character for a byte order that differs from the machine's byte order.
const FOREIGN_ORDER: u8 = if cfg!(target_endian = "little") {
    b'>'
} else {
    b'<'
};

/// Checks whether an object is a numpy array or an array of a subclass.
#[inline]
pub(super) fn is_array(object: &Bound<'_, PyAny>) -> bool {
    is_of(object, NpyTypes::PyArray_Type)
}

/// Checks whether an object is a numpy scalar.
pub(super) fn is_scalar(object: &Bound<'_, PyAny>) -> bool {
    is_of(object, NpyTypes::PyGenericArrType_Type)
}

/// Checks whether an object is a number of Python or a scalar of numpy.
pub(crate) fn is_number(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyComplex>()
        || is_scalar(object)
}

#[inline]
fn is_of(object: &Bound<'_, PyAny>, base: NpyTypes) -> bool {
    let py = object.py();
    // SAFETY: the types of numpy's C interface live as long as the process, and every object has a
    // type.
    unsafe {
        let array = get_type_object(py, base);
        let found = ffi::Py_TYPE(object.as_ptr());
        ptr::eq(found, array) || ffi::PyType_IsSubtype(found, array) != 0
    }
}

/// Returns the crate's dtype for a type number of numpy. Returns `None` if the crate has no such
/// dtype.
#[inline]
fn plain(number: c_int) -> Option<DType> {
    const LONG: (DType, DType) = match size_of::<std::ffi::c_long>() {
        8 => (DType::I64, DType::U64),
        _ => (DType::I32, DType::U32),
    };
    const FIRST: [DType; 13] = [
        DType::Bool,
        DType::I8,
        DType::U8,
        DType::I16,
        DType::U16,
        DType::I32,
        DType::U32,
        LONG.0,
        LONG.1,
        DType::I64,
        DType::U64,
        DType::F32,
        DType::F64,
    ];
    match usize::try_from(number).ok()? {
        number @ 0..=12 => Some(FIRST[number]),
        // The crate has no dtype for long doubles (13) and complex long doubles (16).
        14 => Some(DType::Complex64),
        15 => Some(DType::Complex128),
        23 => Some(DType::F16),
        _ => None,
    }
}

/// Checks whether the type of an object is exactly `T`. Returns false for an object of a subclass.
///
/// If the type is exactly Python's `float`, `bool` or `int`, reading the value of the object runs
/// no Python code.
pub(crate) fn is_exactly<T: PyTypeInfo>(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<T>()
}
