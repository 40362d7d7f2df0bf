"""`uncanny realism run` without a terminal: every pair through the two-order check."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from uncanny.agents.verdict import ROLES, own_texts
from uncanny.eval.realism.pairs import PairFiles, PairSet
from uncanny.eval.realism.records import Outcome, Verdict
from uncanny.images import PixelPolicy, RecordedFile, changed_files
from uncanny.models.base import Sampling
from uncanny.prompts import PromptSet
from uncanny.records.record_file import CallFile, RecordFile
from uncanny.records.run_folder import RunFolder
from uncanny.runs.config import ModelOptions, RunOptions, SamplingPlan
from uncanny.runs.inputs import Names, note_skipped
from uncanny.runs.manifest import recorded_prompts
from uncanny.runs.progress import Progress
from uncanny.runs.run import RunEnd, run_task

if TYPE_CHECKING:
    from uncanny.runs.engine import Engine

MOST_PAIRS_AT_ONCE = 64
# One where the first answer is no, else three.
CALLS_A_PAIR = 2
VERDICTS = "verdicts.jsonl"
STATUSES: Mapping[Outcome, str] = {"judged": "ok"}


@dataclass(frozen=True, slots=True)
class RealismPlan(SamplingPlan):
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
    plan: RealismPlan = field(default_factory=RealismPlan)
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
        return self.job.plan.sampling

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
            "plan": asdict(job.plan),
            "prompts": recorded_prompts(self.prompts),
            "pixels": {"policy": asdict(job.policy)},
            "root": None if job.root is None else str(job.root.absolute()),
            "pairs": job.pairs.named_from(job.folder.path),
        }

    def records(self) -> RecordFile[Verdict]:
        return RecordFile(self.job.verdicts, Verdict, lambda verdict: verdict.id)

    def take_up(self, records: RecordFile[Verdict], progress: Progress) -> Sequence[PairFiles]:
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
        from uncanny.eval.realism.judge import PairJudge

        return PairJudge(self.job, engine, records, calls, progress, self.prompts).work


def note_verdict(progress: Progress, verdict: Verdict) -> None:
    """Count one finished record."""
    outcome: Outcome = verdict.outcome or "judged"
    progress.statuses[STATUSES.get(outcome, outcome)] += 1
    for side in (verdict.original, verdict.edited):
        for change in side.changes if side else ():
            progress.pixel_changes[change.partition(":")[0]] += 1


def _sides(pair: PairFiles, verdict: Verdict) -> Iterator[RecordedFile]:
    for file, side in ((pair.original, verdict.original), (pair.edited, verdict.edited)):
        if side is not None and side.sha256 is not None:
            yield RecordedFile(file, side.sha256, side.file_stamp)
