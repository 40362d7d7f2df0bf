"""The endpoint for edits of images: forms as OpenAI documents them, faults, budgets and repairs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import uncanny
from tests.eval.pairs.made_candidates import pictures
from uncanny.demo.server.app import FakeServerOptions, parse_faults, running
from uncanny.errors import RequestRejectedError
from uncanny.models.painting.canvas import Canvas
from uncanny.models.painting.image_edits import SIZES, _brought_back, _picture
from uncanny.pairs import MakeRun

pytest.importorskip("cv2")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")


def make(tmp_path: Path, inpainter: str, faults: str = "", **options: Any) -> MakeRun:
    images = pictures(tmp_path / "pictures")

    async def run() -> MakeRun:
        async with running(FakeServerOptions(faults=parse_faults(faults))) as url:
            return await uncanny.pairs.make_async(
                images,
                inpainter=inpainter,
                base_url=f"{url}/v1",
                out=tmp_path / "pairs",
                **{"attempts": 2, **options},
            )

    return asyncio.run(run())


def test_a_compatible_server_gets_what_diffusion_models_take(tmp_path: Path) -> None:
    run = make(tmp_path, "openai-compatible/any")
    (record,) = run.originals
    assert record.status == "ok"
    first, second = record.candidates
    assert first.sent == {"seed": 0, "guidance": 10, "strength": 0.6, "steps": 20}
    assert first.sha256 != second.sha256
    assert first.outside_painted == 0  # the picture keeps its pixels on a canvas of its own size


def test_openai_gets_a_picture_of_its_sizes_and_no_seed(tmp_path: Path) -> None:
    run = make(tmp_path, "openai/gpt-image-1", attempts=1)
    (record,) = run.originals
    assert record.status == "ok"
    assert record.candidates[0].sent == {}
    assert record.candidates[0].rejected is None
    assert record.candidates[0].outside_painted is None  # it was scaled there and back
    assert run.summary.input_tokens
    assert run.summary.cost_usd is not None
    assert run.summary.cost_usd > 0.1


def test_what_is_no_picture_is_asked_for_again_and_then_rejected(tmp_path: Path) -> None:
    run = make(tmp_path, "openai-compatible/any", "malformed=1", attempts=1)
    (record,) = run.originals
    assert record.status == "failed"
    rejected = record.candidates[0].rejected
    assert rejected is not None
    assert rejected.step == "inpaint"
    assert "picture cannot be read" in rejected.why
    assert run.summary.calls == 3  # the call and two repairs
    again = make(tmp_path, "openai-compatible/any", attempts=1)
    assert again.originals[0].status == "ok"


@pytest.mark.parametrize("fault", ["blocked"])
def test_a_refusal_is_rejected_and_is_not_asked_for_again(tmp_path: Path, fault: str) -> None:
    run = make(tmp_path, "openai-compatible/any", f"{fault}=1", attempts=1)
    (record,) = run.originals
    assert record.status == "ok"
    assert record.candidates[0].rejected is not None
    assert run.summary.calls == 1


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["500", "cut", "truncated-json"])
def test_what_may_pass_is_retried(tmp_path: Path, fault: str) -> None:
    run = make(tmp_path, "openai-compatible/any", f"{fault}=0.4", attempts=3)
    (record,) = run.originals
    assert record.status == "ok"
    assert all(each.rejected is None for each in record.candidates)


def test_a_budget_ends_the_run_before_it_is_overspent(tmp_path: Path) -> None:
    run = make(tmp_path, "openai/gpt-image-1", max_cost_usd=0.2)
    assert run.summary.state == "budget"
    assert (run.summary.cost_usd or 0) <= 0.2


def test_calls_keep_the_digest_and_not_the_picture(tmp_path: Path) -> None:
    run = make(tmp_path, "openai-compatible/any", attempts=1)
    (line,) = (run.path / "calls.jsonl").read_text().splitlines()
    call = json.loads(line)
    assert len(line) < 2_000
    assert call["agent"] == "Inpainter"
    assert call["asked"] == "A picture"
    assert (run.path / run.originals[0].candidates[0].painted).is_file()  # type: ignore[operator]


@pytest.mark.parametrize("size", [(96, 72), (72, 96), (64, 64), (300, 40)])
def test_a_canvas_gives_the_picture_back(size: tuple[int, int]) -> None:
    picture = Image.fromarray(
        np.random.default_rng(0).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    )
    whole = Image.new("RGB", (320, 112))
    whole.paste(picture)
    canvas = Canvas(whole, Image.new("L", whole.size), size, size)
    assert np.array_equal(np.asarray(canvas.back(whole)), np.asarray(picture))
    assert SIZES[0] == (1024, 1024)


def test_an_address_in_place_of_a_picture_is_not_paid_for_again() -> None:
    context: Any = SimpleNamespace(name="any")
    with pytest.raises(RequestRejectedError, match="address of a picture"):
        _picture({"data": [{"url": "http://169.254.169.254/x.png"}]}, context)


def test_formats_that_are_programs_are_not_opened() -> None:
    """Pillow gives EPS files to Ghostscript."""
    canvas = Canvas(Image.new("RGB", (8, 8)), Image.new("L", (8, 8)), (8, 8), (8, 8))
    for data in (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n", b"", b"\x89PNG\r\n"):
        assert _brought_back(data, canvas) == (data, False)
