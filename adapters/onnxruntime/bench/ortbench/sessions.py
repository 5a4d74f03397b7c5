"""Creates sessions with the built-in kernels or with ndscatter's kernels, and binds their inputs
and outputs.

This module contains the code that calls onnxruntime. It contains no code for timing.
"""

from __future__ import annotations

import ctypes
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnxruntime
from onnxruntime import OrtValue

BUILT_IN = "built-in"
NDSCATTER = "ndscatter"
BOTH = (BUILT_IN, NDSCATTER)


class Library:
    """ndscatter's library of custom operators. The library stays loaded in this process. Its
    counters therefore count the runs of all sessions together."""

    def __init__(self, path: Path):
        if not path.is_file():
            raise SystemExit(
                f"{path} is missing; run: cargo build --release -p ndscatter-onnxruntime"
            )
        self.path = str(path)
        self._loaded = ctypes.CDLL(self.path)

    def count(self, what: str) -> int:
        function = getattr(self._loaded, f"ndscatter_onnxruntime_{what}")
        function.restype = ctypes.c_uint64
        return function()


class Settings:
    """The settings that all sessions of the benchmark have in common."""

    def __init__(self, library: Library, threads: int, spinning: bool, told: bool):
        self.library = library
        self.threads = threads
        self.spinning = spinning
        self.told = told  # True: ndscatter's number of threads is configured; False: it is measured

    def session(self, kernels: str, model: bytes, profile: Path | None = None) -> Session:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        if not self.spinning:
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        if profile is not None:
            options.enable_profiling = True
            options.profile_file_prefix = str(profile / kernels)
        if kernels == NDSCATTER:
            if self.told:
                options.add_session_config_entry("ndscatter.threads", str(self.threads))
            options.register_custom_ops_library(self.library.path)
        providers = ["CPUExecutionProvider"]
        return Session(onnxruntime.InferenceSession(model, options, providers=providers))


class Session:
    """A session of onnxruntime with the number of its runs so far."""

    def __init__(self, session: onnxruntime.InferenceSession):
        self.session = session
        self.runs = 0

    def binding(self, inputs: Mapping[str, np.ndarray], output: np.ndarray) -> Binding:
        return Binding(self, inputs, output)

    def node_times(self) -> dict[str, list[float]]:
        """Ends profiling. Returns for each operator one time per execution of its kernel, in
        nanoseconds and in the order of the executions. The profile has a resolution of 1 µs."""
        file = Path(self.session.end_profiling())
        events = json.loads(file.read_text())
        file.unlink()
        times: dict[str, list[float]] = {}
        for event in events:
            if event.get("name", "").endswith("_kernel_time"):
                times.setdefault(event["args"]["op_name"], []).append(event["dur"] * 1e3)
        return times


class Binding:
    """Inputs and an output that are bound to a session once and used in many runs."""

    def __init__(self, session: Session, inputs: Mapping[str, np.ndarray], output: np.ndarray):
        self._owner = session
        self._run = session.session.run_with_iobinding
        self._bound = session.session.io_binding()
        for name, array in inputs.items():
            # The OrtValue uses the memory of the array and makes no copy. If an input array is also
            # `output`, the input and the output of the session therefore share one buffer.
            self._bound.bind_ortvalue_input(name, OrtValue.ortvalue_from_numpy(array))
        self._bound.bind_ortvalue_output("output", OrtValue.ortvalue_from_numpy(output))
        self.output = output

    def run(self) -> None:
        self._owner.runs += 1
        self._run(self._bound)

    def repeat(self, runs: int) -> None:
        self._owner.runs += runs
        run, bound = self._run, self._bound
        for _ in range(runs):
            run(bound)


def profiles() -> tempfile.TemporaryDirectory:
    """Creates a temporary folder for the profiles of sessions. Returns a context manager: `with`
    gives the path of the folder, and the folder is deleted at the end of the `with` block."""
    return tempfile.TemporaryDirectory(prefix="ortbench-")
