#!/usr/bin/env bash
# Builds session.c against the onnxruntime of a Python package.
#
#   adapters/onnxruntime/examples/c/build.sh [program]     default: ./session
#
# $PYTHON is the interpreter that has the package, python3 by default.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

package=$("${PYTHON:-python3}" -c 'import onnxruntime, os; print(os.path.dirname(onnxruntime.__file__))')
shopt -s nullglob
libraries=("$package"/capi/libonnxruntime.so.1.*)
if [[ ${#libraries[@]} == 0 ]]; then
    echo "there is no libonnxruntime.so.1.* in $package/capi" >&2
    exit 1
fi

library=${libraries[0]}
program=${1:-session}
folder=$(cd "$(dirname "$program")" && pwd)

cc -std=c11 -O2 -Wall -Wextra "$here/session.c" "$library" -Wl,-rpath,"\$ORIGIN" -o "$program"

# At run time the library is looked for by the name that it has inside, libonnxruntime.so.1; the
# package has no file of that name. A link beside the program is one.
name=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
ln -sf "$library" "$folder/$name"
