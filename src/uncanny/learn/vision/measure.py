"""What a detector says of held-out images, before and after training, in figures and in words."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from uncanny.detectors.views import View
from uncanny.learn.common.session import LearnSession
from uncanny.learn.vision.data import Labeled
from uncanny.learn.vision.loop import artifacts_of
from uncanny.learn.vision.losses import artifact_map, patch_iou

# From which value of a map on it is looked at.
_THRESHOLD = 0.5
Figures = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Said:
    """Of one image: the probability that it is generated, or None; and a map with the true one, or None.

    `found` and `true` are (h, w): of patches, 0–1, or of pixels, 0 or 1.
    """

    labeled: Labeled
    score: float | None
    found: NDArray[Any] | None = None
    true: NDArray[Any] | None = None


Ask = Callable[[torch.Tensor], tuple[torch.Tensor | None, torch.Tensor | None]]


def said_of(
    images: Sequence[Labeled], view: View, ask: Ask, patch: int, device: Any, batch: int = 16
) -> list[Said]:
    """Ask a model about images as it will see them. `ask` gets pixels, and gives logits and maps.

    Maps of patches are compared with shares of `patch` pixels a side; 1 compares pixels.
    """
    said = []
    for first in range(0, len(images), batch):
        some = images[first : first + batch]
        read = [each.pixels() for each in some]
        pixels = torch.stack([view.tensor(image)[0] for image, _ in read]).to(device)
        logits, maps = ask(pixels)
        scores = [None] * len(some) if logits is None else torch.sigmoid(logits.double()).tolist()
        for number, (labeled, (_, classes)) in enumerate(zip(some, read, strict=True)):
            found = true = None
            if maps is not None and labeled.generated and labeled.is_annotated:
                found = maps[number].float().cpu().numpy()
                resized = np.asarray(
                    Image.fromarray(classes).resize(
                        (pixels.shape[3], pixels.shape[2]), Image.Resampling.NEAREST
                    )
                )
                artifacts = artifacts_of(torch.from_numpy(resized.astype(np.int64)))
                true = artifact_map(artifacts[None], patch)[0].numpy()
            said.append(Said(labeled, scores[number], found, true))
    return said


def figures_of(said: Sequence[Said], where: str) -> Figures:
    """Balanced accuracy, of each class, and IoU of what is looked at, pooled; None where nothing is measured.

    `where` is what maps are called.
    """
    right: dict[bool, list[bool]] = {True: [], False: []}
    common = together = 0
    for each in said:
        if each.score is not None:
            right[each.labeled.generated].append((each.score >= _THRESHOLD) is each.labeled.generated)
        if each.found is not None and each.true is not None:
            both, either = patch_iou(each.found, each.true, _THRESHOLD)
            common, together = common + both, together + either
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
    if said.found is not None and said.true is not None:
        both, either = patch_iou(said.found, said.true, _THRESHOLD)
        if either:
            parts.append(f"IoU with its artifacts {both / either:.2f}")
    return ", ".join(parts) or None
