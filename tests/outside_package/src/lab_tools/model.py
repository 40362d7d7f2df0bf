"""`lab/…`: a model that measures. It looks at the pixels it is sent, and reads what it is asked.

It knows one kind of fault, a picture whose left and right half differ in brightness, and colors.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
from collections.abc import Iterator
from typing import Any

from PIL import Image, ImageStat

from uncanny import (
    AnswerSchema,
    Capabilities,
    Message,
    ModelRequest,
    ModelResponse,
    Sampling,
    SentImage,
    Tokens,
)
from uncanny.errors import RequestRejectedError

LEAST_DIFFERENCE = 20
COLORS = ("red", "green", "blue")
# The mean red, green and blue of the left and of the right half, 0 to 255.
Halves = tuple[tuple[float, ...], tuple[float, ...]]


class LabModel:
    """`lab/NAME`. NAME is `gray`, which compares brightness, or `color`, which knows colors, too."""

    capabilities = Capabilities(
        media_types=frozenset({"image/png", "image/jpeg"}), max_image_side=512, temperature=False, top_p=False
    )

    def __init__(self, model: str) -> None:
        self.name = f"lab/{model}"
        self._knows_colors = model == "color"

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Answer from pixels and text. Raises RequestRejectedError where there is no picture to see."""
        text, pictures = read(request.messages)
        if not pictures and "<faults>" not in text:
            raise RequestRejectedError("lab sees pictures, and there is none in this request")
        halves = await asyncio.to_thread(halves_of, pictures[0]) if pictures else ((0.0,) * 3,) * 2
        if request.schema is None:
            answer = self._in_words(text, halves)
        else:
            answer = as_json(request.schema, {key: items(key, text, halves) for key in request.schema.lists})
        return limited(answer, request.sampling, Tokens(input=len(text) // 4, output=len(answer) // 4))

    def _in_words(self, text: str, halves: Halves) -> str:
        if not self._knows_colors:
            return "no\nI see no colors."
        left, right = halves
        means = [(a + b) / 2 for a, b in zip(left, right, strict=True)]
        seen = COLORS[means.index(max(means))]
        asked = [color for color in COLORS if color in text.lower()]
        return f"{'yes' if seen in asked else 'no'}\nThe picture is mostly {seen}."


def read(messages: tuple[Message, ...]) -> tuple[str, list[SentImage]]:
    """The text of all turns of the user, and the pictures in them."""
    parts = [part for message in messages if message.role == "user" for part in message.parts]
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(texts), [part for part in parts if isinstance(part, SentImage)]


def halves_of(picture: SentImage) -> Halves:
    """What the picture has, measured."""
    with Image.open(io.BytesIO(base64.b64decode(picture.base64))) as opened:
        image = opened.convert("RGB")
    middle = image.width // 2
    left = image.crop((0, 0, max(middle, 1), image.height))
    right = image.crop((middle, 0, image.width, image.height))
    return tuple(ImageStat.Stat(left).mean), tuple(ImageStat.Stat(right).mean)


def items(asked_for: str, text: str, halves: Halves) -> list[dict[str, Any]]:
    """What is listed under a key; other lists than those of annotation are empty."""
    left, right = (sum(half) / 3 for half in halves)
    darker = "left" if left < right else "right"
    match asked_for:
        case "objects" | "inventory":
            shadow = [{"name": f"shadow on the {darker}", "description": "dark"}] if left != right else []
            return [{"name": "left half", "description": f"about {left:.0f} bright"}, *shadow]
        case "findings":
            if abs(left - right) < LEAST_DIFFERENCE:
                return []
            odd = {"observed": f"the {darker} half is darker", "explanation": "one lamp", "kind": "light"}
            # Of all pictures it measures the first, which is the whole one.
            part = next((row["part"] for row in rows(text, "parts")), 0)
            return [{"part": part, "objects": ["halves"], "confidence": 60, **odd}]
        case "entries":
            found = list(rows(text, "findings"))
            texts = {key: found[0][key] for key in ("phenomenon", "reasoning")} if found else {}
            ids = [row["id"] for row in found]
            final = {"name": "halves", "realism": 30, "kind": "light", **texts}
            return [{"ids": ids, "why": "seen", "decision": "keep", **final}] if ids else []
        case "anomalies":
            ids = [row["id"] for row in rows(text, "faults")]
            return [{"ids": ids, "name": "halves", "realism": 30, "kind": "light"}] if ids else []
    return []


def rows(text: str, block: str) -> Iterator[dict[str, Any]]:
    """The JSON lines in a block of the prompt."""
    found = re.search(rf"<{block}>\n(.*?)\n</{block}>", text, re.DOTALL)
    for line in found[1].splitlines() if found else ():
        yield json.loads(line)


def as_json(schema: AnswerSchema, lists: dict[str, list[dict[str, Any]]]) -> str:
    """The lists as the schema wants them, which may wrap them as `answer`."""
    return json.dumps({"answer": lists} if "answer" in schema.own["properties"] else lists)


def limited(answer: str, sampling: Sampling, tokens: Tokens) -> ModelResponse:
    """The answer, cut off where it is longer than was asked for."""
    most = 4 * sampling.max_output_tokens
    return ModelResponse(answer[:most], "length" if len(answer) > most else "stop", tokens, model="lab-1")
