"""CLIP's embeddings of images and texts, from a folder on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.common.similarity.packages import (
    Pixels,
    image_tensor,
    import_package,
    loading,
    quiet_transformers,
    weights_folder,
)
from uncanny.eval.common.similarity.weights import content_hash
from uncanny.models.compute import choose_device

if TYPE_CHECKING:
    import torch

# CLIP's own, for folders that do not say.
_CLIP_MEAN: Final = (0.48145466, 0.4578275, 0.40821073)
_CLIP_STD: Final = (0.26862954, 0.26130258, 0.27577711)

Embedding = NDArray[np.float64]


class Clip:
    """CLIP's embeddings of images and texts, of length 1, from a folder that transformers has written."""

    def __init__(self, folder: Path, device: str | None) -> None:
        transformers = import_package("transformers")
        place = weights_folder(folder, "a CLIP model")
        self._device, self._lock = choose_device(device), threading.Lock()
        remedy = "Pass a folder with config.json, weights and tokenizer of a CLIPModel."
        with quiet_transformers(), loading(f"{folder} contains no CLIP model", remedy):
            here = {"local_files_only": True, "trust_remote_code": False}
            self._model = transformers.CLIPModel.from_pretrained(place, **here).eval().to(self._device)
            self._tokens = transformers.AutoTokenizer.from_pretrained(place, **here)
            self._side = int(self._model.config.vision_config.image_size)
            self._limit = int(self._model.config.text_config.max_position_embeddings)
            self._mean, self._std = _normalisation(place)
        self.described: Mapping[str, Any] = {
            "package": f"transformers {version('transformers')}",
            "model": folder.name,
            "weights": content_hash(place)[:16],
        }

    def image(self, pixels: Pixels) -> Embedding:
        """The shorter side is brought to the model's, bicubic, and the middle taken, as CLIP was trained."""
        import torch
        from PIL import Image

        image = Image.fromarray(pixels)
        scale = self._side / min(image.size)
        width, height = (max(self._side, round(each * scale)) for each in image.size)
        left, top = (width - self._side) // 2, (height - self._side) // 2
        image = image.resize((width, height), Image.Resampling.BICUBIC)
        small = np.asarray(image.crop((left, top, left + self._side, top + self._side)))
        with self._lock, torch.inference_mode():
            values = (image_tensor(small, self._device) - self._mean.to(self._device)) / self._std.to(
                self._device
            )
            return _unit(self._model.get_image_features(pixel_values=values))

    def text(self, text: str) -> Embedding:
        """Texts beyond the model's length are cut."""
        import torch

        with self._lock, torch.inference_mode():
            tokens = self._tokens([text], truncation=True, max_length=self._limit, return_tensors="pt")
            names = ("input_ids", "attention_mask")
            return _unit(
                self._model.get_text_features(**{name: tokens[name].to(self._device) for name in names})
            )


def _normalisation(folder: Path) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    file = folder / "preprocessor_config.json"
    content = json.loads(file.read_bytes()) if file.is_file() else {}
    mean, std = content.get("image_mean", _CLIP_MEAN), content.get("image_std", _CLIP_STD)
    return torch.tensor(mean).view(1, 3, 1, 1), torch.tensor(std).view(1, 3, 1, 1)


def _unit(features: Any) -> Embedding:
    """transformers returns the embedding, or an output that has it, by its version."""
    tensor = getattr(features, "pooler_output", features)
    vector: Embedding = tensor[0].double().cpu().numpy()
    return vector / np.linalg.norm(vector)
