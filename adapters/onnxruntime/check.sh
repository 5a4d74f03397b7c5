#!/usr/bin/env bash
# Runs the Python tests with the newest tested onnxruntime and with the oldest supported
# onnxruntime. Each onnxruntime has a virtual environment in cargo's target folder. The
# environment is kept between runs. It is created if it is missing, and created again if
# its requirements file has changed. The script requires PyPI and Python 3.11 or 3.12: the
# oldest onnxruntime has no wheel for later versions of Python.
#
#   adapters/onnxruntime/check.sh [newest|oldest] [arguments of pytest]
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
tests=adapters/onnxruntime/tests
hosts=(newest oldest)
case ${1:-} in
newest | oldest)
    hosts=("$1")
    shift
    ;;
esac

# Creates the virtual environment `folder`, if it is missing or its requirements file changed.
environment() {
    local requirements=$1 folder=$2
    if ! cmp -s "$requirements" "$folder/requirements.txt"; then
        rm -rf "$folder"
        python3 -m venv "$folder"
        "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements"
        cp "$requirements" "$folder/requirements.txt"
    fi
}

cargo build --release -p ndscatter-onnxruntime
for host in "${hosts[@]}"; do
    requirements=$tests/requirements.txt
    [[ $host == newest ]] || requirements=$tests/requirements-oldest.txt
    folder=$target/onnxruntime/$host
    environment "$requirements" "$folder"
    printf '\n--- onnxruntime, %s\n' "$host"
    "$folder/bin/python" -m pytest -q -p no:cacheprovider "$tests" "$@"
done
