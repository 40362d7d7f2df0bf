"""The bundled large scenes: a small fault in a large picture, and a partner that is the same but for it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFilter

import uncanny
from uncanny.demo.scenes import SETS, Picture, large_scenes, scene_by_sha256, scenes
from uncanny.demo.sets import LARGE_SCENES
from uncanny.errors import UsageError

DATA = SETS[LARGE_SCENES]
SOURCES = Path(__file__).parents[2] / "examples" / "scenes"
EVERY = pytest.mark.parametrize("picture", large_scenes(), ids=lambda each: each.id)
PAIRS = [
    (picture, next(each for each in large_scenes() if each.pair_id == picture.pair_id and not each.anomalies))
    for picture in large_scenes()
    if picture.anomalies
]
EACH_PAIR = pytest.mark.parametrize(("wrong", "clean"), PAIRS, ids=lambda each: each.id)


def mask_of(picture: Picture) -> Image.Image:
    with Image.open(picture.anomalies[0].mask_path) as mask:
        assert (mask.mode, mask.size) == ("1", (picture.width, picture.height))
        return mask.convert("L")


@EVERY
def test_pictures_are_large_and_their_truth_fits_the_file(picture: Picture) -> None:
    assert hashlib.sha256(picture.image_path.read_bytes()).hexdigest() == picture.sha256
    with Image.open(picture.image_path) as image:
        assert image.size == (picture.width, picture.height)
    assert max(picture.width, picture.height) >= 3000
    assert (picture.style, len(picture.anomalies)) == ("large", int(picture.role == "anomalous"))
    assert len({each.name for each in picture.objects}) == len(picture.objects) >= 5
    boxes = [each.box for each in picture.objects] + [each.box for each in picture.anomalies]
    for x0, y0, x1, y1 in boxes:
        assert 0 <= x0 < x1 <= picture.width
        assert 0 <= y0 < y1 <= picture.height


@EACH_PAIR
def test_the_fault_is_small_and_in_its_box(wrong: Picture, clean: Picture) -> None:
    mask = mask_of(wrong)
    share = np.count_nonzero(np.asarray(mask)) / (wrong.width * wrong.height)
    assert 0 < share <= 0.005
    assert mask.getbbox() == wrong.anomalies[0].box
    assert (clean.width, clean.height) == (wrong.width, wrong.height)
    assert [each.name for each in clean.objects] == [each.name for each in wrong.objects]


@pytest.mark.slow
@EACH_PAIR
def test_a_pair_differs_only_where_the_fault_is(wrong: Picture, clean: Picture) -> None:
    """But for what the encoder makes of it: 16 pixels around the fault, and noise elsewhere.

    Before encoding, `make.py` puts every pixel that differs into the mask. The noise was measured at 0.08 to
    0.32 of the fault, in the means of blocks of 8 pixels.
    """
    pixels = []
    for picture in (wrong, clean):
        with Image.open(picture.image_path) as image:
            pixels.append(np.asarray(image.convert("RGB")).astype(np.float32))
    differs = np.abs(pixels[0] - pixels[1]).max(axis=2)
    inside = np.asarray(mask_of(wrong)) > 0
    near = np.asarray(Image.fromarray(inside).convert("L").filter(ImageFilter.MaxFilter(33))) > 0
    assert differs[inside].max() > 60
    assert mean_of_blocks(differs * ~near).max() < 0.4 * mean_of_blocks(differs * near).max()


def mean_of_blocks(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    height, width = (side // 8 for side in values.shape)
    blocks = values[: height * 8, : width * 8].reshape(height, 8, width, 8)
    return np.asarray(blocks.mean(axis=(1, 3)))


def test_the_set_is_apart_from_the_small_one_and_light() -> None:
    assert len(PAIRS) * 2 == len(large_scenes())
    assert not {each.id for each in scenes()} & {each.id for each in large_scenes()}
    files = {path.name for path in (DATA / "images").iterdir()} - {"metadata.jsonl"}
    assert files == {each.image_path.name for each in large_scenes()}
    masks = {path.name for path in (DATA / "masks").iterdir()}
    assert masks == {wrong.anomalies[0].mask_path.name for wrong, _ in PAIRS}
    assert sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file()) < 4.5 * 2**20


def test_metadata_says_which_make_a_pair() -> None:
    rows = [json.loads(line) for line in (DATA / "images" / "metadata.jsonl").read_text().splitlines()]
    assert {row["file_name"]: row["pair"] for row in rows} == {
        each.image_path.name: each.pair_id for each in large_scenes()
    }


def test_scripts_are_there_for_all() -> None:
    for wrong, _ in PAIRS:
        name = wrong.pair_id
        assert (SOURCES / "texts" / f"{name}.json").is_file()
        assert (SOURCES / "drawn" / f"{name}.py").is_file() or (SOURCES / "pov" / f"{name}.pov").is_file()


def test_pictures_are_found_by_digest() -> None:
    for picture in large_scenes():
        assert scene_by_sha256(picture.sha256.upper()) is picture


@pytest.mark.slow
def test_the_word_stands_for_the_set_as_images_and_as_truth(tmp_path: Path) -> None:
    run = uncanny.detect("large-scenes", model="demo", out=tmp_path / "run", truth="large-scenes")
    found = {Path(each.image).name: [a.name for a in each.anomalies] for each in run.annotations}
    assert found == {
        each.image_path.name: [anomaly.name for anomaly in each.anomalies] for each in large_scenes()
    }
    truth = uncanny.semantic.load("large-scenes", role="truth")
    assert {each.image for each in truth.images} == set(found)
    assert len(uncanny.realism.load("large-scenes")) == len(uncanny.edits.load("large-scenes")) == len(PAIRS)


def test_a_file_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "large-scenes").mkdir()
    with pytest.raises(UsageError):
        uncanny.edits.load("large-scenes")
