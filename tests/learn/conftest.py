"""Training needs the extra `learn`, which the development group does not bring: see `.ci/run`."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import pytest

NEEDED = ("trl", "peft", "accelerate", "torchvision")
missing = [name for name in NEEDED if find_spec(name) is None]

if missing and os.environ.get("UNCANNY_LEARN"):
    raise RuntimeError(f"UNCANNY_LEARN is set, but {', '.join(missing)} are not installed")
collect_ignore_glob = ["test_*_trained.py"] if missing else []


def open_torchvision() -> None:
    """Make torchvision importable beside a torch without CUDA, for which its wheel is not built."""
    import torch

    try:
        import torchvision  # noqa: F401
    except (RuntimeError, ImportError):
        for name in [each for each in sys.modules if each.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        pytest.torchvision_library = library  # type: ignore[attr-defined]


if not missing:
    open_torchvision()
    import torch

    torch.set_num_threads(1)
