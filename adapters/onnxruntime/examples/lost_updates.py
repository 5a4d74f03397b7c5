"""Counts four million random keys with ONNX Runtime's ScatterND, and checks the counts.

    pip install onnxruntime
    python adapters/onnxruntime/examples/lost_updates.py

Several threads of ONNX Runtime's kernel add to the same bin without synchronisation, so
updates can be lost. If the package `ndscatter` is installed (`pip install ./adapters/python`), the
script then runs the same model on the kernels of ndscatter.
"""

from __future__ import annotations

import base64
import os
import time

import numpy as np
import onnxruntime as ort

KEYS, BINS, RUNS = 4_000_000, 1024, 20

# The bytes of an ONNX model with one node: counts = ScatterND(data, indices, updates,
# reduction="add"), opset 18, int64. The model is embedded, so that the script does not require the
# package `onnx`.
MODEL = base64.b64decode(
    "CAg6tgEKQAoEZGF0YQoHaW5kaWNlcwoHdXBkYXRlcxIGY291bnRzIglTY2F0dGVyTkQqEwoJcmVkdWN0aW9uIgNhZGSg"
    "AQMSBmNvdW50c1oWCgRkYXRhEg4KDAgHEggKBhIEYmluc1odCgdpbmRpY2VzEhIKEAgHEgwKBhIEa2V5cwoCCAFaGQoH"
    "dXBkYXRlcxIOCgwIBxIICgYSBGtleXNiGAoGY291bnRzEg4KDAgHEggKBhIEYmluc0IECgAQEg=="
)


def count(name: str, options: ort.SessionOptions, threads: int) -> int:
    """Runs the model `RUNS` times. Prints and returns how many runs returned wrong counts."""
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"])
    keys = np.random.default_rng(0).integers(0, BINS, (KEYS, 1))
    feeds = {"data": np.zeros(BINS, np.int64), "indices": keys, "updates": np.ones(KEYS, np.int64)}
    expected = np.bincount(keys[:, 0], minlength=BINS)
    wrong, lost, times = 0, 0, []
    for _ in range(RUNS):
        start = time.perf_counter()
        (counts,) = session.run(None, feeds)
        times.append(time.perf_counter() - start)
        wrong += not np.array_equal(counts, expected)
        lost = max(lost, KEYS - int(counts.sum()))
    print(
        f"{name}, {threads} threads: {wrong} of {RUNS} runs wrong, up to {lost} of {KEYS} updates "
        f"lost, {min(times) * 1e3:.1f} ms"
    )
    return wrong


def main() -> None:
    threads = max(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)
    if count(f"onnxruntime {ort.__version__}", ort.SessionOptions(), threads) == 0:
        print("no update was lost; repeat on an idle machine with two or more cores")
    try:
        from ndscatter.onnxruntime import library_path
    except ImportError:
        print("ndscatter: not installed; run `pip install ./adapters/python` and repeat")
        return
    options = ort.SessionOptions()
    options.register_custom_ops_library(library_path())
    count("the same model on ndscatter", options, threads)


if __name__ == "__main__":
    main()
