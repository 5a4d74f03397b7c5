"""Runs calls in which memory allocations of one shared library fail (see refuse.cpp).

`run` starts a process that can call the other functions. A test file starts itself this way.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Largest number of allocations that a tested call may make.
MOST = 300


def run(script: Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Compile refuse.cpp into a folder, and run the script with it and with these environment variables."""
    library = folder / "refuse.so"
    source = Path(__file__).with_name("refuse.cpp")
    subprocess.run(["c++", "-O1", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    environment = {**os.environ, **variables, "LD_PRELOAD": str(library)}
    return subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=120)


def watch(library: str) -> ctypes.CDLL:
    """Make allocations of the loaded library fail whose path contains this text."""
    refusals = ctypes.CDLL(None)
    assert refusals.refusals_watch(library.encode()) == 1, f"no library {library} is loaded"
    return refusals


def attempts(refusals: ctypes.CDLL, call: Callable[[], Any], follow: bool) -> Iterator[tuple[int, Any, Exception | None]]:
    """Make the call once for each of its allocations, which fails, and with `follow` also all later allocations of the
    call. Yield the number of the allocation, and the result or the exception. The caller has made the call once."""
    _wait_for_threads()
    for number in range(1, MOST):
        result, raised = None, None
        refusals.refusals_start(number, follow)
        try:
            result = call()
        except Exception as error:
            raised = error
        if refusals.refusals_stop() == 0:
            return
        yield number, result, raised
    raise AssertionError(f"a call makes more than {MOST} allocations")


def _wait_for_threads() -> None:
    """Wait until all other threads sleep. A new thread of rayon makes allocations that cannot fail, and runs late if the
    machine is busy."""
    others = [task for task in Path("/proc/self/task").iterdir() if task.name != str(threading.get_native_id())]
    end, asleep = time.monotonic() + 10, 0
    while asleep < 3 and time.monotonic() < end:
        asleep = asleep + 1 if all(map(_is_asleep, others)) else 0
        time.sleep(0.002)


def _is_asleep(task: Path) -> bool:
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0] == "S"
    except OSError:
        return True  # The thread has ended.
