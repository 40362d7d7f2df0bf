"""The page of a stress table, and the whole path on the bundled scenes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import uncanny
from tests.bundled_runs import BundledRuns
from tests.eval.common.page_in_browser import LOUD, browser, check_page, needs_browser
from uncanny.cli import main
from uncanny.demo.scenes import scenes

HOSTILE = "<script>alert(1)</script> & 'quoted'"


def tables(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Bundled pairs with masks and heat maps, all missed, among edits without files."""
    rng = np.random.default_rng(0)
    pairs = list(uncanny.realism.load("scenes"))
    masks = {scene.pair_id: scene.anomalies[0].mask_path for scene in scenes() if scene.anomalies}
    meta: list[dict[str, Any]] = []
    seen: list[dict[str, Any]] = []
    for place in range(300):
        row: dict[str, Any] = {"id": f"e{place}", "edited": f"e/{place}.png", "original": f"o/{place}.png"}
        score = float(rng.random())
        if place < 3:
            pair = pairs[place]
            row |= {"edited": str(pair.edited), "original": str(pair.original), "mask": str(masks[pair.id])}
            score = 0.0
        row |= {
            "mask_ratio": float(rng.random()),
            "ssim": float(rng.random()) if place % 3 else None,
            "method": [HOSTILE, "inpainting", "a-model-with-a-long-name-" * 5][place % 3],
            "dataset": f"d{place % 4}" if place % 5 else None,
            "label": f"thing {place % 40} " + "word " * (place % 7),
            "edited_label": HOSTILE if place % 2 else "x" * 120,
        }
        meta.append(row)
        seen.append({"image": row["edited"], "score": score})
        seen.append({"image": row["original"], "score": float(rng.random() * 0.6)})
    with Image.open(meta[0]["mask"]) as mask:
        Image.new("L", mask.size, 99).save(folder / "heat.png")
    seen[0]["heat_map"] = str(folder / "heat.png")
    return meta, seen


def several(folder: Path) -> Any:
    meta, seen = tables(folder)
    lower = [{**row, "score": row["score"] * 0.8} for row in seen]
    names = {"mine": seen, f"other {HOSTILE}" + "long" * 20: seen[:400]}
    conditions = {f"mine@{codec}-{quality}": lower for codec in ("jpeg", "webp") for quality in (85, 50)}
    return uncanny.edits.stress(
        {**names, **conditions}, meta=meta, least_edits=2, published=True, resamples=100
    )


@pytest.mark.slow
def test_the_page_says_what_is_missed_and_shows_it(tmp_path: Path) -> None:
    page = several(tmp_path).report(tmp_path / "stress.html").read_text()
    assert "<script>alert" not in page
    assert "mine finds " in page
    for words in ("h-sizes", "h-levels", "h-phrases", "h-compression", "h-missed", "h-notes", "DE-FAKE"):
        assert words in page
    found = re.search(r'<script type="application/json" id="views">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    views = json.loads(found[1])
    layers = [layer["name"] for layer in views[0]["layers"]]
    assert layers == ["original", "edited", "difference × 5", "mask", "heat map"]
    assert [view["title"] for view in views[:3]] == [
        Path(row["edited"]).name for row in tables(tmp_path)[0][:3]
    ]
    assert "Showing 3 of" in page or "Showing 6 of" in page


def test_a_page_of_the_barest_table(tmp_path: Path) -> None:
    result = uncanny.edits.stress([{"image": "e.png", "source": "generated"}], meta=[{"edited": "e.png"}])
    page = result.report(tmp_path / "stress.html").read_text()
    assert "h-sizes" not in page
    assert "None." in page
    empty = uncanny.edits.stress(
        [{"image": "o.png", "source": "real"}], meta=[{"original": "o.png", "edited": "e.png"}]
    )
    assert "No edit has a prediction" in empty.report(tmp_path / "empty.html").read_text()


@pytest.mark.slow
@needs_browser[1]
async def test_the_page_fits_and_reads_in_both_schemes(tmp_path: Path) -> None:
    page = several(tmp_path).report(tmp_path / "stress.html")
    await check_page(page.resolve().as_uri(), tmp_path / "profile")


@pytest.mark.slow
@needs_browser[1]
async def test_a_key_goes_through_the_layers_of_a_missed_edit(tmp_path: Path) -> None:
    meta, seen = tables(tmp_path)
    page = uncanny.edits.stress({"mine": seen}, meta=meta, resamples=0).report(tmp_path / "stress.html")
    pressed = "document.querySelector('.v-bar [aria-pressed=true]').textContent"
    async with browser(tmp_path / "profile") as tab:
        await tab.send("Page.navigate", url=page.resolve().as_uri())
        await tab.until("document.querySelector('[data-layer=\"3\"]') !== null")
        await tab.js("document.querySelector('[data-layer=\"3\"]').click()")
        await tab.until(f"{pressed} === 'mask'")
        await tab.key("d")
        await tab.until(f"{pressed} === 'difference × 5'")
        assert [event for event in tab.events if event["method"] in LOUD] == []


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert isinstance(end.value.code, int)
    return end.value.code


@pytest.mark.slow
def test_the_whole_path_on_the_bundled_scenes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bundled_run: BundledRuns
) -> None:
    edits, detected = tmp_path / "edits.jsonl", bundled_run("detect").copy(tmp_path / "d")
    assert run("edits", "measure", "scenes", "-o", edits, "-q", "--no-report") == 0
    scores, table = tmp_path / "s.json", tmp_path / "s.csv"
    capsys.readouterr()
    files = ("--meta", edits, "--json", scores, "--csv", table)
    stress = ("edits", "stress", detected, *files, "--resamples", 100)
    assert run(*stress) == 0
    said = capsys.readouterr().out
    assert "mask_ratio" in said
    assert "2 images of the predictions without metadata" in said
    assert (detected / "stress.html").is_file()
    condition = json.loads(scores.read_text())["detectors"]["demo"]["conditions"]["as given"]
    assert condition["classes"]["generated"]["n"] == 16
    assert condition["by"]["mask_ratio"]["groups"]["small"]["n"] == 4
    assert table.read_text().startswith("detector,condition,factor,group")
    # The same command again writes over its own files, and not over others.
    assert run(*stress) == 0
    capsys.readouterr()
    assert run("edits", "stress", detected, "--meta", edits, "--json", edits) == 2
    assert "is an input of this command" in capsys.readouterr().err
    measured = uncanny.edits.measure("scenes")
    result = uncanny.edits.stress({"demo": detected}, meta=measured, resamples=100)
    assert result.to_json()["detectors"]["demo"]["conditions"]["as given"] == condition


def test_the_commands_refuse_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predictions = tmp_path / "p.jsonl"
    predictions.write_text('{"image": "e.png", "score": 2}\n')
    meta = tmp_path / "m.csv"
    meta.write_text("original,edited,mask_ratio\no.png,e.png,0.5\n")
    for arguments, words in (
        ((), "line 1, item 'e.png', field score"),
        (("--cutoffs", "mask_ratio"), "must be like mask_ratio=0.05,0.3"),
        (("--threshold", "3"), "--threshold must be from 0 to 1, not 3"),
        (("--by", "weather"), "no column 'weather'"),
    ):
        if arguments:
            predictions.write_text('{"image": "e.png", "score": 1}\n')
        else:
            predictions.write_text('{"image": "e.png", "score": 2}\n')
        assert run("edits", "stress", predictions, "--meta", meta, *arguments) == 2
        assert words in capsys.readouterr().err
    assert (
        run("edits", "stress", predictions, "--meta", meta, "--json", "-", "--cutoffs", "mask_ratio=0.5,0.6")
        == 0
    )
    content = json.loads(capsys.readouterr().out)
    factor = content["detectors"]["p"]["conditions"]["as given"]["by"]["mask_ratio"]
    assert factor["cutoffs"] == [0.5, 0.6]
    assert not (tmp_path / "stress.html").exists()


def test_the_compress_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "copies"
    assert run("edits", "compress", "scenes", "-o", out, "--condition", "jpeg-50", "--json") == 0
    assert json.loads(capsys.readouterr().out)["conditions"]["jpeg-50"]["written"] == 34
    (tmp_path / "broken.png").write_bytes(b"no picture")
    assert run("edits", "compress", tmp_path / "broken.png", "-o", out) == 1
    assert "No copy of broken.png" in capsys.readouterr().out
    assert run("edits", "compress", "scenes", "-o", tmp_path / "broken.png") == 2
