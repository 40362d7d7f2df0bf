"""The viewer in a real browser, as somebody looks at pictures with it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.eval.common.page_in_browser import LOUD, Tab, browser, needs_browser
from tests.runs.e2e import pictures
from uncanny.annotation.report.page import write_report
from uncanny.eval.common.pages.page import write_result_page
from uncanny.eval.common.pages.pictures import PicturesMode
from uncanny.eval.common.tables.table import Table, TableResult

pytestmark = needs_browser

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&"
VIEWER = "document.getElementById('viewer')"
SHOT = "document.querySelectorAll('#cards button.shot')"
TITLE = "document.getElementById('viewer-title').textContent"
IMAGE = "document.querySelector('.v-frame img')"
LABELS = "[...document.querySelectorAll('.v-label')].filter(node => !node.hidden)"
# Where the picture stands on the screen, in CSS pixels.
PLACE = """(() => { const box = document.querySelector('.v-frame').getBoundingClientRect();
  return [box.left, box.top, box.width, box.height]; })()"""


def run_of(folder: Path, names: list[str], size: tuple[int, int] = (640, 480)) -> Path:
    folder.mkdir(parents=True)
    records = []
    for number, name in enumerate(names):
        Image.new("RGB", size, (40 * number, 90, 120)).save(folder / name)
        boxes = [[64, 48, 320, 240], [320, 240, 600, 460]]
        records.append(
            {
                "image": name,
                "sha256": None,
                "width": size[0],
                "height": size[1],
                "status": "ok",
                "model": "m",
                "prompts": "p",
                "anomalies": [
                    {"name": f"{HOSTILE} {n}", "phenomenon": HOSTILE, "reasoning": "r", "severity": 8 + n}
                    | {"box": box}
                    for n, box in enumerate(boxes)
                ],
            }
        )
    file = folder / "records.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


async def opened(tab: Tab, page: Path, width: int, n: int = 0) -> None:
    await tab.visit(page.as_uri(), width)
    await tab.js(f"{SHOT}[{n}].focus(); {SHOT}[{n}].click()")
    await tab.until(f"{VIEWER}.open && {IMAGE}.naturalWidth === 640")


def quiet(tab: Tab) -> bool:
    return not [event for event in tab.events if event["method"] in (*LOUD, "Page.javascriptDialogOpening")]


@pytest.mark.parametrize("mode", ["link", "embed"])
async def test_open_zoom_move_and_leave(mode: PicturesMode, tmp_path: Path) -> None:
    names = ["a.png", "b #?%.png", "c'\"<b>.png"]
    page = write_report(run_of(tmp_path / "run", names), pictures=mode)
    async with browser(tmp_path / "profile") as tab:
        await opened(tab, page, 1280)
        source = await tab.js(f"{IMAGE}.src")
        assert source.startswith("file:" if mode == "link" else "data:image/webp")
        assert await tab.js(f"{LABELS}.map(node => node.textContent)") == [f"{HOSTILE} 0", f"{HOSTILE} 1"]
        left, top, width, _ = await tab.js(PLACE)
        drawn = "[...document.querySelectorAll('.v-line')].map(r => r.getBoundingClientRect().left)"
        assert (await tab.js(drawn))[0] == pytest.approx(left + width * 64 / 640, abs=3)
        await tab.key("1")
        assert (await tab.js(PLACE))[2:] == [640, 480]
        await tab.key("+")
        assert (await tab.js(PLACE))[2] == pytest.approx(800)
        await tab.key("-")
        await tab.key("0")
        assert await tab.js(PLACE) == pytest.approx([left, top, width, width * 0.75], abs=0.5)
        wheel: dict[str, Any] = {"type": "mouseWheel", "x": left + 100, "y": top + 100, "deltaX": 0}
        for _ in range(8):
            await tab.send("Input.dispatchMouseEvent", **wheel, deltaY=-120)
        await tab.until(f"{PLACE}[2] > {4 * width}")
        before = await tab.js(PLACE)
        for kind, x in (("mousePressed", 400), ("mouseMoved", 340), ("mouseReleased", 340)):
            event = {"type": kind, "x": x, "y": 400, "button": "left", "buttons": 1, "clickCount": 1}
            await tab.send("Input.dispatchMouseEvent", **event)
        assert (await tab.js(PLACE))[0] == pytest.approx(before[0] - 60)
        await tab.key("b")
        assert await tab.js(f"{LABELS}.length") == 0
        for name in names[1:]:
            await tab.key("n")
            await tab.until(f"{TITLE} === {json.dumps(name)} && {IMAGE}.naturalWidth === 640")
        await tab.key("k")
        await tab.key("Escape")
        await tab.until(f"!{VIEWER}.open")
        await tab.until("document.activeElement.closest('.card')?.id === 'image-2'")
        assert quiet(tab)


async def test_on_a_phone_two_fingers_zoom_and_nothing_is_cut_off(tmp_path: Path) -> None:
    page = write_report(run_of(tmp_path / "run", ["a.png", "b.png"]))
    async with browser(tmp_path / "profile") as tab:
        await tab.send("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
        await opened(tab, page, 390)
        cut = "[...document.querySelectorAll('.v-bar *, .v-side, .v-label')].filter(node => {"
        cut += "const box = node.getBoundingClientRect(); return box.left < 0 || box.right > 390; }).length"
        assert await tab.js(cut) == 0
        assert await tab.js(f"{LABELS}.length") == 2
        left, top, width, height = await tab.js(PLACE)
        middle = (left + width / 2, top + height / 2)
        for kind, apart in (("touchStart", 20), ("touchMove", 40), ("touchMove", 60), ("touchEnd", 0)):
            points = [{"x": middle[0] + side * apart, "y": middle[1]} for side in (-1, 1)]
            await tab.send("Input.dispatchTouchEvent", type=kind, touchPoints=points if apart else [])
        await tab.until(f"{PLACE}[2] > {2.5 * width}")
        await tab.key("0")
        for kind, x in (("touchStart", 300), ("touchMove", 200), ("touchMove", 100), ("touchEnd", None)):
            points = [] if x is None else [{"x": x, "y": middle[1]}]
            await tab.send("Input.dispatchTouchEvent", type=kind, touchPoints=points)
        await tab.until(f"{TITLE} === 'b.png'")
        assert quiet(tab)


async def test_a_picture_that_is_gone_leaves_its_copy_and_says_so(tmp_path: Path) -> None:
    page = write_report(run_of(tmp_path / "run", ["a.png"]))
    (tmp_path / "run" / "a.png").unlink()
    async with browser(tmp_path / "profile") as tab:
        await opened(tab, page, 1280)
        await tab.until("!document.querySelector('.v-message').hidden")
        assert "not where it was" in await tab.js("document.querySelector('.v-message').textContent")
        assert (await tab.js(f"{IMAGE}.src")).startswith("data:image/webp")
        assert await tab.js(f"{LABELS}.length") == 2


async def test_a_hundred_megapixels_do_not_break_the_page(tmp_path: Path) -> None:
    file = run_of(tmp_path / "run", ["a.png"])
    Image.new("1", (10_000, 10_000)).save(tmp_path / "run" / "a.png")
    page = write_report(file)
    async with browser(tmp_path / "profile") as tab:
        await tab.visit(page.as_uri(), 1280)
        await tab.js(f"{SHOT}[0].click()")
        await tab.until(f"{IMAGE}.naturalWidth > 0 && {LABELS}.length === 2")
        await tab.key("Escape")
        await tab.until(f"!{VIEWER}.open")


async def test_a_page_of_a_thousand_images_makes_only_the_first_cards(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "run", 1)
    name = next(folder.glob("*.png")).name
    record = {"sha256": None, "width": 64, "height": 64, "status": "ok", "model": "m", "prompts": "p"}
    names = [f"{n:04}.png" for n in range(1000)]
    for each in names:
        (folder / each).write_bytes((folder / name).read_bytes())
    file = tmp_path / "run" / "records.jsonl"
    file.write_text("".join(json.dumps(record | {"image": each}) + "\n" for each in names))
    page = write_report(file, max_images=1000)
    async with browser(tmp_path / "profile") as tab:
        await tab.visit(page.as_uri(), 1280)
        await asyncio.sleep(0.2)
        assert 24 <= await tab.js("document.querySelectorAll('.card').length") <= 72
        await tab.js(f"{SHOT}[0].click()")
        await tab.until(f"{VIEWER}.open && {IMAGE}.naturalWidth > 0")
        await tab.key("n")
        await tab.until(f"{TITLE} === '0001.png'")


async def test_tables_are_sorted_by_a_click_with_what_is_unmeasured_last(tmp_path: Path) -> None:
    table = Table(
        ("Model", "Accuracy"), (("b/2", "9.5"), ("a/10", "–"), ("a/9", "61.0"), ("c", "100.0"), ("d", "0"))
    )
    page = write_result_page(OneTable(table), tmp_path / "p.html", title="t", lead="l", facts={})
    names = "[...document.querySelectorAll('tbody th')].map(cell => cell.textContent)"
    async with browser(tmp_path / "profile") as tab:
        await tab.send("Page.navigate", url=page.as_uri())
        await tab.until("document.querySelectorAll('button.sort').length === 2")
        await tab.js("document.querySelectorAll('button.sort')[1].click()")
        assert await tab.js(names) == ["c", "a/9", "b/2", "d", "a/10"]
        await tab.js("document.querySelectorAll('button.sort')[1].click()")
        assert await tab.js(names) == ["d", "b/2", "a/9", "c", "a/10"]
        assert await tab.js("document.querySelectorAll('th')[1].getAttribute('aria-sort')") == "ascending"
        await tab.js("document.querySelectorAll('button.sort')[0].click()")
        assert await tab.js(names) == ["a/9", "a/10", "b/2", "c", "d"]
        assert quiet(tab)


class OneTable(TableResult):
    def __init__(self, table: Table) -> None:
        self.table = table

    def tables(self) -> tuple[Table, ...]:
        return (self.table,)

    def to_json(self) -> dict[str, Any]:
        return {}
