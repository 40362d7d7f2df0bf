"""Makes the checkpoint beside this file and what timm says of it, with timm 1.0.31: `python make.py`."""

from __future__ import annotations

import json
from pathlib import Path

import timm
import torch
from safetensors.torch import save_file

HERE = Path(__file__).parent
ARGUMENTS = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3}


def main() -> None:
    torch.manual_seed(0)
    model = timm.create_model("vit_tiny_patch16_224", num_classes=2, **ARGUMENTS).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    save_file(model.state_dict(), HERE / "model.safetensors")
    pretrained = {
        "input_size": [3, 32, 32],
        "crop_pct": 1.0,
        "interpolation": "bicubic",
        "mean": [0.5, 0.5, 0.5],
        "std": [0.5, 0.5, 0.5],
    }
    config = {
        "architecture": "vit_tiny_patch16_224",
        "num_classes": 2,
        "label_names": ["authentic", "synthetic"],
        "model_args": ARGUMENTS,
        "pretrained_cfg": pretrained,
    }
    (HERE / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    pixels = torch.linspace(-1, 1, 2 * 3 * 32 * 32).reshape(2, 3, 32, 32).sin()
    with torch.no_grad():
        logits = model(pixels).tolist()
    (HERE / "expected.json").write_text(json.dumps({"timm": timm.__version__, "logits": logits}) + "\n")


if __name__ == "__main__":
    main()
