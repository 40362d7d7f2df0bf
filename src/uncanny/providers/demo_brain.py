"""The demo model: a pure function from what a model would see to its answer. It computes nothing else.

It knows the bundled scenes by the digest of their files; docs/demo.md lists the mistakes it makes there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from uncanny.errors import RequestRejectedError
from uncanny.providers import demo_annotate, demo_detect, demo_mcq, demo_realism
from uncanny.providers.demo_question import BrainAnswer, BrainRequest, Question, read_question, text_tokens
from uncanny.providers.demo_scenes import known_view, overlay_view
from uncanny.providers.demo_small_talk import small_talk
from uncanny.providers.demo_view import View, synthetic_view

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
