"""From stated confidences to probabilities: right on images that nobody judged."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import orjson
import pytest

import uncanny
from tests.eval.trust.judged_runs import fault, image_of, judge, write
from tests.runs.e2e import uncanny_here
from uncanny.eval.trust.calibration import (
    FOLDS,
    LEAST_FINDINGS,
    calibration_error,
    fit_calibration,
    fit_steps,
    folds,
)
from uncanny.eval.trust.data import JudgedFinding
from uncanny.records.calibration import MadeWith, line_of
from uncanny.schema import Annotation, Anomaly


def overconfident(images: int, seed: int) -> tuple[dict[str, Annotation], dict[str, list[Anomaly]]]:
    """Findings are right with the square of the confidence: 0.9 says 0.81, 0.6 says 0.36."""
    draw = random.Random(seed)
    records, truth = {}, {}
    for number in range(images):
        name = f"{number:05d}.png"
        found = [
            fault(f"finding {place}", 20, round(draw.uniform(0.5, 1), 2))
            for place in range(draw.randint(0, 4))
        ]
        truth[name] = [each for each in found if draw.random() < (each.confidence or 0) ** 2]
        records[name] = image_of(name, found, number)
    return records, truth


def finding(
    image: str, confidence: float | None, accepted: bool | None, weight: float = 1.0
) -> JudgedFinding:
    return JudgedFinding(image, weight, accepted, None, (), confidence, ())


def fitted(
    stated: Sequence[float], accepted: Sequence[int], weights: Sequence[float] | None = None
) -> list[object]:
    counts = np.ones(len(stated)) if weights is None else np.array(weights, float)
    steps = fit_steps(np.array(stated, float), np.array(accepted, float), counts)
    return [(each.low, each.high, each.probability) for each in steps]


def test_a_map_worked_by_hand() -> None:
    # At 0.5: 0 of 1 and half an accepted one, 0.5 / 1.5. At 0.6 and 0.7 the shares fall, 1 and 0, so they are
    # one step: 1 of 2. At 0.9: 2 of 2 and half a rejected one, 2 / 2.5.
    steps = fitted([0.5, 0.6, 0.7, 0.9, 0.9], [0, 1, 0, 1, 1])
    assert steps == [(0.5, 0.5, pytest.approx(1 / 3)), (0.6, 0.7, 0.5), (0.9, 0.9, 0.8)]
    # One confidence: two of two, and half of each: 2.5 of 3. Weights count in shares of their mean.
    assert fitted([0.9, 0.9], [1, 1]) == [(0.9, 0.9, pytest.approx(2.5 / 3))]
    assert fitted([0.5, 0.9, 0.9], [0, 1, 0], [2, 6, 1]) == [
        (0.5, 0.5, pytest.approx(0.5 / (2 / 3 + 0.5))),
        (0.9, 0.9, pytest.approx(2 / (2 + 1 / 3 + 0.5))),
    ]


def pooled(x: np.ndarray, y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Scikit-learn's isotonic regression, with the pseudo-findings of ours as ordinary ones."""
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(out_of_bounds="clip")
    model.fit(
        np.append(x, [x.min(), x.max()]),
        np.append(y, [1, 0]),
        sample_weight=np.append(w / w.mean(), [0.5, 0.5]),
    )
    return np.asarray(model.predict(np.linspace(0, 1, 401)))


@pytest.mark.parametrize("seed", range(20))
def test_the_map_is_that_of_another_implementation(seed: int) -> None:
    draw = np.random.default_rng(seed)
    x = draw.integers(50, 101, draw.integers(1, 400)) / 100
    y = (draw.random(len(x)) < x**2).astype(float)
    w = draw.uniform(1, 50, len(x))
    steps = fit_steps(x, y, w)
    assert np.interp(np.linspace(0, 1, 401), *line_of(steps)) == pytest.approx(pooled(x, y, w), abs=1e-12)
    assert 0 < steps[0].probability <= steps[-1].probability < 1


def test_the_calibration_error_worked_by_hand() -> None:
    # Of the bin from 0.9 on one of two is right, which says 0.95; of that from 0.6 none, which says 0.6.
    p, y = np.array([0.9, 1.0, 0.6]), np.array([1.0, 0.0, 0.0])
    assert calibration_error(p, y, np.ones(3)) == pytest.approx((2 * 0.45 + 0.6) / 3)
    # The last one counts as twice.
    assert calibration_error(p, y, np.array([1.0, 1.0, 2.0])) == pytest.approx((2 * 0.45 + 2 * 0.6) / 4)


def test_parts_never_share_an_image_and_are_always_the_same() -> None:
    images = [f"{number % 37}.png" for number in range(200)]
    parts = folds(images)
    by_image = {
        image: {part for other, part in zip(images, parts, strict=True) if other == image} for image in images
    }
    assert {len(each) for each in by_image.values()} == {1}
    sizes = [sum(part in each for each in by_image.values()) for part in range(FOLDS)]
    assert sorted(sizes) == [3] * 3 + [4] * 7
    assert dict(zip(images, parts, strict=True)) == dict(zip(images[::-1], folds(images[::-1]), strict=True))


def test_too_few_findings_have_no_calibration_and_those_without_a_confidence_are_counted() -> None:
    few = [finding(f"{n}.png", 0.8, n % 2 == 0) for n in range(LEAST_FINDINGS - 1)]
    assert fit_calibration(few, 0.5, MadeWith()) is None
    enough = [*few, finding("last.png", 0.8, None), finding("null.png", None, True)]
    made = fit_calibration(enough, 0.5, MadeWith())
    assert made is not None
    calibration = made.calibration
    assert (calibration.findings, calibration.without_confidence, calibration.images) == (50, 1, 50)
    assert (calibration.least_confidence, calibration.folds) == (0.5, FOLDS)
    # Enough findings, of too few images.
    assert fit_calibration([finding(f"{n % 9}.png", 0.8, True) for n in range(60)], 0.5, MadeWith()) is None


def test_an_image_that_is_drawn_more_often_counts_less() -> None:
    # Doubtful images were drawn ten times as often, and what is found in them is wrong.
    often = [finding(f"a{n}.png", 0.8, False, 1) for n in range(50)]
    seldom = [finding(f"b{n}.png", 0.8, True, 10) for n in range(50)]
    made = fit_calibration([*often, *seldom], 0.5, MadeWith())
    assert made is not None
    assert made.calibration.probability(0.8) == pytest.approx(10 / 11, abs=0.01)


@pytest.mark.parametrize("design", ["random", "active"])
def test_probabilities_are_right_on_images_that_nobody_judged(tmp_path: Path, design: str) -> None:
    records, truth = overconfident(2_000, seed=4)
    run = write(tmp_path / "run", [*records.values()])
    uncanny.sample(run, size=150, design=design)  # type: ignore[arg-type]
    judge(run, records, truth)
    result = uncanny.trust(run)
    calibration = result.calibration
    assert calibration is not None
    judged = {each.annotation.image for each in result.judged.judged}
    rest = [
        (name, each) for name, record in records.items() if name not in judged for each in record.anomalies
    ]
    stated = np.array([each.confidence for _, each in rest], float)
    right = np.array([each in truth[name] for name, each in rest], float)
    mapped = np.array([calibration.probability(each.confidence) for _, each in rest], float)
    before, after = (calibration_error(each, right, np.ones(len(right))) for each in (stated, mapped))
    assert before > 0.15
    assert after < before / 2
    # What it says of its own error, on other images than those of the map, is about that.
    assert calibration.error_before == pytest.approx(before, abs=0.05)
    assert calibration.error_after == pytest.approx(after, abs=0.06)
    assert calibration.error_before == pytest.approx(result.calibration_error)
    # Linear between 0 and 1, never there.
    assert all(0 < each < 1 for each in mapped)
    assert list(mapped[np.argsort(stated)]) == sorted(mapped)


def test_the_command_writes_what_the_function_has(tmp_path: Path) -> None:
    records, truth = overconfident(300, seed=2)
    run = write(tmp_path / "run", [*records.values()])
    uncanny.sample(run, size=200)
    judge(run, records, truth)
    file = tmp_path / "new" / "calibration.json"
    done = uncanny_here("trust", run, "--write", file)
    assert done.code == 0
    assert "Calibrated, on held-out images: 0." in " ".join(done.out.split())
    result = uncanny.trust(run)
    assert uncanny.Calibration.read(file) == result.calibration
    told = uncanny_here("trust", run, "--write", file, "--json", "-").json()["calibration"]
    assert told["error"] > told["calibrated"]["error_after"]
    assert [each["out_of"] for each in told["calibrated"]["bins"]] == [
        each.right.out_of for each in result.calibrated_bins
    ]
    content = orjson.loads(file.read_bytes())
    assert content["made_with"] == {"models": ["m"], "prompts": ["p@1"], "schedule": None}
    # Nothing else is written over, and no input.
    other = tmp_path / "other.json"
    other.write_text("{}")
    refused = uncanny_here("trust", run, "--write", other)
    assert (refused.code, other.read_text()) == (2, "{}")
    assert uncanny_here("trust", run, "--write", run / "annotations.jsonl").code == 2


def test_too_few_judged_findings_are_said(tmp_path: Path) -> None:
    records, truth = overconfident(100, seed=2)
    run = write(tmp_path / "run", [*records.values()])
    uncanny.sample(run, size=12)
    judge(run, records, truth)
    words = " ".join(uncanny_here("trust", run).out.split())
    assert "A calibration needs 50 judged findings with a confidence in at least 10 images" in words
    done = uncanny_here("trust", run, "--write", tmp_path / "c.json")
    assert done.code == 2
    assert "images; " in done.err
    assert "Figures of all 100 images" in done.out
    assert not (tmp_path / "c.json").exists()
    assert uncanny_here("trust", run, "--json", "-").json()["calibration"]["calibrated"] is None


def test_which_findings_are_right_comes_as_a_frame(tmp_path: Path) -> None:
    records, truth = overconfident(60, seed=2)
    run = write(tmp_path / "run", [*records.values()])
    uncanny.sample(run, size=40)
    judge(run, records, truth)
    result = uncanny.trust(run)
    frame = result.findings_frame()
    assert list(frame.columns) == list(result.finding_columns)
    every = frame[frame["group"] == "all"].iloc[0]
    assert (every["right"], every["judged"]) == (result.precision.value, result.precision.out_of)
    assert frame[frame["group"] == "confidence"]["judged"].sum() == result.precision.out_of
