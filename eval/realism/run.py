"""Judging pairs: the public functions, the run they return, its task, and its forecast.

`run` takes pairs to a finished, or resumable, run with a verdict each. The edited image alone is judged
first, then both images in both orders, or nothing more after a no (`uncanny.agents.realism_judge`).

Source: SAGI, supplementary, sections 1.5 and 1.6.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from uncanny.agents.realism_judge import ROLES, CheckName, Judgement, PairContext, judge_pair
from uncanny.client.calls import CallRecord, usage
from uncanny.errors import ImageError
from uncanny.eval.common.frames import Cells
from uncanny.eval.common.json_fields import json_of
from uncanny.eval.common.run_result import Records, RunResult
from uncanny.eval.realism.data import PairFiles, PairSet, PairSource, load, pairs_of_run
from uncanny.eval.realism.parameters import (
    RealismConfig,
    RealismEachParameters,
    RealismParameters,
    RealismScoreParameters,
)
from uncanny.eval.realism.verdicts import (
    LABELS,
    UNDETERMINED,
    VERDICTS,
    CheckError,
    Side,
    Verdict,
    VerdictOutcome,
    label_of,
)
from uncanny.files import dump_json
from uncanny.images.file_bytes import RecordedFile
from uncanny.images.prepared import PreparedImage, prepare, stored_size
from uncanny.models.base import sent_image
from uncanny.models.tokens import image_tokens, text_tokens
from uncanny.parameters import takes
from uncanny.prompts import PromptSet, prompt_set
from uncanny.prompts.folders import read_prompts
from uncanny.records.record_file import RecordFile
from uncanny.records.run_folder import RunFolder, check_apart
from uncanny.records.run_manifest import RunSettings
from uncanny.runs.forecast import (
    Forecast,
    Usage,
    UsageCounter,
    forecast_inputs,
    input_words,
    pending_inputs,
    range_words,
)
from uncanny.runs.image_task import other_models
from uncanny.runs.inputs import Names, note_skipped
from uncanny.runs.progress import Progress
from uncanny.runs.run import run_with
from uncanny.runs.several import Turn, run_each_model
from uncanny.runs.sync import blocking
from uncanny.runs.task import Task, asking
from uncanny.schema import StepError
from uncanny.wording import cost

if TYPE_CHECKING:
    from uncanny.eval.common.pages.pictures import PicturesMode
    from uncanny.eval.realism.result import RealismScore
    from uncanny.runs.engine import Engine

# One where the first answer is no, else three.
CALLS_A_PAIR = 2
STATUSES = ("ok", "refused", "undetermined", "failed", "unusable")
QUESTIONS: tuple[CheckName, ...] = ("first", "original_first", "edited_first")


class RealismRun(RunResult[Verdict]):
    """A run of the realism check: a verdict a pair, which is a row of the data frame."""

    task = "realism"
    record_file = VERDICTS
    record_type = Verdict
    record_key = ("id",)
    statuses = STATUSES
    columns: ClassVar[Cells] = {
        **dict.fromkeys(("id", "group", "label", "case", "outcome"), "text"),
        **dict.fromkeys(("first", "original_first", "edited_first", "model"), "text"),
    }

    @property
    def verdicts(self) -> Records[Verdict]:
        """One for each pair, in order of their ids when the run is finished."""
        return self.records

    def labels(self) -> Mapping[str, int]:
        """How many pairs have each label."""
        counts = Counter(verdict.label for verdict in self.records)
        return {label: counts[label] for label in LABELS}

    @takes(RealismScoreParameters)
    def score(self, parameters: RealismScoreParameters) -> RealismScore:
        """The scores of this run alone, as `uncanny.realism.score` makes them."""
        from uncanny.eval.realism.score import score

        return score(self, **parameters.given)

    def report(self, out: str | os.PathLike[str] | None = None, *, pictures: PicturesMode = "link") -> Path:
        """Write the page of the scores, `realism.html` in the run's folder unless `out` says otherwise.

        Full-size `pictures` are linked from their files, or embedded in the page.
        """
        return self.score().report(out, pictures=pictures)

    def files_json(self) -> dict[str, str | None]:
        return {"verdicts": str(self.path / self.record_file), "report": None}

    def found_json(self) -> dict[str, Any]:
        failed = (verdict for verdict in self.records if verdict.outcome in ("failed", "unusable"))
        failures = [json_of(verdict, "id outcome errors") for verdict in failed]
        skipped = dict(self.manifest.skipped_counts)
        return {"labels": self.labels(), "failures": failures, "skipped": skipped}


@takes(RealismParameters, "out")
async def run_async(pairs: PairSource, parameters: RealismParameters) -> RealismRun:
    """Ask a model whether each edited image would fool a viewer, with one call or three per pair.

    `pairs` are those of `load`, or anything it takes: a pair file, a folder, `scenes`, or `PairFiles`.
    Verdicts go to the folder `out` as they come. The same call resumes a run that was interrupted.

    Returns the run, even if it ended early or some pairs failed: see its `summary` and the verdicts'
    `outcome`. Raises UsageError for invalid parameters, and ModelUnusableError if the model cannot be called
    at all.

    `run_async` is the same for programs with an event loop. `run_each` asks several models.

    >>> run = uncanny.realism.run("scenes", model="demo", out=out)
    >>> run.labels()["deceiving"]
    4
    >>> len(asyncio.run(uncanny.realism.run_async("scenes", model="demo", out=out)).verdicts)
    16

    Source: SAGI, supplementary, sections 1.5 and 1.6.
    """
    pair_set = load(pairs, root=parameters.root)
    return await _judge(pair_set, parameters, Turn.alone(parameters).check())


run = blocking(run_async)


@takes(RealismEachParameters, "out")
async def run_each_async(pairs: PairSource, parameters: RealismEachParameters) -> dict[str, RealismRun]:
    """Ask several models, one after the other, each in its own run folder in `out`. Returns runs by model.

    Limits apply to all models together. If one model fails, the others still run; its error is raised at the
    end. See `run` for the rest.

    >>> runs = uncanny.realism.run_each("scenes", models=["demo"], out=out, limit=2)
    >>> runs["demo"].summary.state
    'finished'
    """
    pair_set = load(pairs, root=parameters.root)
    return await run_each_model(parameters, partial(_judge, pair_set, parameters))


run_each = blocking(run_each_async)


def realism_task(
    pairs: PairSet, parameters: RealismParameters | RealismEachParameters, turn: Turn, *, store: bool = True
) -> RealismTask:
    """The task of judging pairs by a model; with `store` bundled pairs are copied into its folder.

    Raises UsageError. Blocking.
    """
    prompts = read_prompts("realism", parameters.prompts)  # before anything is written
    return RealismTask(
        folder=RunFolder(turn.folder),
        pairs=pairs if parameters.out is None else pairs_of_run(pairs, turn.folder, store=store),
        models=turn.models,
        options=turn.options,
        root=None if parameters.root is None else Path(parameters.root),
        config=parameters.part(RealismConfig),
        prompts=prompts,
    )


async def _judge(
    pairs: PairSet, parameters: RealismParameters | RealismEachParameters, turn: Turn
) -> RealismRun:
    task = realism_task(pairs, parameters, turn)
    return RealismRun(turn.folder, await run_with(task, parameters))


@dataclass(kw_only=True)
class RealismTask(Task[PairFiles, Verdict]):
    """The task of judging pairs."""

    name = "realism"
    unit = "pairs"
    statuses = STATUSES
    answered_statuses = ("ok", "refused", "undetermined")
    asked_again = frozenset({"failed", "unusable"})
    record_file = VERDICTS
    record_type = Verdict
    roles = ROLES
    calls_per_input = CALLS_A_PAIR

    pairs: PairSet
    config: RealismConfig = field(default_factory=RealismConfig)
    prompts: PromptSet = field(default_factory=lambda: prompt_set("realism"))
    _being_judged: dict[str, OpenPair] = field(init=False, repr=False, default_factory=dict)

    def settings(self) -> RunSettings:
        return super().settings().model_copy(update={"pairs": self.pairs.source_from(self.folder.path)})

    def key(self, record: Verdict) -> str:
        return record.id

    def summary(self, record: Verdict) -> tuple[str, tuple[str, ...]]:
        sides = (side for side in (record.original, record.edited) if side)
        return record.status, tuple(change.partition(":")[0] for side in sides for change in side.changes)

    def count(self, progress: Progress, summary: tuple[str, tuple[str, ...]]) -> None:
        status, changes = summary
        progress.statuses[status] += 1
        progress.pixel_changes.update(changes)

    def name_of(self, item: PairFiles) -> str:
        return item.id

    def for_workers(self) -> RealismTask:
        task = super().for_workers()
        task.pairs = replace(self.pairs, pairs=())
        return task

    def load_pending(self, records: RecordFile[Verdict], progress: Progress) -> Sequence[PairFiles]:
        if self.pairs.skipped is not None:
            note_skipped(progress, self.pairs.skipped)
        check_apart(self.folder.path, (file for pair in self.pairs for file in (pair.original, pair.edited)))
        pairs = {pair.id: pair for pair in self.pairs.pairs[: self.options.limit]}
        held = None if self.pairs.source == "program" else {pair.id for pair in self.pairs}
        return self.standing(pairs, records, progress, held=held)

    def is_about(self, item: PairFiles, record: Verdict) -> bool:
        return record.asked == self._digest(item)

    def files_of(self, item: PairFiles, record: Verdict) -> Iterator[RecordedFile]:
        for file, side in ((item.original, record.original), (item.edited, record.edited)):
            if side is not None and side.sha256 is not None:
                yield RecordedFile(file, side.sha256, side.file_stamp)

    def cells(self, item: PairFiles) -> dict[str, object]:
        return {"columns": dict(item.columns)} if item.columns else {}

    async def process(self, item: PairFiles, engine: Engine, calls: list[CallRecord]) -> Sequence[Verdict]:
        # Both sides are read before anything is asked: a pair that cannot be judged costs nothing.
        pair = await asyncio.to_thread(self._open, item, engine)
        if pair.original is None or pair.edited is None or pair.errors:
            return (self._verdict(item, pair, calls, {"outcome": "unusable", "errors": pair.errors}),)
        self._being_judged[item.id] = pair
        with asking(engine, item.id, calls) as scope:
            images = sent_image(pair.original), sent_image(pair.edited)
            context = PairContext(engine.model_client, scope, self.config, self.prompts, *images)
            judged = await judge_pair(context)
        del self._being_judged[item.id]
        return (self._verdict(item, pair, calls, _answers(judged)),)

    def failed(self, item: PairFiles, error: StepError, calls: Sequence[CallRecord]) -> Sequence[Verdict]:
        pair = self._being_judged.pop(item.id, OpenPair())
        errors = (CheckError(asked="first", kind="defect", message=error.message),)
        return (self._verdict(item, pair, calls, {"outcome": "failed", "errors": errors}),)

    def _open(self, pair: PairFiles, engine: Engine) -> OpenPair:
        images: list[PreparedImage | None] = []
        errors: list[CheckError] = []
        for file in (pair.original, pair.edited):
            try:
                images.append(prepare(file, self.policy, engine.limits))
            except ImageError as error:
                images.append(None)
                errors.append(CheckError(asked="images", kind=error.kind, message=str(error)))
        original, edited = images
        if original is None or edited is None:
            return OpenPair(original, edited, tuple(errors))
        if original.source_sha256 == edited.source_sha256:
            message = "both files hold the same bytes: nothing was edited"
            errors.append(CheckError(asked="images", kind="same_bytes", message=message))
        sizes = [f"{image.width}x{image.height}" for image in (original, edited)]
        note = f"two sizes: original {sizes[0]}, edited {sizes[1]}; compared as they are"
        return OpenPair(original, edited, tuple(errors), () if sizes[0] == sizes[1] else (note,))

    def _verdict(
        self, files: PairFiles, pair: OpenPair, calls: Sequence[CallRecord], answers: Mapping[str, Any]
    ) -> Verdict:
        model = str(self.models.model)
        fields: dict[str, Any] = {
            "id": files.id,
            "group": files.group,
            **dict.fromkeys(QUESTIONS),
            **UNDETERMINED._asdict(),
            **answers,
            "notes": pair.notes,
            "original": self._side(files.original, pair.original),
            "edited": self._side(files.edited, pair.edited),
            "model": model,
            "prompts": self.prompts.id,
            "asked": self._digest(files),
            "usage": usage(calls),
            **self.cells(files),
            **other_models(calls, model),
        }
        return Verdict(**fields)

    def _side(self, file: Path, image: PreparedImage | None) -> Side:
        if image is None:
            return Side(image=self._name(file))
        return Side(
            image=self._name(file),
            sha256=image.source_sha256,
            width=image.width,
            height=image.height,
            changes=image.changes,
            file_stamp=image.stamp,
        )

    def _name(self, file: Path) -> str:
        """How records call an image: by its path from the root, or else from the run folder."""
        return Names(self.folder.path if self.root is None else self.root).of(file)

    def _digest(self, pair: PairFiles) -> str:
        """Changes when a pair of this id becomes another one."""
        content = [self._name(pair.original), self._name(pair.edited), pair.group]
        return hashlib.sha256(dump_json(content)).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class OpenPair:
    """Both files of a pair as far as they could be read, and what keeps them from being judged."""

    original: PreparedImage | None = None
    edited: PreparedImage | None = None
    errors: tuple[CheckError, ...] = ()
    notes: tuple[str, ...] = ()


def _answers(judged: Sequence[Judgement[Any]]) -> dict[str, Any]:
    """The fields of the record that come from answers."""
    verdicts: dict[str, Any] = dict.fromkeys(QUESTIONS) | {answer.check: answer.verdict for answer in judged}
    return {
        **verdicts,
        **label_of(*verdicts.values())._asdict(),
        "outcome": _outcome(judged),
        "raw": {answer.check: answer.raw for answer in judged},
        "errors": tuple(
            CheckError(asked=answer.check, kind=answer.kind, message=answer.error or "")
            for answer in judged
            if answer.kind is not None
        ),
    }


def _outcome(judged: Sequence[Judgement[Any]]) -> VerdictOutcome:
    """The worst of all questions counts: a call that failed may yet succeed, a refusal will not."""
    kinds = {answer.kind for answer in judged}
    if kinds <= {None}:
        return "judged"
    if kinds <= {None, "unparseable", "refused"}:
        return "refused" if "refused" in kinds else "undetermined"
    return "failed"


# A few sentences and a verdict; reasoning models use far more.
ANSWER_TOKENS = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class RealismForecast(Forecast):
    """What is left of a realism run: one call a pair at the least, three at the most.

    Where the truth lies depends on how many edits pass the first check: nothing is usual, so `usage` is that
    of the most, `usage_least` that of the least. The prefix cache is not counted on.
    """

    unit = "pairs"

    usage_least: Usage

    def to_json(self) -> dict[str, Any]:
        return {
            **self.inputs_json(),
            **_usage_json(self.usage_least, "_least"),
            **_usage_json(self.usage, "_most"),
            **self.unknowns_json(),
        }

    def lines(self) -> list[str]:
        ends = self.usage_least, self.usage
        unreadable = f", {self.unreadable:,} of them unreadable" if self.unreadable else ""
        costs = [cost(end.cost_usd) for end in ends if end.cost_usd is not None]
        words = f"{range_words(costs)} without the prefix cache" if len(costs) == 2 else self.cost_words()
        return [
            f"Pairs    {self.inputs:,}, {self.pending:,} to judge{unreadable}",
            *self.skipped_lines(),
            f"Calls    {range_words(f'{end.calls:,}' for end in ends)}, by how many edits pass the first "
            "check",
            f"Tokens   about {input_words('{:,}'.format, *ends)}, "
            f"{range_words(f'{end.output_tokens:,}' for end in ends)} out without reasoning",
            f"Cost     {words}",
        ]


@takes(RealismParameters)
def forecast(pairs: PairSource, parameters: RealismParameters) -> RealismForecast:
    """Forecast the calls, tokens and cost of `run` with the same parameters; see `annotate_forecast`.

    >>> forecast = uncanny.realism.forecast("scenes", model="openai/gpt-4o")
    >>> forecast.calls_least, forecast.calls_most
    (16, 48)
    >>> forecast.usage_least.cost_usd < forecast.cost_usd
    True
    """
    pair_set = load(pairs, root=parameters.root)
    task = realism_task(pair_set, parameters, Turn.alone(parameters), store=False)
    prices = task.price_table()
    pending, texts = pending_inputs(task), task.prompts
    model = task.models.model
    system = text_tokens(texts["system"].fill())
    first_check = system + text_tokens(texts["first_check"].fill())
    second_check = system + text_tokens(texts["second_check"].fill())
    least, most, unreadable = UsageCounter(model), UsageCounter(model), 0
    for pair in pending:
        sizes = stored_size(pair.original), stored_size(pair.edited)
        if sizes[0] is None or sizes[1] is None:
            unreadable += 1
            continue
        original, edited = (image_tokens(str(model), *size) for size in (sizes[0], sizes[1]))
        for counter in (least, most):
            counter.add(first_check, edited, output=ANSWER_TOKENS)
        most.add(second_check, edited, original, output=ANSWER_TOKENS, calls=2)
    usage, usage_least = most.usage(prices), least.usage(prices)
    return RealismForecast(
        **forecast_inputs(
            task.models,
            inputs=len(task.pairs.pairs[: task.options.limit]),
            pending=len(pending),
            unreadable=unreadable,
            skipped=task.pairs.skipped,
        ),
        calls_least=usage_least.calls,
        calls_usual=None,
        calls_most=usage.calls,
        usage=usage,
        usage_least=usage_least,
    )


def _usage_json(usage: Usage, suffix: str) -> dict[str, Any]:
    return {
        f"calls{suffix}": usage.calls,
        **usage.input_json(suffix),
        f"output_tokens{suffix}": usage.output_tokens,
        f"cost_usd{suffix}": usage.cost_usd,
    }
