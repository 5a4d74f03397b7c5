"""Paths of the project and of the output."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent
ROOT = FOLDER.parent.parent


def target() -> Path:
    """Returns cargo's target folder."""
    return (ROOT / os.environ.get("CARGO_TARGET_DIR", "target")).resolve()


def output() -> Path:
    """Returns the folder of all output of the comparison, and creates it."""
    folder = target() / "compare"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
