#!/usr/bin/env bash
# The tests in C under valgrind, and under AddressSanitizer together with an
# instrumented library. Needs a C compiler, valgrind, and a nightly toolchain.
#
#   adapters/c/check.sh [valgrind|address]     both without an argument
set -euo pipefail
cd "$(dirname "$0")/../.."

what=${1:-both}
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/c-check"
check=$(cd "$target/c-check" && pwd)
flags=(-std=c11 -D_POSIX_C_SOURCE=200809L -g -O1 -pthread -DNDS_NO_DLPACK_HEADER -I adapters/c/include)

# The tests against the shared library, as a host loads it.
check_valgrind() {
    cargo build --release -p ndscatter-c
    ln -sf "$(cd "$target/release" && pwd)/libndscatter_c.so" "$check/libndscatter_c.so.1"
    cc "${flags[@]}" adapters/c/tests/c/*.c -L "$target/release" -Wl,-rpath,"$check" \
        -lndscatter_c -lm -o "$check/test-valgrind"
    # Children that the tests fork have logs of their own; a quiet log is empty
    # unless something was found. Valgrind runs one thread at a time, and its
    # usual scheduler may leave the others waiting for minutes.
    rm -f "$check"/valgrind.*
    local held=true
    valgrind -q --fair-sched=yes --error-exitcode=1 --log-file="$check/valgrind.%p" \
        --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
        "$check/test-valgrind" || held=false
    cat "$check"/valgrind.* >&2
    $held && [[ -z $(cat "$check"/valgrind.*) ]]
}

# The tests linked with the static library, both instrumented.
check_address() {
    local triple
    triple=$(rustc +nightly -vV | sed -n 's/^host: //p')
    RUSTFLAGS=-Zsanitizer=address cargo +nightly build -p ndscatter-c \
        --target "$triple" --target-dir "$check"
    cc "${flags[@]}" -fsanitize=address -fno-omit-frame-pointer adapters/c/tests/c/*.c \
        "$check/$triple/debug/libndscatter_c.a" -ldl -lm -o "$check/test-address"
    "$check/test-address"
}

case $what in
valgrind) check_valgrind ;;
address) check_address ;;
both)
    check_valgrind
    check_address
    ;;
*)
    echo "usage: adapters/c/check.sh [valgrind|address]" >&2
    exit 2
    ;;
esac
