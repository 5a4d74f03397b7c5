#!/usr/bin/env bash
# Checks the memory accesses of the C tests and of the library with valgrind,
# AddressSanitizer and ThreadSanitizer, and checks the installed CMake package. Requires
# a C compiler. The check `valgrind` needs valgrind. The sanitizers need a nightly Rust
# toolchain. ThreadSanitizer also needs the component rust-src. The check `cmake` needs
# CMake and a C++ compiler.
#
#   adapters/c/check.sh [valgrind|address|thread|cmake]     without an argument: all checks
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

# Runs the C tests with the static library: address|thread. A sanitizer instruments the tests and the
# library. The runtime library of the sanitizer is Rust's, because ThreadSanitizer of GCC 12 lacks functions
# that Rust's code calls. ThreadSanitizer also instruments Rust's standard library, and it fails if the
# kernel randomises many bits of addresses, which `setarch -R` prevents.
check_sanitizer() {
    local sanitizer=$1 triple runtime options=() run=()
    triple=$(rustc +nightly -vV | sed -n 's/^host: //p')
    runtime=$(rustc +nightly --print target-libdir)/librustc-nightly_rt.${sanitizer:0:1}san.a
    if [[ $sanitizer == thread ]]; then
        options=(-Zbuild-std)
        run=(setarch -R)
    fi
    RUSTFLAGS=-Zsanitizer=$sanitizer cargo +nightly build -p ndscatter-c "${options[@]}" \
        --target "$triple" --target-dir "$check/$sanitizer"
    rm -rf "$check/$sanitizer/objects"
    mkdir "$check/$sanitizer/objects"
    local source
    for source in adapters/c/tests/c/*.c; do
        cc "${flags[@]}" "-fsanitize=$sanitizer" -fno-omit-frame-pointer -c "$source" \
            -o "$check/$sanitizer/objects/$(basename "$source" .c).o"
    done
    cc -pthread -rdynamic "$check/$sanitizer"/objects/*.o "$check/$sanitizer/$triple/debug/libndscatter_c.a" \
        -Wl,--whole-archive "$runtime" -Wl,--no-whole-archive -ldl -lm -lrt -o "$check/test-$sanitizer"
    "${run[@]}" "$check/test-$sanitizer"
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
address | thread) check_sanitizer "$what" ;;
cmake) check_cmake ;;
all)
    check_valgrind
    check_sanitizer address
    check_sanitizer thread
    check_cmake
    ;;
*)
    echo "usage: adapters/c/check.sh [valgrind|address|thread|cmake]" >&2
    exit 2
    ;;
esac
