"""Fixtures of the tests of `ndscatter.torch`."""

import os
import warnings

import pytest
import torch

import ndscatter.torch
from ndscatter.torch import _kernels


# NDSCATTER_FULL=1 runs all of PyTorch's own test cases (test_op_db.py) and the training of graph
# networks (test_pyg.py). Both take minutes. test_pyg.py also needs the package torch_geometric.
IS_FULL = os.environ.get("NDSCATTER_FULL") == "1"
collect_ignore = [] if IS_FULL else ["test_pyg.py"]


class Spy:
    """Wrapper of the module of native kernels. It counts the calls of all kernels together.

    `done` is the number of calls that ndscatter's kernels ran. `refused` is the number of calls
    that ndscatter's kernels refused, so that PyTorch ran them.
    """

    def __init__(self, native):
        self._native = native
        self.done = self.refused = 0

    def __getattr__(self, name):
        function = getattr(self._native, name)

        def counted(*arguments):
            is_done = function(*arguments)
            if is_done:
                self.done += 1
            else:
                self.refused += 1
            return is_done

        return counted


@pytest.fixture
def spy(monkeypatch):
    spy = Spy(_kernels.native)
    monkeypatch.setattr(_kernels, "native", spy)
    return spy


@pytest.fixture(autouse=True)
def restore():
    """After each test, restore PyTorch's number of threads and end all registrations of kernels."""
    threads = torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    ndscatter.torch.disable()
    torch.set_num_threads(threads)
