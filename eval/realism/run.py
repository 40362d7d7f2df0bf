"""`uncanny realism run` without a terminal: every pair through the two-order check.

One pair through its graph, to its record.

What a realism run would ask and roughly cost, without opening a model."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from uncanny.agents.verdict import ROLES, Judged, Judging, own_texts
from uncanny.client.calls import CallScope, dump_calls, usage
from uncanny.client.prices import PriceTable
from uncanny.client.tokens import InputEstimate, image_tokens, input_words, notes_of, text_tokens
from uncanny.errors import ENDS_RUN, ImageError
from uncanny.eval.realism.data import PairFiles, PairSet
from uncanny.eval.realism.verdicts import VERDICTS, CheckError, Side, Verdict, VerdictOutcome
from uncanny.graphs.ugda import PairContext, PairState, pair_graph
from uncanny.graphs.ugda_cases import UNDETERMINED
from uncanny.images import (
    PixelPolicy,
    PreparedImage,
    RecordedFile,
    SkippedInputs,
    changed_files,
    prepare,
    stored_size,
)
from uncanny.models.base import Sampling, SentImage, Tokens, encode_image
from uncanny.models.registry import missing_addresses
from uncanny.prompts import PromptSet
from uncanny.records.record_file import CallFile, RecordFile
from uncanny.records.run_folder import RunFolder
from uncanny.runs.config import ModelOptions, RunOptions, SamplingConfig
from uncanny.runs.engine import Engine
from uncanny.runs.inputs import Names, note_skipped, skipped_figures, skipped_line
from uncanny.runs.manifest import recorded_prompts
from uncanny.runs.progress import Progress
from uncanny.runs.run import RunEnd, prompts_of, run_task

if TYPE_CHECKING:
    from uncanny.runs.engine import Engine


MOST_PAIRS_AT_ONCE = 64
# One where the first answer is no, else three.
CALLS_A_PAIR = 2
STATUSES: Mapping[VerdictOutcome, str] = {"judged": "ok"}


@dataclass(frozen=True, slots=True)
class RealismConfig(SamplingConfig):
    """Sampling as in the paper (SAGI, supplementary, section 1.5), where the model takes it.

    `max_output_tokens` is doubled when an answer is cut off.
    """

    temperature: float | None = 0.1
    top_p: float | None = 1.0
    max_output_tokens: int = 2_048


@dataclass(frozen=True, slots=True)
class RealismJob:
    """Which pairs to judge, how, and into which folder. `root` is where image paths in records start."""

    folder: RunFolder
    pairs: PairSet
    models: ModelOptions
    config: RealismConfig = field(default_factory=RealismConfig)
    policy: PixelPolicy = field(default_factory=PixelPolicy)
    options: RunOptions = field(default_factory=RunOptions)
    root: Path | None = None

    @property
    def verdicts(self) -> Path:
        return self.folder.path / VERDICTS

    def name_of(self, file: Path) -> str:
        """How records call an image: by its path from the root, or else from the run folder."""
        base = self.folder.path if self.root is None else self.root
        return Names(base).of(file)

    def asked_digest(self, pair: PairFiles) -> str:
        """Changes when a pair of this id becomes another one."""
        content = orjson.dumps([self.name_of(pair.original), self.name_of(pair.edited), pair.group])
        return hashlib.sha256(content).hexdigest()[:8]


def run_realism(job: RealismJob, on_start: Callable[[Progress], None] = lambda _: None) -> RunEnd:
    """Judge what has not been judged yet. Raises what `run_task` raises."""
    return run_task(job.folder, job.models, job.options, RealismTask(job), on_start)


@dataclass(slots=True)
class RealismTask:
    """The `Task` of judging pairs."""

    job: RealismJob
    prompts: PromptSet = field(default_factory=own_texts)
    _recorded: set[str] = field(default_factory=set)

    @property
    def agents(self) -> Mapping[str, str]:
        return ROLES

    @property
    def sampling(self) -> Sampling:
        return self.job.config.sampling

    @property
    def at_once(self) -> int:
        return min(MOST_PAIRS_AT_ONCE, self.job.options.concurrency + 2)

    @property
    def usual_calls(self) -> int:
        return CALLS_A_PAIR

    def protocol(self) -> dict[str, Any]:
        job = self.job
        return {
            "task": "realism",
            "model": str(job.models.model),
            "roles": {role: str(model) for role, model in sorted(job.models.roles.items())},
            "plan": asdict(job.config),
            "prompts": recorded_prompts(self.prompts),
            "pixels": {"policy": asdict(job.policy)},
            "root": None if job.root is None else str(job.root.absolute()),
            "pairs": job.pairs.source_from(job.folder.path),
        }

    def records(self) -> RecordFile[Verdict]:
        return RecordFile(self.job.verdicts, Verdict, lambda verdict: verdict.id)

    def load_pending(self, records: RecordFile[Verdict], progress: Progress) -> Sequence[PairFiles]:
        job = self.job
        pairs = {pair.id: pair for pair in job.pairs.pairs[: job.options.limit]}
        standing: dict[str, Verdict] = {}
        for verdict in records.load():
            self._recorded.add(verdict.id)
            pair = pairs.get(verdict.id)
            standing.pop(verdict.id, None)
            if pair is not None and self._stands(verdict, pair):
                standing[verdict.id] = verdict
        changed = changed_files({side for name, one in standing.items() for side in _sides(pairs[name], one)})
        for name, verdict in list(standing.items()):
            if not changed.isdisjoint(_sides(pairs[name], verdict)):
                del standing[name]
        progress.unit = "pairs"
        progress.kinds = ("ok", "refused", "undetermined", "failed", "unusable")
        progress.total = len(pairs)
        if job.pairs.skipped is not None:
            note_skipped(progress, job.pairs.skipped)
        for verdict in standing.values():
            note_verdict(progress, verdict)
        progress.resumed = progress.done
        return [pair for pair in pairs.values() if pair.id not in standing]

    def _stands(self, verdict: Verdict, pair: PairFiles) -> bool:
        if verdict.asked != self.job.asked_digest(pair):
            return False
        return not (self.job.options.retry_failed and verdict.outcome in ("failed", "unusable"))

    def recorded(self, records: RecordFile[Verdict]) -> Callable[[str], bool]:  # noqa: ARG002
        return self._recorded.__contains__

    def open(
        self, engine: Engine, records: RecordFile[Verdict], calls: CallFile, progress: Progress
    ) -> Callable[[PairFiles], Awaitable[None]]:

        return PairJudge(self.job, engine, records, calls, progress, self.prompts).work


def note_verdict(progress: Progress, verdict: Verdict) -> None:
    """Count one finished record."""
    outcome: VerdictOutcome = verdict.outcome or "judged"
    progress.statuses[STATUSES.get(outcome, outcome)] += 1
    for side in (verdict.original, verdict.edited):
        for change in side.changes if side else ():
            progress.pixel_changes[change.partition(":")[0]] += 1


def _sides(pair: PairFiles, verdict: Verdict) -> Iterator[RecordedFile]:
    for file, side in ((pair.original, verdict.original), (pair.edited, verdict.edited)):
        if side is not None and side.sha256 is not None:
            yield RecordedFile(file, side.sha256, side.file_stamp)


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
            with self.engine.model_client.scope(pair.id) as scope:
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
        judging = Judging(self.engine.model_client, scope, self.job.config.sampling, self.prompts)
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


def _outcome(judged: Sequence[Judged[Any]]) -> VerdictOutcome:
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


# A few sentences and a verdict; reasoning models use far more.
ANSWER_TOKENS = 150


def forecast_realism(job: RealismJob) -> dict[str, Any]:
    """Calls, tokens and cost of what is left: at least one call a pair, at most three.

    Where the truth lies depends on how many images pass the first check. Tokens and cost are None where
    the model's are not known (see `InputEstimate`). Repair questions, reasoning and the prefix cache are
    not counted. Raises UsageError.
    """
    prices = PriceTable.load(job.models.prices)
    pending = _pending(job)
    least, most, unreadable = _Tally(), _Tally(), 0
    texts = prompts_of(job.folder, own_texts())
    for pair in pending:
        sizes = [stored_size(pair.original), stored_size(pair.edited)]
        if None in sizes:
            unreadable += 1
            continue
        _add(job, texts, sizes, least, most)
    found: dict[str, Any] = {
        "pairs": len(job.pairs.pairs[: job.options.limit]),
        "pending": len(pending),
        "unreadable": unreadable,
        **skipped_figures(job.pairs.skipped or SkippedInputs()),
    }
    for name, tally in (("least", least), ("most", most)):
        total = tally.input.total
        used = Tokens(total, tally.output, 0, 0)
        found |= {
            f"calls_{name}": tally.calls,
            **tally.input.as_json(f"_{name}"),
            f"output_tokens_{name}": tally.output,
            f"cost_usd_{name}": None if total is None else prices.cost(str(job.models.model), used),
        }
    return found | {
        "image_tokens_unknown": sorted(most.input.models),
        "missing": missing_addresses(job.models.all_models(), job.models.base_urls),
    }


def forecast_realism_text(found: dict[str, Any]) -> str:
    unreadable = f", {found['unreadable']:,} of them unreadable" if found["unreadable"] else ""
    return "\n".join(
        [
            f"Pairs    {found['pairs']:,}, {found['pending']:,} to judge{unreadable}",
            *skipped_line(found["skipped"]),
            f"Calls    {_range(found, 'calls', '{:,}')}, by how many edits pass the first check",
            f"Tokens   about {input_words(found, '{:,}'.format, '_least', '_most')}, "
            f"{_range(found, 'output_tokens', '{:,}')} out without reasoning",
            f"Cost     {_range(found, 'cost_usd', '${:.2f}', 'not priced')} without the prefix cache",
            *notes_of(found),
            "Nothing was asked. These are estimates; --limit 5 gives real figures.",
        ]
    )


class _Tally:
    def __init__(self) -> None:
        self.calls = self.output = 0
        self.input = InputEstimate()

    def add(self, model: str, text: int, *images: int | None) -> None:
        self.calls += 1
        self.output += ANSWER_TOKENS
        self.input.add(model, text, *images)


def _add(
    job: RealismJob,
    texts: PromptSet,
    sizes: Sequence[tuple[int, int] | None],
    least: _Tally,
    most: _Tally,
) -> None:
    model = str(job.models.model)
    original, edited = (image_tokens(model, *size) if size else None for size in sizes)
    system = text_tokens(texts["system"].template.template)
    first = system + text_tokens(texts["first_check"].fill())
    second = system + text_tokens(texts["second_check"].fill())
    for tally in (least, most):
        tally.add(model, first, edited)
    for _ in range(2):
        most.add(model, second, edited, original)


def _pending(job: RealismJob) -> Sequence[PairFiles]:
    job.folder.read_manifest()  # a run that this version cannot go on with is refused
    task = RealismTask(job)
    return task.load_pending(task.records(), Progress())


def _range(found: dict[str, Any], name: str, form: str, unknown: str = "?") -> str:
    least, most = found[f"{name}_least"], found[f"{name}_most"]
    if least is None or most is None:
        return unknown
    ends = form.format(least), form.format(most)
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
