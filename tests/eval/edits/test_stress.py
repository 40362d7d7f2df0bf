"""Stress tables: by hand, beside scikit-learn and pandas, and made of tables that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas
import pytest
from PIL import Image
from sklearn.metrics import (
    jaccard_score,
    precision_recall_fscore_support,
    roc_auc_score,
)
from statsmodels.stats.contingency_tables import mcnemar

import uncanny
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.common.pixels.masks import encode_rle
from uncanny.eval.edits.stress.data import by_detector, name_condition
from uncanny.eval.edits.stress.localize import Localization
from uncanny.eval.metrics.association import association
from uncanny.eval.metrics.intervals import wilson_interval
from uncanny.eval.metrics.paired import ImageClass

Rows = list[dict[str, Any]]


def hand_worked() -> tuple[Rows, Rows]:
    """Eight edits, sizes 1 to 8, of which the detector finds 3, 5, 7 and 8, and one of three originals."""
    meta: Rows = [
        {
            "id": str(size),
            "original": f"o/{size % 3}.png",
            "edited": f"e/{size}.png",
            "mask_ratio": size / 10,
            "method": "inpainting" if size > 4 else "prompt",
            "label": "Lower  lip",
            "edited_label": "nose" if size % 2 else "ring",
        }
        for size in range(1, 9)
    ]
    found = {3, 5, 7, 8}
    seen: Rows = [
        {"image": f"e/{size}.png", "source": "generated" if size in found else "real"} for size in range(1, 9)
    ]
    seen += [
        {"image": f"o/{place}.png", "source": "generated" if place == 2 else "real"} for place in range(3)
    ]
    return meta, seen


def test_by_hand() -> None:
    meta, seen = hand_worked()
    result = uncanny.edits.stress({"mine": seen}, meta=meta, least_edits=1)
    first = result["mine"].first
    generated, real, both = (first.classes[name] for name in ("generated", "real", "all"))
    assert (generated.precision.value, generated.recall.value, generated.f1.value) == (4 / 5, 0.5, 8 / 13)
    assert (real.precision.value, real.recall.value, real.f1.value) == (2 / 6, 2 / 3, 4 / 9)
    assert both.recall.value == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert first.auc.value is None
    # Percentiles of .1 to .8: .275 and .625.
    sizes = result["mine"].factor("mask_ratio")
    assert sizes.cutoffs == pytest.approx((0.275, 0.625))
    counts = {group.name: (group.recall.counts, group.recall.out_of) for group in sizes.groups}
    assert counts == {"small": (0, 2), "medium": (2, 4), "large": (2, 2)}
    assert sizes["large"].recall.interval == wilson_interval(2, 2)
    assert sizes.test == association([[0, 2], [2, 2], [2, 0]])
    assert [(pair.first, pair.second) for pair in sizes.pairs] == [
        ("small", "medium"),
        ("small", "large"),
        ("medium", "large"),
    ]
    assert sizes.pairs[1].test.p_value == pytest.approx(1 / 3)
    assert sizes.pairs[1].adjusted_p == pytest.approx(1.0)
    method = result["mine"].factor("method")
    assert (method["prompt"].recall.counts, method["inpainting"].recall.counts) == (1, 3)
    # Fisher: 16 + 1 of 70 ways on either side are no likelier than one of four; two groups, by Holm.
    assert method["prompt"].p_value == pytest.approx(2 * 34 / 70)
    phrases = result["mine"].factor("directional")
    assert [group.name for group in phrases.groups] == ["lower lip → ring", "lower lip → nose"]
    assert [group.recall.counts for group in phrases.groups] == [1, 3]


def random_tables(n: int = 600) -> tuple[Rows, Rows]:
    rng = np.random.default_rng(3)
    meta: Rows = [
        {
            "edited": f"e/{place}.png",
            "original": f"o/{place}.png",
            "ssim": float(rng.random()) if place % 7 else None,
            "dataset": f"d{place % 4}" if place % 5 else None,
            "quality": int(rng.choice([50, 70, 85])),
        }
        for place in range(n)
    ]
    seen: Rows = [
        {
            "image": row["edited"],
            "score": float(np.clip(rng.normal(0.5 - 0.2 * (row["ssim"] or 0), 0.2), 0, 1)),
        }
        for row in meta
    ]
    seen += [
        {"image": row["original"], "score": float(np.clip(rng.normal(0.3, 0.2), 0, 1))} for row in meta[::2]
    ]
    return meta, seen


def test_as_scikit_learn_and_pandas() -> None:
    meta, seen = random_tables()
    result = uncanny.edits.stress({"mine": seen}, meta=[meta], threshold=0.4, by=["quality"])
    first = result["mine"].first
    truth = np.array([row["image"].startswith("e/") for row in seen])
    scores = np.array([row["score"] for row in seen])
    expected = precision_recall_fscore_support(truth, scores >= 0.4, labels=[True, False])
    for place, name in enumerate(("generated", "real")):
        each = first.classes[name]
        figures = [each.precision.value, each.recall.value, each.f1.value, each.n]
        assert figures == pytest.approx([column[place] for column in expected])
    macro = precision_recall_fscore_support(truth, scores >= 0.4, average="macro")
    both = first.classes["all"]
    assert [both.precision.value, both.recall.value, both.f1.value] == pytest.approx(macro[:3])
    assert first.auc.value == pytest.approx(roc_auc_score(truth, scores))
    table = pandas.DataFrame(meta).assign(score=scores[: len(meta)])
    table["found"] = table["score"] >= 0.4
    low, high = table["ssim"].quantile([0.25, 0.75])
    assert result["mine"].factor("ssim").cutoffs == pytest.approx((low, high))
    small = table[table["ssim"] < low]
    group = result["mine"].factor("ssim")["small"]
    assert (group.recall.counts, group.recall.out_of) == (small["found"].sum(), len(small))
    real = scores[len(meta) :]
    of_small = roc_auc_score([1] * len(small) + [0] * len(real), [*small["score"], *real])
    assert group.auc == pytest.approx(of_small)
    for name in ("dataset", "quality"):
        for level, some in table.groupby(name):
            group = result["mine"].factor(name)[str(level)]
            assert (group.recall.counts, group.recall.out_of) == (some["found"].sum(), len(some))
    unknown = table[table["dataset"].isna()]
    factor = result["mine"].factor("dataset")
    assert (factor.unknown.counts, factor.unknown.out_of) == (unknown["found"].sum(), len(unknown))


def test_a_column_that_few_rows_fill_has_a_p_value_and_costs_no_other_factor() -> None:
    meta, seen = random_tables()
    for row, level in zip(meta, "abca", strict=False):
        row["studio"] = level
    with_studio = uncanny.edits.stress({"mine": seen}, meta=[meta], threshold=0.4, by=["studio"])["mine"]
    studio = with_studio.factor("studio").test
    assert studio is not None
    assert (studio.n, studio.df, studio.test) == (4, 2, "exact")
    assert studio.p_value is not None
    others = uncanny.edits.stress({"mine": seen}, meta=[meta], threshold=0.4)["mine"].first.factors
    assert {name: each.groups for name, each in others.items()} == {
        name: each.groups for name, each in with_studio.first.factors.items() if name != "studio"
    }


def test_as_json_rows_frame_and_html() -> None:
    meta, seen = random_tables(200)
    result = uncanny.edits.stress({"mine": seen, "jpeg-50": seen[:300]}, meta=[meta], published=True)
    content = json.loads(orjson.dumps(result.to_json()))
    assert content.keys() >= {"detectors", "metadata", "resamples", "seed"}
    condition = content["detectors"]["mine"]["conditions"]["as given"]
    assert condition["by"]["ssim"]["groups"].keys() == {"small", "medium", "large"}
    assert condition["classes"]["all"]["ci"]["f1"][0] < condition["classes"]["all"]["f1"]
    assert content["detectors"]["mine"]["paired"]["jpeg-50"]["n"] == 200
    frame = result.to_pandas()
    assert set(frame["factor"]) == {"class", "ssim", "dataset"}
    assert set(frame["group"][frame["factor"] == "dataset"]) == {"d0", "d1", "d2", "d3", "(unknown)"}
    lines = result.to_csv().splitlines()
    assert len(lines) == len(frame) + 1
    html = result._repr_html_()
    assert "UniversalFakeDetect" in html
    assert "edits of both" in html
    assert str(result) == repr(result)
    again = uncanny.edits.stress({"mine": seen, "jpeg-50": seen[:300]}, meta=[meta], published=True)
    assert again == result
    assert again.to_json() == result.to_json()


def test_what_is_in_no_figure_is_counted_and_named() -> None:
    meta, seen = hand_worked()
    meta += [{"image": "odd.png"}, {"image": "clean.png", "source": "real"}]
    seen += [
        {"image": "odd.png", "source": "real"},
        {"image": "clean.png", "source": "generated"},
        {"image": "strange.png", "source": "real"},
    ]
    seen[0] = {"image": "e/1.png"}
    seen[1] = {"image": "e/2.png", "source": None, "score": 0.9}
    seen[2] = {"image": "e/3.png", "source": "generated", "score": 0.1}
    del seen[7]
    result = uncanny.edits.stress({"mine": seen}, meta=meta)
    coverage = result["mine"].first.coverage
    assert coverage.only_predicted == ("strange.png",)
    assert coverage.only_known == ("e/8.png",)
    assert coverage.unknown_class == ("odd.png",)
    assert coverage.unanswered == ("e/1.png",)
    assert (coverage.by_score, coverage.contradicted, coverage.with_score) == (1, 1, 2)
    assert result["mine"].first.classes["generated"].n == 6
    assert result["mine"].first.classes["real"].n == 4
    notes = " ".join(result.notes())
    for words in ("strange.png", "e/8.png", "odd.png", "without a verdict", "do not agree with their score"):
        assert words in notes
    assert list(
        result.to_json()["detectors"]["mine"]["conditions"]["as given"]["coverage"]["unanswered"].values()
    )


def test_a_threshold_rules_over_verdicts() -> None:
    meta = [{"original": "o.png", "edited": "e.png"}]
    seen = [{"image": "e.png", "source": "generated", "score": 0.4}, {"image": "o.png", "source": "real"}]
    with_verdicts = uncanny.edits.stress({"m": seen}, meta=meta)["m"].first
    assert with_verdicts.classes["generated"].recall.value == 1
    assert (
        uncanny.edits.stress({"m": seen}, meta=meta, threshold=0.5)["m"]
        .first.classes["generated"]
        .recall.value
        == 0
    )
    low = uncanny.edits.stress({"m": seen}, meta=meta, threshold=0.4)["m"].first
    assert low.classes["generated"].recall.value == 1
    assert low.threshold == 0.4


def test_answers_that_say_neither_are_missed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    lines = [
        {"image": "e.png", "source": None, "verdict": "Hard to say.", "status": "ok"},
        {"image": "f.png", "source": None, "verdict": None, "status": "failed"},
        {"image": "o.png", "source": "real", "verdict": "No", "status": "ok"},
    ]
    (run / "annotations.jsonl").write_text("\n".join(map(json.dumps, lines)))
    meta = [{"original": "o.png", "edited": "e.png"}, {"original": "o.png", "edited": "f.png"}]
    first = uncanny.edits.stress({"m": run}, meta=meta)["m"].first
    assert first.accuracy.unparseable == 1
    assert (first.classes["generated"].recall.value, first.classes["generated"].n) == (0, 1)
    assert first.coverage.unanswered == ("f.png",)


def test_the_source_of_an_edit_may_be_the_path_of_its_original() -> None:
    # As in the pairs that `pairs items` writes.
    meta = [
        {"edited": "e.png", "original": "o.png", "source": "photos/o.png"},
        {"image": "r.png", "source": "real"},
    ]
    seen = [{"image": name, "source": "generated"} for name in ("e.png", "o.png", "r.png")]
    first = uncanny.edits.stress({"m": seen}, meta=meta)["m"].first
    assert (first.classes["generated"].n, first.classes["real"].n) == (1, 2)


def test_tables_that_are_wrong_are_refused_with_everything(tmp_path: Path) -> None:
    predictions = tmp_path / "p.csv"
    predictions.write_text("image,source,score\na.png,fake,0.5\nb.png,real,1.5\na.png,real,\n,real,0.2\n")
    meta = tmp_path / "m.jsonl"
    meta.write_text('{"edited": "a.png", "ssim": "much"}\n{"edited": "b.png", "source": "real"}\nnothing\n')
    with pytest.raises(ItemsError) as error:
        uncanny.edits.stress(predictions, meta=meta)
    assert [str(problem) for problem in error.value.problems] == [
        f"line 1, item 'a.png', field ssim: {meta}: must be a number, not 'much'",
        f"line 2, item 'b.png', field source: {meta}: says real of an edit; correct either",
        f"line 3: {meta}: not valid JSON (invalid literal, expected 'null')",
        f"line 2, item 'a.png', field source: {predictions}: must be generated or real, not 'fake'",
        f"line 3, item 'b.png', field score: {predictions}: must be a number from 0 to 1, not '1.5'",
        f"line 4, item 'a.png', field image: {predictions}: was there before, at line 2; keep one of them",
        f"line 5, field image: {predictions}: is missing",
    ]


def test_lines_that_cannot_be_read_are_not_a_missing_column(tmp_path: Path) -> None:
    meta = tmp_path / "m.jsonl"
    meta.write_text("{broken\n")
    with pytest.raises(ItemsError, match=r"line 1: .*m\.jsonl: not valid JSON"):
        uncanny.edits.stress([{"image": "a.png", "score": 0.5}], meta=meta)


def test_tables_are_joined_by_id_and_by_image() -> None:
    pairs = [{"id": str(n), "edited": f"e{n}.png", "original": f"o{n}.png"} for n in range(4)]
    measured = pandas.DataFrame({"id": [1, 0, 9], "ssim": [0.1, 0.2, 0.9]})
    real = [{"image": "r.png", "source": "real"}, {"image": "e2.png", "method": "inpainting"}]
    seen = [{"image": f"{name}.png", "source": "real"} for name in ("e0", "e1", "e2", "e3", "r")]
    result = uncanny.edits.stress({"m": seen}, meta=[measured, pairs, real])
    assert result["m"].factor("ssim").unknown.out_of == 2
    assert result["m"].factor("method")["inpainting"].recall.out_of == 1
    assert result["m"].first.classes["real"].n == 1
    assert result.edits.without_image == 1
    with pytest.raises(ItemsError, match=r"is 'x', and an earlier table says 'y'; correct either"):
        uncanny.edits.stress(
            {"m": seen}, meta=[[{"edited": "e0.png", "method": "y"}], [{"image": "e0.png", "method": "x"}]]
        )
    with pytest.raises(UsageError, match="no column names images"):
        uncanny.edits.stress({"m": seen}, meta=[measured])


def test_cutoffs_and_columns_of_ones_own() -> None:
    meta, seen = hand_worked()
    result = uncanny.edits.stress({"m": seen}, meta=meta, cutoffs={"mask_ratio": (0.2, 0.2)})
    counts = [group.recall.out_of for group in result["m"].factor("mask_ratio").groups]
    assert counts == [1, 1, 6]
    with pytest.raises(UsageError, match=r"no column 'weather'.*The columns are edited"):
        uncanny.edits.stress({"m": seen}, meta=meta, by=["weather"])
    with pytest.raises(UsageError, match="method is not a column of numbers"):
        uncanny.edits.stress({"m": seen}, meta=meta, cutoffs={"method": (1, 2)})
    with pytest.raises(UsageError, match="must have the lower end of mask_ratio first"):
        uncanny.edits.stress({"m": seen}, meta=meta, cutoffs={"mask_ratio": (2, 1)})
    for row in meta:
        row["seconds"] = float(row["id"]) ** 1.5
    more = meta + [{"edited": f"x{n}.png", "seconds": 1000.5 + n} for n in range(8)]
    assert uncanny.edits.stress({"m": seen}, meta=more, by=["seconds"])["m"].factor("seconds").kind == "bins"


@pytest.mark.parametrize("said", [True, "True", "true", 1])
def test_all_black_edits_are_in_a_bin_and_set_no_end_of_one(said: object) -> None:
    meta, seen = hand_worked()
    for row in meta:
        row["all_black"] = False if isinstance(said, bool) else "False"
    alone = uncanny.edits.stress({"m": seen}, meta=meta, resamples=0)["m"].factor("mask_ratio")
    black = {"id": "9", "edited": "e/9.png", "mask_ratio": 1.0, "all_black": said}
    seen.append({"image": "e/9.png", "source": "generated"})
    detector = uncanny.edits.stress({"m": seen}, meta=[*meta, black], by=["all_black"], resamples=0)["m"]
    beside = detector.factor("mask_ratio")
    assert beside.cutoffs == alone.cutoffs == pytest.approx((0.275, 0.625))
    assert beside["large"].recall.out_of == alone["large"].recall.out_of + 1
    assert [group.recall.out_of for group in detector.factor("all_black").groups] == [8, 1]


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("mine", ("mine", "as given")),
        ("mine@jpeg-85", ("mine", "jpeg-85")),
        ("JPG85", (None, "jpeg-85")),
        ("webp_070", (None, "webp-70")),
        ("@blurred", (None, "blurred")),
        ("a@b@blurred", ("a@b", "blurred")),
        ("openai/gpt-4o", ("openai/gpt-4o", "as given")),
    ],
)
def test_names_say_detector_and_condition(name: str, parsed: tuple[str | None, str]) -> None:
    assert name_condition(name) == parsed


def test_conditions_belong_to_the_only_detector() -> None:
    assert by_detector({"jpeg-50": 1, "mine": 2, "@dark": 3}) == {
        "mine": {"as given": 2, "jpeg-50": 1, "dark": 3}
    }
    assert by_detector({"jpeg-50": 1}) == {"detector": {"jpeg-50": 1}}
    with pytest.raises(UsageError, match=r"'jpeg-50' does not say which detector .* Write a@jpeg-50=FILE"):
        by_detector({"a": 1, "b": 2, "jpeg-50": 3})
    with pytest.raises(UsageError, match="the condition jpeg-85 has two files"):
        by_detector({"a": 1, "a@jpg85": 2, "a@jpeg-85": 3})


def test_conditions_are_compared_edit_by_edit() -> None:
    meta, seen = hand_worked()
    found = {1, 5, 7, 8}
    after = [
        {"image": f"jpeg-50/e/{size}.jpg", "source": "generated" if size in found else "real"}
        for size in range(1, 8)
    ]
    after += [{"image": f"jpeg-50/o/{place}.jpg", "source": "real"} for place in range(3)]
    paired = uncanny.edits.stress({"m": seen, "jpeg-50": after}, meta=meta)["m"].paired["jpeg-50"]
    assert (paired.n, paired.lost, paired.gained, paired.p_value) == (7, 1, 1, 1.0)


def test_detectors_are_compared_image_by_image() -> None:
    meta, seen = random_tables()
    rng = np.random.default_rng(7)
    other = [{**row, "score": float(rng.random())} for row in seen]
    # Images that only one of them judged are in no test.
    detectors = {"mine": seen[3:], "theirs": other[:-2], "mine@jpeg-85": other}
    result = uncanny.edits.stress(detectors, meta=[meta], resamples=50, group_by="image")
    verdicts = [{row["image"]: row["score"] >= 0.5 for row in each} for each in (seen[3:], other[:-2])]
    both = [image for image in verdicts[0] if image in verdicts[1]]
    assert len(both) == len(seen) - 5
    p_values = []
    kinds: dict[ImageClass, str] = {"all": "", "generated": "e/", "real": "o/"}
    for name, kind in kinds.items():
        images = [image for image in both if image.startswith(kind)]
        right = [[each[image] == image.startswith("e/") for image in images] for each in verdicts]
        table = np.array(
            [[sum(a == x and b == y for a, b in zip(*right, strict=True)) for y in (1, 0)] for x in (1, 0)]
        )
        (test,) = result.tests[name]
        assert (test.n, test.first_only, test.second_only) == (len(images), table[0, 1], table[1, 0])
        assert test.p_value == pytest.approx(mcnemar(table, exact=True).pvalue)
        assert test.adjusted_p == test.p_value  # of two detectors there is one pair
        assert test.difference.value == pytest.approx((sum(right[0]) - sum(right[1])) / len(images))
        p_values.append(test.p_value)
    (content,) = result.to_json()["mcnemar"]
    assert content["models"] == ["mine", "theirs"]
    assert [content[name]["p_value"] for name in kinds] == p_values
    first, second = result.ranked()
    accuracies = [result[name].first.accuracy.accuracy or 0 for name in (first, second)]
    assert accuracies[0] > accuracies[1] > 0
    table_of = next(table for table in result.tables() if "Two detectors" in (table.title or ""))
    assert [row[0] for row in table_of.rows] == [
        f"{first} − {second}, {what}" for what in ("all images", "edits", "real images")
    ]
    edits_only = {
        name: [row for row in rows if row["image"].startswith("e/")] for name, rows in detectors.items()
    }
    rows = uncanny.edits.stress(edits_only, meta=[meta], resamples=50).compared()
    assert rows is not None
    assert [row[0] for row in rows.rows] == ["theirs − mine, edits"]
    assert uncanny.edits.stress({"mine": seen}, meta=[meta], resamples=50).compared() is None
    apart = {"a": seen[:10], "b@jpeg-85": other}
    assert uncanny.edits.stress(apart, meta=[meta], resamples=50).compared() is None  # of other files


def maps(folder: Path) -> tuple[Rows, Rows, list[Any], list[Any]]:
    rng = np.random.default_rng(5)
    meta: Rows = []
    seen: Rows = []
    masks, heat = [], []
    for place in range(6):
        mask = np.zeros((24, 32), dtype=np.bool_)
        mask[4 : 12 + place, 6:20] = True
        values = np.rint(np.clip(rng.normal(0.3 + 0.4 * mask, 0.25), 0, 1) * 255).astype(np.uint8)
        Image.fromarray(mask).save(folder / f"m{place}.png")
        Image.fromarray(values).save(folder / f"h{place}.png")
        meta.append({"edited": f"e{place}.png", "mask": f"m{place}.png", "method": f"m{place % 2}"})
        seen.append({"image": f"e{place}.png", "source": "generated", "heat_map": f"h{place}.png"})
        masks.append(mask)
        heat.append(values / 255)
    return meta, seen, masks, heat


def test_localization_as_scikit_learn(tmp_path: Path) -> None:
    meta, seen, masks, heat = maps(tmp_path)
    result = uncanny.edits.stress({"m": seen}, meta=meta, root=tmp_path, resamples=200)
    located = result["m"].first.localization
    assert located is not None
    ious = [jaccard_score(mask.ravel(), (h >= 0.5).ravel()) for mask, h in zip(masks, heat, strict=True)]
    assert located.iou.value == pytest.approx(np.mean(ious))
    truth, flat = np.stack(masks).ravel(), np.stack(heat).ravel()
    assert located.pooled_iou == pytest.approx(jaccard_score(truth, flat >= 0.5))
    assert located.pixel_auc.value == pytest.approx(roc_auc_score(truth, flat))
    low, high = located.pixel_auc.interval or (1.0, 0.0)
    assert low < roc_auc_score(truth, flat) < high
    group = result["m"].factor("method")["m1"].iou
    assert group is not None
    assert group.value == pytest.approx(np.mean(ious[1::2]))
    strict = uncanny.edits.stress({"m": seen}, meta=meta, root=tmp_path, heat_map_threshold=0.9, resamples=0)
    assert (strict["m"].first.localization or located).iou.value != located.iou.value


def test_masks_in_every_form_and_maps_that_do_not_fit(tmp_path: Path) -> None:
    meta, seen, masks, _ = maps(tmp_path)
    meta[0]["mask"] = encode_rle(masks[0])
    meta[1]["mask"] = json.dumps(["m1.png", "m5.png"])
    meta[2]["mask"] = None
    Image.fromarray(np.zeros((24, 32), dtype=np.bool_)).save(tmp_path / "m3.png")
    Image.fromarray(np.full((12, 16), 200, dtype=np.uint8)).save(tmp_path / "h4.png")
    seen[5] = {"image": "e5.png", "source": "generated", "mask": "m5.png"}
    result = uncanny.edits.stress({"m": seen}, meta=meta, root=tmp_path, resamples=0)
    located = result["m"].first.localization
    assert located is not None
    assert (located.n, located.n_maps, located.iou.interval) == (3, 2, None)
    assert located.left_out.keys() == {"e2.png", "e3.png", "e4.png"}
    assert "no mask to compare with" in located.left_out["e2.png"]
    assert "is empty" in located.left_out["e3.png"]
    assert "16 × 12 pixels" in located.left_out["e4.png"]
    assert "3 edits with a map in no IoU" in " ".join(result.notes())
    resized = uncanny.edits.stress({"m": seen}, meta=meta, root=tmp_path, resize_maps=True, resamples=0)
    scaled = resized["m"].first.localization
    assert scaled is not None
    assert (scaled.n, scaled.resized, set(scaled.left_out)) == (4, 1, {"e2.png", "e3.png"})


def test_maps_and_masks_scaled_alike_weigh_every_edit_the_same(tmp_path: Path) -> None:
    """As SAGI puts them together; by hand: of a large map that is right and a small one that is wrong."""
    right, wrong = np.zeros((80, 80), dtype=np.uint8), np.zeros((8, 8), dtype=np.uint8)
    right[:, :40] = wrong[:, :4] = 255
    Image.fromarray(right).save(tmp_path / "large.png")
    Image.fromarray(wrong).save(tmp_path / "small.png")
    Image.fromarray(255 - wrong).save(tmp_path / "not_small.png")
    meta = [{"edited": f"{name}.png", "mask": f"{name}.png"} for name in ("large", "small")]
    seen = [
        {"image": "large.png", "score": 1, "heat_map": "large.png"},
        {"image": "small.png", "score": 1, "heat_map": "not_small.png"},
    ]

    def located(**options: Any) -> Localization:
        result = uncanny.edits.stress({"m": seen}, meta=meta, root=tmp_path, resamples=0, **options)
        found = result["m"].first.localization
        assert found is not None
        assert result.to_json()["detectors"]["m"]["conditions"]["as given"]["localization"]["map_size"] == (
            options.get("map_size")
        )
        return found

    # Of 3,200 + 32 pixels inside, and as many outside: right over right, ties, wrong under right.
    n, m = 3200, 32
    assert located().pixel_auc.value == pytest.approx((n * n + n * m) / (n + m) ** 2)
    scaled = located(map_size=16)
    assert scaled.pixel_auc.value == pytest.approx(0.5, abs=0.005), "but for soft edges"
    assert (scaled.iou, scaled.pooled_iou) == (located().iou, located().pooled_iou)
    for size in (0, 4097, 1.5, True, "16"):
        with pytest.raises(UsageError, match=r"map_size.* must be (at least 1|at most 4,096|a whole number)"):
            located(map_size=size)


def test_the_auc_of_scaled_maps_and_masks_is_that_of_scikit_learn(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    meta, seen, truths, scores = [], [], [], []
    for place, side in enumerate((20, 60, 40)):
        heat = rng.integers(0, 256, (side, side), dtype=np.uint8)
        mask = np.kron(rng.random((5, 5)) < 0.4, np.ones((side // 5, side // 5))) > 0
        Image.fromarray(heat).save(tmp_path / f"h{place}.png")
        Image.fromarray(mask).save(tmp_path / f"m{place}.png")
        meta.append({"edited": f"e{place}.png", "mask": f"m{place}.png"})
        seen.append({"image": f"e{place}.png", "score": 0.5, "heat_map": f"h{place}.png"})
        # Whole blocks of pixels: their means are what every kind of scaling gives.
        truths.append(mask.reshape(5, side // 5, 5, side // 5).mean(axis=(1, 3)) >= 0.5)
        scores.append(
            np.asarray(Image.fromarray(heat / np.float32(255)).resize((5, 5), Image.Resampling.BILINEAR))
        )
    result = uncanny.edits.stress({"m": seen}, meta=meta, root=tmp_path, map_size=5, resamples=0)
    found = result["m"].first.localization
    assert found is not None
    expected = roc_auc_score(np.stack(truths).ravel(), np.stack(scores).ravel())
    assert found.pixel_auc.value == pytest.approx(expected, abs=1e-4)


def test_edits_measured_by_two_protocols_are_not_put_together() -> None:
    meta, seen = hand_worked()
    measured = [{**row, "post_edit_ratio": 0.1, "protocol": "paper"} for row in meta]
    result = uncanny.edits.stress({"m": seen}, meta=measured)
    assert result.to_json()["metadata"]["protocol"] == "paper"
    assert uncanny.edits.stress({"m": seen}, meta=meta).to_json()["metadata"]["protocol"] is None
    del measured[0]["protocol"]  # as before there were several
    with pytest.raises(UsageError, match="by the protocols paper and uncanny, whose figures differ"):
        uncanny.edits.stress({"m": seen}, meta=measured)
    unrelated = [{**row, "protocol": "my own words"} for row in meta]
    uncanny.edits.stress({"m": seen}, meta=unrelated)


def test_nothing_in_common_and_nothing_at_all() -> None:
    meta, seen = hand_worked()
    with pytest.raises(UsageError, match=r"no image of .* is in"):
        uncanny.edits.stress({"m": [{"image": "elsewhere.png", "score": 1}]}, meta=meta)
    with pytest.raises(UsageError, match="There are no predictions"):
        uncanny.edits.stress({}, meta=meta)
    with pytest.raises(UsageError, match="Several tables of predictions need names"):
        uncanny.edits.stress([seen, pandas.DataFrame(seen)], meta=meta)
    only_real = uncanny.edits.stress({"m": seen[8:]}, meta=meta)["m"].first
    assert only_real.classes["generated"].recall.value is None
    only_edits = uncanny.edits.stress({"m": seen[:8]}, meta=meta)
    assert only_edits["m"].first.classes["all"].f1.value is None
    assert "no real image has a prediction" in " ".join(only_edits.notes())


def test_the_headline_names_the_factor_that_matters_and_no_tiny_group() -> None:
    """Of 200 edits by each method 60 and 160 are found; of a rare data set 0 of 4, which says little."""
    meta: Rows = []
    seen: Rows = [{"image": f"o/{place}.png", "source": "real"} for place in range(20)]
    for place in range(400):
        method = "inpainting" if place < 200 else "prompt"
        found = place % 200 < (60 if method == "inpainting" else 160)
        rare = place in (190, 191, 398, 399)
        meta.append(
            {
                "id": str(place),
                "original": f"o/{place % 20}.png",
                "edited": f"e/{place}.png",
                "method": method,
                "dataset": "tiny" if rare else "large",
            }
        )
        seen.append({"image": f"e/{place}.png", "source": "generated" if found else "real"})
    result = uncanny.edits.stress({"mine": seen}, meta=meta, resamples=0)
    tiny = result["mine"].factor("dataset")["tiny"]
    assert tiny.recall.value == 0
    (said,) = result.headlines()
    assert said.startswith(
        "mine finds 55.0 % of 400 edits and takes 0 of 20 real images for edits. Recall differs by method, "
        "V 0.50: method inpainting is missed more often, 60 of 200 found against 160 of 200 (p < 0.0001)"
    )
    assert said in str(result).replace("\n  ", " ")
    by_chance = [{**row, "source": "real" if place % 4 else "generated"} for place, row in enumerate(seen)]
    result = uncanny.edits.stress({"mine": seen, "coin": by_chance}, meta=meta, resamples=0)
    _, coin, leads = result.headlines()
    assert coin.endswith("No factor and no group of edits makes a significant difference.")
    assert leads.startswith("mine leads in verdicts that are right with 57.1 %, significantly ahead of coin")


def test_a_mask_of_half_a_character_is_no_mask() -> None:
    row = {"edited": "e.png", "original": "o.png", "mask": '["\ud800"]'}
    seen = [{"image": "e.png", "score": 0.7, "mask": "found.png"}]
    result = uncanny.edits.stress({"m": seen}, meta=[[row]], resamples=0)
    located = result["m"].first.localization
    assert located is not None
    assert list(located.left_out) == ["e.png"]
    assert result.to_json()["about"]["digests"]["metadata"]
