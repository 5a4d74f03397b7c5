"""Registers kernels under PyTorch's operators, and ends registrations.

Native kernels are registered once, and a registration switches them on. Kernels that are Python
functions are registered and deregistered. This module knows PyTorch's dispatcher. It does not know
what a kernel computes.
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

from .._native import torch as extension
from . import _library
from ._kernels import OVERRIDES, Override

# Releases of PyTorch that were tested. Other releases are refused.
SUPPORTED = ("2.10", "2.11", "2.12", "2.13", "2.14", "2.15")

_lock = threading.RLock()
# Registrations that have not ended, in the order of their `enable` calls. Only the kernels of the
# last entry are registered with PyTorch.
_enabled: list[Enabled] = []
# `torch.library`, typed as Any because its functions have no type annotations.
_registry: Any = torch.library
# The library of `torch.library` that has the active kernels, if they are Python functions.
_registered: Any = None
# Handles of kernels that are or were registered. Each handle keeps one kernel alive. Without a
# handle, PyTorch would free a kernel when it is deregistered, even while another thread runs the
# kernel or waits for Python's lock to run it. There is one list of handles per registration. A list
# is dropped after 1000 later registrations, when no thread is expected to run its kernels any more.
_kept: deque[list[Any]] = deque(maxlen=1000)
_is_connected = False
_has_warned = False


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
    extension.connect(torch.Tensor, path)
    _is_connected = True


class Enabled:
    """The registration that one `enable` call made.

    In a `with` statement, the registration ends with the block.
    `functions` is the set of names of the functions that the registration covers. `native` is
    whether the kernels are native (C++). If it is false, they are Python functions. `state` is the
    state of the registration when `state` is read.
    """

    def __init__(
        self,
        overrides: dict[str, dict[str, Override]],
        always: bool,
        library: _library.Library | None,
    ) -> None:
        self.functions = frozenset(overrides)
        self.native = library is not None
        self._overrides = overrides
        self._always = bool(always)
        self._native_library = library

    @property
    def state(self) -> str:
        """``"active"``: the kernels run calls. ``"suspended"``: a nested registration is active.
        ``"ended"``: the registration has ended.
        """
        with _lock:
            if self not in _enabled:
                return "ended"
            return "active" if _enabled[-1] is self else "suspended"

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

    def _register(self) -> Any:
        """Register the kernels. Return the library of registrations that are to be destroyed."""
        if self._native_library is not None:
            operators = [name for names in self._overrides.values() for name in names]
            self._native_library.switch(operators, self._always)
            return None
        library = _registry.Library("aten", "IMPL", "CPU")
        try:
            with warnings.catch_warnings():
                # PyTorch warns if a kernel is replaced. The replacement is intended.
                warnings.filterwarnings("ignore", message=".*Overriding a previously registered")
                self._register_python(library)
        except BaseException:
            library._destroy()
            raise
        return library

    def _register_python(self, library: Any) -> None:
        handles: list[Any] = []
        _kept.append(handles)
        for function in sorted(self.functions):
            for name, override in self._overrides[function].items():
                original = _registry.get_kernel(f"aten::{name}", "CPU").call_boxed
                assert override.make is not None
                kernel = override.make(original, self._always)
                if not self._always:
                    limits = (override.least, override.counted)
                    kernel = extension.Gate(original, kernel, *limits, function)
                library.impl(name, kernel, with_keyset=True)
                handles.append(_registry.get_kernel(f"aten::{name}", "CPU"))

    def __repr__(self) -> str:
        functions = ", ".join(sorted(self.functions))
        return f"Enabled({functions}, native={self.native}, state={self.state!r})"


def _deregister() -> None:
    """Switch off the native kernels, and deregister kernels that are Python functions."""
    global _registered
    if _registered is not None:
        _registered._destroy()
        _registered = None
    if _library.loaded is not None:
        _library.loaded.switch([], False)


def _register() -> None:
    """Replace the active kernels by those of the active `enable` call, if any."""
    global _registered
    _deregister()
    if _enabled:
        _registered = _enabled[-1]._register()


def _chosen(
    only: str | Iterable[str] | None, always: bool, is_native: bool
) -> dict[str, dict[str, Override]]:
    """Return the overrides of the functions that `only` names.

    If `only` is None, return all overrides that are registered by default, or all overrides if
    `always` is true.
    """
    if only is None:

        def is_chosen(item: Override) -> bool:
            return is_native or (item.make is not None and (always or item.by_default))

        chosen = {
            function: {name: item for name, item in overrides.items() if is_chosen(item)}
            for function, overrides in OVERRIDES.items()
        }
        return {function: overrides for function, overrides in chosen.items() if overrides}
    names = [only] if isinstance(only, str) else list(only)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"`only` contains {name!r}; pass names of functions")
        if name.removesuffix("_") not in OVERRIDES:
            raise ValueError(f"no function is called {name!r}; use {', '.join(OVERRIDES)}")
    functions = {name.removesuffix("_") for name in names}
    chosen = {function: OVERRIDES[function] for function in functions}
    for function, overrides in sorted(chosen.items()):
        if not is_native and any(item.make is None for item in overrides.values()):
            raise RuntimeError(
                f"{function!r} has native kernels only, which are not in use; "
                f"run `{_library.COMMAND}`"
            )
    return chosen


def _library_for(native: bool | None) -> _library.Library | None:
    """Return the library of native kernels, or None if the kernels are Python functions."""
    global _has_warned
    if native is False:
        return None
    if _library.loaded is None:
        # The native kernels pass calls on to the kernels that are registered when they are loaded.
        # These must be PyTorch's.
        _deregister()
    try:
        return _library.load()
    except _library.BuildError as error:
        if native:
            raise
        if not _has_warned:
            _has_warned = True
            text = f"{error}. Kernels that are Python functions run instead, and cost 1 to 3 us per call"
            warnings.warn(text, RuntimeWarning, stacklevel=3)
        return None


def enable(
    only: str | Iterable[str] | None = None, *, always: bool = False, native: bool | None = None
) -> Enabled:
    """Replace kernels of PyTorch's functions by ndscatter's, for CPU tensors in all threads.

    ndscatter's kernel refuses a call with an invalid argument, and PyTorch's kernel then runs the
    call. The error is therefore PyTorch's error. PyTorch's kernel may have written rows before it
    raises the error.

    The kernels are native if ``python -m ndscatter.torch build`` has compiled them for the
    installed PyTorch. Otherwise the kernels are Python functions, and the first `enable` of the
    process gives a `RuntimeWarning`. A call of a Python function costs 1 to 3 us more, and waits for
    Python's lock (the GIL). A C++ extension must not hold the GIL while it waits for an
    ``at::parallel_for`` whose threads call one of these functions. This would be a deadlock. Python
    functions by default do not replace ``embedding_dense_backward`` and the forms of ``scatter_add``
    and ``scatter_reduce`` that return a new tensor. ``FUNCTIONS`` also has functions that only native
    kernels replace.

    Args:
        only: a name of a function from `FUNCTIONS`, or several names. A name covers all forms of
            a function: ``"index_add"`` and ``"index_add_"`` both cover ``index_add`` and
            ``index_add_``. None: all functions and forms that are registered by default.
        always: whether ndscatter's kernels also run the calls that PyTorch runs faster. Intended
            for tests and measurements.
        native: whether the kernels must be native (True) or Python functions (False). None: native
            if they have been built.

    Returns:
        A handle of the registration. In ``with enable(): ..``, the registration ends with the
        block. The handle's method ``disable`` ends this registration. The function
        ``ndscatter.torch.disable`` ends all registrations. A nested `enable` replaces the enclosing
        registration until the nested registration ends.

    Raises:
        RuntimeError: this release of PyTorch is not supported; `native` is true, and the native
            kernels are not built or cannot be loaded; or `only` names a function that only native
            kernels replace, and the kernels are Python functions.
        TypeError: `only` contains an object that is not a string.
        ValueError: `only` contains an unknown name.

    >>> import torch, ndscatter.torch
    >>> with ndscatter.torch.enable(only=["scatter_add"]):
    ...     torch.zeros(3).scatter_add_(0, torch.tensor([0, 2, 2]), torch.ones(3))
    tensor([1., 0., 2.])
    """
    with _lock:
        connect()
        before = list(_enabled)
        try:
            library = _library_for(native)
            enabled = Enabled(_chosen(only, always, library is not None), always, library)
            _enabled.append(enabled)
            _register()
        except BaseException:
            _enabled[:] = before
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
