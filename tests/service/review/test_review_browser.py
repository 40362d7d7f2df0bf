"""The review page in a real browser, by its keys and by hand.

Playwright drives the Chromium of the machine. The page's policy allows no evaluated text, so that what is
waited for are selectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import orjson
import pytest
from playwright.sync_api import Browser, ViewportSize

import uncanny
from tests.eval.common.page_in_browser import needs_browser
from tests.service.made_review import anomaly, log_of, make_run, served
from tests.service.review.reviewer import Reviewer
from tests.service.visitor import HOSTILE, PHONE, WIDE
from uncanny.records.reviews import ReviewLog, new_review, review_image
from uncanny.schema import Annotation

pytestmark = needs_browser


def votes(run: Path) -> dict[tuple[str, int], Mapping[str, str]]:
    reviews = ReviewLog.of_run(run).by_image()
    found: dict[tuple[str, int], Mapping[str, str]] = {}
    for line in (run / "annotations.jsonl").read_bytes().splitlines():
        record = Annotation.model_validate_json(line)
        for each in review_image(record, reviews.get(record.image, ())).anomalies:
            found[record.image, each.index] = dict(each.votes)
    return found


def test_thirty_findings_by_keyboard_a_second_opinion_and_a_third(browser: Browser, tmp_path: Path) -> None:
    anomalies = [[anomaly(f"fault {image}.{place}") for place in range(3)] for image in range(10)]
    run = make_run(tmp_path / "run", anomalies)
    with served(run, "--order", "file") as address:
        ann = Reviewer(browser, address, "Ann")
        assert ann.heading == "fault 0.0"
        for number in range(29):
            ann.press("aru"[number % 3])
        assert ann.heading == "fault 9.2"
        ann.press("z")  # the last verdict was a slip
        assert ann.heading == "fault 9.1"
        ann.press("a")
        ann.page.keyboard.press("b")  # the last one has its box elsewhere
        ann.draw(0.5, 0.5, 0.75, 0.75)
        ann.stays("Enter", "Box kept.")
        ann.press("a")
        assert ann.heading == "Nothing left here"
        assert ann.page.locator(".progress").inner_text().startswith("30 of 30 judged by me")
        assert not ann.page.locator("#stage").is_visible()
        assert ann.page.locator(".totals .sum").inner_text().split() == ["All", "30", "30"]
        ann.press("k")
        assert ann.heading == "fault 9.2"
        assert ann.page.locator("#frame img").is_visible()
        ann.press("j")
        assert ann.heading == "Nothing left here"

        ben = Reviewer(browser, address, "Ben")
        assert "1 other verdict is shown after yours" in ben.page.locator("#panel").inner_text()
        ben.press("r")
        for _ in range(3):
            ben.press("j")
        assert ben.heading == "fault 1.1"
        ben.press("n")
        assert ben.heading == "fault 2.0"
        ben.press("p")
        assert ben.heading == "fault 1.0"
        cid = Reviewer(browser, f"{address}/?show=ties", "Cid")
        assert cid.heading == "fault 0.0"
        assert "Ann: accepted. Ben: rejected." in cid.page.locator("#panel").inner_text()
        cid.press("r")
        cid.page.get_by_role("button", name="Agreement").click()
        cid.page.wait_for_selector("#agreement[open] .alpha:has-text('Krippendorff')")
        assert ann.complaints + ben.complaints + cid.complaints == []
    found = votes(run)
    assert found["images/000.png", 0] == {"Ann": "accept", "Ben": "reject", "Cid": "reject"}
    exported = uncanny.export(run, to="jsonl", out=tmp_path / "out", all=True, rejected=True).files["jsonl"]
    decided = {
        (record["run_image"], anomaly["index"]): anomaly["review"]
        for record in map(orjson.loads, exported.open("rb"))
        for anomaly in record["anomalies"]
    }
    assert len(decided) == 30
    disputed = decided["images/000.png", 0]
    assert (disputed["decision"], disputed["accept"], disputed["reject"]) == ("reject", 1, 2)
    verified = uncanny.export(run, to="jsonl", out=tmp_path / "verified").files["jsonl"]
    names = [each["name"] for line in verified.open("rb") for each in orjson.loads(line)["anomalies"]]
    assert names == [f"fault {n // 3}.{n % 3}" for n in range(1, 30) if n % 3 == 0 or n in (28, 29)]
    assert [found[f"images/{n // 3:03d}.png", n % 3]["Ann"] for n in range(1, 28)] == [
        ("accept", "reject", "unsure")[n % 3] for n in range(1, 28)
    ]
    assert sum(line.undoes is not None for line in log_of(run)) == 1


def test_boxes_are_drawn_moved_and_removed(browser: Browser, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [[anomaly(box=None)], [anomaly("other")]])
    with served(run, "--reviewer", "ann", "--order", "file") as address:
        ann = Reviewer(browser, address)
        ann.page.keyboard.press("b")
        ann.draw(0.25, 0.2, 0.75, 0.6)
        ann.stays("Enter", "Box kept.")
        # The same with keys alone, from where the box is.
        ann.page.keyboard.press("b")
        ann.page.wait_for_selector(".a9s-shape-handle")
        for key in ("ArrowRight", "ArrowDown", "Shift+ArrowRight"):
            ann.page.keyboard.press(key)
        ann.stays("Enter", "Box kept.")
        ann.page.keyboard.press("b")
        ann.page.wait_for_selector(".a9s-shape-handle")
        ann.page.keyboard.press("Escape")
        ann.page.keyboard.press("b")
        ann.page.wait_for_selector(".a9s-shape-handle")
        ann.page.mouse.wheel(0, 10)
        ann.stays("Delete", "Box removed.")
        ann.stays("z", "Taken back.")
        # One drag beside the box that is there draws another in its place.
        ann.page.keyboard.press("b")
        ann.page.wait_for_selector(".a9s-shape-handle")
        ann.draw(0.05, 0.7, 0.2, 0.9)
        ann.stays("Enter", "Box kept.")
        assert ann.complaints == []
    first, second, removed, _, redrawn = log_of(run)
    assert first.version is not None
    assert first.version.box is not None
    assert first.version.box == pytest.approx((100, 60, 300, 180), abs=2)
    assert second.version is not None
    x0, y0, x1, y1 = first.version.box
    assert second.version.box == (x0 + 4, y0 + 4, x1 + 8, y1 + 4)
    assert removed.version is not None
    assert removed.version.box is None
    assert redrawn.version is not None
    assert redrawn.version.box == pytest.approx((20, 210, 80, 270), abs=2)


def test_a_box_on_a_large_picture_counts_in_its_own_pixels(browser: Browser, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [[anomaly(box=None)]], size=(4000, 3000))
    with served(run, "--reviewer", "ann") as address:
        ann = Reviewer(browser, address)
        assert "preview" in (ann.page.locator("#frame img").get_attribute("src") or "")
        ann.page.keyboard.press("b")
        ann.draw(0.5, 0.5, 0.75, 0.75)
        ann.stays("Enter", "Box kept.")
        ann.page.keyboard.press("f")
        ann.page.wait_for_selector("#frame img[src*='/image/']")
        assert ann.page.locator("#frame").bounding_box()["width"] == 4000  # type: ignore[index]
    (line,) = log_of(run)
    assert line.version is not None
    assert line.version.box == pytest.approx((2000, 1500, 3000, 2250), abs=12)


def test_a_text_is_edited_and_a_missed_finding_added(browser: Browser, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [[anomaly("one")], [anomaly("two")]])
    with served(run, "--reviewer", "ann", "--order", "file") as address:
        ann = Reviewer(browser, address)
        ann.page.keyboard.press("e")
        ann.page.keyboard.press("Control+a")
        ann.page.keyboard.type("a better name, jkaru")
        ann.press("Control+Enter")
        assert ann.heading == "two"
        ann.page.keyboard.press("m")
        ann.draw(0.1, 0.1, 0.4, 0.4)
        ann.page.keyboard.press("Enter")
        editor = ann.page.locator("#editor")
        editor.get_by_label("Name").fill("shadow points to the light")
        editor.get_by_label("What is visibly wrong").fill("left of the lamp")
        editor.get_by_label("Why it cannot be").fill("shadows point away")
        editor.get_by_label("Realism").fill("12")
        ann.press("Control+Enter")
        assert ann.heading == "shadow points to the light"
        assert ann.complaints == []
    edited, added = log_of(run)
    assert edited.version is not None
    assert (edited.version.name, edited.decision) == ("a better name, jkaru", "accept")
    assert edited.version.box == (40, 30, 140, 120)
    assert added.version is not None
    assert (added.version.severity, added.decision, added.replaces) == (12, "accept", None)
    assert added.version.box == pytest.approx((40, 30, 160, 120), abs=2)


def test_what_was_typed_is_there_until_it_is_kept(browser: Browser, tmp_path: Path) -> None:
    """A colleague edits the same text, or the server is gone: the editor stays open with what was written."""
    run = make_run(tmp_path / "run", [[anomaly("one")], [anomaly("two")]])
    record = Annotation.model_validate_json((run / "annotations.jsonl").read_bytes().splitlines()[0])
    with served(run, "--reviewer", "ann", "--order", "file") as address:
        ann = Reviewer(browser, address)
        ann.page.keyboard.press("e")
        ann.page.locator("#editor [name=phenomenon]").fill("A long text that took a while.")
        other = record.anomalies[0].model_copy(update={"name": "of ben"})
        ReviewLog.of_run(run).append([new_review(record, 0, record.anomalies[0], "ben", version=other)])
        ann.page.keyboard.press("Control+Enter")
        ann.page.wait_for_selector("#editor .wrong:has-text('changed meanwhile')")
        assert ann.heading == "of ben"
    ann.page.keyboard.press("Control+Enter")
    ann.page.wait_for_selector("#editor[open] .wrong:has-text('Not kept: the server does not answer')")
    assert ann.page.locator("#editor [name=phenomenon]").input_value() == "A long text that took a while."
    with served(run, "--reviewer", "ann", "--order", "file", "--port", address.rpartition(":")[2]):
        ann.press("Control+Enter")
        assert ann.heading == "two"
        assert not ann.page.locator("#editor").is_visible()
    last = log_of(run)[-1]
    assert last.version is not None
    assert (last.version.name, last.version.phenomenon) == ("one", "A long text that took a while.")


def test_what_a_model_and_a_file_name_say_is_never_obeyed(browser: Browser, tmp_path: Path) -> None:
    hostile = anomaly(
        f"x{HOSTILE}"[:200],
        phenomenon=HOSTILE,
        reasoning='"><svg onload=alert(1)>',
        objects=[HOSTILE, "\u202eback"],
    )
    run = make_run(
        tmp_path / "run", [[hostile, anomaly(HOSTILE)]], names=["<img src=x onerror=alert(1)>.png"]
    )
    with served(run, "--reviewer", f"ann {HOSTILE} {'z' * 100}") as address:
        ann = Reviewer(browser, address)
        bar = ann.page.locator("#bar").bounding_box()
        assert bar is not None
        assert bar["height"] < 60
        assert ann.page.locator(".more bdi").all_inner_texts()[1] == "\u202eback"
        assert HOSTILE in ann.page.locator("#panel").inner_text()
        ann.press("j")
        ann.page.keyboard.press("e")
        assert "<script>" in ann.page.locator("#editor [name=name]").input_value()
        ann.page.keyboard.press("Escape")
        ann.page.wait_for_selector("dialog[open]", state="detached")
        assert ann.page.title() == "Review run – uncanny"
        assert ann.page.locator("#panel script, #panel img, #panel svg").count() == 0
        assert ann.complaints == []


def test_a_picture_that_is_gone_and_a_server_that_ended_are_said(browser: Browser, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [[anomaly("one")], [anomaly("two")]])
    (run / "images" / "000.png").unlink()
    with served(run, "--reviewer", "ann", "--order", "file") as address:
        ann = Reviewer(browser, address)
        assert ann.page.locator("#picture-problem").inner_text().startswith("The picture cannot be shown")
        ann.press("a")
        assert not ann.page.locator("#picture-problem").is_visible()
    ann.page.keyboard.press("a")
    ann.page.wait_for_selector("#message:has-text('Not kept')")
    assert ann.heading == "two"
    assert len(log_of(run)) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_nothing_keeps_people_out(
    browser: Browser, tmp_path: Path, size: ViewportSize, scheme: Literal["light", "dark"]
) -> None:
    """axe-core finds nothing serious, nothing scrolls sideways, every text has contrast."""
    findings = [anomaly("one", severity=50), anomaly("two " + "long " * 30), anomaly("three", box=None)]
    run = make_run(tmp_path / "run", [findings, [anomaly("four")]])
    with served(run, "--order", "file") as address:
        phone = size is PHONE
        ann = Reviewer(
            browser, address, "Ann", viewport=size, color_scheme=scheme, has_touch=phone, is_mobile=phone,
            bypass_csp=True,
        )  # fmt: skip
        page = ann.page
        ann.check("a finding")
        ann.press("a")
        page.locator(".origin summary").click()
        ann.check("the next, with where it comes from")
        page.keyboard.press("b")
        page.wait_for_selector(".a9s-shape-handle")
        ann.check("a box")
        page.keyboard.press("Escape")
        page.wait_for_selector("#box-tools", state="hidden")
        for key in ("?", "e"):
            page.keyboard.press(key)
            page.wait_for_selector("dialog[open]")
            ann.check(f"the dialog of {key}")
            page.keyboard.press("Escape")
            page.wait_for_selector("dialog[open]", state="detached")
        page.locator("#open-agreement").click()
        page.wait_for_selector("#agreement[open]")
        ann.check("agreement")
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog[open]", state="detached")
        for _ in range(3):
            ann.press("u")
        ann.check("nothing left")


def test_doubtful_findings_are_shown_by_a_key(browser: Browser, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [[anomaly("sure", confidence=0.9), anomaly("doubtful", confidence=0.2)]])
    with served(run, "--order", "file") as address:
        ann = Reviewer(browser, address, "Ann")
        assert ann.heading == "sure"
        assert ann.page.locator("#filters [name=doubtful]").is_visible()
        assert "1 below confidence 0.5" in ann.page.locator("#filters").inner_text()
        assert "90 % sure" in ann.page.locator(".tags").inner_text()
        assert ann.page.locator("rect.other").count() == 0
        ann.press("a")
        assert ann.heading == "Nothing left here"
        ann.press("d")
        assert ann.heading == "doubtful"
        ann.press("r")
        assert ann.heading == "Nothing left here"
        assert "2 of 2 judged" in ann.page.locator(".progress").inner_text()
    with served(run, "--min-confidence", "0.1") as address:
        other = Reviewer(browser, address, "Ben")
        assert other.page.locator("#filters [name=doubtful]").count() == 0
        assert "0 of 2 judged" in other.page.locator(".progress").inner_text()
