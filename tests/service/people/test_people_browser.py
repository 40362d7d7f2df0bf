"""The pages for people in a real browser: answered, judged and written, by keys and by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
import pytest
from playwright.sync_api import Browser, ViewportSize

from tests.eval.common.page_in_browser import needs_browser
from tests.runs.e2e import uncanny_here
from tests.service.running import serving
from tests.service.visitor import PHONE, WIDE, Visitor
from uncanny.eval.common.inputs.people import read_people
from uncanny.eval.edits.data import load as load_edits
from uncanny.eval.edits.people.data import read_judgements, read_ratings
from uncanny.eval.mcq.data.answers import read_answers
from uncanny.eval.mcq.data.kept import ITEM_REVIEWS, ItemReview
from uncanny.eval.mcq.data.load import copy_scenes, load
from uncanny.eval.mcq.score.score import score
from uncanny.service.people.rating import PeopleRating

pytestmark = needs_browser


class Person(Visitor):
    """Somebody who answers or judges."""

    def __init__(self, browser: Browser, address: str, name: str | None = None, **context: Any) -> None:
        super().__init__(browser, **context)
        self.visit(address, name)

    def ready(self) -> None:
        """The picture of what the panel asks about is there."""
        self.page.wait_for_selector("body:not(.busy)")
        key = self.page.locator("#panel").get_attribute("data-key")
        if key is not None:
            question = self.page.locator("#panel").get_attribute("data-question")
            shown = key if question is None else f"{key}-{question}"
            self.page.wait_for_selector(f'body[data-shown="{shown}"]:not(.busy)')

    @property
    def at(self) -> str:
        panel = self.page.locator("#panel")
        return f"{panel.get_attribute('data-key')} {panel.get_attribute('data-question')}"

    def press(self, key: str) -> None:
        """A key that is answered with another piece of the page."""
        marked = self.page.locator("#panel .progress p").inner_text()
        self.page.keyboard.press(key)
        self.page.wait_for_selector(f"#panel .progress p:not(:text-is('{marked}'))")
        self.ready()


def test_thirty_questions_by_keyboard_over_a_reload_and_a_restart(browser: Browser, tmp_path: Path) -> None:
    items = load("scenes", folder=tmp_path / "run")
    command = ("mcq", "people", "scenes", "-o", str(tmp_path / "run"))
    order = [(item, question) for item in items for question in item.questions()]

    def key_of(place: int) -> str:
        item, question = order[place]
        right = item.right(question) or ""
        # Sometimes by number, and sometimes with a capital letter.
        return right[0].lower() if question == "q1" or place % 3 else str("ABCDE".index(right) + 1)

    with serving(*command) as address:
        ann = Person(browser, address, "Ann")
        ann.ready()
        for place in range(15):
            ann.press(key_of(place))
        ann.page.reload()
        ann.ready()
        assert ann.page.locator(".progress p").inner_text() == "15 of 129 questions answered"
        ann.press("a" if order[15][1] != "q1" else "y")  # a slip
        ann.press("z")
        for place in range(15, 20):
            ann.press(key_of(place))
        ben = Person(browser, address, "Ben")
        ben.ready()
        assert ben.page.locator(".progress p").inner_text() == "0 of 129 questions answered"
        ben.press("n")
        assert ann.complaints + ben.complaints == []
        cookies = ann.page.context.cookies()
    with serving(*command) as address:
        again = browser.new_context(viewport=WIDE)
        name = next(cookie["value"] for cookie in cookies if cookie["name"] == "uncanny_reviewer")
        again.add_cookies([{"name": "uncanny_reviewer", "value": name, "url": address}])
        ann.page = again.new_page()
        ann.page.goto(address)
        ann.ready()
        assert ann.page.locator(".progress p").inner_text() == "20 of 129 questions answered"
        for place in range(20, 30):
            ann.press(key_of(place))
    answers = [each for each in read_answers([tmp_path / "run"]) if each.model == "human/Ann"]
    assert [(each.id, each.question) for each in answers] == [(item.id, q) for item, q in order[:30]]
    assert [each.raw for each in answers] == [item.right(q) for item, q in order[:30]]
    assert all((each.model_extra or {})["seconds"] > 0 for each in answers)
    assert score(items, list(answers))["human"].splits["overall"].q1 == 1.0


def test_options_are_clicked_and_an_answer_needs_its_picture(browser: Browser, tmp_path: Path) -> None:
    with serving("mcq", "people", "scenes", "-o", str(tmp_path / "run"), "--person", "ann") as address:
        ann = Person(browser, address)
        ann.ready()
        ann.page.get_by_role("button", name="yes").click()
        ann.page.wait_for_selector("#panel[data-question=q2]")
        ann.ready()
        ann.page.locator(".option", has_text="D.").click()
        ann.page.wait_for_selector("#panel[data-question=q3]")
        ann.ready()
        # What is asked for in the box of a name is no answer.
        ann.page.keyboard.press("?")
        ann.page.wait_for_selector("dialog[open]")
        ann.page.keyboard.press("a")
        ann.page.keyboard.press("Escape")
        ann.page.wait_for_selector("dialog[open]", state="detached")
        ann.press("c")
        assert ann.complaints == []
    assert [each.raw for each in read_answers([tmp_path / "run"])] == ["yes", "D", "C"]


def test_thirty_pictures_judged_by_keyboard_and_by_hand(browser: Browser, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = (
        "edits",
        "people",
        "scenes",
        "-o",
        str(run),
        "--questionnaire",
        "default",
        "--break-every",
        "10",
    )
    with serving(*command, "--person", "Ann") as address:
        ann = Person(browser, address)
        page = ann.page
        page.get_by_label("Somewhat").check()
        page.keyboard.press("Enter")
        page.wait_for_selector("#panel")
        ann.ready()
        page.keyboard.press("e")
        page.wait_for_selector("body.placing")
        ann.draw(0.1, 0.1, 0.3, 0.4)
        page.wait_for_selector("#boxes:has-text('1 box')")
        ann.draw(0.5, 0.5, 0.9, 0.8)
        page.wait_for_selector("#boxes:has-text('2 boxes')")
        ann.press("Enter")
        # The same with keys alone: two boxes, of which one is removed.
        page.keyboard.press("e")
        page.wait_for_selector("body.placing")
        for key in ("ArrowRight", "Shift+ArrowDown", "b", "ArrowLeft", "j", "Delete"):
            page.keyboard.press(key)
        page.wait_for_selector("#boxes:has-text('1 box')")
        ann.press("Enter")
        page.keyboard.press("e")
        page.wait_for_selector("body.placing")
        page.keyboard.press("Enter")
        page.wait_for_selector("#message:has-text('There is no box yet')")
        page.keyboard.press("Escape")
        page.wait_for_selector("body:not(.placing)")
        page.keyboard.press("e")
        page.wait_for_selector("body.placing")
        ann.press("n")
        for _ in range(7):
            ann.press("r")
        page.wait_for_selector("#name:has-text('Time for a break')")
        page.keyboard.press("Enter")
        page.wait_for_selector("#panel[data-stage]")
        ann.ready()
        ann.press("r")
        ann.press("z")
        page.reload()
        page.wait_for_selector("#name:has-text('Time for a break')")
        page.keyboard.press("Enter")
        page.wait_for_selector("#panel[data-stage]")
        ann.ready()
        for _ in range(5):
            ann.press("r")
        assert ann.complaints == []
    with serving(*command, "--person", "Ann") as address:
        ann = Person(browser, address)
        ann.ready()
        assert ann.page.locator(".progress p").inner_text() == "15 of 32 pictures judged"
        for number in range(15, 32):
            if number in (20, 30):
                ann.page.keyboard.press("Enter")
                ann.page.wait_for_selector("#panel[data-stage]")
                ann.ready()
            ann.press("r")
        assert ann.page.locator("#name").inner_text() == "That was the last one"
        assert ann.complaints == []
    judgements, profiles = read_judgements([run])
    assert len({(each.id, each.shown) for each in judgements}) == len(judgements) == 32
    first, second, third = judgements[:3]
    assert first.boxes is not None
    assert first.width is not None
    assert first.height is not None
    for box, share in zip(first.boxes, ((0.1, 0.1, 0.3, 0.4), (0.5, 0.5, 0.9, 0.8)), strict=True):
        sides = (first.width, first.height) * 2
        wanted = [part * side for part, side in zip(share, sides, strict=True)]
        assert list(box) == pytest.approx(wanted, abs=max(first.width, first.height) / 200)
    assert second.boxes is not None
    assert len(second.boxes) == 1
    assert (third.judged, third.boxes) == ("edited", ())
    assert profiles[0].answers["ai_images"] == "Somewhat"
    assert all(each.seconds for each in judgements)


def test_pairs_are_rated_and_scored_beside_what_was_measured(browser: Browser, tmp_path: Path) -> None:
    """Three people rate the bundled pairs by keys; the third says "a lot" of everything."""
    run, measured = tmp_path / "run", tmp_path / "edits.jsonl"
    assert uncanny_here("edits", "measure", "scenes", "-o", measured, "--no-report").code == 0
    ratios = {
        each["id"]: each["mask_ratio"] for each in map(orjson.loads, measured.read_bytes().splitlines())
    }
    thirds = np.quantile(list(ratios.values()), [1 / 3, 2 / 3])
    # A person sees what the script looks up: which pair it is.
    other = PeopleRating(load_edits("scenes"), tmp_path / "other")
    trials = {trial.key: trial for trial in (*other.trials, *other.checks)}

    def rated(name: str, key: str | None) -> str:
        trial = trials[key or ""]
        if name == "Bot" or trial.check is not None:
            return "3" if name == "Bot" or trial.check == "a lot" else "1"
        ratio = ratios[trial.id] * (1.3 if name == "Ben" else 1)
        return str(1 + int(np.searchsorted(thirds, ratio)))

    command = ("edits", "rate", "scenes", "-o", str(run), "--check-every", "8", "--break-every", "0")
    with serving(*command) as address:
        for name in ("Ann", "Ben", "Bot"):
            rater = Person(browser, address, name)
            rater.ready()
            for _ in range(18):
                rater.press(rated(name, rater.page.locator("#panel").get_attribute("data-key")))
            assert rater.page.locator("#name").inner_text() == "That was the last one"
            rater.page.keyboard.press("z")
            rater.page.wait_for_selector("#panel .notice:has-text('Undone')")
            rater.ready()
            if name == "Ann":  # by hand, at full size, both at the same place
                rater.page.get_by_role("button", name="Full size").click()
                rater.page.locator(".window").first.evaluate("each => each.scrollTo(60, 40)")
                rater.page.wait_for_function(
                    "() => document.querySelector('[data-side=edited] .window').scrollLeft === 60"
                )
                rater.page.get_by_role("button", name="Some").click()
            else:
                rater.page.keyboard.press("2")
            rater.page.wait_for_selector("#name:has-text('That was the last one')")
            assert rater.complaints == []
    ratings = read_ratings([run])
    assert len(ratings) == 3 * 18
    assert all(each.seconds is not None for each in ratings)
    done = uncanny_here("edits", "rate-score", measured, run, "--json", tmp_path / "scores.json")
    assert done.code == 0, done.err
    scores = orjson.loads((tmp_path / "scores.json").read_bytes())
    assert scores["left_out"]["raters"] == ["Bot"]
    assert scores["icc"]["average"]["value"] > 0.7
    assert scores["metrics"]["mask_ratio"]["spearman"]["value"] > 0.7


def test_items_are_checked_by_keys_with_a_note(browser: Browser, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with serving("mcq", "review", "scenes", "-o", str(run)) as address:
        for viewport in (WIDE, PHONE):
            ann = Person(browser, address, f"Ann {viewport['width']}", viewport=viewport)
            ann.ready()
            ann.page.keyboard.press("n")
            ann.page.keyboard.type("cwu are letters here")
            ann.page.keyboard.press("Escape")
            ann.page.keyboard.press("b")
            ann.page.wait_for_selector("[data-tool=boxes][aria-pressed=false]")
            ann.page.wait_for_selector("#frame img[src*='/original?']")
            ann.press("w")
            ann.page.wait_for_selector("[data-tool=boxes][aria-pressed=true]")
            ann.press("c")
            ann.press("z")
            ann.page.get_by_role("button", name="Unsure").click()
            ann.page.wait_for_selector("#panel .progress p:has-text('2 of 34')")
            assert ann.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert ann.complaints == []
    (said,) = read_people([run], {ITEM_REVIEWS: ItemReview})
    both = [("reject", "cwu are letters here"), ("unsure", None)]
    assert [(each.decision, each.note) for each in said] == 2 * both
    assert all(each.seconds for each in said)


def test_an_item_is_written_and_two_authors_are_told(browser: Browser, tmp_path: Path) -> None:
    file = copy_scenes(tmp_path / "set")
    with serving("mcq", "author", str(file), "--images", str(file.parent / "images")) as address:
        ann, ben = (Person(browser, address) for _ in range(2))
        for each in (ann, ben):
            each.page.wait_for_selector("body[data-shown]")
            each.page.wait_for_selector("#problems:has-text('Nothing is wrong')")
        page = ann.page
        page.locator("[name='q4.C']").fill("")
        page.wait_for_selector("#problems .error:has-text('no option C')")
        page.wait_for_selector("[name='q4.C'][aria-invalid=true]")
        page.locator("[name='q4.C']").fill("The saucer has two rims")
        page.keyboard.press("Alt+b")
        page.wait_for_selector(".a9s-shape-handle")
        for key in ("ArrowRight", "Shift+ArrowDown", "Enter"):
            page.keyboard.press(key)
        page.keyboard.press("Control+s")
        page.wait_for_selector("#unsaved:has-text('Saved.')")
        page.locator("[name='q2.A']").fill("The blue ball")
        page.keyboard.press("Control+s")
        page.wait_for_selector("#unsaved:has-text('Saved.')")
        ben.page.locator("[name='q2.A']").fill("The ball")
        ben.page.keyboard.press("Control+s")
        ben.page.wait_for_selector("#message:has-text('Someone else has changed this item')")
        # Drawn by hand, on another item.
        page.keyboard.press("Alt+ArrowDown")
        page.wait_for_selector("#previous:not([disabled])")
        page.wait_for_selector("body[data-shown]")
        page.get_by_role("button", name="Move box A").click()
        page.wait_for_selector(".a9s-shape-handle")
        page.keyboard.press("Delete")
        page.wait_for_selector("#problems .error:has-text('no box A')")
        page.get_by_role("button", name="Draw box A").click()
        page.wait_for_selector(".a9s-annotationlayer")
        ann.draw(0.2, 0.2, 0.4, 0.6)
        page.wait_for_selector(".a9s-shape-handle")
        page.keyboard.press("Enter")
        page.wait_for_selector("#problems:not(:has-text('no box A'))")
        page.keyboard.press("Control+s")
        page.wait_for_selector("#unsaved:has-text('Saved.')")
        assert ann.complaints == []
    first, second = (orjson.loads(line) for line in file.read_bytes().splitlines()[:2])
    assert first["q2"]["options"]["A"] == "The blue ball"
    assert first["q4"]["options"]["C"] == "The saucer has two rims"
    x0, y0, x1, y1 = first["q3"]["boxes"]["B"]
    assert (x0, y0, x1, y1) == (357, 54, 706, 520)
    assert len(second["q3"]["boxes"]["A"]) == 4


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("which", ["mcq", "edits", "rate", "author"])
def test_everybody_can_use_it(
    browser: Browser, tmp_path: Path, which: str, size: ViewportSize, scheme: Literal["light", "dark"]
) -> None:
    file = copy_scenes(tmp_path / "set")
    command = {
        "mcq": ("mcq", "people", str(file), "-o", str(tmp_path / "run")),
        "edits": ("edits", "people", "scenes", "-o", str(tmp_path / "run"), "--questionnaire", "default"),
        "rate": ("edits", "rate", "scenes", "-o", str(tmp_path / "run")),
        "author": ("mcq", "author", str(file), "--images", str(file.parent / "images")),
    }[which]
    with serving(*command) as address:
        ann = Person(browser, address, viewport=size, color_scheme=scheme, bypass_csp=True)
        page = ann.page
        if which == "author":
            page.wait_for_selector("#problems li")
            ann.check("an item")
            page.locator("[name='q2.A']").fill("")
            page.wait_for_selector("#problems .error")
            ann.check("an error")
            return
        ann.check("the name")
        page.get_by_label("Name").fill("Ann")
        page.keyboard.press("Enter")
        if which == "edits":
            page.wait_for_selector("#profile")
            ann.check("the questionnaire")
            page.get_by_role("button", name="Go on").click()
        page.wait_for_selector("#panel")
        ann.ready()
        ann.check("the first")
        if which == "mcq":
            for key in "yab":
                ann.press(key)
                ann.check(f"after {key}")
        elif which == "rate":
            ann.press("2")
            page.get_by_role("button", name="Full size").click()
            ann.check("full size")
        else:
            page.keyboard.press("e")
            page.wait_for_selector("body.placing")
            page.keyboard.press("ArrowRight")
            page.wait_for_selector(".a9s-shape-handle")
            ann.check("boxes")
