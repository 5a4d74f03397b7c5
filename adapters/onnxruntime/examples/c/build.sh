#!/usr/bin/env bash
# Builds session.c and links it with the onnxruntime library in the Python package onnxruntime.
#
#   adapters/onnxruntime/examples/c/build.sh [program]     default: ./session
#
# The environment variable PYTHON names a Python interpreter that has this package. Default:
# python3.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

package=$("${PYTHON:-python3}" -c 'import onnxruntime, os; print(os.path.dirname(onnxruntime.__file__))')
shopt -s nullglob
libraries=("$package"/capi/libonnxruntime.so.1.*)
if [[ ${#libraries[@]} == 0 ]]; then
    echo "no libonnxruntime.so.1.* in $package/capi; install the package onnxruntime" >&2
    exit 1
fi

library=${libraries[0]}
program=${1:-session}
folder=$(cd "$(dirname "$program")" && pwd)

cc -std=c11 -O2 -Wall -Wextra "$here/session.c" "$library" -Wl,-rpath,"\$ORIGIN" -o "$program"

# At its start, the program loads the library by its soname, libonnxruntime.so.1. The package has no
# file of this name. The next lines create a symbolic link with this name in the program's folder.
name=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
ln -sf "$library" "$folder/$name"
