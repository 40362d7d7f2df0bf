"""OpenAI's endpoint for edits of images, `/images/edits`, which other servers have, too.

The mask goes as a PNG file that is transparent where it is painted over. OpenAI takes pictures of a few sizes
and no seed, guidance, strength or steps; other servers get the picture at its own size, and these parameters
under the names that servers of diffusion models have for them, unless they turn out not to take one.
"""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import Mapping
from typing import Any, Final

import httpx2
from PIL import ImageOps

from uncanny.errors import ImageError, RequestRejectedError
from uncanny.images.encode import png_bytes
from uncanny.images.prepared import read_rgb
from uncanny.models.base import ModelRequest, ModelResponse, Tokens
from uncanny.models.http import Exchange
from uncanny.models.http_errors import ErrorContext, Flagged, Rejection, bad_body
from uncanny.models.openai_chat import Place, count
from uncanny.models.painting.canvas import Canvas, Size, on_canvas
from uncanny.models.presets import OPENAI

PATH: Final = "/images/edits"
# What the GPT image models draw.
SIZES: Final[tuple[Size, ...]] = ((1024, 1024), (1536, 1024), (1024, 1536))
# By the name of a parameter of a `Painting`, that of a field.
FIELDS: Final[Mapping[str, str]] = {
    "seed": "seed",
    "guidance": "guidance_scale",
    "strength": "strength",
    "steps": "num_inference_steps",
}
# Sides of pictures for diffusion models are multiples of this.
MULTIPLE: Final = 16
# Before these, pictures came as addresses unless one asked for them.
_ASKS_FOR_BASE64: Final = "dall-e"


async def edit_image(
    request: ModelRequest, place: Place, timeout_s: float, left_out: set[str]
) -> ModelResponse:
    """Make one call; see `ModelProvider.generate`. Fields that the server does not take join `left_out`."""
    assert request.painting is not None
    context = place.context
    is_openai = context.name.partition("/")[0] == OPENAI.name
    canvas = on_canvas(request, _size(request, fixed=is_openai), enlarge=is_openai)
    while True:
        sent = {} if is_openai else _sent(request.painting.parameters, left_out)
        try:
            async with Exchange(context, timeout_s) as exchange:
                exchange.response = await place.client.post(
                    PATH,
                    cast_to=httpx2.Response,
                    body=_fields(request, context.model, canvas, sent, is_openai=is_openai),
                    files=[
                        ("image", ("image.png", png_bytes(canvas.picture, 1), "image/png")),
                        ("mask", ("mask.png", _transparent(canvas), "image/png")),
                    ],
                    options=_multipart(place),
                )
            content, headers = exchange.result()
        except Flagged as flagged:
            return ModelResponse("", "refusal", Tokens(), reason=flagged.reason)
        except Rejection as rejection:
            words = f"{rejection.body.parameter or ''} {rejection.body.message}"
            refused = next((name for name in sent if FIELDS[name] in words), None)
            if refused is None:
                raise
            left_out.add(refused)
        else:
            data = _picture(content, context)
            painted, resampled = await asyncio.to_thread(_brought_back, data, canvas)
            return ModelResponse(
                request.painting.keep(painted, sent, resampled=resampled),
                tokens=_tokens(content.get("usage")),
                model=content["model"] if isinstance(content.get("model"), str) else None,
                request_id=headers.get("x-request-id"),
            )


def _size(request: ModelRequest, *, fixed: bool) -> Size:
    picture, _, _ = request.to_paint()
    if not fixed:
        return (-(-picture.width // MULTIPLE) * MULTIPLE, -(-picture.height // MULTIPLE) * MULTIPLE)
    # The one on which most of the canvas is used.
    shape = picture.width / picture.height
    return max(SIZES, key=lambda size: min(shape / (size[0] / size[1]), (size[0] / size[1]) / shape))


def _sent(parameters: Mapping[str, float], left_out: set[str]) -> dict[str, float]:
    return {name: value for name, value in parameters.items() if name not in left_out}


def _fields(
    request: ModelRequest, model: str, canvas: Canvas, sent: Mapping[str, float], *, is_openai: bool
) -> dict[str, Any]:
    _, _, text = request.to_paint()
    width, height = canvas.picture.size
    as_base64 = not is_openai or model.startswith(_ASKS_FOR_BASE64)
    return {
        "model": model,
        "prompt": text,
        "n": 1,
        "size": f"{width}x{height}",
        **({"response_format": "b64_json"} if as_base64 else {}),
        **{FIELDS[name]: value for name, value in sent.items()},
    }


def _multipart(place: Place) -> Any:
    """The SDK writes a form where a header says so, and adds what divides its parts."""
    options = place.options
    return {**options, "headers": {**options.get("headers", {}), "Content-Type": "multipart/form-data"}}


def _transparent(canvas: Canvas) -> bytes:
    picture = canvas.picture.copy()
    picture.putalpha(ImageOps.invert(canvas.mask))
    return png_bytes(picture, 1)


def _picture(content: Mapping[str, Any], context: ErrorContext) -> bytes:
    """Raises TransientError where there is none, RequestRejectedError where only an address came."""
    data = content.get("data")
    first = data[0] if isinstance(data, list) and data else None
    encoded = first.get("b64_json") if isinstance(first, dict) else None
    if not isinstance(encoded, str):
        if isinstance(first, dict) and isinstance(first.get("url"), str):
            raise RequestRejectedError(
                f"{context.name} answers with the address of a picture, which uncanny does not open",
                remedy="Have the server answer with `b64_json`.",
            )
        raise bad_body(context, "no picture in it (data[0].b64_json)")
    try:
        return binascii.a2b_base64(encoded)
    except ValueError:
        raise bad_body(context, "its picture is not valid base64") from None


def _brought_back(data: bytes, canvas: Canvas) -> tuple[bytes, bool]:
    """The picture at its own size, and whether it was scaled.

    Bytes that are no picture stay as they are, for whoever reads them.
    """
    try:
        painted, _ = read_rgb(data)
    except ImageError:
        return data, False
    return png_bytes(canvas.back(painted), 1), canvas.resamples(painted)


def _tokens(usage: object) -> Tokens:
    if not isinstance(usage, dict):
        return Tokens()
    details = usage.get("input_tokens_details")
    images = details.get("image_tokens") if isinstance(details, dict) else None
    return Tokens(
        input=count(usage.get("input_tokens")), output=count(usage.get("output_tokens")), images=count(images)
    )
