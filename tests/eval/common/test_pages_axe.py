"""Every page of scores and of a run in a real browser: what axe-core finds, on a phone, on paper."""

from __future__ import annotations

from pathlib import Path

import pytest

import uncanny
from tests.eval.common.page_in_browser import browser, needs_browser
from tests.service.visitor import AXE
from uncanny.demo.scenes import scenes

pytestmark = needs_browser

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
        uncanny.audit({"a": annotated, "b": annotated}, resamples=50).report(work / "audit.html"),
        uncanny.compare(runs, truth="scenes", resamples=50).report(work / "compare.html"),
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
