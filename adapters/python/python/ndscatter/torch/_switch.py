"""Registers kernels under PyTorch's operators, and deregisters them.

This module knows PyTorch's dispatcher. It does not know what a kernel computes.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections import deque
from collections.abc import Iterable
from types import TracebackType
from typing import Any

import torch

from .._native import torch as native
from ._kernels import FUNCTIONS, Override

# Releases of PyTorch that were tested. Other releases are refused.
SUPPORTED = ("2.10", "2.11", "2.12", "2.13", "2.14", "2.15")

_lock = threading.RLock()
# Registrations that have not ended, in the order of their `enable` calls. Only the kernels of the
# last entry are registered with PyTorch.
_enabled: list[Enabled] = []
# `torch.library`, typed as Any because its functions have no type annotations.
_registry: Any = torch.library
_library: Any = None
# Handles of kernels that are or were registered. Each handle keeps one kernel alive. Without a
# handle, PyTorch would free a kernel when it is deregistered, even while another thread runs the
# kernel or waits for Python's lock to run it. There is one list of handles per registration. A list
# is dropped after 1000 later registrations, when no thread is expected to run its kernels any more.
_kept: deque[list[Any]] = deque(maxlen=1000)
_is_connected = False


def connect() -> None:
    """Find PyTorch's C functions. Later calls do nothing."""
    global _is_connected
    if _is_connected:
        return
    release = ".".join(torch.__version__.split(".")[:2])
    if release not in SUPPORTED:
        raise RuntimeError(
            f"ndscatter.torch is for PyTorch {', '.join(SUPPORTED)}; this is {torch.__version__}"
        )
    suffix = "dylib" if sys.platform == "darwin" else "so"
    path = os.path.join(os.path.dirname(torch.__file__), "lib", f"libtorch_cpu.{suffix}")
    native.connect(torch.Tensor, path)
    _is_connected = True


class Enabled:
    """The registration that one `enable` call made.

    In a `with` statement, the registration ends with the block.
    `functions` is the set of names of the functions that the registration covers.
    """

    def __init__(self, overrides: dict[str, dict[str, Override]], always: bool) -> None:
        self.functions = frozenset(overrides)
        self._overrides = overrides
        self._always = always

    def __enter__(self) -> Enabled:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.disable()

    def disable(self) -> None:
        """End this registration. If it was active, the enclosing registration becomes active."""
        with _lock:
            if self in _enabled:
                _enabled.remove(self)
                _register()

    def _kernels(self, library: Any) -> None:
        handles: list[Any] = []
        _kept.append(handles)
        for function in sorted(self.functions):
            for name, override in self._overrides[function].items():
                original = _registry.get_kernel(f"aten::{name}", "CPU").call_boxed
                kernel = override.make(original, self._always)
                if not self._always:
                    kernel = native.Gate(original, kernel, override.least, override.counted)
                library.impl(name, kernel, with_keyset=True)
                handles.append(_registry.get_kernel(f"aten::{name}", "CPU"))

    def __repr__(self) -> str:
        return f"Enabled({', '.join(sorted(self.functions))})"


def _register() -> None:
    """Deregister all kernels, then register those of the active `enable` call, if any."""
    global _library
    if _library is not None:
        _library._destroy()
        _library = None
    if _enabled:
        library = _registry.Library("aten", "IMPL", "CPU")
        try:
            with warnings.catch_warnings():
                # PyTorch warns if a kernel is replaced. The replacement is intended.
                warnings.filterwarnings("ignore", message=".*Overriding a previously registered")
                _enabled[-1]._kernels(library)
        except BaseException:
            library._destroy()
            raise
        _library = library


def _chosen(only: str | Iterable[str] | None) -> dict[str, dict[str, Override]]:
    """Return the overrides of the functions that `only` names.

    If `only` is None, return all overrides that are registered by default.
    """
    if only is None:
        by_default = {
            function: {name: item for name, item in overrides.items() if item.by_default}
            for function, overrides in FUNCTIONS.items()
        }
        return {function: overrides for function, overrides in by_default.items() if overrides}
    chosen = frozenset((only,) if isinstance(only, str) else only)
    unknown = sorted(chosen - FUNCTIONS.keys())
    if unknown:
        raise ValueError(f"no function is called {unknown[0]!r}; use {', '.join(FUNCTIONS)}")
    return {function: FUNCTIONS[function] for function in chosen}


def enable(only: str | Iterable[str] | None = None, *, always: bool = False) -> Enabled:
    """Replace kernels of PyTorch's functions by ndscatter's, for CPU tensors in all threads.

    ndscatter's kernel refuses a call with an invalid argument, and PyTorch's kernel then runs the
    call. The error is therefore PyTorch's error. PyTorch's kernel may have written rows before it
    raises the error.

    Some forms of functions were measured to be slower than PyTorch's on at least one machine:
    ``embedding_dense_backward``, and the forms of ``scatter_add`` and ``scatter_reduce`` that
    return a new tensor. They are registered only if `only` names the function, or by
    ``enable(always=True)``.

    The registered kernels are Python code, so a call of one of the functions waits for Python's
    lock (the GIL). A C++ extension must not hold the GIL while it waits for an ``at::parallel_for``
    whose threads call one of the functions. This would be a deadlock: PyTorch's threads would wait
    for the GIL, and the extension would wait for PyTorch's threads. An extension that pybind11
    calls holds the GIL until it releases the GIL with ``py::gil_scoped_release``.

    Args:
        only: a name of a function from `FUNCTIONS`, or several names. A name covers all forms of
            a function: ``"index_add"`` covers ``index_add_`` too. None: all functions and forms
            that are registered by default.
        always: whether ndscatter's kernels also run the calls that PyTorch runs faster. Intended
            for tests and measurements.

    Returns:
        A handle of the registration. In ``with enable(): ..``, the registration ends with the
        block. The handle's method ``disable`` ends this registration. The function
        ``ndscatter.torch.disable`` ends all registrations. A nested `enable` replaces the enclosing
        registration until the nested registration ends.

    Raises:
        RuntimeError: this release of PyTorch is not supported.
        ValueError: `only` contains an unknown name.

    >>> import torch, ndscatter.torch
    >>> with ndscatter.torch.enable(only=["scatter_add"]):
    ...     torch.zeros(3).scatter_add_(0, torch.tensor([0, 2, 2]), torch.ones(3))
    tensor([1., 0., 2.])
    """
    overrides = _chosen(FUNCTIONS if only is None and always else only)
    with _lock:
        connect()
        enabled = Enabled(overrides, always)
        _enabled.append(enabled)
        try:
            _register()
        except BaseException:
            _enabled.remove(enabled)
            _register()
            raise
    return enabled


def disable() -> None:
    """End all registrations. All calls run on PyTorch's own kernels again."""
    with _lock:
        _enabled.clear()
        _register()


def enabled() -> frozenset[str]:
    """Return the names of the functions that the active registration covers.

    The set is empty if there is no registration.
    """
    with _lock:
        return _enabled[-1].functions if _enabled else frozenset()
