"""Tests of the library of native kernels: its build, its loading, and its kernels in C++ programs."""

import os
import shutil
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest
import torch

import ndscatter.torch
from ndscatter.torch import _library, _switch

TORCH = Path(torch.__file__).parent


def python(code, **environment):
    """Run a program in a new process. Return what it prints, and its standard error."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=600, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """The library is searched for and built in two new folders. No library is loaded."""
    package, cache = tmp_path / "package", tmp_path / "cache"
    monkeypatch.setattr(_library, "folders", lambda: [package, cache])
    monkeypatch.setattr(_library, "loaded", None)
    monkeypatch.setattr(_switch, "_has_warned", False)
    return package, cache


def test_without_a_library_python_functions_serve_and_say_so(elsewhere, spy):
    with pytest.warns(RuntimeWarning, match="not built; run `python -m ndscatter.torch build`"):
        handle = ndscatter.torch.enable()
    assert not handle.native
    assert "native=False" in repr(handle)
    table, index = torch.zeros(100, 64), torch.arange(100)
    table.index_add_(0, index, torch.ones(100, 64))
    assert (spy.done, table.sum()) == (1, 6400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ndscatter.torch.enable()
    ndscatter.torch.disable()
    with pytest.raises(RuntimeError, match="are not built"):
        ndscatter.torch.enable(native=True)
    assert not ndscatter.torch.enabled()


def test_no_compiler(elsewhere, monkeypatch):
    monkeypatch.setattr(_library.shutil, "which", lambda name: None)
    with pytest.raises(_library.BuildError, match="no C\\+\\+ compiler was found"):
        _library.build()
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    with pytest.raises(_library.BuildError, match="'no-such-compiler' of the variable CXX"):
        _library.build()


def test_the_command_without_a_compiler(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(f"""
            import pathlib, sys
            from ndscatter.torch import _library, __main__
            _library.folders = lambda: [pathlib.Path({str(tmp_path)!r})]
            sys.argv = ["ndscatter.torch", "build"]
            sys.exit(__main__.main())
        """)],
        capture_output=True, text=True, env={**os.environ, "PATH": "/nowhere", "CXX": ""},
    )  # fmt: skip
    assert done.returncode == 1
    assert "no C++ compiler was found" in done.stderr
    assert "kernels that are Python functions" in done.stderr


def test_a_compiler_that_fails(elsewhere, monkeypatch):
    monkeypatch.setenv("CXX", shutil.which("false"))
    with pytest.raises(_library.BuildError, match="the compiler failed: .*shim.cpp"):
        _library.build()
    assert not list(elsewhere[0].glob("*.so"))


def test_read_only_folders(elsewhere, monkeypatch):
    """The test also passes for root, who may write everywhere: a file replaces each folder."""
    package, cache = elsewhere
    package.write_text("")
    compiler = ["cp", "/proc/self/cmdline"]
    monkeypatch.setattr(_library, "_compiler", lambda: compiler)
    with pytest.raises(_library.BuildError, match="the compiler failed"):
        _library.build()
    assert cache.is_dir()
    cache.rename(cache.with_name("moved"))
    cache.write_text("")
    with pytest.raises(_library.BuildError, match="set XDG_CACHE_HOME to a writable folder"):
        _library.build()


def test_the_cache_of_the_user(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert _library.folders()[1] == Path("/somewhere/ndscatter")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert _library.folders()[1] == Path("/home/me/.cache/ndscatter")


def test_two_processes_build_once(tmp_path):
    """A compiler that counts its runs, and two processes that build at the same time."""
    compiler = tmp_path / "compiler"
    compiler.write_text(
        "#!/bin/sh\n"
        f'echo run >> "{tmp_path}/runs"\n'
        "sleep 1\n"
        'while [ "$1" != -o ]; do shift; done\n'
        'echo made > "$2"\n'
    )
    compiler.chmod(0o755)
    code = f"""
        import pathlib
        from ndscatter.torch import _library
        _library.folders = lambda: [pathlib.Path({str(tmp_path / "out")!r})]
        print(_library.build())
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    environment = {**os.environ, "CXX": str(compiler)}
    builds = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) for _ in range(2)]
    paths = [build.communicate(timeout=120)[0] for build in builds]
    assert [build.returncode for build in builds] == [0, 0]
    assert paths[0] == paths[1]
    assert (tmp_path / "runs").read_text() == "run\n"
    assert len(list((tmp_path / "out").glob("*.so"))) == 1


@pytest.mark.parametrize("content", ["text", "empty library", "other version"])
def test_a_library_of_another_abi_is_not_used(content, elsewhere, tmp_path):
    package, _ = elsewhere
    package.mkdir()
    path = package / _library.file_name()
    sources = {
        "empty library": "",
        "other version": 'extern "C" const char* ndscatter_torch_connect(const void*) { return "other"; }'
        'extern "C" void ndscatter_torch_switch(unsigned long) {}'
        'extern "C" const char* ndscatter_torch_operator(unsigned long) { return nullptr; }',
    }
    if content == "text":
        path.write_text("no library")
    else:
        source = tmp_path / "other.cpp"
        source.write_text(sources[content])
        subprocess.run(["c++", "-shared", "-fPIC", str(source), "-o", str(path)], check=True)
    with pytest.warns(RuntimeWarning, match="cannot be (loaded|used)"):
        handle = ndscatter.torch.enable()
    assert not handle.native


def test_the_name_depends_on_the_release_and_the_abi(monkeypatch):
    names = {_library.file_name()}
    for holder, name, value in [
        (torch, "__version__", "2.99.0"),
        (torch.version, "git_version", "0123"),
        (torch._C, "_GLIBCXX_USE_CXX11_ABI", not torch._C._GLIBCXX_USE_CXX11_ABI),
        (_library.native, "ABI", 0),
    ]:
        with monkeypatch.context() as patch:
            patch.setattr(holder, name, value)
            names.add(_library.file_name())
    assert len(names) == 5


# A library that calls PyTorch's `index_add_` on the threads of `at::parallel_for`.
EXTENSION = """
#include <ATen/Parallel.h>
#include <ATen/ops/index_add.h>
#include <torch/csrc/autograd/python_variable.h>

extern "C" void add_all(PyObject** tables, long count, PyObject* index, PyObject* rows) {
    std::vector<at::Tensor> into;
    for (long number = 0; number < count; number++) {
        into.push_back(THPVariable_Unpack(tables[number]));
    }
    const at::Tensor at = THPVariable_Unpack(index), source = THPVariable_Unpack(rows);
    at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t number = begin; number < end; number++) {
            at::AutoDispatchBelowADInplaceOrView guard;
            into[number].index_add_(0, at, source);
        }
    });
}
"""


@pytest.mark.long
def test_an_extension_that_holds_the_lock_of_python(tmp_path):
    """An extension calls `index_add_` in `at::parallel_for`, and holds Python's lock. Kernels that
    are Python functions would wait for the lock forever."""
    import sysconfig

    source, library = tmp_path / "extension.cpp", tmp_path / "extension.so"
    source.write_text(EXTENSION)
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").exists():
        pytest.skip("Python's headers are missing")
    command = [
        "c++", "-std=c++20", "-O1", "-shared", "-fPIC", "-fopenmp", "-w", str(source), "-o", str(library),
        "-isystem", include, "-isystem", str(TORCH / "include"),
        "-isystem", str(TORCH / "include/torch/csrc/api/include"), f"-L{TORCH / 'lib'}",
        "-ltorch_python", "-ltorch_cpu", "-lc10",
    ]  # fmt: skip
    subprocess.run(command, check=True)
    printed, _ = python(f"""
        import ctypes, torch, ndscatter.torch
        extension = ctypes.PyDLL({str(library)!r})   # calls hold Python's lock
        torch.set_num_threads(4)
        tables = [torch.zeros(1000, 64) for _ in range(8)]
        index, rows = torch.arange(5000) % 1000, torch.ones(5000, 64)
        ndscatter.torch.enable(native=True)
        pointers = (ctypes.py_object * 8)(*tables)
        extension.add_all(pointers, 8, ctypes.py_object(index), ctypes.py_object(rows))
        print(ndscatter.torch.counts()["index_add"].ndscatter, all((table == 5).all() for table in tables))
    """)
    assert printed == "8 True"


def test_calls_are_handed_on_to_the_kernel_of_another_library():
    printed, _ = python("""
        import warnings, torch
        warnings.simplefilter("ignore")
        seen = []
        other = torch.library.Library("aten", "IMPL", "CPU")
        original = torch.library.get_kernel("aten::index_copy_", "CPU").call_boxed
        def kernel(keys, self, dim, index, source):
            seen.append(tuple(index.shape))
            return original(keys, self, dim, index, source)
        other.impl("index_copy_", kernel, with_keyset=True)
        import ndscatter.torch
        table, ones = torch.zeros(100_000), torch.ones(100_000)
        with ndscatter.torch.enable(native=True):
            table.index_copy_(0, torch.arange(100_000), ones)      # stays
            table.index_copy_(0, torch.arange(10), ones[:10])      # runs on ndscatter
        table.index_copy_(0, torch.arange(3), ones[:3])
        # After the other library is gone, its kernel remains alive.
        other._destroy()
        del kernel
        table.index_copy_(0, torch.arange(4), ones[:4])
        print(seen, table.sum().item())
    """)
    assert printed == "[(100000,), (3,), (4,)] 100000.0"


def test_native_kernels_after_python_functions():
    """Native kernels that are loaded while Python functions are registered do not call these."""
    printed, _ = python("""
        import torch, ndscatter.torch
        ndscatter.torch.enable(native=False, always=True)
        ndscatter.torch.enable(native=True)
        ndscatter.torch.disable()
        torch.zeros(5000).scatter_add_(0, torch.arange(5000), torch.ones(5000))
        print(ndscatter.torch.counts())
    """)
    assert printed == "{}"


def test_disabled_from_another_thread_and_at_exit():
    python("""
        import threading, torch, ndscatter.torch
        ndscatter.torch.enable(native=True)
        table, index = torch.zeros(1000, 64), torch.arange(1000)
        def work():
            for _ in range(300):
                table.index_add_(0, index, torch.ones(1000, 64))
        thread = threading.Thread(target=work)
        thread.start()
        for _ in range(200):
            ndscatter.torch.disable()
            ndscatter.torch.enable()
        thread.join()
        assert (table == 300).all()
    """)


@pytest.mark.long
def test_the_address_sanitizer_finds_no_error(tmp_path):
    """The C++ kernels, compiled with AddressSanitizer, run every test of `enable`'s results."""
    libraries = [
        subprocess.run(
            ["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libstdc++.so.6")
    ]
    if not os.path.isabs(libraries[0]):
        pytest.skip("the compiler has no AddressSanitizer")
    code = f"""
        import pathlib, sys, torch
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from ndscatter.torch import _library
        _library.folders = lambda: [pathlib.Path({str(tmp_path)!r})]
        _library.build()
        import ndscatter.torch, test_enable
        with ndscatter.torch.enable(always=True, native=True):
            for rows, count in ((500, 3000), (500, 1), (500, 0)):
                for calls in (test_enable.CALLS, test_enable.NATIVE_CALLS):
                    for name, call in calls.items():
                        try:
                            call(*test_enable.edges(rows, count))
                        except (RuntimeError, IndexError):
                            assert count < 3000, name
            for call in test_enable.REFUSED.values():
                try:
                    call(*test_enable.edges())
                except Exception:
                    pass
        print(sum(counts.ndscatter for counts in ndscatter.torch.counts().values()) > 60)
    """
    printed, errors = python(
        code,
        CXX="g++ -fsanitize=address -g",
        LD_PRELOAD=" ".join(libraries),
        ASAN_OPTIONS="detect_leaks=0",
        OMP_NUM_THREADS="2",
    )
    assert printed == "True", errors
