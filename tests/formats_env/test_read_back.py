"""Label Studio, CVAT and labelme forms, read back by their libraries in an environment of their own."""

from __future__ import annotations

import json
import os
import subprocess
from base64 import b64decode, b64encode
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import uncanny
from tests.eval.artifacts.made_sets import labelme, shape
from tests.exports.made_runs import HOSTILE, usual_run
from uncanny.eval.artifacts.data.load import load
from uncanny.eval.artifacts.data.pixels import Drawing

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("UNCANNY_FORMATS_PYTHON") or ROOT / ".formats/bin/python")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="needs tests/formats_env/install.sh"),
]


def test_their_libraries_read_what_is_exported(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    usual_run(run)
    uncanny.export(
        run, to=["labelstudio", "cvat", "labelme"], out=tmp_path / "out", all=True, copy_pictures=True
    )
    script = Path(__file__).with_name("read_back.py")
    done = subprocess.run([PYTHON, script, tmp_path / "out"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout.splitlines()[-1])
    studio = content["label_studio"]
    assert studio["controls"] == ["decision", "kind", "name", "phenomenon", "reasoning", "severity"]
    assert (studio["predictions"], studio["errors"], studio["takes_anything"]) == (3, [], False)
    cvat = content["cvat"]
    assert [[each["type"] for each in image] for image in cvat] == [
        ["bbox", "label"],
        ["bbox", "label"],
        ["bbox"],
    ]
    first, second = cvat[0]
    assert (first["label"], first["box"]) == ("anatomy", [10.0, 5.0, 20.0, 35.0])
    assert first["attributes"]["decision"] == "accept"
    assert second["attributes"]["phenomenon"] == HOSTILE.replace("\x07", "\ufffd")
    assert cvat[1][0]["label"] == "anomaly"
    shapes = {name[:2]: each["shapes"] for name, each in content["labelme"].items()}
    assert shapes == {
        "a_": [["anatomy", "rectangle", [[10.0, 5.0], [30.0, 40.0]]]],
        "b-": [["anomaly", "rectangle", [[0.0, 0.0], [64.0, 48.0]]]],
        "c-": [["light", "rectangle", [[1.0, 2.0], [3.0, 4.0]]]],
    }
    assert all(each["picture"] > 0 for each in content["labelme"].values())
    # As labelme has saved them they lead back to their findings; one has a moved box and a verdict.
    counts = uncanny.import_reviews(tmp_path / "out/labelme", run=run, reviewer="ann").counts
    assert dict(counts) == {"verdicts": 1, "edited": 1, "added": 0, "unchanged": 4, "stale": 0}


def random_shape(rng: np.random.Generator, size: tuple[int, int]) -> dict[str, Any]:
    """Whole and broken numbers, within the image and beyond it."""
    corners = {"rectangle": 2, "circle": 2, "line": 2, "point": 1, "oriented_rectangle": 4}
    kind = str(rng.choice([*corners, "polygon", "linestrip", "mask"]))
    low, high = [(0.0, 1.0), (-0.4, 1.4)][rng.integers(2)]
    points = rng.uniform(low, high, (corners.get(kind, rng.integers(3, 9)), 2)) * size
    points = points.round() if rng.random() < 0.5 else points
    if kind != "mask":
        return shape("color", points.tolist(), kind)
    x, y = (int(rng.integers(0, side - 5)) for side in size)
    width, height = (int(each) for each in rng.integers(1, 6, 2))
    png = BytesIO()
    Image.fromarray(rng.random((height, width)) < 0.5).save(png, "PNG")
    place = [[x + 0.7, y], [x + width - 1, y + height - 0.5]]
    return shape("color", place, kind, mask=b64encode(png.getvalue()).decode())


def test_shapes_have_the_pixels_that_labelme_gives_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sizes = [(40, 30), (700, 60), (60, 700)] * 40
    for number, (width, height) in enumerate(sizes):
        shapes = [random_shape(rng, (width, height)) for _ in range(30)]
        name = f"{number:03}.png"
        document = labelme(name, *shapes, imageWidth=width, imageHeight=height)
        Image.new("RGB", (width, height)).save(tmp_path / name)
        (tmp_path / f"{number:03}.json").write_text(json.dumps(document))
    script = Path(__file__).with_name("labelme_masks.py")
    done = subprocess.run([PYTHON, script, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    masks = json.loads(done.stdout.splitlines()[-1])
    images = sorted(load(tmp_path).images, key=lambda each: each.image)
    assert len(images) == len(masks) == len(sizes)
    for image, packed, size in zip(images, masks.values(), sizes, strict=True):
        regions = image.record.regions or ()
        for region, theirs in zip(regions, packed, strict=True):
            drawing = Drawing()
            one = image.record.model_copy(update={"regions": (region,)})
            drawn = drawing.regions(replace(image, record=one), size)
            ours = drawn[0].pixels.on(size) if drawn else np.zeros(size[::-1], dtype=np.bool_)
            expected = np.unpackbits(np.frombuffer(b64decode(theirs), np.uint8))[: size[0] * size[1]]
            assert (ours == (expected.reshape(size[::-1]) > 0)).all(), (size, region)
