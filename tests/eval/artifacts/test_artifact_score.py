"""Scores against hand-worked cases: what counts, what is left out, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from statsmodels.stats.multitest import multipletests

import uncanny.artifacts
from tests.eval.artifacts.made_sets import box, image, polygon, write_lines
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.artifacts.data.pixels import CLIPPED, CROSSING, NO_PIXELS, OUTSIDE, SHADES
from uncanny.eval.artifacts.score.tables import headline
from uncanny.eval.artifacts.score.tally import GATED, LOW_CONFIDENCE, NO_GATE
from uncanny.eval.common.pixels.masks import encode_rle
from uncanny.schema import ARTIFACT_CATEGORIES

HALVES = [
    polygon(points=[[0, 0], [3, 0], [3, 7], [0, 7]]),
    polygon("color", [[4, 0], [7, 0], [7, 7], [4, 7]]),
]


def scored(predicted: list[dict[str, Any]], true: list[dict[str, Any]], **options: Any) -> Any:
    options.setdefault("resamples", 0)
    return uncanny.artifacts.score(predicted, truth=true, **options)["predictions"]


def values(figures: Any) -> list[float | None]:
    return [each.value for each in figures.values()]


def test_the_square_in_the_square() -> None:
    score = scored([image("a.png", box())], [image("a.png", polygon())])
    for scope in ("semantics", "agnostic"):
        iou, precision, recall, f1 = values(score.scopes[scope].pixel)
        assert (iou, precision, recall) == (0.36, 0.36, 1)
        assert f1 == pytest.approx(0.5294, abs=5e-5)
        assert values(score.scopes[scope].instance) == [0, 0, 0]
        assert score.scopes[scope].presence.value == 1
    assert values(score.scopes["color"].pixel) == [None] * 4
    assert score.aj.figures["balanced_accuracy"].value is None


def test_sums_over_images_and_means_over_images() -> None:
    true = [image("a.png", polygon()), image("b.png", polygon()), image("c.png")]
    predicted = [image("a.png", box()), image("b.png", polygon()), image("c.png")]
    score = scored(predicted, true).scopes["semantics"]
    assert score.pixel["iou"].value == 18 / 34
    assert score.pixel_mean["iou"].value == pytest.approx((0.36 + 1) / 2)
    assert score.images == 3
    assert score.regions == {"right": 1, "predicted": 2, "found": 1, "true": 2}


def test_categories_are_compared_with_their_own_and_all_together_with_all() -> None:
    score = scored([image("a.png", box("color", (0, 0, 4, 8)))], [image("a.png", *HALVES)])
    assert values(score.scopes["semantics"].pixel) == [0, None, 0, 0]
    assert values(score.scopes["color"].pixel) == [0, 0, 0, 0]
    assert values(score.scopes["agnostic"].pixel) == [0.5, 1, 0.5, pytest.approx(2 / 3)]
    assert score.scopes["agnostic"].instance["precision"].value == 1
    assert score.scopes["color"].presence.value == 1
    assert score.scopes["semantics"].presence.value == 0
    assert (score.scopes["semantics"].with_true, score.scopes["semantics"].with_predicted) == (1, 0)


def test_authenticity_by_verdict_score_and_generator() -> None:
    true = [
        image("a.png", polygon(), source="generated", generator="one"),
        image("b.png", source="generated", generator="two"),
        image("c.png", source="real"),
        image("d.png", source="real"),
        image("e.png", source="generated", generator="two"),
    ]
    predicted: list[dict[str, Any]] = [
        {"image": "a.png", "score": 0.9},
        {"image": "b.png", "source": "real", "score": 0.9},
        {"image": "c.png", "score": 0.4},
        {"image": "d.png", "score": 0.6},
        {"image": "e.png"},
    ]
    score = scored(predicted, true)
    assert values(score.aj.figures) == [0.5, 0.5, 0.5, 0.5]
    assert score.aj.without_verdict == 1
    assert score.by_generator["one"].figures["recall"].value == 1
    assert score.by_generator["two"].figures["balanced_accuracy"].value == 0.25
    assert values(scored(predicted, true, score_threshold=0.65).aj.figures)[0] == 0.75
    # Nobody has looked for artifacts.
    assert score.scopes["agnostic"].images == 0
    assert values(score.scopes["agnostic"].pixel) == [None] * 4
    assert set(score.left_out.not_located) == {"a.png", "b.png", "e.png"}


def test_accuracy_by_artifact_ratio_and_by_any_column() -> None:
    true = [
        image("a.png", source="generated", niqe=1),
        image("b.png", polygon(), source="generated", niqe=2),
        image("c.png", *HALVES, source="generated", niqe=3),
        image("d.png", source="real", niqe=1),
        image("e.png", *HALVES, source="generated"),
    ]
    predicted = [
        {"image": f"{name}.png", "score": value} for name, value in zip("abcde", (0, 0, 1, 1, 1), strict=True)
    ]
    bins = scored(predicted, true, n_bins=2).bins
    # Half of the ratios above 0 are the largest: they make one bin.
    assert [(each.lo, each.hi, each.n) for each in bins] == [(0, 0, 1), (9 / 64, 1, 3)]
    assert [each.accuracy.value for each in bins] == pytest.approx([0, 2 / 3])
    by_niqe = scored(predicted, true, bins="niqe", n_bins=2)
    assert [(each.lo, each.hi, each.n, each.accuracy.value) for each in by_niqe.bins] == [
        (1, 2, 1, 0),
        (2, 3, 2, 0.5),
    ]
    assert by_niqe.left_out.without_value == ("e.png",)
    with pytest.raises(UsageError, match=r"no record has a number in 'mdfs'.*niqe"):
        scored(predicted, true, bins="mdfs")


def test_regions_count_behind_the_verdict_where_it_is_wanted() -> None:
    """Squares of 9 pixels in boxes of 25; of b the verdict is real, of c the score, d has neither."""
    true = [image(f"{name}.png", polygon(), source="generated") for name in "abcd"]
    predicted = [
        image("a.png", box(), source="generated", score=0.1),
        image("b.png", box(), source="real", score=0.9),
        image("c.png", box(), score=0.4),
        image("d.png", box()),
    ]
    free, gated = scored(predicted, true), scored(predicted, true, gated=True)
    both, ours, theirs = 4 * 9, 4 * 25, 4 * 9
    assert free.agnostic.pixel["iou"].value == both / (ours + theirs - both)
    both, ours = 2 * 9, 2 * 25
    assert gated.agnostic.pixel["iou"].value == both / (ours + theirs - both)
    assert gated.agnostic.pixel["precision"].value == both / ours
    assert gated.agnostic.pixel["recall"].value == 0.5
    assert (gated.agnostic.with_predicted, gated.agnostic.with_true) == (2, 4)
    assert gated.notes[GATED] == 2
    assert gated.notes[NO_GATE] == 1
    assert values(gated.aj.figures) == values(free.aj.figures)
    bold = scored(predicted, true, gated=True, score_threshold=0.3)
    assert bold.agnostic.pixel["recall"].value == 0.75, "c is called generated now"
    boxed = [{**each, "source": "generated"} for each in predicted]
    assert scored(boxed, true, gated=True).agnostic == scored(boxed, true).agnostic


@given(st.data())
def test_a_gate_is_as_if_nothing_were_predicted_in_images_called_real(data: st.DataObject) -> None:
    names = [f"{place}.png" for place in range(data.draw(st.integers(1, 5)))]
    regions = st.lists(st.sampled_from([polygon(), box(), box("color", (0, 0, 2, 5))]), max_size=3)
    true = [image(name, *data.draw(regions), source="generated") for name in names]
    verdicts = st.sampled_from(["real", "generated"])
    predicted = [image(name, *data.draw(regions), source=data.draw(verdicts)) for name in names]
    emptied = [{**each, "regions": []} if each["source"] == "real" else each for each in predicted]
    assert scored(predicted, true, gated=True).scopes == scored(emptied, true).scopes


def test_a_gate_needs_a_verdict_and_is_recorded() -> None:
    true = [image("a.png", polygon(), source="generated")]
    with pytest.raises(UsageError, match=r"predictions: no prediction says .*gated"):
        scored([image("a.png", box())], true, gated=True)
    scores = uncanny.artifacts.score([image("a.png", box(), score=1)], truth=true, gated=True, resamples=0)
    assert scores.to_json()["settings"]["gated"] is True


def test_real_images_are_left_out_unless_wanted() -> None:
    true = [image("a.png", polygon(), source="generated"), image("r.png", source="real")]
    predicted = [image("a.png", polygon()), image("r.png", box())]
    without, within = scored(predicted, true), scored(predicted, true, real_images=True)
    assert without.scopes["semantics"].pixel["precision"].value == 1
    assert without.left_out.real == ("r.png",)
    assert within.scopes["semantics"].pixel["precision"].value == 9 / 34
    assert within.left_out.real == ()


def test_confidence_filters_and_weighs() -> None:
    sure, unsure = polygon(confidence=1), polygon(points=[[5, 5], [7, 5], [7, 7], [5, 7]], confidence=0.5)
    true = [image("a.png", sure, unsure)]
    predicted = [image("a.png", polygon())]
    assert scored(predicted, true).agnostic.pixel["recall"].value == 0.5
    kept = uncanny.artifacts.score(predicted, truth=true, min_confidence=0.75, resamples=0)
    assert kept["predictions"].agnostic.pixel["recall"].value == 1
    assert kept.truth.notes == {LOW_CONFIDENCE: 1}
    weighed = scored(predicted, true, weight_confidence=True).agnostic
    assert weighed.pixel["recall"].value == pytest.approx(2 / 3)
    assert weighed.instance["recall"].value == pytest.approx(2 / 3)
    nobody = scored(predicted, [image("a.png", polygon(confidence=0))], weight_confidence=True).agnostic
    assert values(nobody.pixel) == [None] * 4
    assert nobody.presence.value is None
    assert (nobody.with_true, nobody.with_predicted) == (1, 1)


def test_what_failed_is_in_no_figure() -> None:
    true = [image(f"{name}.png", polygon(), source="generated") for name in "abcd"]
    predicted = [
        image("a.png", polygon(), source="generated"),
        image("b.png", status="failed", source=None),
        image("c.png", box(), status="partial", unmeasured=["color"]),
        image("d.png", status="partial"),
    ]
    score = scored(predicted, true)
    assert score.has_failures
    assert score.left_out.unfinished == ("b.png", "c.png", "d.png")
    assert score.scopes["semantics"].images == 2
    assert score.scopes["color"].images == 1
    assert score.scopes["agnostic"].images == 1
    assert score.left_out.unmeasured == {"color": ("c.png",)}


def test_where_all_predictions_failed_there_are_no_figures() -> None:
    true = [image("a.png", polygon(), source="generated")]
    for resamples in (0, 20):
        score = uncanny.artifacts.score(
            [image("a.png", status="failed")], truth=true, resamples=resamples, published=True
        )["predictions"]
        assert score.has_failures
        assert values(score.agnostic.pixel) == [None] * 4
        assert score.left_out.unfinished == ("a.png",)


def test_of_an_answer_that_is_not_whole_the_other_categories_count() -> None:
    true = [image("a.png", polygon(), box("color"), source="generated")]
    predicted = [image("a.png", polygon(), box("color"), status="partial", incomplete=["color"])]
    score = scored(predicted, true)
    assert (score.scopes["semantics"].images, score.scopes["semantics"].pixel["iou"].value) == (1, 1)
    assert score.scopes["color"].images == score.scopes["agnostic"].images == 0
    assert score.left_out.unmeasured == {"color": ("a.png",)}
    assert score.left_out.unfinished == ("a.png",)


def test_images_that_only_one_side_has_are_listed() -> None:
    true = [image("a.png", polygon()), image("b.png", polygon())]
    score = scored([image("x/a.png", polygon()), image("z.png", polygon())], true)
    assert score.left_out.only_truth == ("b.png",)
    assert score.left_out.only_predictions == ("z.png",)
    assert score.scopes["semantics"].pixel["iou"].value == 1
    with pytest.raises(UsageError, match="no image of"):
        scored([image("z.png")], true)


def test_what_was_mended_is_counted() -> None:
    true = [
        image(
            "a.png",
            polygon(points=[[0, 0], [6, 6], [6, 0], [0, 6]]),
            polygon(points=[[9, 9], [12, 9], [12, 12]]),
        )
    ]
    empty = {"category": "color", "mask": encode_rle(np.zeros((8, 8), dtype=np.bool_))}
    predicted = [image("a.png", box(corners=(5, 5, 20, 20)), box(corners=(20, 20, 30, 30)), empty)]
    scores = uncanny.artifacts.score(predicted, truth=true, resamples=0)
    assert scores.truth.notes == {CROSSING: 1, OUTSIDE: 1}
    assert scores["predictions"].notes == {CLIPPED: 1, OUTSIDE: 1, NO_PIXELS: 1}
    # A box outside is a prediction that is wrong; an empty mask is none.
    assert scores["predictions"].agnostic.regions["predicted"] == 2
    assert scores["predictions"].scopes["color"].with_predicted == 0


def test_everything_wrong_with_masks_is_said_at_once(tmp_path: Path) -> None:
    Image.new("1", (9, 8), 1).save(tmp_path / "large.png")
    masks = [{"size": [8, 8], "counts": "zzz"}, "large.png", "none.png", {"size": [4, 4], "counts": [16]}]
    file = write_lines(
        tmp_path / "artifacts.jsonl",
        [image("a.png", *({"category": "color", "mask": mask} for mask in masks)), image("b.png", width=9)],
    )
    truth = write_lines(tmp_path / "truth.jsonl", [image("a.png"), image("b.png", polygon())])
    with pytest.raises(ItemsError) as caught:
        uncanny.artifacts.score(file, truth=truth)
    lines = [str(problem) for problem in caught.value.problems]
    assert len(lines) == 5
    for line, part in zip(
        lines,
        (
            "line 1, item 'a.png', field regions.0.mask: run lengths do not decode",
            "large.png is 9 × 8 pixels, but its image is 8 × 8",
            "none.png cannot be read",
            "is 4 × 4 pixels, but its image is 8 × 8",
            "item 'b.png': is 9 × 8 pixels in the predictions, but 8 × 8 in the truth",
        ),
        strict=True,
    ):
        assert part in line
    truth = write_lines(tmp_path / "truth.jsonl", [{"image": "a.png", "regions": [polygon()]}])
    bare = write_lines(tmp_path / "bare.jsonl", [{"image": "a.png", "regions": [box()]}])
    with pytest.raises(ItemsError, match="has no width and height"):
        uncanny.artifacts.score(bare, truth=truth)
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    assert uncanny.artifacts.score(bare, truth=truth)["bare"].agnostic.pixel["iou"].value == 0.36


def test_wrong_in_truth_and_predictions_says_which() -> None:
    wrong = {"category": "color", "mask": {"size": [1, 1], "counts": [1]}}
    with pytest.raises(ItemsError, match="truth and predictions: 2 problems"):
        scored([image("a.png", wrong)], [image("a.png", wrong)])


def test_predictions_of_two_sizes_cannot_both_be_of_the_image() -> None:
    both: dict[str, Any] = {"A": [image("a.png", box())], "B": [image("a.png", box(), width=9)]}
    with pytest.raises(ItemsError, match="is of 9 × 8 pixels here, and of another size"):
        uncanny.artifacts.score(both, truth=[{"image": "a.png", "regions": [polygon()]}])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"t": 0}, "`t` must be more than 0, not 0"),
        ({"t": 1.5}, "`t` must be at most 1, not 1.5"),
        ({"t": True}, "`t` must be a number, not True"),
        ({"min_confidence": -1}, "min_confidence"),
        ({"score_threshold": 2}, "score_threshold"),
        ({"protocol": "both"}, "'paper' or 'release'"),
        ({"bins": ""}, "bins"),
        ({"n_bins": 0}, "at least 1, not 0"),
        ({"resamples": -1}, "resamples"),
        ({"on_image": 3}, "on_image"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        scored([image("a.png", box())], [image("a.png", polygon())], **options)


def test_protocols_differ_as_they_are_said_to() -> None:
    true = [
        image(
            "a.png",
            polygon(points=[[0, 0], [2, 0], [2, 2], [0, 2]]),
            polygon(points=[[4, 0], [7, 0], [7, 2], [4, 2]]),
        )
    ]
    predicted = [
        image("a.png", box(corners=(0, 0, 3, 6)), box(corners=(4, 0, 6, 2)), box(corners=(5, 1, 7, 2)))
    ]
    paper = scored(predicted, true).scopes["semantics"]
    release = scored(predicted, true, protocol="release").scopes["semantics"]
    # The first lies in a true region by exactly one half; the true ones are one for the authors' scorer.
    assert paper.regions == {"right": 3, "predicted": 3, "found": 2, "true": 2}
    assert release.regions == {"right": 1, "predicted": 2, "found": 1, "true": 1}


def test_intervals_are_of_images_and_the_same_again() -> None:
    generator = np.random.default_rng(0)
    true = [image(f"{n}.png", polygon(), source="generated" if n % 2 else "real") for n in range(40)]
    predicted = [
        image(
            f"{n}.png",
            box(corners=(1, 1, 3 + float(generator.random() * 5), 6)),
            score=float(generator.random()),
        )
        for n in range(40)
    ]
    first = scored(predicted, true, resamples=500, seed=3)
    again = scored(predicted, true, resamples=500, seed=3)
    assert first.agnostic.pixel == again.agnostic.pixel
    for figure in (
        *first.agnostic.pixel.values(),
        *first.agnostic.pixel_mean.values(),
        *first.aj.figures.values(),
    ):
        low, high = figure.interval
        assert low <= figure.value <= high
    assert first.agnostic.pixel["recall"].value > 0
    alone = scored(predicted[1:2], true[1:2], resamples=500)
    assert alone.agnostic.pixel["iou"].interval is None
    # All right on four images says as much of other images as four of four would: Wilson's interval.
    right = scored(true[1:9:2], true[1:9:2], resamples=500).agnostic.pixel["iou"]
    assert right.value == 1
    assert right.interval == pytest.approx((0.5101, 1), abs=1e-4)


def test_several_predictions_side_by_side(tmp_path: Path) -> None:
    truth = [image("a.png", polygon())]
    files = [
        write_lines(tmp_path / f"{name}.jsonl", [image("a.png", region)])
        for name, region in (("boxes", box()), ("polygons", polygon()))
    ]
    scores = uncanny.artifacts.score(files, truth=truth, published=True)
    assert list(scores) == ["boxes", "polygons"]
    assert set(scores.to_json()) == {"models", "mcnemar", "differences", "about", "published"}
    assert scores.to_json()["models"]["polygons"]["pad"]["agnostic"]["pixel"]["iou"] == 1
    both: dict[str, Any] = {"A": files[0], "B": [image("a.png", polygon())]}
    named = uncanny.artifacts.score(both, truth=truth)
    assert named["B"].agnostic.pixel["iou"].value == 1
    text = str(scores)
    assert "Multi-task (published)" in text
    assert "boxes: Pixels by category" in text
    assert "<table>" in scores._repr_html_()
    with pytest.raises(UsageError, match="no predictions"):
        uncanny.artifacts.score({}, truth=truth)


@pytest.mark.slow
def test_two_sets_of_predictions_are_compared_image_by_image() -> None:
    rng = np.random.default_rng(3)
    squares = [(x, y, x + side, y + side) for x, y, side in rng.integers(1, 5, size=(30, 3))]
    sources = ["generated" if place % 3 else "real" for place in range(30)]
    truth = [
        image(f"{place}.png", *([box(corners=square)] if source == "generated" else []), source=source)
        for place, (square, source) in enumerate(zip(squares, sources, strict=True))
    ]

    def predictions(apart: int, wrong: int) -> list[dict[str, Any]]:
        return [
            image(
                f"{place}.png",
                box(corners=[float(end) + apart for end in square]),
                source=source if place % wrong else "generated",
            )
            for place, (square, source) in enumerate(zip(squares, sources, strict=True))
        ]

    # Of one set the last images are missing.
    sets = {"near": predictions(0, 100)[:-4], "far": predictions(1, 2), "farther": predictions(2, 1)}
    scores = uncanny.artifacts.score(sets, truth=truth, resamples=300)
    said = headline(scores)
    assert said.startswith("near leads in PixF1, all artifacts together with 100.0 %")
    assert "significantly ahead of far (" in said
    assert said in str(scores).replace("\n  ", " ")
    verdicts = {test.second: test for test in scores.tests["all"] if test.first == "near"}
    # Of 26 images the second set calls every other one generated, of which 0, 6, 12, 18 and 24 are real.
    assert (verdicts["far"].n, verdicts["far"].first_only, verdicts["far"].second_only) == (26, 4, 0)
    assert verdicts["far"].p_value == pytest.approx(2 * 0.5**4)
    assert [test.n for test in scores.tests["real"]] == [9, 9, 10]
    regions = {(each.first, each.second, each.figure): each for each in scores.differences}
    assert len(regions) == 3 * 3
    near = regions["near", "far", "pixel_iou"]
    shared = uncanny.artifacts.score(
        {name: sets[name][:-4] if name == "far" else sets[name] for name in ("near", "far")},
        truth=truth[:-4],
        resamples=0,
    )
    iou = [shared[name].agnostic.pixel["iou"].value or 0 for name in ("near", "far")]
    assert near.estimate.value == pytest.approx(iou[0] - iou[1])
    assert near.images == sum(source == "generated" for source in sources[:-4])
    assert near.estimate.interval is not None
    assert near.estimate.interval[0] < iou[0] - iou[1] < near.estimate.interval[1]
    # The same by plain resampling: of every image the pixels in both, predicted and true, of either set.
    rows = scores.images_to_pandas()
    rows = rows[(rows.scope == "agnostic") & rows.image.isin({f"{place}.png" for place in range(26)})]
    sides = [
        rows[rows.prediction == name]
        .set_index("image")
        .sort_index()[["both", "predicted_pixels", "true_pixels"]]
        .to_numpy()
        for name in ("near", "far")
    ]
    drawn = rng.integers(len(sides[0]), size=(4_000, len(sides[0])))
    values = []
    for side in sides:
        both, ours, theirs = np.moveaxis(side[drawn].sum(axis=1), -1, 0)
        values.append(both / (ours + theirs - both))
    assert near.estimate.interval == pytest.approx(
        np.quantile(values[0] - values[1], [0.025, 0.975]), abs=0.03
    )
    family = [each for each in scores.differences if each.figure == "pixel_iou"]
    corrected = multipletests([each.p_value for each in family], method="holm")[1]
    assert [each.adjusted_p for each in family] == pytest.approx(corrected)
    content = scores.to_json()
    assert content["differences"][0].keys() == {
        *("first", "second", "figure", "images", "difference", "ci", "p_value", "adjusted_p")
    }
    assert [pair["models"] for pair in content["mcnemar"]] == [
        ["near", "far"],
        ["near", "farther"],
        ["far", "farther"],
    ]
    titles = [table.title or "" for table in scores.tables()]
    assert sum(title.startswith("Two sets of predictions on the same images") for title in titles) == 2


def test_sets_without_regions_or_verdicts_are_compared_by_what_they_have() -> None:
    truth = [image(f"{place}.png", polygon(), source="generated") for place in range(3)]
    regions = [image(f"{place}.png", box()) for place in range(3)]
    verdicts = [{"image": f"{place}.png", "source": "generated"} for place in range(3)]
    alone = uncanny.artifacts.score({"a": regions, "c": regions}, truth=truth, resamples=50)
    assert alone.tests == {}
    scores = uncanny.artifacts.score({"a": regions, "b": verdicts, "c": regions}, truth=truth, resamples=50)
    assert [test.n for test in scores.tests["generated"]] == [0, 0, 0]
    measured = [each for each in scores.differences if each.estimate.value is not None]
    assert {(each.first, each.second, each.estimate.value) for each in measured} == {("a", "c", 0.0)}
    assert all(
        (each.estimate.interval, each.p_value, each.adjusted_p) == (None, 1.0, 1.0) for each in measured
    )


def test_json_has_the_keys_of_the_format() -> None:
    scores = uncanny.artifacts.score(
        [image("a.png", box(), source="generated")],
        truth=[image("a.png", polygon(), source="generated", generator="SDXL")],
    )
    content = json.loads(json.dumps(scores.to_json()))
    assert {"aj", "pad", "par", "ci"} <= content.keys()
    assert {"balanced_accuracy", "precision", "recall", "f1", "by_generator"} <= content["aj"].keys()
    assert content["aj"]["by_generator"]["SDXL"]["recall"] == 1
    pad = content["pad"]
    assert pad["protocol"] == "paper"
    assert list(pad["categories"]) == list(ARTIFACT_CATEGORIES)
    of = pad["categories"]["semantics"]
    assert set(of["pixel"]) == set(of["pixel_mean"]) == {"iou", "precision", "recall", "f1"}
    assert of["instance"] == {"precision": 0, "recall": 0, "f1": 0, "t": 0.5}
    assert of["presence"] == {"f1": 1, "by_chance": 2 / 3, "n_true": 1, "n_pred": 1}
    assert {"pixel", "pixel_mean"} <= pad["agnostic"].keys()
    assert {"lo", "hi", "n", "accuracy"} <= content["par"]["bins"][0].keys()


def test_frames_have_a_row_a_figure_and_a_row_an_image() -> None:
    scores = uncanny.artifacts.score("scenes", truth="scenes", resamples=0)
    frame = scores.to_pandas()
    row = frame[(frame.part == "pad") & (frame.of == "physics") & (frame.figure == "pixel_iou")]
    assert row.value.tolist() == [1]
    images = scores.images_to_pandas()
    assert len(images) == 16 * 8
    assert scores.to_csv().splitlines()[0] == "prediction,part,of,figure,value,low,high"


def test_the_bundled_truth_against_itself_is_perfect_in_all_figures() -> None:
    score = uncanny.artifacts.score("scenes", truth="scenes", resamples=50)["scenes"]
    assert values(score.aj.figures) == [1, 1, 1, 1]
    for scope in score.scopes.values():
        assert set(values(scope.pixel) + values(scope.instance)) <= {1, None}
    assert score.agnostic.with_true == 16


def test_a_run_about_one_category_has_its_tables_and_pictures() -> None:
    others = [name for name in ARTIFACT_CATEGORIES if name != "semantics"]
    predicted = image("a.png", box(), unmeasured=others)
    scores = uncanny.artifacts.score(
        [predicted], truth=[image("a.png", polygon(), box("color"))], resamples=0
    )
    assert "Pixels by category" in str(scores)
    assert "Instances by category" in str(scores)
    assert "Textures, Edges & shapes, Symbols, Color, Commonsense, Physics: not counted" in " ".join(
        str(scores).split()
    )
    score = scores["predictions"]
    assert list(score.left_out.unmeasured) == others
    (example,) = score.examples
    assert example.iou == 0.36
    assert [region.category for region in example.true.regions] == ["semantics"]


def test_a_truth_that_says_no_source_is_said_to_be_why_nothing_is_judged() -> None:
    score = scored(
        [image("a.png", box(), score=0.9), image("b.png", box())], [image("a.png"), image("b.png")]
    )
    assert score.left_out.without_source == ("a.png",)
    assert score.aj.images == 0


def test_heat_maps_and_photographs_taken_for_masks_are_counted(tmp_path: Path) -> None:
    (tmp_path / "maps").mkdir()
    ramp = np.linspace(0, 255, 64).astype(np.uint8).reshape(8, 8)
    Image.fromarray(ramp).save(tmp_path / "maps" / "a.png")
    np.save(tmp_path / "maps" / "b.npy", ramp / 255)
    soft = np.where(ramp > 100, 255, 0).astype(np.uint8)
    soft[3, 0] = 120
    Image.fromarray(soft).save(tmp_path / "maps" / "c.png")
    np.save(tmp_path / "maps" / "d.npy", ramp > 100)
    truth = [image(name, polygon()) for name in ("a.png", "b.png", "c.png", "d.png")]
    for heat_maps, notes in ((False, {SHADES: 2}), (True, {})):
        scores = uncanny.artifacts.score(tmp_path / "maps", truth=truth, resamples=0, heat_maps=heat_maps)
        assert {key: n for key, n in scores["maps"].notes.items() if key == SHADES} == notes
