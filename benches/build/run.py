#!/usr/bin/env python3
"""Measures the build of a program that depends on ndscatter, for several sets of features.

    python3 benches/build/run.py [--features SET ...] [--profile debug release] [--rounds N] [--package]

The program adds rows to a table: one operator, one element type. Each build starts from an empty target
folder, without a network. The script prints one line for each set of features and each profile:

- units: compilations of a crate or a build script, and runs of a build script
- CPU s: seconds of processor time of cargo and its child processes, the least of all rounds
- wall s: seconds until the program is built, the least of all rounds
- KiB: size of the program. `stripped` is the size without symbols.

The script runs the program before it prints a line, and stops if the result of the scatter is wrong. A set of
features is a list such as `half,gradients`, or `none`. With `--package`, the program depends on the crate as
`cargo package` has packed it, and not on the repository.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

MANIFEST = """\
[package]
name = "hello"
version = "0.0.0"
edition = "2024"

[dependencies]
ndscatter = {{ path = {path}, features = {features} }}

[workspace]
"""

PROGRAM = """\
use ndscatter::{Reduction, Scatter, ScatterError, TensorView, TensorViewMut};

fn main() -> Result<(), ScatterError> {
    let (mut table, rows) = (vec![0.0_f32; 6], [0_i64, 2, 2]);
    let updates = [1.0, 1.0, 2.0, 2.0, 3.0, 3.0];
    let table_view = TensorViewMut::contiguous(&mut table, &[3, 2])?;
    let updates_view = TensorView::contiguous(&updates, &[3, 2])?;
    Scatter::along(0).reduction(Reduction::Add).in_place(table_view, TensorView::from(&rows), updates_view)?;
    println!("{table:?}");
    Ok(())
}
"""

EXPECTED = "[1.0, 1.0, 0.0, 0.0, 5.0, 5.0]"


def manifest(features: str, crate: Path) -> str:
    """Returns the manifest of a program that enables a set of features of the crate in a folder."""
    names = [] if features == "none" else features.split(",")
    return MANIFEST.format(path=json.dumps(str(crate)), features=json.dumps(names))


def unpack(folder: Path) -> Path:
    """Unpacks the newest packed crate of cargo's target folder. Returns the folder of the crate."""
    packed = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "package"
    file = max(packed.glob("ndscatter-[0-9]*.crate"), key=lambda path: path.stat().st_mtime, default=None)
    if file is None:
        sys.exit(f"no packed crate in {packed}; run: cargo package -p ndscatter --no-verify")
    shutil.unpack_archive(file, folder, "gztar")
    return folder / file.stem


def build(folder: Path, profile: str) -> tuple[int, float, float]:
    """Builds the program in an empty target folder. Returns units, CPU seconds and wall seconds."""
    shutil.rmtree(folder / "target", ignore_errors=True)
    command = ["cargo", "build", "--offline", "--quiet", "--message-format=json"]
    command += ["--release"] if profile == "release" else []
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("CARGO_", "RUSTFLAGS"))}
    if "CARGO_HOME" in os.environ:
        variables["CARGO_HOME"] = os.environ["CARGO_HOME"]
    before, start = os.times(), time.monotonic()
    built = subprocess.run(command, cwd=folder, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    wall, after = time.monotonic() - start, os.times()
    reasons = [json.loads(line)["reason"] for line in built.stdout.splitlines()]
    units = sum(reason in ("compiler-artifact", "build-script-executed") for reason in reasons)
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return units, cpu, wall


def sizes(program: Path) -> tuple[int, int]:
    """Returns the sizes of a program with and without symbols, in bytes."""
    stripped = program.with_suffix(".stripped")
    subprocess.run(["strip", "-o", stripped, program], check=True)
    return program.stat().st_size, stripped.stat().st_size


def measure(features: str, profile: str, rounds: int, package: bool) -> str:
    """Measures one set of features. Returns a line of the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        crate = unpack(folder) if package else ROOT
        (folder / "src").mkdir()
        (folder / "src/main.rs").write_text(PROGRAM)
        (folder / "Cargo.toml").write_text(manifest(features, crate))
        # The program uses the versions of dependencies that this repository uses.
        if (ROOT / "Cargo.lock").exists():
            shutil.copy(ROOT / "Cargo.lock", folder)
        subprocess.run(["cargo", "metadata", "--quiet", "--format-version=1"], cwd=folder, stdout=subprocess.DEVNULL, check=True)
        subprocess.run(["cargo", "fetch", "--quiet"], cwd=folder, check=True)
        results = [build(folder, profile) for _ in range(rounds)]
        program = folder / "target" / profile / "hello"
        printed = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        if printed != EXPECTED:
            sys.exit(f"{features}, {profile}: the program printed {printed}, not {EXPECTED}")
        size, stripped = sizes(program)
    units = results[0][0]
    cpu, wall = (min(result[position] for result in results) for position in (1, 2))
    return f"| `{features}` | {profile} | {units} | {cpu:.1f} | {wall:.1f} | {size >> 10} | {stripped >> 10} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", nargs="+", default=["none"], metavar="SET")
    parser.add_argument("--profile", nargs="+", default=["debug", "release"], choices=["debug", "release"])
    parser.add_argument("--rounds", type=int, default=1, metavar="N")
    parser.add_argument("--package", action="store_true", help="use the crate as `cargo package` has packed it")
    args = parser.parse_args()
    print("| features | profile | units | CPU s | wall s | KiB | KiB stripped |\n|---|---|---|---|---|---|---|")
    for features in args.features:
        for profile in args.profile:
            print(measure(features, profile, args.rounds, args.package), flush=True)


if __name__ == "__main__":
    main()
