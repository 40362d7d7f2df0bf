"""The page in a real browser: keys, deep links, unpacking, a phone's width, hostile text.

Needs chromium and takes seconds. Without one it is skipped, unless UNCANNY_BROWSER=1 asks for it.
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

from uncanny.eval.annotate.report.page import write_report

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

pytestmark = [
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

    async def visit(self, address: str, width: int, height: int = 900) -> None:
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
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
        told = profile / "DevToolsActivePort"
        while not (told.exists() and "\n" in told.read_text()):
            assert process.returncode is None, "chromium ended before it listened"
            await asyncio.sleep(0.05)
        port = told.read_text().split()[0]
        async with aiohttp.ClientSession() as session:
            pages: list[dict[str, str]] = []
            while not pages:
                async with session.get(f"http://127.0.0.1:{port}/json") as reply:
                    pages = [entry for entry in await reply.json() if entry["type"] == "page"]
            async with session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                tab = Tab(socket)
                for domain in ("Page", "Runtime", "Log", "Network"):
                    await tab.send(f"{domain}.enable")
                yield tab
    finally:
        process.terminate()
        await process.wait()


FOCUS = "document.activeElement.id"
OPEN = "document.getElementById('detail').open"


async def test_keys_lead_through_the_page(shared_run: Path, tmp_path: Path) -> None:
    address = write_report(shared_run).resolve().as_uri()
    async with browser(tmp_path) as tab:
        await tab.visit(address, 1280)
        for key in "jjk":
            await tab.key(key)
        assert await tab.js(FOCUS) == "image-1"
        await tab.key("Enter")
        await tab.until("document.querySelectorAll('.call').length === 22")
        assert await tab.js("location.hash") == "#image=1"
        await tab.key("j")
        await tab.until("location.hash === '#image=2'")
        await tab.until("document.querySelectorAll('.call').length === 22")
        await tab.js("document.querySelector('.call').open = true")
        await tab.until("document.querySelector('.call pre')?.textContent.startsWith('Look at the')")
        await tab.key("Escape")
        await tab.until(f"!{OPEN}")
        await tab.until(f"{FOCUS} === 'image-2'")
        await tab.key("/")
        await tab.send("Input.insertText", text="onerror")
        await tab.until("document.getElementById('matching').textContent === '1 of 9 images match'")
        await tab.key("Escape")
        await tab.key("?")
        assert await tab.js("document.getElementById('help').open")
        asked = {
            e["params"]["request"]["url"].split(":")[0]
            for e in tab.events
            if e["method"] == "Network.requestWillBeSent"
        }
        assert asked <= {"file", "data", "about"}
        loud = (
            "Runtime.exceptionThrown",
            "Log.entryAdded",
            "Runtime.consoleAPICalled",
            "Page.javascriptDialogOpening",
        )
        assert [event for event in tab.events if event["method"] in loud] == []


async def test_deep_link_on_a_phone_needs_no_sideways_scrolling(shared_run: Path, tmp_path: Path) -> None:
    address = write_report(shared_run).resolve().as_uri()
    async with browser(tmp_path) as tab:
        await tab.visit(address + "#image=2", 360)
        await tab.until("document.querySelectorAll('.call').length === 22")
        wide = "(node => node.scrollWidth <= node.clientWidth)"
        assert await tab.js(f"{wide}(document.documentElement)")
        assert await tab.js(f"{wide}(document.getElementById('detail'))")
        await tab.key("Escape")
        await tab.until(f"!{OPEN}")
        assert await tab.js(f"{wide}(document.documentElement)")
        assert await tab.js("document.querySelectorAll('#cards script, #cards [onerror]').length") == 0
