#!/usr/bin/env bash
# Tests the Python package in the form that users install:
# 1. Builds a wheel. Checks its metadata, and that it contains the licences and the list of linked
#    crates.
# 2. Installs the wheel into a virtual environment under cargo's target folder. The virtual
#    environment contains some gigabytes (PyTorch, JAX, ONNX Runtime). Later runs use it again.
# 3. Compiles the native kernels for PyTorch.
# 4. Runs pytest.
# With `full`, the script also runs clippy, and builds the wheel from a source distribution. The tests
# then include those that `pytest_selection.py` leaves out otherwise, train graph networks of PyG
# (PyTorch Geometric), and start clusters of Ray.
# This script requires Rust, a C++ compiler, Python 3.11 or newer and access to PyPI.
#
#   adapters/python/check.sh [full] [arguments of pytest]
set -euo pipefail
cd "$(dirname "$0")"

CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-../../target}
mkdir -p "$CARGO_TARGET_DIR/python"
CARGO_TARGET_DIR=$(cd "$CARGO_TARGET_DIR" && pwd)
export CARGO_TARGET_DIR PYTHONPYCACHEPREFIX=$CARGO_TARGET_DIR/pycache
target=$CARGO_TARGET_DIR/python

requirements=(tests/requirements.txt)
is_full=false
if [[ ${1:-} == full ]]; then
    shift
    is_full=true
    requirements+=(tests/requirements-full.txt)
    export NDSCATTER_FULL=1
fi

environment=$target/tests
python=$environment/bin/python
../environment.sh "$environment" "${requirements[@]}"

rm -rf "$target/dist"
export PATH=$environment/bin:$PATH
if $is_full; then
    cargo clippy --quiet -- -D warnings
    # The files of the source distribution are in another folder, so cargo compiles everything again.
    CARGO_TARGET_DIR=$target/cargo maturin build --quiet --release --sdist --out "$target/dist"
else
    ../libraries.sh
    # With other options than those of `libraries.sh`, maturin would compile PyO3 and the library again. The
    # wheel of `full` is stripped.
    [[ $(uname -s) != Linux ]] || export PYO3_CONFIG_FILE=$PWD/pyo3-config.txt
    maturin build --quiet --release --strip false --out "$target/dist"
fi
wheel=("$target"/dist/*.whl)
case $(uname -s):$wheel in
Linux:*-abi3-manylinux_*) ;;
Linux:*) echo "the wheel has no manylinux tag: $wheel" >&2 && exit 1 ;;
esac
"$python" -m twine check --strict "$target"/dist/*
contents=$("$python" -m zipfile -l "$wheel")
for part in licenses/LICENSE-APACHE licenses/LICENSE-MIT licenses/LICENSE-THIRD-PARTY sboms/ndscatter-python.cyclonedx.json; do
    [[ $contents == *.dist-info/$part* ]] || { echo "the wheel has no file $part in its folder dist-info" >&2; exit 1; }
done
"$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheel"
"$python" -m ndscatter.torch build
"$python" -m pytest -q -p no:cacheprovider -n auto --maxprocesses 4 --dist worksteal --ignore tests/ray "$@"
if $is_full; then
    # One process: each process would start its own cluster.
    "$python" -m pytest -q -p no:cacheprovider tests/ray
fi
