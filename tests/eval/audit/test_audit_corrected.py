"""Audits of judged runs: corrected figures come first, and are compared with corrected ones alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from junitparser import Failure, JUnitXml

import uncanny
from tests.eval.trust.judged_runs import biased, judge, judged_run, write
from tests.runs.e2e import uncanny_here
from uncanny.errors import UncannyError, UsageError
from uncanny.eval.audit.score.result import AuditResult
from uncanny.eval.audit.score.trend import labels_of
from uncanny.eval.metrics.corrected import Design, fit_mean
from uncanny.eval.metrics.corrected_difference import difference

MANY, FEW = (0, 1, 1, 2), (0, 0, 0, 0, 0, 1)


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """The model makes up most in images that have the fewest faults."""
    return {"clean": tmp_path / "clean", "faulty": tmp_path / "faulty"}


def audited(places: Any, **parameters: Any) -> AuditResult:
    return uncanny.audit(places, resamples=200, min_confidence=0, **parameters)


@pytest.mark.slow
def test_generators_are_ranked_by_what_people_corrected(places: dict[str, Path], tmp_path: Path) -> None:
    true = {
        "clean": judged_run(places["clean"], 800, 1, size=120, faults=FEW, made_up=1.0),
        "faulty": judged_run(places["faulty"], 800, 2, size=120, faults=MANY, made_up=0.0),
    }
    model = audited(places, uncorrected=True)
    assert model.leaderboard.order == ("faulty", "clean")
    result = audited(places)
    board = result.leaderboard
    assert (board.order, board.is_corrected) == (("clean", "faulty"), True)
    assert board.differences[0].apart
    for name, figures in true.items():
        score = result[name]
        for figure, value in figures.items():
            shown = score.faults.visible if figure == "visible" else getattr(score, figure)
            low, high = shown.interval or (1.0, 0.0)
            assert low <= value <= high, (name, figure)
        assert score.corrected is not None
        assert score.mai == score.corrected.figures["mai"].estimate != score.model.mai
        assert score.model.mai == model[name].mai == model[name].model.mai
        own = result.to_json()["generators"][name]
        assert own["mai"] == model[name].mai.value
        assert own["visible"]["share"] == model[name].faults.visible.value
        assert own["corrected"] == uncanny.trust(places[name], min_confidence=0).trusted.to_json()
    assert "corrected by 120 judged images" in result.to_json()["headline"]
    assert "Corrected by people" in str(result)
    rows = list(result.rows())
    assert [row["judged"] for row in rows] == [120, 120]
    assert rows[0]["corrected_cap"] == result["clean"].cap.value != rows[0]["cap"]
    page = result.report(tmp_path / "audit.html").read_text()
    assert 'id="h-corrected"' in page
    assert 'id="h-corrected"' not in model.report(tmp_path / "model.html").read_text()
    assert model.to_json()["generators"]["clean"]["corrected"] is None


def test_prompts_pair_what_people_judged_of_two_generators(places: dict[str, Path]) -> None:
    judged_run(places["clean"], 300, 1, size=60)
    judged_run(places["faulty"], 300, 1, size=60)
    paired, alone = audited(places, pair_by="stem"), audited(places)
    both, apart = paired.leaderboard.differences[0], alone.leaderboard.differences[0]
    assert (both.paired, apart.paired) == (60, None)
    # The two are one and the same, prompt by prompt.
    assert both.cap.value == apart.cap.value == 0
    assert both.cap.interval is not None
    assert apart.cap.interval is not None
    assert both.cap.interval[1] < 0.5 * apart.cap.interval[1]


def test_a_corrected_figure_is_not_compared_with_one_of_the_model(
    places: dict[str, Path], tmp_path: Path
) -> None:
    judged_run(places["clean"], 200, 1, size=40, faults=FEW, made_up=1.0)
    judged_run(places["faulty"], 200, 2, size=0, faults=MANY, made_up=0.0)
    result = audited(places)
    board = result.leaderboard
    assert (board.is_corrected, board.order) == (False, ("faulty", "clean"))
    assert any("compared, uncorrected: too few images of faulty" in each for each in board.notices)
    # What people say of the one stands beside it all the same.
    assert result.to_json()["generators"]["clean"]["corrected"]["n"] == 40
    assert "Corrected by people" in str(result)
    # The page of its images says that its counts are others.
    result.report(tmp_path / "audit.html", reports=True)
    pages = [each.read_text() for each in sorted((tmp_path / "reports").iterdir())]
    assert ["audit.html, the page of the audit, has the figures that people" in each for each in pages] == [
        False,
        True,
    ]
    mixed = audited(places, allow_mixed=True).leaderboard
    assert (mixed.is_corrected, mixed.order) == (True, ("clean", "faulty"))
    assert mixed.differences[0].apart is None
    assert any("too few images of faulty are judged" in each for each in mixed.notices)
    # Of one with a sample that is hardly judged it is not said that people corrected it.
    judged_run(places["faulty"], 200, 2, size=5, faults=MANY, made_up=0.0)
    headline = audited(places, allow_mixed=True, own="faulty").to_json()["headline"]
    assert headline.startswith("faulty (ours) shows a visible fault in")
    assert "corrected by" not in headline.partition(". ")[0]


def test_a_sample_that_is_hardly_judged_corrects_nothing_and_says_what_is_missing(tmp_path: Path) -> None:
    judged_run(tmp_path / "run", 100, 1, size=12)
    result = audited({"a": tmp_path / "run"})
    assert result.to_json()["generators"]["a"]["corrected"] is None
    missing = "a: 12 images of its sample are judged; 18 more are needed for corrected figures."
    assert missing in result.leaderboard.notices
    (outcome,) = result.gate(["visible<1"]).outcomes
    assert (outcome.state, "18 more are needed" in outcome.why) == ("undecided", True)
    assert audited({"a": tmp_path / "run"}, uncorrected=True).gate(["visible>1"]).passed
    # What no judging brings is not asked for.
    judged_run(tmp_path / "small", 12, 1, size=12)
    small = "a: 12 images of its sample are judged, and it has only 12 images; 30 are needed."
    assert small in audited({"a": tmp_path / "small"}).leaderboard.notices


def gate(places: dict[str, Path], junit: Path, *conditions: str) -> tuple[int, JUnitXml]:
    fail_if = [part for each in conditions for part in ("--fail-if", each)]
    base = [f"a={places['now']}", "--before", f"a={places['before']}", "--resamples", "200"]
    done = uncanny_here("audit", *base, *fail_if, "--junit", str(junit), "--quiet")
    return done.code, JUnitXml.fromfile(str(junit))


def test_gates_are_about_corrected_figures(tmp_path: Path) -> None:
    """A release that the model takes for a better one, though it is worse."""
    places = {"before": tmp_path / "before", "now": tmp_path / "now"}
    judged_run(places["before"], 600, 1, size=150, faults=FEW, made_up=1.0)
    true = judged_run(places["now"], 600, 2, size=150, faults=MANY, made_up=0.0)
    conditions = ("worse", "upper:visible>0.99", "lower:visible>0.5", "kind:text:worse", "kind:anatomy:worse")
    code, results = gate(places, tmp_path / "gate.xml", *conditions)
    cases = {case.name: case.result for suite in results for case in suite}
    assert (code, results.failures, results.errors) == (4, 3, 0)
    assert {name: [type(each) for each in found] for name, found in cases.items()} == {
        "worse": [Failure],
        "upper:visible>0.99": [],
        "lower:visible>0.5": [Failure],
        "kind:text:worse": [],
        "kind:anatomy:worse": [Failure],
    }
    result = audited({"a": places["now"]}, before={"a": places["before"]})
    release = result.releases["a"]
    assert release.judged == (150, 150)
    assert release.figures["visible"].verdict == "worse"
    assert release.figures["visible"].now == pytest.approx(true["visible"], abs=0.1)
    assert "by 150 and 150 judged images" in result.to_json()["headline"]
    by_model = audited({"a": places["now"]}, before={"a": places["before"]}, uncorrected=True)
    assert by_model.releases["a"].figures["visible"].verdict != "worse"


def test_a_release_without_a_judged_sample_is_undecided(tmp_path: Path) -> None:
    places = {"before": tmp_path / "before", "now": tmp_path / "now"}
    judged_run(places["before"], 100, 1, size=0)
    judged_run(places["now"], 100, 2, size=40)
    code, results = gate(places, tmp_path / "gate.xml", "worse", "visible>1")
    (worse,), level = ([*case.result] for suite in results for case in suite)
    assert (code, worse.type, level) == (4, "undecided", [])
    assert "before: people have not judged a sample of it" in worse.message
    done = uncanny_here("audit", f"a={places['now']}", "--before", f"a={places['before']}", "--json", "-")
    assert orjson.loads(done.out)["before"]["a"]["judged"] is None
    assert "These are the model's figures (before: people have not judged a sample of it" in str(
        audited({"a": places["now"]}, before={"a": places["before"]})
    )


def test_a_gate_does_not_pass_on_what_it_cannot_see(tmp_path: Path) -> None:
    run = tmp_path / "run"
    judged_run(run, 100, 1, size=60)

    def outcome(condition: str, **parameters: Any) -> tuple[str, str]:
        (found,) = audited({"a": run}, **parameters).gate([condition]).outcomes
        return found.state, found.why

    assert outcome("upper:visible>0.99")[0] == "clear"
    # Kinds that the model does not record are not 0.
    lines = (run / "annotations.jsonl").read_text()
    (run / "annotations.jsonl").write_text(re.sub('"kind":"[a-z]+"', '"kind":null', lines))
    assert outcome("kind:text>0.1")[0] == "unmeasured"
    (run / "annotations.jsonl").write_text(lines)
    # What people are unsure of decides.
    log = run / "reviews.jsonl"
    verdicts = log.read_text()
    log.write_text(verdicts.replace('"accept"', '"unsure"'))
    state, why = outcome("visible>0.2")
    assert (state, "if all that people are unsure of is true" in why) == ("undecided", True)
    assert "People are unsure of some findings" in str(uncanny.trust(run, min_confidence=0))
    # Somebody passed an image over, or judged it with another confidence.
    first = json.loads(verdicts.splitlines()[0])["image"]
    log.write_text("".join(each for each in verdicts.splitlines(True) if f'"{first}"' not in each))
    state, why = outcome("upper:visible>0.99")
    assert (state, "1 image of the sample was passed over" in why) == ("undecided", True)
    log.write_text(verdicts)
    # The run grew after its sample was drawn.
    more = lines.splitlines()[0].replace('"image":"0', '"image":"9')
    (run / "annotations.jsonl").write_text(f"{lines}{more}\n")
    state, why = outcome("upper:visible>0.99")
    assert (state, "its sample was drawn from 100 of 101 images" in why) == ("undecided", True)
    assert outcome("visible>1", uncorrected=True)[0] == "clear"
    # A sample that cannot be read is not none.
    (run / "sample.json").unlink()
    (run / "sample.json").mkdir()
    with pytest.raises(UncannyError, match="is not a regular file"):
        audited({"a": run})
    with pytest.raises(UsageError, match="visible is a share, in 0–1"):
        audited({"a": run}, uncorrected=True).gate(["visible>20"])


def test_few_prompts_correct_nothing(tmp_path: Path) -> None:
    """Forty judged images of eight prompts say little of others."""
    records, truth = biased(40, seed=1)
    run = write(
        tmp_path / "run",
        [each.model_copy(update={"prompt": f"p{n % 8}"}) for n, each in enumerate(records.values())],
    )
    uncanny.sample(run, size=40)
    judge(run, records, truth)
    assert audited({"a": run}).leaderboard.is_corrected
    few = audited({"a": run}, pair_by="prompt").leaderboard
    assert not few.is_corrected
    assert any("of 8 prompts; corrected figures need 10" in each for each in few.notices)


@pytest.mark.slow
@pytest.mark.parametrize("found", [0.1, 0.7])
def test_equal_releases_pass_where_prompts_have_several_images(found: float) -> None:
    """A model that finds little does not see that images of a prompt go together; people do."""
    draw, failed = np.random.default_rng(1), 0
    prompts = np.repeat(np.arange(100), 4)
    for _ in range(200):
        hard = draw.gamma(0.3, 1 / 0.3, 100)[prompts]
        fits = []
        for _release in range(2):
            people = draw.poisson(0.3 * hard)
            model = draw.binomial(people, found) + draw.poisson(0.3, 400)
            design = Design(400, np.arange(400), np.ones(400), prompts)
            fits.append(fit_mean(design, model, people))
        p_value = difference(*fits).p_value
        assert p_value is not None
        failed += p_value <= 0.05
    assert failed <= 18


@pytest.mark.slow
def test_an_equal_release_passes_in_95_of_100_pipelines(tmp_path: Path) -> None:
    """Two releases with the same faults, of which the model thinks differently."""
    passed = 0
    for number in range(100):
        now, before = tmp_path / f"{number}", tmp_path / f"{number}-before"
        judged_run(now, 300, 2 * number, size=60, made_up=0.6)
        judged_run(before, 300, 2 * number + 1, size=60, made_up=0.2)
        result = uncanny.audit({"a": now}, before={"a": before}, resamples=0, min_confidence=0)
        (outcome,) = result.gate(["worse"]).outcomes
        assert outcome.state in ("clear", "holds"), outcome.why
        passed += outcome.passed
    assert passed >= 95


@pytest.mark.slow
def test_a_series_of_releases_tells_where_it_changed(tmp_path: Path) -> None:
    """A model that makes up less and less hides that faults became more frequent with v9."""
    runs = tmp_path / "releases"
    for number in (7, 8, 9, 10, 11):
        later = number >= 9
        judged_run(
            runs / f"v{number}",
            400,
            number,
            size=100,
            faults=MANY if later else FEW,
            made_up=0.8 - 0.2 * later,
        )
    now = (runs / "v11").rename(tmp_path / "v11")
    result = audited({"a": now}, before={"a": runs})
    trend = result.trends["a"]
    assert trend.labels == ["releases/v7", "releases/v8", "releases/v9", "releases/v10", "v11"]
    assert trend.is_corrected
    assert {what: each.place for what, each in trend.proven().items()} == dict.fromkeys(trend.changes, 2)
    assert result.releases["a"].figures["visible"].before == trend.figure("releases/v10", "visible").value
    assert "Visible faults changed at releases/v9:" in str(result)
    own = result.to_json()["trends"]["a"]
    assert [each["judged"] for each in own["releases"]] == [100] * 5
    assert own["changes"]["cap"]["significant"] is True
    page = result.report(tmp_path / "audit.html").read_text()
    assert 'id="h-trend"' in page
    # The same by the command, release by release; they are in the order in which they were given.
    places = [str(runs / f"v{number}") for number in (7, 8, 9, 10)]
    before = [part for each in places for part in ("--before", f"a={each}")]
    done = uncanny_here(
        "audit", f"a={now}", *before, "--min-confidence", "0", "--resamples", "200", "--json", "-"
    )
    assert orjson.loads(done.out)["trends"]["a"] == own
    assert audited({"a": now}, before={"a": places}).to_json()["trends"]["a"] == own
    # What now has is what the leaderboard has, and a release that is hardly judged is named.
    assert trend.figure("v11", "af") == result["a"].af
    judged_run(runs / "v6", 400, 6, size=12, faults=FEW)
    few = audited({"a": now}, before={"a": runs}).trends["a"]
    assert not few.is_corrected
    assert any("releases/v6: 12 images of its sample are judged" in each for each in few.notices)
    # That of now may lie in the folder of releases, which is not compared with itself.
    again = now.rename(runs / "v11")
    assert audited({"a": again}, before={"a": runs}).trends["a"].labels[-2:] == ["v10", "v11"]
    with pytest.raises(UsageError, match="named twice"):
        audited({"a": again}, before={"a": [runs / "v10", runs / "v10"]})
    # One earlier release is no series.
    assert not audited({"a": again}, before={"a": places[-1]}).trends


def test_a_folder_without_a_run_is_no_earlier_release(tmp_path: Path) -> None:
    judged_run(tmp_path / "now", 20, 1, size=0)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="is not a run and contains none"):
        audited({"a": tmp_path / "now"}, before={"a": tmp_path / "empty"})


def test_releases_are_called_by_what_differs_in_their_places() -> None:
    assert labels_of(["runs/v1/ours", "runs/v2/ours", "runs/v10/ours"]) == ["v1", "v2", "v10"]
    assert labels_of(["old/a", "b"]) == ["old/a", "b"]
    assert labels_of(["list 'a'", "list 'a'"]) == ["1", "2"]
