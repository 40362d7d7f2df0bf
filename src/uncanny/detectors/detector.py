"""A detector that can be asked about images, in batches, on a CPU or a GPU."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from uncanny.detectors.heat_maps import choose, judge_batch, windows
from uncanny.detectors.loading import Classifier, load_classifier
from uncanny.detectors.parameters import DetectorParameters
from uncanny.detectors.views import Box, Heat, on_image
from uncanny.errors import ImageError, UsageError
from uncanny.models.compute import choose_device
from uncanny.schema import Source

if TYPE_CHECKING:
    import torch

# From which probability on an image is taken for generated.
GENERATED_FROM = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """What a detector says of an image.

    `score` is the probability that it is generated, 0–1; None for a detector that does not say it. `heat`
    is where it looks, (height, width) of the image, 0–1; None where none was asked for. `pixels` are the
    classes of a multitask model, (height, width) of the image: 0 for no artifact, else the number of the
    category, from 1; None for any other detector.
    """

    score: float | None
    heat: Heat | None = None
    pixels: NDArray[np.uint8] | None = None

    @property
    def source(self) -> Source | None:
        """What the image is taken for."""
        return None if self.score is None else "generated" if self.score >= GENERATED_FROM else "real"


class Detector:
    """A detector, loaded; see `open_detector`.

    `described` is what it is, for records and pages; `plan` all that changes what it says of an image.
    """

    def __init__(self, classifier: Classifier, parameters: DetectorParameters) -> None:
        self._classifier, self._batch = classifier, parameters.batch_size
        self._windows = parameters.sliding
        self._method = choose(parameters.maps, classifier)
        self._device = choose_device(parameters.device)
        classifier.module.to(self._device)
        self.described: Mapping[str, Any] = {**classifier.described, "maps": self._method}
        self.plan: Mapping[str, Any] = {
            **self.described,
            "generated_label": parameters.generated_label,
            "sliding": parameters.sliding,
        }

    def check_classifier(self) -> None:
        """Raises UsageError for a model for artifacts alone: it does not say what is generated."""
        model = self._classifier.multitask
        if model is not None and "authenticity" not in model.aspects:
            raise UsageError(
                f"{self.described['detector']} was trained for artifacts alone, and does not say what is "
                "generated",
                remedy="Use it with artifacts run.",
            )

    def judge(self, images: Sequence[Image.Image]) -> list[Judgement]:
        """What it says of RGB images, in their order. Blocking.

        Raises ImageError for a shape that is too much for it, and where weights give no number.
        """
        judged = self._judged(images)
        if not all(math.isfinite(each.score or 0.0) for each in judged):
            raise ImageError(
                f"{self.described['detector']} gives no number: its weights or the ranges of its input are "
                "broken",
                kind="unsupported",
            )
        return judged

    def judge_each(self, images: Sequence[Image.Image]) -> list[Judgement | Exception]:
        """The same, or what went wrong: an image that it cannot judge costs no other."""
        try:
            return [*self.judge(images)]
        except Exception as error:
            return [error] if len(images) == 1 else [self.judge_each([each])[0] for each in images]

    def _judged(self, images: Sequence[Image.Image]) -> list[Judgement]:
        seen = [self._classifier.view.tensor(image) for image in images]
        if self._classifier.multitask is not None:
            return self._multitask(images, seen)
        found = list(self._logits(seen))
        heats = [
            None if heat is None else (heat, box) for (_, heat), (_, box) in zip(found, seen, strict=True)
        ]
        return [
            Judgement(
                score,
                self._slid(image)
                if self._windows and self._method != "none"
                else None
                if heat is None
                else on_image(*heat, image.size),
            )
            for image, (score, _), heat in zip(images, found, heats, strict=True)
        ]

    def _logits(self, seen: Iterable[tuple[torch.Tensor, Box]]) -> Iterator[tuple[float, Heat | None]]:
        """Score and map of each, batches of one shape at a time."""
        import torch

        for batch in _alike(seen, self._batch):
            pixels = torch.stack(batch).to(self._device)
            logits, maps = judge_batch(self._classifier, pixels, self._method)
            scores = torch.sigmoid(logits.double()).tolist()
            for number, score in enumerate(scores):
                yield score, None if maps is None else maps[number].float().cpu().numpy()

    def _slid(self, image: Image.Image) -> Heat:
        """Maps of windows, each weighted by the window's probability; the mean where windows overlap."""
        view = self._classifier.view
        boxes = windows(image, view.window)
        seen = [view.tensor(image.crop(box)) for box in boxes]
        total, times = (np.zeros((image.height, image.width), np.float32) for _ in range(2))
        for box, (score, heat), (_, shown) in zip(boxes, self._logits(seen), seen, strict=True):
            assert heat is not None
            x0, y0, x1, y1 = map(int, box)
            total[y0:y1, x0:x1] += score * on_image(heat, shown, (x1 - x0, y1 - y0))
            times[y0:y1, x0:x1] += 1
        return np.asarray(total / times, dtype=np.float32)

    def _multitask(
        self, images: Sequence[Image.Image], seen: Sequence[tuple[torch.Tensor, Box]]
    ) -> list[Judgement]:
        """Heat maps of it are those of its classifier; pixels are brought to the image's size."""
        import torch

        model = self._classifier.multitask
        assert model is not None
        judgements = []
        for image, (tensor, box) in zip(images, seen, strict=True):
            # Images keep their shape, so that two of them seldom fit one batch.
            pixels = tensor[None].to(self._device)
            score = heat = classes = None
            if "authenticity" in model.aspects:
                logits, maps = judge_batch(self._classifier, pixels, self._method)
                score = float(torch.sigmoid(logits.double())[0])
                if maps is not None:
                    heat = on_image(maps[0].float().cpu().numpy(), box, image.size)
            if "pixels" in model.aspects:
                with torch.inference_mode():
                    logits = torch.nn.functional.interpolate(
                        model(pixels).pixels, size=(image.height, image.width), mode="bilinear"
                    )
                classes = logits[0].argmax(dim=0).to(torch.uint8).cpu().numpy()
            judgements.append(Judgement(score, heat, classes))
        return judgements


def _alike(seen: Iterable[tuple[torch.Tensor, Box]], most: int) -> Iterator[list[torch.Tensor]]:
    """Neighbors of one shape, at most so many at a time."""
    batch: list[torch.Tensor] = []
    for tensor, _ in seen:
        if batch and (len(batch) == most or batch[0].shape != tensor.shape):
            yield batch
            batch = []
        batch.append(tensor)
    if batch:
        yield batch


def open_detector(folder: str | Path, parameters: DetectorParameters | None = None) -> Detector:
    """The detector in a folder, on its device.

    Raises UsageError for a folder without a detector, and for parameters that do not fit it.
    """
    parameters = parameters or DetectorParameters()
    return Detector(load_classifier(Path(folder), parameters.generated_label), parameters)
