"""What held-out images say of a model: seen as the saved model sees them, and never chosen by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from PIL import Image

torch = pytest.importorskip("torch")

from uncanny.detectors.views import View  # noqa: E402
from uncanny.learn.vision.data import read_splits  # noqa: E402
from uncanny.learn.vision.detector import chosen_weights  # noqa: E402
from uncanny.learn.vision.measure import figures_of, said_of  # noqa: E402


def test_images_are_asked_about_in_their_shape(tmp_path: Path) -> None:
    """The left half of each generated image is an artifact; the model finds the left quarter."""
    records: list[dict[str, Any]] = [
        {"source": "generated", "regions": [{"category": "physics", "box": [0, 0, 32, 32]}]},
        {"source": "generated", "regions": [{"category": "physics", "box": [0, 0, 32, 32]}]},
        {"source": "generated"},
        {"source": "real"},
    ]
    sizes = [(64, 32), (64, 32), (64, 64), (40, 80)]
    for number, (record, size) in enumerate(zip(records, sizes, strict=True)):
        record["image"] = f"{number}.png"
        Image.new("RGB", size, (number, 0, 0)).save(tmp_path / record["image"])
    path = tmp_path / "truth.jsonl"
    path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in records))
    images = read_splits(path, None, 0.0, 0).train
    asked = []

    def ask(pixels: Any, size: tuple[int, int]) -> tuple[Any, Any]:
        asked.append((tuple(pixels.shape), size))
        found = torch.zeros(len(pixels), *size)
        found[:, :, : size[1] // 4] = 1
        return torch.full((len(pixels),), 5.0), found

    said = said_of(images, View(shortest=16, longest=64), ask, 1, "cpu")
    assert asked == [
        ((2, 3, 16, 32), (32, 64)),
        ((1, 3, 16, 16), (64, 64)),
        ((1, 3, 32, 16), (80, 40)),
    ]
    # Of the file's 32 × 64 pixels half are artifacts.
    assert [each.overlap for each in said] == [(512, 1024), (512, 1024), None, None]
    assert figures_of(said, "pixels") == {
        "balanced accuracy": 0.5,
        "accuracy on real images": 0.0,
        "accuracy on generated images": 1.0,
        "IoU of pixels and artifacts": 0.5,
    }


def test_each_seed_chooses_its_own_weight() -> None:
    validated = {(0.0, 3): 0.7, (0.4, 3): 0.8, (1.0, 3): 0.8, (0.0, 4): 0.6, (0.4, 4): 0.5, (1.0, 4): 0.1}
    assert chosen_weights(validated) == {3: 0.4, 4: 0.0}
