"""Build the native kernels for the installed PyTorch, or print whether they are built.

    python -m ndscatter.torch           # which kernels `ndscatter.torch.enable` uses
    python -m ndscatter.torch build     # compiles the native kernels
"""

from __future__ import annotations

import argparse
import sys

import torch

from . import _library, _switch


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m ndscatter.torch",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", nargs="?", choices=["build"])
    command = parser.parse_args().command
    try:
        _switch.connect()
        path = _library.build() if command else _library.find()
        if path:
            _library.load()
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        if isinstance(error, _library.BuildError):
            print("enable() uses kernels that are Python functions", file=sys.stderr)
        return 1
    print(f"PyTorch {torch.__version__}")
    if path:
        print(f"enable() uses native kernels: {path}")
    else:
        print(f"enable() uses kernels that are Python functions; for native kernels, run `{_library.COMMAND}`")
    return 0


if __name__ == "__main__":
    sys.exit(main())
