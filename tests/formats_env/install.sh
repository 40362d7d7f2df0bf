#!/usr/bin/env bash
# An environment of its own for libraries that pin older versions of numpy: install.sh [FOLDER], .formats by default.
set -eu
cd "$(dirname "$0")/../.."
folder=${1:-.formats}
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet 'datumaro>=1.13,<2' 'label-studio-sdk>=2.1,<3' 'labelme>=6.3,<7'
