#!/usr/bin/env bash
# Runs tests under Miri, under the sanitizers of the compiler, and for other processors.
#
#   tests/sanitizers.sh miri          all seeds of the fuzz targets, and tests of `it`, under Miri
#   tests/sanitizers.sh miri-short    two seeds of the scatters, gathers and C functions, under Miri
#   tests/sanitizers.sh thread        tests with threads, under ThreadSanitizer
#   tests/sanitizers.sh address       the seeds and the C tests, under AddressSanitizer
#   tests/sanitizers.sh aarch64       tests for 64-bit Arm, under qemu
#   tests/sanitizers.sh s390x         tests for a big-endian processor, under qemu
#
# Miri and the sanitizers need a nightly Rust with the components miri and rust-src. The other
# processors need a linker and qemu. On Debian, the packages are gcc-aarch64-linux-gnu,
# gcc-s390x-linux-gnu, libc6-dev-arm64-cross, libc6-dev-s390x-cross and qemu-user-static.
set -euo pipefail
cd "$(dirname "$0")/.."

what=${1:-}
case $what in
miri | miri-short | thread | address | aarch64 | s390x) ;;
*)
    sed -n '4,9s/^# *//p' "$0" >&2
    exit 2
    ;;
esac

# Each kind of build has its own folder. Otherwise each build would replace the other.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=none CARGO_PROFILE_TEST_DEBUG=none
folder=${CARGO_TARGET_DIR:-target}/${what%-short}
CARGO_TARGET_DIR=$(mkdir -p "$folder" && cd "$folder" && pwd)
export CARGO_TARGET_DIR
host=x86_64-unknown-linux-gnu
seeds=(--manifest-path fuzz/Cargo.toml --no-default-features --features harness --test seeds)

# Runs the tests for a target under qemu. The name of the target starts with the name of the processor.
for_processor() {
    local target=$1 processor=${1%%-*} variable
    variable=$(tr a-z- A-Z_ <<<"$target")
    rustup target add "$target"
    export "CARGO_TARGET_${variable}_LINKER=$processor-linux-gnu-gcc"
    export "CARGO_TARGET_${variable}_RUNNER=qemu-$processor-static -L /usr/$processor-linux-gnu"
    cargo test --target "$target" -p ndscatter-host --lib
    cargo test --target "$target" "${seeds[@]}"
}

case $what in
miri | miri-short)
    # Rayon uses crossbeam-epoch, which casts integers to pointers. The threads of its pools never end,
    # so their memory counts as leaked.
    export MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-disable-isolation -Zmiri-ignore-leaks"
    ;;&
miri)
    cargo +nightly miri test "${seeds[@]}"
    cargo +nightly miri test --test it -- contracts:: zero_sized::
    ;;
miri-short)
    DERIVED_INPUTS=0 MOST_SEEDS=2 cargo +nightly miri test "${seeds[@]}" -- c_interface scatter gather
    ;;
thread)
    # ThreadSanitizer fails if the kernel randomises many bits of addresses. `setarch -R` prevents it.
    MOST_WORKERS=8 RUSTFLAGS=-Zsanitizer=thread setarch -R \
        cargo +nightly test -Zbuild-std --target "$host" --test it -- \
        foreign_indices concurrency determinism::
    RUSTFLAGS=-Zsanitizer=thread setarch -R cargo +nightly test -Zbuild-std --target "$host" "${seeds[@]}"
    ;;
address)
    RUSTFLAGS=-Zsanitizer=address cargo +nightly test --target "$host" "${seeds[@]}"
    adapters/c/check.sh address
    ;;
aarch64 | s390x)
    for_processor "$what-unknown-linux-gnu"
    ;;
esac
