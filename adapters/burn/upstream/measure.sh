#!/usr/bin/env bash
# Compares burn-flex 0.23.0-pre.1 with the same source and the patch, in one run.
# Arguments go to the program (`--help`). Needs crates.io.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=${CARGO_TARGET_DIR:-$root/target}/burn-upstream
version=0.23.0-pre.1

rm -rf "$work/measure" && mkdir -p "$work/measure/src"
cd "$work/measure"
cp "$here/measure/main.rs" src/main.rs
cp -r "$root/benches/common" src/common
# The module of the calls serves both crates.
calls=$root/benches/compare/rust/src/peers/burn.rs
cp "$calls" src/released.rs
sed 's/burn_flex/patched/g' "$calls" > src/patched_kernels.rs
cat > Cargo.toml <<TOML
[package]
name = "measure"
version = "0.0.0"
edition = "2024"

[workspace]

[dependencies]
burn-backend = { version = "=$version", default-features = false, features = ["std"] }
burn-flex = { version = "=$version", default-features = false, features = ["rayon", "std"] }
clap = { version = "4.6", default-features = false, features = ["std", "derive", "help", "usage", "error-context"] }
ndscatter = { path = "$root", default-features = false, features = ["half"] }
half = { version = "2.7", default-features = false }
rayon = "1.12"
TOML
cargo fetch
source=$(cargo metadata --format-version 1 | grep -o '"manifest_path":"[^"]*/burn-flex-'"$version"'/Cargo.toml"' | cut -d'"' -f4)
rm -rf "$work/patched" && cp -r "$(dirname "$source")" "$work/patched"
(cd "$work/patched" && patch -p1 < "$here/burn-flex-$version.patch" && sed -i 's/^name = "burn-flex"$/name = "burn-flex-patched"/' Cargo.toml)
cat >> Cargo.toml <<TOML
patched = { package = "burn-flex-patched", path = "$work/patched", default-features = false, features = ["rayon", "std"] }
TOML
CARGO_TARGET_DIR=$work/target cargo build --release
"$work/target/release/measure" --bench "$@" | sed 's/ndscatter, us/with the patch, us/'
