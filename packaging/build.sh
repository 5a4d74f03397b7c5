#!/usr/bin/env bash
# Builds the packages of a release into target/packages, one kind with each call. docs/release.md has the
# whole list of steps of a release. packaging/smoke.sh tests the packages.
#
# - crates: the .crate files of all published members. Cargo builds each of them, and tries their publication
#   without an upload.
# - c: tar files of the C library, for x86-64 and aarch64
# - wheels: wheels of the Python package for glibc and musl, on x86-64 and aarch64, and the source distribution
# - openvino: the wheel of the extension of OpenVINO, for the machine's processor
# - systems: checks the code for macOS and Windows, and makes no package
#
#   packaging/build.sh crates|c|wheels|openvino|systems
#
# Needs Linux on x86-64, Rust with rustup, Python 3.10 or newer, crates.io and PyPI. The kind `openvino`
# also needs a C++ compiler. Cross-compilation uses zig, which comes from PyPI.
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/common.sh

# The packages run with glibc 2.17, of 2014, and with musl 1.2.
glibc=2.17

build_crates() {
    # The package for Python is not on crates.io.
    local options=(--workspace --exclude ndscatter-python)
    # An upload requires that the files are committed. A trial with changed files needs ALLOW_DIRTY=1.
    [[ -z ${ALLOW_DIRTY:-} ]] || options+=(--allow-dirty)
    rm -rf "$packages/crates"
    mkdir -p "$packages/crates"
    # Cargo orders the members by their dependencies, and resolves them among each other.
    cargo publish --dry-run "${options[@]}"
    cargo package --no-verify --quiet "${options[@]}"
    cp "$CARGO_TARGET_DIR/package/"*"-$version.crate" "$packages/crates"
    ls -l "$packages/crates"
}

build_c() {
    tools
    rm -rf "$packages/c"
    local processor triple name
    for processor in x86_64 aarch64; do
        triple=$processor-unknown-linux-gnu
        name=ndscatter-c-$version-$processor-linux-gnu
        rustup target add "$triple"
        cargo zigbuild --release -p ndscatter-c --target "$triple.$glibc"
        adapters/c/install.sh --relocatable --prefix "/$name" --destdir "$packages/c" \
            --target-dir "$CARGO_TARGET_DIR/$triple" >/dev/null
        mkdir -p "$packages/c/$name/share/doc/ndscatter" "$packages/c/$name/share/licenses/ndscatter"
        cp packaging/c.md "$packages/c/$name/README.md"
        cp docs/c.md CHANGELOG.md adapters/c/examples/example.c adapters/c/examples/example.cpp \
            "$packages/c/$name/share/doc/ndscatter"
        cp LICENSE-* "$packages/c/$name/share/licenses/ndscatter"
        # The same commit gives the same tar file.
        tar -C "$packages/c" --sort=name --owner=0 --group=0 --numeric-owner \
            --mtime="@$(git log -1 --format=%ct)" -cf - "$name" | gzip -9n >"$packages/c/$name.tar.gz"
        rm -rf "${packages:?}/c/$name"
    done
    ls -l "$packages/c"
}

# The wheels with abi3 run with every Python from 3.10 with a global lock (GIL). Free-threaded Python has no
# such interface, so each of its versions needs a wheel. maturin knows the settings of 3.14t, so this build
# needs no interpreter.
build_wheels() {
    tools
    rm -rf "$packages/wheels"
    local manifest=adapters/python/Cargo.toml processor libc compatibility python
    maturin sdist --manifest-path "$manifest" --out "$packages/wheels"
    for processor in x86_64 aarch64; do
        for libc in gnu musl; do
            compatibility=manylinux_${glibc/./_}
            [[ $libc == gnu ]] || compatibility=musllinux_1_2
            rustup target add "$processor-unknown-linux-$libc"
            for python in python3 python3.14t; do
                maturin build --release --zig --manifest-path "$manifest" --interpreter "$python" \
                    --target "$processor-unknown-linux-$libc" --compatibility "$compatibility" \
                    --out "$packages/wheels"
            done
        done
    done
    ls -l "$packages/wheels"
}

# The extension works only with the release of OpenVINO that it was built with: the tested release. It uses
# the C++ library of OpenVINO, so the system's compiler builds it, and the system decides the oldest glibc.
# The libraries of OpenVINO and its TBB come from the package `openvino`, not from this wheel.
build_openvino() {
    tools
    rm -rf "$packages/openvino"
    PIP_CONSTRAINT=$PWD/adapters/openvino/tests/requirements.txt pip wheel --no-deps --disable-pip-version-check \
        "--config-settings=build-dir=$CARGO_TARGET_DIR/packaging-openvino" \
        "--config-settings=cmake.define.cargo_target=$CARGO_TARGET_DIR" \
        --wheel-dir "$packages/openvino/unrepaired" ./adapters/openvino
    auditwheel repair --exclude 'libopenvino*' --exclude 'libtbb*' --wheel-dir "$packages/openvino" \
        "$packages"/openvino/unrepaired/*.whl
    rm -r "$packages/openvino/unrepaired"
    ls -l "$packages/openvino"
}

# `cargo check` compiles no C code and links nothing. The command-line tool depends on a package with code in
# assembly (psm, by way of npyz), so it needs a compiler for the target, which zig is, except for MSVC.
build_systems() {
    tools
    local members=(-p ndscatter -p ndscatter-host -p ndscatter-c -p ndscatter-onnxruntime) triple
    for triple in x86_64-apple-darwin aarch64-apple-darwin x86_64-pc-windows-gnu x86_64-pc-windows-msvc; do
        rustup target add "$triple"
        case $triple in
        *-msvc) cargo check "${members[@]}" --target "$triple" ;;
        *) cargo-zigbuild check "${members[@]}" -p ndscatter-cli --target "$triple" ;;
        esac
    done
}

case ${1:-} in
crates | c | wheels | openvino | systems) "build_$1" ;;
*)
    sed -n '2,/^set -e/{ /^set/d; s/^# \{0,1\}//; p }' "$0" >&2
    exit 2
    ;;
esac
