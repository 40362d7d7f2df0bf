"""Somebody with a browser, and what the browser tests of all pages share."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page, ViewportSize

from tests.eval.common.page_in_browser import LEAST_CONTRAST

AXE: Final = Path(__file__).with_name("vendor") / "axe.min.js"
HOSTILE: Final = "<script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
WIDE, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)


class Visitor:
    """A person with a browser of their own; what the browser complains of is collected."""

    def __init__(self, browser: Browser, *, wait_ms: int = 15_000, **context: Any) -> None:
        self.page: Page = browser.new_context(**({"viewport": WIDE} | context)).new_page()
        self.page.set_default_timeout(wait_ms)
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def visit(self, address: str, name: str | None) -> None:
        """Open a page, and say who one is where it asks."""
        self.page.goto(address)
        if name is not None:
            self.page.get_by_label("Name").fill(name)
            self.page.keyboard.press("Enter")

    def check(self, state: str) -> None:
        """Nothing serious by axe-core, nothing that scrolls sideways, every text with contrast.

        Needs a context with `bypass_csp`. `state` says where it failed.
        """
        if not self.page.evaluate("() => 'axe' in window"):
            self.page.add_script_tag(path=AXE)
        found = self.page.evaluate("() => axe.run(document, {iframes: false})")["violations"]
        serious = [each for each in found if each["impact"] in ("serious", "critical")]
        assert [(each["id"], each["nodes"][0]["html"]) for each in serious] == [], state
        sideways = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not self.page.evaluate(sideways), state
        least, words = self.page.evaluate(f"() => {LEAST_CONTRAST}")
        assert least >= 4.5, (state, words, least)

    def draw(self, x0: float, y0: float, x1: float, y1: float) -> None:
        """With the mouse, in shares of the picture."""
        self.page.wait_for_selector(".a9s-annotationlayer")
        frame = self.page.locator("#frame").bounding_box()
        assert frame is not None
        mouse = self.page.mouse
        mouse.move(frame["x"] + x0 * frame["width"], frame["y"] + y0 * frame["height"])
        mouse.down()
        mouse.move(frame["x"] + x1 * frame["width"], frame["y"] + y1 * frame["height"], steps=5)
        mouse.up()
