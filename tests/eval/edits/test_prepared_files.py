"""Masks for inpainting, crops that keep an edit, and BRISQUE: beside OpenCV, SciPy and by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy import ndimage  # type: ignore[import-untyped]
from scipy.special import gamma  # type: ignore[import-untyped]

import uncanny
from tests.eval.edits.made_pairs import save
from tests.runs.e2e import uncanny_here
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.common.pixels.window import mask_window
from uncanny.eval.edits.parameters import MaskConfig
from uncanny.eval.edits.prepare import soften


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_middle_is_kept_where_it_has_enough_of_the_mask() -> None:
    mask = np.zeros((10, 20), dtype=np.bool_)
    mask[4:6, 8:16] = True  # six of its eight columns are within columns 6 to 14
    middle = mask_window(mask, 8, 0.75, rng())
    assert (middle.box, middle.kept, middle.how) == ((6, 1, 14, 9), 0.75, "center")
    moved = mask_window(mask, 8, 0.76, rng())
    assert moved.how == "drawn"
    assert moved.kept is not None
    assert moved.kept >= 0.76


def test_a_mask_that_fits_in_no_window_has_the_one_that_keeps_most() -> None:
    mask = np.zeros((8, 24), dtype=np.bool_)
    mask[3, :] = True
    mask[5, :6] = True
    window = mask_window(mask, 8, 0.9, rng())
    assert (window.x, window.how, window.kept) == (0, "most", 14 / 30)
    nothing = mask_window(np.zeros((8, 24), dtype=np.bool_), 8, 0.9, rng())
    assert (nothing.box, nothing.kept, nothing.how) == ((8, 0, 16, 8), None, "center")
    with pytest.raises(ValueError, match="a window of 9 pixels"):
        mask_window(mask, 9, 0.5, rng())


@given(st.integers(0, 10**6), st.integers(1, 12), st.floats(0, 1))
def test_windows_are_those_of_looking_at_each_place(seed: int, side: int, least: float) -> None:
    generator = rng(seed)
    mask = generator.random((12, 15)) < 0.2
    window = mask_window(mask, side, least, generator)
    kept = {
        (x, y): int(mask[y : y + side, x : x + side].sum())
        for y in range(13 - side)
        for x in range(16 - side)
    }
    if not mask.any():
        return
    assert window.kept == pytest.approx(kept[window.x, window.y] / mask.sum())
    enough = {place for place, count in kept.items() if count >= least * mask.sum()}
    if window.how == "most":
        assert not enough
        assert kept[window.x, window.y] == max(kept.values())
    else:
        assert (window.x, window.y) in enough
        assert (window.how == "center") == ((window.x, window.y) == ((15 - side) // 2, (12 - side) // 2))


def test_drawn_windows_are_as_likely_as_the_loop_of_the_paper_makes_them() -> None:
    """Drawing until one is good is drawing among the good ones: three places here, a third each."""
    mask = np.zeros((4, 12), dtype=np.bool_)
    mask[0, 2] = True
    places = [mask_window(mask, 4, 1, rng(seed)).x for seed in range(300)]
    assert set(places) == {0, 1, 2}
    assert all(70 < places.count(place) < 130 for place in (0, 1, 2))


def test_a_softened_mask_is_that_of_other_filters() -> None:
    mask = np.zeros((120, 160), dtype=np.bool_)
    mask[40:80, 50:110] = True
    hard = soften(mask, MaskConfig(blur=0))
    wide = cv2.dilate(mask.astype(np.uint8) * 255, np.ones((17, 17), np.uint8))  # twice 9 is once 17
    # The mode of 81 pixels that are black or white is the median.
    assert np.array_equal(hard, ndimage.median_filter(wide, size=9))
    soft = soften(mask, MaskConfig())
    exact = ndimage.gaussian_filter(hard.astype(np.float64), 16, mode="nearest")
    assert np.abs(soft - exact).max() < 8
    assert soft[60, 80] > 200 > soft[0, 0]


def test_masks_are_written_and_small_ones_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "masks"
    (folder / "deep").mkdir(parents=True)
    for name, share in (("deep/half.png", 0.5), ("tiny.npy", 0.04)):
        mask = np.zeros((100, 100), dtype=np.uint8)
        mask[: round(100 * share)] = 255
        if name.endswith(".npy"):
            np.save(folder / name, mask)
        else:
            Image.fromarray(mask).save(folder / name)
    (folder / "broken.png").write_bytes(b"no image")
    done = uncanny_here("edits", "masks", folder, "-o", tmp_path / "soft", "--json")
    assert done.code == 1
    content = json.loads(done.out)
    assert content["written"] == {"deep/half": 0.5}
    assert content["small"] == {"tiny": 0.04}
    assert list(content["failed"]) == ["broken"]
    with Image.open(tmp_path / "soft/deep/half.png") as image:
        assert image.size == (100, 100)
        assert image.mode == "L"
    Image.new("L", (4, 4)).save(folder / "tiny.png")
    with pytest.raises(ItemsError, match="same file"):
        uncanny.edits.masks(folder, out=tmp_path / "again")
    with pytest.raises(UsageError, match="does not exist"):
        uncanny.edits.masks(tmp_path / "nowhere", out=tmp_path / "again")


def made_edit(folder: Path, *, mask: bool) -> dict[str, Any]:
    """A square far from the middle of a wide image becomes white."""
    original = np.full((60, 180, 3), 90, dtype=np.uint8)
    edited = original.copy()
    edited[20:40, 150:170] = 255
    for name, pixels in (("o.png", original), ("e.png", edited)):
        save(folder / name, pixels)
    Image.fromarray((edited != original).any(axis=2)).save(folder / "m.png")
    return {
        "id": "a/../b",
        "original": "o.png",
        "edited": "e.png",
        "method": "square",
        **({"mask": "m.png"} if mask else {}),
    }


@pytest.mark.parametrize("mask", [True, False])
def test_a_crop_follows_the_edit_with_and_without_a_mask(tmp_path: Path, mask: bool) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(json.dumps(made_edit(tmp_path, mask=mask)))
    done = uncanny_here(
        *("edits", "crop", pairs, "-o", tmp_path / "crops", "--side", "60", "--short-side", "60"),
        *("--least-kept", "1"),
    )
    assert done.code == 0, done.told
    assert ("1 without a mask" in done.out) is not mask
    record = json.loads((tmp_path / "crops/pairs.jsonl").read_text())
    assert record["method"] == "square"
    assert record["crop_kept"] == 1
    left, top, right, bottom = record["crop"]
    assert (top, bottom, right - left) == (0, 60, 60)
    assert left <= 150 < 170 <= right
    with Image.open(tmp_path / "crops" / record["edited"]) as image:
        assert image.size == (60, 60)
        assert image.getpixel((160 - left, 30)) == (255, 255, 255)
    measured = uncanny.edits.measure(tmp_path / "crops/pairs.jsonl")
    assert measured["a/../b"].status == "ok"
    assert not (tmp_path / "crops/b.png").exists()


def test_crops_of_pairs_of_two_sizes_fail_alone(tmp_path: Path) -> None:
    line = made_edit(tmp_path, mask=True)
    Image.new("RGB", (5, 5)).save(tmp_path / "other.png")
    pairs = [
        uncanny.edits.EditPair(id="1", original=line["original"], edited="other.png"),
        uncanny.edits.EditPair(id="2", original=line["original"], edited=line["edited"]),
    ]
    crops = uncanny.edits.crop(pairs, out=tmp_path / "crops", root=tmp_path, side=8, short_side=8)
    assert list(crops.windows) == ["2"]
    assert "nothing is resized" in crops.failed["1"]
    with pytest.raises(UsageError, match="is above"):
        uncanny.edits.crop(pairs, out=tmp_path / "crops", side=9, short_side=8)


def test_an_edit_more_moves_no_other_crop(tmp_path: Path) -> None:
    line = made_edit(tmp_path, mask=True)
    pairs = [uncanny.edits.EditPair.model_validate({**line, "id": str(number)}) for number in range(6)]
    of: dict[str, Any] = {"root": tmp_path, "side": 30, "short_side": 60}
    all_of_them = uncanny.edits.crop(pairs, out=tmp_path / "all", **of).windows
    assert len({window.box for window in all_of_them.values()}) > 1
    assert uncanny.edits.crop(pairs[2:], out=tmp_path / "some", **of).windows == {
        each.id: all_of_them[each.id] for each in pairs[2:]
    }


def test_a_mask_of_one_pixel_is_in_the_crop(tmp_path: Path) -> None:
    line = made_edit(tmp_path, mask=True)
    mask = np.zeros((60, 180), dtype=np.uint8)
    mask[31, 161] = 255
    Image.fromarray(mask).save(tmp_path / "m.png")
    pairs = [uncanny.edits.EditPair.model_validate(line)]
    crops = uncanny.edits.crop(pairs, out=tmp_path / "crops", root=tmp_path, side=2, short_side=2)
    assert crops.windows["a/../b"].kept == 1


needs_contrib = pytest.mark.skipif(
    not hasattr(cv2, "quality"), reason="OpenCV without its contributed modules"
)
quality: Any = getattr(cv2, "quality", None)


def noisy(deviation: float, seed: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
    noise = rng(seed).normal(128, deviation, (96, 96, 1)).repeat(3, axis=2)
    return np.clip(noise, 0, 255).astype(np.uint8)


@pytest.fixture
def brisque_folder(tmp_path: Path) -> Path:
    """A model in OpenCV's format that gives four noisy images 10, 30, 50 and 70."""
    features = np.vstack([quality.QualityBRISQUE_computeFeatures(noisy(d)) for d in (5, 20, 40, 60)])
    low, high = features.min(axis=0), features.max(axis=0)
    ranges = cv2.FileStorage(str(tmp_path / "brisque_range_live.yml"), cv2.FILE_STORAGE_WRITE)
    ranges.write("range", np.stack([low, high]).astype(np.float32))
    ranges.release()
    learning: Any = cv2.ml
    model = learning.SVM_create()
    model.setType(learning.SVM_EPS_SVR)
    model.setKernel(learning.SVM_RBF)
    model.setC(100)
    model.setP(0.1)
    model.setGamma(0.05)
    scaled = (2 * (features - low) / (high - low + 1e-9) - 1).astype(np.float32)
    model.train(scaled, learning.ROW_SAMPLE, np.array([10, 30, 50, 70], dtype=np.float32))
    model.save(str(tmp_path / "brisque_model_live.yml"))
    return tmp_path


@needs_contrib
def test_brisque_is_measured_for_the_gate_by_opencv(brisque_folder: Path) -> None:
    lines: list[dict[str, Any]] = []
    for number, deviation in enumerate((5, 20, 40, 60)):
        save(brisque_folder / f"e{number}.png", noisy(deviation))
        save(brisque_folder / f"o{number}.png", noisy(deviation, 9))
        lines.append({"id": str(number), "original": f"o{number}.png", "edited": f"e{number}.png"})
    lines[3]["brisque"] = 3
    save(brisque_folder / "flat.png", np.zeros((96, 96, 3), dtype=np.uint8))
    lines.append({"id": "flat", "original": "o0.png", "edited": "flat.png"})
    pairs = brisque_folder / "pairs.jsonl"
    pairs.write_text("".join(json.dumps(line) + "\n" for line in lines))
    edits = uncanny.edits.gate(pairs, brisque_model=brisque_folder, brisque=45)
    values = [edits[str(number)].values["brisque"] for number in range(4)]
    assert values[:3] == pytest.approx([10, 30, 50], abs=3)
    assert values[3] == 3, "a column of the records is taken as it is"
    assert edits["2"].failed == ("brisque",)
    assert "too even" in edits["flat"].unmeasured["brisque"]


@needs_contrib
def test_a_folder_without_brisques_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"brisque_model_live\.yml"):
        uncanny.edits.gate("scenes", brisque_model=tmp_path)
    for name in ("model", "range"):
        (tmp_path / f"brisque_{name}_live.yml").write_text("nothing")
    with pytest.raises(UsageError, match="contains no model of BRISQUE"):
        uncanny.edits.gate("scenes", brisque_model=tmp_path)


@needs_contrib
def test_opencvs_features_are_those_of_the_paper() -> None:
    """Mittal and others, 2012: normalized luminance, and the generalized Gaussian that fits it."""
    image = noisy(30, 4)
    gray = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY).astype(np.float64) / 255
    mean = cv2.GaussianBlur(gray, (7, 7), 7 / 6, borderType=cv2.BORDER_REPLICATE)
    square = cv2.GaussianBlur(gray**2, (7, 7), 7 / 6, borderType=cv2.BORDER_REPLICATE)
    normal = (gray - mean) / (np.sqrt(np.abs(square - mean**2)) + 1 / 255)
    left, right = (np.sqrt((normal[where] ** 2).mean()) for where in (normal < 0, normal > 0))
    ratio, sides = np.abs(normal).mean() ** 2 / (normal**2).mean(), left / right
    wanted = ratio * (sides**3 + 1) * (sides + 1) / (sides**2 + 1) ** 2
    shapes = np.arange(0.2, 10, 0.001)
    fits = gamma(2 / shapes) ** 2 / (gamma(1 / shapes) * gamma(3 / shapes))
    shape = shapes[np.argmin(np.abs(fits - wanted))]
    ours = quality.QualityBRISQUE_computeFeatures(image)[0]
    assert ours[0] == pytest.approx(shape, abs=0.05)
    assert ours[1] == pytest.approx((left**2 + right**2) / 2, rel=0.02)


def test_long_ids_and_images_of_one_row_cost_no_other_crop(tmp_path: Path) -> None:
    for name, size in (("a", (12, 10)), ("b", (100_000, 1))):
        Image.new("RGB", size).save(tmp_path / f"{name}.png")
    pairs = [
        uncanny.edits.EditPair(id=each, original=f"{name}.png", edited=f"{name}.png")
        for each, name in (("é" * 300, "a"), ("é" * 301, "a"), ("wide", "b"))
    ]
    crops = uncanny.edits.crop(pairs, out=tmp_path / "crops", root=tmp_path, side=64, short_side=64)
    assert len(crops.windows) == 2
    assert list(crops.failed) == ["wide"]
    assert len(list((tmp_path / "crops/edited").iterdir())) == 2
