#!/usr/bin/env python3
"""onnxruntime's scatter kernels beside ndscatter's, in the same models:

    python adapters/onnxruntime/bench/run.py

Options: --help, and README.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
# Workloads, oracle and clock are those of the comparison with other runtimes.
sys.path[:0] = [str(FOLDER), str(ROOT / "benches" / "compare")]

from ortbench.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
