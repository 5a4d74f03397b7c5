"""Putting kernels under PyTorch's operators, and giving back what was there.

Knows PyTorch's dispatcher. Knows nothing of what a kernel does.
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
from ._kernels import FUNCTIONS, Door

# Releases of PyTorch whose operators and types were tested.
SUPPORTED = ("2.10", "2.11", "2.12", "2.13", "2.14", "2.15")

_lock = threading.RLock()
# What is enabled, one within another: the last one counts.
_enabled: list[Enabled] = []
# Functions of PyTorch's that have no types.
_registry: Any = torch.library
_library: Any = None
# Handles of kernels that are in place or were. PyTorch frees a kernel that is taken out while
# other threads are in it, or wait for Python's lock to begin; with a handle it stays. So many
# switches later nobody is there any more.
_kept: deque[list[Any]] = deque(maxlen=1000)
_is_connected = False


def connect() -> None:
    """Find PyTorch's functions, once."""
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
    """What `enable` has put in place; as a context manager it ends with the block."""

    def __init__(self, doors: dict[str, dict[str, Door]], always: bool) -> None:
        self.functions = frozenset(doors)
        self._doors = doors
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
        """End this, and what is below it counts again."""
        with _lock:
            if self in _enabled:
                _enabled.remove(self)
                _register()

    def _kernels(self, library: Any) -> None:
        handles: list[Any] = []
        _kept.append(handles)
        for function in sorted(self.functions):
            for name, door in self._doors[function].items():
                original = _registry.get_kernel(f"aten::{name}", "CPU").call_boxed
                kernel = door.make(original, self._always)
                if not self._always:
                    kernel = native.Gate(original, kernel, door.least, door.counted)
                library.impl(name, kernel, with_keyset=True)
                handles.append(_registry.get_kernel(f"aten::{name}", "CPU"))

    def __repr__(self) -> str:
        return f"Enabled({', '.join(sorted(self.functions))})"


def _register() -> None:
    """Put the kernels of the last one in place, and nothing else."""
    global _library
    if _library is not None:
        _library._destroy()
        _library = None
    if _enabled:
        library = _registry.Library("aten", "IMPL", "CPU")
        try:
            with warnings.catch_warnings():
                # That a kernel is replaced is what was asked for.
                warnings.filterwarnings("ignore", message=".*Overriding a previously registered")
                _enabled[-1]._kernels(library)
        except BaseException:
            library._destroy()
            raise
        _library = library


def _chosen(only: Iterable[str] | None) -> dict[str, dict[str, Door]]:
    """The operators of functions by name, or those of all functions that are for every program."""
    if only is None:
        by_default = {
            function: {name: door for name, door in doors.items() if door.by_default}
            for function, doors in FUNCTIONS.items()
        }
        return {function: doors for function, doors in by_default.items() if doors}
    chosen = frozenset(only)
    unknown = sorted(chosen - FUNCTIONS.keys())
    if unknown:
        raise ValueError(f"no function is called {unknown[0]!r}; use {', '.join(FUNCTIONS)}")
    return {function: FUNCTIONS[function] for function in chosen}


def enable(only: Iterable[str] | None = None, *, always: bool = False) -> Enabled:
    """Put the kernels under PyTorch's functions, for tensors on the CPU.

    Functions that were measured to be slower on a machine than PyTorch's are taken over only where
    `only` names them: ``embedding_dense_backward``, and the forms of ``scatter_add`` and
    ``scatter_reduce`` that return a new tensor.

    The kernels are Python code, so that a call waits for Python's lock. A C++ extension must not
    hold that lock while it calls one of the functions in ``at::parallel_for`` and waits for the
    result: PyTorch's threads would wait for the lock, and the extension for them, for ever. An
    extension that pybind11 calls holds the lock until it releases it with
    ``py::gil_scoped_release``.

    Args:
        only: names of `FUNCTIONS`; None is all that gain.
        always: for tests and measurements: also calls that PyTorch does faster.

    Returns:
        What was enabled. ``with enable(): ..`` ends it with the block, `disable` ends all.
        One within another replaces what is outside of it until it ends.

    Raises:
        RuntimeError: a release of PyTorch that is not supported.
        ValueError: a function of another name.

    >>> import torch, ndscatter.torch
    >>> with ndscatter.torch.enable(only=["scatter_add"]):
    ...     torch.zeros(3).scatter_add_(0, torch.tensor([0, 2, 2]), torch.ones(3))
    tensor([1., 0., 2.])
    """
    doors = _chosen(FUNCTIONS if only is None and always else only)
    with _lock:
        connect()
        enabled = Enabled(doors, always)
        _enabled.append(enabled)
        try:
            _register()
        except BaseException:
            _enabled.remove(enabled)
            _register()
            raise
    return enabled


def disable() -> None:
    """Give back all of PyTorch's kernels."""
    with _lock:
        _enabled.clear()
        _register()


def enabled() -> frozenset[str]:
    """Names of the functions that are taken over now."""
    with _lock:
        return _enabled[-1].functions if _enabled else frozenset()
