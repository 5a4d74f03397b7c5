"""Registration of kernels under PyTorch's operators, and its end.

Knows PyTorch's dispatcher. Does not know what a kernel computes.
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

# Releases of PyTorch whose operators and types were tested.
SUPPORTED = ("2.10", "2.11", "2.12", "2.13", "2.14", "2.15")

_lock = threading.RLock()
# Stack of nested `enable` calls. The last entry is active.
_enabled: list[Enabled] = []
# Typed as Any, as functions of this module have no type annotations.
_registry: Any = torch.library
_library: Any = None
# Handles of kernels that are or were registered. When a kernel is deregistered, PyTorch frees it
# even if other threads run it or wait for Python's lock to run it. A handle keeps the kernel alive.
# After 1000 more registrations no thread is expected to run it.
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
    """The registration of one `enable` call. As a context manager it ends with the block.

    `functions` is the set of names that it covers.
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
        """End this registration. The enclosing `enable` becomes active again."""
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
    """Register the kernels of the active `enable` call, and deregister all others."""
    global _library
    if _library is not None:
        _library._destroy()
        _library = None
    if _enabled:
        library = _registry.Library("aten", "IMPL", "CPU")
        try:
            with warnings.catch_warnings():
                # Replacing a kernel is intended here.
                warnings.filterwarnings("ignore", message=".*Overriding a previously registered")
                _enabled[-1]._kernels(library)
        except BaseException:
            library._destroy()
            raise
        _library = library


def _chosen(only: str | Iterable[str] | None) -> dict[str, dict[str, Override]]:
    """Return the overrides of the named functions. None: all that are registered by default."""
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
    """Register the kernels under PyTorch's functions, for CPU tensors in all threads.

    Calls with an error run on PyTorch's kernels, which raise PyTorch's error. These kernels may
    have written rows before the error.

    Some functions were measured to be slower than PyTorch's on a machine. They are registered only
    if `only` names them: ``embedding_dense_backward``, and the forms of ``scatter_add`` and
    ``scatter_reduce`` that return a new tensor.

    The kernels are Python code, so a call waits for Python's lock (the GIL). A C++ extension must
    not hold that lock while it calls one of the functions in ``at::parallel_for`` and waits for
    the result. PyTorch's threads would wait for the lock, and the extension would wait for these
    threads, forever. An extension that pybind11 calls holds the lock until it releases it with
    ``py::gil_scoped_release``.

    Args:
        only: a name of a function from `FUNCTIONS`, or several names. A name covers all forms of
            a function: ``"index_add"`` covers ``index_add_`` too. None: all functions that were
            measured to be faster.
        always: whether to also run calls that PyTorch runs faster. For tests and measurements.

    Returns:
        A handle. ``with enable(): ..`` ends the registration with the block, `disable` ends all
        registrations. A nested `enable` replaces the enclosing one until it ends.

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
    """End all registrations: PyTorch's own kernels run again."""
    with _lock:
        _enabled.clear()
        _register()


def enabled() -> frozenset[str]:
    """Return the names of the functions that run on ndscatter's kernels now."""
    with _lock:
        return _enabled[-1].functions if _enabled else frozenset()
