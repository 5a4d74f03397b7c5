"""ONNX Runtime's scatters on ndscatter's kernels, without a change to a model.

>>> import onnxruntime as ort  # doctest: +SKIP
>>> options = ort.SessionOptions()  # doctest: +SKIP
>>> options.register_custom_ops_library(library_path())  # doctest: +SKIP
>>> session = ort.InferenceSession("model.onnx", options)  # doctest: +SKIP
"""

from . import _native

__all__ = ["library_path"]


def library_path() -> str:
    """Return the path of the library of custom operators.

    A session with ``register_custom_ops_library(path)`` runs ScatterND, ScatterElements,
    Scatter and TensorScatter by ndscatter. The library is the package's extension module.

    >>> import os
    >>> os.path.isfile(library_path())
    True
    """
    path = _native.__file__
    assert path is not None, "an extension module has a file"
    return path
