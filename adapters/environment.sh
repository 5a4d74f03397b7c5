#!/usr/bin/env bash
# Creates a virtual environment in a folder, and installs the packages of requirements files. Does
# nothing if the folder was created from the same requirements. Creates the folder again if the
# requirements have changed.
#
# uv installs the packages and compiles their byte code, as pip does, in a third of the time.
#
#   adapters/environment.sh FOLDER REQUIREMENTS...
set -euo pipefail
folder=$1
shift
if cat "$@" | cmp -s - "$folder/requirements.txt"; then
    exit
fi
rm -rf "$folder"
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check uv
"$folder/bin/uv" pip install --quiet --no-cache --compile-bytecode --python "$folder/bin/python" "${@/#/--requirements=}"
cat "$@" >"$folder/requirements.txt"
