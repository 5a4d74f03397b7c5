"""Runs the example programs of the Python package at small sizes.

The tests fail if an assertion of an example fails, or if an example prints no ratio or writes no
picture. Another test runs the examples in docs/python.md.
"""

import doctest
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent.parent / "examples"
NAMES = ("histogram", "graph_layer", "kv_cache", "paged_cache")


def run(name, folder):
    return subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py"), "--quick", "--out", str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NAMES)
def test_an_example(name, tmp_path):
    done = run(name, tmp_path / "pictures")
    assert done.returncode == 0, done.stderr
    assert "ratio" in done.stdout and "torch" in done.stdout
    picture = tmp_path / "pictures" / f"{name}.png"
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 5000


def test_all_examples_are_tested():
    # tests/pytorch/test_distributed.py runs distributed_table, and tests/ray/test_ray.py runs ray_histogram.
    others = {"common", "distributed_table", "ray_histogram"}
    assert {path.stem for path in FOLDER.glob("*.py")} == {*others, *NAMES}


def test_examples_of_the_documentation():
    document = FOLDER.parent.parent.parent / "docs" / "python.md"
    results = doctest.testfile(str(document), module_relative=False)
    assert results.attempted and results.failed == 0


def without(names, name, folder):
    """Run an example in a process in which the packages `names` cannot be imported."""
    missing = "".join(f"sys.modules[{module!r}] = None; " for module in names)
    code = (
        f"import sys, runpy; {missing}sys.path.insert(0, {str(FOLDER)!r}); "
        f"sys.argv = ['x', '--quick', '--out', {str(folder)!r}]; "
        f"runpy.run_path({str(FOLDER / name)!r} + '.py', run_name='__main__')"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_matplotlib_may_be_missing(tmp_path):
    done = without(["torch", "matplotlib"], "paged_cache", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "ratio" in done.stdout and "pip install matplotlib" in done.stdout
    assert not list(tmp_path.iterdir())


def test_the_graph_layer_says_that_it_needs_torch(tmp_path):
    done = without(["torch"], "graph_layer", tmp_path)
    assert done.returncode == 1
    assert done.stderr == "this example requires torch: pip install torch\n"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["histogram", "kv_cache", "paged_cache"])
def test_torch_may_be_missing(name, tmp_path):
    done = without(["torch"], name, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "rows are left out" in done.stdout and "torch index" not in done.stdout
    assert (tmp_path / f"{name}.png").exists()
