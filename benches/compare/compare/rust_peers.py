"""Compares ndscatter with other Rust crates. The program in `rust/` measures them, and `report`
formats its tables."""

from __future__ import annotations

import argparse
import json
import subprocess

from . import places, publish, report
from .measure import CALL_NS
from .words import OK, OURS, WRONG

_LEGEND = """\
- Times are minima over rounds in milliseconds. The median of ndscatter is in brackets.
- *Ratio*: the time of the best correct peer, in bold, divided by the time of ndscatter.
- –: the crate has no such call.
- *wrong*: the result does not have the bits of the sequential loop. It is never the best peer."""

_CALL_LEGEND = "Times are minima over rounds in nanoseconds per call."


def run(chosen: argparse.Namespace) -> int:
    runs = [_as_run(_measure(threads, chosen)) for threads in chosen.threads]
    text = report.tables(runs, _LEGEND, _CALL_LEGEND)
    folder = places.output()
    (folder / "rust.json").write_text(json.dumps({"runs": runs}, indent=1) + "\n")
    (folder / "rust.md").write_text(text)
    print(text)
    if chosen.publish is not None:
        publish.publish_crates(runs, text)
    return 0


def _measure(threads: int, chosen: argparse.Namespace) -> dict:
    stored = places.output() / f"rust-{threads}.json"
    manifest = places.FOLDER / "rust" / "Cargo.toml"
    command = ["cargo", "run", "--release", "--manifest-path", manifest, "--"]
    command += ["--threads", threads, "--rounds", chosen.rounds, "--json", stored]
    if chosen.only:
        command += ["--only", ",".join(chosen.only)]
    subprocess.run(list(map(str, command)), cwd=places.ROOT, check=True)
    return json.loads(stored.read_text())


def _as_run(measured: dict) -> dict:
    """Converts the output of the program to the format of results.json."""
    return {
        "threads": measured["threads"],
        "rounds": measured["rounds"],
        "quick": False,
        "versions": measured["contenders"],
        "left out": {},
        "rows": [_as_row(row) for row in measured["rows"]],
    }


def _as_row(row: dict) -> dict:
    contenders = {
        name: {**times, "status": WRONG if "wrong" in times else OK, "why": times.get("wrong", "")}
        for name, times in row["times"].items()
        if "left_out" not in times
    }
    right = [
        figures["min"]
        for name, figures in contenders.items()
        if name != OURS and figures["status"] == OK
    ]
    is_call = min(right, default=CALL_NS) < CALL_NS
    return {
        "workload": row["workload"],
        "form": row["form"],
        "kind": "call" if is_call else "throughput",
        "contenders": contenders,
    }
