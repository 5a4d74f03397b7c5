"""Functions of all examples: options, interleaved measurements, tables and pictures."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import ndscatter

# Bytes above which a picture is saved with a palette, which reduces it to a third.
LARGE = 150_000

IS_NOTEBOOK = "ipykernel" in sys.modules
if not IS_NOTEBOOK:
    import matplotlib

    matplotlib.use("Agg")


class Contender(NamedTuple):
    """One of the functions that an example compares."""

    name: str
    call: Callable[[], Any]
    # Whether `call` runs under `ndscatter.torch.enable()`, which replaces PyTorch's kernels.
    is_enabled: bool = False


def options(title: str) -> argparse.Namespace:
    """Parse the options of an example: the folder of the picture, and small sizes for tests."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--out", type=Path, default="pictures", metavar="FOLDER", help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="small sizes, for tests")
    # The arguments of a notebook belong to its kernel.
    return parser.parse_args([] if IS_NOTEBOOK else None)


def find_torch() -> Any:
    """Return PyTorch if it is installed in a release that `ndscatter.torch` supports."""
    try:
        torch, switch = import_module("torch"), import_module("ndscatter.torch")
    except ImportError:
        print("torch is not installed: its rows are left out")
        return None
    if not torch.__version__.startswith(tuple(f"{release}." for release in switch.SUPPORTED)):
        print(f"ndscatter.torch does not support torch {torch.__version__}: its rows are left out")
        return None
    return torch


def under(contender: Contender) -> Any:
    """Return the context that a contender is called in."""
    return import_module("ndscatter.torch").enable() if contender.is_enabled else nullcontext()


def check(contenders: Sequence[Contender], is_right: Callable[[Any], bool]) -> None:
    """Call each contender once and check its result."""
    for contender in contenders:
        with under(contender):
            assert is_right(contender.call()), f"{contender.name}: the result differs"


def race(contenders: Sequence[Contender], rounds: int) -> dict[str, float]:
    """Return the shortest time of each contender in seconds. Each round calls every contender once."""
    best = {contender.name: float("inf") for contender in contenders}
    for _ in range(rounds):
        for contender in contenders:
            with under(contender):
                start = time.perf_counter()
                contender.call()
                elapsed = time.perf_counter() - start
            best[contender.name] = min(best[contender.name], elapsed)
    return best


def print_table(title: str, times: dict[str, float], per: int = 1, unit: str = "ms") -> None:
    """Print one line per contender: the time divided by `per`, and its ratio to the first one."""
    factor = {"ms": 1e3, "us": 1e6}[unit] / per
    width = max(map(len, (title, *times)))
    first = next(iter(times.values()))
    print(f"\n{title:{width}}  {unit:>8}   ratio")
    for name, seconds in times.items():
        print(f"{name:{width}}  {seconds * factor:8.2f}  {seconds / first:6.2f}")
    print(f"({ndscatter.threads()} threads, {ndscatter.instruction_set()})")


def finish(figure: Any, folder: Path, name: str) -> None:
    """Save a picture. In a notebook do nothing, as the notebook shows it under the cell."""
    if IS_NOTEBOOK:
        return
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=110, pil_kwargs={"optimize": True})
    if path.stat().st_size > LARGE:
        picture = Image.open(path).convert("RGB")
        picture.quantize(256, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)
    print(f"\npicture: {path}")
