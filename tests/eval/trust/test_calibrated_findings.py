"""A calibration that is applied: records, exports and audits say how likely findings are right."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny
from tests.bundled_runs import BundledRuns
from tests.eval.trust.judged_runs import fault, image_of, write
from tests.runs.e2e import uncanny_here
from uncanny.demo.scenes import scenes
from uncanny.errors import RunMismatchError
from uncanny.exports.formats import FormatName
from uncanny.records.calibration import Calibration
from uncanny.records.run_folder import RunFolder

IMAGES = [scene.image_path for scene in scenes() if scene.anomalies][:2]


def made_for(run: Path, **more: Any) -> Calibration:
    """A calibration whose findings were made as those of a run."""
    manifest = RunFolder(run).read_manifest()
    assert manifest is not None
    made = {
        "models": [manifest.model],
        "prompts": [manifest.prompts.id],
        "schedule": manifest.plan["schedule"],
    }
    return calibration_of(**made, **more)


def calibration_of(**made_with: Any) -> Calibration:
    return Calibration.model_validate(
        {
            "steps": [
                {"low": 0.5, "high": 0.6, "probability": 0.25},
                {"low": 0.9, "high": 0.95, "probability": 0.75},
            ],
            "least_confidence": 0.5,
            **{"findings": 60, "images": 40, "folds": 10, "error_before": 0.3, "error_after": 0.05},
            "made_with": made_with,
        }
    )


@pytest.fixture
def demo(bundled_run: BundledRuns) -> Path:
    return bundled_run("annotate").path


def test_records_pages_and_frames_of_a_run_have_it(tmp_path: Path, demo: Path) -> None:
    file = made_for(demo).write(tmp_path / "calibration.json")
    out = tmp_path / "run"
    done = uncanny_here("annotate", *IMAGES, "-m", "demo", "-o", out, "--calibration", file)
    assert done.code == 0
    assert "calibration" not in done.err
    lines = [orjson.loads(line) for line in (out / "annotations.jsonl").read_bytes().splitlines()]
    found = [each for line in lines for each in line["anomalies"]]
    assert {each["confidence"]: each["probability"] for each in found} == {0.95: 0.75}
    assert b"likely right (calibrated)" in (out / "report.html").read_bytes()
    run = uncanny.annotate(IMAGES, model="demo", out=out, calibration=file)
    assert "75 % likely right (calibrated)" in str(next(iter(run.annotations)))
    assert set(run.to_pandas()["probability"]) == {0.75}
    # A run is one run: all of its findings have a probability, by one calibration, or none has.
    with pytest.raises(RunMismatchError, match="calibration"):
        uncanny.annotate(IMAGES, model="demo", out=out)
    # Its findings are the same all the same: what is compared is how they were made.
    plain = uncanny.annotate(IMAGES, model="demo", out=tmp_path / "plain")
    assert uncanny.audit({"a": out, "b": plain.path}).leaderboard.mixed == ()


def test_another_model_or_schedule_is_warned_of_once(tmp_path: Path, demo: Path) -> None:
    other = made_for(demo).model_dump(mode="json")
    other["made_with"] |= {"models": ["openai/gpt-4o"], "schedule": "single"}
    file = Calibration.model_validate(other).write(tmp_path / "calibration.json")
    words = "The calibration was made with a different model (openai/gpt-4o there, demo here) and schedule"
    out = tmp_path / "run"
    done = uncanny_here("annotate", *IMAGES, "-m", "demo", "-o", out, "--calibration", file)
    assert (done.code, " ".join(done.err.split()).count(words)) == (0, 1)
    # Before a model is asked, and in a forecast.
    assert done.err.index("Warning: The calibration was made") < done.err.index(f"{len(IMAGES)} images · ")
    assert words in orjson.loads((out / "run.json").read_bytes())["warnings"][0]
    done = uncanny_here("annotate", *IMAGES, "-m", "demo", "--dry-run", "--calibration", file)
    assert words in done.err
    assert (
        uncanny.export(demo, to="csv", out=tmp_path / "a.csv", all=True, calibration=file)
        .warnings[0]
        .startswith(words)
    )
    audited = uncanny.audit({"ours": demo}, calibration=file)
    assert sum(words in each for each in audited.leaderboard.notices) == 1
    same = made_for(demo).write(tmp_path / "same.json")
    assert not uncanny.export(demo, to="csv", out=tmp_path / "b.csv", all=True, calibration=same).warnings
    notices = uncanny.audit({"ours": demo}, calibration=same).leaderboard.notices
    assert not [each for each in notices if "The calibration was made" in each]


def test_an_audit_says_how_many_findings_are_right(tmp_path: Path) -> None:
    file = calibration_of(models=["m"], prompts=["p@1"]).write(tmp_path / "calibration.json")
    found = [
        fault("sure", 20, 0.95),
        fault("doubtful", 20, 0.5),
        fault("hidden", 20, 0.4),
        fault("null", 20, None),
    ]
    run = write(tmp_path / "run", [image_of(f"{n}.png", found, n) for n in range(12)])
    out = tmp_path / "audit.json"
    done = uncanny_here("audit", f"ours={run}", "--calibration", file, "--json", out, "--no-report")
    assert done.code == 0
    words = "ours: About 12 of 24 findings are right (calibrated). 12 more findings have no probability."
    assert words in " ".join(done.out.split())
    content = orjson.loads(out.read_bytes())["generators"]["ours"]
    assert (content["expected_right"], content["left_out_below_confidence"]) == (12.0, 12)
    assert content["anomalies"] == 36
    page = uncanny.audit({"ours": run}, calibration=file).report(tmp_path / "audit.html").read_text()
    assert page.count("75 % likely right (calibrated)") == page.count("95 % sure") > 0
    assert "likely right" not in uncanny.audit({"ours": run}).report(tmp_path / "audit.html").read_text()
    assert uncanny.audit({"ours": run}).leaderboard.generators["ours"].to_json()["expected_right"] is None


def test_pages_of_generators_have_it(tmp_path: Path) -> None:
    """Also of a run that has a page, which is without it."""
    file = calibration_of(models=["m"], prompts=["p@1"]).write(tmp_path / "calibration.json")
    run = write(tmp_path / "run", [image_of(f"{n}.png", [fault("sure", 20, 0.95)], n) for n in range(12)])
    assert '"probability":0.75' not in uncanny.report(run).read_text()
    for calibrated in (True, False):
        out = tmp_path / f"{calibrated}"
        arguments = ["--calibration", file] if calibrated else []
        assert uncanny_here("audit", f"ours={run}", "--reports", *arguments, "-o", out).code == 0
        link = "reports/01-ours.html" if calibrated else "../run/report.html"
        assert f'href="{link}"' in (out / "audit.html").read_text()
    own = (tmp_path / "True" / "reports" / "01-ours.html").read_text()
    assert own.count('"probability":0.75') == 12
    assert 'id="note"' not in own


def test_exports_have_a_column(tmp_path: Path) -> None:
    file = calibration_of(models=["m"], prompts=["p@1"]).write(tmp_path / "calibration.json")
    found = [fault("sure", 20, 0.95, box=[0, 0, 4, 4]), fault("null", 20, None, box=[1, 1, 4, 4])]
    run = write(tmp_path / "run", [image_of("a.png", found)])
    formats: tuple[FormatName, ...] = ("csv", "coco", "labelme", "parquet", "jsonl", "cvat")
    done = uncanny_here(
        "export", run, "--all", "--calibration", file, "--to", ",".join(formats), "-o", tmp_path / "data"
    )
    assert done.code == 0
    files = uncanny.export(run, to=formats, out=tmp_path / "same", all=True, calibration=file).files
    with files["csv"].open(newline="") as table:
        assert [row["probability"] for row in csv.DictReader(table)] == ["0.75", ""]
    coco = [orjson.loads(each.read_bytes()) for each in files["coco"].rglob("*.json")]
    boxes = [box for each in coco for box in each["annotations"]]
    assert [each["attributes"]["probability"] for each in boxes] == [0.75, None]
    record = orjson.loads(files["jsonl"].read_bytes().splitlines()[0])
    assert [each.get("probability") for each in record["anomalies"]] == [0.75, None]
    cvat = b"".join(each.read_bytes() for each in files["cvat"].parent.rglob("*.xml"))
    assert b'name="probability">0.75<' in cvat
    # It comes back from a table, and is no edit.
    back = uncanny_here("import", files["csv"], "--run", run, "--reviewer", "ann", "--json").json()
    assert not (run / "reviews.jsonl").exists(), back


@pytest.mark.parametrize("command", ["annotate", "audit", "export"])
def test_a_bad_file_is_refused_before_anything_is_done(tmp_path: Path, demo: Path, command: str) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(made_for(demo).model_dump_json().replace('"version":1', '"version":3').encode())
    out = tmp_path / "out"
    arguments: dict[str, list[object]] = {
        "annotate": [*IMAGES, "-m", "demo", "-o", out],
        "audit": [f"ours={demo}", "-o", out],
        "export": [demo, "--all", "--to", "csv", "-o", out],
    }
    done = uncanny_here(command, *arguments[command], "--calibration", bad)
    assert done.code == 2
    assert "bad.json:1, field 'version'" in done.err
    assert not out.exists()


def test_a_table_of_a_run_has_it(tmp_path: Path, demo: Path) -> None:
    file = made_for(demo).write(tmp_path / "calibration.json")
    run = uncanny.annotate(IMAGES, model="demo", out=tmp_path / "run", calibration=file, format="parquet")
    lines = (run.path / "annotations.jsonl").read_bytes()
    assert lines.count(b'"probability":0.75') == 2
    (run.path / "annotations.jsonl").unlink()
    assert uncanny.audit({"a": run.path}, resamples=0).leaderboard.generators["a"].sure.with_probability == 2
    assert (run.path / "annotations.jsonl").read_bytes() == lines
