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
from uncanny.detectors.tokens import Tokens
from uncanny.detectors.views import Box
from uncanny.errors import UsageError
from uncanny.models.compute import frozen
from uncanny.wording import option

if TYPE_CHECKING:
    from torch import Tensor

# Factors of pixel values, each also mirrored, as the library that X-AIGD uses has them.
_FACTORS: Final = (0.9, 1.0, 1.1)
_LEAST: Final = 1e-7
_GRADCAM: Final = ("gradcam", "smooth_gradcam")


def choose(method: HeatMap, classifier: Classifier) -> HeatMap:
    """The method that `auto` stands for. Raises UsageError for one that would not show where it looks.

    Where a network's tokens are known, a map starts from those that its head reads. Gradient rollout follows
    a class token alone, and Grad-CAM needs features with places that the head reads.
    """
    tokens = classifier.tokens
    if method == "auto":
        method = "gradcam" if tokens is None else "relevance"
    name, architecture = classifier.described["detector"], classifier.described["architecture"]
    if method in ATTENTION_MAPS and tokens is None:
        raise UsageError(
            f"{option('maps')} {method} needs a vision transformer with attention between all its tokens, "
            f"and {name} is a {architecture}",
            remedy="Use gradcam.",
        )
    if tokens is not None and method == "gradient_rollout" and tokens.read_patches:
        raise UsageError(
            f"{option('maps')} {method} follows a class token, and the head of {name} reads its patches",
            remedy="Use relevance or rollout.",
        )
    if tokens is not None and method in _GRADCAM and tokens.read_others:
        raise UsageError(
            f"{option('maps')} {method} needs a head that reads places alone, and that of {name} reads its "
            "class token",
            remedy="Use relevance or rollout.",
        )
    if method in _GRADCAM:
        import torch

        side = classifier.view.window
        # One that has no such features says so now, and not image by image.
        _one_gradcam(classifier, torch.zeros(1, 3, side, side))
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
            grid, read = _starts(classifier, pixels)
            return logits, attention_map(attentions, grid, read=read)
    if method in _GRADCAM:
        return _gradcam(classifier, pixels, smooth=method == "smooth_gradcam")
    with torch.enable_grad(), frozen(classifier.module):
        # Attentions have a gradient only where something before them has one.
        logits, attentions = classifier.logit(pixels.requires_grad_(), True)
        weighed: AttentionMap = "relevance" if method == "relevance" else "gradient_rollout"
        grid, read = _starts(classifier, pixels)
        maps = attention_map(attentions, grid, logits, read, method=weighed)
    return logits.detach(), maps.detach()


def _starts(classifier: Classifier, pixels: Tensor) -> tuple[tuple[int, int], Tensor]:
    """Patches down and across, and how strongly the head reads each token."""
    assert classifier.tokens is not None
    return classifier.tokens.grid(pixels), classifier.tokens.read(pixels)


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

    tokens = classifier.tokens
    with torch.enable_grad(), frozen(classifier.module), _features(classifier.module, pixels) as outputs:
        logits = classifier.logit(pixels.detach().requires_grad_(), False)[0]
        # Of earlier features a map would not show what the head reads.
        if not outputs or _shape(outputs[-1], pixels, tokens) is None:
            raise UsageError(
                f"Grad-CAM needs features with places, which the last ones of "
                f"{classifier.described['detector']} have not",
                remedy=f"Use {option('maps')} none.",
            )
        features = outputs[-1]
        (gradients,) = torch.autograd.grad(logits.sum(), features)
    places, slopes = (_channels_last(each, pixels, tokens) for each in (features.detach(), gradients))
    weights = slopes.mean(dim=(1, 2), keepdim=True)
    return logits.detach(), _scaled((weights * places).sum(dim=3).clamp_min(0))


@contextmanager
def _features(module: Any, pixels: Tensor) -> Iterator[list[Tensor]]:
    """Outputs of all modules that have features of several places or tokens, in the order they come."""
    import torch

    outputs: list[Tensor] = []

    def keep(_module: Any, _inputs: Any, output: Any) -> None:
        if isinstance(output, torch.Tensor) and output.requires_grad and len(output) == len(pixels):
            several = output.ndim == 3 and output.shape[1] >= 4 and output.shape[2] >= 2
            if several or (output.ndim == 4 and _shape(output, pixels, None) is not None):
                outputs.append(output)

    handles = [each.register_forward_hook(keep) for each in module.modules() if each is not module]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


def _shape(output: Tensor, pixels: Tensor, tokens: Tokens | None) -> tuple[int, int] | None:
    """Places down and across of features, (images, …) of 3 or 4 dimensions; None for features of no place."""
    height, width = pixels.shape[2:]
    if output.ndim == 4:
        down, across = output.shape[1:3] if _is_channels_last(output, height, width) else output.shape[2:]
        return (down, across) if down > 1 and across > 1 else None
    if tokens is not None:
        down, across = tokens.grid(pixels)
        return (down, across) if output.shape[1] == down * across + tokens.prefix else None
    # Tokens in rows: those of a network that halves the image several times.
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


def _channels_last(features: Tensor, pixels: Tensor, tokens: Tokens | None) -> Tensor:
    """(images, h, w, channels), without tokens that are not patches."""
    if features.ndim == 3:
        shape = _shape(features, pixels, tokens)
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
