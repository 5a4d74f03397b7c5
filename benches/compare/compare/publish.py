"""Writes figures, tables and plots to docs/."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import NamedTuple

from . import places, report


class _Page(NamedTuple):
    """A dated page of docs/notes/: name in its file name, heading and introduction."""

    name: str
    start: str


_RUNTIMES = _Page(
    "runtimes",
    """\
# Compared with six runtimes

`python3 benches/compare/run.py` runs ndscatter and the scatters of six runtimes in one process, on the same arrays, interleaved. It
checks every result. [benches/compare](../../benches/compare/README.md) describes the method and the rules of fairness. The figures are in
[results.json](../compare/{machine}/results.json).

![Time of the best correct peer divided by the time of ndscatter](../compare/{machine}/ratios.svg)

![Minimum time to move the bytes divided by the time of ndscatter](../compare/{machine}/roof.svg)
""",
)

_CRATES = _Page(
    "rust-crates",
    """\
# Compared with other Rust crates

`python3 benches/compare/run.py --rust` runs ndscatter and the scatters of candle, tract, rten and burn in one program, interleaved. The
other crates get matrices and row numbers in memory that they have allocated. The figures are in [rust.json](../compare/rust.json).
""",
)


_BACKWARD = _Page(
    "gradients",
    """\
# Forward passes with their gradients, compared with torch and jax

`python3 benches/compare/run.py --backward` runs a forward pass and both gradients with ndscatter, torch's autograd and jax's compiled
`vjp`. All run in one process, on the same arrays, interleaved. Every result is checked. Each contender allocates all results. There is
one exception: the gradient of a sum for data is the gradient of the output, and torch and ndscatter return that tensor. Times are minima
over rounds in milliseconds. The fastest correct call of a runtime is in brackets. The ratio is the time of the faster peer divided by
the time of ndscatter.
""",
)


def publish(results: dict, made: Path, machine: str) -> None:
    """Publishes the figures of a kind of machine. `machine` names the folder and the page."""
    assert not any(run["quick"] for run in results["runs"]), "--quick figures cannot be published"
    plots([made / name for name in ["ratios.svg", "roof.svg"]], machine)
    _store(f"{machine}/results.json", results)
    page = _Page(f"{_RUNTIMES.name}-{machine}", _RUNTIMES.start.format(machine=machine))
    _put(page, report.markdown(results))


def publish_backward(results: dict, tables: str, machine: str) -> None:
    _store(f"{machine}/backward.json", results)
    _put(_Page(f"{_BACKWARD.name}-{machine}", _BACKWARD.start), tables)


def publish_crates(runs: list[dict], tables: str) -> None:
    _store("rust.json", {"runs": runs})
    _put(_CRATES, tables)


def plots(files: Iterable[Path], machine: str = "") -> None:
    for file in files:
        shutil.copyfile(file, _folder(machine) / file.name)


def _folder(machine: str = "") -> Path:
    folder = places.ROOT / "docs" / "compare" / machine
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _store(name: str, figures: dict) -> None:
    (_folder() / name).write_text(json.dumps(figures, indent=1) + "\n")


def _put(page: _Page, made: str) -> None:
    file = places.ROOT / "docs" / "notes" / f"{date.today()}-{page.name}.md"
    file.write_text(f"{page.start}\n{made}\n")
    print(f"written: {file}; add it to docs/notes/README.md, and run benches/compare/run.py --page")
