#!/usr/bin/env bash
# Runs the Python tests of the adapter with two versions of onnxruntime: the newest tested
# version and the oldest supported version.
#
# Each version has a virtual environment in cargo's target folder, which later runs of this
# script use again.
#
# The script requires access to PyPI, and Python 3.11 or 3.12. The oldest supported onnxruntime
# has no wheel for later versions of Python.
# With NDSCATTER_FULL=1, the tests include those that `pytest_selection.py` leaves out otherwise.
#
#   adapters/onnxruntime/check.sh [newest|oldest] [arguments of pytest]
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)
export PYTHONPYCACHEPREFIX=$target/pycache
tests=adapters/onnxruntime/tests
hosts=(newest oldest)
case ${1:-} in
newest | oldest)
    hosts=("$1")
    shift
    ;;
esac

adapters/libraries.sh
for host in "${hosts[@]}"; do
    requirements=$tests/requirements.txt
    [[ $host == newest ]] || requirements=$tests/requirements-oldest.txt
    folder=$target/onnxruntime/$host
    adapters/environment.sh "$folder" "$requirements"
    printf '\n--- onnxruntime, %s\n' "$host"
    "$folder/bin/python" -m pytest -q -p no:cacheprovider -n auto --maxprocesses 4 --dist worksteal "$tests" "$@"
done
