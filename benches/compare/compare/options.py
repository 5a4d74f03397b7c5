"""Parses the command line. Needs only the standard library."""

from __future__ import annotations

import argparse
import os

CONTENDERS = ["ndscatter", "onnxruntime", "openvino", "torch", "jax", "tensorflow", "numpy"]


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="run.py", description="compares ndscatter with the scatters of six runtimes"
    )
    cores = len(os.sched_getaffinity(0))
    add = parser.add_argument
    add(
        "--threads",
        type=_numbers,
        default=sorted({1, cores}),
        metavar="N,N",
        help="numbers of threads, each measured in a separate process (default: 1 and one per core)",
    )
    add("--rounds", type=int, default=9, metavar="N", help="samples of every contender (default: 9)")
    add("--only", type=_names, metavar="A,B", help="measure only these workloads")
    add(
        "--contenders",
        type=_contenders,
        default=CONTENDERS,
        metavar="A,B",
        help=f"measure only these contenders, of {','.join(CONTENDERS)}",
    )
    add("--quick", action="store_true", help="small shapes, to test the harness; do not use the figures")
    add("--then-sum", action="store_true", help="also time calls together with a sum over the output")
    add("--huge-pages", action="store_true", help="request huge pages for the shared arrays")
    add("--append", action="store_true", help="keep rows of earlier runs that this run does not measure")
    add("--reuse", action="store_true", help="measure nothing; report the last run again")
    add(
        "--publish",
        nargs="?",
        const="",
        metavar="MACHINE",
        help="write figures, tables and plots to docs/; MACHINE names the kind of machine",
    )
    add("--rust", action="store_true", help="measure other Rust crates instead")
    add("--backward", action="store_true", help="measure forward passes with their gradients instead")
    add("--caches", action="store_true", help="measure writes into caches of inference servers instead")
    add("--scaling", action="store_true", help="measure ndscatter with growing work instead, and draw plots")
    add(
        "--page",
        action="store_true",
        help="measure nothing; write the tables of docs/performance.md from recorded figures",
    )
    add("--check", action="store_true", help="with --page: fail if a table differs from the figures")
    add("--no-venv", action="store_true", help="use this interpreter without a virtual environment")
    options = parser.parse_args(arguments)
    if max(options.threads) > cores:
        parser.error(f"--threads is {max(options.threads)}, and there are {cores} CPUs; use at most {cores}")
    if options.rounds < 1:
        parser.error(f"--rounds is {options.rounds}; use at least 1")
    if options.check and not options.page:
        parser.error("--check needs --page")
    if options.publish is not None and options.quick:
        parser.error("figures of --quick cannot be published; omit --quick or --publish")
    if options.publish is not None and options.caches:
        parser.error("--caches has no page to publish; omit --publish")
    if options.publish == "" and not (options.rust or options.scaling):
        parser.error("--publish needs the name of a kind of machine, such as zen-4")
    return options


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _numbers(text: str) -> list[int]:
    numbers = sorted({int(name) for name in _names(text)})
    if not numbers or numbers[0] < 1:
        raise argparse.ArgumentTypeError("use numbers of threads of at least 1")
    return numbers


def _contenders(text: str) -> list[str]:
    names = _names(text)
    unknown = set(names) - set(CONTENDERS)
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown contender: {', '.join(sorted(unknown))}")
    return names
