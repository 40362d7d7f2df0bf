"""Backbones from a hub, here one on the loopback address: fetched once, and only what is needed."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.eval.semantic.conftest import Made
from uncanny.eval.common.parameters import MeasureParameters
from uncanny.eval.common.similarity import weights
from uncanny.eval.common.similarity.base import TextPairs, open_measure

NAME, COMMIT = "somebody/made", "a" * 40

# A backbone is made and loaded, which takes torch seconds.
pytestmark = pytest.mark.slow


@pytest.fixture
def hub(
    httpserver: HTTPServer, backbone_folder: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> HTTPServer:
    """Serves the made BERT as the hub would, beside the same weights in other frameworks' formats."""
    folder = backbone_folder("bert")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    files |= {"tf_model.h5": b"the same", "pytorch_model.bin": b"the same", "onnx/model.onnx": b"the same"}

    def answer(request: Request) -> Response:
        path = request.path.removeprefix("/")
        if path.startswith("api/models/"):
            siblings = [{"rfilename": name, "size": len(content)} for name, content in files.items()]
            tree = [{"type": "file", "path": s["rfilename"], "size": s["size"], "oid": "0"} for s in siblings]
            known = {"_id": "1", "id": NAME, "modelId": NAME, "sha": COMMIT, "siblings": siblings}
            return Response(json.dumps(tree if "/tree/" in path else known), mimetype="application/json")
        content = files[path.removeprefix(f"{NAME}/resolve/{COMMIT}/")]
        headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": COMMIT}
        return Response(content, headers=headers, mimetype="application/octet-stream")

    httpserver.expect_request(re.compile(".*")).respond_with_handler(answer)
    for place in ("constants.ENDPOINT", "hf_api.ENDPOINT"):
        monkeypatch.setattr(f"huggingface_hub.{place}", httpserver.url_for("").rstrip("/"), raising=False)
    monkeypatch.setattr(
        "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE",
        httpserver.url_for("").rstrip("/") + "/{repo_id}/resolve/{revision}/{filename}",
    )
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return httpserver


def test_fetched_once_and_only_what_is_needed(
    hub: HTTPServer, backbone_folder: Made, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = weights.fetch(NAME, 2)
    assert {path.name for path in folder.iterdir()} == {
        path.name for path in backbone_folder("bert").iterdir()
    }
    assert weights.content_hash(folder) == weights.content_hash(backbone_folder("bert"))
    requests = len(hub.log)
    assert weights.fetch(NAME, 2) == folder
    assert len(hub.log) == requests
    out, err = capfd.readouterr()
    assert out == ""
    assert "Fetching" not in err


@pytest.mark.usefixtures("hub")
def test_what_was_left_unfinished_is_completed() -> None:
    folder = weights.fetch(NAME, 2)
    (folder / "model.safetensors").unlink()
    assert (weights.fetch(NAME, 2) / "model.safetensors").is_file()


def test_a_backbone_on_the_hub_scores_under_its_name(hub: HTTPServer) -> None:
    measure = open_measure("bertscore", MeasureParameters(backbone=NAME, num_layers=2, device="cpu"))
    assert measure.described["backbone"] == NAME
    assert not measure.compares_with_published
    assert next(measure.matrices([TextPairs(["a hand"], ["a hand"])]))[0, 0] == pytest.approx(1, abs=1e-6)
    # The server is every test's, so it is made to fail instead of stopped.
    hub.clear()
    open_measure("bertscore", MeasureParameters(backbone=NAME, num_layers=2, device="cpu"))
    assert hub.log == []
