#!/usr/bin/env bash
# Builds the libraries for C, ONNX Runtime and Python in one call of cargo, so that the crate is compiled
# once for all of them. In separate calls, they would enable different features of common dependencies, and
# cargo would compile the crate for each of them.
#
# On Linux, the library for Python is an extension module for every Python from 3.10 on. Its build needs no
# interpreter. `adapters/python/check.sh` passes the same options to maturin, which then compiles nothing.
#
#   adapters/libraries.sh
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ $(uname -s) == Linux ]]; then
    export PYO3_BUILD_EXTENSION_MODULE=1 PYO3_CONFIG_FILE=$PWD/adapters/python/pyo3-config.txt
fi
cargo build --release -p ndscatter-c -p ndscatter-onnxruntime -p ndscatter-python
