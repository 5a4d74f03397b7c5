#!/usr/bin/env bash
# Compares the kernels of burn-flex 0.23.0-pre.1 with the patched kernels, in one run. The script
# compiles the modules of the kernels and of the tensor. The rest of burn-flex takes minutes.
# Arguments go to the program (`--help`). `--test` runs the unit tests of the patch instead. Needs
# crates.io and `patch`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=${CARGO_TARGET_DIR:-$root/target}/burn-upstream
version=0.23.0-pre.1

rm -rf "$work/src" && mkdir -p "$work/src/measure/src"
cd "$work/src"

# The published source.
mkdir fetch && cd fetch && mkdir src && echo > src/lib.rs
cat > Cargo.toml <<TOML
[package]
name = "fetch"
version = "0.0.0"
[workspace]
[dependencies]
burn-flex = { version = "=$version", default-features = false, features = ["std"] }
TOML
manifest=$(cargo metadata --format-version 1 | grep -o '"manifest_path":"[^"]*/burn-flex-'"$version"'/Cargo.toml"' | head -n 1 | cut -d'"' -f4)
cd ..

# A crate with the modules that the kernels need.
small() {
    mkdir -p "$1/src/ops"
    (cd "$2/src" && cp tensor.rs layout.rs strided_index.rs "$OLDPWD/$1/src/" && cp ops/gather_scatter.rs "$OLDPWD/$1/src/ops/")
    # The tests of these modules use other modules.
    sed -i '/^#\[cfg(test)\]$/,$d' "$1"/src/{tensor,layout,strided_index}.rs
    [[ ! -e $2/src/ops/indexed_update.rs ]] || cp "$2/src/ops/indexed_update.rs" "$1/src/ops/"
    cat > "$1/Cargo.toml" <<TOML
[package]
name = "$1"
version = "0.0.0"
edition = "2024"
[features]
default = ["rayon", "std"]
rayon = []
std = []
[dependencies]
burn-backend = { version = "=$version", default-features = false, features = ["std"] }
burn-std = { version = "=$version", default-features = false, features = ["std"] }
bytemuck = "1.25"
rayon = "1.12"
TOML
    cat > "$1/src/lib.rs" <<RUST
#![allow(dead_code, unused_imports)]
extern crate alloc;
mod layout;
mod strided_index;
mod tensor;
pub mod ops {
    pub mod gather_scatter;
    $([[ $1 == released ]] || echo "mod indexed_update;")
    pub(crate) const PARALLEL_THRESHOLD: usize = 256 * 1024;
}
pub use layout::Layout;
pub use tensor::FlexTensor;
use burn_backend::{DType, DeviceId, DeviceOps};
use burn_std::{BoolStore, DeviceSettings, QuantConfig, QuantScheme};
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlexDevice;
impl burn_std::device::Device for FlexDevice {
    fn to_id(&self) -> DeviceId {
        DeviceId::new(0, 0)
    }
    fn from_id(_: DeviceId) -> Self {
        Self
    }
}
impl DeviceOps for FlexDevice {
    fn defaults(&self) -> DeviceSettings {
        let quantization = QuantConfig::new(QuantScheme::default(), Default::default());
        DeviceSettings::new(DType::F32, DType::I32, DType::Bool(BoolStore::Native), quantization)
    }
}
RUST
}
small released "$(dirname "$manifest")"
cp -r "$(dirname "$manifest")" whole
patch -s -d whole -p1 < "$here/burn-flex-$version.patch"
small patched "$PWD/whole"
rm -rf whole

cp "$here/measure/main.rs" measure/src/main.rs
cp -r "$root/benches/common" measure/src/common
cat > measure/Cargo.toml <<TOML
[package]
name = "measure"
version = "0.0.0"
edition = "2024"
[features]
half = []
[dependencies]
burn-backend = { version = "=$version", default-features = false, features = ["std"] }
clap = { version = "4.6", default-features = false, features = ["std", "derive", "help", "usage", "error-context"] }
ndscatter = { path = "$root", default-features = false }
patched = { path = "../patched" }
rayon = "1.12"
released = { path = "../released" }
TOML
cat > Cargo.toml <<TOML
[workspace]
members = ["measure", "patched", "released"]
resolver = "3"
TOML
export CARGO_TARGET_DIR=$work/target
if [[ ${1:-} == --test ]]; then
    cargo test --release -p patched indexed_update
    exit
fi
cargo build --release
"$work/target/release/measure" --bench "$@" | sed 's/ndscatter, us/patched, us/'
