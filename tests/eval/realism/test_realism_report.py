"""The page of a realism check: the score's own figures, every group and pair that matters, any words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.eval.common.page_text import Page, check_script, check_static_page
from tests.eval.realism.made_verdicts import hand_worked, line, written
from uncanny import realism
from uncanny.demo.scenes import scenes
from uncanny.eval.common.estimates import interval_words
from uncanny.eval.common.pages.page import percent
from uncanny.eval.realism.people import PersonAnswer
from uncanny.eval.realism.report import MOST_SHOWN
from uncanny.eval.realism.result import RealismScore

HOSTILE = "</style><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
PEOPLE = [
    PersonAnswer(id="p2", said="real", rater="a", iou=0.5),
    PersonAnswer(id="p0", said="edited", rater="b", iou=0.25),
    PersonAnswer(id="gone", said="edited", rater="b"),
]


def scored(*files: Path, people: Sequence[PersonAnswer] | None = None) -> RealismScore:
    return realism.score(files, people=people, resamples=200)


def page_of(folder: Path, score: RealismScore, **options: Any) -> Page:
    out = score.report(folder / "realism.html", **options)
    return Page(out.read_text(encoding="utf-8"))


def sides(files: Sequence[Path]) -> dict[str, Any]:
    """What a record says of its two files; those of the scenes have their digest."""
    names = ("original", "edited")
    digests = {scene.image_path.name: scene.sha256 for scene in scenes()}
    return {
        name: {
            "image": str(file),
            "sha256": digests.get(file.name),
            "width": 768,
            "height": 576,
            "changes": [],
        }
        for name, file in zip(names, files, strict=True)
    }


@pytest.fixture(scope="module")
def score(tmp_path_factory: pytest.TempPathFactory) -> RealismScore:
    folder = tmp_path_factory.mktemp("verdicts")
    some = [scene.image_path for scene in scenes()[:2]]
    raw = {"first": "It is fine.\n\nVerdict: Yes", "original_first": "Both hold.\n\nVerdict: Both"}
    lines = hand_worked(model="m/one", prompts="realism@1a2b", raw=raw, outcome="judged", **sides(some))
    # A record that says why it has no label.
    why = [{"asked": "edited_first", "kind": "timeout", "message": "no answer in 60 s"}]
    lines[9] = orjson.dumps(orjson.loads(lines[9]) | {"outcome": "failed", "errors": why})
    lines[10] = orjson.dumps(orjson.loads(lines[10]) | {"outcome": "unusable"})
    return scored(written(folder / "verdicts.jsonl", lines), people=PEOPLE)


@pytest.fixture(scope="module")
def page(score: RealismScore, tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(tmp_path_factory.mktemp("page"), replace(score, published=True))


def section(page: Page, name: str) -> str:
    return page.html.split(f'id="{name}"')[1].split("</section>")[0]


def test_the_page_stands_by_itself(page: Page) -> None:
    check_static_page(page)


def test_every_line_has_the_scores_figures(score: RealismScore, page: Page) -> None:
    (scores,) = score.sets.values()
    table = section(page, "h-labels").split("<tbody>")[1].split("</tbody>")[0]
    rows = [Page(row) for row in table.split("<tr")[1:]]
    lines = [("all pairs", scores.overall), *scores.groups.items()]
    assert len(rows) == len(lines) == 3
    for row, (name, group) in zip(rows, lines, strict=True):
        assert name in row.words
        for share in (*(group.labels[label] for label in group.labels), *group.two_way.values()):
            if share is group.labels["undetermined"] or share is group.two_way["undetermined"]:
                assert (f"{share.counts}" if share.counts else "none") in row.words
                continue
            assert percent(share.value) in row.words
            assert interval_words(share) in row.words


def test_plots_tell_their_figures_to_those_who_hear_the_page(score: RealismScore, page: Page) -> None:
    (scores,) = score.sets.values()
    spoken = re.findall(r"<desc[^>]*>(.*?)</desc>", page.html, re.DOTALL)
    assert len(spoken) == 4  # two plots, each for two widths
    deceiving = scores.overall.labels["deceiving"]
    assert f"all pairs: deceiving {percent(deceiving.value)}, 5 of 9, interval" in spoken[0]
    bias = scores.overall.position_bias
    assert f"all pairs: first {bias.first}, second {bias.second}, both {bias.both}; p = " in spoken[2]
    assert all(name in words for words in spoken for name in ("a: ", "b: "))


def test_cases_calls_and_people_have_the_scores_figures(score: RealismScore, page: Page) -> None:
    (scores,) = score.sets.values()
    cases = section(page, "h-cases").split("<tbody>")[1]
    assert re.findall(r"</th><td>(\d+)</td>", cases) == ["2", "1", "1", "1"]
    values = re.findall(r'class="value">([^<]*)', section(page, "h-calls"))
    calls = scores.overall.calls
    assert values == [str(calls.questions), str(calls.saved), "not recorded"]
    people = Page(section(page, "h-people")).text
    assert "m/one 2 people 3 50 %" in people
    assert "People's answers not counted because the pair has no verdict: 1 (gone)" in people
    assert "67.4 % 35.2 % 59.7 % 73.7 % 15.2 % 12.9 % 28.3 % 40.4 %" in people


def test_deceiving_pairs_are_shown_the_most_convincing_first(page: Page) -> None:
    cards = section(page, "h-pairs").split("<article")[1:]
    assert [re.findall(r"<bdi>(p\d+)</bdi>", card)[0] for card in cards] == ["p4", "p5", "p6", "p2", "p3"]
    first = Page(cards[0].split(">", 1)[1])
    assert len(first.all("img")) == 3
    assert "case 2: prefers the edit" in first.text
    assert "Original first, more realistic: the edited" in first.text
    assert "Edited first, more realistic: the edited" in first.text
    assert "It is fine." in first.text
    follows = Page(cards[3].split(">", 1)[1]).text
    assert "Original first, more realistic: the original" in follows


def test_pairs_without_a_label_are_listed_with_the_reason(page: Page) -> None:
    assert "2 pairs have no label." in page.text
    assert "1 failed in a call" in page.text
    assert "1 with images that can't be compared" in page.text
    rows = re.split(r"<tbody[^>]*>", section(page, "h-without"))[1].split("</tr>")[:2]
    assert Page(rows[0]).text == "p9 no answer in 60 s a yes first –"
    assert Page(rows[1]).text == "p10 not recorded – – – –"


def test_sets_stand_side_by_side(tmp_path: Path) -> None:
    files = [written(tmp_path / name / "verdicts.jsonl", hand_worked(model=name)) for name in ("x", "y")]
    page = page_of(tmp_path, scored(*files))
    assert re.findall(r"<tr class=\"whole\"><th scope=\"row\"><bdi>(.)</bdi>", page.html) == ["x", "y"]
    assert section(page, "h-pairs").count("<article") == 10
    assert page.text.count("deceive x") == page.text.count("deceive y") == 1


def test_verdicts_of_other_tools_have_a_page_without_pictures(tmp_path: Path) -> None:
    page = page_of(tmp_path, scored(written(tmp_path / "v.jsonl", hand_worked())))
    assert not page.all("img")
    assert page.text.count("image cannot be read") == 10
    assert "People on the same images" not in page.text


def test_no_label_at_all_is_no_zero(tmp_path: Path) -> None:
    lines = [line(f"p{n}", (None, None, None), "undetermined", None, None) for n in range(3)]
    page = page_of(tmp_path, scored(written(tmp_path / "v.jsonl", lines)))
    assert "No pair has a label." in page.text
    assert "No second check chose a place." in page.text
    labels = Page(section(page, "h-labels")).text
    assert "0 %" not in labels.replace("100 %", "")


def test_everything_non_deceiving(tmp_path: Path) -> None:
    lines = [line(f"p{n}", ("no", None, None), "non_deceiving", None, "g") for n in range(3)]
    page = page_of(tmp_path, scored(written(tmp_path / "v.jsonl", lines)))
    assert "0 of 3 labelled edits (0 %" in page.text
    assert "Without a label" not in page.text
    assert "None." in Page(section(page, "h-pairs")).text


@pytest.mark.slow
def test_many_pairs_are_cut_and_the_rest_is_counted(tmp_path: Path) -> None:
    lines = [line(f"p{n}", ("yes", "both", "both"), "deceiving", 4, f"g{n}") for n in range(60)]
    page = page_of(tmp_path, scored(written(tmp_path / "v.jsonl", lines)))
    assert section(page, "h-pairs").count("<article") == MOST_SHOWN
    assert f"Showing {MOST_SHOWN} of 60" in page.text
    assert "The plot holds the first 40 of 61 lines" in page.text


def test_hostile_words_stay_words(tmp_path: Path) -> None:
    hostile: dict[str, Any] = {
        "raw": {"first": HOSTILE},
        "notes": [HOSTILE],
        "model": HOSTILE,
        "prompts": HOSTILE,
        "errors": [{"asked": "first", "kind": HOSTILE, "message": HOSTILE}],
        **sides([Path(HOSTILE), Path(HOSTILE)]),
    }
    lines = [
        line(HOSTILE, ("yes", "both", "both"), "deceiving", 4, HOSTILE, **hostile),
        line("b" + HOSTILE, (None, None, None), "undetermined", None, HOSTILE, **hostile),
    ]
    page = page_of(tmp_path, scored(written(tmp_path / "v.jsonl", lines)), title=HOSTILE)
    check_script(page)
    assert not [attrs for _, attrs in page.tags if "onerror" in attrs]
    assert page.html.count("</style>") == 1
    assert HOSTILE in "".join(page.words)


def test_pictures_are_found_from_the_run_and_from_a_root(tmp_path: Path) -> None:
    some = [scene.image_path for scene in scenes()[:2]]
    row = ("yes", "both", "both"), "deceiving", 4, None
    file = written(
        tmp_path / "run" / "verdicts.jsonl", [line("a", *row, **sides([Path(scene.name) for scene in some]))]
    )
    images = some[0].parent
    assert not page_of(tmp_path, scored(file)).all("img")
    assert len(page_of(tmp_path, scored(file), root=images).all("img")) == 3
    (file.parent / "run.json").write_bytes(orjson.dumps({"root": str(images)}))
    assert len(page_of(tmp_path, scored(file)).all("img")) == 3
    (file.parent / "run.json").write_bytes(b"{")
    assert not page_of(tmp_path, scored(file)).all("img")


@pytest.mark.slow
def test_the_same_score_gives_the_same_page(score: RealismScore, tmp_path: Path) -> None:
    def bare(page: Page) -> str:
        return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "", page.html)

    assert bare(page_of(tmp_path, score)) == bare(page_of(tmp_path, score))
