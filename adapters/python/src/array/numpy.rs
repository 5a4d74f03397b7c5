//! numpy arrays: the fields of their structs, and allocation.
//!
//! Knows numpy's C interface. Does not know what the arrays are used for.

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

/// The element type of an array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements {
    /// The crate's arithmetic dtype, without regard to byte order. `None` for a type without
    /// arithmetic.
    pub(super) plain: Option<DType>,
    /// Bytes of one element.
    pub(super) size: usize,
    /// Whether elements can be copied as bytes: they contain no references.
    pub(super) is_movable: bool,
    /// Whether the byte order is not the machine's.
    pub(super) is_swapped: bool,
}

/// numpy's type number of ml_dtypes' bfloat16, or -1 before the first array of it.
static BFLOAT16: AtomicI32 = AtomicI32::new(-1);

impl<'a> Fields<'a> {
    /// Returns the fields of a numpy array, subclasses included, or `None` for another object.
    #[inline]
    pub(super) fn of(object: &'a Bound<'_, PyAny>) -> Option<Self> {
        is_array(object).then(|| {
            // SAFETY: the struct of an array begins with these fields, and the object lives for
            // 'a. Only Python code replaces shape and strides. No Python code runs while
            // `Fields` is used: none of its methods that read them calls Python.
            let fields = unsafe { &*npyffi::_PyArray_GET_ITEM_DATA(object.as_ptr().cast()) };
            Self { fields }
        })
    }

    /// Returns memory and type, for a later comparison.
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
        // SAFETY: an array has one size and one stride for each of its `nd` dimensions. Sizes
        // are not negative.
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
        // SAFETY: an array always has a type, and the struct of a type begins with these fields.
        unsafe { &*npyffi::_PyDataType_GET_ITEM_DATA(self.fields.descr) }
    }

    /// Returns the element type: one of numpy's own types, or a type that was registered with
    /// numpy.
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
        // SAFETY: an array always has a type.
        let (size, flags) = unsafe { (PyDataType_ELSIZE(py, descr), PyDataType_FLAGS(py, descr)) };
        // Strings of variable length store their characters elsewhere. Types that are newer than
        // these strings may also store data elsewhere.
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
        // SAFETY: every type of numpy has a Python type for its scalars.
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

    /// Checks whether both arrays have the same element type, byte order included.
    pub(super) fn has_type_of(self, py: Python<'_>, other: Self) -> bool {
        let (ours, theirs) = (self.fields.descr, other.fields.descr);
        // SAFETY: both arrays are alive, and they keep their types alive.
        ours == theirs || unsafe { PY_ARRAY_API.PyArray_EquivTypes(py, ours, theirs) } != 0
    }

    /// Allocates an array of the same element type. The elements are not initialised.
    #[inline]
    pub(super) fn allocate<'py>(
        self,
        py: Python<'py>,
        shape: &[usize],
    ) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the array is alive and keeps its type alive.
        unsafe { new_array(py, self.fields.descr, shape, false) }
    }
}

/// Address and type of an array, to detect that they have changed.
///
/// A freed type and a new type at the same address compare equal. If elements of both have the same
/// size, shape and strides in bytes are equal too, and the change is not detected.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Described {
    data: *const u8,
    descr: *const PyArray_Descr,
}

/// Returns the element type of a numpy array. The type is read from the struct, because a subclass
/// may replace the attribute `dtype`.
pub(super) fn dtype_of<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let fields = Fields::of(array);
    let fields = fields.ok_or_else(|| PyTypeError::new_err("the object is not a numpy array"))?;
    // SAFETY: an array always has a type, which is a Python object.
    Ok(unsafe { Bound::from_borrowed_ptr(array.py(), fields.fields.descr.cast()) })
}

/// Returns the Python type `numpy.ndarray`.
pub(crate) fn array_type(py: Python<'_>) -> Bound<'_, PyAny> {
    // SAFETY: numpy's types live as long as the process.
    unsafe {
        let array = get_type_object(py, NpyTypes::PyArray_Type);
        Bound::from_borrowed_ptr(py, array.cast())
    }
}

/// Allocates an array of zeros of one of numpy's own types.
pub(super) fn zeros<'py>(
    py: Python<'py>,
    number: NPY_TYPES,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: `number` is a built-in type of numpy, so `PyArray_DescrFromType` returns a new
    // reference to a living type. The reference is released below.
    unsafe {
        let descr = PY_ARRAY_API.PyArray_DescrFromType(py, number as c_int);
        let made = new_array(py, descr, shape, true);
        ffi::Py_DECREF(descr.cast());
        made
    }
}

/// Allocates an array of zeros, or of uninitialised elements.
///
/// # Safety
///
/// `descr` points to a living type.
unsafe fn new_array<'py>(
    py: Python<'py>,
    descr: *mut PyArray_Descr,
    shape: &[usize],
    is_zero: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let rank = c_int::try_from(shape.len()).unwrap_or(c_int::MAX);
    let sizes = shape.as_ptr().cast_mut().cast::<isize>();
    // SAFETY: the type is alive by the contract of this function. numpy takes over one reference,
    // which is added first, and only reads the sizes.
    unsafe {
        ffi::Py_INCREF(descr.cast());
        let made = match is_zero {
            true => PY_ARRAY_API.PyArray_Zeros(py, rank, sizes, descr, 0),
            false => PY_ARRAY_API.PyArray_Empty(py, rank, sizes, descr, 0),
        };
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// numpy's character for the byte order that is not the machine's.
const FOREIGN_ORDER: u8 = if cfg!(target_endian = "little") {
    b'>'
} else {
    b'<'
};

/// Checks whether an object is a numpy array, subclasses included.
#[inline]
pub(super) fn is_array(object: &Bound<'_, PyAny>) -> bool {
    is_of(object, NpyTypes::PyArray_Type)
}

/// Checks whether an object is a numpy scalar.
pub(super) fn is_scalar(object: &Bound<'_, PyAny>) -> bool {
    is_of(object, NpyTypes::PyGenericArrType_Type)
}

#[inline]
fn is_of(object: &Bound<'_, PyAny>, base: NpyTypes) -> bool {
    let py = object.py();
    // SAFETY: numpy's types live as long as the process, and every object has a type.
    unsafe {
        let array = get_type_object(py, base);
        let found = ffi::Py_TYPE(object.as_ptr());
        ptr::eq(found, array) || ffi::PyType_IsSubtype(found, array) != 0
    }
}

/// Returns the dtype of one of numpy's own type numbers, if the crate has it.
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
        // 13 and 16 are real and complex long doubles.
        14 => Some(DType::Complex64),
        15 => Some(DType::Complex128),
        23 => Some(DType::F16),
        _ => None,
    }
}

/// Checks whether an object is of exactly the type `T`, and not of a subclass.
///
/// The value of a Python number of exactly this type is read without running Python code.
pub(crate) fn is_exactly<T: PyTypeInfo>(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<T>()
}
