#!/bin/bash -eu
# Builds all fuzz targets for OSS-Fuzz, and packs the seeds of each target.
cargo fuzz build -O --debug-assertions

for source in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    cp "fuzz/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
    zip -jq "$OUT/${target}_seed_corpus.zip" "fuzz/seeds/$target"/*
done

# A file of a few kilobytes must not cause a large allocation.
printf '[libfuzzer]\nmalloc_limit_mb = 64\n' >"$OUT/npy.options"
