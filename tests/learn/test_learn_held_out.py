"""Held-out images: apart from those trained on, drawn at random; and digests of what a run depends on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from PIL import Image

from uncanny.errors import UsageError
from uncanny.files.digests import folder_digest
from uncanny.learn.common.held_out import Traces, check_apart, sample
from uncanny.learn.grounding.data import read_images
from uncanny.learn.vision.data import read_splits


def picture(folder: Path, name: str, level: int) -> None:
    folder.mkdir(exist_ok=True)
    Image.new("RGB", (8, 8), (level, 0, 0)).save(folder / f"{name}.png")


def truth(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "truth.jsonl"
    path.write_bytes(b"".join(orjson.dumps({"source": "real"} | each) + b"\n" for each in records))
    return path


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders of images of the same names and other pixels."""
    for number, name in enumerate(("train", "test")):
        for place, each in enumerate("ab"):
            picture(tmp_path / name, each, 10 * number + place)
    return tmp_path / "train", tmp_path / "test"


def traces(path: Path) -> list[Traces]:
    return [each.traces for each in read_images(path, None)]


def test_the_same_names_elsewhere_are_other_images(sides: tuple[Path, Path]) -> None:
    train, test = (truth(side, {"image": "a.png", "pair": number}) for number, side in enumerate(sides))
    check_apart(traces(train), traces(test))
    splits = read_splits(train, test, 0.1, 0)
    assert (len(splits.train), len(splits.test)) == (1, 1)


@pytest.mark.parametrize("shared", [{"pair": 7}, {"original": "../train/b.png"}])
def test_images_that_belong_to_trained_ones_are_refused(
    sides: tuple[Path, Path], shared: dict[str, Any]
) -> None:
    train = truth(sides[0], {"image": "a.png", "pair": 7}, {"image": "b.png"})
    test = truth(sides[1], {"image": "a.png"} | shared, {"image": "b.png"})
    for check in (lambda: check_apart(traces(train), traces(test)), lambda: read_splits(train, test, 0.1, 0)):
        with pytest.raises(UsageError, match=r"1 held-out image is trained on.*test/a\.png"):
            check()


def test_a_copy_under_another_name_is_refused(sides: tuple[Path, Path]) -> None:
    picture(sides[1], "c", 0)  # the same bytes as train/a.png
    with pytest.raises(UsageError, match=r"1 held-out image is trained on.*c\.png"):
        check_apart(traces(truth(sides[0], {"image": "a.png"})), traces(truth(sides[1], {"image": "c.png"})))


def test_a_sample_has_as_many_of_each_kind_as_there_are() -> None:
    drawn = sample(range(100), lambda each: each < 10, 8, 3)
    assert sum(each < 10 for each in drawn) == 4
    assert drawn != sample(range(100), lambda each: each < 10, 8, 4)
    assert drawn == sample(range(100), lambda each: each < 10, 8, 3)
    assert sum(each < 10 for each in sample(range(100), lambda each: each < 10, 50, 3)) == 10
    assert sorted(sample(range(100), lambda each: each < 10, 200, 3)) == list(range(100))
    assert sample([], bool, 8, 0) == []


def test_a_digest_is_of_all_content_and_of_nothing_beside_it(tmp_path: Path) -> None:
    weights, page = tmp_path / "model.safetensors", tmp_path / "report.html"
    weights.write_bytes(bytes(2**21))
    before = folder_digest(tmp_path)
    page.write_text("a page")
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "lock").write_text("")
    assert folder_digest(tmp_path) == before
    changed = tmp_path / "changed"
    changed.write_bytes(bytes(2**21 - 1) + b"\1")
    changed.replace(weights)  # as large as it was, with another last byte
    assert folder_digest(tmp_path) != before
