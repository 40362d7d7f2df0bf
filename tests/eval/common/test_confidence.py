"""Findings that a model is not sure of are left out of scores, pages, exports and reviews, and counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import uncanny
import uncanny.semantic
from tests.eval.audit.annotation_sets import anomaly, record
from uncanny.annotation.report.page import write_report
from uncanny.errors import UsageError
from uncanny.eval.common.confidence import Sure, sure_enough
from uncanny.schema import Annotation, Anomaly
from uncanny.service.review.queue import Filters
from uncanny.service.review.run import ReviewRun
from uncanny.wording import percent_sure

# Of two images: sure, doubtful, on the edge; and one without a confidence.
CONFIDENCES: Sequence[Sequence[float | None]] = [[0.9, 0.2, 0.5], [None]]


def records(confidences: Sequence[Sequence[float | None]] = CONFIDENCES) -> list[Annotation]:
    lines = []
    for number, of_image in enumerate(confidences):
        anomalies = [
            anomaly(10 * place, f"fault {number}.{place}") | {"confidence": each}
            for place, each in enumerate(of_image)
        ]
        digest = f"{number:064x}"
        lines.append(Annotation.model_validate(record(f"{number}.png", sha256=digest, anomalies=anomalies)))
    return lines


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "annotations.jsonl").write_text("".join(f"{each.model_dump_json()}\n" for each in records()))
    (folder / "run.json").write_text(json.dumps({"format": 2, "task": "annotate"}))
    return folder


@pytest.mark.parametrize(
    ("least", "left_out"), [(0, 0), (0.2, 0), (0.21, 1), (0.5, 1), (0.51, 2), (0.9, 2), (1, 3)]
)
def test_what_has_the_least_confidence_or_none_counts(least: float, left_out: int) -> None:
    for each, missing in zip(records(), (left_out, 0), strict=True):
        kept, number = sure_enough(each.anomalies, least)
        assert number == missing == len(each.anomalies) - len(kept)
        assert all(one.confidence is None or one.confidence >= least for one in kept)


def test_a_run_without_confidences_is_told_from_one_that_leaves_findings_out() -> None:
    without = records([[None], [None, None]])
    both = {"old": without, "new": records()}
    told = "old has findings without a confidence, which all count, while some of new are left out."
    for result in (uncanny.compare(both), uncanny.compare({"new": records(), "old": without})):
        (notice,) = [each for each in result.comparisons[0].notices if "without a confidence" in each]
        assert notice.startswith(told)
    audited = uncanny.audit(both, resamples=0, allow_mixed=True)
    assert any(each.startswith(told) for each in audited.leaderboard.notices)
    alike = uncanny.compare(both, min_confidence=0)
    assert not [each for each in alike.comparisons[0].notices if "without a confidence" in each]


def test_a_page_that_hides_all_findings_does_not_say_that_there_are_none(tmp_path: Path) -> None:
    lines = "".join(f"{each.model_dump_json()}\n" for each in records([[0.9]]))
    (tmp_path / "annotations.jsonl").write_text(lines)
    for least, title in ((1, "No anomaly from confidence 1 in 1 image"), (0.5, "1 anomaly in 1 of 1 image")):
        assert title in write_report(tmp_path, min_confidence=least).read_text(encoding="utf-8")


def test_the_words_say_how_many_and_below_what() -> None:
    assert not Sure(0.5)
    assert str(Sure(0.5, 1)) == "1 finding below confidence 0.5 is left out"
    assert str(Sure(0.25, 1200)) == "1,200 findings below confidence 0.25 are left out"
    assert percent_sure(0.85) == "85 % sure"
    assert percent_sure(0.29) == "29 % sure"
    assert percent_sure(0.999) == "99 % sure"


@pytest.mark.parametrize("wrong", [-0.01, 1.01, True, "0.5", float("nan"), float("inf")])
def test_a_confidence_is_a_number_from_0_to_1(wrong: object) -> None:
    with pytest.raises(ValidationError):
        Anomaly.model_validate(anomaly(5) | {"confidence": wrong})


def test_an_audit_leaves_out_what_is_doubtful_and_says_so() -> None:
    sources = {"m": records()}
    result = uncanny.audit(sources, resamples=0)
    assert (result["m"].anomalies, result["m"].sure.left_out) == (3, 1)
    assert "m: 1 finding below confidence 0.5 is left out." in str(result)
    content = result.to_json()
    assert content["min_confidence"] == 0.5
    assert content["generators"]["m"]["left_out_below_confidence"] == 1
    every = uncanny.audit(sources, resamples=0, min_confidence=0)
    assert (every["m"].anomalies, every["m"].sure.left_out) == (4, 0)
    assert "below confidence" not in str(every)
    with pytest.raises(UsageError, match="must be at most 1"):
        uncanny.audit(sources, min_confidence=1.5)


def test_figures_are_those_of_the_records_without_the_doubtful_findings() -> None:
    least = 0.6
    kept = [Sure(least).record(each) for each in records()]
    doubtful = uncanny.audit({"m": records(), "n": records()}, min_confidence=least).to_json()
    alone = uncanny.audit({"m": kept, "n": kept}, min_confidence=0).to_json()
    for content in (doubtful, alone):
        for name in ("m", "n"):
            del content["generators"][name]["left_out_below_confidence"]
        del content["notices"], content["min_confidence"]
    assert doubtful == alone


def test_a_comparison_leaves_out_what_is_doubtful_on_both_sides() -> None:
    sources = {"a": records(), "b": records([[None, None, 0.1], [0.4]])}
    result = uncanny.compare(sources, resamples=0)
    content = result.to_json()
    assert content["left_out_below_confidence"] == [1, 2]
    assert content["settings"]["min_confidence"] == 0.5
    assert "b: 2 findings below confidence 0.5 are left out." in str(result)
    every = uncanny.compare(sources, resamples=0, min_confidence=0).to_json()
    assert (every["anomalies"]["in_common"], every["left_out_below_confidence"]) == (4, [0, 0])
    assert content["anomalies"]["in_common"] < 4


def test_a_semantic_score_takes_the_truth_as_it_is(tmp_path: Path) -> None:
    truth = records()
    scores = uncanny.semantic.score(truth, truth=truth, similarity="chrf", resamples=0)
    prediction = scores["predictions"]
    assert (prediction.columns.n_pred.tolist(), prediction.columns.n_true.tolist()) == ([2, 1], [3, 1])
    assert scores.truth.anomalies == 4
    assert "predictions: 1 finding below confidence 0.5 is left out" in str(scores)
    assert scores.to_json()["predictions"]["predictions"]["left_out_below_confidence"] == 1
    page = scores.report(tmp_path / "semantic.html").read_text()
    assert "1 finding below confidence 0.5 is left out" in page
    whole = uncanny.semantic.score(truth, truth=truth, similarity="chrf", resamples=0, min_confidence=0)
    assert whole["predictions"].columns.n_pred.tolist() == [3, 1]


def test_what_other_tools_call_confidence_may_be_something_else() -> None:
    odd = anomaly(5) | {"confidence": "high"}
    loaded = uncanny.semantic.load([{"image": "a.png", "anomalies": [odd, anomaly(5) | {"confidence": 7}]}])
    assert [each.confidence for each in loaded.images[0].anomalies] == [None, None]


def test_an_export_leaves_out_what_is_doubtful_unless_people_said_something(
    run: Path, tmp_path: Path
) -> None:
    def exported(name: str, **options: Any) -> tuple[list[float | None], uncanny.ExportResult]:
        result = uncanny.export(run, to="jsonl", out=tmp_path / name, **options)
        lines = (tmp_path / name).read_text().splitlines()
        return [each["confidence"] for line in lines for each in json.loads(line)["anomalies"]], result

    found, result = exported("a.jsonl", all=True)
    assert found == [0.9, 0.5, None]
    assert result.left_out["anomalies"] == {"below confidence 0.5": 1}
    assert "1 below confidence 0.5" in str(result)
    assert exported("b.jsonl", all=True, min_confidence=0)[0] == [0.9, 0.2, 0.5, None]
    review = ReviewRun.open(run)
    ids = review.page(None, Filters("all", "file", doubtful=True), None, 9)
    review.judge(ids[1], review.view(ids[1], None, None).text, "accept", "ann")
    assert exported("c.jsonl")[0] == [0.2]


def test_formats_have_the_confidence(run: Path, tmp_path: Path) -> None:
    uncanny.export(run, to=["csv", "coco", "labelme", "labelstudio", "cvat"], out=tmp_path / "x", all=True)
    assert '"confidence":0.9' in (tmp_path / "x/coco/without_boxes.jsonl").read_text()
    rows = (tmp_path / "x/anomalies.csv").read_text().splitlines()
    place = rows[0].split(",").index("confidence")
    assert [row.split(",")[place] for row in rows[1:]] == ["0.9", "0.5", ""]
    tasks = json.loads((tmp_path / "x/labelstudio/tasks.json").read_text())
    assert tasks[0]["predictions"][0]["result"][0]["score"] == 0.9
    assert "score" not in tasks[1]["predictions"][0]["result"][0]
    written = "".join(file.read_text() for file in (tmp_path / "x").rglob("*.json"))
    assert '"confidence": 0.9' in written or '"confidence":0.9' in written


def test_the_page_of_a_run_counts_the_sure_ones_and_has_the_others_too(run: Path) -> None:
    page = write_report(run).read_text()
    assert "1 finding below confidence 0.5 is hidden" in page
    assert "3 anomalies in 2 of 2 images" in page
    block = page.partition('id="data"')[2].partition(">")[2].partition("</script>")[0]
    image = next(each for each in json.loads(block)["images"] if each["image"] == "0.png")
    assert [each["confidence"] for each in image["anomalies"]] == [0.9, 0.5]
    assert [each["confidence"] for each in image["doubtful"]] == [0.2]
    every = write_report(run, min_confidence=0).read_text()
    assert "is hidden" not in every
    assert "4 anomalies" in every


def test_the_review_hides_what_is_doubtful_and_keeps_its_verdicts(run: Path) -> None:
    review = ReviewRun.open(run)
    shown = review.page(None, Filters("all", "file"), "ann", 9)
    every = review.page(None, Filters("all", "file", doubtful=True), "ann", 9)
    assert (len(shown), len(every)) == (3, 4)
    hidden = next(each for each in every if each not in shown)
    assert review.progress(Filters("all"), "ann").findings == 3
    assert review.progress(Filters("all"), "ann").doubtful == 1
    assert review.progress(Filters("all", doubtful=True), "ann").findings == 4
    assert hidden not in [at for at, _ in review.view(shown[0], Filters("all"), "ann").siblings]
    review.judge(hidden, review.view(hidden, None, "ann").text, "accept", "ann")
    assert review.page(None, Filters("accepted"), "ann", 9) == []
    assert review.page(None, Filters("accepted", doubtful=True), "ann", 9) == [hidden]
    assert len(ReviewRun.open(run, min_confidence=0.1).page(None, Filters("all"), "ann", 9)) == 4


def test_records_and_notebooks_say_how_sure_the_model_is() -> None:
    first, second = records()
    assert str(first).splitlines()[1].endswith("(90 % sure)")
    assert "sure" not in str(second)
    assert "90 % sure" in uncanny.FindingsPicture(first)._repr_html_()
    assert str(uncanny.FindingsPicture(first.anomalies[1])).endswith("(20 % sure)")
