"""One item through its graph, to one record for each question."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from uncanny.agents.artifact_answerer import Asked, Given
from uncanny.errors import ENDS_RUN, StorageError, UncannyError
from uncanny.eval.mcq.items import Answer, AskedQuestion, Item
from uncanny.eval.mcq.load import image_path
from uncanny.eval.mcq.overlay import overlay_for
from uncanny.eval.mcq.run import McqJob, PendingItem
from uncanny.eval.mcq.texts import asked_digest, content_digest, prompt_id, question_text, system_text
from uncanny.graphs.mcq import ItemContext, ItemState, item_graph
from uncanny.images import prepare
from uncanny.prompts import PromptSet
from uncanny.providers.base import SentImage
from uncanny.providers.call_log import CallScope, dump_calls
from uncanny.records.call_file import CallFile
from uncanny.records.record_file import RecordFile
from uncanny.runs.annotate_image import sent_image
from uncanny.runs.engine import Engine
from uncanny.runs.progress import Progress

log = logging.getLogger("uncanny")


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
        item = pending.item
        try:
            with self.engine.caller.scope(item.id) as scope:
                given = await self._ask(item, pending.questions, scope)
        except ENDS_RUN:
            raise
        except UncannyError as error:
            given = _failed(pending.questions, str(error))
        except Exception as defect:  # a defect of ours must cost one item, not the run
            log.exception("asking %s failed", item.id)
            given = _failed(pending.questions, f"defect: {type(defect).__name__}: {defect}")
        self._write(item, given, scope)

    async def _ask(self, item: Item, questions: tuple[AskedQuestion, ...], scope: CallScope) -> list[Given]:
        ours = self.prompts
        images, failed = await self._images(item, questions)
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
        return sorted([*failed, *state.get("answers", ())], key=lambda one: order[one.question])

    async def _images(
        self, item: Item, questions: tuple[AskedQuestion, ...]
    ) -> tuple[Mapping[AskedQuestion, SentImage | None], list[Given]]:
        """What each question is asked with; a picture that cannot be read costs its own questions only."""
        # One trip to a thread for both pictures: the first items are asked about sooner.
        images, failed, changes = await asyncio.to_thread(self._ready, item, questions)
        self.progress.pixel_changes.update(changes)
        return images, failed

    def _ready(
        self, item: Item, questions: tuple[AskedQuestion, ...]
    ) -> tuple[Mapping[AskedQuestion, SentImage | None], list[Given], list[str]]:
        """Images ready to be sent, questions failed for want of one, and kinds of changes made. Blocking."""
        images: dict[AskedQuestion, SentImage | None] = {"q4_no_image": None}
        failed: list[Given] = []
        changes: list[str] = []
        for seeing, place in ((("q1", "q2", "q4"), self._original), (("q3",), self._overlay)):
            wanted = [question for question in questions if question in seeing]
            if not wanted:
                continue
            try:
                found = prepare(place(item), self.job.policy, self.engine.limits)
            except ENDS_RUN:
                raise
            except UncannyError as error:
                failed += _failed(wanted, f"image: {error}")
                continue
            images |= dict.fromkeys(wanted, sent_image(found))
            changes += [change.partition(":")[0] for change in found.changes]
        return images, failed, changes

    def _original(self, item: Item) -> Path:
        return image_path(item, self.job.items_file, self.job.root)

    def _overlay(self, item: Item) -> Path:
        folder = self.job.folder.path / "overlays"
        try:
            return overlay_for(item, self.job.items_file, self.job.root, folder)
        except OSError as error:
            raise StorageError(
                f"{error.filename or folder} cannot be written: {error.strerror or error}",
                remedy="Free some disk space and run the same command again.",
            ) from error

    def _write(self, item: Item, given: list[Given], scope: CallScope) -> None:
        if scope.calls:
            self.calls.append(dump_calls(scope.calls))
        for one in given:
            question: AskedQuestion = one.question  # type: ignore[assignment]
            record = Answer(
                id=item.id,
                question=question,
                raw=one.raw,
                model=str(self.job.models.model),
                outcome=one.outcome,
                error=one.error,
                asked=asked_digest(item, question, self.prompts),  # type: ignore[call-arg]
                content=content_digest(item, question),
            )
            self.records.append(record)
            self.progress.statuses[{"answered": "ok", "error": "failed"}.get(one.outcome, one.outcome)] += 1


def _failed(questions: Sequence[AskedQuestion], why: str) -> list[Given]:
    return [Given(question, None, "error", why) for question in questions]
