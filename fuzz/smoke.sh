#!/usr/bin/env bash
# Runs each fuzz target for some seconds, on its seeds and on inputs that libFuzzer makes from them.
#
# This script needs a C++ compiler, and neither a nightly Rust nor cargo-fuzz. The targets are built
# without AddressSanitizer and without optimisation. The checks of results are those of the long runs in
# README.md.
#
#   fuzz/smoke.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}
logs=$(mkdir -p "$CARGO_TARGET_DIR/fuzz" && cd "$CARGO_TARGET_DIR/fuzz" && pwd)
# With `--target`, the procedural macros and build scripts are those of the other builds.
host=$(rustc --print host-tuple)
# With these flags, the compiler counts how often each branch runs. libFuzzer needs the counts.
coverage="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
coverage+=" -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
RUSTFLAGS=$coverage cargo build --quiet --manifest-path fuzz/Cargo.toml --bins --target "$host"
programs=$CARGO_TARGET_DIR/$host/debug

# Runs one target. Prints the last line of its output, or all of its output if it fails.
run_target() {
    local name=$1 log=$logs/$1.log
    rm -rf "$logs/corpus/$name"
    mkdir -p "$logs/corpus/$name"
    if ! "$programs/$name" "-max_total_time=$seconds" "-artifact_prefix=$logs/$name-" -len_control=0 \
        "$logs/corpus/$name" "fuzz/seeds/$name" 2>"$log"; then
        cat "$log" >&2
        echo "the fuzz target $name has failed" >&2
        return 1
    fi
    echo "$name: $(tail -n 1 "$log")"
}
export -f run_target
export logs programs seconds=${1:-10}
printf '%s\n' fuzz/seeds/* | xargs -n 1 basename | xargs -P "$(nproc)" -I NAME bash -euc 'run_target NAME'
