"""Functions that the examples share: options, interleaved measurements, tables and pictures."""

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

# Largest number of bytes of a picture in full colour. A larger picture is saved again with a palette of
# 256 colours, which reduces its file to about a third.
LARGE = 150_000

IS_NOTEBOOK = "ipykernel" in sys.modules


class Contender(NamedTuple):
    """A function that an example measures, with its name."""

    name: str
    call: Callable[[], Any]
    # Whether `call` runs under `ndscatter.torch.enable()`, which replaces kernels of PyTorch.
    is_enabled: bool = False


def options(title: str) -> argparse.Namespace:
    """Parse the options of an example: `--out` (folder of the picture) and `--quick` (small sizes)."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--out", type=Path, default="pictures", metavar="FOLDER", help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="small sizes, for tests")
    # In a notebook, `sys.argv` has the arguments of the Jupyter kernel, so it is not parsed.
    return parser.parse_args([] if IS_NOTEBOOK else None)


def find_torch() -> Any:
    """Return the module `torch`, or None if it is missing or `ndscatter.torch` does not support it."""
    try:
        torch, switch = import_module("torch"), import_module("ndscatter.torch")
    except ImportError:
        print("torch is not installed: its rows are left out (pip install torch)")
        return None
    if not torch.__version__.startswith(tuple(f"{release}." for release in switch.SUPPORTED)):
        print(f"ndscatter.torch does not support torch {torch.__version__}: its rows are left out")
        return None
    return torch


def find_pyplot() -> Any:
    """Return the module `matplotlib.pyplot`.

    If matplotlib is missing, say how to install it and end the program. The picture is the last part of
    every example, so everything else has run.
    """
    try:
        if not IS_NOTEBOOK:
            import_module("matplotlib").use("Agg")
        return import_module("matplotlib.pyplot")
    except ImportError:
        print("\nno picture, because matplotlib is not installed: pip install matplotlib")
        raise SystemExit from None


def under(contender: Contender) -> Any:
    """Return the context manager for the call of a contender: `enable()` if `is_enabled` is true."""
    return import_module("ndscatter.torch").enable() if contender.is_enabled else nullcontext()


def check(contenders: Sequence[Contender], is_right: Callable[[Any], bool]) -> None:
    """Call each contender once, and check its result by `is_right`."""
    for contender in contenders:
        with under(contender):
            assert is_right(contender.call()), f"{contender.name}: the result differs"


def race(contenders: Sequence[Contender], rounds: int) -> dict[str, float]:
    """Return the shortest time of each contender over the rounds, in seconds.

    Each round calls every contender once, so the measurements are interleaved.
    """
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
    """Print one line per contender: its time divided by `per`, and a ratio.

    The ratio is the contender's time divided by the time of the first contender.
    """
    factor = {"ms": 1e3, "us": 1e6}[unit] / per
    width = max(map(len, (title, *times)))
    first = next(iter(times.values()))
    print(f"\n{title:{width}}  {unit:>8}   ratio")
    for name, seconds in times.items():
        print(f"{name:{width}}  {seconds * factor:8.2f}  {seconds / first:6.2f}")
    print(f"({ndscatter.threads()} threads, {ndscatter.instruction_set()})")


def finish(figure: Any, folder: Path, name: str) -> None:
    """Save a figure as a PNG file. In a notebook do nothing: the notebook shows the figure itself."""
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
