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


@pytest.mark.parametrize("name", NAMES)
def test_an_example(name, tmp_path):
    done = run(name, tmp_path / "pictures")
    assert done.returncode == 0, done.stderr
    assert "ratio" in done.stdout and "torch" in done.stdout
    picture = tmp_path / "pictures" / f"{name}.png"
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 5000


def test_all_examples_are_tested():
    assert {path.stem for path in FOLDER.glob("*.py")} == {"common", *NAMES}


def test_examples_of_the_documentation():
    document = FOLDER.parent.parent.parent / "docs" / "python.md"
    results = doctest.testfile(str(document), module_relative=False)
    assert results.attempted and results.failed == 0


@pytest.mark.parametrize("name", ["histogram", "kv_cache", "paged_cache"])
def test_torch_may_be_missing(name, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch')")
    code = (
        f"import sys, runpy; sys.path[:0] = [{str(tmp_path)!r}, {str(FOLDER)!r}]; "
        f"sys.argv = ['x', '--quick', '--out', {str(tmp_path)!r}]; "
        f"runpy.run_path({str(FOLDER / name)!r} + '.py', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "rows are left out" in done.stdout and "torch index" not in done.stdout
    assert (tmp_path / f"{name}.png").exists()
