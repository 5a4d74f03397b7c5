"""Parses the command line. Needs only the standard library."""

from __future__ import annotations

import argparse
import os
import textwrap

from .words import FORMS, IN_PLACE
from .workloads import BRIEF, CACHE_CASES, WORKLOADS

CONTENDERS = ["ndscatter", "onnxruntime", "openvino", "torch", "jax", "tensorflow", "numpy"]


_COSTS = """\
A run of all workloads takes more than an hour on two cores, about 8 GiB of memory, and several gigabytes
of disk for the runtimes, which are installed once into a virtual environment. --brief takes about two
minutes, and uses the runtimes that are installed already."""


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="run.py",
        description=f"compares ndscatter with the scatters of six runtimes\n\n{_COSTS}",
        epilog=_listed("workloads", WORKLOADS) + "\n\n" + _listed("cases of --caches", CACHE_CASES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cores = len(os.sched_getaffinity(0))
    add = parser.add_argument
    add(
        "--threads",
        type=_numbers,
        metavar="N,N",
        help="numbers of threads, each measured in a separate process (default: 1 and one per core)",
    )
    add("--rounds", type=_number, metavar="N", help="samples of every contender (default: 9)")
    add("--only", type=_names, metavar="A,B", help="measure only these workloads (listed below)")
    add(
        "--brief",
        action="store_true",
        help="measure eight workloads in place, in about two minutes, with the runtimes that are "
        "installed; write one table and one picture",
    )
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
    _complete(options, cores)
    known = [each.name for each in (CACHE_CASES if options.caches else WORKLOADS)]
    unknown = sorted(set(options.only or ()) - set(known))
    if unknown:
        parser.error(f"unknown workload: {', '.join(unknown)}; --help lists the workloads")
    others = [name for name in ("caches", "backward", "rust", "scaling", "page") if getattr(options, name)]
    if options.brief and (others or options.publish is not None or options.append):
        parser.error("--brief has no other mode and nothing to publish; omit the other option")
    if max(options.threads) > cores:
        parser.error(f"--threads is {max(options.threads)}, and there are {cores} CPUs; use at most {cores}")
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


def _complete(options: argparse.Namespace, cores: int) -> None:
    """Sets the options that the caller has omitted."""
    options.forms = [IN_PLACE] if options.brief else FORMS
    if options.brief:
        options.no_venv = True
        options.only = options.only or list(BRIEF)
    options.threads = options.threads or ([cores] if options.brief else sorted({1, cores}))
    options.rounds = options.rounds or (3 if options.brief else 9)


def _listed(title: str, named: list) -> str:
    """Returns the names of workloads, in lines of at most 100 characters."""
    return "\n".join([f"{title}:", *textwrap.wrap(", ".join(each.name for each in named), 100)])


def _number(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def _numbers(text: str) -> list[int]:
    return sorted({_number(name) for name in _names(text)} or {_number(text)})


def _contenders(text: str) -> list[str]:
    names = _names(text)
    unknown = set(names) - set(CONTENDERS)
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown contender: {', '.join(sorted(unknown))}")
    return names
