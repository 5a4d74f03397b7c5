"""The command line. Needs nothing but Python itself."""

from __future__ import annotations

import argparse
import os

CONTENDERS = ["ndscatter", "onnxruntime", "openvino", "torch", "jax", "tensorflow", "numpy"]


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="run.py", description="ndscatter beside the scatters of six runtimes"
    )
    cores = len(os.sched_getaffinity(0))
    add = parser.add_argument
    add(
        "--threads",
        type=_numbers,
        default=sorted({1, cores}),
        metavar="N,N",
        help="thread counts, each measured in a process of its own (default: 1 and one a core)",
    )
    add("--rounds", type=int, default=9, metavar="N", help="turns of every contender (default: 9)")
    add("--only", type=_names, metavar="A,B", help="these workloads")
    add(
        "--contenders",
        type=_contenders,
        default=CONTENDERS,
        metavar="A,B",
        help=f"these contenders, of {','.join(CONTENDERS)}",
    )
    add("--quick", action="store_true", help="small shapes, to try the harness; no figures to keep")
    add("--then-sum", action="store_true", help="also with a sum over the output afterwards")
    add("--huge-pages", action="store_true", help="ask for huge pages for the shared arrays")
    add("--append", action="store_true", help="keep rows of earlier runs that this one has not")
    add("--reuse", action="store_true", help="measure nothing: report what the last run found")
    add(
        "--publish",
        nargs="?",
        const="",
        metavar="MACHINE",
        help="put tables and plots into docs/; those beside the runtimes by a kind of machine",
    )
    add("--rust", action="store_true", help="instead: the Rust crates that scatter")
    add("--backward", action="store_true", help="instead: forward passes with their gradients")
    add("--scaling", action="store_true", help="instead: ndscatter as work grows, drawn")
    add(
        "--page",
        action="store_true",
        help="instead: write the tables of docs/performance.md from recorded figures",
    )
    add("--check", action="store_true", help="with --page: fail if a table differs from the figures")
    add("--no-venv", action="store_true", help="use this interpreter as it is")
    options = parser.parse_args(arguments)
    if max(options.threads) > cores:
        parser.error(f"--threads: there are {cores} CPUs")
    if options.rounds < 1:
        parser.error("--rounds: at least one")
    if options.check and not options.page:
        parser.error("--check: only with --page")
    if options.publish is not None and options.quick:
        parser.error("--quick measures nothing that could be published")
    if options.publish == "" and not (options.rust or options.scaling):
        parser.error("--publish: as the figures of which kind of machine?")
    return options


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _numbers(text: str) -> list[int]:
    numbers = sorted({int(name) for name in _names(text)})
    if not numbers or numbers[0] < 1:
        raise argparse.ArgumentTypeError("numbers of threads, at least one")
    return numbers


def _contenders(text: str) -> list[str]:
    names = _names(text)
    unknown = set(names) - set(CONTENDERS)
    if unknown:
        raise argparse.ArgumentTypeError(f"no contender is called {', '.join(sorted(unknown))}")
    return names
