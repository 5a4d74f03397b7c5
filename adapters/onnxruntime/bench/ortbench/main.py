"""The command of the benchmark: reads its options, measures the rows of the result tables, and
writes the tables."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import onnxruntime
from compare import machine, places

from . import cases, options, report, rows
from .measure import measure
from .sessions import Library, Settings


def main(arguments: list[str]) -> int:
    wanted = options.parse(arguments)
    if wanted.list:
        print("\n".join(rows.names()))
        return 0
    chosen = rows.chosen(wanted.only, wanted.quick)
    _limit(wanted.threads)
    library = Library(wanted.library or _library())
    settings = Settings(library, wanted.threads, not wanted.no_spinning, wanted.tell)
    results = {
        "onnxruntime": onnxruntime.__version__,
        "commit": _commit(),
        "machine": machine.sentence(machine.describe()),
        "threads": wanted.threads,
        "rounds": wanted.rounds,
        "spinning": settings.spinning,
        "told": settings.told,
        "quick": wanted.quick,
        "rows": [],
    }
    for number, row in enumerate(chosen, 1):
        print(f"{number}/{len(chosen)} {row.name}", file=sys.stderr, flush=True)
        if not _has_table(row, wanted.tables):
            continue
        case = cases.build(row)
        found = measure(case, settings, wanted.rounds, wanted.tables, wanted.again)
        results["rows"].append(found)
        del case
        gc.collect()
        # Writes the figures of all finished rows to the output files after each row. A failure of a
        # later row then does not lose them.
        _write(wanted, results)
    text = report.tables(results)
    print(text)
    return 0


def _has_table(row: rows.Row, tables: str) -> bool:
    return "C" in tables if row.small else bool(set(tables) & set("ABD"))


def _write(wanted, results: dict) -> None:
    if wanted.json:
        wanted.json.write_text(json.dumps(results, indent=1) + "\n")
    if wanted.markdown:
        wanted.markdown.write_text(report.tables(results))


def _limit(threads: int) -> None:
    """Limits the process to `threads` CPUs. Call this function before the first session, so that
    onnxruntime and ndscatter count only these CPUs."""
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cpus[:threads])


def _library() -> Path:
    return places.target() / "release" / "libndscatter_onnxruntime.so"


def _commit() -> str:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(places.ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    return git("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")
