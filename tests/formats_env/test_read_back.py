"""Label Studio, CVAT and labelme forms, read back by their libraries in an environment of their own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import uncanny
from tests.eval.export.made_runs import HOSTILE, usual_run

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
    uncanny.export(run, ["labelstudio", "cvat", "labelme"], tmp_path / "out", all=True, pictures="copy")
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
    counts = uncanny.import_reviews(tmp_path / "out/labelme", run, reviewer="ann").counts
    assert dict(counts) == {"verdicts": 1, "edited": 1, "added": 0, "unchanged": 4, "stale": 0}
