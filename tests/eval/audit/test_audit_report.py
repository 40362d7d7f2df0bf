"""The page of an audit: every generator is there, with the result's own figures, whatever it is called."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.eval.audit.annotation_sets import record, written
from tests.eval.audit.made_leaderboards import (
    FLAWS,
    HOSTILE,
    made_audit,
    with_published,
    with_second_assessor,
)
from tests.eval.common.page_text import Page, check_script, check_static_page
from uncanny.demo.scenes import scenes
from uncanny.eval.audit.report.page import write_audit_page
from uncanny.eval.audit.report.plots import spread
from uncanny.eval.audit.run import audit
from uncanny.eval.audit.score.result import AuditResult, GeneratorScore, Leaderboard
from uncanny.eval.audit.score.tables import amount, ends, headline, signed
from uncanny.eval.common.alike import Mismatch
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.inputs.sources import LeftOut

FIFTEEN = [f"generator-{place}" for place in range(13)] + ["七本の指/" + "long-" * 40, HOSTILE]


def page_of(folder: Path, result: AuditResult) -> Page:
    out = write_audit_page(result, folder / "audit.html")
    return Page(out.read_text(encoding="utf-8"))


def changed(result: AuditResult, **changes: object) -> AuditResult:
    return replace(result, leaderboard=replace(result.leaderboard, **changes))  # type: ignore[arg-type]


def nothing_counts(score: GeneratorScore) -> GeneratorScore:
    """Of a generator all of whose annotations failed."""
    none = Estimate(None)
    return replace(
        score,
        images=0,
        anomalies=0,
        flawless=0,
        left_out=LeftOut(failed=7),
        mai=none,
        af=none,
        cap=none,
        u_mean=none,
        severities=(0,) * 101,
        names=(),
        worst=(),
    )


@pytest.fixture(scope="module")
def fifteen() -> AuditResult:
    files = [scene.image_path for scene in scenes()[:6]]
    return with_published(with_second_assessor(made_audit(FIFTEEN, pictures=files)))


@pytest.fixture(scope="module")
def page(fifteen: AuditResult, tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(tmp_path_factory.mktemp("audit"), fifteen)


def leaderboard_rows(page: Page) -> list[str]:
    section = page.html.split('id="h-leaderboard"')[1].split("</section>")[0]
    return section.split("<tbody>")[1].split("</tbody>")[0].split("<tr>")[1:]


@pytest.mark.slow
def test_the_page_stands_by_itself(page: Page) -> None:
    check_static_page(page)


def test_the_scale_is_called_realism_and_how_it_was_made_comes_last(page: Page) -> None:
    assert "Realism of anomalies" in page.text
    assert page.text.index("Leaderboard Lower is better") < page.text.index("Intervals 95 %, bootstrap")


def test_every_generator_has_its_row_with_the_results_figures(fifteen: AuditResult, page: Page) -> None:
    rows = leaderboard_rows(page)
    assert len(rows) == 15
    for place, (name, row) in enumerate(zip(fifteen.leaderboard.order, rows, strict=True), 1):
        score = fifteen.leaderboard.generators[name]
        cells = Page(row.replace("<wbr>", ""))
        assert cells.text.startswith(f"{place} {' '.join(name.split())}")
        for figure in (score.cap, score.mai, score.af):
            assert amount(figure.value) in cells.words
            assert ends(figure) in cells.words
        assert f"{score.images}" in cells.words


def test_neighbours_that_cannot_be_told_apart_are_marked(fifteen: AuditResult, page: Page) -> None:
    alike = {one.first for one in fifteen.leaderboard.alike}
    assert 0 < len(alike) < 15
    for name, row in zip(fifteen.leaderboard.order, leaderboard_rows(page), strict=True):
        assert ("≈" in row) == (name in alike), name


def test_the_leader_is_named_with_those_as_good(fifteen: AuditResult, page: Page) -> None:
    board = fifteen.leaderboard
    first = board.ranked[0]
    behind = {each.second for each in board.differences if each.first == first and each.apart}
    leaders = [name for name in board.ranked if name not in behind]
    said = headline(fifteen)
    assert all(f"{name} (" in said for name in leaders[:4])
    assert " ".join(said.split()) in page.text
    assert (f"and {len(leaders) - 4} others lead in CAP" in said) == (len(leaders) > 5)


def test_differences_read_row_minus_column_both_ways(tmp_path: Path) -> None:
    result = made_audit(["a", "b"])
    (difference,) = result.leaderboard.differences
    assert difference.cap.value is not None
    section = page_of(tmp_path, result).html.split('id="h-pairs"')[1].split("</section>")[0]
    values = re.findall(r'<td class="(?:same|ahead|behind)"[^>]*>([^<]+)', section)
    assert values == [signed(difference.cap.value), signed(-difference.cap.value)]


def test_plots_show_all_generators_to_those_who_hear_the_page(fifteen: AuditResult, page: Page) -> None:
    spoken = " ".join(re.findall(r"<desc[^>]*>(.*?)</desc>", page.html, re.DOTALL))
    text = Page(spoken).text
    for name in fifteen.leaderboard.order:
        assert text.count(" ".join(name.split())) >= 6  # three plots, each for two widths
    drawn = [attrs for attrs in page.all("svg") if attrs.get("role") == "img"]
    assert len(drawn) == 6


def test_hostile_words_stay_words(page: Page, tmp_path: Path) -> None:
    check_script(page)
    assert HOSTILE in "".join(page.words)
    result = made_audit([HOSTILE, "b"])
    score = result.leaderboard.generators[HOSTILE]
    worst = replace(
        score.worst[0],
        image=HOSTILE,
        anomalies=tuple(
            one.model_copy(
                update={"name": HOSTILE, "phenomenon": HOSTILE, "reasoning": HOSTILE, "objects": (HOSTILE,)}
            )
            for one in score.worst[0].anomalies
        ),
    )
    names = (replace(score.names[0], name=HOSTILE),)
    bad = replace(score, worst=(worst,), names=names, source=Path(HOSTILE))
    mixed = (Mismatch("model", HOSTILE, {HOSTILE: (HOSTILE,), "b": ()}),)
    leaderboard = replace(
        result.leaderboard,
        generators={**result.leaderboard.generators, HOSTILE: bad},
        mixed=mixed,
        notices=(HOSTILE,),
    )
    hostile = page_of(tmp_path, replace(result, leaderboard=leaderboard, pair_by=HOSTILE, allow_mixed=True))
    check_script(hostile)
    assert not [attrs for _, attrs in hostile.tags if "onerror" in attrs]
    assert hostile.html.count("</style>") == 1


def test_mixing_is_said_first_and_alike_is_not_claimed(tmp_path: Path) -> None:
    result = made_audit(["a", "b"])
    assert 'id="alike"' in page_of(tmp_path, result).html
    mixed = (Mismatch("model", "model", {"a": ("openai/gpt-4o",), "b": ("demo",)}),)
    page = page_of(tmp_path, replace(changed(result, mixed=mixed), allow_mixed=True))
    assert 'id="alike"' not in page.html
    assert page.text.index("were not annotated alike") < page.text.index("Lower is better")
    assert "a openai/gpt-4o ; b demo" in page.text


def test_left_out_records_are_counted_and_a_large_share_is_warned_of(tmp_path: Path) -> None:
    result = made_audit(["a", "b"])
    some = replace(
        result.leaderboard.generators["a"], left_out=LeftOut(failed=2, partial=1, unreadable=2, unclear=1)
    )
    page = page_of(tmp_path, changed(result, generators={**result.leaderboard.generators, "a": some}))
    assert "6 of 66, 9.1 %" in page.text
    row = page.html.split("Records not counted</h3>")[1].split("<tbody>")[1].split("</tr>")[0]
    assert re.findall(r"<td[^>]*>([^<]*)", row) == ["66", "2", "1", "2", "1", "9.1\N{NO-BREAK SPACE}%"]
    assert "not counted" not in page_of(tmp_path, result).text


def test_what_the_second_assessor_mixed_or_left_out_is_said_too(tmp_path: Path) -> None:
    result = with_second_assessor(made_audit(["a", "b"]))
    assert result.against is not None
    some = replace(result.against.generators["a"], left_out=LeftOut(failed=5))
    against = replace(
        result.against,
        generators={**result.against.generators, "a": some},
        mixed=(Mismatch("prompts", "prompts", {"a": ("x",), "b": ("y",)}),),
    )
    page = page_of(tmp_path, replace(result, against=against))
    assert "Second assessor: These generators were not annotated alike" in page.text
    assert "Second assessor: More than 1 %" in page.text
    assert "a : 5 of 65" in page.text


def test_prompts_of_a_column_stand_under_the_worst_images(tmp_path: Path) -> None:
    result = made_audit(["a"], pair_by="prompt")
    prompt = result.leaderboard.generators["a"].worst[0].prompt
    assert f'dir="auto">{prompt}</p>' in page_of(tmp_path, result).html


def test_worst_images_that_were_not_kept_are_not_called_flawless(tmp_path: Path) -> None:
    result = made_audit(["a"])
    bare = replace(result.leaderboard.generators["a"], worst=())
    page = page_of(tmp_path, changed(result, generators={"a": bare}))
    assert "No image was kept." in page.text
    assert "No anomalies." not in page.text


def test_what_has_no_figure_is_no_zero(tmp_path: Path) -> None:
    result = made_audit(["a", "b"])
    empty = nothing_counts(result.leaderboard.generators["b"])
    leaderboard = replace(
        result.leaderboard,
        generators={"a": result.leaderboard.generators["a"], "b": empty},
        order=("a", "b"),
        differences=(),
    )
    page = page_of(tmp_path, replace(result, leaderboard=leaderboard))
    row = Page(leaderboard_rows(page)[1]).text
    assert row.startswith("– b")
    assert "no image" in row
    assert "0.00" not in row
    assert "nothing to compare" in page.text


@pytest.mark.parametrize("names", [["alone"], ["a", "b"]])
def test_flawless_generators_have_a_page(names: list[str], tmp_path: Path) -> None:
    page = page_of(tmp_path, made_audit(names, rate=0.0))
    assert len(leaderboard_rows(page)) == len(names)
    assert page.text.count("No anomalies.") >= 2
    assert ("h-pairs" in page.html) == (len(names) > 1)
    assert "nan" not in page.text.lower().split()


def test_a_leaderboard_without_any_score_has_a_page(tmp_path: Path) -> None:
    result = made_audit(["a"])
    leaderboard = Leaderboard({"a": nothing_counts(result.leaderboard.generators["a"])}, ("a",), ())
    page = page_of(tmp_path, replace(result, leaderboard=leaderboard))
    assert "No generator has an image that counts." in page.text


@pytest.mark.slow
def test_many_generators_are_compared_with_their_neighbours(tmp_path: Path) -> None:
    result = made_audit([f"g{place}" for place in range(20)], images=20)
    pairs = set(zip(result.leaderboard.order, result.leaderboard.order[1:], strict=False))
    neighbours = tuple(one for one in result.leaderboard.differences if (one.first, one.second) in pairs)
    page = page_of(tmp_path, changed(result, differences=neighbours))
    assert "Neighbours in the leaderboard" in page.text
    assert len(leaderboard_rows(page)) == 20


def test_worst_images_are_shown_with_their_quadruples(page: Page, fifteen: AuditResult) -> None:
    shown = page.html.split('id="h-worst"')[1].split("</section>")[0]
    assert shown.count("<article") == shown.count("<img") == 60
    worst = fifteen.leaderboard.generators[fifteen.leaderboard.order[0]].worst[0]
    assert worst.image in shown
    assert worst.anomalies[0].phenomenon in shown
    assert any(flaw[2] in shown for flaw in FLAWS)


def test_a_missing_picture_is_said(tmp_path: Path) -> None:
    assert "image cannot be read" in page_of(tmp_path, made_audit(["a"])).text


def test_published_rows_are_marked_as_no_comparison(page: Page, tmp_path: Path) -> None:
    section = page.text.split("Published rows")[1]
    assert section.strip().startswith("For orientation only.")
    assert "asked with the authors' prompts" in section
    assert "60.49" in section
    assert "28.62" in section
    assert "Published rows" not in page_of(tmp_path, made_audit(["a"])).text


def test_the_same_result_gives_the_same_page(tmp_path: Path) -> None:
    def bare(page: Page) -> str:
        return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "", page.html)

    result = made_audit(["a", "b"])
    assert bare(page_of(tmp_path, result)) == bare(page_of(tmp_path, result))


@pytest.mark.parametrize(
    ("targets", "places"),
    [
        ([], []),
        ([50.0], [50.0]),
        ([10.0, 80.0], [10.0, 80.0]),
        ([50.0, 50.0, 50.0], [40.0, 50.0, 60.0]),
        ([0.0, 1.0], [0.0, 10.0]),
        ([99.0, 100.0], [90.0, 100.0]),
        ([50.0] * 21, [5.0 * step for step in range(21)]),
    ],
)
def test_labels_are_spread_around_where_they_belong(targets: list[float], places: list[float]) -> None:
    assert spread(targets, 10, 0, 100) == pytest.approx(places)


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "–"), (0.0, "0.00"), (0.001, "<0.01"), (0.005, "0.01"), (60.494, "60.49"), (1234.5, "1,234.50")],
)
def test_amounts(value: float | None, words: str) -> None:
    assert amount(value) == words


@pytest.mark.parametrize(
    ("value", "words"), [(None, "–"), (0.0, "0.00"), (-0.0, "0.00"), (-1.5, "−1.50"), (2.0, "+2.00")]
)
def test_differences_have_a_sign(value: float | None, words: str) -> None:
    assert signed(value) == words


def test_too_few_images_colour_no_table(tmp_path: Path) -> None:
    """Half of two images would be the darkest cell of all, and pale those that rest on something."""
    many = [record(f"{number}.png", [10] * (number % 10 == 0)) for number in range(40)]
    sources = {"many": written(tmp_path / "a.jsonl", many)}
    sources["two"] = written(tmp_path / "b.jsonl", [record("0.png", [10]), record("1.png")])
    html = audit(sources, resamples=50).report(tmp_path / "audit.html").read_text()
    (row,) = re.findall(r"<tr><th[^>]*>six fingers.*?</tr>", html, re.DOTALL)
    assert re.findall(r'<td class="(.*?)">(.*?)<small>', row) == [("heat5", "10 %"), ("", "50 %")]
    assert "<small>too few</small>" in html
    assert html.index(">many<") < html.index(">two<")
