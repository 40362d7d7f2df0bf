"""Checking captions: `run` takes them to a finished, or resumable, run with a record each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from lab_tools.captions.agent import ROLES, check_caption
from lab_tools.captions.data import STATUSES, Caption, CaptionCheck
from uncanny import CallRecord, StepError
from uncanny.errors import ImageError, StepFailedError
from uncanny.extend import (
    AskParameters,
    Engine,
    ImageContext,
    Names,
    OutputTokens,
    Progress,
    PromptSet,
    RecordedFile,
    RecordFile,
    RunResult,
    SamplingParameters,
    Task,
    Temperature,
    asking,
    blocking,
    load_prompt_set,
    prepare,
    run_with,
    sent_image,
    takes,
    usage,
)


class CaptionRun(RunResult[CaptionCheck]):
    """A run: a check a caption, which is a row of the data frame."""

    record_file = "checks.jsonl"
    record_type = CaptionCheck
    record_key = ("id",)
    statuses = STATUSES
    columns: ClassVar = {
        **dict.fromkeys(("id", "image", "caption", "status"), "text"),
        "fits": "flag",
        **dict.fromkeys(("why", "model"), "text"),
    }


class CaptionConfig(SamplingParameters):
    """What changes a check."""

    temperature: Temperature = 0.0
    max_output_tokens: OutputTokens = 500


class CaptionParameters(CaptionConfig, AskParameters):
    """The parameters of `run`."""


@takes(CaptionParameters, "out")
async def run_async(captions: Sequence[Caption], parameters: CaptionParameters) -> CaptionRun:
    """Ask of every caption whether it describes its image. Results go to the folder `out` as they come. The
    same call resumes a run that was interrupted."""
    task = CaptionTask(
        folder=parameters.folder,
        models=parameters.models,
        options=parameters.options,
        captions=captions,
        config=parameters.part(CaptionConfig),
    )
    return CaptionRun(task.folder.path, await run_with(task, parameters))


run = blocking(run_async)


@dataclass(kw_only=True)
class CaptionTask(Task[Caption, CaptionCheck]):
    """The task of checking captions."""

    name = "captions"
    unit = "captions"
    statuses = STATUSES
    answered_statuses = ("checked",)
    asked_again = frozenset(STATUSES) - {"checked"}
    record_file = CaptionRun.record_file
    record_type = CaptionCheck
    roles = ROLES
    calls_per_input = 1

    captions: Sequence[Caption]
    config: CaptionConfig
    prompts: PromptSet = field(
        default_factory=lambda: load_prompt_set("captions", Path(__file__).parent / "prompts")
    )

    def key(self, record: CaptionCheck) -> str:
        return record.id

    def load_pending(self, records: RecordFile[CaptionCheck], progress: Progress) -> Sequence[Caption]:
        captions = {caption.id: caption for caption in self.captions[: self.options.limit]}
        return self.standing(captions, records, progress)

    def is_about(self, item: Caption, record: CaptionCheck) -> bool:
        return (record.caption, record.image) == (item.caption, self._name(item))

    def files_of(self, item: Caption, record: CaptionCheck) -> Iterator[RecordedFile]:
        if record.sha256 is not None:
            yield RecordedFile(Path(item.image), record.sha256, record.file_stamp)

    async def process(self, item: Caption, engine: Engine, calls: list[CallRecord]) -> Sequence[CaptionCheck]:
        try:
            image = await asyncio.to_thread(prepare, Path(item.image), self.policy, engine.limits)
        except ImageError as error:
            why = StepError(agent="image", step=0, kind=error.kind, message=str(error))
            return [self._record(item, "unreadable", errors=[why])]
        file = {"sha256": image.source_sha256, "file_stamp": image.stamp}
        with asking(engine, item.id, calls) as scope:
            context = ImageContext(engine.model_client, scope, self.config, self.prompts, sent_image(image))
            try:
                fit = await check_caption(item.caption, context)
            except StepFailedError as error:
                return [self._record(item, "failed", errors=[error.record], usage=usage(scope.calls), **file)]
        return [self._record(item, "checked", **fit._asdict(), usage=usage(scope.calls), **file)]

    def failed(self, item: Caption, error: StepError, calls: Sequence[CallRecord]) -> Sequence[CaptionCheck]:
        return [self._record(item, "failed", errors=[error], usage=usage(calls))]

    def _record(self, caption: Caption, status: str, **more: Any) -> CaptionCheck:
        return CaptionCheck.model_validate(
            {
                "id": caption.id,
                "image": self._name(caption),
                "caption": caption.caption,
                "status": status,
                "model": str(self.models.model),
                "prompts": self.prompts.id,
                **more,
            }
        )

    def _name(self, caption: Caption) -> str:
        """How records call an image: by its path from the run folder."""
        return Names(self.folder.path).of(Path(caption.image))
