"""The semantic page in a real browser: nothing asked of the network, and no sideways scrolling on a phone.

Needs chromium and takes seconds. Without one it is skipped, unless UNCANNY_BROWSER=1 asks for it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.eval.common.page_in_browser import browser, needs_browser
from tests.eval.semantic.made_scores import made_predictions, made_score, made_truth, twelve_models

pytestmark = needs_browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """Addresses by the number of files."""
    folder = tmp_path_factory.mktemp("semantic")
    truth = made_truth()
    alone = made_score({"m": made_predictions(truth, 0.6)}, truth)
    return {
        count: replace(score, published=True).report(folder / f"{count}.html").resolve().as_uri()
        for count, score in ((1, alone), (12, twelve_models()))
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("count", [1, 12])
async def test_page_fits_and_keeps_to_itself(
    pages: dict[int, str], tmp_path: Path, count: int, width: int, scheme: str
) -> None:
    async with browser(tmp_path / "profile") as tab:
        await tab.colours(scheme)
        await tab.resize(width)
        await tab.send("Page.navigate", url=pages[count])
        await tab.until(
            "document.readyState === 'complete' && document.querySelectorAll('.match').length > 0"
        )
        await tab.js("document.querySelectorAll('details').forEach(one => one.open = true)")
        root = "document.documentElement"
        assert await tab.js(f"{root}.scrollWidth <= {root}.clientWidth")
        dark = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0] < 128"
        assert await tab.js(dark) == (scheme == "dark")
        inside = (
            "[...document.querySelectorAll('.drawn svg')].filter(svg => svg.getBoundingClientRect().width)"
            ".every(svg => [...svg.querySelectorAll('text')].every(text => {"
            " const [one, all] = [text, svg].map(node => node.getBoundingClientRect());"
            " return one.left >= all.left - 1 && one.right <= all.right + 1; }))"
        )
        assert await tab.js(inside)
        unreachable = (
            "[...document.querySelectorAll('.scroll, .long, .names-list')]"
            ".filter(one => one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1)"
            ".filter(one => one.tabIndex !== 0).length"
        )
        assert await tab.js(unreachable) == 0
        loud = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        assert [event for event in tab.events if event["method"] in loud] == []
        schemes = {
            event["params"]["request"]["url"].split(":")[0]
            for event in tab.events
            if event["method"] == "Network.requestWillBeSent"
        }
        assert schemes <= {"file", "data", "about"}
