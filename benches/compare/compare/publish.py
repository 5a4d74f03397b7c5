"""Puts tables and plots into docs/."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from . import places, report


class _Section(NamedTuple):
    """A section of docs/performance.md of which a part is made here."""

    name: str
    # The heading of the section that this one follows.
    after: str
    # Heading and introduction.
    start: str

    @property
    def begin(self) -> str:
        return f"<!-- {self.name}: begin -->"

    @property
    def end(self) -> str:
        return f"<!-- {self.name}: end -->"


_RUNTIMES = _Section(
    "compare",
    "## End to end",
    """\
## Beside the runtimes

`python3 benches/compare/run.py` runs ndscatter and the scatters of six runtimes in one process, on the same arrays, in turns, and
checks every result; [its page](../benches/compare/README.md) says how, and what is fair. The figures are in
[compare/results.json](compare/results.json).

![How many times the best correct peer's time is ndscatter's](compare/ratios.svg)

![Share of the roof](compare/roof.svg)
""",
)

_CRATES = _Section(
    "rust",
    _RUNTIMES.start.splitlines()[0],
    """\
## Beside other Rust crates

`python3 benches/compare/run.py --rust` runs ndscatter and the scatters of candle, tract, rten and burn in one program, in turns. They
are handed matrices and row numbers in memory of their own. The figures are in [compare/rust.json](compare/rust.json).
""",
)


def publish(results: dict, made: Path) -> None:
    assert not any(run["quick"] for run in results["runs"]), "small shapes are no figures to keep"
    plots([made / name for name in ["ratios.svg", "roof.svg"]])
    _store("results.json", results)
    _put(_RUNTIMES, report.markdown(results))


def publish_crates(runs: list[dict], tables: str) -> None:
    _store("rust.json", {"runs": runs})
    _put(_CRATES, tables)


def plots(files: Iterable[Path]) -> None:
    for file in files:
        shutil.copyfile(file, _folder() / file.name)


def _folder() -> Path:
    folder = places.ROOT / "docs" / "compare"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _store(name: str, figures: dict) -> None:
    (_folder() / name).write_text(json.dumps(figures, indent=1) + "\n")


def _put(section: _Section, made: str) -> None:
    page = places.ROOT / "docs" / "performance.md"
    page.write_text(_with_part(page.read_text(), section, made))


def _with_part(page: str, section: _Section, made: str) -> str:
    if section.begin not in page:
        # Before the section that comes after that one.
        next_section = page.index("\n## ", page.index(section.after)) + 1
        new = f"{section.start}\n{section.begin}\n{section.end}\n\n"
        page = page[:next_section] + new + page[next_section:]
    before, rest = page.split(section.begin, 1)
    _, after = rest.split(section.end, 1)
    return f"{before}{section.begin}\n\n{made}\n{section.end}{after}"
