"""Describes the machine, and measures the load of other processes."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path


def describe() -> dict:
    return {
        "cpu": _first("/proc/cpuinfo", "model name"),
        "cpus": len(os.sched_getaffinity(0)),
        "caches": _caches(),
        "memory": f"{int(_first('/proc/meminfo', 'MemTotal').split()[0]) / 2**20:.0f} GiB",
        "page": f"{os.sysconf('SC_PAGE_SIZE') // 1024} KiB",
        "huge pages": _selected("/sys/kernel/mm/transparent_hugepage/enabled"),
        "kernel": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
    }


def sentence(machine: dict) -> str:
    caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    return (
        f"{machine['cpu']}, {machine['cpus']} CPUs, {caches}; {machine['memory']} of memory; "
        f"pages of {machine['page']} (huge pages: {machine['huge pages']}); "
        f"{machine['kernel']}; Python {machine['python']}."
    )


class Others:
    """Load of other processes and of other guests of the host, in CPUs, since creation."""

    def __init__(self):
        self.start = time.monotonic(), self._busy()

    @staticmethod
    def _busy() -> float:
        """Returns the seconds of CPU time of everything except this process."""
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields)
        ticks = user + nice + system + irq + softirq + steal
        return ticks / os.sysconf("SC_CLK_TCK") - time.process_time()

    def cpus(self) -> float:
        began, busy = self.start
        return max((self._busy() - busy) / max(time.monotonic() - began, 1e-9), 0)


def _first(path: str, key: str) -> str:
    for line in Path(path).read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return "unknown"


def _selected(path: str) -> str:
    """Returns the word in brackets of a file such as `always [madvise] never`."""
    try:
        return Path(path).read_text().split("[")[1].split("]")[0]
    except OSError:
        return "unknown"


def _caches() -> dict[str, str]:
    """Returns the sizes of the caches of the first CPU."""
    found = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (
            (index / name).read_text().strip() for name in ("level", "type", "size")
        )
        if kind != "Instruction":
            found[f"L{level}"] = size
    return found
