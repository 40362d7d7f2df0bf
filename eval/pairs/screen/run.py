"""Screening candidates: the public functions, the run they return, and its task.

What passes is a run of findings, one an edited picture, that people judge on the review page. Source:
SalArt-VQA, appendix B.3, stage 4.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from uncanny.agents.pairs.edit_screener import ROLES, ScreenContext, screen_edit
from uncanny.answers.screenings import Screening
from uncanny.client.calls import usage
from uncanny.errors import ImageError, StepFailedError, UsageError
from uncanny.eval.common.frames import FILE, USAGE, Cells, Row
from uncanny.eval.common.pixels.crops import Mask, crop
from uncanny.eval.common.pixels.masks import read_mask
from uncanny.eval.common.run_result import ImagesRun, Records
from uncanny.eval.edits.data import EditPair
from uncanny.eval.edits.gate import gate
from uncanny.eval.pairs.data import (
    SCREENED,
    MadePair,
    MadePairs,
    Rejection,
    Screened,
    edited_name,
    first_copies,
    load_made,
    path_from,
)
from uncanny.eval.pairs.parameters import ScreenConfig, ScreenParameters
from uncanny.eval.pairs.screen.checks import Measured, measure, rejection_of
from uncanny.files.digests import digest
from uncanny.images.parts import Cut, cut_parts
from uncanny.images.prepared import PreparedImage, read_rgb
from uncanny.models.base import SentImage, encode_image, sent_image
from uncanny.parameters import path_of, takes
from uncanny.prompts import PromptSet, prompt_set
from uncanny.prompts.folders import read_prompts
from uncanny.records.record_file import RecordFile
from uncanny.records.run_folder import RunFolder
from uncanny.runs.image_task import ImageTask, other_models
from uncanny.runs.inputs import ImageFile
from uncanny.runs.progress import Progress
from uncanny.runs.run import run_with
from uncanny.runs.sync import blocking
from uncanny.runs.task import asking
from uncanny.schema import STATUSES, Anomaly, Box, StepError

if TYPE_CHECKING:
    from uncanny.client.calls import CallRecord
    from uncanny.runs.engine import Engine

# The region as a model sees it: with so much of its sides around it, and this long, in pixels.
_AROUND: Final = 0.5
PART_SIDE: Final = 768
# A record has to have a severity; nobody has rated these.
_UNRATED: Final[Mapping[str, Any]] = {"severity": 20, "severity_rated": False}
# Of a candidate that no model was asked about.
_TO_NAME: Final = "To be judged"


class ScreenRun(ImagesRun[Screened]):
    """A run of `uncanny.pairs.screen`: a record, and a row, for each edited picture."""

    task = "pairs_screen"
    record_file = "annotations.jsonl"
    record_type = Screened
    record_key = ("image",)
    statuses = STATUSES
    image_columns: ClassVar[Cells] = {
        **dict.fromkeys(
            ("image", "candidate", "status", "rejected", "why", "label", "reason", "model"), "text"
        ),
        **dict.fromkeys(("changed_of_mask", "changed_of_image", "brightness_spread"), "real"),
        **FILE,
        **USAGE,
    }
    finding_columns = image_columns
    columns = image_columns

    @property
    def screened(self) -> Records[Screened]:
        """One for each edited picture, in order of their names when the run is finished."""
        return self.records

    def passed(self) -> int:
        """How many are left for people to judge."""
        return sum(record.rejected is None and record.status == "ok" for record in self.records)

    def rejected(self) -> Mapping[str, int]:
        """How many were rejected at each step."""
        return Counter(record.rejected.step for record in self.records if record.rejected is not None)

    def files_json(self) -> dict[str, str | None]:
        return {"annotations": str(self.path / self.record_file), "report": None}

    def found_json(self) -> dict[str, Any]:
        return {"passed": self.passed(), "rejected": dict(self.rejected()), **super().found_json()}

    def finding_rows(self) -> Any:
        return self.image_rows()

    def image_rows(self) -> Any:
        for record in self.records:
            rejected = record.rejected
            row: Row = {
                name: getattr(record, name)
                for name in ("image", "candidate", "status", "label", "reason", "model", *FILE)
            }
            row |= {
                "rejected": None if rejected is None else rejected.step,
                "why": None if rejected is None else rejected.why,
            }
            row |= {name: record.measured.get(name) for name in asdict(Measured())}
            yield row | {name: getattr(record.usage, name) for name in USAGE}


def screen_task(parameters: ScreenParameters, pairs: str | os.PathLike[str]) -> ScreenTask:
    """The task over the candidates in the folder `pairs`. Raises UsageError, RecordError. Blocking."""
    folder = path_of("pairs", pairs)
    made = load_made(folder)
    out = folder / SCREENED if parameters.out is None else Path(parameters.out)
    copies = first_copies(made)
    drawn = [pair for pair in made if pair.edited_file is not None and pair.id not in copies]
    if not drawn:
        raise UsageError(
            f"{folder} has no candidate to screen",
            remedy="Look at `rejected` in its candidates.jsonl, and make pairs again.",
        )
    return ScreenTask(
        folder=RunFolder(out),
        paths=[pair.edited_file for pair in drawn if pair.edited_file is not None],
        models=parameters.models,
        options=parameters.options,
        policy=parameters.policy,
        prompts=read_prompts("pairs", parameters.prompts),
        config=parameters.part(ScreenConfig),
        pairs=made,
        asks=parameters.model is not None,
    )


@takes(ScreenParameters)
async def screen_async(pairs: str | os.PathLike[str], parameters: ScreenParameters) -> ScreenRun:
    """Find the candidates that people should look at.

    `pairs` is the folder of a run of `make`. A candidate is rejected if a pixel outside its mask differs from
    the original, if its region is black or flat, if too little or too much changed, if it fails a gate of
    CLIP (with `clip`), or if a `model` sees no fault in it. All others get a finding, for people to judge:
    `uncanny review PAIRS/screened`. Records go to `out`, `PAIRS/screened` by default, as they come; the same
    call resumes a run that was interrupted.

    Returns the run, even if it ended early: see its `summary`, and `rejected` of its records. Raises
    UsageError for a folder without candidates and for invalid parameters, RecordError for an invalid line,
    and ModelUnusableError if the model cannot be called at all.

    `screen_async` is the same for programs with an event loop.

    >>> made = uncanny.pairs.make(images, inpainter="demo", out=out)
    >>> uncanny.pairs.screen(made, model="demo").summary.state
    'finished'

    Source: SalArt-VQA, appendix B.3, stage 4.
    """
    task = await asyncio.to_thread(screen_task, parameters, pairs)
    return ScreenRun(task.folder.path, await run_with(task, parameters))


screen = blocking(screen_async)


@dataclass(frozen=True, slots=True, eq=False)
class _Looked:
    """What the pixels of a pair say, and its region before and after, where a model is to see it."""

    measured: Measured
    box: Box | None
    rejected: Rejection | None
    parts: tuple[SentImage, SentImage] | None = None


@dataclass(kw_only=True)
class ScreenTask(ImageTask[Screened]):
    """The task of screening candidates. `asks` says whether a model sees them, `gated` which fail gates of
    CLIP, by the id of a pair."""

    name = "pairs_screen"
    record_file = "annotations.jsonl"
    record_type = Screened
    roles = ROLES

    pairs: MadePairs
    config: ScreenConfig = field(default_factory=ScreenConfig)
    prompts: PromptSet = field(default_factory=lambda: prompt_set("pairs"))
    asks: bool = False
    gated: Mapping[str, str] = field(default_factory=dict)

    @property
    def calls_per_input(self) -> int:
        return int(self.asks)

    @cached_property
    def _by_name(self) -> Mapping[str, MadePair]:
        run, copies = self.folder.path, first_copies(self.pairs)
        drawn = (pair for pair in self.pairs if pair.edited_file is not None and pair.id not in copies)
        return {edited_name(pair, run): pair for pair in drawn}

    def config_json(self) -> dict[str, Any]:
        content = super().config_json()
        del content["device"]  # another one may go on
        clip = self.config.clip
        content["clip_sha256"] = None if clip is None else digest(Path(clip), anywhere=True)
        return content

    def load_pending(self, records: RecordFile[Screened], progress: Progress) -> Sequence[ImageFile]:
        pending = super().load_pending(records, progress)
        if pending and self.config.clip is not None:
            self.gated = _gates(self._by_name.values(), self.config)
        return pending

    async def examine(
        self, file: ImageFile, image: PreparedImage, engine: Engine, calls: list[CallRecord]
    ) -> Screened:
        pair = self._by_name[file.image]
        original = path_from(self.folder.path, pair.original_file)
        record = partial(self.record, file, image, candidate=pair.id, original=original)
        try:
            looked = await asyncio.to_thread(self._look, pair, file)
        except (ImageError, UsageError) as error:
            why = StepError(agent="image", step=0, kind="unsupported", message=error.message)
            return record("failed", errors=(why,), usage=usage([]))
        said: Screening | None = None
        errors: tuple[StepError, ...] = ()
        if looked.rejected is None and looked.parts is not None:
            before, after = looked.parts
            with asking(engine, file.image, calls) as scope:
                context = ScreenContext(
                    engine.model_client, scope, self.config, self.prompts, sent_image(image), before, after
                )
                try:
                    said = await screen_edit(pair.candidate.region.name, context)
                except StepFailedError as failed:
                    errors = (failed.record,)
        rejected = looked.rejected
        if said is not None and said.label == "clean":
            rejected = Rejection(step="screener", why=said.reason)
        anomalies = () if rejected is not None or errors else (_finding(pair, looked, said),)
        return record(
            "failed" if errors else "ok",
            anomalies=anomalies,
            errors=errors,
            usage=usage(calls),
            rejected=rejected,
            measured=asdict(looked.measured),
            label=None if said is None else said.label,
            reason=None if said is None else said.reason,
            **other_models(calls, str(self.models.model)),
        )

    def _look(self, pair: MadePair, file: ImageFile) -> _Looked:
        """Raises ImageError, UsageError for what cannot be read. Blocking."""
        mask_file = pair.mask_file
        assert mask_file is not None
        original, edited = (np.asarray(read_rgb(each)[0]) for each in (pair.original_file, file.path))
        mask = read_mask(mask_file, (original.shape[1], original.shape[0]))
        same_size = original.shape == edited.shape
        measured = measure(original, edited, mask, self.config.change) if same_size else Measured()
        rejected = rejection_of(original, edited, mask, measured, self.config)
        if rejected is None and pair.id in self.gated:
            rejected = Rejection(step="quality", why=self.gated[pair.id])
        box = _changed_box(original, edited, mask, self.config.change) if rejected is None else None
        parts = _parts(pair, file, mask) if rejected is None and self.asks else None
        return _Looked(measured, box, rejected, parts)


def _changed_box(
    original: NDArray[np.uint8], edited: NDArray[np.uint8], mask: Mask, change: int
) -> Box | None:
    """The smallest box around what changed."""
    apart = np.abs(original.astype(np.int16) - edited.astype(np.int16)) >= change
    changed = crop(apart.any(axis=2) & mask)
    return changed.box if changed.pixels.size else None


def _parts(pair: MadePair, file: ImageFile, mask: Mask) -> tuple[SentImage, SentImage]:
    """The region before and after, enlarged. Raises UsageError where a file cannot be read any more."""
    height, width = mask.shape
    x0, y0, x1, y1 = crop(mask).box
    across, down = round(_AROUND * (x1 - x0)), round(_AROUND * (y1 - y0))
    box = (max(0, x0 - across), max(0, y0 - down), min(width, x1 + across), min(height, y1 + down))
    shown = []
    for source in (pair.original_file, file.path):
        cut = cut_parts(source, lambda _: [Cut(box, PART_SIDE)], jpeg=False)
        if not cut:
            raise UsageError(f"{source} cannot be read any more")
        shown.append(encode_image(**asdict(cut[0])))
    return shown[0], shown[1]


def _finding(pair: MadePair, looked: _Looked, said: Screening | None) -> Anomaly:
    """What people judge: what the model says of a candidate, else that something may be wrong."""
    region = pair.candidate.region.name
    named = region[:1].upper() + region[1:]
    if said is None or not said.evidence:
        return Anomaly(
            name=named,
            phenomenon=_TO_NAME,
            reasoning=_TO_NAME if said is None else said.reason,
            **_UNRATED,
            box=looked.box,
        )
    return Anomaly(
        name=said.where or named,
        phenomenon=said.evidence,
        reasoning=said.reason,
        **_UNRATED,
        kind=said.kind,
        box=looked.box,
    )


def _gates(pairs: Iterable[MadePair], config: ScreenConfig) -> dict[str, str]:
    """By the id of a pair, the gates of `edits gate` that it fails, in words."""
    records = [
        EditPair(
            id=pair.id,
            original=str(pair.original_file.resolve()),
            edited=str(pair.edited_file and pair.edited_file.resolve()),
            caption=pair.original.caption,
            edited_caption=pair.candidate.prompt or None,
        )
        for pair in pairs
    ]
    gated = gate(records, clip=config.clip, device=config.device)
    # A caption that did not change fails no gate of texts.
    return {
        each.id: ", ".join(failed)
        for each in gated
        if (
            failed := [name for name in each.failed if name in ("clip_similarity", "clip_score", "all_black")]
        )
    }
