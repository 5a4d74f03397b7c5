"""Questions to the rows of results.json."""

from __future__ import annotations

from math import exp, log

from .words import FORMS, OURS, WRONG
from .workloads import WORKLOADS

# As many CPUs busy for someone else as make a row worth measuring again.
DISTURBING_CPUS = 0.1

ORDER = {workload.name: at for at, workload in enumerate(WORKLOADS)}


def peers(row: dict) -> dict[str, dict]:
    """Those that count: not ndscatter, and not wrong."""
    return {
        name: figures
        for name, figures in row["contenders"].items()
        if name != OURS and figures["status"] != WRONG
    }


def best_peer(row: dict) -> str | None:
    found = peers(row)
    return min(found, key=lambda name: found[name]["min"], default=None)


def ours(row: dict) -> dict | None:
    """Ours, if it is right; a ratio of a wrong result would say nothing."""
    own = row["contenders"].get(OURS)
    return own if own and own["status"] != WRONG else None


def ratio(row: dict) -> float | None:
    """How many times the best correct peer's time is ours."""
    name, own = best_peer(row), ours(row)
    return row["contenders"][name]["min"] / own["min"] if name and own else None


def share(row: dict) -> float | None:
    """The part of our time that the bytes to be moved take at the least."""
    own = ours(row)
    return row["roof"]["nanoseconds"] / own["min"] if own and "roof" in row else None


def disturbed(row: dict) -> bool:
    """Whether somebody else worked on the machine meanwhile."""
    return row.get("others", 0) > DISTURBING_CPUS


def rows(run: dict, kind: str, form: str | None = None) -> list[dict]:
    """In the order of the workloads, whatever order they were measured in."""
    found = [row for row in run["rows"] if row["kind"] == kind and form in (None, row["form"])]
    return sorted(found, key=lambda row: (ORDER[row["workload"]], FORMS.index(row["form"])))


def geometric_mean(values: list[float]) -> float:
    return exp(sum(map(log, values)) / len(values))
