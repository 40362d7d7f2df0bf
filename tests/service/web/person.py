"""Somebody who works with the service, in a browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, expect

from tests.service.visitor import Visitor

WAIT_MS = 60_000
expect.set_options(timeout=WAIT_MS)


class Person(Visitor):
    """Somebody who works with the service."""

    def __init__(self, browser: Browser, address: str, **context: Any) -> None:
        super().__init__(browser, wait_ms=WAIT_MS, **context)
        self.address = address

    def sign_in(self, secret: str) -> None:
        self.page.goto(f"{self.address}/login")
        self.page.get_by_label("Token").fill(secret)
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(f"{self.address}/")

    def new(self, title: str) -> None:
        self.page.goto(f"{self.address}/")
        self.page.keyboard.press("n")
        self.page.get_by_role("link", name=title).click()

    def start(self) -> str:
        """The address of the job that is started."""
        before = self.page.url
        self.page.keyboard.press("Control+Enter")
        self.page.wait_for_url(re.compile("/jobs/job_[a-z2-7]{20}$"))
        assert self.page.url != before
        return self.page.url

    def drop(self, place: str, *files: Path) -> None:
        """Drag files and folders to a place of the page, and let them go there."""
        box = self.page.locator(place).bounding_box()
        assert box is not None
        session = self.page.context.new_cdp_session(self.page)
        for kind in ("dragEnter", "dragOver", "drop"):
            event = {
                "type": kind,
                "x": box["x"] + box["width"] / 2,
                "y": box["y"] + 8,
                "data": {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1},
            }
            session.send("Input.dispatchDragEvent", event)
        session.detach()

    def ends(self, state: str) -> None:
        expect(self.page.locator("#live")).to_have_attribute("data-state", state, timeout=WAIT_MS)
