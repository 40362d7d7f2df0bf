"""Images of a sample judged whole in a browser, by keys and by mouse."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, ViewportSize

from tests.eval.common.page_in_browser import needs_browser
from tests.service.made_review import anomaly, log_of, make_run, served
from tests.service.review.reviewer import Reviewer
from tests.service.review.test_sample import draw
from tests.service.visitor import PHONE, WIDE

pytestmark = needs_browser
MISSED = "Anything missed?"


def images_judged(who: Reviewer) -> str:
    return who.page.locator(".progress p").first.inner_text().partition(" images")[0]


def test_a_sample_by_keys_resumed_by_another_in_two_tabs(browser: Browser, tmp_path: Path) -> None:
    images = [[anomaly("one"), anomaly("two")], [], [anomaly("three")], [], [anomaly("not in the sample")]]
    run = make_run(tmp_path / "run", images)
    draw(run, [1, 0, 2, 3])
    with served(run, "--sample") as address:
        ann = Reviewer(browser, address, "Ann")
        assert (ann.heading, images_judged(ann)) == (MISSED, "0 of 4")
        ann.page.keyboard.press("a")  # no finding to accept
        ann.press("c")  # one key without findings
        assert (ann.heading, images_judged(ann)) == ("one", "1 of 4")
        for key in "arc":  # three with two
            ann.press(key)
        assert (ann.heading, images_judged(ann)) == ("three", "2 of 4")
        ann.press("z")
        assert (ann.heading, images_judged(ann)) == (MISSED, "1 of 4")
        ann.press("c")

        # An added finding opens the image again.
        ann.press("k")
        assert (ann.heading, images_judged(ann)) == (MISSED, "2 of 4")
        ann.page.keyboard.press("m")
        ann.draw(0.5, 0.5, 0.75, 0.75)
        ann.page.keyboard.press("Enter")
        editor = ann.page.locator("#editor")
        editor.get_by_label("Name").fill("no shadow")
        editor.get_by_label("Kind").select_option("light")
        editor.get_by_label("hardly ever is (35)").check()
        ann.page.keyboard.press("Control+Enter")
        ann.told("Added, and accepted by you.")
        assert (ann.heading, images_judged(ann)) == (MISSED, "1 of 4")
        assert ann.page.locator(".found").inner_text().split("\n")[-2:] == ["no shadow", "accepted"]

        # Ben resumes there, in two tabs; the second one completes what has changed in the first.
        ben = Reviewer(browser, address, "Ben")
        assert ben.heading == "one"
        for key in "aaa":
            ben.press(key)
        assert ben.heading == MISSED
        tab = ben.page.context.new_page()
        tab.goto(ben.page.url)
        tab.wait_for_selector("body[data-shown]")
        ann.page.locator(".found button").last.click()
        ann.page.wait_for_selector("#name:has-text('no shadow')")
        ann.page.keyboard.press("e")
        ann.page.locator("#editor [name=name]").fill("no shadow at all")
        ann.press("Control+Enter")
        ben.press("c")
        ben.told("This image has changed meanwhile")
        assert ben.heading == "no shadow at all"
        for key in "ac":
            ben.press(key)
        assert (ben.heading, images_judged(ben)) == ("three", "2 of 4")
        tab.keyboard.press("c")  # the tab has the image as it was
        tab.wait_for_selector("#panel .notice:has-text('This image has changed meanwhile')")
        tab.keyboard.press("c")
        tab.wait_for_selector("#name:has-text('three')")

        # The mouse does the same as keys.
        three = ben.finding
        ben.page.get_by_role("button", name="Reject").click()
        ben.arrive(three)
        ben.page.get_by_role("button", name="Complete").click()
        ben.page.wait_for_selector("#panel .where:has-text('003.png')")
        ben.press("c")
        assert ben.heading == "All 4 images are judged"
        ben.press("k")
        assert ben.heading == MISSED
        tab.close()
        assert ann.complaints == []
        assert ["Conflict" in each for each in ben.complaints] == [True]
    lines = log_of(run)
    done = [(line.image[-7:], line.reviewer) for line in lines if line.type == "complete"]
    assert done == [
        *[("001.png", "Ann"), ("000.png", "Ann"), ("000.png", "Ann")],
        *[("000.png", "Ben"), ("002.png", "Ben"), ("003.png", "Ben")],
    ]
    added = next(line.version for line in lines if line.version is not None)
    assert (added.name, added.kind, added.severity) == ("no shadow", "light", 35)
    assert added.box == pytest.approx((200, 150, 300, 225), abs=2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_nothing_keeps_people_out_of_the_sample(
    browser: Browser, tmp_path: Path, size: ViewportSize, scheme: Literal["light", "dark"]
) -> None:
    run = make_run(tmp_path / "run", [[anomaly("one"), anomaly("doubtful " * 9, confidence=0.2)], []])
    draw(run, [0, 1])
    text = (run / "sample.json").read_text(encoding="utf-8")
    gone = '"images": [{"image": "images/gone-with-a-long-name-of-its-own.png", "probability": 0.5},'
    (run / "sample.json").write_text(text.replace('"images": [', gone), encoding="utf-8")
    with served(run, "--sample") as address:
        phone = size is PHONE
        ann = Reviewer(
            browser, address, "Ann", viewport=size, color_scheme=scheme, has_touch=phone, is_mobile=phone,
            bypass_csp=True,
        )  # fmt: skip
        ann.page.locator(".passed summary").click()
        ann.check("what is passed over")
        ann.press("a")
        ann.check("the end of an image with a hidden finding")
        ann.page.locator("[data-tool=add]").last.click()
        ann.page.keyboard.press("Escape")
        ann.page.wait_for_selector("#editor[open]")
        ann.check("the scale")
        ann.page.keyboard.press("Escape")
        ann.page.wait_for_selector("dialog[open]", state="detached")
        for key in "cc":
            ann.press(key)
        ann.check("the summary")
