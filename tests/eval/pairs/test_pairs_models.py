"""Pipelines of diffusers and SAM 2, with random weights: what they paint, and which masks are taken."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import uncanny
from tests.eval.pairs.made_candidates import SIZE, made, mask_file, picture, pictures
from uncanny.edits import EditPair
from uncanny.errors import RunMismatchError
from uncanny.eval.pairs.data import Hint, load_made
from uncanny.eval.pairs.make.outline import MaskError, Sam2, dilated, misfit, region_mask
from uncanny.eval.pairs.make.regions import Region

HINT = Hint(source="hand", name="the left hand", box=(20, 20, 40, 40), points=((25, 25), (35, 35)))


def box_mask(*box: int) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    mask = np.zeros((SIZE[1], SIZE[0]), dtype=np.bool_)
    mask[box[1] : box[3], box[0] : box[2]] = True
    return mask


@pytest.mark.slow
def test_a_pipeline_paints_the_mask_and_nothing_else_twice_the_same(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("diffusers")
    from tests.eval.pairs.tiny_models import tiny_pipeline

    torch.set_num_threads(1)
    pipeline = tiny_pipeline(tmp_path / "model")
    images = pictures(tmp_path / "pictures")
    options: dict[str, Any] = {"inpainter": f"diffusers/{pipeline}", "attempts": 2, "steps": 4}
    run = uncanny.pairs.make(images, out=tmp_path / "one", **options)
    again = uncanny.pairs.make(images, out=tmp_path / "two", device="cpu", **options)
    assert run.summary.statuses["ok"] == 1, run.originals[0].errors
    pairs = load_made(run.path)
    for pair in pairs:
        original, edited = (
            np.asarray(Image.open(each)) for each in (pair.original_file, pair.edited_file or Path())
        )
        mask = np.asarray(Image.open(pair.mask_file or Path())) > 0
        assert np.array_equal(original[~mask], edited[~mask])
        assert (original[mask] != edited[mask]).any()
        assert pair.candidate.outside_painted is not None
        # What random weights decode is another picture, outside the mask too.
        assert pair.candidate.outside_painted > 0.5
        assert pair.candidate.sent.keys() == {"seed", "guidance", "strength", "steps"}
        assert (pair.candidate.revision or "").startswith(f"{pipeline}@")
    first, second = (each.candidate for each in pairs)
    assert first.sha256 != second.sha256
    assert [each.candidate.sha256 for each in load_made(again.path)] == [first.sha256, second.sha256]


@pytest.mark.slow
def test_a_pipeline_paints_on_the_device_that_is_asked_for(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("diffusers")
    from tests.eval.pairs.tiny_models import tiny_pipeline

    torch.set_num_threads(1)
    pipeline = tiny_pipeline(tmp_path / "model")
    run = uncanny.pairs.make(
        pictures(tmp_path / "pictures"),
        inpainter=f"diffusers/{pipeline}",
        out=tmp_path / "pairs",
        attempts=1,
        device="cuda:7",
    )
    assert run.summary.state == "stopped"
    assert "Device 'cuda:7' cannot be used" in (run.summary.error or "")


def test_a_folder_without_a_pipeline_ends_the_run(tmp_path: Path) -> None:
    pytest.importorskip("diffusers")
    images = pictures(tmp_path / "pictures")
    (tmp_path / "nothing").mkdir()
    run = uncanny.pairs.make(
        images, inpainter=f"diffusers/{tmp_path / 'nothing'}", out=tmp_path / "pairs", attempts=1
    )
    assert run.summary.state == "stopped"
    assert "cannot be loaded" in (run.summary.error or "")


@pytest.mark.slow
def test_sam2_gives_masks_of_the_size_of_the_image(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from tests.eval.pairs.tiny_models import tiny_sam2

    torch.set_num_threads(1)
    sam = Sam2(str(tiny_sam2(tmp_path / "sam")), "cpu")
    masks = sam.masks(picture(), HINT)
    assert len(masks) == 3
    assert {mask.shape for mask in masks} == {(SIZE[1], SIZE[0])}


@pytest.mark.slow
def test_another_sam2_is_refused_when_a_run_that_needs_it_resumes(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("cv2")
    from tests.eval.pairs.tiny_models import tiny_sam2

    torch.set_num_threads(1)
    sam = tiny_sam2(tmp_path / "sam")
    mask_file(tmp_path / "masks/picture-0.png", (10, 10, 30, 30))
    options: dict[str, Any] = {"sam2": str(sam), "device": "cpu", "attempts": 1}
    images = pictures(tmp_path / "pictures")
    given = partial(
        uncanny.pairs.make, images, inpainter="demo", out=tmp_path / "g", masks=tmp_path / "masks", **options
    )
    made(tmp_path, **options)
    given()
    (sam / "config.json").write_text(f"{(sam / 'config.json').read_text()}\n")
    with pytest.raises(RunMismatchError, match="files of `sam2`"):
        made(tmp_path, **options)
    assert given().summary.state == "finished"


@pytest.mark.parametrize(
    ("mask", "why"),
    [
        (box_mask(20, 20, 40, 40), None),
        (box_mask(19, 19, 42, 42), None),
        (box_mask(20, 20, 30, 30), None),
        (box_mask(0, 0, 0, 0), "it is empty"),
        (box_mask(60, 40, 80, 60), "it covers 0% of the region, and 50% are needed"),
        (box_mask(20, 20, 80, 40), "63% of it lies outside the region"),
    ],
)
def test_a_mask_fits_its_region_or_says_why_not(
    mask: np.ndarray[tuple[int, int], np.dtype[np.bool_]], why: str | None
) -> None:
    assert misfit(mask, HINT, []) == why


def test_a_mask_that_spreads_to_another_region_does_not_fit() -> None:
    other = Hint(source="face", name="the face", box=(40, 20, 42, 40))
    assert misfit(box_mask(20, 20, 42, 40), HINT, [other]) == "it spreads to the face"


def test_holes_are_filled_and_masks_widened() -> None:
    ring = box_mask(20, 20, 40, 40) & ~box_mask(26, 26, 30, 30)
    mask, source = region_mask(Region(HINT, ring), [], picture(), None, dilate=2, largest=0.5)
    assert source == "given"
    assert np.array_equal(mask, box_mask(18, 18, 42, 42))
    assert np.array_equal(dilated(ring, 0), ring)
    with pytest.raises(MaskError, match="6% of the image, and 1% are allowed"):
        region_mask(Region(HINT, ring), [], picture(), None, dilate=0, largest=0.01)


@pytest.mark.slow
def test_clip_drops_the_candidates_that_the_gates_drop(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("cv2")
    from tests.eval.pairs.tiny_models import tiny_clip

    torch.set_num_threads(1)
    clip = tiny_clip(tmp_path / "clip")
    run = made(tmp_path, attempts=4)
    screened = uncanny.pairs.screen(run, clip=clip)
    records = [
        EditPair(
            id=pair.id,
            original=str(pair.original_file),
            edited=str(pair.edited_file),
            caption="A picture",
            edited_caption="A picture",
        )
        for pair in load_made(run.path)
    ]
    gated = uncanny.edits.gate(records, clip=clip)
    expected = {each.id for each in gated if {"clip_similarity", "clip_score"} & set(each.failed)}
    rejected = {each.candidate for each in screened.screened if each.rejected is not None}
    assert rejected == expected != set()
    (clip / "preprocessor_config.json").write_text("{}")
    with pytest.raises(RunMismatchError, match="files of `clip`"):
        uncanny.pairs.screen(run, clip=clip)
