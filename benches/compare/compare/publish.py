"""Puts tables and plots into docs/."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from . import places, report

BEGIN, END = "<!-- compare: begin -->", "<!-- compare: end -->"

# The section that this one follows.
_AFTER = "## End to end"

_SECTION = f"""\
## Beside the runtimes

`python3 benches/compare/run.py` runs ndscatter and the scatters of six runtimes in one process, on the same arrays, in turns, and
checks every result; [its page](../benches/compare/README.md) says how, and what is fair. The figures are in
[compare/results.json](compare/results.json).

![How many times the best correct peer's time is ndscatter's](compare/ratios.svg)

![Share of the roof](compare/roof.svg)

{BEGIN}
{END}

"""


def publish(results: dict, made: Path) -> None:
    assert not any(run["quick"] for run in results["runs"]), "small shapes are no figures to keep"
    folder = places.ROOT / "docs" / "compare"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ["ratios.svg", "roof.svg"]:
        shutil.copyfile(made / name, folder / name)
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    page = places.ROOT / "docs" / "performance.md"
    page.write_text(_with_table(page.read_text(), report.markdown(results)))


def _with_table(page: str, table: str) -> str:
    if BEGIN not in page:
        # Before the section that comes after that one.
        next_section = page.index("\n## ", page.index(_AFTER)) + 1
        page = page[:next_section] + _SECTION + page[next_section:]
    before, rest = page.split(BEGIN, 1)
    _, after = rest.split(END, 1)
    return f"{before}{BEGIN}\n\n{table}\n{END}{after}"
