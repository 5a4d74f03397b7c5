#!/usr/bin/env bash
# Tests the Python package in the form that users install:
# 1. Makes a source distribution, and builds a wheel from the source distribution. Checks the metadata
#    of both, and that the wheel contains the licences and the list of linked crates.
# 2. Installs the wheel into a virtual environment under cargo's target folder. The virtual
#    environment contains some gigabytes (PyTorch, JAX, ONNX Runtime). Later runs use it again.
# 3. Compiles the native kernels for PyTorch.
# 4. Runs pytest.
# With `full`, the script also runs clippy. The tests then run all test cases of PyTorch's own suite
# instead of a tenth of them, train graph networks of PyG (PyTorch Geometric), and include the tests
# with the marker `long`.
# This script requires Rust, a C++ compiler, Python 3.11 or newer and access to PyPI.
#
#   adapters/python/check.sh [full] [arguments of pytest]
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
cd "$(dirname "$0")"

target=${CARGO_TARGET_DIR:-../../target}
mkdir -p "$target/python"
target=$(cd "$target" && pwd)/python
# The package is a cargo workspace separate from the crate's, so it has its own target folder.
export CARGO_TARGET_DIR=$target/cargo

requirements=(tests/requirements.txt)
cargo fmt --check
if [[ ${1:-} == full ]]; then
    shift
    requirements+=(tests/requirements-full.txt)
    export NDSCATTER_FULL=1
    cargo clippy --quiet -- -D warnings
fi

environment=$target/tests
python=$environment/bin/python
../environment.sh "$environment" "${requirements[@]}"

rm -rf "$target/dist"
PATH=$environment/bin:$PATH maturin build --quiet --release --sdist --out "$target/dist"
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
"$python" -m pytest -q -p no:cacheprovider -n auto --maxprocesses 4 --dist worksteal "$@"
