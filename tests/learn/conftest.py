"""Training needs the extra `learn`, which the development group does not bring: see `.ci/run`."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Any

NEEDED = ("trl", "peft", "accelerate", "torchvision")
missing = [name for name in NEEDED if find_spec(name) is None]

if missing and os.environ.get("UNCANNY_LEARN"):
    raise RuntimeError(f"UNCANNY_LEARN is set, but {', '.join(missing)} are not installed")
collect_ignore_glob = ["*_trained.py"] if missing else []  # in folders below as well


def open_torchvision() -> None:
    """Make torchvision importable beside a torch without CUDA, for which its wheel is not built."""
    from importlib import import_module

    try:
        import_module("torchvision")
    except (RuntimeError, ImportError):
        for name in [each for each in sys.modules if each.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        libraries: Any = import_module("torch.library")
        library = libraries.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        # Its operators go when it goes.
        globals()["_library"] = library


if not missing:
    open_torchvision()
    import torch

    torch.set_num_threads(1)
