"""The demo model: from what any model would see to its answer. No key, no GPU, no network, no model weights.

It knows the bundled scenes by the digest of their files, and uncanny's own prompts by their templates. Any
other image or prompt the provider `demo` turns down; the fake server makes something up. docs/demo.md lists
the mistakes it makes.
"""

from __future__ import annotations

import asyncio
from binascii import a2b_base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final, Literal

import orjson

from uncanny.demo import mcq
from uncanny.demo.character import Character
from uncanny.demo.recognition import RecognizedPrompt, Turn, prompt_patterns, recognize
from uncanny.demo.scenes import SETS, pictures
from uncanny.demo.views import (
    SYNTHETIC_MARK,
    View,
    image_key,
    known_view,
    overlay_view,
    seen_by,
    source_of,
    synthetic_view,
)
from uncanny.errors import RequestRejectedError
from uncanny.models.base import Capabilities, ModelProvider, ModelRequest, ModelResponse, SentImage, Tokens
from uncanny.models.tokens import text_tokens
from uncanny.protocol import prompt_names

# Of an image's base64, a multiple of four: comments are in there.
_BEGINNING: Final = 4_096
SchemaForm = Literal["none", "own", "shared"]
"""The answer's form: free, a record of its own schema, or `{"answer": …}` around any record."""

Answerer = Callable[[RecognizedPrompt, Sequence[View]], str | Mapping[str, Any]]

_MODULES: Final = {name: import_module(f"uncanny.demo.{name}") for name in prompt_names()}
ANSWERERS: Final[Mapping[str, Mapping[str, Answerer]]] = {
    name: module.ANSWERERS for name, module in _MODULES.items()
}
"""Prompt set → prompt → who answers it, from the module of its name."""

WITHOUT_IMAGE: Final = {
    (name, prompt) for name, module in _MODULES.items() for prompt in getattr(module, "WITHOUT_IMAGE", ())
}
"""Prompts, with their sets, that are asked without an image."""

ANY_PICTURE: Final = {
    (name, prompt) for name, module in _MODULES.items() for prompt in getattr(module, "ANY_PICTURE", ())
}
"""Those that are answered about any picture: the answerer gets `pictures`, the digests of what was sent."""


def image_tokens(width: int, height: int) -> int:
    """Tokens an image counts as in the estimates, at GPT-4o's rate: 765 for one of 1024², 255 up to 512².

    It is reduced to fit 2048², then to a shortest side of 768, and counts 170 for every 512² begun, and 85.
    """
    factor = min(1.0, 2048 / max(width, height, 1))
    factor = min(factor, 768 / max(1, min(width, height) * factor) * factor)
    tiles = [-(-max(1, int(side * factor)) // 512) for side in (width, height)]
    return 85 + 170 * tiles[0] * tiles[1]


CAPABILITIES: Final = Capabilities(paints=True)

_REMEDY = (
    "For your own images use a real model: openai/NAME, anthropic/NAME, vllm/NAME or "
    "openai-compatible/NAME; for a dry run, `uncanny fake-server` answers any image with made-up content."
)
_REMARK = f"This is a {SYNTHETIC_MARK}: it answers the questions of uncanny's own prompts only."


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """One request as a model sees it. `images` are the keys of what was sent, in order: see `image_key`."""

    turns: tuple[Turn, ...]
    images: tuple[str, ...] = ()
    schema: SchemaForm = "none"
    output_limit: int | None = None


@dataclass(frozen=True, slots=True)
class DemoAnswer:
    """The answer's text; `finish` is `length` where the output limit cut it off."""

    text: str
    finish: Literal["stop", "length"] = "stop"


class DemoProvider(ModelProvider):
    """The demo model in this process. `latency` is the seconds to wait before each answer."""

    name = "demo"
    capabilities = CAPABILITIES

    def __init__(self, *, latency: float = 0.0) -> None:
        self._latency = latency
        warm_up()

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Answer from the bundled scenes. Raises `RequestRejectedError` for any other image or prompt.

        Token counts are estimates from the number of characters; cached tokens are not measured.
        """
        if self._latency:
            await asyncio.sleep(self._latency)
        if request.painting is not None:
            from uncanny.demo.pairs.inpaint import painted

            return await asyncio.to_thread(painted, request)
        asked_of_demo = demo_request(request)
        response = answer(asked_of_demo)
        input_tokens = sum(text_tokens(turn.text) for turn in asked_of_demo.turns)
        return ModelResponse(
            response.text,
            response.finish,
            Tokens(
                input=input_tokens + sum(image_tokens(*size) for size in _sizes(request)),
                output=text_tokens(response.text),
            ),
            model="demo",
        )


def warm_up() -> None:
    """Read the scenes and compile the prompts' patterns: later it would block the event loop."""
    for name in SETS:
        pictures(name)
    prompt_patterns()


def answer(
    request: DemoRequest,
    *,
    synthetic_objects: int | None = None,
    synthetic_anomalies: int | None = None,
    character: Character | None = None,
) -> DemoAnswer:
    """Answer one request; the same request to the same `character` always gets the same answer.

    `synthetic_objects` is the number of objects to make up in an image that is no bundled scene, and
    `synthetic_anomalies` how many of their two each are seen at most, None for all. Without objects
    (the provider) such an image, and any prompt that is not uncanny's own, raises `RequestRejectedError`.
    """
    prompt = recognize(request.turns)
    answerer = None if prompt is None else ANSWERERS[prompt.task].get(prompt.name)
    if prompt is None or answerer is None:
        if synthetic_objects is None:
            raise RequestRejectedError(
                "The demo model knows only uncanny's own prompts, and this is not one of them",
                remedy=_REMEDY,
            )
        return _cut(_answer_unknown_prompt(request, character), request.output_limit)
    prompt = replace(prompt, character=character)
    views: list[View] = []
    if (prompt.task, prompt.name) in ANY_PICTURE:
        prompt = replace(prompt, variables={**prompt.variables, "pictures": " ".join(request.images)})
    else:
        views = [_view(key, prompt, synthetic_objects, synthetic_anomalies) for key in request.images]
    if not request.images and (prompt.task, prompt.name) not in WITHOUT_IMAGE:
        raise RequestRejectedError(
            f"The demo model was asked {prompt.task}/{prompt.name} without an image",
            remedy="Send the image in the same request.",
        )
    content = answerer(prompt, views)
    if isinstance(content, str) and request.schema == "none":
        return _cut(content, request.output_limit)
    # Prompts show an object with `answer`, as schemas ask for it; a word or letter is always its value.
    bare = request.schema == "own" and not isinstance(content, str)
    return _cut(orjson.dumps(content if bare else {"answer": content}).decode(), request.output_limit)


def demo_request(request: ModelRequest) -> DemoRequest:
    """A request to any provider, as the demo model is asked."""
    turns = tuple(
        Turn(message.role, "\n".join(part for part in message.parts if isinstance(part, str)))
        for message in request.messages
    )
    images = tuple(
        image_key(part.sha256, a2b_base64(part.base64[:_BEGINNING]))
        for message in request.messages
        for part in message.parts
        if isinstance(part, SentImage)
    )
    return DemoRequest(
        turns, images, "shared" if request.schema else "none", request.sampling.max_output_tokens
    )


def _sizes(request: ModelRequest) -> list[tuple[int, int]]:
    parts = (part for message in request.messages for part in message.parts)
    return [(part.width, part.height) for part in parts if isinstance(part, SentImage)]


def _view(
    key: str, prompt: RecognizedPrompt, synthetic_objects: int | None, synthetic_anomalies: int | None
) -> View:
    sha256, window = source_of(key)
    view = known_view(sha256)
    if view is None and (prompt.task, prompt.name) == ("mcq", mcq.OVERLAY):
        view = overlay_view(sha256)
    if view is None and synthetic_objects is not None:
        view = synthetic_view(sha256, synthetic_objects, synthetic_anomalies)
    if view is None:
        raise RequestRejectedError(
            f"The demo model knows only the bundled scenes, not the image with sha256 {sha256[:12]}…",
            remedy=_REMEDY,
        )
    view = view if prompt.character is None else seen_by(prompt.character, view)
    return view if window is None else replace(view, window=window)


def _answer_unknown_prompt(request: DemoRequest, character: Character | None) -> str:
    """A choice where the last user turn offers one, else a remark.

    It comes as `{"answer": …}` where the texts or a schema ask for that.
    """
    text = next((turn.text for turn in reversed(request.turns) if turn.role == "user"), "")
    choice = mcq.choice_for_text(text, request.images, character)
    if choice is None:
        return _REMARK
    wants_json = request.schema != "none" or any(
        '"answer"' in turn.text for turn in request.turns if turn.role != "assistant"
    )
    return orjson.dumps({"answer": choice}).decode() if wants_json else choice


def _cut(text: str, limit: int | None) -> DemoAnswer:
    if limit is None or text_tokens(text) <= limit:
        return DemoAnswer(text)
    return DemoAnswer(text[: limit * 4], "length")
