"""The page of trust: it says what the result says, stands by itself, and is safe whatever files hold."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import uncanny
from tests.eval.common.page_text import Page, check_static_page
from tests.eval.trust.judged_runs import fault, image_of, judge, write
from tests.eval.trust.test_calibration import overconfident
from tests.runs.e2e import uncanny_here
from uncanny.eval.common.pages import page as pages
from uncanny.eval.trust.report import write_trust_page
from uncanny.eval.trust.score import TrustResult

HOSTILE = "</style><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> TrustResult:
    records, truth = overconfident(400, seed=4)
    run = write(tmp_path_factory.mktemp("trust") / "run", [*records.values()])
    uncanny.sample(run, size=120)
    judge(run, records, truth)
    return uncanny.trust(run)


def percent(share: float | None) -> str:
    """As it stands in the words of a page, whose spaces are plain ones there."""
    return " ".join(pages.percent(share).split())


def page_of(result: TrustResult, folder: Path) -> Page:
    return Page(result.report(folder / "trust.html").read_text(encoding="utf-8"))


def test_the_page_stands_by_itself_and_says_the_answer_first(result: TrustResult, tmp_path: Path) -> None:
    page = page_of(result, tmp_path)
    check_static_page(page)
    visible = result.figures["visible"].corrected
    assert f"{percent(visible.value)} of all 400 images have a visible fault (interval " in page.text
    assert f"by 120 judged images. The model alone says {percent(visible.model_only)}." in page.text
    assert page.text.index("What to do next") < page.text.index("What holds for all images")
    for words in (*result.next_steps(), percent(result.precision.value), "AF", "CAP", "confidence 0.5–0.6"):
        assert words in page.text
    assert result.calibration is not None
    error = (
        f"{result.calibration.error_before:.2f} as stated, {result.calibration.error_after:.2f} calibrated"
    )
    assert error in page.text


def test_the_plot_tells_its_figures_to_those_who_hear_the_page(result: TrustResult, tmp_path: Path) -> None:
    spoken = re.findall(r"<desc[^>]*>(.*?)</desc>", page_of(result, tmp_path).html, re.DOTALL)
    assert len(spoken) == 2  # one plot, for two widths
    each = next(each for each in result.bins if each.mean is not None)
    share = f"{percent(each.right.value)}, {each.right.counts} of {each.right.out_of}"
    assert f"{each.mean:.2f} is right in {share}" in " ".join(spoken[0].split())
    assert "As stated: error" in spoken[0]
    assert "Calibrated: error" in spoken[0]


def test_the_same_result_gives_the_same_bytes(result: TrustResult, tmp_path: Path) -> None:
    made = datetime(2026, 1, 1, tzinfo=UTC)
    first, second = (
        write_trust_page(result, tmp_path / name, made=made).read_bytes() for name in ("a.html", "b.html")
    )
    assert first == second


def test_there_is_a_page_of_few_judged_images_and_of_none(tmp_path: Path) -> None:
    records, truth = overconfident(40, seed=1)
    run = write(tmp_path / "run", [*records.values()])
    uncanny.sample(run, size=8)
    none = page_of(uncanny.trust(run), tmp_path)
    check_static_page(none)
    for words in (
        "No image of the sample is judged yet",
        "No finding is judged",
        "No judged finding has a conf",
    ):
        assert words in none.text
    judge(run, records, truth)
    few = page_of(uncanny.trust(run), tmp_path)
    check_static_page(few)
    assert "by 8 judged images, too few for an interval." in few.text
    assert "Judge 22 more images" in few.text
    assert "A calibration needs 50 judged findings with a confidence in at least 10 images" in few.text


def test_what_others_wrote_stays_text(tmp_path: Path) -> None:
    found = [fault("odd", 20, 0.8, kind="text", found_by=[HOSTILE])]
    record = image_of("a.png", found).model_copy(update={"model": HOSTILE, "prompts": HOSTILE})
    run = write(tmp_path / "run", [record])
    uncanny.sample(run, size=1)
    judge(run, {"a.png": record}, {"a.png": found})
    page = page_of(uncanny.trust(run), tmp_path)
    check_static_page(page)
    assert "".join(page.words).count(HOSTILE) == 3
    assert not page.all("img")


def test_the_command_writes_the_page_and_nothing_over_another_file(tmp_path: Path) -> None:
    records, truth = overconfident(40, seed=1)
    run = write(tmp_path / "run", [*records.values()])
    uncanny.sample(run, size=8)
    judge(run, records, truth)
    page = tmp_path / "pages" / "trust.html"
    done = uncanny_here("trust", run, "--report", page)
    assert (done.code, done.err) == (0, "")
    assert f"Report   {page}" in done.out
    assert uncanny_here("trust", run, "--report", page, "--json", "-").json()["sample"]["size"] == 8
    mine = tmp_path / "mine.html"
    mine.write_text("mine")
    assert uncanny_here("trust", run, "--report", mine).code == 2
    assert mine.read_text() == "mine"
    assert uncanny_here("trust", run, "--report", mine, "--force", "-q").out == ""
    assert "uncanny" in mine.read_text()
