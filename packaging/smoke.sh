#!/usr/bin/env bash
# Installs the packages of packaging/build.sh in empty folders, and tests them there. Packages for aarch64 run
# under qemu.
#
# - c: unpacks each tar file, moves the folder, and compiles and runs the examples with pkg-config and with CMake,
#   and the C tests
# - wheels: installs each wheel that an available Python accepts, and runs its self test
# - openvino: installs the wheel with OpenVINO, and runs its tests
#
#   packaging/smoke.sh c|wheels|openvino
#
# Needs Debian on x86-64 with these packages:
#   apt-get install cmake g++ g++-aarch64-linux-gnu pkg-config python3-venv qemu-user-static
# The kind `wheels` downloads Debian's Python for aarch64 (apt), and numpy (PyPI). It tests the wheels for musl
# if MUSL_PYTHON names a Python for musl on x86-64 (docs/release.md), and the free-threaded wheels if PATH has a
# python3.14t.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
cd "$(dirname "$0")/.."
. packaging/common.sh
root=$PWD

empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT

smoke_c() {
    local processor name folder compiler run cmake_options
    for processor in x86_64 aarch64; do
        name=ndscatter-c-$version-$processor-linux-gnu
        folder=$empty/$processor
        mkdir -p "$folder"
        tar -xzf "$packages/c/$name.tar.gz" -C "$folder"
        mv "$folder/$name" "$folder/moved"
        compiler=()
        run=()
        cmake_options=("-DCMAKE_PREFIX_PATH=$folder/moved")
        if [[ $processor != "$(uname -m)" ]]; then
            compiler=("$processor-linux-gnu-")
            run=("qemu-$processor-static" -L "/usr/$processor-linux-gnu" -E "LD_LIBRARY_PATH=$folder/moved/lib")
            cmake_options+=("-DCMAKE_SYSTEM_NAME=Linux" "-DCMAKE_SYSTEM_PROCESSOR=$processor"
                "-DCMAKE_C_COMPILER=${compiler[0]}gcc" "-DCMAKE_CXX_COMPILER=${compiler[0]}g++")
        fi
        export PKG_CONFIG_LIBDIR=$folder/moved/lib/pkgconfig LD_LIBRARY_PATH=$folder/moved/lib

        echo "=== $name: pkg-config"
        # The word splitting separates the flags.
        # shellcheck disable=SC2046
        "${compiler[0]:-}gcc" -std=c11 "$folder/moved/share/doc/ndscatter/example.c" \
            $(pkg-config --cflags --libs ndscatter-c) -o "$folder/example"
        "${run[@]}" "$folder/example"

        echo "=== $name: C tests"
        # shellcheck disable=SC2046
        "${compiler[0]:-}gcc" -std=c11 -D_POSIX_C_SOURCE=200809L -O1 -pthread -DNDS_NO_DLPACK_HEADER \
            adapters/c/tests/c/*.c $(pkg-config --cflags --libs ndscatter-c) -lm -o "$folder/tests"
        "${run[@]}" "$folder/tests"

        echo "=== $name: CMake"
        unset LD_LIBRARY_PATH
        cmake -S adapters/c/tests/cmake -B "$folder/cmake" "${cmake_options[@]}" >/dev/null
        cmake --build "$folder/cmake" >/dev/null
        "${run[@]}" "$folder/cmake/example-c"
        "${run[@]}" "$folder/cmake/example-cpp"
    done
}

# Checks an installed wheel: `run_python` followed by the command of its Python.
run_python() {
    (
        cd "$empty"
        "$@" -m ndscatter
        "$@" -c 'import os, ndscatter.onnxruntime as o; path = o.library_path(); assert os.path.isfile(path); print(path)'
    )
}

# Prints the only wheel of the folder `wheels` whose name contains the pattern.
wheel() {
    local found=("$packages"/wheels/*$1*.whl)
    [[ ${#found[@]} == 1 && -f ${found[0]} ]] || fail "no wheel or several wheels: ${found[*]}"
    echo "${found[0]}"
}

# Makes a folder with Debian's Python for aarch64, and the C++ library that numpy needs. Prints the path of the
# Python. Installs nothing in the system.
aarch64_python() {
    local folder=$CARGO_TARGET_DIR/packaging-aarch64 archive
    if [[ ! -e $folder/ready ]]; then
        rm -rf "$folder"
        mkdir -p "$folder"/apt/{lists,cache/archives}/partial
        : >"$folder/apt/status"
        cat >"$folder/apt.conf" <<END
APT { Architecture "arm64"; Architectures { "arm64"; }; Sandbox::User "root"; };
Dir { State "$folder/apt"; State::lists "$folder/apt/lists"; State::status "$folder/apt/status"; Cache "$folder/apt/cache"; };
END
        APT_CONFIG=$folder/apt.conf apt-get update -qq >&2
        APT_CONFIG=$folder/apt.conf apt-get install -qq -y --download-only --no-install-recommends libstdc++6 python3 >&2
        for archive in "$folder"/apt/cache/archives/*.deb; do
            dpkg -x "$archive" "$folder"
        done
        touch "$folder/ready"
    fi
    realpath "$folder/usr/bin/python3"
}

# Installs a wheel and numpy for another platform into a folder: FOLDER VERSION WHEEL PLATFORM..
install_foreign() {
    local folder=$1 python_version=$2 wheel=$3 platform options=()
    shift 3
    for platform in "$@"; do
        options+=(--platform "$platform")
    done
    python3 -m pip install --quiet --target "$folder" --only-binary=:all: --implementation cp \
        --python-version "$python_version" "${options[@]}" "$wheel"
}

smoke_wheels() {
    local python folder foreign file

    echo "=== abi3, x86-64, glibc"
    file=$(wheel abi3-manylinux*_x86_64)
    python3 -m venv "$empty/venv"
    "$empty/venv/bin/pip" install --quiet "$file"
    run_python "$empty/venv/bin/python"

    echo "=== abi3, aarch64, glibc, under qemu"
    file=$(wheel abi3-manylinux*_aarch64)
    python=$(aarch64_python)
    folder=$CARGO_TARGET_DIR/packaging-aarch64
    # numpy is built for a newer glibc than the wheel. Debian 12 has glibc 2.36.
    foreign=(manylinux_2_17_aarch64 manylinux2014_aarch64 manylinux_2_27_aarch64 manylinux_2_28_aarch64)
    install_foreign "$empty/aarch64" "${python##*python}" "$file" "${foreign[@]}"
    run_python qemu-aarch64-static -L "$folder" -E "PYTHONHOME=$folder/usr" -E "PYTHONPATH=$empty/aarch64" "$python"

    if [[ -n ${MUSL_PYTHON:-} ]]; then
        echo "=== abi3, x86-64, musl"
        file=$(wheel abi3-musllinux*_x86_64)
        python=$("$MUSL_PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        install_foreign "$empty/musl" "$python" "$file" musllinux_1_2_x86_64
        PYTHONPATH=$empty/musl run_python "$MUSL_PYTHON"
    else
        echo "=== not tested: wheels for musl (MUSL_PYTHON is not set)"
    fi
    if command -v python3.14t >/dev/null; then
        echo "=== free-threaded, x86-64, glibc"
        file=$(wheel cp314t-manylinux*_x86_64)
        python3.14t -m venv "$empty/free-threaded"
        "$empty/free-threaded/bin/pip" install --quiet "$file"
        run_python "$empty/free-threaded/bin/python"
    else
        echo "=== not tested: free-threaded wheels (no python3.14t)"
    fi
}

smoke_openvino() {
    local requirements=adapters/openvino/tests/requirements.txt
    python3 -m venv "$empty/venv"
    "$empty/venv/bin/pip" install --quiet -r "$requirements" "$packages"/openvino/*.whl
    # The tests import files from the folder above `openvino`, as in `adapters`.
    mkdir "$empty/openvino"
    cp -r adapters/openvino/tests "$empty/openvino"
    cp -r adapters/pytest_selection.py adapters/refusals "$empty"
    cd "$empty"
    "$empty/venv/bin/python" -m pytest -q -p no:cacheprovider openvino/tests -k "not test_results or dynamic"
}

case ${1:-} in
c | wheels | openvino) "smoke_$1" ;;
*)
    sed -n '2,/^set -e/{ /^set/d; s/^# \{0,1\}//; p }' "$0" >&2
    exit 2
    ;;
esac
