"""`uncanny.semantic.score` from Python: what it takes, how the result prints, its data frame and its page."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny
from tests.eval.semantic.given_similarity import GivenSimilarity
from tests.eval.semantic.made_scores import HOSTILE, ByKind, made_predictions, made_score, made_truth
from uncanny import semantic
from uncanny.errors import UsageError
from uncanny.eval.common.anomalies.image import MatchedImage
from uncanny.eval.common.anomalies.load import name_paths
from uncanny.eval.common.published import caveat
from uncanny.eval.semantic.score.result import SemanticScore
from uncanny.schema import Annotation, Anomaly

SIX = {
    "name": "Hand",
    "phenomenon": "The hand has six fingers.",
    "reasoning": "Hands have five.",
    "severity": 9,
}
CUP = {"name": "Cup", "phenomenon": "A cup hangs in the air.", "reasoning": "Gravity.", "severity": 5}
RECORDS = [
    {"image": "a.png", "anomalies": [SIX], "source": "generated"},
    {"image": "b.png", "anomalies": [CUP], "source": "real"},
]
ANNOTATIONS = [
    Annotation(
        image=image,
        sha256=None,
        width=None,
        height=None,
        status="ok",
        anomalies=(Anomaly.model_validate(anomaly),),
        model="openai/a",
        prompts="x",
    )
    for image, anomaly in (("a.png", SIX), ("b.png", CUP))
]


def score(predictions: Any, truth: Any = RECORDS, **options: Any) -> SemanticScore:
    defaults: dict[str, Any] = {"similarity": "chrf", "resamples": 20}
    return semantic.score(predictions, truth=truth, **(defaults | options))


def written(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return path


def test_everything_that_can_be_predictions_scores_alike(tmp_path: Path) -> None:
    file = written(tmp_path / "mine.jsonl", RECORDS)
    (tmp_path / "run").mkdir()
    written(tmp_path / "run" / "annotations.jsonl", RECORDS)
    run = uncanny.AnnotateRun(tmp_path / "run")
    forms: list[tuple[Any, list[str]]] = [
        (file, ["mine"]),
        (str(file), ["mine"]),
        ([file, str(written(tmp_path / "other.jsonl", RECORDS))], ["mine", "other"]),
        (run, ["run"]),
        (RECORDS, ["predictions"]),
        (ANNOTATIONS, ["predictions"]),
        ((record for record in RECORDS), ["predictions"]),
        (semantic.load(file), ["predictions"]),
        (
            {"x": file, "y": iter(RECORDS), "z": ANNOTATIONS, "w": semantic.load(RECORDS)},
            ["x", "y", "z", "w"],
        ),
    ]
    for predictions, names in forms:
        scores = score(predictions)
        assert list(scores.predictions) == names
        for name in names:
            assert scores[name].protocols["release"].semap["full"].value == 1
    assert score(RECORDS, truth=file).truth.images == 2
    assert score(RECORDS, truth=semantic.load(file, role="truth")).truth.anomalies == 2
    assert score(RECORDS).truth.path == "the truth"


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        ([], "no predictions"),
        ({}, "no predictions"),
        (7, "must be paths or records"),
        ({"a": 7}, "predictions 'a' must be a path"),
        (["a.jsonl", RECORDS[0]], "paths and records in one list"),
        (["none.jsonl"], "none.jsonl cannot be read"),
        ([{"anomalies": []}], "field 0.image: is missing"),
        ([7], "is missing"),
        ({"ours": [RECORDS[0], RECORDS[0]]}, "the predictions 'ours': 1 problem"),
        ([{"image": "z.png", "anomalies": []}], "no image of the predictions is in the truth"),
    ],
)
def test_what_are_no_predictions(predictions: Any, message: str) -> None:
    with pytest.raises(UsageError) as error:
        score(predictions)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"similarity": "bleu"}, "there is no similarity 'bleu'"),
        ({"thresholds": [0.0]}, "`thresholds` must be more than 0, not 0.0"),
        ({"balance": 2}, "`balance` must be at most 1"),
        ({"resamples": -1}, "resamples"),
        ({"backbone": "bert"}, "chrf has no backbone"),
        ({"similarity": ByKind(), "num_layers": 3}, "does not take a backbone"),
        ({"truth": []}, "the truth contains no image"),
        ({"truth": [{"image": "a.png", "status": "failed"}]}, "no image with status ok"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        score(RECORDS, **options)
    assert message in str(error.value)


def test_a_measure_of_ones_own_and_callbacks() -> None:
    totals: list[int] = []
    images: list[tuple[str, str]] = []

    def on_image(name: str, image: MatchedImage) -> None:
        images.append((name, image.pair.true.image))

    truth = made_truth(4)
    sets = {name: made_predictions(truth, 1.0, text=name) for name in ("a", "b")}
    scores = made_score(sets, truth, on_start=totals.append, on_image=on_image)
    assert totals == [8]
    assert images == [(name, image.image) for name in sets for image in truth.images]
    assert scores.measure["measure"] == "bertscore"
    assert scores.no_comparison is None


def test_names_of_paths(tmp_path: Path) -> None:
    for name, model in (("one", "openai/a"), ("two", "openai/a"), ("three", "openai/b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(json.dumps({"model": model}))
    (tmp_path / "bare").mkdir()
    one, two, three, bare = (tmp_path / name for name in ("one", "two", "three", "bare"))

    def names(*paths: Path | tuple[str, Path]) -> list[str]:
        return list(name_paths([path if isinstance(path, tuple) else (None, path) for path in paths]))

    assert names(three, bare, ("m", Path("file.json")), Path("other.jsonl")) == [
        "openai/b",
        "bare",
        "m",
        "other",
    ]
    assert names(one, two) == ["openai/a (one)", "openai/a (two)"]
    assert names(one / "x.json", two / "x.json") == ["x (one)", "x (two)"]
    beside = [one / f"x.{suffix}" for suffix in ("json", "jsonl")]
    assert names(*beside) == [str(path) for path in beside]
    assert names(three / "annotations.jsonl") == ["openai/b"]
    for paths in (
        [("a", Path("1.json")), ("a", Path("2.json"))],
        [(None, Path("1.json")), (None, Path("1.json"))],
    ):
        with pytest.raises(UsageError, match="two predictions are called"):
            name_paths(paths)


def test_images_one_by_one() -> None:
    scores = score([RECORDS[0]])["predictions"]
    first, second = scores.per_image()
    assert (first.image, first.predicted, first.n_pred, first.n_true) == ("a.png", "a.png", 1, 1)
    assert (first.semap["release"], first.semf1["paper"]) == ({"phe": 1, "rea": 1, "full": 1},) * 2
    assert (first.true_source, first.predicted_source) == ("generated", "generated")
    # Without a prediction it is in `paper` alone.
    assert (second.image, second.predicted, second.n_pred, second.semap["release"]) == (
        "b.png",
        None,
        0,
        None,
    )
    assert second.semap["paper"] == {"phe": 0, "rea": 0, "full": 0}


def test_a_row_a_score_in_a_data_frame() -> None:
    scores = score({"mine": RECORDS, "half": [RECORDS[0]]})
    frame = scores.to_pandas()
    assert len(frame) == 2 * (2 * 4 * 3 + 1)
    row = frame[(frame.predictions == "mine") & (frame.protocol == "paper") & (frame.metric == "semf1")].iloc[
        2
    ]
    assert (row["view"], row["value"], row["images"]) == ("full", 1.0, 2)
    assert row["low"] <= row["value"] <= row["high"]
    accuracy = frame[frame.metric == "accuracy"]
    assert list(accuracy["value"]) == [1.0, 1.0]
    assert accuracy["protocol"].isna().all()
    assert score(RECORDS, resamples=0).to_pandas()["low"].isna().all()


def test_the_page_goes_beside_the_predictions(tmp_path: Path) -> None:
    file = written(tmp_path / "mine.jsonl", RECORDS)
    assert score(file).report() == tmp_path / "semantic.html"
    page = score(RECORDS).report(tmp_path / "other.html", title="Mine")
    assert "<h1><bdi>Mine</bdi></h1>" in page.read_text("utf-8")
    with pytest.raises(UsageError, match="no folder"):
        score(RECORDS).report()


@pytest.fixture(scope="module")
def comparable() -> SemanticScore:
    """Scores as if they were made with the published backbone."""
    return made_score({"mine": made_truth()}, made_truth(), resamples=0, published=True)


def test_published_rows_stand_beside_ones_own(comparable: SemanticScore) -> None:
    text = str(comparable)
    assert "BERTScore F1, distilbert-base-uncased, layer 5" in text
    rows = [line.split() for line in text.splitlines() if line.startswith("LongVA-7B")]
    assert rows[:2] == [
        ["LongVA-7B", "SemAP", "–", "0.2579", "0.2593", "0.2494"],
        ["LongVA-7B", "SemF1", "–", "0.1641", "0.1617", "0.1578"],
    ]
    assert len(rows) == 5  # SemAP, SemF1, cSemAP, cSemF1, accuracy
    assert "do not compare" not in text
    assert caveat("semantic_scores", {"mine": ()}) in " ".join(text.split())
    without = str(replace(comparable, published=False))
    assert "the authors' prompts" not in without
    assert "LongVA-7B" not in without
    assert all(len(line) <= 80 for line in text.splitlines()), text


def test_published_detection_is_of_one_backbone_only(comparable: SemanticScore) -> None:
    other = replace(comparable, measure={**comparable.measure, "backbone": "google/mt5-large"})
    assert str(other).count("LongVA-7B") == 2


def test_a_notebook_shows_the_tables_and_names_stay_text() -> None:
    html = made_score({HOSTILE: made_truth()})._repr_html_()
    assert "<script>" not in html
    assert "SemAP" in html


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, uncanny.semantic; heavy = {'torch', 'numpy', 'rich', 'matplotlib', 'pandas', 'scipy'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules);"
        "assert callable(uncanny.semantic.score) and dir(uncanny.semantic) == uncanny.semantic.__all__;"
        "assert not {'torch', 'matplotlib', 'pandas', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_door_has_what_it_lists() -> None:
    assert all(getattr(semantic, name) is not None for name in semantic.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        semantic.nothing  # noqa: B018
    assert GivenSimilarity({}).compares_with_published is False
