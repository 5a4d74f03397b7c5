"""Queries the rows of results.json."""

from __future__ import annotations

from math import exp, log

from .words import FORMS, OURS, WRONG
from .workloads import WORKLOADS

# Load of other processes, in CPUs, from which on a row should be measured again.
DISTURBING_CPUS = 0.1

ORDER = {workload.name: at for at, workload in enumerate(WORKLOADS)}


def peers(row: dict) -> dict[str, dict]:
    """Returns the figures of the correct peers, without ndscatter."""
    return {
        name: figures
        for name, figures in row["contenders"].items()
        if name != OURS and figures["status"] != WRONG
    }


def best_peer(row: dict) -> str | None:
    found = peers(row)
    return min(found, key=lambda name: found[name]["min"], default=None)


def ours(row: dict) -> dict | None:
    """Returns the figures of ndscatter, or None if its result is wrong."""
    own = row["contenders"].get(OURS)
    return own if own and own["status"] != WRONG else None


def ratio(row: dict) -> float | None:
    """Returns the time of the best correct peer divided by the time of ndscatter."""
    name, own = best_peer(row), ours(row)
    return row["contenders"][name]["min"] / own["min"] if name and own else None


def share(row: dict) -> float | None:
    """Returns the minimum time to move the bytes divided by the time of ndscatter."""
    own = ours(row)
    return row["roof"]["nanoseconds"] / own["min"] if own and "roof" in row else None


def disturbed(row: dict) -> bool:
    """Whether other processes used the CPUs during the measurement."""
    return row.get("others", 0) > DISTURBING_CPUS


def rows(run: dict, kind: str, form: str | None = None) -> list[dict]:
    """Returns the rows of a kind and a form, in the order of the workloads."""
    found = [row for row in run["rows"] if row["kind"] == kind and form in (None, row["form"])]
    return sorted(found, key=lambda row: (ORDER[row["workload"]], FORMS.index(row["form"])))


def geometric_mean(values: list[float]) -> float:
    return exp(sum(map(log, values)) / len(values))
