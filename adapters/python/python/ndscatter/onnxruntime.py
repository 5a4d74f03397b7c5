"""The scatters of ONNX Runtime on ndscatter's kernels, without a change to any model.

>>> import onnxruntime as ort  # doctest: +SKIP
>>> options = ort.SessionOptions()  # doctest: +SKIP
>>> options.register_custom_ops_library(library_path())  # doctest: +SKIP
>>> session = ort.InferenceSession("model.onnx", options)  # doctest: +SKIP
"""

from . import _native

__all__ = ["library_path"]


def library_path() -> str:
    """The path of the library of custom operators, for ``register_custom_ops_library``.

    It takes over ScatterND, ScatterElements, Scatter and TensorScatter of a session that is
    given it. It is the package's own extension module.

    >>> import os
    >>> os.path.isfile(library_path())
    True
    """
    path = _native.__file__
    assert path is not None, "an extension module has a file"
    return path
