"""Puts tables and plots into docs/."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import NamedTuple

from . import places, report


class _Page(NamedTuple):
    """A dated page of docs/notes/ that is made here."""

    name: str
    # Heading and introduction.
    start: str


_RUNTIMES = _Page(
    "runtimes",
    """\
# Beside the runtimes

`python3 benches/compare/run.py` runs ndscatter and the scatters of six runtimes in one process, on the same arrays, in turns, and
checks every result; [its page](../../benches/compare/README.md) says how, and what is fair. The figures are in
[results.json](../compare/{machine}/results.json).

![How many times the best correct peer's time is ndscatter's](../compare/{machine}/ratios.svg)

![Share of the roof](../compare/{machine}/roof.svg)
""",
)

_CRATES = _Page(
    "rust-crates",
    """\
# Beside other Rust crates

`python3 benches/compare/run.py --rust` runs ndscatter and the scatters of candle, tract, rten and burn in one program, in turns. They
are handed matrices and row numbers in memory of their own. The figures are in [rust.json](../compare/rust.json).
""",
)


_BACKWARD = _Page(
    "gradients",
    """\
# Forward passes with their gradients, beside torch and jax

`python3 benches/compare/run.py --backward` runs a forward pass and both gradients by ndscatter, torch's autograd and jax's compiled
`vjp` in one process, on the same arrays, in turns, and checks every result. Everyone allocates all results; of a sum the gradient for
data is that of the output, and torch and ndscatter hand it back. Milliseconds, minima over rounds; in brackets the call of a runtime
that was the fastest correct one. The ratio is the better one's time divided by ours.
""",
)


def publish(results: dict, made: Path, machine: str) -> None:
    """As the figures of a kind of machine, which has a folder and a page by its name."""
    assert not any(run["quick"] for run in results["runs"]), "small shapes are no figures to keep"
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
    print(f"{file}: its line in docs/notes/README.md and the headline in docs/performance.md are yours to write")
