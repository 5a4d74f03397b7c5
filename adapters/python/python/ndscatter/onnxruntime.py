"""Runs the scatter operators of ONNX models on ndscatter's kernels. The models do not change.

>>> import onnxruntime as ort  # doctest: +SKIP
>>> options = ort.SessionOptions()  # doctest: +SKIP
>>> options.register_custom_ops_library(library_path())  # doctest: +SKIP
>>> session = ort.InferenceSession("model.onnx", options)  # doctest: +SKIP
"""

from . import _native

__all__ = ["library_path"]


def library_path() -> str:
    """Return the path of a shared library with custom operators for ONNX Runtime.

    Pass the path to ``SessionOptions.register_custom_ops_library``. A session with these options
    runs ScatterND, ScatterElements, Scatter and TensorScatter on ndscatter's kernels. The shared
    library is the package's extension module.

    >>> import os
    >>> os.path.isfile(library_path())
    True
    """
    path = _native.__file__
    assert path is not None, "an extension module has a file"
    return path
