"""Masks that take the place of artifacts in ablations: random, benign, and salient regions.

Source: X-AIGD, appendix D.4. There benign regions come from SAM and salient ones from U²-Net. Those models'
masks can be given as a folder; without one, these functions make plain ones that need no weights.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy import ndimage  # type: ignore[import-untyped]
from scipy.spatial import ConvexHull  # type: ignore[import-untyped]

Mask = NDArray[np.bool_]
AlignTo = Literal["artifact", "random", "benign", "saliency"]
ALIGN_TO: Final[tuple[AlignTo, ...]] = get_args(AlignTo)
"""What attention is drawn to: true artifacts, or one of the masks of the ablations."""

_POINTS: Final = 8
_COLORS: Final = 12
# The side that saliency is measured at; Hou and Zhang use 64 pixels.
_SALIENCY_SIDE: Final = 64


def random_mask(size: tuple[int, int], rng: np.random.Generator) -> Mask:
    """A random convex region of an image of this width and height: the hull of points in a random box.

    The box takes a fifth to three fifths of each side.
    """
    width, height = size
    sides = rng.uniform(0.2, 0.6, 2) * (width, height)
    corner = rng.uniform(0, 1, 2) * ((width, height) - sides)
    points = corner + rng.uniform(0, 1, (_POINTS, 2)) * sides
    hull = points[ConvexHull(points).vertices]
    canvas = Image.new("1", size)
    ImageDraw.Draw(canvas).polygon([(float(x), float(y)) for x, y in hull], fill=1)
    return np.asarray(canvas, dtype=np.bool_)


def benign_mask(image: Image.Image, artifacts: Mask) -> Mask:
    """The largest region of one color that no artifact touches; empty where there is none.

    Regions are connected pixels of one of 12 colors, after a slight blur.
    """
    reduced = image.convert("RGB").resize((max(1, image.width // 4), max(1, image.height // 4)))
    colors = np.asarray(reduced.quantize(_COLORS))
    touched = np.asarray(Image.fromarray(artifacts).resize(reduced.size, Image.Resampling.NEAREST))
    best, size = np.zeros(colors.shape, dtype=np.bool_), 0
    for color in np.unique(colors):
        labels, count = ndimage.label(colors == color)
        pixels = np.bincount(labels.ravel(), minlength=count + 1)
        pixels[0] = 0
        pixels[np.unique(labels[touched])] = 0
        largest = int(pixels.argmax())
        if pixels[largest] > size:
            best, size = labels == largest, int(pixels[largest])
    return np.asarray(Image.fromarray(best).resize(image.size, Image.Resampling.NEAREST)) & ~artifacts


def saliency_mask(image: Image.Image) -> Mask:
    """What stands out in an image: pixels whose spectral residual is above three times the mean.

    Source: Hou and Zhang (2007), Saliency detection: a spectral residual approach, sections 2 and 3.
    """
    small = image.convert("L").resize((_SALIENCY_SIDE, _SALIENCY_SIDE), Image.Resampling.BILINEAR)
    spectrum = np.fft.fft2(np.asarray(small, dtype=np.float64))
    amplitude = np.log(np.abs(spectrum) + 1e-9)
    amplitude[0, 0] = amplitude[0, 1]  # how bright the whole image is says nothing
    spectrum[0, 0] = 0
    residual = amplitude - ndimage.uniform_filter(amplitude, 3, mode="wrap")
    phase = spectrum / np.maximum(np.abs(spectrum), 1e-9)
    saliency = np.abs(np.fft.ifft2(np.exp(residual) * phase)) ** 2
    saliency = ndimage.gaussian_filter(saliency, 2.5)
    salient = Image.fromarray(saliency > 3 * saliency.mean())
    return np.asarray(salient.resize(image.size, Image.Resampling.NEAREST), dtype=np.bool_)
