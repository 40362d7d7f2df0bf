"""The page in a real browser: it fits a phone, reads in the dark, filters, and opens both sets of boxes.

Needs chromium and takes seconds. Without one it is skipped, unless UNCANNY_BROWSER=1 asks for it.
"""

from __future__ import annotations

from pathlib import Path

from tests.eval.common.page_in_browser import browser, check_page, needs_browser
from tests.eval.compare.test_compare_report import result
from uncanny.demo.scenes import scenes

pytestmark = needs_browser


async def test_page_fits_and_reads_in_both_schemes(tmp_path: Path) -> None:
    page = result(tmp_path, three=True).report(tmp_path / "page.html").resolve().as_uri()
    await check_page(page, tmp_path / "profile")


async def test_images_are_filtered_and_the_viewer_leads_through_the_others(tmp_path: Path) -> None:
    page = result(tmp_path).report(tmp_path / "page.html").resolve().as_uri()
    cards = "[...document.querySelectorAll('article.change')].filter(card => !card.hidden).length"
    async with browser(tmp_path / "profile") as tab:
        await tab.send("Page.navigate", url=page)
        await tab.until(f"{cards} === 6")

        async def choose(field: str, value: str) -> None:
            await tab.js(
                f"(() => {{ const field = document.querySelector('[name={field}]'); field.value = '{value}';"
                " field.dispatchEvent(new Event('input', {bubbles: true})); })()"
            )

        await choose("change", "found_to_none")
        assert await tab.js(cards) == 1
        await choose("kind", "light")
        assert await tab.js(cards) == 0
        assert await tab.js("!document.querySelector('.nothing').hidden")
        await choose("change", "")
        assert await tab.js(cards) == 5
        await choose("has", "common")
        assert await tab.js(cards) == 4
        await choose("q", scenes()[4].image_path.name)
        assert await tab.js(cards) == 1
        await choose("q", "")
        await tab.js("document.querySelector('[data-view]:not([data-out] *)').click()")
        await tab.until("document.querySelectorAll('#viewer .v-line').length === 3")
        assert await tab.js("document.querySelector('.v-place').textContent") == "1 of 4"
        tones = await tab.js(
            "[...document.querySelectorAll('#viewer .v-frame g')].map(g => g.getAttribute('class'))"
        )
        assert tones == ["m0", "m1", "m1"]
