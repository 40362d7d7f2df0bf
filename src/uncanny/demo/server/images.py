"""OpenAI's endpoint for edits of images, as far as the fake server speaks it: the demo inpainter answers.

A form has a picture, a mask that is transparent where it is painted over, and a text. Servers of diffusion
models also take a seed and a strength; without a seed the pictures and the text make one.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

import numpy as np
import orjson
from aiohttp import web
from PIL import Image, ImageOps

from uncanny.demo.model import DemoRequest
from uncanny.demo.pairs.inpaint import distorted
from uncanny.demo.server.api import ApiAnswer, ApiRequest, BadRequestError, PromptSize
from uncanny.demo.server.openai import CREATED, MODEL, OpenAIApi
from uncanny.errors import RequestRejectedError, UsageError
from uncanny.images.encode import png_bytes
from uncanny.models.tokens import text_tokens

PATH: Final = "/v1/images/edits"
# What a picture of 1024 × 1024 takes of GPT image models, of high quality and of an input.
_OUTPUT_TOKENS: Final = 4_160
_INPUT_TOKENS: Final = 1_000
_PIXELS: Final = 1024 * 1024
_MOST_PIXELS: Final = 16 * _PIXELS
_STRENGTH: Final = 0.8


@dataclass(frozen=True, slots=True)
class EditRequest(ApiRequest):
    """A request for an edited picture."""

    picture: bytes = b""
    mask: bytes = b""
    prompt: str = ""
    seed: int | None = None
    strength: float = _STRENGTH


class ImageEditsApi(OpenAIApi):
    """`/v1/images/edits`; errors are those of OpenAI's other endpoints."""

    async def content(self, request: web.Request) -> Mapping[str, Any]:
        """The fields of a form: texts, and the bytes of files. Raises BadRequestError."""
        if not request.content_type.startswith("multipart/"):
            raise BadRequestError("The body must be a form (multipart/form-data)")
        try:
            form = await request.post()
        except ValueError as error:
            raise BadRequestError(f"The form cannot be read: {error}") from None
        return {
            name.removesuffix("[]"): value.file.read() if isinstance(value, web.FileField) else value
            for name, value in form.items()
        }

    def read(self, body: Mapping[str, Any]) -> EditRequest:
        for name in ("image", "prompt"):
            if not body.get(name):
                raise BadRequestError(f"Missing required parameter: '{name}'.")
        if not isinstance(body["image"], bytes) or not isinstance(body.get("mask", b""), bytes):
            raise BadRequestError("image and mask must be files")
        try:
            seed = None if body.get("seed") is None else int(body["seed"])
            strength = float(body.get("strength", _STRENGTH))
        except ValueError:
            raise BadRequestError("seed and strength must be numbers") from None
        prompt = str(body["prompt"])
        model = str(body.get("model") or MODEL)
        prefix = hashlib.sha256(body["image"] + prompt.encode()).digest()
        return EditRequest(
            DemoRequest((), ()),
            model,
            PromptSize(prefix, 0, _INPUT_TOKENS + text_tokens(prompt), ()),
            picture=body["image"],
            mask=body.get("mask", b""),
            prompt=prompt,
            seed=seed,
            strength=min(1.0, max(0.0, strength)),
        )

    def write(self, request: ApiRequest, answer: ApiAnswer) -> bytes:
        """Raises RequestRejectedError for a refusal, and for files that are no pictures of one size."""
        assert isinstance(request, EditRequest)
        if answer.refusal is not None:
            raise RequestRejectedError(answer.refusal)
        painted, size = _painted(request)
        if answer.demo.text != MARK:  # a fault has struck what the model says
            painted = painted[: len(painted) // 2]
        output = round(_OUTPUT_TOKENS * size[0] * size[1] / _PIXELS)
        return orjson.dumps(
            {
                "created": CREATED,
                "data": [{"b64_json": b64encode(painted).decode()}],
                "usage": {
                    "input_tokens": request.size.input_tokens,
                    "input_tokens_details": {
                        "image_tokens": _INPUT_TOKENS,
                        "text_tokens": request.size.input_tokens - _INPUT_TOKENS,
                    },
                    "output_tokens": output,
                    "total_tokens": request.size.input_tokens + output,
                },
            }
        )


# Stands for the picture in the place of a text, which faults are put into.
MARK: Final = "a picture"


def _painted(request: EditRequest) -> tuple[bytes, tuple[int, int]]:
    """The bytes of a PNG file, and its width and height."""
    try:
        with Image.open(BytesIO(request.picture)) as image:
            if image.width * image.height > _MOST_PIXELS:
                raise RequestRejectedError("The image has too many pixels")
            picture = image.convert("RGB")
            own_mask = image.convert("RGBA").getchannel("A")
        if request.mask:
            with Image.open(BytesIO(request.mask)) as image:
                own_mask = image.convert("RGBA").getchannel("A")
    except OSError:
        raise RequestRejectedError("Invalid image file or mode") from None
    if own_mask.size != picture.size:
        raise RequestRejectedError("The mask must have the size of the image")
    region = np.asarray(ImageOps.invert(own_mask)) > 127
    drawn = request.seed
    if drawn is None:
        digest = hashlib.sha256(request.picture + request.prompt.encode()).digest()
        drawn = int.from_bytes(digest[:4], "big")
    try:
        pixels = distorted(np.asarray(picture), region, seed=drawn, strength=request.strength)
    except UsageError as error:
        raise RequestRejectedError(error.message) from error
    return png_bytes(Image.fromarray(pixels), 1), picture.size
