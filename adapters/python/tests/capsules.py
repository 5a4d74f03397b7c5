"""DLPack tensors whose fields a test can set to arbitrary values, made with ctypes."""

import ctypes

import numpy as np


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Old(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


READ_ONLY, COPIED = 1, 2
CODES = {"i": 0, "u": 1, "f": 2, "b": 6}

_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Array:
    """An object that exports the memory of a numpy array as a DLPack tensor with arbitrary fields.

    `shape`, `strides` (in elements), `rank` and `address` replace the values of the array. With
    `flags=None`, the object exports an unversioned DLPack tensor, which has no field for flags.
    """

    def __init__(self, array, *, shape=None, strides=None, address=None, flags=0, rank=None):
        self.array = array
        shape = array.shape if shape is None else shape
        self.shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self.strides = strides and (ctypes.c_int64 * len(strides))(*strides)
        self.made = Old() if flags is None else Versioned(major=1, flags=flags)
        tensor = self.made.tensor
        tensor.data = array.ctypes.data if address is None else address
        tensor.device[0] = 1
        tensor.rank = len(shape) if rank is None else rank
        tensor.code, tensor.bits, tensor.lanes = CODES[array.dtype.kind], array.itemsize * 8, 1
        tensor.shape = self.shape
        if strides:
            tensor.strides = self.strides
        self.name = b"dltensor" if flags is None else b"dltensor_versioned"

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        return _new(ctypes.addressof(self.made), self.name, None)


def unaligned(dtype, values):
    """Return an `Array` whose elements begin one byte after an address aligned for `dtype`."""
    array = np.array(values, dtype)
    memory = np.zeros(array.nbytes + array.itemsize, "u1")
    start = -memory.ctypes.data % array.itemsize + 1
    memory[start : start + array.nbytes] = np.frombuffer(array.tobytes(), "u1")
    exported = Array(array, address=memory.ctypes.data + start)
    exported.memory = memory
    return exported
