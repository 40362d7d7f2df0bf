"""One pair through its graph, to its record."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uncanny.agents.verdict import Judged, Judging
from uncanny.client.calls import CallScope, dump_calls, usage
from uncanny.errors import ENDS_RUN, ImageError
from uncanny.eval.realism.pairs import PairFiles
from uncanny.eval.realism.records import CheckError, Outcome, Side, Verdict
from uncanny.eval.realism.run import RealismJob, note_verdict
from uncanny.graphs.ugda import PairContext, PairState, pair_graph
from uncanny.graphs.ugda_cases import UNDETERMINED
from uncanny.images import PreparedImage, prepare
from uncanny.models.base import SentImage, encode_image
from uncanny.prompts import PromptSet
from uncanny.records.record_file import CallFile, RecordFile
from uncanny.runs.engine import Engine
from uncanny.runs.progress import Progress

log = logging.getLogger("uncanny")


@dataclass(frozen=True, slots=True)
class Opened:
    """Both files of a pair as far as they could be read, and what keeps them from being judged."""

    original: PreparedImage | None
    edited: PreparedImage | None
    errors: tuple[CheckError, ...]
    notes: tuple[str, ...]


@dataclass(slots=True)
class PairJudge:
    """`work` takes one pair to its record."""

    job: RealismJob
    engine: Engine
    records: RecordFile[Verdict]
    calls: CallFile
    progress: Progress
    prompts: PromptSet

    async def work(self, pair: PairFiles) -> None:
        """Raises what `ENDS_RUN` names only; whatever else happens is in the record."""
        opened = await asyncio.to_thread(self._open, pair)
        try:
            with self.engine.caller.scope(pair.id) as scope:
                told: dict[str, Any] = {"outcome": "unusable", "errors": opened.errors}
                if not opened.errors:
                    told = _told(await self._judge(pair, opened, scope))
        except ENDS_RUN:
            raise
        except Exception as defect:  # a defect of ours must cost one pair, not the run
            log.exception("judging %s failed", pair.id)
            message = f"{type(defect).__name__}: {defect}"
            told = {
                "outcome": "failed",
                "errors": (CheckError(asked="first", kind="defect", message=message),),
            }
        self._write(pair, opened, scope, told)

    async def _judge(self, pair: PairFiles, opened: Opened, scope: CallScope) -> PairState:
        assert opened.original is not None
        assert opened.edited is not None
        original, edited = _encoded(opened.original), _encoded(opened.edited)
        judging = Judging(self.engine.caller, scope, self.job.plan.sampling, self.prompts)
        state: PairState = await pair_graph().ainvoke(
            {"pair": pair.id}, context=PairContext(original, edited, judging)
        )
        return state

    def _open(self, pair: PairFiles) -> Opened:
        # Both sides are read before anything is asked: a pair that cannot be judged costs nothing.
        found: list[PreparedImage | None] = []
        errors: list[CheckError] = []
        for file in (pair.original, pair.edited):
            try:
                found.append(prepare(file, self.job.policy, self.engine.limits))
            except ImageError as error:
                found.append(None)
                errors.append(CheckError(asked="images", kind=error.kind, message=str(error)))
        original, edited = found
        notes: list[str] = []
        if original is not None and edited is not None:
            if original.source_sha256 == edited.source_sha256:
                message = "both files hold the same bytes: nothing was edited"
                errors.append(CheckError(asked="images", kind="same_bytes", message=message))
            sizes = [f"{one.width}x{one.height}" for one in (original, edited)]
            if sizes[0] != sizes[1]:
                notes.append(f"two sizes: original {sizes[0]}, edited {sizes[1]}; compared as they are")
        return Opened(original, edited, tuple(errors), tuple(notes))

    def _write(self, pair: PairFiles, opened: Opened, scope: CallScope, told: dict[str, Any]) -> None:
        if scope.calls:
            self.calls.append(dump_calls(scope.calls))
        fields = {
            "id": pair.id,
            "group": pair.group,
            **dict.fromkeys(("first", "original_first", "edited_first")),
            **UNDETERMINED._asdict(),
            **told,
            "notes": opened.notes,
            "original": self._side(pair.original, opened.original),
            "edited": self._side(pair.edited, opened.edited),
            "model": str(self.job.models.model),
            "prompts": self.prompts.id,
            "asked": self.job.asked_digest(pair),
            "usage": usage(scope.calls),
        }
        if len(models := Counter(call.model for call in scope.calls)) > 1:
            fields["models"] = dict(sorted(models.items()))
        record = Verdict(**fields)
        self.records.append(record)
        note_verdict(self.progress, record)

    def _side(self, file: Path, found: PreparedImage | None) -> Side:
        name = self.job.name_of(file)
        if found is None:
            return Side(image=name)
        return Side(
            image=name,
            sha256=found.source_sha256,
            width=found.width,
            height=found.height,
            changes=found.changes,
            file_stamp=found.stamp,
        )


def _told(state: PairState) -> dict[str, Any]:
    """The fields of the record that come from answers."""
    judged: list[Judged[Any]] = [state["first"], *state.get("second", ())]
    judged.sort(key=lambda one: ("first", "original_first", "edited_first").index(one.asked))
    return {
        **{one.asked: one.verdict for one in judged},
        **state["labelled"]._asdict(),
        "outcome": _outcome(judged),
        "raw": {one.asked: one.raw for one in judged},
        "errors": tuple(
            CheckError(asked=one.asked, kind=one.kind, message=one.error or "")
            for one in judged
            if one.kind is not None
        ),
    }


def _outcome(judged: Sequence[Judged[Any]]) -> Outcome:
    """The worst of all questions counts: a call that failed may yet succeed, a refusal will not."""
    kinds = {one.kind for one in judged}
    if kinds <= {None}:
        return "judged"
    if kinds <= {None, "unparseable", "refused"}:
        return "refused" if "refused" in kinds else "undetermined"
    return "failed"


def _encoded(found: PreparedImage) -> SentImage:
    return encode_image(
        sha256=found.sent_sha256,
        media_type=found.media_type,
        width=found.sent_width,
        height=found.sent_height,
        data=found.sent,
    )
