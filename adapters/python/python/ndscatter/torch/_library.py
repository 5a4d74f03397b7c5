"""The library of native kernels: its build, its place, and its loading.

The library is `shim.cpp`, compiled against the installed PyTorch. It belongs to one release of
PyTorch and of ndscatter. This module does not know operators.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch

from .._native import torch as native

COMMAND = "python -m ndscatter.torch build"

_HERE = Path(__file__).parent
_SOURCE = _HERE / "shim.cpp"
_TORCH = Path(torch.__file__).parent


class BuildError(RuntimeError):
    """The library of native kernels could not be built or loaded."""


def file_name() -> str:
    """Return the name of the library for the installed PyTorch and this release of ndscatter.

    The name has a hash of the source, of the version of its interface, of the release of PyTorch, of
    the C++ ABI and of the architecture. A library that differs in one of them has another name, and is
    never loaded.
    """
    parts = (
        _SOURCE.read_bytes(),
        str(native.ABI).encode(),
        torch.__version__.encode(),
        str(torch.version.git_version).encode(),
        str(torch._C._GLIBCXX_USE_CXX11_ABI).encode(),
        platform.machine().encode(),
    )
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    return f"ndscatter-torch-{torch.__version__}-{key}.so"


def folders() -> list[Path]:
    """Return the folders that may contain the library: the package's folder, and the user's cache.

    The cache is ``$XDG_CACHE_HOME/ndscatter``, or ``~/.cache/ndscatter``.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return [_HERE, Path(cache) / "ndscatter"]


def find() -> Path | None:
    """Return the path of the library, or None if it has not been built."""
    name = file_name()
    return next((path for path in (folder / name for folder in folders()) if path.is_file()), None)


def _compiler() -> list[str]:
    if chosen := shlex.split(os.environ.get("CXX", "")):
        if shutil.which(chosen[0]):
            return chosen
        raise BuildError(f"the compiler {chosen[0]!r} of the variable CXX does not exist")
    for name in ("c++", "g++", "clang++"):
        if path := shutil.which(name):
            return [path]
    raise BuildError(
        "no C++ compiler was found (c++, g++, clang++); install one, or set the variable CXX"
    )


def _writable_folder() -> Path:
    errors = []
    for folder in folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError as error:
            errors.append(f"{folder}: {error.strerror}")
    raise BuildError(
        f"no folder for the library is writable ({'; '.join(errors)}); "
        "set XDG_CACHE_HOME to a writable folder"
    )


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder. The system releases the lock if the process dies."""
    import fcntl

    with open(folder / ".ndscatter-torch.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build() -> Path:
    """Compile the library for the installed PyTorch, and return its path.

    Returns the path of the existing library if it has been built already. Several processes may
    call this function at the same time.

    Raises:
        BuildError: there is no compiler or no writable folder, or the compiler reports an error.
    """
    if not sys.platform.startswith("linux"):
        raise BuildError(f"native kernels are supported on Linux, not on {sys.platform}")
    if found := find():
        return found
    compiler, folder = _compiler(), _writable_folder()
    path = folder / file_name()
    with _locked(folder):
        if path.is_file():
            return path
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch) / "made.so"
            command = [
                *compiler, "-std=c++20", "-O2", "-fPIC", "-shared", "-w", "-fvisibility=hidden",
                f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
                "-isystem", str(_TORCH / "include"),
                "-isystem", str(_TORCH / "include/torch/csrc/api/include"),
                str(_SOURCE), "-o", str(made),
                f"-L{_TORCH / 'lib'}", "-ltorch_cpu", "-lc10",
            ]  # fmt: skip
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            except OSError as error:
                raise BuildError(f"the compiler could not run: {error}") from error
            if done.returncode:
                raise BuildError(f"the compiler failed: {shlex.join(command)}\n{done.stderr}")
            os.replace(made, path)
    return path


class Library:
    """The loaded library. Its kernels are registered with PyTorch until the process ends."""

    def __init__(self, path: Path) -> None:
        try:
            functions = ctypes.CDLL(str(path))
            connect = functions.ndscatter_torch_connect
            self._switch = functions.ndscatter_torch_switch
            operator = functions.ndscatter_torch_operator
        except (OSError, AttributeError) as error:
            raise BuildError(f"{path} cannot be loaded: {error}") from error
        connect.argtypes, connect.restype = [ctypes.c_void_p], ctypes.c_char_p
        self._switch.argtypes, self._switch.restype = [ctypes.c_uint64], None
        operator.argtypes, operator.restype = [ctypes.c_size_t], ctypes.c_char_p
        if failure := connect(native.table()):
            raise BuildError(f"{path} cannot be used: {failure.decode(errors='replace')}")
        self.path = path
        # The bit of each operator in the state of the kernels.
        self._bits: dict[str, int] = {}
        while name := operator(len(self._bits)):
            self._bits[name.decode()] = 1 << len(self._bits)

    @property
    def operators(self) -> frozenset[str]:
        return frozenset(self._bits)

    def switch(self, operators: list[str], always: bool) -> None:
        """Let the crate run the calls of `operators`, and PyTorch the calls of all others."""
        state = sum(self._bits[name] for name in operators)
        self._switch(state | (always << 63))


loaded: Library | None = None


def load() -> Library:
    """Load the library. Later calls return the same object.

    Raises:
        BuildError: the library has not been built, or it cannot be loaded.
    """
    global loaded
    if loaded is None:
        path = find()
        if path is None:
            raise BuildError(
                f"the native kernels for PyTorch {torch.__version__} are not built; run `{COMMAND}`"
            )
        loaded = Library(path)
    return loaded
