"""The page in a real browser: keys, deep links, unpacking, a phone's width, hostile text."""

from __future__ import annotations

from pathlib import Path

from tests.annotation.test_run_report import MakeRecord, WriteRun
from tests.eval.common.page_in_browser import browser, needs_browser
from uncanny.annotation.report.page import write_report

pytestmark = needs_browser

FOCUS = "document.activeElement.id"
OPEN = "document.getElementById('detail').open"


async def test_keys_lead_through_the_page(shared_run: Path, tmp_path: Path) -> None:
    address = write_report(shared_run).resolve().as_uri()
    async with browser(tmp_path) as tab:
        await tab.visit(address, 1280)
        for key in "jjk":
            await tab.key(key)
        assert await tab.js(FOCUS) == "image-1"
        await tab.key("Enter")
        await tab.until("document.querySelectorAll('.call').length === 22")
        assert await tab.js("location.hash") == "#image=1"
        await tab.key("j")
        await tab.until("location.hash === '#image=2'")
        await tab.until("document.querySelectorAll('.call').length === 22")
        await tab.js("document.querySelector('.call').open = true")
        await tab.until("document.querySelector('.call pre')?.textContent.startsWith('Look at the')")
        await tab.key("Escape")
        await tab.until(f"!{OPEN}")
        await tab.until(f"{FOCUS} === 'image-2'")
        await tab.key("/")
        await tab.send("Input.insertText", text="onerror")
        await tab.until("document.getElementById('matching').textContent === '1 of 9 images match'")
        await tab.key("Escape")
        await tab.key("?")
        assert await tab.js("document.getElementById('help').open")
        requests = {
            e["params"]["request"]["url"].split(":")[0]
            for e in tab.events
            if e["method"] == "Network.requestWillBeSent"
        }
        assert requests <= {"file", "data", "about"}
        loud = (
            "Runtime.exceptionThrown",
            "Log.entryAdded",
            "Runtime.consoleAPICalled",
            "Page.javascriptDialogOpening",
        )
        assert [event for event in tab.events if event["method"] in loud] == []


async def test_findings_show_their_part_of_the_picture(
    tmp_path: Path, write_run: WriteRun, record: MakeRecord
) -> None:
    records = [record(number) for number in range(30)]
    found = records[1]["anomalies"][0]
    records[1]["anomalies"] = [found | {"severity": n, "box": [10, 10, 40, 30]} for n in range(7)]
    address = write_report(write_run(tmp_path, records)).resolve().as_uri()
    first = "document.querySelector('.card')"
    async with browser(tmp_path) as tab:
        await tab.visit(address, 1280)
        assert await tab.js(f"{first}.querySelectorAll('.part image').length") == 7
        assert await tab.js(f"{first}.querySelectorAll('.shot .line').length") == 7
        assert await tab.js(f"{first}.querySelector('.rest summary').textContent") == "3 more anomalies"
        assert await tab.js("document.querySelectorAll('.card').length") == 24
        await tab.js("document.getElementById('more').click()")
        assert await tab.js("document.querySelectorAll('.card').length") == 30
        assert await tab.js(FOCUS) == "image-25"
        assert await tab.js("document.getElementById('more').hidden")


async def test_a_part_leads_to_its_place_and_regions_are_drawn_on_request(
    tmp_path: Path, write_run: WriteRun, record: MakeRecord
) -> None:
    image = record(1)
    found = image["anomalies"][0] | {"box": [300, 200, 330, 220]}
    image["anomalies"] = [found, found | {"name": "not sure", "confidence": 0.3}]
    looked_at = {"box": [200, 100, 440, 330], "why": "finding", "objects": ["</script><b>" * 9], "scale": 2.5}
    image["regions"] = [looked_at | {"number": number} for number in (1, 2, 3)]
    candidate = {"number": 1, "found_by": "SceneScanner", "phenomenon": "p", "fate": "kept", "why": None}
    image["candidates"] = [candidate | {"region": 2, "first_confidence": 0.4, "confidence": 0.95}]
    address = write_report(write_run(tmp_path, [image, record(2)])).resolve().as_uri()
    lines = "document.querySelectorAll('.v-line').length"
    dashed = "document.querySelectorAll('.v-frame .dashed').length"
    zoom = "parseInt(document.querySelector('.v-bar output').textContent)"
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    async with browser(tmp_path / "profile") as tab:
        for width in (390, 1280):
            await tab.visit(address, width)
            assert await tab.js(wide)
            part = "document.querySelector('.part image').href.baseVal"
            assert (await tab.js(part)).startswith("data:image/webp")
            await tab.js("document.querySelector('.part').click()")
            await tab.until(f"{lines} === 1 && {zoom} >= 400")
            await tab.key("r")
            assert await tab.js(f"[{lines}, {dashed}]") == [4, 3]
            cut = "[...document.querySelectorAll('.v-bar *, .v-side *')].filter(node => {"
            cut += "const box = node.getBoundingClientRect(); return box.right > innerWidth; }).length"
            assert await tab.js(cut) == 0
            await tab.key("n")
            await tab.until(f"{dashed} === 0")
            await tab.key("p")
            await tab.until(f"{dashed} === 3")
            await tab.key("r")
            await tab.key("u")
            await tab.until(f"{lines} === 2 && {dashed} === 0")
            await tab.key("Escape")
            await tab.js("document.querySelector('.card footer button').click()")
            said = "document.getElementById('detail').textContent"
            assert "40 % sure at first, 95 % after a closer look; region 2" in await tab.js(said)
            offer = "[...document.querySelectorAll('#detail .link')].find(one => one.textContent"
            await tab.js(offer + " === 'Show the 3 parts that were looked at closely').click()")
            await tab.until(f"{dashed} === 3")
            await tab.key("Escape")
            await tab.key("Escape")
        loud = [event["params"] for event in tab.events if event["method"] == "Runtime.exceptionThrown"]
        assert loud == []


async def test_deep_link_on_a_phone_needs_no_sideways_scrolling(shared_run: Path, tmp_path: Path) -> None:
    address = write_report(shared_run).resolve().as_uri()
    async with browser(tmp_path) as tab:
        await tab.visit(address + "#image=2", 360)
        await tab.until("document.querySelectorAll('.call').length === 22")
        wide = "(node => node.scrollWidth <= node.clientWidth)"
        assert await tab.js(f"{wide}(document.documentElement)")
        assert await tab.js(f"{wide}(document.getElementById('detail'))")
        await tab.key("Escape")
        await tab.until(f"!{OPEN}")
        assert await tab.js(f"{wide}(document.documentElement)")
        assert await tab.js("document.querySelectorAll('#cards script, #cards [onerror]').length") == 0


async def test_doubtful_findings_are_behind_a_click(
    tmp_path: Path, write_run: WriteRun, record: MakeRecord
) -> None:
    image = record(1)
    found = image["anomalies"][0]
    image["anomalies"] = [
        found | {"name": "plain", "confidence": 0.85},
        *(found | {"name": f"doubtful {number}", "confidence": 0.2} for number in range(3)),
    ]
    alone = record(2)
    alone["anomalies"] = [found | {"name": "alone", "confidence": 0.4}]
    async with browser(tmp_path) as tab:
        await tab.visit(write_report(write_run(tmp_path, [image, alone])).resolve().as_uri(), 1280)
        await tab.until("document.querySelectorAll('.card').length === 2")
        shown = "[...document.querySelectorAll('.card .quad .name')].map((one) => one.textContent).join()"
        assert await tab.js(shown) == "plain"
        assert await tab.js("document.querySelector('.quad .sev').textContent.endsWith('85 % sure')")
        offers = (
            "[...document.querySelectorAll('.card .rest > summary')].map((one) => one.textContent).join()"
        )
        assert await tab.js(offers) == "3 more below confidence 0.5,1 below confidence 0.5"
        await tab.js("document.querySelector('.card .rest > summary').click()")
        await tab.until(f"{shown} === 'plain,doubtful 0,doubtful 1,doubtful 2'")
