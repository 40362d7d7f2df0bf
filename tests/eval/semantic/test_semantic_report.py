"""The page of semantic scores: well-formed, self-contained, and safe whatever files hold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from tests.eval.common.page_text import Page, check_script, check_static_page
from tests.eval.semantic.made_scores import (
    ARABIC,
    HOSTILE,
    LONG,
    MADE,
    SCRIPTS,
    ByKind,
    cells_of,
    made_predictions,
    made_score,
    made_truth,
    page_of,
    section,
)
from uncanny.eval.common.anomalies.load import scenes_truth
from uncanny.eval.metrics.semap import VIEWS
from uncanny.eval.semantic.report.page import write_semantic_page
from uncanny.eval.semantic.report.rows import amount
from uncanny.eval.semantic.score.result import SemanticScore
from uncanny.semantic import score as score_of


@pytest.mark.slow
def test_the_page_stands_by_itself(page: Page) -> None:
    check_static_page(page)


def test_what_others_wrote_stays_text(page: Page) -> None:
    check_script(page)
    assert not page.all("img")
    assert not [attrs for _, attrs in page.tags if "onerror" in attrs]
    assert page.html.count("</style>") == 1
    for text in (HOSTILE, LONG, SCRIPTS, ARABIC):
        assert text in "".join(page.words)


def test_the_same_score_gives_the_same_bytes(two: SemanticScore, tmp_path: Path) -> None:
    first, second = (
        write_semantic_page(two, tmp_path / name, made=MADE).read_bytes() for name in ("a.html", "b.html")
    )
    assert first == second


def test_what_is_left_out_is_counted_and_listed(page_of_two: Page) -> None:
    text = Page(section(page_of_two, "left")).text
    for words in ("2 without a prediction", "1 not in the truth", "1 failed"):
        assert words in text
    for image in ("set/000.png", "set/001.png", "elsewhere.png", "set/006.png"):
        assert f'<code dir="auto">{image}</code>' in section(page_of_two, "left")
    assert page_of_two.text.index("Some images are not counted") < page_of_two.text.index("By threshold")


def test_pairs_stand_side_by_side(two: SemanticScore, page_of_two: Page) -> None:
    html = section(page_of_two, "read")
    examples = two.predictions["good"].examples
    for example in (*examples.worst, *examples.best):
        article = next(
            part
            for part in html.split("<article")
            if example.image in part and f"<b>{amount(example.similarity['full'])}</b>" in part
        )
        assert article.index("Predicted") < article.index(example.predicted.phenomenon)
        assert article.index(example.predicted.phenomenon) < article.index("<h4>True")
        assert article.index("<h4>True") < article.index(example.true.phenomenon)
        for view in VIEWS:
            assert amount(example.similarity[view]) in article
    assert html.count("True, without a match") == sum(
        len(each.examples.missed) for each in two.predictions.values()
    )


def test_a_long_text_can_be_reached_by_keyboard(page: Page) -> None:
    long = [attrs for attrs in page.all("dd") if attrs.get("class") == "long"]
    assert long
    assert all(attrs["tabindex"] == "0" for attrs in long)


def test_beside_published_rows_stands_in_what_else_they_differ(page: Page, page_of_two: Page) -> None:
    section = page.text.split("Beside published rows")[1]
    assert "asked with the authors' prompts about the authors' test images" in section
    assert "the authors' prompts" not in page_of_two.text


def test_chrf_compares_with_nothing_published(tmp_path: Path) -> None:
    truth = scenes_truth()
    score = made_score({"same": truth}, truth, "chrf")
    page = page_of(tmp_path, score, published=True)
    assert "Published figures do not compare with these. chrF" in page.text
    assert 'id="h-published"' not in page.html


def test_another_published_backbone_says_which_table_compares(tmp_path: Path) -> None:
    truth = made_truth()
    score = made_score({"m": made_predictions(truth, 0.5)}, truth, ByKind("roberta-large-mnli"))
    page = page_of(tmp_path, score, published=True)
    assert "Most published figures do not compare" in page.text
    assert len(cells_of(page, "Published and own SemAP and SemF1")) == 19
    assert "Published and own cSemAP" not in page.html


def test_without_any_file_there_is_a_page(two: SemanticScore, tmp_path: Path) -> None:
    page = page_of(tmp_path, replace(two, predictions={}, differences=()), published=True)
    assert "No predictions." in page.text


def test_a_pair_shows_its_picture_with_what_is_predicted_and_true(tmp_path: Path) -> None:
    file, anomaly = tmp_path / "run" / "predicted.jsonl", {"name": "n", "phenomenon": "p", "reasoning": "r"}
    file.parent.mkdir()
    Image.new("RGB", (40, 30), "red").save(file.parent / "a.png")
    predicted = {"image": "a.png", "anomalies": [anomaly | {"severity": 8, "box": [1, 2, 30, 20]}]}
    file.write_text(json.dumps(predicted) + "\n")
    truth = [{"image": "a.png", "anomalies": [anomaly, anomaly | {"name": "missed"}]}]
    score = score_of(file, truth=truth, similarity="chrf", resamples=0)
    page = Page(score.report(tmp_path / "page.html").read_text(encoding="utf-8"))
    check_static_page(page)
    assert len(page.all("img")) == 2  # of the match, and of what was missed
    assert "8 of 100 realistic" in page.text
    (view,) = json.loads(page.html.split('id="views">')[1].split("</script>")[0])
    assert view["layers"][0]["src"] == "run/a.png"
    assert [(mark["group"], mark["name"], mark["box"]) for mark in view["marks"]] == [
        ("predicted", "n", [1, 2, 30, 20]),
        ("true", "n", None),
        ("true", "missed", None),
    ]
    assert "pairs" not in score.to_json()["predictions"]["predicted"]["examples"]
