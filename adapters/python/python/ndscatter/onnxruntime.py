"""Runs the scatter operators of ONNX models on ndscatter's kernels. The models do not change.

>>> import onnxruntime as ort  # doctest: +SKIP
>>> options = ort.SessionOptions()  # doctest: +SKIP
>>> enable(options)  # doctest: +SKIP
>>> session = ort.InferenceSession("model.onnx", options)  # doctest: +SKIP
>>> session.run(None, inputs)  # doctest: +SKIP
>>> runs()  # doctest: +SKIP
{'Scatter': 0, 'ScatterElements': 0, 'ScatterND': 1, 'TensorScatter': 0}
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, Protocol

from . import _native

__all__ = ["enable", "library_path", "runs"]


class SessionOptions(Protocol):
    """The methods of ``onnxruntime.SessionOptions`` that this module calls."""

    def add_session_config_entry(self, key: str, value: str, /) -> Any: ...
    def get_session_config_entry(self, key: str, /) -> Any: ...
    def register_custom_ops_library(self, path: str, /) -> Any: ...


def enable(
    options: SessionOptions,
    *,
    threads: int | None = None,
    operators: Iterable[str] | None = None,
) -> None:
    """Make sessions with ``options`` run their scatters on ndscatter's kernels.

    A second call with the same arguments changes nothing.

    Args:
        options: The options of a session, before the session is created.
        threads: The number of threads of the session (``intra_op_num_threads``). If the number is
            not given, ndscatter measures it.
        operators: The names of the operators to replace. If the names are not given, ndscatter
            replaces all operators that ``runs`` names.

    Raises:
        ValueError: ``threads`` is less than 1, a name of ``operators`` is unknown, or ``options``
            already have ndscatter with other arguments.

    >>> import onnxruntime as ort  # doctest: +SKIP
    >>> options = ort.SessionOptions()  # doctest: +SKIP
    >>> options.intra_op_num_threads = 2  # doctest: +SKIP
    >>> enable(options, threads=2, operators=["ScatterND"])  # doctest: +SKIP
    """
    entries = {}
    if threads is not None:
        entries["ndscatter.threads"] = _thread_count(threads)
    if operators is not None:
        entries["ndscatter.ops"] = _names(operators)
    is_registered = _entry(options, "ndscatter.registered") is not None
    for key, entry in entries.items():
        found = _entry(options, key)
        if is_registered and found != entry:
            raise ValueError(
                f"these options already have ndscatter, with {key!r} set to {found!r}, not {entry!r}; "
                "use new SessionOptions"
            )
        if found != entry:
            options.add_session_config_entry(key, entry)
    options.register_custom_ops_library(library_path())


def _thread_count(threads: int) -> str:
    count = operator.index(threads)
    if count < 1:
        raise ValueError(f"threads is {count}; use a positive number")
    return str(count)


def _names(operators: Iterable[str]) -> str:
    known = runs()
    if isinstance(operators, str):
        raise TypeError(f"operators is a string; use a list of names, such as [{operators!r}]")
    names = sorted(set(operators))
    for name in names:
        if name not in known:
            raise ValueError(f"unknown operator {name!r}; use {', '.join(known)}")
    return ",".join(names)


def _entry(options: SessionOptions, key: str) -> str | None:
    """Return the value of a config entry. Return ``None`` if the options have no such entry."""
    try:
        entry: str = options.get_session_config_entry(key)
    except RuntimeError:
        return None
    return entry


def runs() -> dict[str, int]:
    """Return the number of successful runs of each operator on ndscatter's kernels.

    The numbers count the runs of all sessions since the process began. An operator that stays 0
    while its model runs is computed by ONNX Runtime's own kernel.

    >>> sorted(runs())
    ['Scatter', 'ScatterElements', 'ScatterND', 'TensorScatter']
    """
    return _native._onnxruntime_runs()


def library_path() -> str:
    """Return the path of a shared library with custom operators for ONNX Runtime.

    ``enable`` passes this path to ``SessionOptions.register_custom_ops_library``. The shared library
    is the package's extension module, so only processes with Python can load it.

    >>> import os
    >>> os.path.isfile(library_path())
    True
    """
    path = _native.__file__
    assert path is not None, "an extension module has a file"
    return path
