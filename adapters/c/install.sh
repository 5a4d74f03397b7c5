#!/bin/sh
# Installs the shared and the static library, their header, a pkg-config file and a
# CMake package.
# Builds nothing: `cargo build --release -p ndscatter-c` must have built the
# libraries.
set -eu

package=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$package/../.." && pwd)

prefix=/usr/local
destdir=
relocatable=false
target=${CARGO_TARGET_DIR:-$root/target}

usage() {
    cat <<USAGE
usage: $0 [--prefix DIR] [--destdir DIR] [--target-dir DIR] [--relocatable]

  --prefix DIR      folder to install to (default: /usr/local)
  --destdir DIR     folder put before each written path, for packages; the
                    installed files do not contain it (default: none)
  --target-dir DIR  target folder of cargo (default: CARGO_TARGET_DIR if set,
                    otherwise target in the repository root)
  --relocatable     the pkg-config file finds the prefix from its own path, so
                    that the installation may be moved

Build the library first: cargo build --release -p ndscatter-c
USAGE
}

fail() {
    printf '%s: %s\n' "$0" "$1" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case $1 in
    -h | --help)
        usage
        exit 0
        ;;
    --relocatable)
        relocatable=true
        shift
        continue
        ;;
    --prefix=* | --destdir=* | --target-dir=*)
        name=${1%%=*}
        value=${1#*=}
        shift
        ;;
    --prefix | --destdir | --target-dir)
        [ $# -ge 2 ] || fail "$1 needs a value"
        name=$1
        value=$2
        shift 2
        ;;
    *)
        usage >&2
        fail "unknown argument '$1'; see --help"
        ;;
    esac
    case $name in
    --prefix) prefix=$value ;;
    --destdir) destdir=$value ;;
    --target-dir) target=$value ;;
    esac
done

case $prefix in
/*) ;;
*) fail "--prefix must be an absolute path, not '$prefix'" ;;
esac

# In the repository, the version is in the workspace's manifest. In the published crate, it is in the crate's.
version=$(cat -- "$package/Cargo.toml" "$package/../../Cargo.toml" 2>/dev/null | sed -n 's/^version = "\(.*\)"$/\1/p' | head -n 1)
[ -n "$version" ] || fail "no version in $package/Cargo.toml"

built=$target/release
header=$package/include/ndscatter.h
for file in "$built/libndscatter_c.so" "$built/libndscatter_c.a"; do
    [ -f "$file" ] || fail "$file is missing; run 'cargo build --release -p ndscatter-c' first"
done
[ -f "$header" ] || fail "$header is missing; restore it from the repository"

# put MODE FROM TO: copies the file FROM to TO, with the permissions MODE, and prints
# TO. Replaces an existing TO atomically, because programs may have it open.
put() {
    mode=$1 from=$2 to=$3
    cp -- "$from" "$to.new"
    chmod "$mode" "$to.new"
    mv -f -- "$to.new" "$to"
    printf '%s\n' "$to"
}

lib=$destdir$prefix/lib
include=$destdir$prefix/include
mkdir -p -- "$lib/pkgconfig" "$lib/cmake/ndscatter" "$include"

put 755 "$built/libndscatter_c.so" "$lib/libndscatter_c.so.1"
ln -sf libndscatter_c.so.1 "$lib/libndscatter_c.so"
printf '%s\n' "$lib/libndscatter_c.so"
put 644 "$built/libndscatter_c.a" "$lib/libndscatter_c.a"
put 644 "$header" "$include/ndscatter.h"

written=$prefix
! $relocatable || written='${pcfiledir}/../..'
# Escapes the characters of the prefix that have a meaning for sed in the
# replacement of `s|...|...|`.
escaped=$(printf '%s' "$written" | sed 's/[\\&|]/\\&/g')
# The libraries that the static library needs, as a list of CMake.
libraries=$(sed -n 's/^Libs.private: //p' "$package/ndscatter-c.pc.in" | tr ' ' ';')

# fill TEMPLATE FOLDER: writes the file TEMPLATE without its extension .in to FOLDER, with
# the prefix, the version and the libraries, and prints the path.
fill() {
    filled=$2/${1%.in}
    sed -e "s|@prefix@|$escaped|" -e "s|@version@|$version|" -e "s|@libraries@|$libraries|" \
        "$package/$1" >"$filled.new"
    chmod 644 "$filled.new"
    mv -f -- "$filled.new" "$filled"
    printf '%s\n' "$filled"
}

fill ndscatter-c.pc.in "$lib/pkgconfig"
fill ndscatterConfig.cmake.in "$lib/cmake/ndscatter"
fill ndscatterConfigVersion.cmake.in "$lib/cmake/ndscatter"
