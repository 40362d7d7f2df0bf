"""One item through its graph, to one record for each question."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from uncanny.agents.artifact_answerer import Asked, Given
from uncanny.client.calls import CallScope, dump_calls
from uncanny.errors import ENDS_RUN, StorageError, UncannyError
from uncanny.eval.mcq.items import Answer, AskedQuestion, Item
from uncanny.eval.mcq.load import image_path, overlay_path
from uncanny.eval.mcq.overlay import draw_overlay
from uncanny.eval.mcq.run import McqJob, PendingItem
from uncanny.eval.mcq.texts import asked_digest, content_digest, prompt_id, question_text, system_text
from uncanny.graphs.mcq import ItemContext, ItemState, item_graph
from uncanny.images import RecordedFile, prepare
from uncanny.models.base import SentImage
from uncanny.prompts import PromptSet
from uncanny.records.record_file import CallFile, RecordFile
from uncanny.runs.annotate_image import sent_image
from uncanny.runs.engine import Engine
from uncanny.runs.progress import Progress

log = logging.getLogger("uncanny")


@dataclass(slots=True)
class Pictures:
    """What questions of an item are asked with, and the files it came from.

    `failed` has the questions whose picture cannot be read, `changes` the kinds of changes made to pixels.
    """

    images: dict[AskedQuestion, SentImage | None] = field(default_factory=lambda: {"q4_no_image": None})
    files: dict[AskedQuestion, RecordedFile] = field(default_factory=dict)
    failed: list[Given] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ItemAsker:
    """`work` takes one item's open questions to their records."""

    job: McqJob
    engine: Engine
    records: RecordFile[Answer]
    calls: CallFile
    progress: Progress
    prompts: PromptSet

    async def work(self, pending: PendingItem) -> None:
        """Raises what `ENDS_RUN` names only; whatever else happens is in the records."""
        item, pictures = pending.item, Pictures()
        try:
            with self.engine.caller.scope(item.id) as scope:
                given = await self._ask(item, pending.questions, pictures, scope)
        except ENDS_RUN:
            raise
        except UncannyError as error:
            given = _failed(pending.questions, str(error))
        except Exception as defect:  # a defect of ours must cost one item, not the run
            log.exception("asking %s failed", item.id)
            given = _failed(pending.questions, f"defect: {type(defect).__name__}: {defect}")
        self._write(item, given, pictures, scope)

    async def _ask(
        self, item: Item, questions: tuple[AskedQuestion, ...], pictures: Pictures, scope: CallScope
    ) -> list[Given]:
        ours = self.prompts
        # One trip to a thread for both pictures: the first items are asked about sooner.
        await asyncio.to_thread(self._open, item, questions, pictures)
        self.progress.pixel_changes.update(pictures.changes)
        images = pictures.images
        asked = [
            Asked(
                q, system_text(item, ours), question_text(item, q, ours), prompt_id(item, q, ours), images[q]
            )
            for q in questions
            if q in images
        ]
        context = ItemContext(asked, self.engine.caller, scope, self.job.plan.sampling)
        state: ItemState = await item_graph().ainvoke({"item": item.id}, context=context)
        order = {question: number for number, question in enumerate(questions)}
        return sorted([*pictures.failed, *state.get("answers", ())], key=lambda one: order[one.question])

    def _open(self, item: Item, questions: tuple[AskedQuestion, ...], pictures: Pictures) -> None:
        """Read what is asked about; a picture that cannot be read costs its own questions only. Blocking."""
        for seeing, place in ((("q1", "q2", "q4"), self._original), (("q3",), self._overlay)):
            wanted = [question for question in questions if question in seeing]
            if not wanted:
                continue
            try:
                path, drawn_from = place(item)
                found = prepare(path, self.job.policy, self.engine.limits)
            except ENDS_RUN:
                raise
            except UncannyError as error:
                pictures.failed += _failed(wanted, f"image: {error}")
                continue
            pictures.images |= dict.fromkeys(wanted, sent_image(found))
            read = drawn_from or RecordedFile(path, found.source_sha256, found.stamp)
            pictures.files |= dict.fromkeys(wanted, read)
            pictures.changes += [change.partition(":")[0] for change in found.changes]

    def _original(self, item: Item) -> tuple[Path, None]:
        return image_path(item, self.job.items_file, self.job.root), None

    def _overlay(self, item: Item) -> tuple[Path, RecordedFile | None]:
        job = self.job
        stored = overlay_path(item, job.items_file, job.root)
        if stored is not None:
            return stored, None
        folder = job.folder.path / "overlays"
        try:
            return draw_overlay(item, job.items_file, job.root, folder)
        except OSError as error:
            raise StorageError(
                f"{error.filename or folder} cannot be written: {error.strerror or error}",
                remedy="Free some disk space and run the same command again.",
            ) from error

    def _write(self, item: Item, given: list[Given], pictures: Pictures, scope: CallScope) -> None:
        if scope.calls:
            self.calls.append(dump_calls(scope.calls))
        for one in given:
            question: AskedQuestion = one.question  # type: ignore[assignment]
            file = pictures.files.get(question)
            record = Answer(
                id=item.id,
                question=question,
                raw=one.raw,
                model=str(self.job.models.model),
                outcome=one.outcome,
                error=one.error,
                sha256=None if file is None else file.sha256,
                file_stamp=None if file is None else file.stamp,
                asked=asked_digest(item, question, self.prompts),  # type: ignore[call-arg]
                content=content_digest(item, question),
            )
            self.records.append(record)
            self.progress.statuses[{"answered": "ok", "error": "failed"}.get(one.outcome, one.outcome)] += 1


def _failed(questions: Sequence[AskedQuestion], why: str) -> list[Given]:
    return [Given(question, None, "error", why) for question in questions]
