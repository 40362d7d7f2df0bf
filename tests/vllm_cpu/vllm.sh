#!/usr/bin/env bash
# `vllm` with settings for a tiny model on two cores:  UNCANNY_VLLM_VENV=… vllm.sh serve MODEL [ARGUMENT…]
# It takes the place of the vllm command, also as UNCANNY_VLLM_COMMAND. Later arguments win.
set -euo pipefail

verb=${1:?usage: vllm.sh serve MODEL [ARGUMENT…]}
model=${2:?usage: vllm.sh serve MODEL [ARGUMENT…]}
shift 2

# What the caller has there is not for this environment.
unset PYTHONPATH
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
# Compiling and pinning threads cost more than they bring at this size.
export TORCHDYNAMO_DISABLE=1 VLLM_CPU_OMP_THREADS_BIND=nobind OMP_NUM_THREADS=1

# The default block of 128 tokens would keep short prompts out of the prefix cache.
exec "${UNCANNY_VLLM_VENV:?a folder made by install.sh}/bin/vllm" "$verb" "$model" \
    --dtype float32 --enforce-eager \
    --max-model-len 16384 --max-num-seqs 8 --block-size 32 --kv-cache-memory-bytes 128M \
    --limit-mm-per-prompt '{"image": 5, "video": 0}' --mm-processor-cache-gb 0.1 \
    "$@"
