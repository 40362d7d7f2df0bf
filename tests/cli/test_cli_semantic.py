"""`uncanny semantic`: files side by side, what is left out, names, and files that cannot be scored."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.cli.complaints import one_line, problems
from tests.runs.e2e import Done, uncanny_here
from uncanny.cli.semantic import named_predictions
from uncanny.cli.semantic_table import score_text
from uncanny.errors import UsageError
from uncanny.eval.common.published import CAVEATS
from uncanny.eval.semantic.data.files import load_truth, scenes_truth
from uncanny.eval.semantic.score.result import SemanticScore
from uncanny.eval.semantic.score.score import ScoreSettings, score_semantic
from uncanny.eval.semantic.similarity.base import MeasureOptions, open_measure

CHRF = ("--similarity", "chrf", "--resamples", "20", "--no-report")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("semantic") / "run"
    assert uncanny_here("demo", "-o", run, "-q").code == 0
    return run


def scenes_file(path: Path, **changes: Any) -> Path:
    """The bundled truth as a file in the released form, without sources."""
    found = {
        image.image: [
            {
                "Name": one.name,
                "Observed Phenomenon": one.phenomenon,
                "Reasoning": one.reasoning,
                "Severity Score": f"{one.severity}/100 (…)",
            }
            for one in image.anomalies
        ]
        for image in scenes_truth().images
    }
    path.write_bytes(orjson.dumps(found | changes))
    return path


def scored(*arguments: object, truth: object = "scenes") -> Done:
    return uncanny_here("semantic", *CHRF, "--truth", truth, *arguments)


def test_a_run_against_the_bundled_truth(demo: Path) -> None:
    done = scored(demo)
    assert (done.code, done.err) == (0, "")
    assert all(len(line) <= 80 for line in done.out.splitlines()), done.out
    assert "Published figures do not compare" in done.out
    found = scored(demo, "--json", "-").json()["predictions"]
    assert list(found) == ["demo"]
    assert found["demo"]["release"]["images"] == found["demo"]["paper"]["images"] == 20
    assert (found["demo"]["accuracy"], found["demo"]["paper"]["csemap"]) == (None, None)


def test_the_truth_against_itself(tmp_path: Path) -> None:
    found = scored(scenes_file(tmp_path / "same.json"), "--json", "-").json()["predictions"]["same"]
    # Ten images have nothing wrong, which release scores 0 and paper 1.
    assert found["release"]["semap"] == {"phe": 0.5, "rea": 0.5, "full": 0.5}
    assert found["paper"]["semf1"] == {"phe": 1, "rea": 1, "full": 1}


def test_several_files_side_by_side(tmp_path: Path, demo: Path) -> None:
    same = scenes_file(tmp_path / "same.json")
    out, rows = tmp_path / "scores.json", tmp_path / "rows.jsonl"
    done = scored(demo, f"theirs={same}", f"again={demo}", "--json", out, "--per-image", rows)
    assert (done.code, done.err) == (0, "")
    assert all(len(line) <= 80 for line in done.out.splitlines()), done.out
    assert "theirs − again" in done.out
    found = json.loads(out.read_bytes())
    assert list(found["predictions"]) == ["demo", "theirs", "again"]
    assert len(found["differences"]) == 3 * 2 * 2 * 3
    read = [orjson.loads(line) for line in rows.read_bytes().splitlines()]
    assert len(read) == 60
    assert {line["predictions"] for line in read} == set(found["predictions"])


def test_what_is_left_out_is_listed(tmp_path: Path) -> None:
    truth = scenes_file(tmp_path / "truth.json", **{"only-there.png": []})
    lines: list[dict[str, Any]] = [
        {"image": "d01-six-fingers.png", "anomalies": [], "status": "failed"},
        {"image": "only-here.png", "anomalies": []},
    ]
    lines += [
        {"image": image.image, "anomalies": "I see nothing but a cup"}
        for image in scenes_truth().images
        if "d01-six" not in image.image
    ]
    mine = tmp_path / "mine.jsonl"
    mine.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    done = scored(mine, truth=truth)
    assert done.code == 1
    told = " ".join(done.out.split())
    assert "mine: 1 image without a prediction: not in release, empty in paper (only-there.png)" in told
    assert "mine: 1 predicted image not in the truth and in no figure (only-here.png)" in told
    assert "mine: 1 failed record in no score; run it again (d01-six-fingers.png)" in told
    assert "mine: 19 answers not a list of anomalies" in told


def test_detection_has_its_tables(tmp_path: Path) -> None:
    mine = tmp_path / "mine.jsonl"
    lines: list[dict[str, Any]] = [
        {"image": image.image, "anomalies": [], "source": "real" if number else None}
        for number, image in enumerate(scenes_truth().images)
    ]
    mine.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    done = scored(mine)
    assert done.code == 0
    assert "cSemAP" in done.out
    line = next(line for line in done.out.splitlines() if "accuracy" in line)
    below = done.out.splitlines()[done.out.splitlines().index(line) + 1].split()
    # Nine of ten real ones, none of the generated; one answer says nothing.
    assert (below[1], below[2], below[-1]) == ("20", "0.4500", "1")


def test_files_that_cannot_be_scored(tmp_path: Path, demo: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"anomalies": []}\nnot json\n')
    problems(scored(bad), "bad.jsonl: 2 problems", "line 1, field image", "line 2: not valid JSON")
    problems(scored(demo, truth=bad), "bad.jsonl: 2 problems")
    one_line(scored(tmp_path / "none.json"), "none.json cannot be read")
    one_line(scored(demo, truth=tmp_path / "none.json"), "none.json cannot be read")
    other = tmp_path / "other.json"
    other.write_text('{"x.png": []}')
    one_line(scored(other), "no image of", "x.png", "Name images alike")
    one_line(scored(f"a={demo}", f"a={other}"), "two predictions are called 'a'")
    one_line(scored("=x"), "NAME=PATH")
    one_line(scored(demo, "--json", tmp_path / "no" / "scores.json"), "cannot be written")
    one_line(scored(demo, "--per-image", "-"), "- cannot be written")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--thresholds", "0.7,x"), "--thresholds"),
        (("--thresholds", "0"), "thresholds"),
        (("--lambda", "2"), "--lambda"),
        (("--num-layers", "0"), "--num-layers"),
        (("--backbone", "bert"), "chrf has no backbone"),
        (("--similarity", "bleu"), "--similarity"),
    ],
)
def test_options_that_make_no_sense(demo: Path, options: tuple[str, ...], said: str) -> None:
    problems(scored(demo, *options), said)


def test_no_rows_are_left_of_a_run_that_fails(tmp_path: Path, demo: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    one_line(scored(demo, "--per-image", rows, "--lambda", "0.5", truth=tmp_path / "none"), "none")
    assert list(tmp_path.iterdir()) == []


def test_names(tmp_path: Path) -> None:
    for name, model in (("one", "openai/a"), ("two", "openai/a"), ("three", "openai/b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(json.dumps({"model": model}))
    (tmp_path / "bare").mkdir()
    (tmp_path / "x=y.json").write_text("{}")
    one, two, three, bare = (str(tmp_path / name) for name in ("one", "two", "three", "bare"))
    assert list(named_predictions([three, bare, "m=file.json", "other.jsonl"])) == [
        "openai/b",
        "bare",
        "m",
        "other",
    ]
    assert list(named_predictions([one, two])) == ["openai/a (one)", "openai/a (two)"]
    apart = [str(tmp_path / "one" / "x.json"), str(tmp_path / "two" / "x.json")]
    assert list(named_predictions(apart)) == ["x (one)", "x (two)"]
    beside = [str(tmp_path / "one" / f"x.{suffix}") for suffix in ("json", "jsonl")]
    assert list(named_predictions(beside)) == beside
    assert list(named_predictions([f"{three}/annotations.jsonl", str(tmp_path / "x=y.json")])) == [
        "openai/b",
        "x=y",
    ]
    with pytest.raises(UsageError, match="two predictions are called"):
        named_predictions(["a=1.json", "a=2.json"])
    with pytest.raises(UsageError, match="two predictions are called"):
        named_predictions(["1.json", "1.json"])


@pytest.fixture(scope="module")
def comparable() -> SemanticScore:
    """Scores as if they were made with the published backbone."""
    found = score_semantic(
        {"mine": scenes_truth},
        load_truth("scenes"),
        open_measure("chrf", MeasureOptions()),
        ScoreSettings(resamples=0),
    )
    measure = {"measure": "bertscore", "backbone": "distilbert-base-uncased", "num_layers": 5}
    return replace(found, no_comparison=None, measure=measure)


def test_published_rows_stand_beside_ones_own(comparable: SemanticScore) -> None:
    text = score_text(comparable, published=True)
    assert "bertscore, distilbert-base-uncased, layer 5" in text
    row = next(line for line in text.splitlines() if line.startswith("LongVA-7B"))
    assert row.split() == ["LongVA-7B", "0.2579", "0.2593", "0.2494", "0.1641", "0.1617", "0.1578"]
    assert text.count("LongVA-7B") == 3  # SemAP, cSemAP, accuracy
    assert "do not compare" not in text
    assert CAVEATS["semantic_scores"] in " ".join(text.split())
    assert "the authors' texts" not in score_text(comparable, published=False)
    assert "LongVA-7B" not in score_text(comparable, published=False)
    assert all(len(line) <= 80 for line in text.splitlines())


def test_published_detection_is_of_one_backbone_only(comparable: SemanticScore) -> None:
    other = replace(comparable, measure={**comparable.measure, "backbone": "google/mt5-large"})
    assert score_text(other, published=True).count("LongVA-7B") == 1


def test_the_page_goes_beside_the_predictions_or_where_it_is_asked_for(tmp_path: Path) -> None:
    file = scenes_file(tmp_path / "mine.json")
    command = ("semantic", "--similarity", "chrf", "--resamples", "0", "--truth", "scenes", file)
    done = uncanny_here(*command)
    assert done.out.splitlines()[-1] == f"Report   {tmp_path / 'semantic.html'}"
    assert "SemAP 0.5000" in (tmp_path / "semantic.html").read_text("utf-8")
    chosen = tmp_path / "page.html"
    assert "predictions" in uncanny_here(*command, "--report", chosen, "--json", "-").json()
    assert chosen.exists()
    chosen.unlink()
    assert "Report" not in uncanny_here(*command, "--no-report").out
    refused = uncanny_here(*command, "--report", tmp_path / "nowhere" / "page.html")
    assert refused.code == 2
    assert "nowhere" in refused.err
