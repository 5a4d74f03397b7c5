"""Two cores of OpenVINO, one of them with the extension, and functions that run models in both."""

from __future__ import annotations

import sys
from pathlib import Path

import openvino as ov
import pytest
from openvino import opset1

import ndscatter.openvino

sys.path.insert(0, str(Path(__file__).parents[2]))

from pytest_selection import pytest_collection_modifyitems, pytest_configure  # noqa: E402, F401


@pytest.fixture(scope="session")
def plain():
    return ov.Core()


@pytest.fixture(scope="session")
def extended():
    core = ov.Core()
    ndscatter.openvino.enable(core)
    return core


def parameters(arrays, is_dynamic):
    """Return one parameter per array, with the shape of the array or with a dynamic shape."""
    shape = lambda array: [-1] * array.ndim if is_dynamic else list(array.shape)
    return [opset1.parameter(shape(array), array.dtype) for array in arrays]


def kernels(compiled) -> list[str]:
    """Return the types of the CPU plugin's nodes. An operator of an extension is a "Reference"."""
    nodes = compiled.get_runtime_model().get_ops()
    return [node.get_rt_info()["layerType"].astype(str) for node in nodes]


@pytest.fixture
def saved(tmp_path):
    """Return a function that saves a model with these results and parameters as IR."""

    def save(results, parameters, sinks=()):
        path = tmp_path / "model.xml"
        model = ov.Model(results, list(sinks), parameters) if sinks else ov.Model(results, parameters)
        ov.save_model(model, path, compress_to_fp16=False)
        return path

    return save
