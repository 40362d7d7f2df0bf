"""Provider `demo`: the embedded model, in this process. No key, no GPU, no network, no model weights."""

from __future__ import annotations

import asyncio
from typing import Final

from uncanny.providers.base import Reply, Request, SentImage, Tokens, Traits
from uncanny.providers.demo_brain import answer
from uncanny.providers.demo_question import IMAGE_TOKENS, BrainRequest, SchemaForm, Turn, text_tokens
from uncanny.scenes import scene_by_sha256

TRAITS: Final = Traits(
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
    def traits(self) -> Traits:
        return TRAITS

    @property
    def endpoint(self) -> None:
        return None

    @property
    def secrets(self) -> tuple[str, ...]:
        return ()

    async def ask(self, request: Request) -> Reply:
        """Answer from the bundled scenes. Raises `RequestRejectedError` for any other image or question.

        Token counts are estimates from the number of characters; cached tokens are not measured.
        """
        if self._latency:
            await asyncio.sleep(self._latency)
        seen = brain_request(request)
        reply = answer(seen)
        spent = sum(text_tokens(turn.text) for turn in seen.turns) + IMAGE_TOKENS * len(seen.images)
        return Reply(
            reply.text, reply.finish, Tokens(input=spent, output=text_tokens(reply.text)), model="demo"
        )

    async def close(self) -> None:
        """Nothing is open."""


def brain_request(request: Request) -> BrainRequest:
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
