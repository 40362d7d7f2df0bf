"""SourceDetector: is this picture generated, and what gives it away? Two turns of one conversation.

Turn 1 asks for yes or no. Turn 2 has the model's own answer before it, and asks for the anomalies of a
picture it holds to be generated, or for the content of one it holds to be real. Source: AnomReason,
section 3.3, the detection form of the data set; the wording is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from uncanny.agents.detect_config import DetectConfig
from uncanny.agents.failure import PROBLEMS, StepFailedError
from uncanny.answers import ANOMALIES, read_list
from uncanny.answers.json_text import read_text, without_thinking
from uncanny.answers.source_verdict import read_source
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.errors import AnswerError, RefusedError
from uncanny.models.base import Message, ModelRequest, Sampling, SentImage
from uncanny.prompts import PromptSet, prompt_set
from uncanny.schema import Anomaly, Source

AGENT = "SourceDetector"
ROLES = {"detector": AGENT}

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Turn 1: the answer as it came, and what it says. `source` is None where it says neither clearly.

    A refusal is an answer, and not a clear one: `raw` is all that was said, which may be nothing.
    """

    raw: str
    source: Source | None
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """Turn 2 about a generated picture: the answer as it came, and the anomalies in it."""

    raw: str
    anomalies: tuple[Anomaly, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """One picture, the model to ask, and the log of what was asked.

    Turn 2 repeats turn 1's messages to the byte, system text and picture first, so that a provider can reuse
    what it has computed for them. Neither turn constrains its answer to a schema: some providers put schemas
    ahead of the messages, and the prefix would be another one.
    """

    image: SentImage
    model_client: ModelClient
    scope: CallScope
    config: DetectConfig = field(default_factory=DetectConfig)
    prompts: PromptSet = field(default_factory=lambda: prompt_set("detect"))

    async def judge(self) -> Verdict:
        """Turn 1, asked once: whatever comes back is the answer.

        Raises StepFailedError, or ModelUnusableError or BudgetError when no question can be asked any more.
        """
        try:
            raw = await self._ask(1, "source", self._first(), lambda text: text)
        except RefusedError as refusal:
            return Verdict(refusal.words, None, refused=True)
        except PROBLEMS as problem:
            raise StepFailedError(AGENT, 1, None, problem) from problem
        return Verdict(raw, read_source(raw))

    async def list_anomalies(self, verdict: Verdict) -> Listing:
        """Turn 2 after "generated"; a list that does not validate is asked for again. Raises as `judge`."""
        return await self._go_on(verdict, "anomalies", _listing, "repair")

    async def describe(self, verdict: Verdict) -> str:
        """Turn 2 after "real". Raises as `judge`."""
        return await self._go_on(verdict, "content", read_text, "repair_text")

    async def _go_on(self, verdict: Verdict, prompt: str, read: Callable[[str], R], repair: str) -> R:
        # Thoughts are no part of a conversation: no provider's own interface sends them back.
        said = Message("assistant", (without_thinking(verdict.raw).strip(),))
        messages = (*self._first(), said, Message("user", (self.prompts[prompt].fill(),)))
        try:
            return await self._ask(2, prompt, messages, read, repair)
        except PROBLEMS as problem:
            raise StepFailedError(AGENT, 2, None, problem) from problem

    def _first(self) -> tuple[Message, ...]:
        system = Message("system", (self.prompts["system"].fill(),), shared=1)
        return system, Message("user", (self.image, self.prompts["source"].fill()), shared=1)

    async def _ask(
        self,
        step: int,
        prompt: str,
        messages: tuple[Message, ...],
        read: Callable[[str], R],
        repair: str = "repair",
    ) -> R:
        request = ModelRequest(
            messages=messages,
            sampling=Sampling(self.config.temperature, self.config.top_p, self.config.max_output_tokens),
            agent=AGENT,
            step=step,
        )

        def reworded(error: AnswerError) -> str:
            return self.prompts[repair].fill(problem=error.message)

        return await self.model_client.generate(
            request, read, prompt=self.prompts[prompt].id, repair=reworded, scope=self.scope
        )


def _listing(text: str) -> Listing:
    return Listing(text, read_list(text, ANOMALIES))
