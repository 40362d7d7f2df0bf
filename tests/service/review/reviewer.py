"""Somebody who reviews findings in a browser, by keyboard and mouse."""

from __future__ import annotations

import math
from typing import Any

from playwright.sync_api import Browser

from tests.service.visitor import Visitor


class Reviewer(Visitor):
    """Somebody who judges findings."""

    def __init__(
        self,
        browser: Browser,
        address: str,
        name: str | None = None,
        *,
        token: str | None = None,
        **context: Any,
    ) -> None:
        """Open a review page: give a `name` where it asks for one, or sign in where it wants a `token`."""
        super().__init__(browser, **context)
        self.visit(address, name)
        if token is not None:
            self.page.get_by_label("Token").fill(token)
            self.page.keyboard.press("Enter")
        self.page.wait_for_selector("body[data-shown]")

    @property
    def finding(self) -> str:
        return self.page.locator("#panel").get_attribute("data-finding") or ""

    @property
    def heading(self) -> str:
        return self.page.locator("#name").inner_text()

    def press(self, key: str) -> None:
        """A key that leads to another finding, and its picture."""
        before = self.finding
        self.page.keyboard.press(key)
        self.arrive(before)

    def arrive(self, before: str) -> None:
        """Wait for another finding than `before`, with its picture, or for the end."""
        self.page.wait_for_selector(f'#panel:not([data-finding="{before}"])')
        if self.finding:
            self.page.wait_for_selector(f'body[data-shown="{self.finding}"]:not(.busy)')
        else:
            self.page.wait_for_selector("body:not(.busy)")

    def stays(self, key: str, notice: str) -> None:
        """A key that is answered about the same finding."""
        self.page.keyboard.press(key)
        self.told(notice)

    def told(self, notice: str) -> None:
        """Wait for what the page says above a finding."""
        self.page.wait_for_selector(f"body:not(.busy) #panel .notice:has-text('{notice}')")

    @property
    def votes(self) -> str:
        """What the page says of verdicts, of one's own and of others'."""
        line = self.page.locator("#panel .votes")
        return line.inner_text().strip() if line.count() else ""

    def draw(self, x0: float, y0: float, x1: float, y1: float) -> None:
        super().draw(x0, y0, x1, y1)
        # Another box may be in hand already: the new one is where it was drawn.
        frame = self.page.locator("#frame").bounding_box()
        assert frame is not None
        middle = (
            frame["x"] + (x0 + x1) / 2 * frame["width"],
            frame["y"] + (y0 + y1) / 2 * frame["height"],
        )
        while not any(math.dist(middle, each) < 5 for each in self.boxes_in_hand()):
            self.page.wait_for_timeout(20)

    def boxes_in_hand(self) -> list[tuple[float, float]]:
        """The middles of the boxes that can be moved."""
        places = [each.bounding_box() for each in self.page.locator(".a9s-shape-handle").all()]
        return [(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2) for at in places if at is not None]
