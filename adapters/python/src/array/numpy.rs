//! numpy's arrays: the fields of its structs, and arrays that it allocates.
//!
//! Knows numpy's C interface. Knows nothing of what arrays are used for.

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
use pyo3::{PyTypeInfo, ffi};

/// The fields of an array that is alive for `'a`.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    fields: &'a PyArrayObject_fields,
}

/// What the elements of an array are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements {
    /// The type that the crate knows them by, in the byte order of the machine.
    pub(super) plain: Option<DType>,
    pub(super) size: usize,
    /// They can be copied as bytes: none is a reference.
    pub(super) is_movable: bool,
    pub(super) is_swapped: bool,
}

/// The number of ml_dtypes' bfloat16, once one was seen. Numbers below that of user
/// types are none.
static BFLOAT16: AtomicI32 = AtomicI32::new(-1);

impl<'a> Fields<'a> {
    /// Those of an array of numpy's, or of a subclass.
    #[inline]
    pub(super) fn of(object: &'a Bound<'_, PyAny>) -> Option<Self> {
        is_array(object).then(|| {
            // SAFETY: an array's struct begins with the fields, and the object lives for
            // 'a. Shape and strides are replaced by Python code alone, which does not run
            // while this is used: no method of it calls Python.
            let fields = unsafe { &*npyffi::_PyArray_GET_ITEM_DATA(object.as_ptr().cast()) };
            Self { fields }
        })
    }

    /// Memory and type, to be compared later.
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

    /// In bytes.
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
        // SAFETY: an array has one size, which is not negative, and one stride for each
        // of its dimensions.
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
        // SAFETY: an array has a type, whose struct begins with these fields.
        unsafe { &*npyffi::_PyDataType_GET_ITEM_DATA(self.fields.descr) }
    }

    /// Of a type that numpy itself has, or one that was registered with it.
    #[inline]
    pub(super) fn elements(self, py: Python<'_>) -> Elements {
        let descr = self.descr();
        let is_swapped = descr.byteorder.cast_unsigned() == FOREIGN_ORDER;
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
        // SAFETY: an array has a type.
        let (size, flags) = unsafe { (PyDataType_ELSIZE(py, descr), PyDataType_FLAGS(py, descr)) };
        // Strings of any length, and whatever else is new, keep elements elsewhere.
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
        // SAFETY: a type has a Python type for its scalars.
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

    /// Whether elements of both mean the same, byte order included.
    pub(super) fn has_type_of(self, py: Python<'_>, other: Self) -> bool {
        let (ours, theirs) = (self.fields.descr, other.fields.descr);
        // SAFETY: both arrays are alive, and so are their types.
        ours == theirs || unsafe { PY_ARRAY_API.PyArray_EquivTypes(py, ours, theirs) } != 0
    }

    /// A new array of such elements, which are not initialised.
    #[inline]
    pub(super) fn allocate<'py>(
        self,
        py: Python<'py>,
        shape: &[usize],
    ) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the array is alive, and so is its type.
        unsafe { new_array(py, self.fields.descr, shape, false) }
    }
}

/// Where an array lay and what its type was, to find out whether they have changed.
///
/// A type that was freed, and whose address another type of elements of the same size has now,
/// is not told apart: shape and strides are in bytes the same then.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Described {
    data: *const u8,
    descr: *const PyArray_Descr,
}

/// The type of the elements of an array of numpy's, whatever a subclass says that it is.
pub(super) fn dtype_of<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let fields = Fields::of(array);
    let fields = fields.ok_or_else(|| PyTypeError::new_err("no array of numpy's"))?;
    // SAFETY: an array has a type, which is an object.
    Ok(unsafe { Bound::from_borrowed_ptr(array.py(), fields.fields.descr.cast()) })
}

/// The type of arrays itself.
pub(crate) fn array_type(py: Python<'_>) -> Bound<'_, PyAny> {
    // SAFETY: numpy's types stay.
    unsafe {
        let array = get_type_object(py, NpyTypes::PyArray_Type);
        Bound::from_borrowed_ptr(py, array.cast())
    }
}

/// A new array of zeros, of one of numpy's own types.
pub(super) fn zeros<'py>(
    py: Python<'py>,
    number: NPY_TYPES,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: numpy has the type and keeps it; one count is given back below.
    unsafe {
        let descr = PY_ARRAY_API.PyArray_DescrFromType(py, number as c_int);
        let made = new_array(py, descr, shape, true);
        ffi::Py_DECREF(descr.cast());
        made
    }
}

/// # Safety
///
/// `descr` is that of a type that is alive.
unsafe fn new_array<'py>(
    py: Python<'py>,
    descr: *mut PyArray_Descr,
    shape: &[usize],
    is_zero: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let rank = c_int::try_from(shape.len()).unwrap_or(c_int::MAX);
    let sizes = shape.as_ptr().cast_mut().cast::<isize>();
    // SAFETY: the caller vouches for the type; numpy only reads the sizes.
    unsafe {
        ffi::Py_INCREF(descr.cast());
        let made = match is_zero {
            true => PY_ARRAY_API.PyArray_Zeros(py, rank, sizes, descr, 0),
            false => PY_ARRAY_API.PyArray_Empty(py, rank, sizes, descr, 0),
        };
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// The byte order that is not the machine's, as numpy writes it.
const FOREIGN_ORDER: u8 = if cfg!(target_endian = "little") {
    b'>'
} else {
    b'<'
};

/// Whether it is an array of numpy's, or of a subclass.
#[inline]
pub(super) fn is_array(object: &Bound<'_, PyAny>) -> bool {
    is_of(object, NpyTypes::PyArray_Type)
}

/// Whether it is a scalar of numpy's.
pub(super) fn is_scalar(object: &Bound<'_, PyAny>) -> bool {
    is_of(object, NpyTypes::PyGenericArrType_Type)
}

#[inline]
fn is_of(object: &Bound<'_, PyAny>, base: NpyTypes) -> bool {
    let py = object.py();
    // SAFETY: numpy's types stay, and an object has a type.
    unsafe {
        let array = get_type_object(py, base);
        let found = ffi::Py_TYPE(object.as_ptr());
        ptr::eq(found, array) || ffi::PyType_IsSubtype(found, array) != 0
    }
}

/// numpy's own types that the crate knows, in the order of numpy's numbers.
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
        // 13 and 16 are those of long doubles.
        14 => Some(DType::Complex64),
        15 => Some(DType::Complex128),
        23 => Some(DType::F16),
        _ => None,
    }
}

/// Whether an object is a float or an integer of Python itself, no subclass: their
/// values are told without running Python code.
pub(crate) fn is_exactly<T: PyTypeInfo>(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<T>()
}
