# Read by build.sh and smoke.sh, with the root of the repository as the working folder. Defines the folder
# of the packages, the version, and functions that both scripts use.

mkdir -p "${CARGO_TARGET_DIR:-target}"
CARGO_TARGET_DIR=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
export CARGO_TARGET_DIR CARGO_INCREMENTAL=0
packages=$CARGO_TARGET_DIR/packages
mkdir -p "$packages"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)

# Prints an error and stops.
fail() {
    echo "$0: $1" >&2
    exit 1
}

# Creates the virtual environment `tools` with the packages of packaging/requirements.txt, if it is missing
# or was created from another version of that file. Puts it first in PATH.
tools() {
    local environment=$CARGO_TARGET_DIR/packaging-tools requirements=packaging/requirements.txt
    if ! cmp -s "$requirements" "$environment/requirements.txt"; then
        rm -rf "$environment"
        python3 -m venv "$environment"
        "$environment/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
        cp "$requirements" "$environment/requirements.txt"
    fi
    export PATH=$environment/bin:$PATH
}
