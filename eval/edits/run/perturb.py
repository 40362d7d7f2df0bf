"""Changing captions and labels with a model: the public functions, the run they return, and its task.

Each text is asked about once for every magnitude. Source: Semi-Truths, section 3.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from uncanny.agents.caption_perturber import ROLES
from uncanny.agents.caption_perturber import perturb as perturb_text
from uncanny.agents.common.context import AgentContext
from uncanny.answers.writings import MAGNITUDES, Magnitude, TextKind
from uncanny.client.calls import usage
from uncanny.errors import ImageError, StepFailedError
from uncanny.eval.common.described import (
    STATUSES,
    DescribedImage,
    TextSource,
    TextTask,
    WriteOutcome,
    Written,
    failure,
    nothing_to_ask,
    task_parts,
    texts_of_run,
)
from uncanny.eval.common.frames import Cells
from uncanny.eval.common.run_result import Records, RunResult
from uncanny.eval.edits.run.parameters import KINDS, PerturbConfig, PerturbParameters
from uncanny.images.prepared import PreparedImage, prepare
from uncanny.models.base import sent_image
from uncanny.parameters import check_choices, takes
from uncanny.runs.image_task import other_models
from uncanny.runs.run import run_with
from uncanny.runs.sync import blocking
from uncanny.runs.task import asking
from uncanny.schema import StepError

if TYPE_CHECKING:
    from uncanny.client.calls import CallRecord
    from uncanny.runs.engine import Engine

PERTURBATIONS: Final = "perturbations.jsonl"


class Perturbation(Written):
    """One line of `perturbations.jsonl`: a label or caption and what became of it.

    Of `label` and `caption` the one of this `kind` is given, and its `edited_…` is the new text, None where
    there is none: as in an `edits.jsonl`, to which the edited image is still to be added. `image_shown` says
    whether the model saw the picture.
    """

    kind: TextKind
    magnitude: Magnitude
    label: str | None = None
    edited_label: str | None = None
    caption: str | None = None
    edited_caption: str | None = None
    image_shown: bool = False

    @property
    def text(self) -> str:
        """What was there before."""
        return (self.label if self.kind == "label" else self.caption) or ""

    @property
    def perturbed(self) -> str | None:
        """What it became."""
        return self.edited_label if self.kind == "label" else self.edited_caption


class PerturbRun(RunResult[Perturbation]):
    """A run of `uncanny.edits.perturb`: a record, and a row, for each text and magnitude."""

    task = "perturb"
    record_file = PERTURBATIONS
    record_type = Perturbation
    record_key = ("id", "kind", "magnitude")
    statuses = STATUSES
    columns: ClassVar[Cells] = dict.fromkeys(
        ("id", "kind", "magnitude", "text", "perturbed", "outcome", "model"), "text"
    )

    @property
    def perturbations(self) -> Records[Perturbation]:
        """In order of ids, kinds and magnitudes when the run is finished."""
        return self.records


def perturb_task(parameters: PerturbParameters, texts: TextSource, *, copy: bool = True) -> PerturbTask:
    """The task over these texts; `copy` False leaves bundled pictures where they are.

    Raises UsageError. Blocking.
    """
    kinds = check_choices("kinds", parameters.kinds, KINDS)
    magnitudes = check_choices("magnitudes", parameters.magnitudes, MAGNITUDES)
    config = parameters.part(PerturbConfig, kinds=kinds, magnitudes=magnitudes)
    task = PerturbTask(**task_parts("edits", texts, parameters), config=config)
    if not task.asked():
        raise nothing_to_ask(task.texts, " or ".join(f"a {kind} (`{kind}`)" for kind in kinds))
    task.texts = texts_of_run(task.texts, task.folder.path, copy=copy)
    return task


@takes(PerturbParameters, "out")
async def perturb_async(texts: TextSource, parameters: PerturbParameters) -> PerturbRun:
    """Ask a model to change the labels and captions of images a little, more, or much.

    `texts` are a JSON Lines file with a `DescribedImage` a line, such as an `edits.jsonl`, the word `scenes`
    for the bundled set, or records. A new text that fails the gates of a label or caption (5 or 30 words, no
    special characters) is asked for again, twice at most. Records go to the folder `out` as they come. The
    same call resumes a run that was interrupted.

    Returns the run, even if it ended early or some texts failed: see its `summary` and the records'
    `outcome`. Raises UsageError for invalid parameters, and ModelUnusableError if the model cannot be called
    at all.

    `perturb_async` is the same for programs with an event loop.

    >>> run = uncanny.edits.perturb("scenes", model="demo", out=out, magnitudes=["small"])
    >>> len(run.perturbations), run.perturbations[0].outcome
    (32, 'ok')
    >>> asked = uncanny.edits.perturb_async("scenes", model="demo", out=out, magnitudes=["small"])
    >>> asyncio.run(asked).summary.state
    'finished'

    Source: Semi-Truths, section 3.1, table 2 and appendix B.1.
    """
    task = await asyncio.to_thread(perturb_task, parameters, texts)
    return PerturbRun(task.folder.path, await run_with(task, parameters))


perturb = blocking(perturb_async)


@dataclass(frozen=True, slots=True)
class AskedChange:
    """One text and the magnitude of its change."""

    image: DescribedImage
    kind: TextKind
    magnitude: Magnitude

    @property
    def key(self) -> str:
        return f"{self.image.id}/{self.kind}/{self.magnitude}"

    @property
    def text(self) -> str:
        return (self.image.label if self.kind == "label" else self.image.caption) or ""


@dataclass(kw_only=True)
class PerturbTask(TextTask[AskedChange, Perturbation]):
    """The task of changing texts."""

    name = "perturb"
    record_file = PERTURBATIONS
    record_type = Perturbation
    roles = ROLES
    calls_per_input = 1

    config: PerturbConfig = field(default_factory=PerturbConfig)

    def key(self, record: Perturbation) -> str:
        return f"{record.id}/{record.kind}/{record.magnitude}"

    def asked(self) -> Sequence[AskedChange]:
        return [
            AskedChange(image, kind, magnitude)
            for image in self.texts.images
            for kind in self.config.kinds
            if (image.label if kind == "label" else image.caption) is not None
            for magnitude in self.config.magnitudes
        ]

    def about(self, item: AskedChange) -> Sequence[object]:
        return (item.text,)

    async def process(
        self, item: AskedChange, engine: Engine, calls: list[CallRecord]
    ) -> Sequence[Perturbation]:
        image: PreparedImage | None = None
        file = self.file(item) if self.config.show_images else None
        if file is not None:
            try:
                image = await asyncio.to_thread(prepare, file, self.policy, engine.limits)
            except ImageError as error:
                why = StepError(agent="image", step=0, kind=error.kind, message=str(error))
                return (self.record(item, "unusable", errors=(why,)),)
        with asking(engine, item.key, calls) as scope:
            sent = None if image is None else sent_image(image)
            context = AgentContext(engine.model_client, scope, self.config, self.prompts)
            try:
                text = await perturb_text(item.text, item.kind, item.magnitude, sent, context)
                fields: dict[str, Any] = {"outcome": "ok", f"edited_{item.kind}": text}
            except StepFailedError as failed:
                fields = failure(failed)
        more = other_models(calls, str(self.models.model))
        return (self.record(item, image=image, usage=usage(calls), **fields, **more),)

    def record(
        self, item: AskedChange, outcome: WriteOutcome, *, image: PreparedImage | None = None, **more: Any
    ) -> Perturbation:
        fields: dict[str, Any] = {**self.common(item, image), item.kind: item.text, **more}
        return Perturbation(
            outcome=outcome,
            kind=item.kind,
            magnitude=item.magnitude,
            image_shown=image is not None,
            **fields,
        )
