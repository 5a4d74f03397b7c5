"""Tests of inferences in which an allocation of the extension fails.

Attempt n makes the n-th allocation of an inference fail, and in a second series also all that follow. The inference then
raises an exception and leaves the output unchanged. An exception that crosses a function of C or Rust would end the
process. The test starts this file in a process with a replaced allocator (adapters/refusals).
"""

import sys
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset15

sys.path.insert(0, str(Path(__file__).parents[2] / "refusals"))
import refusals  # noqa: E402

RANDOM = np.random.default_rng(1)


@pytest.mark.skipif(sys.platform != "linux", reason="the allocator is replaced by LD_PRELOAD")
def test_refused_allocations(tmp_path):
    done = refusals.run(Path(__file__), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > 100, "allocations were refused"


def extended_model():
    """Return a compiled model with one ScatterNDUpdate that adds, for inputs of any shape."""
    import ndscatter.openvino

    parameters = [opset15.parameter([-1, -1], kind) for kind in (np.float32, np.int64, np.float32)]
    model = ov.Model([opset15.scatter_nd_update(*parameters, "sum")], parameters)
    assert ndscatter.openvino.replace(model) == 1
    return ov.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 2})


def count_attempts(request, inputs, is_valid):
    """Make all attempts of an inference. Return their number."""
    output = ov.Tensor(np.zeros(inputs[0].shape, np.float32))
    request.set_output_tensor(0, output)

    def infer():
        output.data[:] = 9
        request.infer(inputs)

    count = 0
    for follow in (False, True):
        for number, _, raised in refusals.attempts(LIBRARY, infer, follow):
            count += 1
            if raised is None:
                assert is_valid and (output.data == inputs[0] + 1 + 1).all(), number
            else:
                assert isinstance(raised, RuntimeError) and (output.data == 9).all(), (number, raised)
    return count


def main():
    count = 0
    for rows in (6, 3000, 20_000):
        data, updates = RANDOM.random((rows, 8), np.float32), np.ones((2 * rows, 8), np.float32)
        indices = np.arange(rows).repeat(2)[:, None]
        wrong = np.append(indices[:-1], [[rows]], axis=0)
        count += count_attempts(MODEL.create_infer_request(), [data, indices, updates], True)
        count += count_attempts(MODEL.create_infer_request(), [data, wrong, updates], False)
    print(count)


if __name__ == "__main__":
    MODEL = extended_model()
    LIBRARY = refusals.watch("ndscatter_openvino")
    main()
