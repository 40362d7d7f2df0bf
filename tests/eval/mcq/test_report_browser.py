"""The MCQ report in a real browser: nothing is asked of the network, and a phone needs no sideways scrolling.

Needs chromium and takes seconds. Without one it is skipped, unless UNCANNY_BROWSER=1 asks for it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.eval.common.page_in_browser import IMAGES_SHOWN, browser, needs_browser
from tests.eval.mcq.made_sets import answers_to
from uncanny.eval.mcq.data.load import copy_scenes, load
from uncanny.eval.mcq.score.controls import baseline_answers
from uncanny.eval.mcq.score.score import score

pytestmark = needs_browser

LONG = "a-host-with-a-long-name/" + "a-model-whose-name-goes-on-and-on-" * 3


@pytest.fixture
def page(tmp_path: Path) -> str:
    items = load(copy_scenes(tmp_path))
    answers = [answer for item in items for answer in answers_to(item, "1101", LONG)]
    answers += baseline_answers(items, "random")
    return score(items, answers, resamples=100).report(tmp_path / "mcq.html").resolve().as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
async def test_page_fits_and_keeps_to_itself(page: str, tmp_path: Path, scheme: str, width: int) -> None:
    async with browser(tmp_path / "profile") as tab:
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        await tab.send("Emulation.setEmulatedMedia", features=media)
        await tab.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        await tab.send("Page.navigate", url=page)
        await tab.until("document.readyState === 'complete' && document.querySelectorAll('.item').length > 0")
        root = "document.documentElement"
        assert await tab.js(f"{root}.scrollWidth <= {root}.clientWidth")
        dark = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0] < 128"
        assert await tab.js(dark) == (scheme == "dark")
        await tab.until(IMAGES_SHOWN)
        inside = (
            "[...document.querySelectorAll('.plot svg text.label')].every(text => {"
            " const [one, all] = [text, text.ownerSVGElement].map(node => node.getBoundingClientRect());"
            " return one.left >= all.left - 1 && one.right <= all.right + 1; })"
        )
        assert await tab.js(inside)
        loud = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        assert [event for event in tab.events if event["method"] in loud] == []
        asked = {
            event["params"]["request"]["url"].split(":")[0]
            for event in tab.events
            if event["method"] == "Network.requestWillBeSent"
        }
        assert asked <= {"file", "data", "about"}
