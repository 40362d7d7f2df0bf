"""From files to records on disk: duplicates asked once, calls written just before their record."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from uncanny.errors import BudgetError, ModelUnusableError, UsageError
from uncanny.images import PreparedImage
from uncanny.providers.call_log import dump_calls, usage
from uncanny.records.call_file import CallFile
from uncanny.records.record_file import RecordFile
from uncanny.runs.annotate_image import Annotated, ImageAnnotator
from uncanny.runs.inputs import ImageFile
from uncanny.runs.progress import Progress
from uncanny.runs.resume import note_record
from uncanny.schema import Annotation, StepError

log = logging.getLogger("uncanny")


@dataclass(slots=True)
class ImageQueue:
    """`work` takes one file to its record. `done` names, by digest, images that have one already."""

    annotator: ImageAnnotator
    records: RecordFile[Annotation]
    calls: CallFile
    progress: Progress
    done: dict[str, str]
    _running: dict[str, asyncio.Event] = field(default_factory=dict)

    async def work(self, file: ImageFile) -> None:
        """Raises ModelUnusableError and BudgetError, and UsageError when nothing can be written any more.

        Whatever else happens is in the record.
        """
        opened = await self.annotator.open(file)
        if isinstance(opened, Annotation):
            self._write(Annotated(opened, []))
            return
        digest = opened.source_sha256
        while (other := self._running.get(digest)) is not None:
            await other.wait()
        if (first := self.done.get(digest)) is not None:
            self._write(Annotated(self._duplicate(file, first), []))
            return
        finished = self._running[digest] = asyncio.Event()
        try:
            self._write(await self._annotate(file, opened))
            self.done[digest] = file.image
        finally:
            del self._running[digest]
            finished.set()

    async def _annotate(self, file: ImageFile, image: PreparedImage) -> Annotated:
        try:
            return await self.annotator.annotate(file, image)
        except (ModelUnusableError, BudgetError, UsageError):
            raise
        except Exception as defect:  # a defect of ours must cost one image, not the run
            log.exception("annotating %s failed", file.image)
            return Annotated(self._defect(file, image, defect), [])

    def _duplicate(self, file: ImageFile, first: str) -> Annotation:
        record = self.records.get(first)
        # Where `first` is a duplicate itself, both name the image that was asked about.
        extra = {"duplicate_of": first, **(record.model_extra or {})}
        return Annotation.model_validate(
            record.model_dump(exclude=set(record.model_extra or ()))
            | extra
            | {"image": file.image, "usage": usage([])}
        )

    def _defect(self, file: ImageFile, image: PreparedImage, defect: Exception) -> Annotation:
        return Annotation(
            image=file.image,
            sha256=image.source_sha256,
            width=image.width,
            height=image.height,
            status="failed",
            errors=(
                StepError(
                    agent="uncanny", step=0, kind="defect", message=f"{type(defect).__name__}: {defect}"
                ),
            ),
            model=self.annotator.model,
            prompts=self.annotator.prompts,
        )

    def _write(self, done: Annotated) -> None:
        if done.calls:
            self.calls.append(dump_calls(done.calls))
        self.records.append(done.record)
        note_record(self.progress, done.record)
