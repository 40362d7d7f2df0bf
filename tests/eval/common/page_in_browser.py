"""A real browser for tests of pages, and what every page of scores has to hold in it.

Needs chromium and takes seconds. Without one a test is skipped, unless UNCANNY_BROWSER=1 asks for it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-port=0",
)

needs_browser = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None and os.environ.get("UNCANNY_BROWSER") != "1",
        reason="no chromium (UNCANNY_BROWSER=1 insists)",
    ),
]

_NAMED_KEYS = {"Enter": (13, "\r"), "Escape": (27, "")}


class Tab:
    """One page of a browser, over the DevTools protocol."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.number = 0
        self.events: list[dict[str, Any]] = []

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        await self.socket.send_json({"id": self.number, "method": method, "params": params})
        while True:
            message: dict[str, Any] = await asyncio.wait_for(self.socket.receive_json(), 60)
            if message.get("id") == self.number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result
            self.events.append(message)

    async def js(self, expression: str) -> Any:
        result = await self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def until(self, expression: str) -> None:
        for _ in range(200):
            if await self.js(expression):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"never became true: {expression}")

    async def key(self, key: str) -> None:
        code, text = _NAMED_KEYS.get(key) or (ord(key.upper()), key)
        for kind in ("keyDown", "keyUp"):
            typed = {"text": text} if kind == "keyDown" else {}
            await self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **typed)

    async def resize(self, width: int, height: int = 900) -> None:
        """As on a phone where it is narrow."""
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )

    async def colours(self, scheme: str) -> None:
        """`scheme` is light or dark."""
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.send("Emulation.setEmulatedMedia", features=media)

    async def visit(self, address: str, width: int, height: int = 900) -> None:
        await self.resize(width, height)
        await self.send("Page.navigate", url="about:blank")
        await self.send("Page.navigate", url=address)
        await self.until(
            "document.readyState === 'complete' && document.querySelectorAll('.card').length > 0"
        )


@asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Tab]:
    assert CHROMIUM is not None, "UNCANNY_BROWSER=1, but there is no chromium"
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, *QUIET, f"--user-data-dir={profile}", "about:blank", stderr=asyncio.subprocess.DEVNULL
    )
    try:
        listening = profile / "DevToolsActivePort"
        while not (listening.exists() and "\n" in listening.read_text()):
            assert process.returncode is None, "chromium ended before it listened"
            await asyncio.sleep(0.05)
        port = listening.read_text().split()[0]
        async with aiohttp.ClientSession() as session:
            pages: list[dict[str, str]] = []
            while not pages:
                async with session.get(f"http://127.0.0.1:{port}/json") as response:
                    pages = [entry for entry in await response.json() if entry["type"] == "page"]
            async with session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                tab = Tab(socket)
                for domain in ("Page", "Runtime", "Log", "Network"):
                    await tab.send(f"{domain}.enable")
                yield tab
    finally:
        process.terminate()
        await process.wait()


LOUD = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
# The least contrast of any text with what lies behind it (WCAG 2.2, 1.4.3, is 4.5), as [ratio, words].
LEAST_CONTRAST = """(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = colour => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => { const [x, y, z] = [r, g, b].map(v => v / 255).map(
    v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
  const behind = node => { for (let at = node; at; at = at.parentElement) {
    const colour = rgba(getComputedStyle(at).backgroundColor); if (colour[3] === 255) return colour; }
    return [255, 255, 255, 255]; };
  let least = [99, ''];
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
    if (!own || !node.getClientRects().length || node.closest('title, desc')) continue;
    const style = getComputedStyle(node);
    const ink = light(rgba(node instanceof SVGElement ? style.fill : style.color));
    const ground = light(behind(node));
    const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    if (ratio < least[0]) least = [ratio, node.textContent.trim().slice(0, 60)];
  }
  return least; })()"""
# Text of plots that reaches over the edge of its plot.
CUT_OFF = """[...document.querySelectorAll('.drawn svg')].flatMap(svg => {
  const all = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(text => { const one = text.getBoundingClientRect();
    return one.width && (one.left < all.left - 1 || one.right > all.right + 1 || one.top < all.top - 1
      || one.bottom > all.bottom + 1); }).map(text => text.textContent); })"""
# Labels of plots that stand on each other, as pairs of their words.
COLLIDING = """[...document.querySelectorAll('.drawn svg, .plot svg')].flatMap(svg => {
  const texts = [...svg.querySelectorAll('text')]
    .map(text => [text.textContent.trim(), text.getBoundingClientRect()])
    .filter(([words, box]) => words && box.width);
  const common = (one, two, low, high) => Math.min(one[high], two[high]) - Math.max(one[low], two[low]);
  return texts.flatMap(([words, one], n) => texts.slice(n + 1)
    .filter(([, two]) => common(one, two, 'left', 'right') > 2 && common(one, two, 'top', 'bottom') > 4)
    .map(([other]) => [words, other])); })"""
ROOT = "document.documentElement"
# Pictures further down load only when somebody gets there.
IMAGES_SHOWN = """[...document.images].every(image => { image.loading = 'eager';
  return image.complete && image.naturalWidth > 0; })"""


async def check_page(address: str, profile: Path, *, plots: bool = True) -> None:
    """In both colour schemes and two widths: loads nothing, no complaint, no sideways scrolling, contrast."""
    async with browser(profile) as tab:
        for scheme in ("light", "dark"):
            for width in (390, 1280):
                await tab.colours(scheme)
                await tab.resize(width)
                await tab.send("Page.navigate", url="about:blank")
                await tab.send("Page.navigate", url=address)
                await tab.until(
                    "document.readyState === 'complete' && document.querySelector('footer') !== null"
                )
                case = f"{scheme}, {width} px"
                assert await tab.js(f"{ROOT}.scrollWidth <= {ROOT}.clientWidth"), case
                dark = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0] < 128"
                assert await tab.js(dark) == (scheme == "dark"), case
                await tab.until(IMAGES_SHOWN)
                least, words = await tab.js(LEAST_CONTRAST)
                assert least >= 4.5, (case, words, least)
                assert await tab.js(CUT_OFF) == [], case
                colliding = await tab.js(COLLIDING)
                assert colliding == [], (case, colliding)
                seen = "[...document.querySelectorAll('.drawn')].some(plot => plot.getClientRects().length)"
                assert await tab.js(seen) == plots, case
        assert [event for event in tab.events if event["method"] in LOUD] == []
        requests = {
            event["params"]["request"]["url"].split(":")[0]
            for event in tab.events
            if event["method"] == "Network.requestWillBeSent"
        }
        assert requests <= {"file", "data", "about"}
