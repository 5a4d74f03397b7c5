#!/usr/bin/env bash
# The tests of the Python package, in an environment of its own under cargo's target
# folder, made once: those of numpy's arrays, or with `hosts` those of torch, JAX and ONNX
# Runtime as well, which are some gigabytes. Needs Rust, Python 3.11 or newer and PyPI.
#
#   adapters/python/check.sh [hosts] [arguments of pytest]
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
cd "$(dirname "$0")"

target=${CARGO_TARGET_DIR:-../../target}
mkdir -p "$target/python"
target=$(cd "$target" && pwd)
# The package's own workspace has a folder of its own.
export CARGO_TARGET_DIR=$target/python/cargo

folder=$target/python/arrays
requirements=(-r tests/requirements.txt)
chosen=(-m "not hosts")
if [[ ${1:-} == hosts ]]; then
    shift
    folder=$target/python/hosts
    requirements+=(-r tests/requirements-hosts.txt)
    chosen=()
fi

stamp=$(cat tests/requirements*.txt)
if [[ $stamp != "$(cat "$folder/requirements.txt" 2>/dev/null)" ]]; then
    rm -rf "$folder"
    python3 -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "${requirements[@]}"
    echo "$stamp" >"$folder/requirements.txt"
fi

cargo fmt --check
cargo clippy --quiet -- -D warnings
PATH=$folder/bin:$PATH "$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
    --no-build-isolation --force-reinstall --no-deps .
"$folder/bin/python" -m pytest -q -p no:cacheprovider "${chosen[@]}" "$@"
