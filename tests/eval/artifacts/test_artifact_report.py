"""The page of artifact scores: what stands in it, safe against names, with regions drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import uncanny.artifacts
from tests.eval.artifacts.made_sets import box, image, point, polygon, write_lines
from uncanny.demo.scenes import scenes
from uncanny.eval.artifacts.report import _traced
from uncanny.eval.common.pixels.crops import Crop


def scene_boxes() -> list[dict[str, object]]:
    return [
        {
            "image": scene.image_path.name,
            "score": 0.9 if scene.anomalies else 0.2,
            "regions": [box(each.category, each.box, note="<b>odd</b>") for each in scene.anomalies],
        }
        for scene in scenes()
    ]


@pytest.mark.slow
def test_the_page_of_several_sets(tmp_path: Path) -> None:
    files = [write_lines(tmp_path / f"{name}.jsonl", scene_boxes()) for name in ("one", "two & <three>")]
    page = uncanny.artifacts.score(files, truth="scenes", resamples=20, published=True).report(
        tmp_path / "page.html"
    )
    text = page.read_text()
    for words in (
        "All artifacts together",
        "Edges &amp; shapes",
        "CNNSpot",
        "Accuracy by bins",
        "18 that are real",
    ):
        assert words in text
    assert "two &amp; &lt;three&gt;" in text
    assert "<b>odd</b>" not in text
    assert text.count('class="region-card"') == 24
    assert text.count('class="edge m0"') == 24
    assert "M" in text.split('class="m1" d="')[1][:2]
    assert "drawn for-narrow" in text


@pytest.mark.parametrize("pictures", ["link", "embed"])
def test_pages_without_pictures_bins_or_categories(tmp_path: Path, pictures: str) -> None:
    predicted = [image("a.png", box(None), point("color", 2, 2)), image("b.png")]
    truth = [image("a.png", polygon()), image("b.png")]
    scores = uncanny.artifacts.score(predicted, truth=truth, resamples=0)
    text = scores.report(tmp_path / "page.html", pictures=pictures).read_text()  # type: ignore[arg-type]
    assert "image is not there or cannot be read" in text
    assert "Accuracy by bins" not in text
    verdicts = [{"image": "a.png", "score": 0.2}]
    alone = uncanny.artifacts.score(verdicts, truth=truth, resamples=0).report(tmp_path / "alone.html")
    assert "No image has a region on either side." in alone.read_text()


def test_a_mask_is_drawn_by_its_edges() -> None:
    ((first, *rest),) = _traced(Crop(10, 20, np.ones((3, 4), dtype=np.bool_)))
    corners = [first, *rest]
    assert min(x for x, _ in corners) == 10
    assert max(x for x, _ in corners) == 14
    assert (min(y for _, y in corners), max(y for _, y in corners)) == (20, 23)
    large = _traced(Crop(0, 0, np.ones((3000, 3000), dtype=np.bool_)))
    assert sum(map(len, large)) < 4000
