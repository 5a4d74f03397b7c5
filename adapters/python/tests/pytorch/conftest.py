"""Fixtures of the tests of `ndscatter.torch`."""

import os
import warnings

import pytest
import torch

import ndscatter.torch
from ndscatter.torch import _library, _switch


# NDSCATTER_FULL=1 runs all of PyTorch's own test cases (test_op_db.py) and the training of graph
# networks (test_pyg.py). Both take minutes. test_pyg.py also needs the package torch_geometric.
IS_FULL = os.environ.get("NDSCATTER_FULL") == "1"
collect_ignore = [] if IS_FULL else ["test_pyg.py"]


class Spy:
    """`done` is the number of calls that ndscatter's kernels ran since the last reset."""

    def __init__(self):
        self.reset()

    def reset(self):
        ndscatter.torch.reset_counts()

    @property
    def done(self):
        return sum(counts.ndscatter for counts in ndscatter.torch.counts().values())


@pytest.fixture
def spy():
    return Spy()


@pytest.fixture(scope="session", autouse=True)
def native_kernels():
    """Builds the native kernels. All tests use them, except tests with the fixture `kernels`."""
    _library.build()


@pytest.fixture(params=["native", "python"])
def kernels(request, monkeypatch):
    """Runs a test with native kernels, and again with kernels that are Python functions."""
    is_native = request.param == "native"
    original = _switch._library_for
    monkeypatch.setattr(_switch, "_library_for", lambda wanted: original(is_native))
    return request.param


@pytest.fixture(autouse=True)
def restore():
    """After each test, restore PyTorch's number of threads and end all registrations of kernels."""
    threads = torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    ndscatter.torch.disable()
    torch.set_num_threads(threads)
