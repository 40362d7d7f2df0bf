"""SourceDetector: is this picture generated, and what gives it away?

In a conversation turn 1 asks for yes or no, and once more where the answer says neither clearly. Turn 2 has
the model's own answer before it, and asks for the anomalies of a picture it holds to be generated, or for the
content of one it holds to be real. It repeats turn 1's messages to the byte. Two independent calls ask for
the verdict and for the anomalies, each for itself. System text and picture come first in every call, so that
a provider can reuse what it has computed for them. No call constrains its answer to a schema: some providers
put schemas ahead of the messages, and the prefix would be another one.

Source: AnomReason, appendix C.2, the detection form of the data set; two calls about every image are what the
authors' released evaluation makes. The wording is ours.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from uncanny.agents.common.context import ImageContext
from uncanny.agents.config import DetectConfig
from uncanny.agents.steps import Step
from uncanny.answers.forms import ANOMALIES
from uncanny.answers.json_text import read_text, without_thinking
from uncanny.answers.lists import read_list
from uncanny.answers.verdicts import read_source
from uncanny.errors import AnswerError, RefusedError, StepFailedError
from uncanny.models.base import Message
from uncanny.schema import Anomaly, Source, StepError

AGENT: Final = "SourceDetector"
ROLES: Final[Mapping[str, str]] = {"detector": AGENT}

# One word, then a list of some anomalies or a few sentences; reasoning models use far more.
JUDGE: Final = Step(AGENT, 1, "source", output_tokens=5)
JUDGE_AGAIN: Final = Step(AGENT, 1, "repair_text", output_tokens=5)
LIST: Final = Step(AGENT, 2, "anomalies", output_tokens=350)
DESCRIBE: Final = Step(AGENT, 2, "content", output_tokens=350)

R = TypeVar("R")
DetectContext = ImageContext[DetectConfig]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Turn 1: the last answer as it came, and what it says. `source` is None where it says neither clearly.

    A refusal is an answer, and not a clear one: `raw` is all the words that came with it, perhaps none.
    """

    raw: str
    source: Source | None
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """Turn 2 about a generated picture: the answer as it came, and the anomalies in it."""

    raw: str
    anomalies: tuple[Anomaly, ...]


@dataclass(slots=True)
class Detected:
    """What came of the turns; `failures` say why one has no answer. None is what was not asked, or failed."""

    verdict: Verdict | None = None
    listing: Listing | None = None
    description: str | None = None
    failures: list[StepError] = field(default_factory=list)


async def detect_source(image: DetectContext) -> Detected:
    """All calls about an image, by the protocol of its `config`. Raises what ends the run.

    `conversation`: the verdict, then the anomalies or the content, as the verdict says; an image without a
    clear verdict is asked nothing further. `independent`: the verdict and the anomalies, side by side.
    """
    found = Detected()

    async def converse() -> None:
        found.verdict = await judge_source(image)
        if found.verdict.source == "generated":
            found.listing = await list_anomalies(image, found.verdict)
        elif found.verdict.source == "real":
            found.description = await describe_content(image, found.verdict)

    async def judge() -> None:
        found.verdict = await judge_source_alone(image)

    async def list_all() -> None:
        found.listing = await list_anomalies_alone(image)

    asked = [judge(), list_all()] if image.config.protocol == "independent" else [converse()]
    failures = await image.scope.side_by_side(map(_failure, asked))
    found.failures += [each for each in failures if each is not None]
    return found


async def _failure(asked: Awaitable[None]) -> StepError | None:
    try:
        await asked
    except StepFailedError as failed:
        return failed.record
    return None


async def judge_source(image: DetectContext) -> Verdict:
    """Turn 1. An answer without a clear verdict is followed by one request for it, whose answer counts.

    The two are calls of their own, each kept as it comes: so an unclear answer is not asked for again when a
    run goes on. Raises what `AgentContext.generate` raises.
    """
    first = _first_turn(image)
    try:
        raw = await image.generate(JUDGE, first, str)
        try:
            return Verdict(raw, read_source(raw))
        except AnswerError as error:
            again = Message("user", (image.repair(JUDGE_AGAIN.prompt)(error),))
        raw = await image.generate(JUDGE_AGAIN, (*first, _own_turn(raw), again), str)
    except StepFailedError as failed:
        if isinstance(failed.error, RefusedError):
            return Verdict(failed.error.words, None, refused=True)
        raise
    return _verdict(raw)


async def judge_source_alone(image: DetectContext) -> Verdict:
    """The verdict by a call of its own; an answer without a clear one stays without. Raises as turn 1."""
    try:
        raw = await image.generate(JUDGE, _first_turn(image), str)
    except StepFailedError as failed:
        if isinstance(failed.error, RefusedError):
            return Verdict(failed.error.words, None, refused=True)
        raise
    return _verdict(raw)


async def list_anomalies_alone(image: DetectContext) -> Listing:
    """The anomalies by a call of their own, whatever the verdict. Raises as turn 1."""
    messages = image.opening((image.image,), image.prompts[LIST.prompt].fill())
    return await image.generate(LIST, messages, _read_listing, repair=image.repair("repair"))


async def list_anomalies(image: DetectContext, verdict: Verdict) -> Listing:
    """Turn 2 after "generated"; a list that does not validate is asked for again. Raises as turn 1."""
    return await _second_turn(image, verdict, LIST, _read_listing, "repair")


async def describe_content(image: DetectContext, verdict: Verdict) -> str:
    """Turn 2 after "real". Raises as turn 1."""
    return await _second_turn(image, verdict, DESCRIBE, read_text, "repair_text")


def _verdict(raw: str) -> Verdict:
    try:
        return Verdict(raw, read_source(raw))
    except AnswerError:
        return Verdict(raw, None)


def _first_turn(image: DetectContext) -> tuple[Message, ...]:
    return image.opening((image.image,), image.prompts[JUDGE.prompt].fill())


async def _second_turn(
    image: DetectContext, verdict: Verdict, step: Step, read: Callable[[str], R], repair: str
) -> R:
    request = Message("user", (image.prompts[step.prompt].fill(),))
    messages = (*_first_turn(image), _own_turn(verdict.raw), request)
    return await image.generate(step, messages, read, repair=image.repair(repair))


def _own_turn(answer: str) -> Message:
    """What the model answered, as its own turn of the conversation."""
    try:
        # Thoughts are no part of a conversation: no provider's own interface sends them back.
        words = without_thinking(answer).strip()
    except AnswerError:
        words = ""
    # Some providers take no empty turn.
    return Message("assistant", (words or "(empty)",))


def _read_listing(text: str) -> Listing:
    return Listing(text, read_list(text, ANOMALIES))
