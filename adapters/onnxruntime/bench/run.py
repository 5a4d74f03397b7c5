#!/usr/bin/env python3
"""Compares onnxruntime's scatter kernels with ndscatter's kernels, in the same models.

    python adapters/onnxruntime/bench/run.py

`--help` and README.md describe the options.
"""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
# The workloads, the oracle and the clock come from the comparison with other runtimes.
sys.path[:0] = [str(FOLDER), str(ROOT / "benches" / "compare")]

from ortbench.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
