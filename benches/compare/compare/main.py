"""Builds the libraries, measures in child processes, and reports."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from . import backward, caches, machine, options, places, publish, report, rust_peers


def main(arguments: list[str]) -> int:
    chosen = options.parse(arguments)
    if chosen.scaling:
        return _scaling(is_published=chosen.publish is not None)
    if chosen.rust:
        return rust_peers.run(chosen)
    if chosen.backward:
        return _tables("backward", backward.markdown, chosen)
    if chosen.caches:
        return _tables("caches", caches.markdown, chosen)
    if chosen.publish is not None:
        importlib.import_module(".plots", __package__)  # without matplotlib, fails before the measurement
    folder = places.output()
    name = "brief" if chosen.brief else "results"
    stored = folder / f"{name}.json"
    if chosen.reuse:
        results = _earlier(stored)
    else:
        _build()
        earlier = json.loads(stored.read_text()) if chosen.append and stored.is_file() else None
        runs = [_measure(threads, chosen) for threads in chosen.threads]
        results = _merge(earlier, {"machine": machine.describe(), "runs": runs})
        stored.write_text(json.dumps(results, indent=1) + "\n")
    text = report.brief(results) if chosen.brief else report.markdown(results)
    (folder / f"{name}.md").write_text(text)
    print(text)
    written = [stored.name, f"{name}.md", *_drawn(results, folder, is_brief=chosen.brief)]
    print(f"written to {folder}: {', '.join(written)}", file=sys.stderr)
    if chosen.publish is not None:
        publish.publish(results, folder, chosen.publish)
    return 0


def _drawn(results: dict, folder: Path, is_brief: bool) -> list[str]:
    """Draws the plots, and returns the names of their files."""
    try:
        from . import plots
    except ImportError as error:
        print(f"No plot is drawn: {error}. Install matplotlib, and run with --reuse.", file=sys.stderr)
        return []
    return plots.draw_brief(results, folder) if is_brief else plots.draw(results, folder)


def _earlier(stored: Path) -> dict:
    """Returns the results of the last run."""
    if not stored.is_file():
        sys.exit(f"There is no earlier run: {stored} does not exist. Run without --reuse first.")
    return json.loads(stored.read_text())


def _cargo(*arguments: str | Path) -> None:
    subprocess.run(["cargo", *map(str, arguments)], cwd=places.ROOT, check=True)


def _build() -> None:
    """Builds both libraries into one target folder."""
    _cargo("build", "--release", "-p", "ndscatter-c")
    manifest = places.FOLDER / "native" / "Cargo.toml"
    _cargo("build", "--release", "--manifest-path", manifest, "--target-dir", places.target())


def _environment(threads: int) -> dict[str, str]:
    """Returns the environment of a child process. Runtimes read it when they are loaded."""
    number = str(threads)
    several = "true" if threads > 1 else "false"
    return {
        **os.environ,
        "PYTHONPATH": str(places.FOLDER),
        "NDSCATTER_LIBRARIES": str(places.target() / "release"),
        "RAYON_NUM_THREADS": number,
        "OMP_NUM_THREADS": number,
        "MKL_NUM_THREADS": number,
        "OPENBLAS_NUM_THREADS": number,
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={several}",
        "JAX_PLATFORMS": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }


def _tables(name: str, markdown: Callable[[dict], str], chosen: argparse.Namespace) -> int:
    """Measures with the module `name` of this package. Writes tables and no plots."""
    stored = places.output() / f"{name}.json"
    if not chosen.reuse:
        _build()
        runs = [_child(f"compare.{name}", threads, chosen) for threads in chosen.threads]
        stored.write_text(json.dumps({"machine": machine.describe(), "runs": runs}, indent=1) + "\n")
    results = _earlier(stored)
    text = markdown(results)
    (places.output() / f"{name}.md").write_text(text)
    print(text)
    if chosen.publish is not None:
        publish.publish_backward(results, text, chosen.publish)
    return 0


def _source() -> str:
    """Returns the measured commit, with the suffix "-dirty" if files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    found = subprocess.run(command, cwd=places.ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def _measure(threads: int, chosen: argparse.Namespace) -> dict:
    return _child("compare.child", threads, chosen)


def _child(module: str, threads: int, chosen: argparse.Namespace) -> dict:
    """Runs `module` in a separate process. Returns its results."""
    stored = places.output() / f"run-{threads}.json"
    arguments = {
        "threads": threads,
        "rounds": chosen.rounds,
        "only": chosen.only,
        "contenders": chosen.contenders,
        "forms": chosen.forms,
        "quick": chosen.quick,
        "then_sum": chosen.then_sum,
        "huge_pages": chosen.huge_pages,
        "source": _source(),
        "json": str(stored),
    }
    command = [sys.executable, "-m", module, json.dumps(arguments)]
    subprocess.run(command, env=_environment(threads), cwd=places.FOLDER, check=True)
    return json.loads(stored.read_text())


def _merge(earlier: dict | None, results: dict) -> dict:
    """Adds rows of earlier runs that this run did not measure. Each row is from one run, so its
    ratios stay valid."""
    before = {run["threads"]: run for run in (earlier or {}).get("runs", [])}
    for run in results["runs"]:
        old = before.pop(run["threads"], None)
        if old is None or old["quick"] != run["quick"]:
            continue
        new = {(row["workload"], row["form"]) for row in run["rows"]}
        run["rows"] += [row for row in old["rows"] if (row["workload"], row["form"]) not in new]
        run["versions"] = {**old["versions"], **run["versions"]}
    results["runs"] = sorted([*before.values(), *results["runs"]], key=lambda run: run["threads"])
    return results


def _scaling(is_published: bool) -> int:
    """Runs the bench `scaling` and draws its plots."""
    stored = places.output() / "scaling.json"
    _cargo("bench", "--bench", "scaling", "--", "--json", stored)
    spec = importlib.util.spec_from_file_location("scaling", places.FOLDER / "scaling.py")
    scaling = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scaling)
    drawn = scaling.draw(stored, places.output())
    if is_published:
        publish.plots(drawn)
    return 0
