"""What all runs say of themselves in the end: how far they are, what failed, what they took.

A protocol's command puts these lines together with what is its own; `uncanny.cli.common.session` prints them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from uncanny.wording import at_least, cost, count, counted, duration, share

if TYPE_CHECKING:
    from uncanny.eval.common.run_result import RunResult
    from uncanny.runs.progress import Spending
    from uncanny.runs.run import RunEnd
    from uncanny.schema import Status, StepError

R_co = TypeVar("R_co", bound="RunResult[Any]", covariant=True)
MOST_FAILURES = 10


@dataclass(frozen=True, slots=True)
class Summary(Generic[R_co]):
    """What a run says of itself in the end. A protocol may say more, and has its page here.

    Inputs are called `label`, by default by their unit; with `zeros` also what became of none is told.
    """

    run: R_co
    label: ClassVar[str | None] = None
    zeros: ClassVar[bool] = False

    def page(self) -> Path | None:
        """Write the report; None where there is nothing to report, or the page belongs to the scores."""
        return None

    def lines(self, end: RunEnd, page: Path | None) -> list[str]:  # noqa: ARG002
        """The summary for people; `page` is the one that was written."""
        return [
            *self.failures(),
            status_line(self.label or end.progress.unit.capitalize(), end, zeros=self.zeros),
            *skipped_lines(end),
            *texts_lines(end),
            *self.found(),
            *spending_lines(end),
            "",
            *self.next_steps(self.run.path / self.run.record_file),
        ]

    def failures(self) -> list[str]:
        """What failed, before all else."""
        return []

    def found(self) -> list[str]:
        """What the records say, in a line or two."""
        return []

    def next_steps(self, file: Path) -> list[str]:
        """Where the records are, and what to do with them."""
        return [f"Records  {file}"]

    def as_json(self, page: Path | None) -> dict[str, Any]:
        content = self.run.to_json()
        return content | ({"report": page and str(page)} if "report" in content else {})


class FailedRecord(Protocol):
    """What a record of any run over images says of its failures."""

    @property
    def status(self) -> Status: ...
    @property
    def errors(self) -> tuple[StepError, ...]: ...


def status_line(label: str, end: RunEnd, *, zeros: bool = False) -> str:
    """How many inputs there are and what became of them; with `zeros` also what became of none."""
    progress = end.progress
    statuses = ", ".join(
        f"{progress.statuses[kind]:,} {kind}" for kind in progress.kinds if zeros or progress.statuses[kind]
    )
    left = progress.total - progress.done
    return (
        f"{label:<8} {progress.total:,}: {statuses or 'none done'}"
        + (f", {left:,} not done" if left else "")
        + (f", {progress.duplicates:,} of them duplicates" if progress.duplicates else "")
    )


def texts_lines(end: RunEnd) -> list[str]:
    """Which texts are the user's, on one line; none where all are uncanny's."""
    prompts = end.manifest.get("prompts", {})
    own = ", ".join(f"{name}.md" for name in prompts.get("own", ()))
    return [f"Texts    {own} in place of uncanny's, {prompts.get('id')}"] if own else []


def anomalies_line(end: RunEnd) -> str:
    """How many anomalies were found, and how to read their severity."""
    anomalies = end.progress.items_found
    noun = "anomaly" if anomalies == 1 else "anomalies"
    return f"Found    {anomalies:,} {noun} (realism 0 = unreal, 100 = real)"


def skipped_lines(end: RunEnd) -> list[str]:
    """What lay beside the inputs, on one line; none where there was nothing."""
    from uncanny.runs.inputs import skipped_line

    skipped = end.progress.skipped
    return [f"{line}; listed in run.json" for line in skipped_line(skipped.counts)] if skipped else []


def spending_lines(end: RunEnd) -> list[str]:
    """Calls, tokens, cost and time, a line each; where a few calls are unmeasured, what the others took."""
    progress, spending = end.progress, end.progress.spending
    outcomes = ", ".join(
        f"{number:,} {name}" for name, number in spending.outcomes.items() if number and name != "answered"
    )
    tokens_in, tokens_out = spending.least("input_tokens"), spending.least("output_tokens")
    from_cache = spending.least("cached_tokens")
    cached = " (cached share not reported)" if from_cache is None else ""
    if from_cache is not None and tokens_in:
        cached = f" ({share(from_cache, tokens_in)} cached)"
    return [
        f"Calls    {spending.calls:,}"
        + (f", {counted(spending.replayed, 'answer')} reused" if spending.replayed else "")
        + (f" ({outcomes})" if outcomes else ""),
        f"Tokens   {_least(spending, count(tokens_in), 'input_tokens')} in{cached}, "
        f"{_least(spending, count(tokens_out), 'output_tokens')} out",
        f"Cost     {_least(spending, cost(spending.least('cost_usd')), 'cost_usd')}" + _unmeasured(spending),
        f"Time     {duration(progress.seconds_before + progress.seconds())}"
        + (f", {duration(progress.seconds())} of it now" if progress.seconds_before else ""),
    ]


def _least(spending: Spending, words: str, name: str) -> str:
    return at_least(words, spending.figure(name) is not None or spending.least(name) is None)


def _unmeasured(spending: Spending) -> str:
    """How many calls are in no figure, where others are."""
    if spending.least("cost_usd") is None or spending.figure("cost_usd") is not None:
        return ""
    calls = counted(int(spending.unmeasured["cost_usd"]), "call")
    return f", as {calls} did not say what they used"


def failure_lines(
    heading: str, failures: Sequence[str], *, total: int | None = None, where: str = ""
) -> list[str]:
    """The first failures under a heading, and how many more there are; none where nothing failed.

    `total` counts those that are not among `failures` too, `where` says where to find the others.
    """
    if not failures:
        return []
    left = (len(failures) if total is None else total) - MOST_FAILURES
    more = [f"  … and {left:,} more{where}"] if left > 0 else []
    return [heading, *(f"  {failure}" for failure in failures[:MOST_FAILURES]), *more, ""]


def failure_line(record: FailedRecord, place: str) -> str:
    """Status and first error of a record in words; `place` is where its image is."""
    return f"{record.status:<10}  {_why(record, place)}"


def _why(record: FailedRecord, place: str) -> str:
    if not record.errors:
        return place
    first = record.errors[0]
    more = f" (and {len(record.errors) - 1} more)" if len(record.errors) > 1 else ""
    if first.agent == "image":
        return f"{first.message}{more}"  # names the file itself
    return f"{place}  {first.agent} {first.step}: {first.message}{more}"
