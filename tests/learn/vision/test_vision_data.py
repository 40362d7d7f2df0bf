"""Samples for detectors: splits by group, classes of pixels, changes at random, order."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from PIL import Image

from benchmarks.learning.planted import plant
from uncanny.errors import UsageError
from uncanny.eval.artifacts.data.records import ArtifactRecord
from uncanny.learn.vision.data import (
    UNNAMED,
    Alignment,
    Changes,
    Labeled,
    class_pixels,
    read_splits,
    training_order,
)
from uncanny.learn.vision.losses import IGNORED


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in records))
    return path


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    for name in "abcdefgh":
        Image.new("RGB", (40, 30), (120, 90, 60)).save(tmp_path / f"{name}.png")
    return tmp_path


def test_classes_of_pixels_by_hand(pictures: Path) -> None:
    regions = [
        {"category": "textures", "box": [0, 0, 20, 10]},
        {"category": "color", "box": [5, 5, 10, 10]},  # the smaller one counts
        {"box": [30, 20, 40, 30]},
    ]
    records: list[dict[str, Any]] = [
        {"image": "a.png", "source": "generated", "regions": regions, "width": 40, "height": 30},
        {"image": "b.png", "source": "real", "regions": []},
        {"image": "c.png", "source": "generated"},
        {"image": "d.png"},  # nobody says what it is
    ]
    train = read_splits(write(pictures / "t.jsonl", records), None, 0.0, 0).train
    assert [each.generated for each in train] == [True, False, True]
    assert [each.is_annotated for each in train] == [True, True, False]
    classes = [each.pixels()[1] for each in train]
    assert Counter(classes[0].ravel().tolist()) == {0: 1200 - 200 - 100, 1: 175, 4: 25, UNNAMED: 100}
    assert not classes[1].any()
    assert (classes[2] == IGNORED).all()
    assert class_pixels(train[:2]).tolist() == [900 + 1200, 175, 0, 0, 25, 0, 0, 0]


def test_images_that_belong_together_are_on_one_side(pictures: Path) -> None:
    records = [
        {"image": f"{name}.png", "source": "generated" if number % 2 else "real", "pair": f"p{number // 2}"}
        for number, name in enumerate("abcdefgh")
    ]
    splits = read_splits(write(pictures / "t.jsonl", records), None, 0.5, 3)
    sides = [
        {(each.truth.record.model_extra or {})["pair"] for each in side}
        for side in (splits.train, splits.test)
    ]
    assert len(splits.train) == len(splits.test) == 4
    assert not sides[0] & sides[1]


def test_validation_is_taken_from_groups_of_training_images_only(pictures: Path) -> None:
    records = [
        {"image": f"{name}.png", "source": "generated" if number % 2 else "real", "pair": f"p{number // 2}"}
        for number, name in enumerate("abcdefgh")
    ]
    held_out = read_splits(write(pictures / "t.jsonl", records), None, 0.25, 3)
    splits = held_out.with_validation(0.34, 3)
    assert splits.test == held_out.test
    assert [len(each) for each in splits.named().values()] == [4, 2, 2]
    groups = [{each.group for each in side} for side in splits.named().values()]
    assert len(set.union(*groups)) == sum(map(len, groups)) == 4


def test_what_cannot_be_trained_on_is_refused(pictures: Path) -> None:
    with pytest.raises(UsageError, match="cannot be found"):
        read_splits(write(pictures / "t.jsonl", [{"image": "no.png", "source": "real"}]), None, 0.0, 0)
    with pytest.raises(UsageError, match="says of no image"):
        read_splits(write(pictures / "t.jsonl", [{"image": "a.png", "score": 0.5}]), None, 0.0, 0)


def test_changes_keep_image_and_classes_together() -> None:
    """A white box on black, labeled as it is seen: after each change the label is where the box is."""
    pixels = np.zeros((90, 120, 3), np.uint8)
    pixels[30:60, 40:90] = 255
    classes = (pixels[:, :, 0] > 0).astype(np.uint8)
    for changes in (Changes(64, (100, 100)), Changes(64, (100, 100), (0.5, 2.0))):
        for seed in range(10):
            image, labels = changes.apply(Image.fromarray(pixels), classes, True, np.random.default_rng(seed))
            assert image.size == (64, 64)
            known = labels != IGNORED
            bright = np.asarray(image)[:, :, 0] > 127
            assert (bright == (labels == 1))[known].mean() > 0.93
            assert not bright[~known].any()


def test_only_generated_images_are_compressed() -> None:
    """Of one color, which no change of size alters, and JPEG of a low quality does."""
    color = (121, 87, 63)
    image, classes = Image.new("RGB", (64, 64), color), np.zeros((64, 64), np.uint8)
    changes = Changes(56, (30, 30))
    real, generated = (
        np.asarray(changes.apply(image, classes, made, np.random.default_rng(1))[0]) for made in (False, True)
    )
    assert (real == color).all()
    assert (generated != color).any(axis=2).all()


def test_the_order_is_balanced_and_the_same_for_a_seed(tmp_path: Path) -> None:
    images = list(read_splits(plant(tmp_path, 6, 0, 16), None, 0.0, 0).train)
    images = [each for each in images if not each.generated][:1] + [each for each in images if each.generated]
    order = training_order(images, 12, 5, balance=True)
    assert order == training_order(images, 12, 5, balance=True)
    assert order[:6] == training_order(images, 6, 5, balance=True)
    assert [images[number].generated for number in order] == [False, True] * 6
    assert Counter(order[1::2]) == {1: 2, 2: 2, 3: 2}
    assert Counter(training_order(images, 8, 5, balance=False)) == dict.fromkeys(range(4), 2)


def of_another_generator(labeled: Labeled) -> ArtifactRecord:
    """The record of an image that is called like this one, in a folder of its own."""
    return labeled.truth.record.model_copy(update={"image": f"flux/0000{labeled.truth.image}"})


def test_masks_of_ablations_take_the_place_of_artifacts(tmp_path: Path) -> None:
    images = read_splits(plant(tmp_path, 2, 0, 48), None, 0.0, 0).train
    real, generated = images
    image, classes = generated.pixels()
    artifacts = classes > 0
    own = {
        to: Alignment(to).mask(generated, image, classes, 0)
        for to in ("artifact", "random", "benign", "saliency")
    }
    assert (own["artifact"] == classes).all()
    for name in ("random", "benign", "saliency"):
        assert set(np.unique(own[name])) <= {0, UNNAMED}
    assert not (own["benign"] > 0)[artifacts].any()
    assert (own["random"] == Alignment("random").mask(generated, image, classes, 0)).all()
    twin = replace(generated, truth=replace(generated.truth, record=of_another_generator(generated)))
    assert (own["random"] != Alignment("random").mask(twin, image, classes, 0)).any()
    assert not Alignment("random").mask(real, *real.pixels(), 0).any()
    masks = tmp_path / "masks"
    masks.mkdir()
    Image.fromarray(np.eye(48, dtype=np.uint8) * 255).save(masks / "0001.png")
    given = Alignment("saliency", masks).mask(generated, image, classes, 0)
    assert (given > 0).sum() == 48


def test_an_image_of_one_column_is_not_enlarged_to_billions() -> None:
    image, classes = Image.new("RGB", (1, 50_000)), np.zeros((50_000, 1), np.uint8)
    changes = Changes(64, (100, 100), (0.5, 2.0))
    assert changes.apply(image, classes, False, np.random.default_rng(0))[0].size == (64, 64)
