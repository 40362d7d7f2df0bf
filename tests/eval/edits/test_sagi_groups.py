"""SAGI's groupings of edits: spliced or regenerated, one object or two, in or out of domain, by label."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import uncanny
from tests.runs.e2e import uncanny_here
from uncanny.errors import UsageError
from uncanny.eval.edits.presets import PRESETS, level_of


@pytest.mark.parametrize(
    ("name", "row", "level"),
    [
        ("sp-fr", {"preserved_mae": 0}, "SP"),
        ("sp-fr", {"preserved_mae": 1 / 255}, "SP"),
        ("sp-fr", {"preserved_mae": 1.01 / 255}, "FR"),
        ("sp-fr", {"preserved_mae": "0.0412"}, "FR"),  # the mean of its table 3, from CSV
        ("sp-fr", {"preserved_mae": None}, None),
        ("sp-fr", {"preserved_mae": float("nan")}, None),
        ("single-double", {"mode": "double", "mask": "m.png"}, "double"),
        ("single-double", {"mode": "remove"}, "single"),
        ("single-double", {"mask": ["a.png", "b.png"]}, "double"),
        ("single-double", {"mask": '["a.png", "b.png"]'}, "double"),
        ("single-double", {"mask": ("a.png",)}, "single"),
        ("single-double", {"mask": {"size": [2, 2], "counts": "04"}}, "single"),
        ("single-double", {"mask": None}, None),
        ("single-double", {"mode": "sky", "mask": None}, None),
        ("id-ood", {"dataset": "coco"}, "in domain"),
        ("id-ood", {"dataset": "OpenImages"}, "out of domain"),
        ("id-ood", {"dataset": None}, None),
        ("model+sp-fr", {"model": "BrushNet", "preserved_mae": 0}, "BrushNet, SP"),
        ("model+sp-fr", {"model": "BrushNet"}, None),
    ],
)
def test_an_edit_is_in_the_group_of_its_columns(name: str, row: dict[str, Any], level: str | None) -> None:
    assert level_of(name, row, {"model", "mask"} - {name}) == level


def test_a_column_of_the_name_comes_first() -> None:
    row = {"sp-fr": "spliced by hand", "preserved_mae": 0, "a+b": "both"}
    assert level_of("sp-fr", row, row) == "spliced by hand"
    assert level_of("a+b", row, row) == "both"


def test_domains_can_be_named() -> None:
    assert level_of("id-ood", {"dataset": "OpenImages"}, (), ["openimages"]) == "in domain"


def scored_set() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Edits and originals of two domains, with scores that differ by domain."""
    generator = np.random.default_rng(1)
    meta, seen = [], []
    for place in range(40):
        dataset, shift = ("COCO", 0.3) if place < 24 else ("OpenImages", 0.1)
        meta.append({"original": f"o{place}.png", "edited": f"e{place}.png", "dataset": dataset})
        seen.append({"image": f"o{place}.png", "score": float(generator.random() * 0.7)})
        seen.append({"image": f"e{place}.png", "score": float(generator.random() * 0.7 + shift)})
    return meta, seen


def test_the_auc_of_a_domain_is_against_real_images_of_that_domain() -> None:
    """As table 5 has it; the originals are of the domain of their edits."""
    meta, seen = scored_set()
    factor = uncanny.edits.stress({"mine": seen}, meta=[meta], by=["id-ood"])["mine"].factor("id-ood")
    by_image = {row["image"]: row["score"] for row in seen}
    for name, places in (("in domain", range(24)), ("out of domain", range(24, 40))):
        scores = [by_image[f"{kind}{place}.png"] for kind in "eo" for place in places]
        truth = [kind == "e" for kind in "eo" for _ in places]
        assert factor[name].auc_within == pytest.approx(roc_auc_score(truth, scores))
        assert factor[name].auc != factor[name].auc_within


def test_pixel_auc_of_a_group_is_over_its_own_pixels(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    meta, seen, maps = [], [], {}
    for place in range(6):
        mask = np.zeros((8, 8), dtype=np.uint8)
        mask[place : place + 2] = 255
        heat = np.round(generator.random((8, 8)) * 255).astype(np.float64) / 255
        for name, values in (("m", mask), ("h", heat)):
            np.save(tmp_path / f"{name}{place}.npy", values)
        maps[place] = (mask.ravel() > 0, heat.ravel())
        meta.append(
            {
                "edited": f"e{place}.png",
                "mask": f"m{place}.npy",
                "preserved_mae": 0.0 if place % 2 else 0.1,
            }
        )
        seen.append({"image": f"e{place}.png", "source": "generated", "heat_map": f"h{place}.npy"})
    scores = uncanny.edits.stress({"mine": seen}, meta=[meta], by=["sp-fr"], root=tmp_path)
    factor = scores["mine"].factor("sp-fr")
    for name, places in (("SP", (1, 3, 5)), ("FR", (0, 2, 4))):
        expected = roc_auc_score(*(np.concatenate([maps[p][at] for p in places]) for at in (0, 1)))
        area = factor[name].pixel_auc
        assert area is not None
        assert area.value == pytest.approx(expected)
        assert area.interval is not None
    assert [group.name for group in factor.groups] == ["FR", "SP"]
    assert scores.to_json()["detectors"]["mine"]["conditions"]["as given"]["by"]["sp-fr"]["groups"]["SP"][
        "ci"
    ]


def test_balanced_keeps_as_many_of_both_and_the_same_for_every_detector() -> None:
    meta, seen = scored_set()
    fewer = [row for row in seen if row["image"][0] == "e" or int(row["image"][1:-4]) < 10]
    scores = uncanny.edits.stress({"a": fewer, "b": fewer}, meta=[meta], balanced=True, seed=4)
    for name in "ab":
        first = scores[name].first
        assert {each: score.n for each, score in first.classes.items()} == {
            "generated": 10,
            "real": 10,
            "all": 20,
        }
        assert first.coverage.left_by_balance == 30
        assert first.precision_recall.guessing == 0.5
    assert scores["a"].first.precision_recall.value == scores["b"].first.precision_recall.value
    assert any("30 images of the larger class left out" in note for note in scores.notes())
    other = uncanny.edits.stress({"a": fewer}, meta=[meta], balanced=True, seed=5)
    assert other["a"].first.precision_recall.value != scores["a"].first.precision_recall.value
    whole = uncanny.edits.stress({"a": fewer}, meta=[meta])
    assert whole["a"].first.precision_recall.guessing == 0.8


@pytest.mark.parametrize("name", PRESETS)
def test_a_grouping_that_nothing_is_known_of_says_what_it_needs(name: str) -> None:
    meta = [{"original": "a.png", "edited": "b.png"}]
    with pytest.raises(UsageError, match="nothing says which group") as caught:
        uncanny.edits.stress([{"image": "b.png", "score": 0.7}], meta=[meta], by=[name])
    assert caught.value.remedy == PRESETS[name].remedy
    with pytest.raises(UsageError, match="no column 'modell'"):
        uncanny.edits.stress([{"image": "b.png", "score": 0.7}], meta=[meta], by=[f"modell+{name}"])


@pytest.mark.slow
def test_verdicts_of_the_realism_check_bring_their_label(tmp_path: Path) -> None:
    """Whose label and model are others than those of an edit's mask and of the model that made it."""
    run = uncanny.realism.run("scenes", model="demo", out=tmp_path / "run")
    edits = uncanny.edits.measure("scenes")
    seen = [{"image": record["edited"], "score": 0.7} for record in edits.records()]
    meta = [edits, run.path / "verdicts.jsonl"]
    scores = uncanny.edits.stress({"mine": seen}, meta=meta, by=["ugda"], resamples=0)
    found = {group.name: group.recall.out_of for group in scores["mine"].factor("ugda").groups}
    assert found == {name: n for name, n in run.labels().items() if n}
    assert sum(found.values()) == 16


def test_people_are_grouped_by_the_same_names(tmp_path: Path) -> None:
    line = '{"id": "%s", "shown": "edited", "image": "", "person": "ann", "judged": "%s"}\n'
    judged = [("1", "edited"), ("2", "real"), ("3", "edited")]
    (tmp_path / "judgements.jsonl").write_text("".join(line % each for each in judged))
    pairs = [
        {"id": each, "original": f"o{each}.png", "edited": f"e{each}.png", "preserved_mae": mae, "ugda": "d"}
        for each, mae in (("1", 0.0), ("2", 0.1), ("3", 0.1))
    ]
    frame = [uncanny.edits.EditPair.model_validate(each) for each in pairs]
    scores = uncanny.edits.score_people(frame, tmp_path / "judgements.jsonl", by=["ugda+sp-fr"])
    found = {name: each.recall.value for name, each in scores.factors["ugda+sp-fr"].items()}
    assert found == {"d, FR": 0.5, "d, SP": 1.0}


def test_the_command_groups_balances_and_prints_average_precision(tmp_path: Path) -> None:
    meta, seen = scored_set()
    for name, rows in (("meta", meta), ("seen", seen)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = uncanny_here(
        *("edits", "stress", tmp_path / "seen.jsonl", "--meta", tmp_path / "meta.jsonl", "--by", "id-ood"),
        *("--in-domain", "openimages", "--balanced", "--published", "--json", tmp_path / "scores.json"),
    )
    assert done.code == 0, done.told
    assert "in domain" in done.out
    assert "SAGI, table 6: IoU" in done.out
    content = json.loads((tmp_path / "scores.json").read_text())
    assert content["published"]["sagi"]["by_times"]
    area = content["detectors"]["seen"]["conditions"]["as given"]["average_precision"]
    assert area["curve"]["recall"][-1] == 1
    page = (tmp_path / "stress.html").read_text()
    assert "Precision against recall" in page
    assert "AUC within" in page
