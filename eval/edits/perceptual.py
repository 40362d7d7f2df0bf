"""Measures of meaning by learned models: LPIPS, DreamSim, sentence similarity, CLIP.

Each goes through its own package (the extra `perceptual`) and takes its weights from files that are there:
nothing is ever downloaded. What is missing is an error that names it, before anything is measured. torch and
the packages are imported when a measure is made.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from uncanny.detectors.device import choose_device
from uncanny.errors import UsageError
from uncanny.eval.common.similarity.weights import content_hash
from uncanny.eval.edits.parameters import LpipsNet, PerceptualParameters
from uncanny.eval.edits.score import Perceptual
from uncanny.eval.metrics.edits import Pixels
from uncanny.extras import install_hint
from uncanny.files import open_file
from uncanny.parameters import takes
from uncanny.wording import option

if TYPE_CHECKING:
    import torch

# What torchvision calls the weights of each backbone.
_BACKBONES: Final[Mapping[LpipsNet, str]] = {
    "alex": "alexnet-owt-7be5be79.pth",
    "vgg": "vgg16-397923af.pth",
    "squeeze": "squeezenet1_1-b8a52dc0.pth",
}
# Of the ensemble, which is DreamSim's default; without one of them the package would fetch it.
_DREAMSIM_FILES: Final = (
    "dino_vitb16_pretrain.pth",
    "open_clip_vitb16_pretrain.pth.tar",
    "clip_vitb16_pretrain.pth.tar",
    "ensemble_lora",
    "facebookresearch_dino_main",
    "checkpoints/dino_vitbase16_pretrain.pth",
)
# CLIP's own, for folders that do not say.
_CLIP_MEAN: Final = (0.48145466, 0.4578275, 0.40821073)
_CLIP_STD: Final = (0.26862954, 0.26130258, 0.27577711)

Embedding = NDArray[np.float64]


@takes(PerceptualParameters)
def open_perceptual(parameters: PerceptualParameters) -> Perceptual:
    """Load the perceptual measures you name, to pass to `measure(…, perceptual=…)` for several sets.

    Loading DreamSim runs the `hubconf.py` in its folder, so use a folder you trust. Nothing is downloaded.

    Raises UsageError for a missing package, file or folder, and for weights that do not match.

    >>> uncanny.edits.open_perceptual().described
    {}
    """
    lpips, dreamsim, text_model = parameters.lpips, parameters.dreamsim, parameters.text_model
    weights = None if parameters.lpips_weights is None else Path(parameters.lpips_weights)
    if lpips is None and weights is not None:
        raise UsageError(f"{option('lpips_weights')} needs {option('lpips')}", remedy="Pass both.")
    device = parameters.device
    return Perceptual(
        None if lpips is None else Lpips(lpips, weights, device),
        None if dreamsim is None else DreamSim(Path(dreamsim), device),
        None if text_model is None else SentenceSimilarity(Path(text_model), device),
    )


def _package(name: str) -> Any:
    """Raises UsageError where it cannot be imported, for whatever reason: torchvision may not fit torch."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"{name} is not installed: {error}", remedy=install_hint("perceptual")) from error
    except Exception as error:
        raise UsageError(
            f"{name} cannot be imported ({type(error).__name__}: {error})"[:300],
            remedy="Do torch and torchvision belong together?",
        ) from error


@contextmanager
def _loading(failed: str, remedy: str | None = None) -> Iterator[None]:
    """Raises UsageError, which begins with `failed`, for whatever goes wrong."""
    try:
        yield
    except Exception as error:
        raise UsageError(f"{failed} ({type(error).__name__}: {error})"[:300], remedy=remedy) from error


def _tensor(pixels: Pixels, device: str) -> torch.Tensor:
    """(1, 3, height, width), 0–1."""
    import torch

    return torch.from_numpy(pixels.copy()).to(device).permute(2, 0, 1)[None].float() / 255


def _folder(path: Path, what: str) -> Path:
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder with {what}", remedy="Download it first: uncanny does not.")
    return path


class Lpips:
    """Learned perceptual image patch similarity (Zhang et al., 2018), v0.1: 0 for the same, larger is more.

    Images are taken at full size.
    """

    def __init__(self, net: LpipsNet, weights: Path | None, device: str | None) -> None:
        package = _package("lpips")
        place = choose_device(device)
        import torch

        file = weights or Path(torch.hub.get_dir()) / "checkpoints" / _BACKBONES[net]
        try:
            content = open_file(file, anywhere=weights is None)
        except OSError as error:
            raise UsageError(
                f"LPIPS needs torchvision's weights of {net}, and {file} cannot be read: {error.strerror}",
                remedy=f"Fetch {_BACKBONES[net]} and name it with {option('lpips_weights')}.",
            ) from error
        with _loading(
            f"{file} contains no weights of {net} for LPIPS", f"Pass torchvision's {_BACKBONES[net]}."
        ):
            with content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
                content.seek(0)
                state = torch.load(content, map_location="cpu", weights_only=True)
            # `pnet_rand`: the backbone's weights come from our file and not from the network.
            with warnings.catch_warnings():  # it calls torchvision in an old way
                warnings.simplefilter("ignore")
                model = package.LPIPS(net=net, pnet_rand=True, verbose=False)
            model.net.load_state_dict(_renamed(state, set(model.net.state_dict())))
            self._model = model.eval().to(place)
        self._device, self._lock = place, threading.Lock()
        self.described: Mapping[str, Any] = {
            "package": f"lpips {version('lpips')}",
            "net": net,
            "weights": digest[:16],
        }

    def distance(self, original: Pixels, edited: Pixels) -> float:
        import torch

        with self._lock, torch.inference_mode():
            first, second = (_tensor(each, self._device) * 2 - 1 for each in (original, edited))
            return float(self._model(first, second))


def _renamed(state: Mapping[str, Any], wanted: set[str]) -> dict[str, Any]:
    """torchvision's names of the layers, `features.3.weight`, as LPIPS has them, `slice2.3.weight`."""
    layers = {name.partition(".")[2]: name for name in wanted}
    return {
        layers[name.removeprefix("features.")]: value
        for name, value in state.items()
        if name.removeprefix("features.") in layers
    }


class DreamSim:
    """DreamSim (Fu et al., 2023), the ensemble: 0 for the same, larger is more.

    The package runs `facebookresearch_dino_main/hubconf.py` of the folder: whoever fills it runs code here.
    """

    def __init__(self, folder: Path, device: str | None) -> None:
        missing = [
            name for name in _DREAMSIM_FILES if not (_folder(folder, "DreamSim's weights") / name).exists()
        ]
        if missing:
            raise UsageError(
                f"{folder} does not hold all of DreamSim: {', '.join(missing)} missing",
                remedy="Let the package dreamsim fetch its weights into this folder once, and name it.",
            )
        package = _package("dreamsim")
        self._device, self._lock = choose_device(device), threading.Lock()
        # The package prints where it finds its weights; standard output is for results.
        with _loading(f"{folder}: DreamSim cannot be loaded"), redirect_stdout(sys.stderr):
            self._model, self._prepare = package.dreamsim(
                pretrained=True, device=self._device, cache_dir=str(folder)
            )
        self.described: Mapping[str, Any] = {"package": f"dreamsim {version('dreamsim')}", "type": "ensemble"}

    def distance(self, original: Pixels, edited: Pixels) -> float:
        import torch
        from PIL import Image

        with self._lock, torch.inference_mode():
            images = (self._prepare(Image.fromarray(each)).to(self._device) for each in (original, edited))
            return float(self._model(*images))


class SentenceSimilarity:
    """Cosine of two sentence embeddings: −1 to 1, 1 for the same meaning."""

    def __init__(self, folder: Path, device: str | None) -> None:
        package = _package("sentence_transformers")
        place = _folder(folder, "a sentence-transformers model")
        with _loading(f"{folder} contains no sentence-transformers model"):
            # Before version 6 a folder's own classes ran all the same.
            self._model = package.SentenceTransformer(
                str(place), device=choose_device(device), local_files_only=True, trust_remote_code=False
            )
        self._lock = threading.Lock()
        self.described: Mapping[str, Any] = {
            "package": f"sentence-transformers {version('sentence-transformers')}",
            "model": folder.name,
            "weights": content_hash(place)[:16],
        }

    def likeness(self, before: str, after: str) -> float:
        with self._lock:
            first, second = self._model.encode(
                [before, after], normalize_embeddings=True, show_progress_bar=False
            )
        return float(np.dot(first.astype(np.float64), second.astype(np.float64)))


class Clip:
    """CLIP's embeddings of images and texts, of length 1, from a folder that transformers has written."""

    def __init__(self, folder: Path, device: str | None) -> None:
        transformers = _package("transformers")
        place = _folder(folder, "a CLIP model")
        self._device, self._lock = choose_device(device), threading.Lock()
        remedy = "Pass a folder with config.json, weights and tokenizer of a CLIPModel."
        with _loading(f"{folder} contains no CLIP model", remedy):
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
            values = (_tensor(small, self._device) - self._mean.to(self._device)) / self._std.to(self._device)
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
