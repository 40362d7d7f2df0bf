"""Controls of looking closer: `python -m benchmarks.calls.control black|larger PORT URL`.

A server between uncanny and one with OpenAI's protocol (URL without `/v1`).

`black`, for `--schedule packed`, replaces the enlarged parts of an image by black pictures of the same size.
What is found all the same was not found by looking closer. `larger`, for `--schedule single`, spends the
tokens of the parts on a larger picture of the whole. It shows the picture as models do that take large ones
in tiles: small as a whole, then at full size in tiles, row by row.
"""

from __future__ import annotations

import base64
import io
import sys
from typing import Any

import aiohttp
from aiohttp import web
from PIL import Image

from uncanny.agents.common.regions import LARGE_PART_SIDE, tile_grid, tiles_along

Part = dict[str, Any]
SHOWN = (
    "The picture is shown in full size: first small as a whole, then cut into {columns} × {rows} tiles, row "
    "by row from the top left. Neighboring tiles overlap."
)


def opened(part: Part) -> Image.Image:
    data = part["image_url"]["url"].split(",", 1)[1]
    return Image.open(io.BytesIO(base64.b64decode(data)))


def as_part(image: Image.Image, like: Part) -> Part:
    stream = io.BytesIO()
    image.convert("RGB").save(stream, "PNG")
    url = f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"
    return {"type": "image_url", "image_url": {**like["image_url"], "url": url}}


def blackened(content: list[Part]) -> list[Part]:
    """All images but the first, which is the whole, in black."""
    whole = next((each for each in content if each["type"] == "image_url"), None)
    return [
        as_part(Image.new("RGB", opened(each).size), each)
        if each["type"] == "image_url" and each is not whole
        else each
        for each in content
    ]


def enlarged(content: list[Part]) -> list[Part]:
    """The one image, followed by its tiles."""
    shown: list[Part] = []
    for each in content:
        shown.append(each)
        if each["type"] != "image_url":
            continue
        image = opened(each)
        columns, rows = (tiles_along(side, LARGE_PART_SIDE) for side in image.size)
        if columns * rows > 1:
            shown += [as_part(image.crop(box), each) for box in tile_grid(image.size, columns, rows)]
            shown.append({"type": "text", "text": SHOWN.format(columns=columns, rows=rows)})
    return shown


def app(control: str, url: str) -> web.Application:
    change = {"black": blackened, "larger": enlarged}[control]

    async def complete(request: web.Request) -> web.Response:
        body = await request.json()
        for message in body["messages"]:
            if isinstance(message["content"], list):
                message["content"] = change(message["content"])
        headers = {key: value for key, value in request.headers.items() if key.lower() == "authorization"}
        # Whoever answers may take hours.
        timeout = aiohttp.ClientTimeout(total=None)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(url.rstrip("/") + request.path, json=body, headers=headers) as answer,
        ):
            return web.Response(
                status=answer.status, body=await answer.read(), content_type=answer.content_type
            )

    server = web.Application(client_max_size=1 << 30)
    server.router.add_post("/v1/chat/completions", complete)
    return server


def main() -> None:
    control, port, url = sys.argv[1:]
    web.run_app(app(control, url), host="127.0.0.1", port=int(port))


if __name__ == "__main__":
    main()
