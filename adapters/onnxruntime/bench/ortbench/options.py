"""The options of the command line."""

from __future__ import annotations

import argparse
from pathlib import Path

TABLES = "ABCD"


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _tables(text: str) -> str:
    chosen = text.upper().replace(",", "")
    if set(chosen) - set(TABLES):
        raise argparse.ArgumentTypeError(f"{text!r}; tables are {', '.join(TABLES)}")
    return chosen


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="run.py",
        description="Compares onnxruntime's scatter kernels with ndscatter's, in the same models",
    )
    parser.add_argument("--threads", type=int, default=2, help="intra-op threads of a session")
    parser.add_argument("--rounds", type=int, default=9, help="measurement rounds")
    parser.add_argument(
        "--again", type=int, default=0, help="maximum repetitions of a table of a busy row"
    )
    parser.add_argument("--only", type=_names, default=[], help="names of rows, separated by commas")
    parser.add_argument("--tables", type=_tables, default=TABLES, help="for example AB; default: all")
    parser.add_argument("--quick", action="store_true", help="small shapes, to test the harness")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--library", type=Path, help="default: in cargo's target/release")
    parser.add_argument(
        "--no-spinning", action="store_true", help="threads of sessions do not spin while they wait"
    )
    parser.add_argument(
        "--tell",
        action="store_true",
        help="set ndscatter.threads in the config of the session",
    )
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file too")
    return parser.parse_args(arguments)
