#!/usr/bin/env bash
# The tests from Python, against the newest onnxruntime that was tried and the oldest
# that is supported, each in an environment of its own under cargo's target folder, made
# once. Needs Python (3.11 or 3.12: the oldest has no wheel for later ones) and PyPI.
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

# The environment for a host: requirements of its own, made anew when they change.
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
