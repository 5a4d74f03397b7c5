#!/usr/bin/env python3
"""Compares ndscatter with the scatters of six runtimes.

    python3 benches/compare/run.py

Makes a virtual environment with the pinned runtimes, once, and runs the package `compare` in it.
README.md and --help describe the options.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import venv
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

from compare import options, places


def environment() -> Path:
    """Makes a virtual environment with the versions of requirements.txt. Returns its interpreter."""
    requirements = FOLDER / "requirements.txt"
    folder = places.output() / "venv"
    python, stamp = folder / "bin" / "python", folder / "requirements.sha256"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    print(f"making a virtual environment with the runtimes in {folder}", file=sys.stderr)
    venv.create(folder, clear=True, with_pip=True)
    install = [python, "-m", "pip", "install", "--quiet", "--requirement", requirements]
    subprocess.run(install, check=True)
    stamp.write_text(wanted)
    return python


def main() -> None:
    chosen = options.parse(sys.argv[1:])
    if chosen.page:
        from compare import page

        sys.exit(page.write(is_checked=chosen.check))
    if chosen.no_venv:
        if importlib.util.find_spec("numpy") is None:
            sys.exit(f"{sys.executable} has no numpy. Install it: {sys.executable} -m pip install numpy")
        from compare.main import main as compare

        sys.exit(compare(sys.argv[1:]))
    python = environment()
    arguments = [python, FOLDER / "run.py", *sys.argv[1:], "--no-venv"]
    os.execv(python, list(map(str, arguments)))


if __name__ == "__main__":
    main()
