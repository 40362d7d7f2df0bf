"""`uncanny realism run` without a terminal: every pair through the two-order check.

One pair through its graph, to its record.

What a realism run would ask and roughly cost, without opening a model."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from uncanny.agents.verdict import ROLES, Judged, Judging, own_texts
from uncanny.client.calls import CallRecord, CallScope, usage
from uncanny.client.prices import PriceTable
from uncanny.client.tokens import InputEstimate, image_tokens, input_words, notes_of, text_tokens
from uncanny.errors import ImageError
from uncanny.eval.realism.data import PairFiles, PairSet
from uncanny.eval.realism.verdicts import VERDICTS, CheckError, Side, Verdict, VerdictOutcome
from uncanny.graphs.ugda import PairContext, PairState, pair_graph
from uncanny.graphs.ugda_cases import UNDETERMINED
from uncanny.images import (
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
from uncanny.records.record_file import RecordFile
from uncanny.runs.config import SamplingConfig
from uncanny.runs.engine import Engine
from uncanny.runs.inputs import Names, note_skipped, skipped_figures, skipped_line
from uncanny.runs.progress import Progress
from uncanny.runs.run import prompts_of
from uncanny.runs.task import Task, asking
from uncanny.schema import StepError

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


@dataclass(kw_only=True)
class RealismTask(Task[PairFiles, Verdict]):
    """The task of judging pairs."""

    name = "realism"
    unit = "pairs"
    statuses = ("ok", "refused", "undetermined", "failed", "unusable")
    record_file = VERDICTS
    record_type = Verdict
    roles = ROLES
    calls_per_input = CALLS_A_PAIR

    pairs: PairSet
    config: RealismConfig = field(default_factory=RealismConfig)
    prompts: PromptSet = field(default_factory=own_texts)
    _recorded: set[str] = field(init=False, repr=False, default_factory=set)
    _opened: dict[str, Opened] = field(init=False, repr=False, default_factory=dict)

    @property
    def verdicts(self) -> Path:
        return self.folder.path / VERDICTS

    @property
    def sampling(self) -> Sampling:
        return self.config.sampling

    @property
    def inputs_at_once(self) -> int:
        return min(MOST_PAIRS_AT_ONCE, self.options.concurrency + 2)

    def config_json(self) -> dict[str, Any]:
        return asdict(self.config)

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"pairs": self.pairs.source_from(self.folder.path)}

    def key(self, record: Verdict) -> str:
        return record.id

    def note(self, progress: Progress, record: Verdict) -> None:
        note_verdict(progress, record)

    def name_of(self, file: Path) -> str:
        """How records call an image: by its path from the root, or else from the run folder."""
        base = self.folder.path if self.root is None else self.root
        return Names(base).of(file)

    def asked_digest(self, pair: PairFiles) -> str:
        """Changes when a pair of this id becomes another one."""
        content = orjson.dumps([self.name_of(pair.original), self.name_of(pair.edited), pair.group])
        return hashlib.sha256(content).hexdigest()[:8]

    def load_pending(self, records: RecordFile[Verdict], progress: Progress) -> Sequence[PairFiles]:
        pairs = {pair.id: pair for pair in self.pairs.pairs[: self.options.limit]}
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
        progress.total = len(pairs)
        if self.pairs.skipped is not None:
            note_skipped(progress, self.pairs.skipped)
        for verdict in standing.values():
            note_verdict(progress, verdict)
        progress.resumed = progress.done
        return [pair for pair in pairs.values() if pair.id not in standing]

    def _stands(self, verdict: Verdict, pair: PairFiles) -> bool:
        if verdict.asked != self.asked_digest(pair):
            return False
        return not (self.options.retry_failed and verdict.outcome in ("failed", "unusable"))

    def recorded(self, records: RecordFile[Verdict]) -> Callable[[str], bool]:  # noqa: ARG002
        return self._recorded.__contains__

    async def process(self, item: PairFiles, engine: Engine, calls: list[CallRecord]) -> Sequence[Verdict]:
        opened = await asyncio.to_thread(self._open, item, engine)
        if opened.errors:
            return (self._verdict(item, opened, calls, {"outcome": "unusable", "errors": opened.errors}),)
        self._opened[item.id] = opened
        with asking(engine, item.id, calls) as scope:
            state = await self._judge(item, opened, engine, scope)
        del self._opened[item.id]
        return (self._verdict(item, opened, scope.calls, _told(state)),)

    def failed(self, item: PairFiles, error: StepError) -> Sequence[Verdict]:
        opened = self._opened.pop(item.id, Opened(None, None, (), ()))
        errors = (CheckError(asked="first", kind="defect", message=error.message),)
        return (self._verdict(item, opened, (), {"outcome": "failed", "errors": errors}),)

    async def _judge(self, pair: PairFiles, opened: Opened, engine: Engine, scope: CallScope) -> PairState:
        assert opened.original is not None
        assert opened.edited is not None
        original, edited = _encoded(opened.original), _encoded(opened.edited)
        judging = Judging(engine.model_client, scope, self.config.sampling, self.prompts)
        state: PairState = await pair_graph().ainvoke(
            {"pair": pair.id}, context=PairContext(original, edited, judging)
        )
        return state

    def _open(self, pair: PairFiles, engine: Engine) -> Opened:
        # Both sides are read before anything is asked: a pair that cannot be judged costs nothing.
        found: list[PreparedImage | None] = []
        errors: list[CheckError] = []
        for file in (pair.original, pair.edited):
            try:
                found.append(prepare(file, self.policy, engine.limits))
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

    def _verdict(
        self, pair: PairFiles, opened: Opened, calls: Sequence[CallRecord], told: dict[str, Any]
    ) -> Verdict:
        fields = {
            "id": pair.id,
            "group": pair.group,
            **dict.fromkeys(("first", "original_first", "edited_first")),
            **UNDETERMINED._asdict(),
            **told,
            "notes": opened.notes,
            "original": self._side(pair.original, opened.original),
            "edited": self._side(pair.edited, opened.edited),
            "model": str(self.models.model),
            "prompts": self.prompts.id,
            "asked": self.asked_digest(pair),
            "usage": usage(calls),
        }
        if len(models := Counter(call.model for call in calls)) > 1:
            fields["models"] = dict(sorted(models.items()))
        return Verdict(**fields)

    def _side(self, file: Path, found: PreparedImage | None) -> Side:
        name = self.name_of(file)
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


@dataclass(frozen=True, slots=True)
class Opened:
    """Both files of a pair as far as they could be read, and what keeps them from being judged."""

    original: PreparedImage | None
    edited: PreparedImage | None
    errors: tuple[CheckError, ...]
    notes: tuple[str, ...]


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


def forecast_realism(task: RealismTask) -> dict[str, Any]:
    """Calls, tokens and cost of what is left: at least one call a pair, at most three.

    Where the truth lies depends on how many images pass the first check. Tokens and cost are None where
    the model's are not known (see `InputEstimate`). Repair questions, reasoning and the prefix cache are
    not counted. Raises UsageError.
    """
    prices = PriceTable.load(task.models.prices)
    pending = _pending(task)
    least, most, unreadable = _Tally(), _Tally(), 0
    texts = prompts_of(task.folder, own_texts())
    for pair in pending:
        sizes = [stored_size(pair.original), stored_size(pair.edited)]
        if None in sizes:
            unreadable += 1
            continue
        _add(task, texts, sizes, least, most)
    found: dict[str, Any] = {
        "pairs": len(task.pairs.pairs[: task.options.limit]),
        "pending": len(pending),
        "unreadable": unreadable,
        **skipped_figures(task.pairs.skipped or SkippedInputs()),
    }
    for name, tally in (("least", least), ("most", most)):
        total = tally.input.total
        used = Tokens(total, tally.output, 0, 0)
        found |= {
            f"calls_{name}": tally.calls,
            **tally.input.as_json(f"_{name}"),
            f"output_tokens_{name}": tally.output,
            f"cost_usd_{name}": None if total is None else prices.cost(str(task.models.model), used),
        }
    return found | {
        "image_tokens_unknown": sorted(most.input.models),
        "missing": missing_addresses(task.models.all_models(), task.models.base_urls),
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
    task: RealismTask,
    texts: PromptSet,
    sizes: Sequence[tuple[int, int] | None],
    least: _Tally,
    most: _Tally,
) -> None:
    model = str(task.models.model)
    original, edited = (image_tokens(model, *size) if size else None for size in sizes)
    system = text_tokens(texts["system"].template.template)
    first = system + text_tokens(texts["first_check"].fill())
    second = system + text_tokens(texts["second_check"].fill())
    for tally in (least, most):
        tally.add(model, first, edited)
    for _ in range(2):
        most.add(model, second, edited, original)


def _pending(task: RealismTask) -> Sequence[PairFiles]:
    task.folder.read_manifest()  # a run that this version cannot go on with is refused
    return task.load_pending(task.records(), Progress())


def _range(found: dict[str, Any], name: str, form: str, unknown: str = "?") -> str:
    least, most = found[f"{name}_least"], found[f"{name}_most"]
    if least is None or most is None:
        return unknown
    ends = form.format(least), form.format(most)
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
