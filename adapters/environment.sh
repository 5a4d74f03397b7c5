#!/usr/bin/env bash
# Creates a virtual environment in a folder, and installs the packages of requirements files. Does
# nothing if the folder was created from the same requirements. Creates the folder again if the
# requirements have changed.
#
# uv installs the packages in a third of pip's time. The byte code of the packages is not compiled here:
# the tests import few of the modules. Python keeps the byte code of imported modules in the folder that
# the scripts of the tests set, `pycache` in cargo's target folder.
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
"$folder/bin/uv" pip install --quiet --no-cache --python "$folder/bin/python" "${@/#/--requirements=}"
cat "$@" >"$folder/requirements.txt"
