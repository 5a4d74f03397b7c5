#!/usr/bin/env bash
# Builds the Python package and the extension for OpenVINO, and installs both into one virtual environment. Then runs the
# soak test in soak.py for a number of seconds. The default is one hour.
#
# The virtual environment is in cargo's target folder, and later runs use it again. This script requires Linux, Rust, a
# C++ compiler, Python 3.11 or newer and access to PyPI.
#
#   adapters/soak/run.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-../target}
target=$(mkdir -p "$target" && cd "$target" && pwd)
export PYTHONPYCACHEPREFIX=$target/pycache
environment=$target/soak
./environment.sh "$environment" python/tests/requirements.txt openvino/tests/requirements.txt

install() {
    PATH=$environment/bin:$PATH "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
        --no-build-isolation --force-reinstall "$@"
}
./libraries.sh
CARGO_TARGET_DIR=$target install ./python
install "--config-settings=build-dir=$target/openvino/build-soak" \
    "--config-settings=cmake.define.c_library=$target/release/libndscatter_c.a" ./openvino
"$environment/bin/python" -m ndscatter.torch build
"$environment/bin/python" soak/soak.py "$@"
