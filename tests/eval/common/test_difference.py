"""Where an edit differs: a hand-worked picture, two sizes, and files that cannot be read."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from uncanny.eval.common.pages.pictures import Shot
from uncanny.eval.common.pixels.difference import AMPLIFIED, SIDE, difference


def saved(path: Path, pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> Shot:
    Image.fromarray(pixels).save(path)
    return Shot(path, hashlib.sha256(path.read_bytes()).hexdigest())


def pixels_of(webp: bytes | None) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    assert webp is not None
    with Image.open(io.BytesIO(webp)) as image:
        return np.asarray(image.convert("L"))


def test_what_differs_is_bright_and_the_rest_is_dark(tmp_path: Path) -> None:
    before = np.full((64, 96, 3), 100, np.uint8)
    after = before.copy()
    after[16:32, 16:48, 1] += 20  # one channel alone
    after[40:56, 64:80] = 255
    apart = pixels_of(difference(saved(tmp_path / "a.png", before), saved(tmp_path / "b.png", after))).astype(
        int
    )
    assert apart.shape == (64, 96)
    assert apart[20:28, 20:44].mean() == pytest.approx(20 * AMPLIFIED, abs=4)
    assert apart[44:52, 68:76].mean() > 245
    assert apart[:12].max() <= 6


def test_two_sizes_are_compared_as_the_original_lies_and_large_ones_are_reduced(tmp_path: Path) -> None:
    before = saved(tmp_path / "a.png", np.full((1000, 2000, 3), 50, np.uint8))
    after = saved(tmp_path / "b.png", np.full((64, 64, 3), 50, np.uint8))
    apart = pixels_of(difference(before, after))
    assert apart.shape == (SIDE // 2, SIDE)
    assert apart.max() <= 4


def test_without_both_pictures_there_is_no_difference(tmp_path: Path) -> None:
    shot = saved(tmp_path / "a.png", np.zeros((8, 8, 3), np.uint8))
    assert difference(shot, None) is None
    assert difference(None, shot) is None
    assert difference(shot, Shot(tmp_path / "gone.png")) is None
    assert difference(shot, Shot(shot.path, "0" * 64)) is None
