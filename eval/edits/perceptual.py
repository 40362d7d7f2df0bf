"""Measures by learned models: LPIPS, DreamSim, sentence similarity, BRISQUE.

Each goes through its own package (the extra `perceptual`) and takes its weights from files that are there:
nothing is ever downloaded. What is missing is an error that names it, before anything is measured. torch and
the packages are imported when a measure is made.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import warnings
from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np

from uncanny.errors import UsageError
from uncanny.eval.common.similarity.packages import (
    image_tensor,
    import_package,
    loading,
    quiet_transformers,
    weights_folder,
)
from uncanny.eval.common.similarity.weights import content_hash
from uncanny.eval.edits.parameters import LpipsNet, PerceptualParameters
from uncanny.eval.edits.score import Perceptual
from uncanny.eval.metrics.edits import Pixels
from uncanny.extras import install_hint
from uncanny.files import open_file, read_file
from uncanny.models.compute import choose_device
from uncanny.parameters import takes
from uncanny.wording import option

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


class Lpips:
    """Learned perceptual image patch similarity (Zhang et al., 2018), v0.1: 0 for the same, larger is more.

    Images are taken at full size.
    """

    def __init__(self, net: LpipsNet, weights: Path | None, device: str | None) -> None:
        package = import_package("lpips")
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
        with loading(
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
            first, second = (image_tensor(each, self._device) * 2 - 1 for each in (original, edited))
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
            name
            for name in _DREAMSIM_FILES
            if not (weights_folder(folder, "DreamSim's weights") / name).exists()
        ]
        if missing:
            raise UsageError(
                f"{folder} does not hold all of DreamSim: {', '.join(missing)} missing",
                remedy="Let the package dreamsim fetch its weights into this folder once, and name it.",
            )
        package = import_package("dreamsim")
        self._device, self._lock = choose_device(device), threading.Lock()
        # The package prints where it finds its weights; standard output is for results.
        with loading(f"{folder}: DreamSim cannot be loaded"), redirect_stdout(sys.stderr):
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
        package = import_package("sentence_transformers")
        place = weights_folder(folder, "a sentence-transformers model")
        with quiet_transformers(), loading(f"{folder} contains no sentence-transformers model"):
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


class Brisque:
    """BRISQUE (Mittal and others, 2012), without a reference: lower is better, 0 to 100.

    OpenCV's contributed module computes it, with its model and range files in a folder:
    `brisque_model_live.yml` and `brisque_range_live.yml` of `modules/quality/samples` in opencv_contrib.
    """

    def __init__(self, folder: Path) -> None:
        cv2 = import_package("cv2")
        model, ranges = (
            weights_folder(folder, "BRISQUE's model") / f"brisque_{name}_live.yml"
            for name in ("model", "range")
        )
        if not hasattr(cv2, "quality"):
            raise UsageError(
                "BRISQUE needs OpenCV's contributed modules, and the OpenCV that is installed has none",
                remedy=install_hint("perceptual"),
            )
        for file in (model, ranges):
            if not file.is_file():
                raise UsageError(
                    f"{folder} does not contain {file.name}",
                    remedy="Copy it from modules/quality/samples of opencv_contrib.",
                )
        with loading(f"{folder} contains no model of BRISQUE"):
            self._measure = cv2.quality.QualityBRISQUE_create(str(model), str(ranges))
        self._features = cv2.quality.QualityBRISQUE_computeFeatures
        self._lock = threading.Lock()
        self.described: Mapping[str, Any] = {
            "package": f"opencv {cv2.__version__}",
            "weights": hashlib.sha256(read_file(model) + read_file(ranges)).hexdigest()[:16],
        }

    def score(self, pixels: Pixels) -> float:
        """Of an RGB image, 0–100; NaN of one that is too small or too even to have the statistics."""
        image = np.ascontiguousarray(pixels[..., ::-1])  # OpenCV has blue first
        # Without statistics OpenCV's score is some number all the same.
        if not np.isfinite(self._features(image)).all():
            return float("nan")
        with self._lock:
            return float(self._measure.compute(image)[0])
