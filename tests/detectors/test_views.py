"""Images as detectors see them, against the processors of transformers, and maps put back on images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from uncanny.detectors.heat_maps import windows  # noqa: E402
from uncanny.detectors.views import View, on_image  # noqa: E402
from uncanny.errors import ImageError, UsageError  # noqa: E402

PROCESSORS = {
    "whole": {"size": {"height": 48, "width": 48}, "resample": 2},
    "crop": {
        "size": {"shortest_edge": 64},
        "do_center_crop": True,
        "crop_size": {"height": 56, "width": 56},
        "resample": 3,
        "image_mean": [0.48, 0.45, 0.4],
        "image_std": [0.26, 0.26, 0.27],
    },
}


@pytest.fixture
def picture() -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (70, 101, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize((130, 90), Image.Resampling.BICUBIC)


@pytest.mark.parametrize(
    ("name", "kind"), [("whole", "ViTImageProcessorPil"), ("crop", "BitImageProcessorPil")]
)
def test_tensors_equal_those_of_the_library(name: str, kind: str, picture: Image.Image) -> None:
    content: dict[str, Any] = PROCESSORS[name]
    processor = getattr(transformers, kind)(**content)
    expected = processor(picture, return_tensors="np")["pixel_values"][0]
    found, _ = View.of_processor(processor.to_dict(), 224).tensor(picture)
    assert found.shape == expected.shape
    assert np.abs(found.numpy() - expected).max() < 1e-5


def test_a_view_reads_what_it_writes() -> None:
    for view in (
        View(size=(48, 40)),
        View(shortest=64, crop=(56, 56), mean=(0.1, 0.2, 0.3)),
        View(shortest=512, longest=2048, std=(0.5, 0.5, 0.5)),
    ):
        assert View.of_processor(view.to_json(), 224) == view


def test_the_part_that_is_shown_is_known(picture: Image.Image) -> None:
    assert View(size=(48, 48)).tensor(picture)[1] == (0, 0, 130, 90)
    _, (x0, y0, x1, y1) = View(shortest=45, crop=(45, 45)).tensor(picture)
    assert (y0, y1) == (0, 90)
    assert (x0, x1) == (20, 110)  # half of the size, 65 wide, of which the middle 45 are kept


def test_a_map_of_a_crop_is_zero_outside_of_it() -> None:
    placed = on_image(np.ones((3, 3), np.float32), (20, 0, 110, 90), (130, 90))
    assert placed.shape == (90, 130)
    assert placed[:, 20:110].min() == 1
    assert placed[:, :20].max() == placed[:, 110:].max() == 0


def test_windows_cover_an_image_and_end_at_its_edges() -> None:
    image = Image.new("RGB", (500, 224))
    assert windows(image, 224) == [(0, 0, 224, 224), (224, 0, 448, 224), (276, 0, 500, 224)]
    assert windows(Image.new("RGB", (100, 60)), 224) == [(0, 0, 100, 60)]


@pytest.mark.parametrize("content", [{"size": {"longest_edge": 10}}, {"size": 224, "rescale_factor": 1.0}])
def test_what_is_not_read_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        View.of_processor(content, 224)


def test_an_image_of_one_column_is_not_enlarged_to_billions() -> None:
    with pytest.raises(ImageError, match="1 × 20000 pixels, resized"):
        View(shortest=224, crop=(224, 224)).tensor(Image.new("RGB", (1, 20_000)))
