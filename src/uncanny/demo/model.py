"""Provider `demo`: the embedded model, in this process. No key, no GPU, no network, no model weights.

The demo model: a pure function from what a model would see to its answer. It computes nothing else.

It knows the bundled scenes by the digest of their files; docs/demo.md lists the mistakes it makes there.

What the fake server says to questions that are not uncanny's own: made up, but readable as answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from uncanny.demo import annotate as demo_annotate
from uncanny.demo import detect as demo_detect
from uncanny.demo import mcq as demo_mcq
from uncanny.demo import realism as demo_realism
from uncanny.demo.mcq import made_up_choice
from uncanny.demo.prompts import (
    IMAGE_TOKENS,
    BrainAnswer,
    BrainRequest,
    Question,
    SchemaForm,
    Turn,
    read_question,
    text_tokens,
)
from uncanny.demo.scenes import scene_by_sha256
from uncanny.demo.views import SYNTHETIC_MARK, View, known_view, overlay_view, synthetic_view
from uncanny.errors import RequestRejectedError
from uncanny.models.base import Capabilities, ModelRequest, ModelResponse, SentImage, Tokens

CAPABILITIES: Final = Capabilities(
    media_types=frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"}),
    max_image_bytes=None,
    max_image_side=None,
    temperature=True,
    top_p=True,
    structured=True,
    schema_in_prefix=False,
    prefix_cache=False,
)


class DemoProvider:
    """The embedded model. `latency` is seconds to wait before each answer, to try out the pace of a run."""

    def __init__(self, *, latency: float = 0.0) -> None:
        self._latency = latency
        scene_by_sha256("")  # reads the scenes now: later it would block the event loop

    @property
    def name(self) -> str:
        return "demo"

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    @property
    def endpoint(self) -> None:
        return None

    @property
    def secrets(self) -> tuple[str, ...]:
        return ()

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Answer from the bundled scenes. Raises `RequestRejectedError` for any other image or question.

        Token counts are estimates from the number of characters; cached tokens are not measured.
        """
        if self._latency:
            await asyncio.sleep(self._latency)
        seen = brain_request(request)
        response = answer(seen)
        spent = sum(text_tokens(turn.text) for turn in seen.turns) + IMAGE_TOKENS * len(seen.images)
        return ModelResponse(
            response.text,
            response.finish,
            Tokens(input=spent, output=text_tokens(response.text)),
            model="demo",
        )

    async def close(self) -> None:
        """Nothing is open."""


def brain_request(request: ModelRequest) -> BrainRequest:
    """The request as the model sees it."""
    turns = tuple(
        Turn(message.role, "\n".join(part for part in message.parts if isinstance(part, str)))
        for message in request.messages
    )
    images = tuple(
        part.sha256 for message in request.messages for part in message.parts if isinstance(part, SentImage)
    )
    form: SchemaForm = "own" if request.schema else "none"
    return BrainRequest(turns, images, form, request.sampling.max_output_tokens)


Answerer = Callable[[Question, Sequence[View]], str | Mapping[str, Any]]

ANSWERERS: Final[Mapping[str, Answerer]] = {
    **demo_annotate.ROLES,
    **demo_detect.ROLES,
    **demo_mcq.ROLES,
    **demo_realism.ROLES,
}
"""Who answers which agent: one module for each family of roles."""

TEXT_ONLY: Final = frozenset({"AnomalyIntegrator"})
"""Agents that ask without an image."""

_REMEDY = (
    "For your own images use a real model: --model openai/NAME, anthropic/NAME, vllm/NAME or "
    "openai-compatible/NAME; for a dry run, `uncanny fake-server` answers any image with made-up content."
)


def answer(request: BrainRequest, *, synthetic_objects: int | None = None) -> BrainAnswer:
    """Answer one request; the same request always gets the same answer.

    `synthetic_objects` says how many objects to make up in an image that is no bundled scene. With None
    (the in-process demo) such an image, and any question that is not one of uncanny's own, raises
    `RequestRejectedError`.
    """
    question = read_question(request.turns)
    if question is None or question.agent not in ANSWERERS:
        if synthetic_objects is None:
            raise _unknown_question(question)
        return _cut(small_talk(request), request.max_output_tokens)
    views = [_view(sha256, question, synthetic_objects) for sha256 in request.images]
    if not views and question.agent not in TEXT_ONLY and question.name != demo_mcq.NO_IMAGE:
        raise RequestRejectedError(
            f"The demo model was asked as {question.agent} without an image",
            remedy="Send the image in the same request.",
        )
    content = ANSWERERS[question.agent](question, views)
    if isinstance(content, str):
        text = content if request.schema == "none" else _json(content, request)
    else:
        text = _json(content, request)
    return _cut(text, request.max_output_tokens)


def _view(sha256: str, question: Question, synthetic_objects: int | None) -> View:
    view = known_view(sha256)
    if view is None and question.name == demo_mcq.OVERLAY_QUESTION:
        view = overlay_view(sha256)
    if view is not None:
        return view
    if synthetic_objects is None:
        raise RequestRejectedError(
            f"The demo model knows the bundled scenes only, and the image with sha256 {sha256[:12]}… is none",
            remedy=_REMEDY,
        )
    return synthetic_view(sha256, synthetic_objects)


def _unknown_question(question: Question | None) -> RequestRejectedError:
    asked = f"as {question.agent!r}" if question else "without an `Agent:` line"
    return RequestRejectedError(
        f"The demo model was asked {asked}; it knows {', '.join(sorted(ANSWERERS))}", remedy=_REMEDY
    )


def _json(content: str | Mapping[str, Any], request: BrainRequest) -> str:
    # No schema asks for a bare text: a word or letter is the value of `answer`.
    wrapped = {"answer": content} if request.schema == "shared" or isinstance(content, str) else content
    return orjson.dumps(wrapped).decode()


def _cut(text: str, limit: int | None) -> BrainAnswer:
    if limit is None or text_tokens(text) <= limit:
        return BrainAnswer(text)
    return BrainAnswer(text[: limit * 4], "length")


_LETTER = re.compile(r"\b[A-F]\b")
_RANGE = re.compile(r"\bA *(?:-|–|—|to) *([D-F])\b")
_YES, _NO = re.compile(r"\byes\b", re.IGNORECASE), re.compile(r"\bno\b", re.IGNORECASE)
_SENTENCE = f"This is a {SYNTHETIC_MARK}: it answers the questions of uncanny's own prompts only."


def small_talk(request: BrainRequest) -> str:
    """A letter where the last question names options A–D or more, yes or no where it names both, or a remark.

    F is the answer without an image, where it is an option, and never with one. The choice is drawn from the
    images and the question; it comes as `{"answer": …}` where the texts or a schema ask for that.
    """
    text = next((turn.text for turn in reversed(request.turns) if turn.role == "user"), "")
    choice = _choice(text, request.images)
    if choice is None:
        return _SENTENCE
    wants_json = request.schema != "none" or any(
        '"answer"' in turn.text for turn in request.turns if turn.role != "assistant"
    )
    return orjson.dumps({"answer": choice}).decode() if wants_json else choice


def _choice(text: str, images: tuple[str, ...]) -> str | None:
    seed = "\n".join((*images, text))
    letters = _letters(text)
    if letters:
        if "F" in letters and not images:
            return "F"
        return made_up_choice(seed, "letter", letters.replace("F", ""))
    return made_up_choice(seed, "q1") if _YES.search(text) and _NO.search(text) else None


def _letters(text: str) -> str:
    """The options the text names, such as `ABCDE`; empty where A–D are not all among them."""
    found = set(_LETTER.findall(text))
    for last in _RANGE.findall(text):
        found.update("ABCDEF"[: "ABCDEF".index(last) + 1])
    return "".join(sorted(found)) if found >= set("ABCD") else ""
