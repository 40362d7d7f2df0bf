"""Tiny classifiers with random weights, as transformers and timm save them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from uncanny.detectors.views import View

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
torch.set_num_threads(1)

LABELS = {0: "real", 1: "fake"}
Saved = Callable[..., Path]


def vit_config(**more: Any) -> Any:
    sizes = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 64}
    labels = {"id2label": LABELS, "label2id": {name: number for number, name in LABELS.items()}}
    # Weights so large that attention is not the same everywhere.
    return transformers.ViTConfig(
        **{**sizes, **labels, "image_size": 64, "patch_size": 16, "initializer_range": 0.5, **more}
    )


def save(model: Any, folder: Path, side: int = 64) -> Path:
    """Save a classifier with what says that it takes squares of `side` pixels."""
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(View(size=(side, side)).to_json()))
    return folder


@pytest.fixture
def saved_vit(tmp_path: Path) -> Path:
    torch.manual_seed(1)
    return save(transformers.ViTForImageClassification(vit_config()), tmp_path / "vit")


@pytest.fixture
def vit() -> Any:
    torch.manual_seed(1)
    return transformers.ViTForImageClassification(vit_config(attn_implementation="eager")).eval()
