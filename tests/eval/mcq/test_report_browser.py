"""The MCQ report in a real browser: nothing is asked of the network, and a phone needs no sideways scrolling.

Needs chromium and takes seconds. Without one it is skipped, unless UNCANNY_BROWSER=1 asks for it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.eval.common.page_in_browser import COLLIDING, IMAGES_SHOWN, browser, needs_browser
from tests.eval.mcq.made_sets import answers_to
from uncanny.eval.mcq.data.load import copy_scenes, load
from uncanny.eval.mcq.score.score import score

pytestmark = needs_browser

LONG = "a-host-with-a-long-name/" + "a-model-whose-name-goes-on-and-on-" * 3


@pytest.fixture
def page(tmp_path: Path) -> str:
    items = load(copy_scenes(tmp_path))
    answers = [answer for item in items for answer in answers_to(item, "1101", LONG)]
    return (
        score(items, answers, baselines=True, resamples=100).report(tmp_path / "mcq.html").resolve().as_uri()
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
async def test_page_fits_and_keeps_to_itself(page: str, tmp_path: Path, scheme: str, width: int) -> None:
    async with browser(tmp_path / "profile") as tab:
        await tab.colours(scheme)
        await tab.resize(width)
        await tab.send("Page.navigate", url=page)
        await tab.until("document.readyState === 'complete' && document.querySelectorAll('.item').length > 0")
        root = "document.documentElement"
        assert await tab.js(f"{root}.scrollWidth <= {root}.clientWidth")
        dark = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0] < 128"
        assert await tab.js(dark) == (scheme == "dark")
        await tab.until(IMAGES_SHOWN)
        inside = (
            "[...document.querySelectorAll('.plot svg text.label, svg.patterns text')].every(text => {"
            " const [one, all] = [text, text.ownerSVGElement].map(node => node.getBoundingClientRect());"
            " return one.left >= all.left - 1 && one.right <= all.right + 1; })"
        )
        assert await tab.js(inside)
        assert await tab.js(COLLIDING) == []
        loud = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        assert [event for event in tab.events if event["method"] in loud] == []
        asked = {
            event["params"]["request"]["url"].split(":")[0]
            for event in tab.events
            if event["method"] == "Network.requestWillBeSent"
        }
        assert asked <= {"file", "data", "about"}


async def test_every_item_opens_and_many_models_do_not_collide(tmp_path: Path) -> None:
    items = load(copy_scenes(tmp_path))
    patterns = ("1111", "1110", "1101", "0111", "1011", "0000")
    answers = [
        answer
        for n in range(12)
        for place, item in enumerate(items)
        for answer in answers_to(item, patterns[(n * place) % 6], f"{LONG}{n}")
    ]
    page = score(items, answers, resamples=100).report(tmp_path / "mcq.html").resolve().as_uri()
    async with browser(tmp_path / "profile") as tab:
        for width in (390, 1280):
            await tab.resize(width)
            await tab.send("Page.navigate", url=page)
            await tab.until("document.readyState === 'complete' && document.querySelector('footer') !== null")
            assert await tab.js(COLLIDING) == []
            assert await tab.js("document.querySelectorAll('#all-items [data-open]').length") == len(items)
        await tab.js("document.querySelectorAll('#all-items [data-open]')[3].click()")
        name = await tab.js("document.querySelectorAll('#all-items [data-open]')[3].dataset.open")
        assert await tab.js("document.querySelector('#item-title bdi').textContent") == name
        assert await tab.js("document.querySelectorAll('#item tbody tr').length") == 12
        await tab.until("document.querySelector('#item img').naturalWidth > 0")
        await tab.js("document.querySelector('#item .shot').click()")
        await tab.until("document.querySelector('#viewer').open")
        await tab.js("document.querySelector('#viewer').close()")
        await tab.js("document.querySelector('#item').close()")
        # By keyboard: the head of a column is a button, and says how the table is sorted.
        await tab.js("document.querySelector('#all-items thead button').focus()")
        await tab.key("Enter")
        sorted_by = "document.querySelector('#all-items th').getAttribute('aria-sort')"
        assert await tab.js(sorted_by) == "ascending"
        await tab.key("Enter")
        assert await tab.js(sorted_by) == "descending"
        await tab.key("Enter")
        assert await tab.js(sorted_by) is None
        find = "document.querySelector('#find-item')"
        await tab.js(f"{find}.value = 'art_dg'; {find}.dispatchEvent(new Event('input'))")
        kept = "[...document.querySelectorAll('#all-items tbody tr')].filter(row => !row.hidden).length"
        assert await tab.js(kept) == sum(item.split == "art_dg" for item in items)


async def test_each_state_of_an_answer_is_shown_as_what_it_is(tmp_path: Path) -> None:
    """A refusal begins with the same letter as a right answer."""
    items = load(copy_scenes(tmp_path))
    asked = next(item for item in items if item.q1 is not None and item.q4 is not None)
    right, wrong, refused = answers_to(asked, "100-")
    answers = [right, wrong, refused.model_copy(update={"raw": "I won't", "outcome": "refused"})]
    page = score(items, answers, resamples=100).report(tmp_path / "mcq.html").resolve().as_uri()
    async with browser(tmp_path / "profile") as tab:
        await tab.send("Page.navigate", url=page)
        await tab.until("document.readyState === 'complete' && document.querySelector('footer') !== null")
        await tab.js(f"document.querySelector('#all-items [data-open=\"{asked.id}\"]').click()")
        cells = "[...document.querySelectorAll('#item tbody td')]"
        assert await tab.js(f"{cells}.map(cell => cell.className.split('-')[1])") == [
            "right",
            "wrong",
            "refused",
            "missing",
        ]
        assert await tab.js(f"{cells}[2].textContent") == "refusedI won't"
