"""X-AIGD's tables 3, 9 and 12 from sets made to fit: `artifacts score` has their figures again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import uncanny
from tests.eval.artifacts.made_sets import box
from uncanny.eval.artifacts.score.result import PredictionScore
from uncanny.eval.common.pixels.masks import encode_rle
from uncanny.eval.common.published import published
from uncanny.schema import ARTIFACT_CATEGORIES

TABLES = published("artifact_scores")
ROUNDED = 0.05 + 1e-9
SIDE = 500
BOTH = 600
Regions = list[dict[str, Any]]


def record(name: str, side: int, regions: Regions) -> dict[str, Any]:
    return {"image": name, "width": side, "height": side, "source": "generated", "regions": regions}


def scored(predicted: Regions, true: Regions) -> PredictionScore:
    return uncanny.artifacts.score(predicted, truth=true, resamples=0)["predictions"]


def counts_of(percent: float) -> tuple[int, int]:
    """The fewest hits, and misses and false alarms together, of which F1 is this percentage."""
    for total in range(1, 2_000):
        hits = round(percent / 200 * total)
        if abs(200 * hits / total - percent) <= ROUNDED:
            return hits, total - 2 * hits
    raise AssertionError(percent)


@pytest.mark.parametrize("row", TABLES["pixels_by_category"], ids=lambda row: str(row["model"]))
def test_pixels_by_category(row: dict[str, Any]) -> None:
    """Table 3: 600 pixels in both, and as many predicted and true ones as precision and recall have."""
    places = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    predicted, true = [], []
    for category in ARTIFACT_CATEGORIES:
        ends = [round(100 * BOTH / row[category][name]) for name in ("pix_p", "pix_r")]
        start = ends[0] - BOTH
        assert start + ends[1] <= SIDE * SIDE
        ours, theirs = places < ends[0], (places >= start) & (places < start + ends[1])
        predicted.append({"category": category, "mask": encode_rle(ours)})
        true.append({"category": category, "mask": encode_rle(theirs)})
    scopes = scored([record("a.png", SIDE, predicted)], [record("a.png", SIDE, true)]).scopes
    for category in ARTIFACT_CATEGORIES:
        for name, figure in (("pix_p", "precision"), ("pix_r", "recall")):
            value = scopes[category].pixel[figure].value
            assert value is not None
            assert 100 * value == pytest.approx(row[category][name], abs=ROUNDED)


@pytest.mark.parametrize("row", TABLES["vlm_presence_f1"], ids=lambda row: str(row["model"]))
def test_presence(row: dict[str, Any]) -> None:
    """Table 9: images in which a category is found, and as many in which it is missed as F1 leaves."""
    counts = {category: counts_of(row[category]) for category in ARTIFACT_CATEGORIES}
    predicted, true = [], []
    for place in range(1 + max(map(sum, counts.values()))):
        found, there = [], []
        for category, (hits, missed) in counts.items():
            there += [box(category)] * (place < hits + missed)
            # One false alarm where nothing is found, which would be no prediction of the category at all.
            found += [box(category)] * (place < hits or (not hits and place == missed))
        predicted.append(record(f"{place}.png", 8, found))
        true.append(record(f"{place}.png", 8, there))
    scopes = scored(predicted, true).scopes
    for category in ARTIFACT_CATEGORIES:
        value = scopes[category].presence.value
        assert value is not None
        assert 100 * value == pytest.approx(row[category], abs=ROUNDED)


@pytest.mark.parametrize("row", TABLES["vlm_instance_f1_at_0.5"], ids=lambda row: str(row["model"]))
def test_instances(row: dict[str, Any]) -> None:
    """Table 12: one image with regions of a pixel, of which as many are found as F1 has."""
    predicted, true = [], []
    for category in ARTIFACT_CATEGORIES:
        hits, missed = counts_of(row[category])
        cells = [(place % 32 * 2, place // 32 * 2) for place in range(hits + missed + 1)]
        boxes = [box(category, (x, y, x + 1, y + 1)) for x, y in cells]
        true += boxes[: hits + missed]
        predicted += boxes[:hits] or boxes[-1:]
    scopes = scored([record("a.png", 64, predicted)], [record("a.png", 64, true)]).scopes
    for category in ARTIFACT_CATEGORIES:
        value = scopes[category].instance["f1"].value
        assert value is not None
        assert 100 * value == pytest.approx(row[category], abs=ROUNDED)
