"""What people did in other tools comes back: verdicts, texts and boxes, and nothing that nobody changed."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny
from tests.exports.made_runs import HOSTILE, anomaly, findings, judge, make_run
from uncanny.errors import ItemsError, UncannyError, UsageError
from uncanny.exports.formats import READ_NAMES
from uncanny.records.jsonl import read_records
from uncanny.records.reviews import Review, ReviewLog, new_review
from uncanny.schema import Annotation

ROUND_TRIPS = ("jsonl", "csv", "parquet", "hf", "coco", "labelme", "cvat")


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_an_export_as_it_was_changes_nothing(run: Path, tmp_path: Path, name: Any) -> None:
    before = (run / "reviews.jsonl").read_bytes()
    written = uncanny.export(run, to=name, out=tmp_path / "out", all=True).files[name]
    result = uncanny.import_reviews(written, run=run, reviewer="eve")
    assert result.findings == 5
    assert dict(result.counts) == {"verdicts": 0, "edited": 0, "added": 0, "unchanged": 5, "stale": 0}
    assert (run / "reviews.jsonl").read_bytes() == before


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_a_box_that_leaves_the_picture_has_not_moved(tmp_path: Path, name: Any) -> None:
    run = tmp_path / "run"
    run.mkdir()
    make_run(run, [("a.png", [anomaly("x", (1, 2, 70, 60))])])
    written = uncanny.export(run, to=name, out=tmp_path / "out", all=True).files[name]
    assert uncanny.import_reviews(written, run=run, reviewer="eve").counts["unchanged"] == 1


def test_a_table_without_the_column_of_kinds_takes_none_away(run: Path, tmp_path: Path) -> None:
    table = uncanny.export(run, to="csv", out=tmp_path / "x.csv", all=True).files["csv"]
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with table.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, [name for name in rows[0] if name != "kind"], extrasaction="ignore")
        out.writeheader()
        out.writerows(rows)
    assert uncanny.import_reviews(table, run=run, reviewer="eve").counts["unchanged"] == 5


def test_a_spreadsheet_brings_verdicts_and_texts(run: Path, tmp_path: Path) -> None:
    table = uncanny.export(run, to="csv", out=tmp_path / "x.csv", all=True).files["csv"]
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows[0]["reasoning"] = "Hands have five."
    rows[3]["decision"] = "reject"
    rows[4]["phenomenon"] = "=a better text"
    rows[4]["severity"] = "30.0"
    with table.open("w", encoding="utf-8-sig", newline="") as file:
        out = csv.DictWriter(file, rows[0])
        out.writeheader()
        out.writerows(rows)
    result = uncanny.import_reviews(table, run=run, reviewer="eve")
    assert (result.counts["verdicts"], result.counts["edited"], result.counts["unchanged"]) == (2, 2, 2)
    after = findings(run)
    assert after[0].anomaly.reasoning == "Hands have five."
    assert (after[0].votes, after[0].votes_before) == ({"eve": "accept"}, 3)  # it stays verified
    assert after[3].decision == "reject"
    assert (after[4].anomaly.phenomenon, after[4].anomaly.severity) == ("=a better text", 30)
    assert after[1].anomaly.phenomenon == HOSTILE
    again = uncanny.import_reviews(table, run=run, reviewer="eve")
    assert not again.counts["verdicts"] + again.counts["edited"] + again.counts["added"]


def test_logs_of_two_copies_of_a_run_become_one(run: Path, tmp_path: Path) -> None:
    records = list(read_records(run / "annotations.jsonl", Annotation))
    other = tmp_path / "other"
    other.mkdir()
    (other / "reviews.jsonl").write_bytes((run / "reviews.jsonl").read_bytes())
    judge(other, records[2], "zoe", "reject")
    result = uncanny.import_reviews(other / "reviews.jsonl", run=run)
    assert (result.counts["verdicts"], result.counts["unchanged"]) == (1, 7)
    assert findings(run)[4].votes == {"zoe": "reject"}


def test_a_verdict_on_a_text_that_was_edited_since_is_stale(run: Path, tmp_path: Path) -> None:
    early = uncanny.export(run, to="csv", out=tmp_path / "early.csv", all=True).files["csv"]
    late = uncanny.export(run, to="csv", out=tmp_path / "late.csv", all=True).files["csv"]
    late.write_text(late.read_text().replace("No shadow is seen.", "No shadow at all."))
    uncanny.import_reviews(late, run=run, reviewer="eve")
    assert uncanny.import_reviews(early, run=run, reviewer="bob").counts["stale"] == 1


def test_a_reviewer_is_needed_where_the_file_names_none(run: Path, tmp_path: Path) -> None:
    table = uncanny.export(run, to="csv", out=tmp_path / "x.csv", all=True).files["csv"]
    table.write_text(table.read_text().replace("No shadow is seen.", "No shadow at all."))
    with pytest.raises(UsageError, match=r"who made the change.*`reviewer`"):
        uncanny.import_reviews(table, run=run)


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_boxes_become_a_file_of_annotations(tmp_path: Path, name: Any) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (record,) = make_run(run, [("a/b.png", [anomaly("x", (1, 2, 30, 40)), anomaly("y")])])
    written = uncanny.export(run, to=name, out=tmp_path / "out", all=True).files[name]
    target = tmp_path / "truth.jsonl"
    result = uncanny.import_annotations(written, out=target)
    (made,) = read_records(target, Annotation)
    assert result.counts["anomalies"] == 2
    assert [(each.name, each.box, each.severity) for each in made.anomalies] == [
        ("x", (1, 2, 30, 40), 20),
        ("y", None, 20),
    ]
    assert (made.image, made.sha256, made.width) == (record.image, record.sha256, record.width)
    with pytest.raises(UsageError, match="already exists"):
        uncanny.import_annotations(written, out=target)


def test_an_input_is_not_written_over(run: Path, tmp_path: Path) -> None:
    uncanny.export(run, to=["csv", "coco", "hf"], out=tmp_path / "out", all=True, test_fraction=0)
    table, coco, hf = (tmp_path / "out" / name for name in ("anomalies.csv", "coco", "hf"))
    link = tmp_path / "link.csv"
    link.symlink_to(table)
    for file, target in (
        (table, table),
        (table, link),
        (coco / "annotations.json", coco / "without_boxes.jsonl"),
        (hf, hf / "data/train.parquet"),
    ):
        before = target.read_bytes()
        for force in (True, False):
            with pytest.raises(UsageError, match=r"is an input and would be overwritten.*Pass another file"):
                uncanny.import_annotations(file, out=target, force=force)
        assert target.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.json", b""),
        ("x.json", b"{"),
        ("x.json", b"[1]"),
        ("x.json", b'{"annotations": 3}'),
        ("x.json", b'{"annotations": [{"image_id": 1}]}'),
        (
            "x.json",
            b'{"annotations": [{"image_id": 1, "bbox": [1]}], "images": [{"id": 1, "file_name": "a"}]}',
        ),
        ("x.json", b'{"shapes": [{"points": 3}], "imagePath": "a"}'),
        ("x.json", b'{"shapes": [], "imagePath": 3}'),
        ("x.json", b'{"other": []}'),
        ("x.json", b'[{"data": {}}]'),
        (
            "x.json",
            b'[{"data": {"image": "a"}, "annotations": [{"result": [{"from_name": "kind", "value": {}}]}]}]',
        ),
        (
            "x.json",
            b'{"annotations": [{"image_id": 1, "bbox": [1, 2, "3", 4]}],'
            b'"images": [{"id": 1, "file_name": "a"}]}',
        ),
        ("x.json", b'{"annotations": [{"image_id": [1], "bbox": [1, 2, 3, 4]}], "images": [{"id": [2]}]}'),
        ("x.json", b'{"shapes": [{"points": [["1", 2], [3, 4]]}], "imagePath": "a"}'),
        ("x.json", b"[" * 100_000 + b"]" * 100_000),
        (
            "x.json",
            b'[{"data": {"image": "a"}, "annotations": [{"result": [{"from_name": "kind",'
            b'"original_width": 9, "original_height": 9, "id": "uncanny-%s-%s-box",'
            b'"value": {"x": 1, "y": 1, "width": 9, "height": 9, "rotation": "inf"}}]}]}]'
            % (b"9" * 5_000, b"a" * 64),
        ),
        (
            "x.jsonl",
            b'{"image": "photos/c.png", "anomaly": 0, "reviewer": "x", "at": "0001-01-01T00:00:00+09:00"}\n',
        ),
        ("x.xml", b'<annotations><track id="0"><box frame="0"/></track></annotations>'),
        ("x.xml", b'<?xml version="1.0" encoding="nonsense"?><annotations/>'),
        ("x.xml", b'<?xml version="1.0" encoding="utf-7"?><annotations/>'),
        ("x.xml", b'<?xml version="1.0"?><!DOCTYPE a SYSTEM "file:///etc/passwd"><annotations/>'),
        ("x.xml", '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a><annotations/>'.encode("utf-16")),
        ("x.xml", b'<annotations><image name="photos/c.png"><cuboid label="x"/></image></annotations>'),
        ("x.xml", b"<annotations>"),
        ("x.xml", b"<View><Image name='image'/></View>"),
        ("x.xml", b'<annotations><image name="a"><box label="x"/></image></annotations>'),
        ("x.csv", b"\xff\xfe\x00"),
        ("x.csv", b"a,b\n1,2\n"),
        ("x.csv", b"image,name,phenomenon,reasoning,severity\na,b,c,d,e\n"),
        ("x.jsonl", b'{"image": 3}\n'),
        ("x.parquet", b""),
        ("x.parquet", b"PAR1 nothing PAR1"),
        ("x.txt", b"nothing"),
    ],
)
def test_what_is_no_such_file_is_refused_in_words(
    run: Path, tmp_path: Path, name: str, content: bytes
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    before = (run / "reviews.jsonl").read_bytes()
    with pytest.raises(UncannyError):
        uncanny.import_reviews(file, run=run, reviewer="eve")
    with pytest.raises(UncannyError):
        uncanny.import_annotations(file, out=tmp_path / "o.jsonl")
    assert (run / "reviews.jsonl").read_bytes() == before
    assert not (tmp_path / "o.jsonl").exists()


def test_the_model_s_own_text_is_no_new_finding_once_it_was_edited(run: Path) -> None:
    (record, *_) = read_records(run / "annotations.jsonl", Annotation)
    version = record.anomalies[0].model_copy(update={"name": "Better"})
    ReviewLog.of_run(run).append([new_review(record, 0, record.anomalies[0], "ann", version=version)])
    counts = uncanny.import_reviews(run / "annotations.jsonl", run=run, reviewer="eve").counts
    assert (counts["added"], counts["stale"], counts["unchanged"]) == (0, 1, 4)


def test_every_reader_has_a_round_trip_here() -> None:
    assert set(READ_NAMES) == {*ROUND_TRIPS, "labelstudio", "reviews"}


def test_reviews_written_by_hand_have_no_id_and_are_not_doubled(run: Path, tmp_path: Path) -> None:
    line = Review(image="photos/c.png", anomaly=0, decision="accept", reviewer="x", at="2026-01-01T00:00:00Z")  # type: ignore[arg-type]
    file = tmp_path / "reviews.jsonl"
    file.write_text(line.model_dump_json(exclude_none=True) + "\n")
    assert uncanny.import_reviews(file, run=run).counts["verdicts"] == 1
    assert uncanny.import_reviews(file, run=run).counts["unchanged"] == 1


def edited_coco(run: Path, folder: Path, *changes: dict[str, Any]) -> Path:
    """The run as COCO, with further annotations."""
    uncanny.export(run, to="coco", out=folder, all=True)
    file = folder / "coco/annotations.json"
    content = orjson.loads(file.read_bytes())
    content["annotations"] += changes
    file.write_bytes(orjson.dumps(content))
    return file


def new_box(image: int, name: str) -> dict[str, Any]:
    texts = {"name": name, "phenomenon": "It is new.", "reasoning": "It was not seen.", "severity": 3}
    return {
        "id": f"new {name}",
        "image_id": image,
        "category_id": 1,
        "bbox": [1, 1, 5, 5],
        "attributes": texts,
    }


def test_findings_added_to_one_image_in_several_places_are_several(run: Path, tmp_path: Path) -> None:
    first = edited_coco(run, tmp_path / "1", new_box(3, "A"), new_box(1, "B"), new_box(3, "C"))
    second = edited_coco(run, tmp_path / "2", new_box(3, "D"))
    assert uncanny.import_reviews([first, second], run=run, reviewer="eve").counts["added"] == 4
    added = [each for each in findings(run) if each.added_by]
    assert [(each.index, each.anomaly.name) for each in added] == [(2, "B"), (1, "A"), (2, "C"), (3, "D")]


def test_a_finding_twice_in_a_file_is_a_problem(run: Path, tmp_path: Path) -> None:
    content = orjson.loads(edited_coco(run, tmp_path / "out").read_bytes())
    file = edited_coco(run, tmp_path / "out", content["annotations"][0] | {"id": 77, "bbox": [1, 1, 5, 5]})
    with pytest.raises(ItemsError, match="annotation 77: repeats finding 0 of the image"):
        uncanny.import_reviews(file, run=run, reviewer="eve")


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_tables_of_spreadsheets_in_other_countries_are_read(
    run: Path, tmp_path: Path, delimiter: str
) -> None:
    table = uncanny.export(run, to="csv", out=tmp_path / "x.csv", all=True).files["csv"]
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows[4]["decision"] = "reject"
    with table.open("w", encoding="utf-8-sig", newline="") as file:
        out = csv.DictWriter(file, rows[0], delimiter=delimiter)
        out.writeheader()
        out.writerows(rows)
    counts = uncanny.import_reviews(table, run=run, reviewer="eve").counts
    assert (counts["verdicts"], counts["unchanged"]) == (1, 4)


def test_a_log_of_another_run_is_refused_and_a_half_written_line_passed_over(
    run: Path, tmp_path: Path
) -> None:
    at = "2026-01-01T00:00:00Z"
    lines = [{"image": name, "anomaly": 0, "decision": "accept", "reviewer": "x", "at": at} for name in "yz"]
    file = tmp_path / "reviews.jsonl"
    file.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    before = (run / "reviews.jsonl").read_bytes()
    with pytest.raises(ItemsError, match=r"(?s)2 problems.*the run has no such image"):
        uncanny.import_reviews(file, run=run)
    assert (run / "reviews.jsonl").read_bytes() == before
    file.write_bytes(orjson.dumps(lines[0] | {"image": "photos/c.png"}) + b'\n{"image": "photos/c.png", "ano')
    assert uncanny.import_reviews(file, run=run).counts["verdicts"] == 1


def test_no_place_of_a_finding_keeps_others_from_being_added(run: Path, tmp_path: Path) -> None:
    version = {"name": "n", "phenomenon": "p", "reasoning": "r", "severity": 1}
    line = {"image": "photos/c.png", "anomaly": 2**31 - 1, "reviewer": "x", "at": "2026-01-01T00:00:00Z"}
    file = tmp_path / "reviews.jsonl"
    file.write_bytes(orjson.dumps(line | {"version": version}))
    uncanny.import_reviews(file, run=run)
    uncanny.import_reviews(edited_coco(run, tmp_path / "out", new_box(3, "A")), run=run, reviewer="eve")
    assert [each.index for each in findings(run) if each.added_by] == [2**31 - 1, 1]
