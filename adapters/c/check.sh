#!/usr/bin/env bash
# Checks the memory accesses of the C tests and of the library with two tools,
# valgrind and AddressSanitizer, and checks the installed CMake package. Requires a C
# compiler. valgrind must be installed for the first check, a nightly Rust toolchain for
# the second, and CMake and a C++ compiler for the third.
#
#   adapters/c/check.sh [valgrind|address|cmake]     without an argument: all checks
set -euo pipefail
cd "$(dirname "$0")/../.."

what=${1:-all}
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/c-check"
check=$(cd "$target/c-check" && pwd)
flags=(-std=c11 -D_POSIX_C_SOURCE=200809L -g -O1 -pthread -DNDS_NO_DLPACK_HEADER -I adapters/c/include)

# Runs the C tests under valgrind. The tests use the shared library in its release
# build, as the program of a user does.
check_valgrind() {
    adapters/libraries.sh
    ln -sf "$(cd "$target/release" && pwd)/libndscatter_c.so" "$check/libndscatter_c.so.1"
    cc "${flags[@]}" adapters/c/tests/c/*.c -L "$target/release" -Wl,-rpath,"$check" \
        -lndscatter_c -lm -o "$check/test-valgrind"
    # Valgrind writes one log for the test program, and one for each child process
    # that the tests fork. A log is empty unless valgrind found an error. Valgrind
    # runs one thread at a time. With its default scheduler, the other threads may
    # wait for minutes. `--fair-sched=yes` prevents this.
    rm -f "$check"/valgrind.*
    local passed=true
    valgrind -q --fair-sched=yes --error-exitcode=1 --log-file="$check/valgrind.%p" \
        --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
        "$check/test-valgrind" || passed=false
    cat "$check"/valgrind.* >&2
    check_unloading || passed=false
    $passed && [[ -z $(cat "$check"/valgrind.*) ]]
}

# Runs the program that unloads the library while calls run. The leak check is off: valgrind would
# report the memory of the library's threads, which still run at the end of the process.
check_unloading() {
    cc "${flags[@]}" adapters/c/tests/unload/unload.c -Wl,-rpath,"$check" -ldl -o "$check/unload"
    valgrind -q --fair-sched=yes --error-exitcode=1 "$check/unload"
}

# Runs the C tests with the static library. AddressSanitizer instruments the tests
# and the library.
check_address() {
    local triple
    triple=$(rustc +nightly -vV | sed -n 's/^host: //p')
    RUSTFLAGS=-Zsanitizer=address cargo +nightly build -p ndscatter-c \
        --target "$triple" --target-dir "$check"
    cc "${flags[@]}" -fsanitize=address -fno-omit-frame-pointer adapters/c/tests/c/*.c \
        "$check/$triple/debug/libndscatter_c.a" -ldl -lm -o "$check/test-address"
    "$check/test-address"
}

# Installs the library, moves the installation, and builds and runs the examples with
# the moved CMake package.
check_cmake() {
    adapters/libraries.sh
    rm -rf "$check/installed" "$check/moved" "$check/cmake"
    adapters/c/install.sh --prefix "$check/installed" --target-dir "$target"
    mv "$check/installed" "$check/moved"
    cmake -S adapters/c/tests/cmake -B "$check/cmake" -DCMAKE_PREFIX_PATH="$check/moved"
    cmake --build "$check/cmake"
    "$check/cmake/example-c"
    "$check/cmake/example-cpp"
}

case $what in
valgrind) check_valgrind ;;
address) check_address ;;
cmake) check_cmake ;;
all)
    check_valgrind
    check_address
    check_cmake
    ;;
*)
    echo "usage: adapters/c/check.sh [valgrind|address|cmake]" >&2
    exit 2
    ;;
esac
