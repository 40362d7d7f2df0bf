"""A severity that nobody has rated is empty wherever an anomaly goes, and is one once a person writes it."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, Literal

import pytest

import uncanny
from tests.eval.pairs.made_candidates import made
from uncanny.annotation.report.counts import select, severity_histogram
from uncanny.annotation.report.parts import entries, findings_of
from uncanny.eval.common.anomalies.doubt import doubts
from uncanny.eval.common.pages.pictures import anomaly_marks
from uncanny.records.jsonl import read_records
from uncanny.records.reviews import ReviewLog
from uncanny.schema import Annotation, Anomaly
from uncanny.service.web.records import card_of

Format = Literal["csv", "labelstudio", "coco", "cvat", "jsonl", "parquet"]
UNRATED = Anomaly(name="Edge", phenomenon="Bent.", reasoning="It is one.", severity=20, severity_rated=False)
RATED = Anomaly(name="Edge", phenomenon="Bent.", reasoning="It is one.", severity=20)


@pytest.fixture
def screened(tmp_path: Path) -> Path:
    pytest.importorskip("cv2")
    run = made(tmp_path, attempts=1)
    return uncanny.pairs.screen(run).path


def exported(run: Path, to: Format) -> Path:
    return uncanny.export(run, to=to, out=run.parent / "out", all=True, force=True).files[to]


def test_exports_have_no_severity_that_nobody_rated(screened: Path) -> None:
    with exported(screened, "csv").open(newline="") as file:
        assert [row["severity"] for row in csv.DictReader(file)] == [""]
    tasks = json.loads((exported(screened, "labelstudio") / "tasks.json").read_text())
    controls = {each["from_name"] for each in tasks[0]["predictions"][0]["result"]}
    assert controls == {"kind", "name", "phenomenon", "reasoning"}
    boxes = json.loads((exported(screened, "coco") / "annotations.json").read_text())
    assert boxes["annotations"][0]["attributes"]["severity"] is None
    image = ET.parse(exported(screened, "cvat")).find("image")
    assert image is not None
    assert [each.text for each in image.iter("attribute") if each.get("name") == "severity"] == [None]
    pyarrow = pytest.importorskip("pyarrow.parquet")
    row: dict[str, Any] = pyarrow.read_table(exported(screened, "parquet")).to_pylist()[0]
    assert row["anomalies"][0]["severity"] is None


@pytest.mark.parametrize("to", ["csv", "labelstudio", "coco", "cvat", "jsonl"])
def test_an_export_that_comes_back_rates_nothing(screened: Path, to: Format) -> None:
    file = exported(screened, to)
    if to == "labelstudio":
        file /= "tasks.json"
        tasks = json.loads(file.read_text())
        tasks[0]["annotations"] = tasks[0].pop("predictions")
        file.write_text(json.dumps(tasks))
    result = uncanny.import_reviews(file, run=screened, reviewer="ann")
    assert result.counts == {"verdicts": 0, "edited": 0, "added": 0, "unchanged": 1, "stale": 0}


def test_a_severity_that_a_person_writes_is_one_even_if_it_is_the_stand_in(screened: Path) -> None:
    file = exported(screened, "csv")
    with file.open(newline="") as lines:
        (row,) = csv.DictReader(lines)
    with file.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, row)
        writer.writeheader()
        writer.writerow(row | {"severity": "20"})
    assert uncanny.import_reviews(file, run=screened, reviewer="ann").counts["edited"] == 1
    ((line,),) = ReviewLog.of_run(screened).by_image().values()
    assert line.version is not None
    assert line.version.rated_severity == 20


def test_pages_show_no_severity_that_nobody_rated(screened: Path) -> None:
    (record,) = read_records(screened / "annotations.jsonl", Annotation)
    assert record.anomalies[0].severity == 20
    _, counts = select([record], 9)
    assert (counts.anomalies, counts.unrated, severity_histogram(counts.severities).total) == (1, 1, 0)
    (entry,) = entries(findings_of(record, 0.0, 9), counts=True)
    (mark,) = anomaly_marks(record.anomalies)
    assert entry["severity"] is mark.severity is card_of(record.model_dump()).severity is None
    assert "realism in the middle" not in doubts(record)[0].signs
    assert "1 not rated" in uncanny.report(screened).read_text()


def test_a_finding_in_words_has_no_severity_that_nobody_rated() -> None:
    assert (RATED.in_words(), UNRATED.in_words()) == (" 20  Edge: Bent.", "  –  Edge: Bent.")
    assert "realism" not in UNRATED._repr_html_()
    assert "realism 20 of 100" in RATED._repr_html_()


def test_figures_that_count_a_stand_in_say_so(screened: Path) -> None:
    words = "p: 1 finding has a severity that nobody has rated"
    (other,) = read_records(screened / "annotations.jsonl", Annotation)
    runs: dict[str, Path | list[Annotation]] = {
        "p": screened,
        "q": [other.model_copy(update={"anomalies": (RATED,)})],
    }
    audited = uncanny.audit({"p": screened}, resamples=0)
    assert words in str(audited)
    page = audited.report(screened.parent / "audit.html").read_text()
    assert words in page
    assert "20 of 100 realistic" not in page
    compared = str(uncanny.compare(runs))
    assert words in compared
    assert "q: 1 finding" not in compared
