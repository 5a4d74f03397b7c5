#!/usr/bin/env bash
# Runs tests under Miri, under the sanitizers of the compiler, under loom, and for other processors.
#
#   tests/sanitizers.sh miri          views of foreign memory, elements of size 0, seeds of all fuzz targets except npy, under Miri
#   tests/sanitizers.sh miri-short    the same, with one seed of each of three targets: scatters, gathers, C functions
#   tests/sanitizers.sh thread        tests with threads, under ThreadSanitizer
#   tests/sanitizers.sh address       the seeds, under AddressSanitizer
#   tests/sanitizers.sh loom          the hand-over between tasks, in every order of accesses
#   tests/sanitizers.sh aarch64       tests for 64-bit Arm, under qemu
#   tests/sanitizers.sh aarch64-short the seeds of the fuzz targets for 64-bit Arm, without optimisation
#   tests/sanitizers.sh s390x         tests for a big-endian processor, under qemu
#
# Miri and the sanitizers need a nightly Rust with the components miri and rust-src. The other
# processors need qemu (Debian's package qemu-user-static). `aarch64` also needs a C compiler
# (gcc-aarch64-linux-gnu and libc6-dev-arm64-cross). s390x also needs a C compiler, a linker and a C
# library (gcc-s390x-linux-gnu and libc6-dev-s390x-cross).
set -euo pipefail
cd "$(dirname "$0")/.."

what=${1:-}
case $what in
miri | miri-short | thread | address | loom | aarch64 | aarch64-short | s390x) ;;
*)
    sed -n '/^#   /s/^# *//p' "$0" >&2
    exit 2
    ;;
esac

# Builds for this processor have separate folders. Otherwise each build would replace the other. Builds
# for other processors share procedural macros and build scripts with the builds for this processor.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=none CARGO_PROFILE_TEST_DEBUG=none
folder=${CARGO_TARGET_DIR:-target}
case $what in
aarch64 | aarch64-short | s390x) ;;
*) folder+=/${what%-short} ;;
esac
CARGO_TARGET_DIR=$(mkdir -p "$folder" && cd "$folder" && pwd)
export CARGO_TARGET_DIR
host=x86_64-unknown-linux-gnu
fuzz=(--manifest-path fuzz/Cargo.toml --no-default-features --features harness)
seeds=("${fuzz[@]}" --features npy --test seeds)

# Rust has the C library musl for aarch64, and a linker.
aarch64=aarch64-unknown-linux-musl
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER=qemu-aarch64-static
s390x=s390x-unknown-linux-gnu
export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=s390x-linux-gnu-gcc
export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER="qemu-s390x-static -L /usr/s390x-linux-gnu"

case $what in
aarch64 | s390x)
    # qemu is about ten times slower than the processor, so the tests are compiled with more optimisation than
    # elsewhere.
    export MOST_WORKERS=4 CARGO_PROFILE_TEST_OPT_LEVEL=2
    ;;&
miri | miri-short)
    cargo +nightly miri test "${fuzz[@]}" --test views
    # Rayon uses crossbeam-epoch, which casts integers to pointers. The threads of its pools never end,
    # so their memory counts as leaked.
    export MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-disable-isolation -Zmiri-ignore-leaks"
    ;;&
miri)
    # Without the feature npy: one seed of this target takes more than six minutes. The command-line tool has
    # no unsafe code.
    cargo +nightly miri test "${fuzz[@]}" --test seeds
    ;;
miri-short)
    DERIVED_INPUTS=0 MOST_SEEDS=1 cargo +nightly miri test "${fuzz[@]}" --test seeds -- c_interface scatter gather
    ;;
thread)
    export RUSTFLAGS=-Zsanitizer=thread
    # ThreadSanitizer fails if the kernel randomises many bits of addresses. `setarch -R` prevents it.
    instrumented=(setarch -R cargo +nightly test -Zbuild-std --target "$host")
    MOST_WORKERS=8 "${instrumented[@]}" --test it -- foreign_indices concurrency determinism::
    # By default, ThreadSanitizer ends a child of `fork` that starts threads.
    TSAN_OPTIONS=die_after_fork=0 "${instrumented[@]}" --test pools
    "${instrumented[@]}" "${seeds[@]}"
    ;;
address)
    RUSTFLAGS=-Zsanitizer=address cargo +nightly test --target "$host" "${seeds[@]}"
    ;;
loom)
    RUSTFLAGS="--cfg loom" cargo test -p ndscatter --lib models::
    ;;
aarch64)
    rustup target add "$aarch64"
    cargo test --target "$aarch64" -p ndscatter-host --lib
    # A dependency of criterion compiles C code.
    CC_aarch64_unknown_linux_musl=aarch64-linux-gnu-gcc cargo test --target "$aarch64" --test it
    cargo test --target "$aarch64" "${seeds[@]}"
    ;;
aarch64-short)
    rustup target add "$aarch64"
    DERIVED_INPUTS=0 cargo test --profile dev --target "$aarch64" "${seeds[@]}"
    ;;
s390x)
    rustup target add "$s390x"
    cargo test --target "$s390x" --test it
    cargo test --target "$s390x" "${seeds[@]}"
    ;;
esac
