#!/usr/bin/env python3
"""ndscatter beside the scatters of six runtimes. One command does it all:

    python3 benches/compare/run.py

This file makes a virtual environment with the pinned runtimes, once, and runs
the package `compare` inside it. Options: --help, and README.md.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

from compare import options, places


def environment() -> Path:
    """The interpreter of an environment that has what requirements.txt asks for."""
    requirements = FOLDER / "requirements.txt"
    folder = places.output() / "venv"
    python, stamp = folder / "bin" / "python", folder / "requirements.sha256"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    print(f"an environment with the runtimes is made in {folder}", file=sys.stderr)
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
        from compare.main import main as compare

        sys.exit(compare(sys.argv[1:]))
    python = environment()
    arguments = [python, FOLDER / "run.py", *sys.argv[1:], "--no-venv"]
    os.execv(python, list(map(str, arguments)))


if __name__ == "__main__":
    main()
