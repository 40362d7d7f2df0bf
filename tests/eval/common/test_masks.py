"""Masks against pycocotools and scikit-image, hand-worked cases, and files that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray
from PIL import Image
from pycocotools import mask as coco
from skimage.measure import label

from uncanny.errors import UsageError
from uncanny.eval.common.pixels.crops import EMPTY, Mask, crop, intersection_area, union
from uncanny.eval.common.pixels.masks import (
    component_crops,
    components,
    decode_rle,
    encode_rle,
    read_heat_map,
    read_mask,
)
from uncanny.eval.common.pixels.shapes import box_crop

MASKS = arrays(np.bool_, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=24))
EIGHT = (8, 8)


def pair_of_masks() -> st.SearchStrategy[tuple[Mask, Mask]]:
    return array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=20).flatmap(
        lambda shape: st.tuples(arrays(np.bool_, shape), arrays(np.bool_, shape))
    )


@given(MASKS)
def test_run_lengths_are_those_of_pycocotools(mask: Mask) -> None:
    theirs = coco.encode(np.asfortranarray(mask.astype(np.uint8)))
    ours = encode_rle(mask)
    assert ours == {"size": list(mask.shape), "counts": theirs["counts"].decode()}
    assert (decode_rle(ours) == mask).all()
    assert (coco.decode(theirs) == decode_rle(ours)).all()


def test_run_lengths_as_a_list_and_long_ones() -> None:
    assert decode_rle({"size": [2, 3], "counts": [1, 2, 3]}).tolist() == [[0, 1, 0], [1, 0, 0]]
    mask = np.zeros((3000, 2000), dtype=np.bool_)
    mask[1500:, 700:710] = True
    assert (decode_rle(encode_rle(mask)) == mask).all()


@pytest.mark.parametrize(
    "rle",
    [
        {},
        {"size": [2, 2]},
        {"size": [2, 2], "counts": 4},
        {"size": [2, 2], "counts": [4.0]},
        {"size": [2, 2], "counts": [1, -1, 4]},
        {"size": [2, 2], "counts": [5]},
        {"size": [2, 2], "counts": []},
        {"size": [2, 2], "counts": ""},
        {"size": [2, 2], "counts": "o"},
        {"size": [2, 2], "counts": "~~~"},
        {"size": [2, 2], "counts": "ü"},
        {"size": [2, 2], "counts": "o" * 40 + "0"},
        {"size": [2, -2], "counts": [4]},
        {"size": [0, 2], "counts": []},
        {"size": [10**9, 10**9], "counts": [10**18]},
        {"size": "2x2", "counts": [4]},
    ],
)
def test_run_lengths_that_do_not_decode(rle: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        decode_rle(rle)


@given(st.text(alphabet="".join(map(chr, range(48, 112))), max_size=12))
def test_any_text_decodes_or_is_refused(counts: str) -> None:
    try:
        mask = decode_rle({"size": [5, 7], "counts": counts})
    except UsageError:
        return
    assert mask.shape == (5, 7)


def test_run_lengths_of_another_size() -> None:
    with pytest.raises(UsageError, match=r"3 × 2 pixels, but its image is 2 × 3"):
        decode_rle({"size": [2, 3], "counts": [6]}, (2, 3))


@given(pair_of_masks())
def test_counts_on_crops_are_those_of_whole_masks(masks: tuple[Mask, Mask]) -> None:
    first, second = masks
    size = first.shape[1], first.shape[0]
    ours, theirs = crop(first), crop(second)
    assert (ours.on(size) == first).all()
    assert ours.area == first.sum()
    assert intersection_area(ours, theirs) == (first & second).sum()
    assert (union([ours, theirs]).on(size) == (first | second)).all()


@given(MASKS, st.sampled_from([4, 8]))
def test_components_are_those_of_scikit_image(mask: Mask, connectivity: Any) -> None:
    labels, number = components(mask, connectivity)
    theirs: NDArray[np.int64] = label(mask, connectivity=1 if connectivity == 4 else 2)  # type: ignore[no-untyped-call]
    assert number == theirs.max()
    assert (labels == theirs).all()
    size = mask.shape[1], mask.shape[0]
    crops = component_crops(crop(mask), connectivity)
    assert len(crops) == number
    for place, each in enumerate(crops, start=1):
        assert (each.on(size) == (theirs == place)).all()


def test_nothing_at_all() -> None:
    assert crop(np.zeros((3, 4), dtype=np.bool_)) is EMPTY
    assert union([]) is EMPTY
    assert EMPTY.area == 0
    assert component_crops(EMPTY) == []
    assert not EMPTY.on((4, 3)).any()
    with pytest.raises(UsageError, match="does not fit"):
        box_crop((0, 0, 5, 5), EIGHT).on((4, 4))


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA", "I;16"])
def test_masks_from_images_of_any_mode(tmp_path: Path, mode: str) -> None:
    mask = np.zeros((3, 5), dtype=np.bool_)
    mask[1, 2:4] = True
    if mode == "I;16":
        image = Image.fromarray(mask.astype(np.uint16) * 40_000)
    else:
        image = Image.fromarray(mask.astype(np.uint8) * 255).convert(mode)
    image.save(tmp_path / "mask.png")
    assert (read_mask(tmp_path / "mask.png", (5, 3)) == mask).all()


def test_labels_of_one_and_two_are_set_and_traces_of_jpeg_are_not(tmp_path: Path) -> None:
    labels = np.zeros((16, 16), dtype=np.uint8)
    labels[4:8, 4:8] = 1
    Image.fromarray(labels).save(tmp_path / "mask.png")
    assert read_mask(tmp_path / "mask.png").sum() == 16
    Image.fromarray(labels * 255).save(tmp_path / "mask.jpg", quality=60)
    assert read_mask(tmp_path / "mask.jpg").sum() == 16


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32"])
def test_masks_from_numpy_files(tmp_path: Path, dtype: str) -> None:
    np.save(tmp_path / "mask.npy", np.eye(4, 6).astype(dtype))
    assert (read_mask(tmp_path / "mask.npy", (6, 4)) == (np.eye(4, 6) > 0)).all()


def test_heat_maps_are_in_zero_to_one(tmp_path: Path) -> None:
    grey = np.array([[0, 51, 255]], dtype=np.uint8)
    Image.fromarray(grey).save(tmp_path / "a.png")
    assert read_heat_map(tmp_path / "a.png").tolist() == [[0, 0.2, 1]]
    Image.fromarray(np.array([[0, 65535]], dtype=np.uint16)).save(tmp_path / "b.png")
    assert read_heat_map(tmp_path / "b.png").tolist() == [[0, 1]]
    np.save(tmp_path / "c.npy", np.array([[0.25, 1.0]], dtype=np.float32))
    assert read_heat_map(tmp_path / "c.npy").tolist() == [[0.25, 1]]
    np.save(tmp_path / "d.npy", grey)
    assert read_heat_map(tmp_path / "d.npy").tolist() == [[0, 0.2, 1]]
    for name, wrong in (("e", [[0.5, 1.5]]), ("f", [[float("nan"), 0]])):
        np.save(tmp_path / f"{name}.npy", np.array(wrong))
        with pytest.raises(UsageError, match="0–1"):
            read_heat_map(tmp_path / f"{name}.npy")
    Image.new("RGB", (2, 2)).save(tmp_path / "g.png")
    with pytest.raises(UsageError, match="grayscale"):
        read_heat_map(tmp_path / "g.png")


def test_damaged_masks_are_called_damaged(tmp_path: Path) -> None:
    np.save(tmp_path / "whole.npy", np.eye(64))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "whole.npy").read_bytes()[:4000])
    (tmp_path / "text.npy").write_text("no array")
    Image.effect_noise((64, 64), 50).save(tmp_path / "whole.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "whole.png").read_bytes()[:2000])
    for name in ("cut.npy", "text.npy", "cut.png"):
        with pytest.raises(UsageError, match=rf"{name} cannot be read: ") as refused:
            read_mask(tmp_path / name)
        assert "name is not valid" not in str(refused.value)
        assert "Check the disk" not in str(refused.value)


def test_files_that_are_no_masks_are_named(tmp_path: Path) -> None:
    Image.new("L", (4, 3)).save(tmp_path / "small.png")
    (tmp_path / "text.png").write_text("no image")
    (tmp_path / "empty.npy").write_bytes(b"")
    np.save(tmp_path / "cube.npy", np.zeros((2, 2, 2)))
    np.save(tmp_path / "objects.npy", np.array([[{}]]), allow_pickle=True)
    Image.effect_noise((64, 64), 50).save(tmp_path / "noise.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "noise.png").read_bytes()[:2000])
    for name in ("text.png", "empty.npy", "cube.npy", "objects.npy", "missing.png", "cut.png"):
        with pytest.raises(UsageError, match=name):
            read_mask(tmp_path / name)
    with pytest.raises(UsageError, match=r"small\.png is 4 × 3 pixels, but its image is 5 × 3"):
        read_mask(tmp_path / "small.png", (5, 3))
