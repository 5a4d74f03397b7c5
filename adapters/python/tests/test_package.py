"""Tests the package as a whole: its docstrings, its type stubs, its command, its benchmark, and
calls in a forked process."""

import ast
import doctest
import inspect
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import ndscatter
import stub_docstrings
from ndscatter import onnxruntime as onnx_module

FUNCTIONS = [name for name in ndscatter.__all__ if callable(getattr(ndscatter, name))]
WITHOUT_ARGUMENTS = ("instruction_set", "threads", "machine", "release_scratch")
# Classes that users do not call.
RESULTS = ("Explanation", "ShardedPlan", "Sharding")
PACKAGE = pathlib.Path(ndscatter.__file__).parent
HERE = pathlib.Path(__file__).parent


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings(name):
    function = getattr(ndscatter, name)
    assert function.__doc__, "it has a docstring"
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    test = parser.get_doctest(function.__doc__, {}, name, None, None)
    assert test.examples or name in WITHOUT_ARGUMENTS or isinstance(function, type), "it has an example"
    runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("name", sorted({*FUNCTIONS} - {*WITHOUT_ARGUMENTS, *RESULTS}))
def test_docstrings_are_complete(name):
    function = getattr(ndscatter, name)
    # Python shows no signature of `__call__`. The method `explain` of a plan has the same arguments.
    called = getattr(function, "explain", function)
    lines = [line.strip() for line in function.__doc__.splitlines()]
    for argument in inspect.signature(called).parameters:
        if argument != "self":
            assert any(line.startswith(f"{argument}: ") for line in lines), argument
    assert "Raises:" in lines
    if "gather" not in name and name not in ("bincount", "explain", "Write", "GatherPlan", "ScatterPlan"):
        assert re.search(r"same (slot|dest|position)|one (element|destination)", function.__doc__), "duplicates"


def test_the_stubs_have_the_docstrings():
    found = list(stub_docstrings.declarations(ast.parse(stub_docstrings.STUB.read_text())))
    for node, docstring in found:
        assert ast.get_docstring(node) == inspect.cleandoc(docstring), f"{node.name}: run stub_docstrings.py"
    assert len(found) > len(FUNCTIONS), "functions, classes and methods"


def test_submodules_are_imported_at_their_first_use():
    code = """
import sys, ndscatter
assert "ndscatter.torch" not in sys.modules and "torch" not in sys.modules
assert ndscatter.onnxruntime.library_path()
sys.modules["torch"] = None
try:
    ndscatter.torch
except AttributeError as error:
    assert str(error).startswith("module 'ndscatter' has no attribute 'torch': ") and "sys.modules" in str(error)
    assert isinstance(error.__cause__, ImportError) and str(error).endswith(str(error.__cause__))
    print("torch" in str(error.__cause__), end=" ")
assert not hasattr(ndscatter, "torch")
try:
    from ndscatter import torch
except ImportError as error:
    assert "torch" in str(error)
else:
    raise AssertionError("torch is not installed")
try:
    ndscatter.missing
except AttributeError as error:
    print(error)
"""
    made = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert made == "True module 'ndscatter' has no attribute 'missing'\n"
    for name in ("onnxruntime", "torch"):
        assert f"`ndscatter.{name}`" in ndscatter.__doc__
        assert getattr(ndscatter, name).__name__ == f"ndscatter.{name}"


def test_the_command_needs_matplotlib_only_for_a_plot():
    code = "import sys; sys.modules['matplotlib'] = None; from ndscatter import __main__ as m; m.main(['--plot', 'x'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, ""), "no measurement"
    assert done.stderr == 'a plot needs matplotlib: pip install "ndscatter[plot]"\n'


def test_the_version_of_the_command():
    made = subprocess.run([sys.executable, "-m", "ndscatter", "--version"], capture_output=True, text=True)
    assert made.stdout == f"ndscatter {ndscatter.__version__}\n"


def test_examples_of_the_readme():
    readme = HERE.parent / "README.md"
    results = doctest.testfile(str(readme), module_relative=False)
    assert results.attempted and results.failed == 0


def test_modules_in_python_have_examples_that_run():
    assert doctest.testmod(onnx_module, verbose=False).failed == 0


def mypy(*arguments):
    config = HERE.parent / "pyproject.toml"
    return subprocess.run(
        [sys.executable, "-m", *arguments, str(config)],
        capture_output=True,
        text=True,
        cwd=HERE.parent.parent,
    )


@pytest.mark.long
def test_stubs_match_the_modules(tmp_path):
    allowed = tmp_path / "allowed"
    # stubtest does not check the private module `_native`. The package re-exports the functions of
    # `_native`, and stubtest checks the stubs of the package.
    allowed.write_text("ndscatter\\._native.*\n")
    done = mypy(
        "mypy.stubtest", "ndscatter", "--ignore-unused-allowlist", "--allowlist", str(allowed),
        "--mypy-config-file",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_modules_are_typed():
    done = mypy("mypy", "-p", "ndscatter", "--config-file")
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_as_users_see_them(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        """\
import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type
import ndscatter

a = np.zeros(3, np.float32)
assert_type(ndscatter.scatter_nd(a, [[0]], 1.0, reduction="add", threads=1), type(a))  # error
assert_type(ndscatter.bincount([1]), NDArray[np.intp])
assert_type(ndscatter.bincount([1], [1.0]), NDArray[np.float64])
ndscatter.add_at(a, (slice(None), None), 1.0)
plan = ndscatter.plan_gather((3,), [0])
plan(a)
ndscatter.scatter_nd(a, [[0]], 1.0, bounds="wrap")  # error
"""
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(program)], capture_output=True, text=True
    )
    errors = [line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line]
    assert errors == ["7", "13"], done.stdout


def test_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "ndscatter"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    for words in (ndscatter.__version__, "instruction set", "threads", "caches of", "self test: "):
        assert words in done.stdout
    assert "np.bincount" in done.stdout


def test_the_plot_of_the_command(tmp_path):
    from ndscatter import __main__ as command

    command.draw([("a", 2.0, 1.0), ("b", 1.0, 2.0)], str(tmp_path / "plot.png"))
    assert (tmp_path / "plot.png").stat().st_size > 1000


def test_the_benchmark():
    bench = pathlib.Path(__file__).parents[1] / "bench/arrays.py"
    small = [sys.executable, bench, "--rounds=1", "--budget=0", "--threads=1"]
    made = subprocess.run([*small, "--calls"], check=True, capture_output=True, text=True).stdout
    assert made.count("\n") == 10 and "np.bincount" in made
    made = subprocess.run([*small, "--only=bincount 2000"], check=True, capture_output=True, text=True).stdout
    assert made.count("\n| bincount 2000") == 2 and "geometric mean" in made


def test_the_library_for_onnxruntime_has_its_entry_point():
    import ctypes

    path = onnx_module.library_path()
    assert os.path.isfile(path)
    assert ctypes.CDLL(path).RegisterCustomOps


def test_properties_of_the_installation():
    assert ndscatter.instruction_set() in ("portable", "avx2", "avx512")
    assert ndscatter.threads() >= 1
    assert "KiB" in ndscatter.machine()
    assert ndscatter.release_scratch() is None
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork():
    """A forked child process has none of the threads of ndscatter's pool, but a call in the child
    must work. The test starts a new process that then forks, because JAX has started threads in the
    process of the tests."""
    code = """
import os, numpy as np, ndscatter
data, rows, updates = np.zeros((3000, 32)), np.arange(3000).repeat(4), np.ones((12_000, 32))
ndscatter.scatter_update(data, rows, updates, reduction="add")
child = os.fork()
if child == 0:
    result = ndscatter.scatter_update(data, rows, updates, reduction="add")
    os._exit(0 if (result == 4).all() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "0"), done.stderr


def test_the_results_are_those_of_the_default_floating_point_mode():
    import ctypes
    import ctypes.util

    library = ctypes.CDLL(ctypes.util.find_library("m"))
    upward = 0x800
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        pytest.skip("the value of the rounding mode is for x86-64 Linux")
    for size in (10, 100_000):
        data, updates = np.ones(size, "f4"), np.full(size, 1e-10, "f4")
        assert library.fesetround(upward) == 0
        try:
            result = ndscatter.scatter_update(data, np.arange(size), updates, reduction="add")
        finally:
            library.fesetround(0)
        assert (result == 1).all()
