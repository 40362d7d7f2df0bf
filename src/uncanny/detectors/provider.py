"""A detector in the place of a model: `detector/PATH`.

Runs know models by such names, so that a detector's run has folder, lock, manifest, resuming and tables like
any other. Protocols that judge whole images ask it through `AskedDetector`; it cannot answer a prompt.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uncanny.detectors.loading import check_folder
from uncanny.detectors.parameters import DetectorParameters
from uncanny.errors import ModelUnusableError
from uncanny.images.prepared import read_rgb
from uncanny.models.base import COMMON_MEDIA_TYPES, Capabilities, ModelProvider, ModelRequest, ModelResponse
from uncanny.models.registry import DETECTOR, ModelId, weights_place
from uncanny.records.jsonl import write_in_run

HEAT_MAPS: Final = "heat_maps"
"""The folder of heat maps in a run's folder."""

if TYPE_CHECKING:
    from PIL.Image import Image

    from uncanny.detectors.detector import Detector, Judgement
    from uncanny.detectors.views import Heat


class DetectorProvider(ModelProvider):
    """What a run opens where its model is a detector: it takes every image, and answers no prompt."""

    capabilities = Capabilities(
        media_types=COMMON_MEDIA_TYPES | {"image/bmp", "image/tiff", "image/avif"}, fixed_concurrency=True
    )

    def __init__(self, folder: str) -> None:
        self.name = f"{DETECTOR}/{folder}"

    async def generate(self, request: ModelRequest) -> ModelResponse:  # noqa: ARG002
        raise ModelUnusableError(
            f"{self.name} is a detector, which cannot answer a prompt",
            remedy="Use it with detect, artifacts run or edits stress.",
        )


@dataclass(slots=True)
class AskedDetector:
    """A detector that many coroutines ask at once: what comes while it looks at a batch is the next batch."""

    folder: Path
    parameters: DetectorParameters
    _detector: Detector | None = field(default=None, init=False, repr=False)
    _waiting: list[tuple[Path, asyncio.Future[Judgement]]] = field(
        default_factory=list, init=False, repr=False
    )
    _working: asyncio.Task[None] | None = field(default=None, init=False, repr=False)

    @classmethod
    def of(cls, model: ModelId, parameters: DetectorParameters) -> AskedDetector | None:
        """The detector that a model is; None for any other model. Raises UsageError for a folder without one.

        Nothing is loaded.
        """
        if model.provider != DETECTOR:
            return None
        folder = Path(weights_place(model.name))
        check_folder(folder)
        return cls(folder, parameters)

    def open(self) -> Detector:
        """The detector, loaded once. Blocking. Raises UsageError."""
        if self._detector is None:
            from uncanny.detectors.detector import open_detector

            self._detector = open_detector(self.folder, self.parameters)
        return self._detector

    @property
    def at_once(self) -> int:
        """How many images to work on side by side, so that there is always a whole batch."""
        return 2 * self.parameters.batch_size + 2

    def plan(self) -> dict[str, Any]:
        """What of it must stay the same in a run: weights, labels, and how maps are made. Blocking."""
        return dict(self.open().plan)

    async def judge(self, file: Path) -> Judgement:
        """What the detector says of the pixels of an image file, as they are in it.

        Raises ImageError for a file that cannot be read, and whatever the detector raises.
        """
        future: asyncio.Future[Judgement] = asyncio.get_running_loop().create_future()
        self._waiting.append((file, future))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())
        return await future

    async def examine(self, file: Path, digest: str, run: Path) -> tuple[Judgement, dict[str, Any]]:
        """What it says of an image file, and the keys of the record that all protocols have.

        Its heat map is written into the folder `run`, under the `digest` of the file: copies share it. Raises
        as `judge`, and StorageError.
        """
        judgement = await self.judge(file)
        keys: dict[str, Any] = {"source": judgement.source, "score": judgement.score}
        if judgement.heat is not None:
            keys["heat_map"] = f"{HEAT_MAPS}/{digest}.png"
            await asyncio.to_thread(write_heat_map, run / keys["heat_map"], judgement.heat)
        return judgement, keys

    async def _work(self) -> None:
        while self._waiting:
            most = self.parameters.batch_size
            batch, self._waiting = self._waiting[:most], self._waiting[most:]
            found = await asyncio.to_thread(self._look, [file for file, _ in batch])
            for (_, future), judgement in zip(batch, found, strict=True):
                if future.done():
                    continue
                if isinstance(judgement, Exception):
                    future.set_exception(judgement)
                else:
                    future.set_result(judgement)

    def _look(self, files: list[Path]) -> list[Judgement | Exception]:
        """What it says of each, or why it cannot. Blocking."""
        images: dict[int, Image] = {}
        found: list[Judgement | Exception | None] = [None] * len(files)
        for number, file in enumerate(files):
            try:
                images[number] = read_rgb(file)[0]
            except Exception as error:  # of one image, which costs no other
                found[number] = error
        try:
            judged = self.open().judge_each(list(images.values()))
        except Exception as error:  # each image that waits is told
            judged = [error] * len(images)
        for number, judgement in zip(images, judged, strict=True):
            found[number] = judgement
        return [each for each in found if each is not None]


def write_heat_map(path: Path, heat: Heat) -> None:
    """A map (height, width), 0–1, as a grey PNG of 8 bits; its folder is made. Raises StorageError."""
    import numpy as np
    from PIL import Image

    from uncanny.images.encode import png_bytes

    picture = Image.fromarray(np.round(heat * 255).astype(np.uint8))
    write_in_run(path, [png_bytes(picture)])
