"""Measures all contenders in one process, which is limited to a number of CPUs.

    python -m compare.child '{"threads": 2, ...}'

The parent process sets the environment variables that runtimes read.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    options = json.loads(sys.argv[1])
    # Limit the CPUs before any runtime counts them.
    cpus = sorted(os.sched_getaffinity(0))[: options["threads"]]
    os.sched_setaffinity(0, cpus)

    from . import contenders
    from .measure import Measurement
    from .problem import Problem
    from .workloads import chosen

    threads = options["threads"]
    found, left_out = contenders.load(options["contenders"], threads)
    for name, why in left_out.items():
        print(f"{name} is not measured: {why}", file=sys.stderr)
    workloads = chosen(options["only"], options["quick"])
    run = {
        "threads": threads,
        "rounds": options["rounds"],
        "quick": options["quick"],
        "versions": {contender.name: contender.version for contender in found},
        "left out": left_out,
        "rows": [],
    }
    for number, workload in enumerate(workloads, 1):
        print(f"{threads} threads, {workload.name} ({number} of {len(workloads)})", file=sys.stderr)
        problem = Problem(workload, options["huge_pages"])
        measurement = Measurement(problem, found, options["rounds"], options["quick"])
        rows = measurement.rows(options["forms"], options["then_sum"])
        run["rows"] += [{**row, "source": options["source"]} for row in rows]
        with open(options["json"], "w") as file:
            json.dump(run, file, indent=1)


if __name__ == "__main__":
    main()
