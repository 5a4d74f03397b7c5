#!/usr/bin/env bash
# Builds the libraries for C, ONNX Runtime and Python in one call of cargo, so that the crate is compiled
# once for all of them. In separate calls, they would enable different features of common dependencies, and
# cargo would compile the crate for each of them.
#
#   adapters/libraries.sh
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release -p ndscatter-c -p ndscatter-onnxruntime -p ndscatter-python
