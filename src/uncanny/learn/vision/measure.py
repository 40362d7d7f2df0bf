"""What a detector says of held-out images, before and after training, in figures and in words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from uncanny.detectors.views import View
from uncanny.learn.common.session import LearnSession
from uncanny.learn.vision.data import Classes, Labeled
from uncanny.learn.vision.loop import artifacts_of
from uncanny.learn.vision.losses import artifact_map, patch_iou

# From which value of a map on it is looked at.
_THRESHOLD = 0.5
Figures = Mapping[str, float | None]
Size = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Said:
    """Of one image: the probability that it is generated, and how its map fits the true one; or None.

    `overlap` are two numbers of patches or pixels: those in both maps, and those in either.
    """

    labeled: Labeled
    score: float | None
    overlap: tuple[int, int] | None = None


Ask = Callable[[torch.Tensor, Size], tuple[torch.Tensor | None, torch.Tensor | None]]
"""Takes pixels (images, 3, height, width) and the height and width of the images' files, and gives logits
(images,) and maps: (images, h, w) of patches, 0–1, or of the pixels of a file, 0 or 1."""


def said_of(
    images: Sequence[Labeled], view: View, ask: Ask, patch: int, device: Any, batch: int = 16
) -> list[Said]:
    """Ask a model about images as the saved model will see them, through its own view.

    Maps of patches are compared with shares of `patch` pixels a side; 1 compares pixels of the file. Images
    of one shape are asked about together, at most `batch` at a time.
    """
    said: list[Said] = []
    for some in _alike(images, view, batch):
        classes = [each for _, _, each in some]
        pixels = torch.stack([tensor for _, tensor, _ in some]).to(device)
        logits, maps = ask(pixels, (classes[0].shape[0], classes[0].shape[1]))
        scores = [None] * len(some) if logits is None else torch.sigmoid(logits.double()).tolist()
        for number, (labeled, _, true) in enumerate(some):
            overlap = None
            if maps is not None and labeled.generated and labeled.is_annotated:
                found = maps[number].float().cpu().numpy()
                overlap = patch_iou(found, _wanted(true, pixels, patch), _THRESHOLD)
            said.append(Said(labeled, scores[number], overlap))
    return said


def _alike(
    images: Sequence[Labeled], view: View, most: int
) -> Iterator[list[tuple[Labeled, torch.Tensor, Classes]]]:
    """Neighbors whose files have one size, with their tensors and classes, at most so many at a time."""
    some: list[tuple[Labeled, torch.Tensor, Classes]] = []
    for labeled in images:
        image, classes = labeled.pixels()
        if some and (len(some) == most or some[0][2].shape != classes.shape):
            yield some
            some = []
        some.append((labeled, view.tensor(image)[0], classes))
    if some:
        yield some


def _wanted(classes: Classes, pixels: torch.Tensor, patch: int) -> NDArray[Any]:
    """The true map, of the shape that a model's map has."""
    if patch > 1:
        size = (pixels.shape[3], pixels.shape[2])
        classes = np.asarray(Image.fromarray(classes).resize(size, Image.Resampling.NEAREST))
    artifacts = artifacts_of(torch.from_numpy(classes.astype(np.int64)))
    wanted: NDArray[Any] = artifact_map(artifacts[None], patch)[0].numpy()
    return wanted


def figures_of(said: Sequence[Said], where: str) -> Figures:
    """Balanced accuracy, of each class, and IoU of what is looked at, pooled; None where nothing is measured.

    `where` is what maps are called.
    """
    right: dict[bool, list[bool]] = {True: [], False: []}
    common = together = 0
    for each in said:
        if each.score is not None:
            right[each.labeled.generated].append((each.score >= _THRESHOLD) is each.labeled.generated)
        if each.overlap is not None:
            common, together = common + each.overlap[0], together + each.overlap[1]
    real, generated = (float(np.mean(right[kind])) if right[kind] else None for kind in (False, True))
    balanced = None if real is None or generated is None else (real + generated) / 2
    return {
        "balanced accuracy": balanced,
        "accuracy on real images": real,
        "accuracy on generated images": generated,
        f"IoU of {where} and artifacts": common / together if together else None,
    }


def compared(before: Figures, after: Figures) -> dict[str, dict[str, float | None]]:
    """Figures side by side, as a run's results have them; those that neither has are left out."""
    return {
        name: {"before": before.get(name), "after": value}
        for name, value in after.items()
        if value is not None or before.get(name) is not None
    }


def shown(
    session: LearnSession, before: Sequence[Said], after: Sequence[Said], most: int
) -> list[dict[str, Any]]:
    """Examples of a run: what images are, and what was said of them."""
    return [
        {
            "image": os.path.relpath(new.labeled.path, session.path),
            "sha256": new.labeled.truth.sha256,
            "wanted": "generated" if new.labeled.generated else "real",
            "before": _words(old),
            "after": _words(new),
        }
        for old, new in list(zip(before, after, strict=True))[:most]
    ]


def _words(said: Said) -> str | None:
    parts = []
    if said.score is not None:
        word = "generated" if said.score >= _THRESHOLD else "real"
        parts.append(f"{word} (probability of generated {said.score:.3f})")
    if said.overlap is not None and said.overlap[1]:
        parts.append(f"IoU with its artifacts {said.overlap[0] / said.overlap[1]:.2f}")
    return ", ".join(parts) or None
