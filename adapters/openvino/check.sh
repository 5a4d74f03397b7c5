#!/usr/bin/env bash
# Builds the extension with two releases of OpenVINO, and runs its tests: with the newest tested
# release, with the oldest supported release, and with AddressSanitizer. Also builds and runs the
# examples.
#
# Each release has a virtual environment in cargo's target folder, which later runs of this script
# use again. The script requires a C++ compiler, PyPI, and Python 3.10 or newer.
# With NDSCATTER_FULL=1, the tests include those that `pytest_selection.py` leaves out otherwise.
#
#   adapters/openvino/check.sh [newest|oldest|address]     without an argument: all three
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)
export PYTHONPYCACHEPREFIX=$target/pycache
adapter=$PWD/adapters/openvino

# Creates the virtual environment of a release, if it is missing or out of date. Sets `python` and
# `openvino`: the interpreter and the folder of OpenVINO.
environment() {
    local requirements=$adapter/tests/requirements.txt folder=$target/openvino/$1
    [[ $1 == newest ]] || requirements=$adapter/tests/requirements-oldest.txt
    adapters/environment.sh "$folder" "$requirements"
    export PATH=$folder/bin:$PATH
    python=$folder/bin/python
    openvino=$("$python" -c "import openvino, pathlib; print(pathlib.Path(openvino.__file__).parent)")
}

# Installs the package with the options of pip that follow the name of the build folder.
install_package() {
    local build=$target/openvino/$1
    shift
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
        --force-reinstall "--config-settings=build-dir=$build" \
        "--config-settings=cmake.define.c_library=$target/release/libndscatter_c.a" "$@" "$adapter"
}

# Runs the tests with additional options of pytest, in up to four processes.
run_tests() {
    "$python" -m pytest -q -p no:cacheprovider -n auto --maxprocesses 4 --dist worksteal "$adapter/tests" "$@"
}

check_newest() {
    environment newest
    install_package build-newest
    run_tests
    check_examples
}

# The results of the operators do not depend on the release, so half of the matrix is enough.
check_oldest() {
    environment oldest
    install_package build-oldest
    run_tests -k "not test_results or dynamic"
}

# Builds the examples, and checks what they print.
check_examples() {
    local build=$target/openvino/examples library libraries=$openvino/libs
    local expected="rows 5, 6, 7: 2 0 1"
    library=$("$python" -c "import ndscatter.openvino as nds; print(nds.library_path())")
    cmake -S "$adapter/examples" -B "$build" -G Ninja "-DOpenVINO_DIR=$openvino/cmake" >/dev/null
    cmake --build "$build" >/dev/null
    "$build/session-cpp" "$library" "$adapter/examples/model.xml" | grep -F "$expected"
    "$build/session-c" "$library" "$adapter/examples/model.xml" | grep -F "$expected"
    LD_LIBRARY_PATH=$libraries CARGO_TARGET_DIR=$target/openvino/rust \
        cargo run --quiet --manifest-path "$adapter/examples/rust/Cargo.toml" -- \
        "$libraries"/libopenvino_c.so.* "$library" "$adapter/examples/model.xml" | grep -F "$expected"
}

# AddressSanitizer instruments the C++ code. Leaks are not reported, because Python has many.
check_address() {
    environment newest
    local site=$target/openvino/address shallow=$target/openvino/shallow_dlopen.so
    install_package build-address --target "$site" --upgrade \
        "--config-settings=cmake.define.CMAKE_CXX_FLAGS=-fsanitize=address -fno-omit-frame-pointer"
    cc -shared -fPIC "$adapter/tests/shallow_dlopen.c" -o "$shallow" -ldl
    local first="$shallow $(cc -print-file-name=libasan.so) $(cc -print-file-name=libstdc++.so)"
    PYTHONPATH=$site ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 LD_PRELOAD=$first \
        run_tests --ignore "$adapter/tests/test_matrix.py"
}

adapters/libraries.sh
case ${1:-all} in
newest | oldest | address) "check_$1" ;;
all)
    check_newest
    check_oldest
    check_address
    ;;
*)
    echo "usage: adapters/openvino/check.sh [newest|oldest|address]" >&2
    exit 2
    ;;
esac
