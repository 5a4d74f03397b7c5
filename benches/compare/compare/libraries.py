"""Loads the libraries of this project through ctypes: `ndscatter-c`, and the compiled helpers of
the comparison (`native/`)."""

from __future__ import annotations

import ctypes
import os
from ctypes import (
    POINTER,
    Structure,
    c_bool,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_ssize_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from functools import cache
from pathlib import Path

import numpy as np

REDUCTIONS = {"none": 0, "add": 1, "max": 5}

_CPU = 1
# Type codes of DLPack, for numpy's kinds of elements.
_CODES = {"i": 0, "u": 1, "f": 2}
# numpy has no bfloat16. Its elements are stored as integers of 16 bits.
BFLOAT16 = 4


class Device(Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class DataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", Device),
        ("ndim", c_int32),
        ("dtype", DataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class Options(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("reduction", c_int32),
        ("bounds", c_int32),
        ("forbid_negative", c_int32),
        ("exclude_self", c_int32),
        ("accumulate", c_int32),
        ("reject_duplicates", c_int32),
        ("max_threads", c_int32),
        ("pool", c_void_p),
        ("none_gradient", c_int32),
    ]


class Conversion(Structure):
    """`nds_conversion`."""

    _fields_ = [
        ("size", c_uint32),
        ("format", c_int32),
        ("rounding", c_int32),
        ("scaling", c_int32),
        ("scale", POINTER(DLTensor)),
        ("zero_point", POINTER(DLTensor)),
    ]


class Write(Structure):
    """`nds_write`."""

    _fields_ = [
        ("size", c_uint32),
        ("data", POINTER(DLTensor)),
        ("updates", POINTER(DLTensor)),
        ("conversion", POINTER(Conversion)),
    ]


class NativeRows(Structure):
    """`Rows` of native/src/rows.rs."""

    _fields_ = [
        ("cache", c_void_p),
        ("updates", c_void_p),
        ("slots", c_void_p),
        ("tokens", c_size_t),
        ("heads", c_size_t),
        ("dim", c_size_t),
        ("block_size", c_size_t),
        ("block_stride", c_size_t),
        ("row_stride", c_size_t),
        ("head_stride", c_size_t),
        ("scale", c_float),
        ("format", c_int),
    ]


class NativeTensor(Structure):
    """`Tensor` of native/src/lib.rs."""

    _fields_ = [("memory", c_void_p), ("shape", POINTER(c_size_t)), ("rank", c_size_t)]


def dl_tensor(array: np.ndarray, code: int | None = None) -> DLTensor:
    """Views `array`, which must outlive the view. `code` replaces numpy's kind of elements."""
    numbers = c_int64 * array.ndim
    code = _CODES[array.dtype.kind] if code is None else code
    dtype = DataType(code, 8 * array.itemsize, 1)
    strides = None
    if not array.flags.c_contiguous:
        strides = numbers(*(stride // array.itemsize for stride in array.strides))
    shape = numbers(*array.shape)
    return DLTensor(array.ctypes.data, Device(_CPU, 0), array.ndim, dtype, shape, strides, 0)


def native_tensor(array: np.ndarray) -> NativeTensor:
    return NativeTensor(array.ctypes.data, (c_size_t * array.ndim)(*array.shape), array.ndim)


def options(reduction: str) -> Options:
    return Options(size=ctypes.sizeof(Options), reduction=REDUCTIONS[reduction])


def _load(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(os.environ["NDSCATTER_LIBRARIES"]) / name))


@cache
def ndscatter_c() -> ctypes.CDLL:
    library = _load("libndscatter_c.so")
    library.nds_version.restype = ctypes.c_char_p
    library.nds_last_error.restype = ctypes.c_char_p
    assert library.nds_abi_version() == 1, "this file needs version 1 of the C interface"
    return library


@cache
def native() -> ctypes.CDLL:
    library = _load("libndscatter_compare.so")
    signatures = {
        "compare_copy": (c_bool, [c_size_t, c_void_p, c_void_p, c_size_t]),
        "compare_read": (None, [c_void_p, c_size_t]),
        "compare_time_scatter_nd": (c_int64, [c_void_p] * 6 + [c_uint32]),
        "compare_time_writes": (c_int64, [c_void_p] * 3 + [c_size_t, c_void_p, c_uint32]),
        "compare_write_rows": (None, [POINTER(NativeRows)]),
        "compare_time_rows": (c_int64, [POINTER(NativeRows), c_uint32]),
        "compare_allocate": (c_void_p, [POINTER(NativeTensor)] * 3 + [c_ssize_t, c_int]),
        "compare_values": (POINTER(c_float), [c_void_p]),
        "compare_free": (None, [c_void_p]),
        "compare_train": (c_void_p, [POINTER(NativeTensor)] * 4 + [c_ssize_t, c_int]),
        "compare_pass_values": (POINTER(c_float), [c_void_p, c_size_t]),
        "compare_pass_free": (None, [c_void_p]),
    }
    for name, (restype, argtypes) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = restype, argtypes
    return library
