#!/usr/bin/env bash
# Builds the libraries for C, ONNX Runtime and Python in one call of cargo, so that the crate is compiled
# once for all of them. In separate calls, they would enable different features of common dependencies, and
# cargo would compile the crate for each of them. On Linux, the library for Python is built as an
# extension module without an interpreter. Otherwise PyO3 would be compiled again after each change of PATH.
#
#   adapters/libraries.sh
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ $(uname -s) == Linux ]]; then
    export PYO3_BUILD_EXTENSION_MODULE=1 PYO3_NO_PYTHON=1
fi
cargo build --release -p ndscatter-c -p ndscatter-onnxruntime -p ndscatter-python
