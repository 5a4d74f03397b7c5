#!/bin/sh
# Reduction kernels of a binary built for the x86-64 baseline against the same
# built with `-C target-cpu=x86-64-v3`: the first must find the machine's AVX2
# by itself. Run it on a machine that has AVX2.
#
#   benches/baseline_vs_v3.sh [runs]
#
# Builds both, runs them in turn (default: 5 times), and prints minima in
# nanoseconds for 64 bytes, and their ratio: of the baseline the instruction
# set that the crate picks by itself (the last column), of the other build
# whichever is fastest. Fails where the baseline takes over 10 % longer.
set -eu

runs=${1:-5}
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# Prints the path of the bench's binary. $1: build directory, $2: flags.
build() {
    CARGO_TARGET_DIR="$target/$1" RUSTFLAGS="$2" \
        cargo bench --quiet --bench kernels --no-run --message-format json |
        sed -n 's/.*"executable":"\([^"]*kernels[^"]*\)".*/\1/p'
}

baseline=$(build baseline "-C target-cpu=x86-64")
v3=$(build v3 "-C target-cpu=x86-64-v3")

run=0
while [ "$run" -lt "$runs" ]; do
    "$baseline" --bench --csv | sed 's/^/baseline,/' >>"$out/times"
    "$v3" --bench --csv | sed 's/^/v3,/' >>"$out/times"
    run=$((run + 1))
done

awk -F, '
    $2 == "element" { next }
    {
        kernel = $2 " | " $3
        if (!(kernel in known)) { known[kernel]; order[++kernels] = kernel }
        key = $1 kernel
        for (i = $1 == "v3" ? 4 : NF; i <= NF; i++)
            if (!(key in best) || $i < best[key]) best[key] = $i
    }
    END {
        print "| element | reduction | baseline | x86-64-v3 | ratio |"
        print "|---|---|---|---|---|"
        for (i = 1; i <= kernels; i++) {
            base = best["baseline" order[i]]; v3 = best["v3" order[i]]
            slow = base > 1.1 * v3; failed = failed || slow
            printf "| %s | %.3f | %.3f | %.2f%s |\n", order[i], base, v3, base / v3, slow ? " !" : ""
        }
        exit failed
    }' "$out/times"
