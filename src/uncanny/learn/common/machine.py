"""The machine that trains: which device, which type, how much memory, which versions of libraries."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from uncanny.extras import optional
from uncanny.learn.common.parameters import LearnParameters
from uncanny.models.compute import choose_device
from uncanny.wording import counted

_LIBRARIES: Final = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "torchmetrics")


def require(modules: Sequence[str]) -> None:
    """Raises UsageError where a package of the extra `learn` is not installed."""
    for module in modules:
        optional(module, "learn", "Training")


def library_versions() -> Mapping[str, str]:
    """The versions that training depends on, by package; those that are not installed are left out."""
    versions = {}
    for name in _LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def device_of(parameters: LearnParameters) -> Any:
    """The `torch.device` to train on. Raises UsageError where it cannot be used.

    Of several processes that `accelerate launch` or `torchrun` starts, each has a GPU of its own.
    """
    import torch

    device = torch.device(choose_device(parameters.device))
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return device


def is_first_process() -> bool:
    """Whether this is the one of several training processes that writes and prints."""
    return os.environ.get("RANK", "0") == "0"


def wait_for_all() -> None:
    """Return when all processes that train together have come here."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return
    from torch import distributed

    if distributed.is_available() and distributed.is_initialized():
        distributed.barrier()


def dtype_of(parameters: LearnParameters, device: Any) -> Any:
    """The `torch.dtype` of the weights."""
    import torch

    name = parameters.precision or ("bfloat16" if device.type == "cuda" else "float32")
    return getattr(torch, name)


def begin_memory(device: Any) -> None:
    """Count the peak of a GPU's memory from here on."""
    import torch

    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory(device: Any) -> int:
    """Bytes: the peak of a GPU's allocator since `begin_memory`, or of this process since it began."""
    import torch

    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def machine_words(device: Any) -> str:
    """What trained, as model cards say it."""
    import torch

    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return f"a CPU with {counted(torch.get_num_threads(), 'thread')}"
