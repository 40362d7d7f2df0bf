"""Where a classifier looks: heat maps of a batch, by attention, by gradients of features, or by patches.

Source of the choice of methods: X-AIGD, section 4 and appendix B.1: Grad-CAM for convolutional networks and
Swin, relevance maps for vision transformers, sliding patches for detectors of patches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from PIL import Image

from uncanny.detectors.attention import ATTENTION_MAPS, AttentionMap, attention_map
from uncanny.detectors.loading import Classifier
from uncanny.detectors.parameters import HeatMap
from uncanny.detectors.views import Box
from uncanny.errors import UsageError
from uncanny.wording import option

if TYPE_CHECKING:
    from torch import Tensor

# Factors of pixel values, each also mirrored, as the library that X-AIGD uses has them.
_FACTORS: Final = (0.9, 1.0, 1.1)
_LEAST: Final = 1e-7


def choose(method: HeatMap, classifier: Classifier) -> HeatMap:
    """The method that `auto` stands for. Raises UsageError for one that the detector cannot have."""
    if method == "auto":
        return "gradcam" if classifier.patch is None else "relevance"
    if method in ATTENTION_MAPS and classifier.patch is None:
        raise UsageError(
            f"{option('maps')} {method} needs a vision transformer with a class token, and "
            f"{classifier.described['detector']} is a {classifier.described['architecture']}",
            remedy="Use gradcam.",
        )
    return method


def judge_batch(classifier: Classifier, pixels: Tensor, method: HeatMap) -> tuple[Tensor, Tensor | None]:
    """Logits of "generated" (images,) of a batch, and its heat maps (images, h, w), 0–1.

    `method` is one that `choose` returned; maps are None for `none`. Maps that need no gradient are made
    without one.
    """
    import torch

    if method == "none":
        with torch.inference_mode():
            return classifier.logit(pixels, False)[0], None
    if method == "rollout":
        with torch.inference_mode():
            logits, attentions = classifier.logit(pixels, True)
            return logits, attention_map(attentions, _grid(classifier, pixels))
    if method in ("gradcam", "smooth_gradcam"):
        return _gradcam(classifier, pixels, smooth=method == "smooth_gradcam")
    with torch.enable_grad(), frozen(classifier.module):
        # Attentions have a gradient only where something before them has one.
        logits, attentions = classifier.logit(pixels.requires_grad_(), True)
        weighed: AttentionMap = "relevance" if method == "relevance" else "gradient_rollout"
        maps = attention_map(attentions, _grid(classifier, pixels), logits, method=weighed)
    return logits.detach(), maps.detach()


def _grid(classifier: Classifier, pixels: Tensor) -> tuple[int, int]:
    assert classifier.patch is not None
    return pixels.shape[2] // classifier.patch, pixels.shape[3] // classifier.patch


@contextmanager
def frozen(module: Any) -> Iterator[None]:
    """Without gradients of parameters, which a map does not need."""
    kept = [parameter for parameter in module.parameters() if parameter.requires_grad]
    for parameter in kept:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in kept:
            parameter.requires_grad_()


def _gradcam(classifier: Classifier, pixels: Tensor, *, smooth: bool) -> tuple[Tensor, Tensor]:
    """Grad-CAM of the last features that have places; each map is scaled to 0–1.

    With `smooth` it is the mean over three brightnesses, each also mirrored.

    Source: Selvaraju et al. (2017), Grad-CAM, section 3; smoothing as in pytorch-grad-cam (`aug_smooth`),
    which X-AIGD uses.
    """
    import torch

    logits, first = _one_gradcam(classifier, pixels)
    if not smooth:
        return logits, first
    maps = []
    for factor in _FACTORS:
        maps.append(_one_gradcam(classifier, pixels * factor)[1])
        mirrored = _one_gradcam(classifier, (pixels * factor).flip(3))[1]
        maps.append(mirrored.flip(2))
    return logits, _scaled(torch.stack(maps).mean(dim=0))


def _one_gradcam(classifier: Classifier, pixels: Tensor) -> tuple[Tensor, Tensor]:
    import torch

    with torch.enable_grad(), frozen(classifier.module), _features(classifier.module, pixels) as outputs:
        logits = classifier.logit(pixels.detach().requires_grad_(), False)[0]
        if not outputs:
            raise UsageError(
                f"{classifier.described['detector']} has no features with places for Grad-CAM",
                remedy=f"Use {option('maps')} none.",
            )
        features = outputs[-1]
        (gradients,) = torch.autograd.grad(logits.sum(), features)
    patch = _patch_of(classifier.module)
    places, slopes = (_channels_last(each, pixels, patch) for each in (features.detach(), gradients))
    weights = slopes.mean(dim=(1, 2), keepdim=True)
    return logits.detach(), _scaled((weights * places).sum(dim=3).clamp_min(0))


@contextmanager
def _features(module: Any, pixels: Tensor) -> Iterator[list[Tensor]]:
    """Outputs of all modules that have a value for each of several places, in the order they come."""
    import torch

    outputs: list[Tensor] = []
    patch = _patch_of(module)

    def keep(_module: Any, _inputs: Any, output: Any) -> None:
        if isinstance(output, torch.Tensor) and output.requires_grad and _shape(output, pixels, patch):
            outputs.append(output)

    handles = [each.register_forward_hook(keep) for each in module.modules() if each is not module]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


def _patch_of(module: Any) -> int | None:
    """Side of the patches that tokens stand for, in pixels; None for a network that does not say it."""
    config = getattr(module, "config", None)
    patch = getattr(getattr(config, "vision_config", config), "patch_size", None)
    return patch if isinstance(patch, int) else None


def _shape(output: Tensor, pixels: Tensor, patch: int | None) -> tuple[int, int] | None:
    """Places down and across of features; None for what is not a feature of each image at several places."""
    height, width = pixels.shape[2:]
    if len(output) != len(pixels):
        return None
    if output.ndim == 4:
        down, across = output.shape[1:3] if _is_channels_last(output, height, width) else output.shape[2:]
        return (down, across) if down > 1 and across > 1 else None
    if output.ndim != 3 or output.shape[1] < 4 or output.shape[2] < 2:
        return None
    # Tokens in rows: those of patches, perhaps behind one for the class.
    if patch is not None and (height // patch) * (width // patch) in (output.shape[1], output.shape[1] - 1):
        return height // patch, width // patch
    # Or those of a network that halves the image several times.
    for stride in (4, 8, 16, 32, 64):
        down, across = -(-height // stride), -(-width // stride)
        if down * across == output.shape[1]:
            return down, across
    return None


def _is_channels_last(output: Tensor, height: int, width: int) -> bool:
    """Whether (images, h, w, channels) fits the shape of the image, and (images, channels, h, w) does not."""

    def fits(down: int, across: int) -> bool:
        return abs(down * width - across * height) <= max(height, width)

    return fits(*output.shape[1:3]) and not fits(*output.shape[2:])


def _channels_last(features: Tensor, pixels: Tensor, patch: int | None) -> Tensor:
    """(images, h, w, channels)."""
    if features.ndim == 3:
        shape = _shape(features, pixels, patch)
        assert shape is not None
        places = features[:, features.shape[1] - shape[0] * shape[1] :]
        return places.reshape(len(features), *shape, features.shape[2])
    if _is_channels_last(features, *pixels.shape[2:]):
        return features
    return features.permute(0, 2, 3, 1)


def _scaled(maps: Tensor) -> Tensor:
    """Each map from 0 to 1; zeros where all is alike."""
    low = maps.amin(dim=(1, 2), keepdim=True)
    maps = maps - low
    return maps / maps.amax(dim=(1, 2), keepdim=True).clamp_min(_LEAST)


def windows(image: Image.Image, side: int) -> Sequence[Box]:
    """Boxes of `side` × `side` pixels that cover an image, side by side; the last ones end at its edges.

    An image smaller than a window is one box of its own shape.

    Source: X-AIGD, appendix B.1: windows of 224 pixels, with a stride of 224.
    """

    def starts(length: int) -> list[int]:
        if length <= side:
            return [0]
        return [*range(0, length - side, side), length - side]

    return [
        (x, y, min(x + side, image.width), min(y + side, image.height))
        for y in starts(image.height)
        for x in starts(image.width)
    ]
