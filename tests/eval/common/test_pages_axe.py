"""Every page of scores and of a run in a real browser: by axe-core, on a phone, on paper, long lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

import uncanny
from tests.eval.common.page_in_browser import browser, needs_browser
from tests.service.visitor import AXE
from uncanny.demo.scenes import scenes

pytestmark = needs_browser

_RECORD: Final = {
    **{"sha256": None, "width": 64, "height": 48, "status": "ok", "model": "m"},
    "prompts": "packed@1",
}

_FOUND = """axe.run(document, {resultTypes: ['violations']}).then(result => result.violations.map(
  violation => violation.id + ': ' + violation.nodes.map(node => node.html).join(' ').slice(0, 300)))"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    work = tmp_path_factory.mktemp("pages")
    images = [scene.image_path for scene in scenes()[:6]]
    annotated = uncanny.annotate(images, model="demo", out=work / "annotated")
    detected = uncanny.detect("scenes", model="demo", out=work / "detected")
    answers = uncanny.mcq.run("scenes", model="demo", out=work / "mcq")
    verdicts = uncanny.realism.run("scenes", model="demo", out=work / "realism")
    located = uncanny.artifacts.run("scenes", model="demo", out=work / "artifacts")
    edits = uncanny.edits.measure("scenes", out=work / "edits.jsonl")
    runs = {"annotated": annotated, "detected": detected}
    # Names as long as those of models.
    named = {"qwen3-vl-235b-a22b-instruct": annotated, "claude-sonnet-4-20250514": detected}
    return [
        uncanny.report(work / "annotated"),
        uncanny.report(work / "detected"),
        uncanny.mcq.score("scenes", answers, baselines=True, resamples=50).report(
            work / "mcq.html", published=True
        ),
        uncanny.semantic.score(runs, truth="scenes", similarity="chrf", resamples=50).report(
            work / "sem.html"
        ),
        uncanny.realism.score({"demo": verdicts}, resamples=50).report(work / "realism.html"),
        uncanny.artifacts.score({"demo": located}, truth="scenes", resamples=50).report(
            work / "artifacts.html"
        ),
        uncanny.audit({"a": annotated, "b": annotated}, before={"a": annotated}, resamples=50).report(
            work / "audit.html"
        ),
        uncanny.compare(named, truth="scenes", resamples=50).report(work / "compare.html"),
        edits.report(work / "edits.html"),
        uncanny.edits.stress({"demo": detected}, meta=[work / "edits.jsonl"], resamples=50).report(
            work / "s.html"
        ),
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_nothing_is_wrong_by_axe(pages: list[Path], tmp_path: Path, scheme: str) -> None:
    async with browser(tmp_path / "profile") as tab:
        await tab.send("Page.setBypassCSP", enabled=True)
        await tab.colours(scheme)
        await tab.resize(390 if scheme == "light" else 1280)
        for page in pages:
            await tab.send("Page.navigate", url=page.resolve().as_uri())
            await tab.until("document.readyState === 'complete'")
            await tab.js(AXE.read_text(encoding="utf-8") + "\n;0")
            assert (page.name, await tab.js(_FOUND)) == (page.name, [])


async def test_labels_are_whole_on_a_phone_and_paper_has_no_dark_colours(
    pages: list[Path], tmp_path: Path
) -> None:
    broken = """[...document.querySelectorAll('.about dt')].filter(label => {
      const words = document.createRange(); words.selectNodeContents(label);
      return label.textContent.length < 16 && words.getClientRects().length > 1; })
      .map(label => label.textContent)"""
    async with browser(tmp_path / "profile") as tab:
        await tab.resize(390)
        for page in pages:
            await tab.colours("light")
            await tab.send("Page.navigate", url=page.resolve().as_uri())
            await tab.until("document.readyState === 'complete'")
            assert (page.name, await tab.js(broken)) == (page.name, [])
            good = "getComputedStyle(document.documentElement).getPropertyValue('--good')"
            in_the_light = await tab.js(good)
            await tab.colours("dark")
            assert await tab.js(good) != in_the_light
            dark = [{"name": "prefers-color-scheme", "value": "dark"}]
            await tab.send("Emulation.setEmulatedMedia", media="print", features=dark)
            assert (page.name, await tab.js(good)) == (page.name, in_the_light)


# What of a table's head can be seen without scrolling it, and by how many pixels its key columns cannot.
_KEY_COLUMNS = """[...document.querySelectorAll('th[data-key]')].map(head => {
  const box = head.closest('.scroll').getBoundingClientRect(), cell = head.getBoundingClientRect();
  return [head.closest('.scroll').getAttribute('aria-label'), head.textContent.trim(),
    Math.ceil(Math.max(0, cell.right - box.right))]; })"""
_BY_PAGE = {
    "mcq.html": ("All Q1–4", "F1", "Right"),
    "sem.html": ("SemAP", "full"),
    "realism.html": ("deceiving", "Why"),
    "artifacts.html": ("PixF1",),
    "audit.html": ("CAP", "Visible\nfault", "Verdict"),
    "compare.html": ("B − A",),
    "s.html": ("recall", "Recall"),
}


async def test_key_columns_are_on_the_screen_of_a_phone(pages: list[Path], tmp_path: Path) -> None:
    async with browser(tmp_path / "profile") as tab:
        await tab.resize(390)
        for page in pages:
            await tab.send("Page.navigate", url="about:blank")
            await tab.send("Page.navigate", url=page.resolve().as_uri())
            await tab.until("document.readyState === 'complete' && document.querySelector('footer') !== null")
            await tab.js("document.querySelectorAll('details').forEach(each => { each.open = true; })")
            found = await tab.js(_KEY_COLUMNS)
            assert [each for each in found if each[2]] == [], page.name
            assert {*_BY_PAGE.get(page.name, ())} <= {name.replace("\xa0", " ") for _, name, _ in found}, (
                page.name
            )


_SEEN = "[...document.querySelectorAll('{0} > *')].filter(each => each.getClientRects().length).length"


async def test_long_lists_come_a_page_at_a_time(tmp_path: Path) -> None:
    """Forward and back, filtered, sorted, by the address of an entry, and whole on paper."""
    names = [f"set/{place:03}.png" for place in range(37)]
    fault = {"phenomenon": "It floats.", "reasoning": "It would fall.", "severity": 10, "kind": "contact"}
    files = {}
    for run in ("one", "two"):
        lines = [
            {**_RECORD, "image": name, "anomalies": [{"name": f"Fault {run}", **fault}] * (1 + place % 3)}
            for place, name in enumerate(names)
        ]
        files[run] = tmp_path / f"{run}.jsonl"
        files[run].write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = uncanny.compare(files, resamples=0).report(tmp_path / "compare.html").resolve().as_uri()
    seen, place = _SEEN.format(".changes"), "document.querySelector('.paging span').textContent"
    async with browser(tmp_path / "profile") as tab:
        await tab.resize(1280)
        await tab.send("Page.navigate", url=page)
        await tab.until("document.readyState === 'complete' && document.querySelector('footer') !== null")
        assert (await tab.js(seen), await tab.js(place)) == (10, "1–10 of 37")
        assert await tab.js("document.documentElement.scrollHeight") < 10_000
        button = "document.querySelector('.paging button:{0}-of-type')"
        press = f"{button}.scrollIntoView(); {button}.click()"
        for expected in ("11–20 of 37", "21–30 of 37", "31–37 of 37"):
            await tab.js(press.format("last"))
            assert await tab.js(place) == expected
        assert await tab.js(f"{button}.disabled".format("last"))
        top = await tab.js("document.querySelector('.changes').getBoundingClientRect().top")
        assert 0 <= top < 900, "the page begins where it is seen"
        await tab.js(press.format("first"))
        assert await tab.js(place) == "21–30 of 37"
        find = "document.querySelector('[name=q]')"
        await tab.js(f"{find}.value = 'set/00'; {find}.dispatchEvent(new Event('input', {{bubbles: true}}))")
        assert await tab.js(seen) == 10
        assert not await tab.js("document.querySelector('.paging').getClientRects().length")
        await tab.js("document.querySelector('form.filters').reset()")
        await tab.until(f"{place} === '1–10 of 37'")
        await tab.js("location.hash = document.querySelectorAll('.changes > *')[24].id")
        await tab.until(f"{place} === '21–30 of 37'")
        await tab.js("dispatchEvent(new Event('beforeprint'))")
        assert await tab.js(seen) == 37
        await tab.js("dispatchEvent(new Event('afterprint'))")
        assert (await tab.js(seen), await tab.js(place)) == (10, "21–30 of 37")
        await tab.send("Page.navigate", url="about:blank")
        await tab.send("Page.navigate", url=f"{page}#%")
        await tab.until("document.readyState === 'complete' && document.querySelector('footer') !== null")
        await tab.js(f"{find}.value = 'set/00'; {find}.dispatchEvent(new Event('input', {{bubbles: true}}))")
        assert await tab.js("document.querySelector('.filters output').value") == "10 of 37 images match"
