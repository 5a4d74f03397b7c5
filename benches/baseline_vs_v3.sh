#!/bin/sh
# Compares the reduction kernels of two builds: one for the x86-64 baseline, and one
# with `-C target-cpu=x86-64-v3`. The baseline build must select AVX2 at run time.
# Run the script on a machine with AVX2.
#
#   benches/baseline_vs_v3.sh [runs]
#
# The script builds both, and runs them interleaved (default: 5 times each). It prints
# the minimum of each in nanoseconds per 64 bytes, and their ratio. For the baseline
# build it uses the instruction set that the crate selects (the last column). For the
# other build it uses the fastest instruction set. The script fails if a kernel of the
# baseline build is more than 10 % slower.
set -eu

runs=${1:-5}
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# Builds the bench and prints the path of its binary. $1: target folder, $2: rustc flags.
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
