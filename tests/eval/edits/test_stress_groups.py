"""Edits of one original are counted together: in intervals, in paired tests, and in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import uncanny
from uncanny.errors import UsageError
from uncanny.eval.common.estimates import Share
from uncanny.eval.edits.stress.result import StressResult
from uncanny.eval.metrics.intervals import clustered_interval, wilson_interval
from uncanny.eval.metrics.significance import mcnemar_exact

ORIGINALS, EDITS = 30, 4


def found(original: int, edit: int) -> bool:
    """Of an original all edits are found, or none."""
    del edit
    return original % 3 != 0


def tables(**more: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    pairs = [(o, e) for o in range(ORIGINALS) for e in range(EDITS)]
    meta = [
        {"original": f"o{o}.png", "edited": f"{o}-{e}.png", "method": "ab"[e % 2], **more} for o, e in pairs
    ]
    seen = [{"image": f"{o}-{e}.png", "source": "generated" if found(o, e) else "real"} for o, e in pairs]
    return meta, [*seen, *({"image": f"o{o}.png", "source": "real"} for o in range(ORIGINALS))]


def recall(result: StressResult) -> Share:
    scores = result["detector"].first.classes["generated"].recall
    assert isinstance(scores, Share)
    return scores


def test_edits_of_an_original_say_as_much_as_one_where_they_are_alike() -> None:
    meta, seen = tables()
    together = uncanny.edits.stress(seen, meta=[meta], resamples=200)
    hits = [EDITS * found(o, 0) for o in range(ORIGINALS)]
    assert recall(together).interval == pytest.approx(clustered_interval(hits, [EDITS] * ORIGINALS))
    apart = uncanny.edits.stress(seen, meta=[meta], resamples=200, group_by="image")
    assert recall(apart).interval == pytest.approx(wilson_interval(sum(hits), EDITS * ORIGINALS))
    for name in ("recall", "f1"):
        widths = [
            high - low
            for result in (together, apart)
            for low, high in [getattr(result["detector"].first.classes["generated"], name).interval]
        ]
        assert widths[0] > 1.2 * widths[1]
    (a, _) = together["detector"].first.factors["method"].groups
    assert a.recall.interval == pytest.approx(clustered_interval([h / 2 for h in hits], [2] * ORIGINALS))


def test_conditions_and_detectors_are_compared_by_the_original() -> None:
    meta, seen = tables()
    missed = [{**row, "source": "real"} if row["image"].startswith(("1-", "2-")) else row for row in seen]
    detectors = {"mine": seen, "mine@jpeg-85": missed, "theirs": missed}
    result = uncanny.edits.stress(detectors, meta=[meta], resamples=0)
    # Two originals, of which four edits each are lost: two signs, not eight.
    assert result["mine"].paired["jpeg-85"].lost == 8
    assert result["mine"].paired["jpeg-85"].p_value == pytest.approx(0.5)
    assert result.tests["generated"][0].p_value == pytest.approx(0.5)
    apart = uncanny.edits.stress(detectors, meta=[meta], resamples=0, group_by="image")
    assert apart["mine"].paired["jpeg-85"].p_value == pytest.approx(float(mcnemar_exact(8, 0)))


def test_it_is_said_how_images_were_grouped() -> None:
    meta, seen = tables(scene="s1")
    result = uncanny.edits.stress(seen, meta=[meta], resamples=0)
    assert result.to_json()["about"]["intervals"]["groups"] == {"by": "original", "groups": 30, "images": 150}
    assert "150 images come in 30 groups (by original)" in str(result)
    assert "p-values too small" in " ".join(result.notes())
    apart = uncanny.edits.stress(seen, meta=[meta], resamples=0, group_by="image")
    assert apart.to_json()["about"]["intervals"]["groups"] is None
    assert "groups (by" not in " ".join(apart.notes())
    one = uncanny.edits.stress(seen, meta=[meta], resamples=0, group_by="scene")
    # The originals have no scene of their own.
    assert one.to_json()["about"]["intervals"]["groups"] == {"by": "scene", "groups": 1, "images": 150}
    with pytest.raises(UsageError, match="no table has the column 'scenery'"):
        uncanny.edits.stress(seen, meta=[meta], group_by="scenery")


def test_edits_without_a_value_are_not_held_together_by_it() -> None:
    meta, seen = tables()
    values = ["", " ", 7, "7"]
    rows = [{**row, "scene": values[number % 4]} for number, row in enumerate(meta)]
    result = uncanny.edits.stress(seen, meta=[rows], resamples=0, group_by="scene")
    # Those of the two sevens with their originals, and each other image by itself.
    expected = {"by": "scene", "groups": 1 + 2 * ORIGINALS, "images": 150}
    assert result.to_json()["about"]["intervals"]["groups"] == expected


def test_one_edit_an_original_changes_no_recall() -> None:
    meta, seen = tables()
    first = [row for row in meta if row["edited"].endswith("-0.png")]
    named = {row["edited"] for row in first} | {row["original"] for row in first}
    some = [row for row in seen if row["image"] in named]
    together, apart = (
        uncanny.edits.stress(some, meta=[first], resamples=0, group_by=by) for by in (None, "image")
    )
    assert recall(together) == recall(apart)


def test_figures_that_are_0_on_all_images_count_groups() -> None:
    """A hundred edits of ten originals of which none is found are ten cases, however many images they are."""
    meta = [{"original": f"o{o}.png", "edited": f"{o}-{e}.png"} for o in range(10) for e in range(10)]
    seen = [{"image": row["edited"], "source": "real"} for row in meta]
    seen += [{"image": f"o{o}.png", "source": "real"} for o in range(10)]
    together, apart = (
        uncanny.edits.stress(seen, meta=[meta], resamples=100, group_by=by)["detector"].first.classes
        for by in (None, "image")
    )
    generated = together["generated"]
    assert generated.f1.interval == wilson_interval(0, 10)
    assert generated.recall.interval == pytest.approx(wilson_interval(0, 10))
    assert apart["generated"].f1.interval == wilson_interval(0, 100)


def test_maps_of_one_original_are_drawn_together(tmp_path: Path) -> None:
    mask = np.zeros((8, 8), dtype=np.bool_)
    mask[:4] = True
    Image.fromarray(mask).save(tmp_path / "m.png")
    rng = np.random.default_rng(1)
    meta, seen = [], []
    for original in range(12):
        heat = rng.uniform(0, 255, (8, 8)).astype(np.uint8)
        heat[: 2 + original % 3] = 255
        Image.fromarray(heat).save(tmp_path / f"h{original}.png")
        for edit in range(4):
            name = f"{original}-{edit}.png"
            meta.append({"original": f"o{original}.png", "edited": name, "mask": "m.png"})
            seen.append({"image": name, "source": "generated", "heat_map": f"h{original}.png"})
    located = [
        uncanny.edits.stress(seen, meta=[rows], root=tmp_path, resamples=500, group_by=by)[
            "detector"
        ].first.localization
        for rows, by in ((meta, None), (meta, "image"), (meta[::4], "image"))
    ]
    intervals = [(each.iou.interval, each.pixel_auc.interval) for each in located if each]
    for ours, theirs, alone in zip(*intervals, strict=True):
        assert ours is not None
        assert theirs is not None
        # Four edits that are alike say as much as one.
        assert ours == pytest.approx(alone)
        assert ours[1] - ours[0] > 1.6 * (theirs[1] - theirs[0])
