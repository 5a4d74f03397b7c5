#!/usr/bin/env python3
"""Measures onnxruntime's scatter kernels and ndscatter's kernels in the same models.

    python adapters/onnxruntime/bench/run.py

The option `--help` prints the options. README.md describes them too.
"""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
# `ortbench` imports the workloads, the oracle and other modules from the package `compare` in
# benches/compare.
sys.path[:0] = [str(FOLDER), str(ROOT / "benches" / "compare")]

from ortbench.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
