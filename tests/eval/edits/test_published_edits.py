"""The published rows about edits that can be worked out again, from counts or from one another."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest

import uncanny
from uncanny.eval.common.published import published
from uncanny.eval.metrics.detection import Accuracy, Judged
from uncanny.schema import Source

EDITS, INPAINTING = published("edit_scores"), published("inpainting_scores")
DETECTORS = {row["model"]: row for row in EDITS["detectors"]}
# Half a unit of the last figure that is printed.
ROUNDED = 0.005 + 1e-9


@pytest.mark.parametrize("name", DETECTORS)
def test_all_is_the_mean_of_both_classes(name: str) -> None:
    row = DETECTORS[name]
    for figure in ("precision", "recall"):
        mean = (row[f"{figure}_real"] + row[f"{figure}_fake"]) / 2
        assert row[f"{figure}_all"] == pytest.approx(mean, abs=2 * ROUNDED)


# Edits for each real image, as precision and recall of both classes imply; the text says 60,000 for 27,000.
IMPLIED = {"CrossEfficientViT": 1.683, "UniversalFakeDetect": 1.835, "DE-FAKE": 1.835}


@pytest.mark.parametrize("name", IMPLIED)
def test_precision_follows_from_recall_and_counts(name: str) -> None:
    """Both precisions come out of one number of images a class: the rows are consistent in themselves."""
    row = DETECTORS[name]
    real = 100_000
    edits = round(IMPLIED[name] * real)
    right = {
        "real": round(row["recall_real"] / 100 * real),
        "generated": round(row["recall_fake"] / 100 * edits),
    }
    counts: dict[tuple[Source, Judged], int] = {
        ("real", "real"): right["real"],
        ("real", "generated"): real - right["real"],
        ("generated", "generated"): right["generated"],
        ("generated", "real"): edits - right["generated"],
    }
    accuracy = Accuracy(Counter(counts))
    sources: dict[str, Source] = {"real": "real", "fake": "generated"}
    for printed, source in sources.items():
        precision, recall = accuracy.precision(source), accuracy.recall(source)
        assert precision is not None
        assert recall is not None
        assert 100 * precision == pytest.approx(row[f"precision_{printed}"], abs=0.03)
        assert 100 * recall == pytest.approx(row[f"recall_{printed}"], abs=ROUNDED)
    assert abs(IMPLIED[name] - 60_000 / 27_000) > 0.3


@pytest.mark.parametrize(("name", "implied"), [("CNNSpot", 1.835), ("DIRE", 1.69), ("DINOv2", 1.69)])
def test_a_detector_that_calls_all_real_is_as_precise_as_real_images_are_many(
    name: str, implied: float
) -> None:
    assert DETECTORS[name]["precision_real"] == pytest.approx(100 / (1 + implied), abs=0.02)


DIRECTIONAL = EDITS["directional"]
# CrossEfficientViT leaves out images without a face, so fewer were judged than are listed; of the last,
# nothing is said.
OTHER_COUNTS = {
    ("CrossEfficientViT", "lower lip", "nose"),
    ("CrossEfficientViT", "left brow", "left brow with slight arch"),
    ("CrossEfficientViT", "car", "car with shiny chrome accents"),
    ("CrossEfficientViT", "skin", "skin with subtle freckles"),
    ("CrossEfficientViT", "left ear", "earring"),
    ("DE-FAKE", "nose", "nose ring"),
}


def test_directional_edits_are_reproduced_from_their_counts() -> None:
    """Semi-Truths, table 4: `edits stress` has each recall again, except where other counts were judged."""
    off = set()
    for model in {row["model"]: None for row in DIRECTIONAL}:
        meta, seen = [], []
        rows = [row for row in DIRECTIONAL if row["model"] == model]
        for row in rows:
            pair = {name: row[name] for name in ("label", "edited_label")}
            for place in range(row["edits"]):
                name = f"{row['label']}-{row['edited_label']}-{place}.png"
                meta.append({"edited": name, **pair})
                found = place < round(row["recall"] / 100 * row["edits"])
                seen.append({"image": name, "source": "generated" if found else "real"})
        scores = uncanny.edits.stress({model: seen}, meta=[meta], least_edits=20, resamples=0)
        factor = scores[model].factor("directional")
        for row in rows:
            recall = factor[f"{row['label']} → {row['edited_label']}"].recall
            assert recall.out_of == row["edits"]
            assert recall.value is not None
            if abs(100 * recall.value - row["recall"]) > 0.011:
                off.add((model, row["label"], row["edited_label"]))
    assert off == OTHER_COUNTS


MODELS = {row["model"]: row for row in INPAINTING["human_vs_model"]}


@pytest.mark.parametrize("name", [name for name in MODELS if name != "Human"])
def test_all_is_the_plain_mean_of_the_three_labels(name: str) -> None:
    row = MODELS[name]
    for figure in ("acc", "iou"):
        labels = [row[f"{figure}_{label}"] for label in ("deceiving", "intermediate", "non_deceiving")]
        assert row[f"{figure}_all"] == pytest.approx(sum(labels) / 3, abs=0.1)


def test_no_weights_of_the_labels_give_the_human_row() -> None:
    """Its accuracy lies near the non-deceiving ones', its IoU near the deceiving ones'."""
    row = MODELS["Human"]
    apart = []
    for deceiving, intermediate in product(np.linspace(0, 1, 101), repeat=2):
        weights = (deceiving, intermediate, 1 - deceiving - intermediate)
        if weights[2] >= 0:
            errors = [
                sum(
                    weight * row[f"{figure}_{label}"]
                    for weight, label in zip(
                        weights, ("deceiving", "intermediate", "non_deceiving"), strict=True
                    )
                )
                - row[f"{figure}_all"]
                for figure in ("acc", "iou")
            ]
            apart.append(max(map(abs, errors)))
    assert min(apart) > 5


@pytest.mark.parametrize("row", INPAINTING["fidelity_fully_regenerated"], ids=lambda row: row["dataset"])
def test_errors_bound_one_another(row: dict[str, float]) -> None:
    """Means of images: MAE² ≤ MSE, and a mean of PSNR is at least the PSNR of the mean MSE."""
    mse, mae = row["mse_x1000"] / 1000, row["mae_x1000"] / 1000
    assert mae**2 <= mse
    assert row["psnr"] >= -10 * math.log10(mse)


def test_splits_add_up() -> None:
    """SAGI, supplementary, section 1.1: 25,674 combinations of RAISE."""
    assert sum(INPAINTING["splits"]["raise"]) == 25_674


def test_rank_correlations_agree_in_direction() -> None:
    """Nothing can be computed from the coefficients alone; Kendall's is the smallest in size, as is usual."""
    rows = {row["coefficient"]: row for row in EDITS["human_correlation"]}
    for metric in ("area_ratio", "lpips", "ssim"):
        signs = {math.copysign(1, row[metric]) for row in rows.values()}
        assert len(signs) == 1
        assert abs(rows["kendall"][metric]) < abs(rows["spearman"][metric])
