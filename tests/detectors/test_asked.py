"""Detectors in the place of models: detect, artifacts run and edits stress, from the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch")
pytest.importorskip("transformers")

import uncanny
import uncanny.artifacts
import uncanny.edits
from benchmarks.learning.planted import plant
from tests.runs.e2e import uncanny_here
from uncanny.errors import UsageError

TIMM = Path(__file__).parents[1] / "data" / "timm_vit"


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    return plant(tmp_path / "planted", 8, 0, 48)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_detect_asks_a_checkpoint_of_another_library_and_scores_it(tmp_path: Path, truth: Path) -> None:
    run = tmp_path / "d"
    done = uncanny_here("detect", truth.parent, "--detector", TIMM, "--truth", truth, "-o", run)
    assert done.code == 0, done.err
    assert "Accuracy" in done.out
    assert "anomalies" not in done.out
    records = lines(run / "annotations.jsonl")
    assert len(records) == 8
    for record in records:
        assert record["model"] == f"detector/{TIMM}"
        assert record["source"] == ("generated" if record["score"] >= 0.5 else "real")
        heat = np.asarray(Image.open(run / record["heat_map"]))
        assert heat.shape == (48, 48)
        assert heat.max() > 200
    plan = json.loads((run / "run.json").read_text())["plan"]["detector"]
    assert plan["kind"] == "timm"
    assert plan["maps"] == "relevance"
    again = uncanny_here("detect", truth.parent, "--detector", TIMM, "--truth", truth, "-o", run)
    assert again.code == 0
    assert lines(run / "annotations.jsonl") == records


def test_the_page_shows_probabilities_and_where_the_detector_looks(tmp_path: Path, truth: Path) -> None:
    run = uncanny.detect(truth.parent, model=f"detector/{TIMM}", out=tmp_path / "d", truth=truth)
    page = run.report().read_text()
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert data["of_detector"]
    assert len(data["images"]) == 8
    for image in data["images"]:
        assert len(image["thumbs"]) == 2
        assert image["thumbs"][1].startswith("data:image/webp")
    assert "Probability of being generated" in page
    for of_models in ("Realism", "Anomalies per image", "Kinds and realism", ">calls<", "conversation:"):
        assert of_models not in page.split('id="data">')[0]
    # A record that names another file shows nothing of it.
    records = lines(run.path / "annotations.jsonl")
    records[0]["heat_map"] = f"../{truth.parent.name}/0000.png"
    (run.path / "annotations.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    page = uncanny.report(run.path, out=tmp_path / "other.html").read_text()
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert sorted(len(image["thumbs"]) for image in data["images"]) == [1, *[2] * 7]


def test_other_weights_do_not_resume_a_run(tmp_path: Path, truth: Path) -> None:
    folder = tmp_path / "detector"
    shutil.copytree(TIMM, folder)
    uncanny.detect(truth.parent, model=f"detector/{folder}", out=tmp_path / "d", device="cpu")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"label_names": ["fake", "real"]}))
    with pytest.raises(UsageError, match="was made with other settings"):
        uncanny.detect(truth.parent, model=f"detector/{folder}", out=tmp_path / "d", device="cpu")


def test_artifacts_run_asks_it_and_artifacts_score_reads_it(tmp_path: Path, truth: Path) -> None:
    run = tmp_path / "a"
    done = uncanny_here("artifacts", "run", truth.parent, "--detector", TIMM, "-o", run)
    assert done.code == 0, done.err
    assert "without a category" in done.out
    scored = uncanny_here("artifacts", "score", run, "--truth", truth, "--json", "-", "--no-report")
    assert scored.code == 0, scored.err
    found = uncanny.artifacts.load(run)
    for image in found.images:
        record = image.record
        heat = np.asarray(Image.open(run / (record.model_extra or {})["heat_map"])) / 255
        pixels = sum(_area(region.mask) for region in image.regions)
        # A map is kept in 256 steps.
        assert abs(pixels - int((heat >= 0.5).sum())) <= 0.02 * heat.size


def test_without_maps_no_artifacts_are_counted(tmp_path: Path, truth: Path) -> None:
    """A multitask model would mark them; this one says whether an image is generated."""
    run = tmp_path / "a"
    done = uncanny_here("artifacts", "run", truth.parent, "--detector", TIMM, "-o", run, "--maps", "none")
    assert done.code == 0, done.err
    assert "no image was looked at for artifacts" in done.out
    assert all(image.record.regions is None for image in uncanny.artifacts.load(run).images)


def _area(mask: Any) -> int:
    from uncanny.eval.common.pixels.masks import decode_rle

    return int(decode_rle({"size": list(mask.size), "counts": mask.counts}).sum())


def test_stress_asks_it_about_originals_and_edits_under_each_condition(tmp_path: Path, truth: Path) -> None:
    rows = [
        {"original": f"{number:04}.png", "edited": f"{number + 1:04}.png", "method": "planted"}
        for number in range(0, 8, 2)
    ]
    meta = truth.parent / "meta.jsonl"
    meta.write_text("".join(json.dumps(row) + "\n" for row in rows))
    kept = tmp_path / "kept"
    words = ("edits", "stress", "--detector", TIMM, "--condition", "jpeg-50", "--detections", kept)
    done = uncanny_here(*words, "--meta", meta, "--no-report")
    assert done.code == 0, done.err
    assert "jpeg-50" in done.out
    (folder,) = (kept / "timm_vit").iterdir()
    given, compressed = (lines(folder / f"{name}.jsonl") for name in ("as-given", "jpeg-50"))
    assert len(given) == len(compressed) == 8
    assert [row["score"] for row in given] != [row["score"] for row in compressed]
    before = (folder / "as-given.jsonl").read_bytes()
    # Cut off in the middle of a line, it is completed.
    (folder / "as-given.jsonl").write_bytes(before[:-20])
    assert uncanny_here(*words, "--meta", meta, "--no-report").code == 0
    assert (folder / "as-given.jsonl").read_bytes() == before


def test_kept_predictions_are_those_of_the_same_detector_and_content(tmp_path: Path, truth: Path) -> None:
    """Another label has a file of its own, a replaced image is asked about again, others stay."""
    images = truth.parent
    rows = [
        {"original": f"{number:04}.png", "edited": f"{number + 1:04}.png", "method": "planted"}
        for number in (0, 2)
    ]

    def ask(some: list[dict[str, Any]], label: str | None = None, **more: Any) -> dict[str, float]:
        result = uncanny.edits.stress(
            meta=[some],
            detector=[TIMM],
            detections=tmp_path / "kept",
            generated_label=label,
            root=images,
            device="cpu",
            maps="none",
            **more,
        )
        (read,) = result.predictions.values()
        return dict(zip(read["as given"].images, read["as given"].scores.tolist(), strict=True))

    first = ask(rows)
    (file,) = (tmp_path / "kept").rglob("*.jsonl")
    before = file.read_bytes()
    inverted = ask(rows, "authentic")
    assert inverted == pytest.approx({name: 1 - score for name, score in first.items()}, abs=1e-6)
    assert len(list((tmp_path / "kept").rglob("*.jsonl"))) == 2
    # Less metadata takes no line away, and is all that is scored.
    assert ask(rows[:1]).keys() == {"0000.png", "0001.png"}
    assert file.read_bytes() == before
    shutil.copy(images / "0002.png", images / "0001.png")
    again = ask(rows)
    assert again["0001.png"] == again["0002.png"] == first["0002.png"] != first["0001.png"]
    assert len(lines(file)) == 4


def test_predictions_called_like_a_detector_to_ask_are_refused(tmp_path: Path, truth: Path) -> None:
    seen = [{"image": "0000.png", "score": 0.2}]
    meta = [[{"original": "0000.png", "edited": "0001.png"}]]
    with pytest.raises(UsageError, match="are both called timm_vit"):
        uncanny.edits.stress(
            {"timm_vit": seen},
            meta=meta,
            detector=[TIMM],
            detections=tmp_path / "kept",
            root=truth.parent,
        )
    assert not (tmp_path / "kept").exists()


def test_what_cannot_be_asked_is_refused(tmp_path: Path, truth: Path) -> None:
    images = truth.parent
    nowhere = uncanny_here("detect", images, "--detector", tmp_path / "no", "-o", tmp_path / "r")
    assert nowhere.code == 2
    assert "is not a folder" in nowhere.err
    neither = uncanny_here("detect", images, "-o", tmp_path / "r")
    assert neither.code == 2
    assert "--detector" in neither.err
    with pytest.raises(UsageError, match="cannot answer prompts"):
        uncanny.annotate(images, model=f"detector/{TIMM}", out=tmp_path / "r")
    with pytest.raises(UsageError, match="is not for a detector"):
        uncanny.detect(images, model=f"detector/{TIMM}", fallback="demo", out=tmp_path / "r")
    with pytest.raises(UsageError, match="needs a folder for its predictions"):
        uncanny.edits.stress(meta=[[{"original": "0000.png", "edited": "0001.png"}]], detector=[TIMM])


def test_a_dry_run_loads_nothing_and_counts_no_calls(truth: Path) -> None:
    forecast = uncanny.detect_forecast(truth.parent, model=f"detector/{TIMM}")
    assert (forecast.inputs, forecast.cost_usd) == (8, 0)
    assert forecast.calls_usual == 0
