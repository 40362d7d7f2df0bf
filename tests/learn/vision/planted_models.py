"""Tiny backbones with random weights, as folders."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers


def save_dinov2(folder: Path) -> Path:
    torch.manual_seed(0)
    config = transformers.Dinov2Config(
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        mlp_ratio=2,
        image_size=32,
        patch_size=8,
    )
    transformers.Dinov2Model(config).save_pretrained(folder)
    return folder


def save_swin(folder: Path) -> Path:
    torch.manual_seed(0)
    config = transformers.SwinConfig(
        embed_dim=8,
        depths=[1, 1, 1, 1],
        num_heads=[1, 1, 1, 1],
        image_size=64,
        window_size=4,
        patch_size=4,
    )
    transformers.SwinModel(config).save_pretrained(folder)
    return folder
