"""Runs ONNX's conformance cases of ScatterND, ScatterElements, Scatter and TensorScatter with the
kernels of ndscatter."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx.backend.test.case.node import collect_testcases

from common import HAS_CACHE, assert_same, counting, needs_cache, newest_opset, session

OPERATORS = ("ScatterND", "ScatterElements", "Scatter", "TensorScatter")


def load() -> list[object]:
    with warnings.catch_warnings():
        # `collect_testcases` makes the cases of all ONNX operators. Making the cases of some
        # operators that are not scatters emits warnings about infinities.
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    return [
        case for case in cases if any(node.op_type in OPERATORS for node in case.model.graph.node)
    ]


def parameters() -> list[object]:
    made = []
    for case in load():
        is_cache = case.name.startswith("test_tensorscatter")
        marks = [needs_cache] if is_cache else []
        made.append(pytest.param(case, id=case.name, marks=marks))
    return made


CASES = parameters()


def test_all_cases_are_there() -> None:
    found = {node.op_type for case in load() for node in case.model.graph.node}
    assert found == set(OPERATORS)
    assert len(CASES) >= 19


@pytest.mark.parametrize("case", CASES)
def test_case(case) -> None:
    made = case.model
    for opset in made.opset_import:
        # A case may import an opset that is newer than the host's newest opset. The test then uses
        # the host's newest opset, in which the scatter operator is the same.
        if opset.domain == "":
            opset.version = min(opset.version, newest_opset())
    made.ir_version = 8 if not HAS_CACHE else made.ir_version
    ran = session(made.SerializeToString())
    names = [given.name for given in ran.get_inputs()]
    for inputs, outputs in case.data_sets:
        with counting() as count:
            found = ran.run(None, dict(zip(names, inputs, strict=True)))
        assert count.done.runs == 1
        assert len(found) == len(outputs)
        for output, wanted in zip(found, outputs):
            assert_same(output, np.asarray(wanted), case.name)
