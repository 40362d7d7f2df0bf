"""What annotation tools draw comes back: boxes that were moved, new ones, and what is around other shapes."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

import uncanny
from tests.exports.made_runs import anomaly, findings, write_records
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.common.pixels.shapes import coco_box_crop
from uncanny.exports.returned import box_around
from uncanny.records.jsonl import read_records
from uncanny.records.reviews import ReviewLog
from uncanny.schema import Annotation


def submitted(tasks: Path, target: Path, change: Any = None, **annotation: Any) -> Path:
    """What Label Studio exports once the predictions of each task are submitted, after `change(results)`."""
    content = orjson.loads(tasks.read_bytes())
    for number, task in enumerate(content):
        results = [dict(result) for result in task["predictions"][0]["result"]]
        if change is not None:
            results = change(number, results)
        task["id"] = number + 1
        task["annotations"] = [
            {
                "id": number,
                "completed_by": {"id": 7, "email": "ann@example.org"},
                "was_cancelled": False,
                "created_at": "2026-02-01T10:00:00.000000Z",
                "updated_at": "2026-02-01T10:05:00.000000Z",
                "result": results,
                **annotation,
            }
        ]
    target.write_bytes(orjson.dumps(content))
    return target


def test_boxes_of_any_image_come_back_to_the_pixel(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    run, records = tmp_path / "run", []
    run.mkdir()
    for number, (width, height) in enumerate([(6997, 4001), (3, 7), (1, 1), (1023, 9999)]):
        xs = np.sort(rng.integers(0, width + 1, (60, 2)), axis=1).tolist()
        ys = np.sort(rng.integers(0, height + 1, (60, 2)), axis=1).tolist()
        boxes = [(x0, y0, x1, y1) for (x0, x1), (y0, y1) in zip(xs, ys, strict=True) if x0 < x1 and y0 < y1]
        records.append(
            Annotation(
                image=f"{number}.png",
                sha256=f"{number:064}",
                width=width,
                height=height,
                status="ok",
                anomalies=tuple(anomaly(f"Fault {place}", box) for place, box in enumerate(boxes)),
                model="demo",
                prompts="packed@1",
            )
        )
    write_records(run, records)
    files = uncanny.export(
        run, to=["coco", "labelme", "cvat", "labelstudio"], out=tmp_path / "out", all=True
    ).files
    number = sum(len(record.anomalies) for record in records)
    assert number > 100
    for form, source in files.items():
        file = submitted(source / "tasks.json", tmp_path / "s.json") if form == "labelstudio" else source
        counts = uncanny.import_reviews(file, run=run, reviewer="eve").counts
        assert (form, counts["unchanged"], counts["edited"]) == (form, number, 0)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.5, 2.5, (2, 3)),
        (2.5, 3.5, (3, 4)),
        (0.5, 4.5, (1, 5)),
        (1.4, 3.6, (1, 4)),
        (1.6, 3.4, (2, 3)),
        (-3.2, 99.0, (0, 8)),
    ],
)
def test_a_box_has_the_pixels_whose_middle_it_covers(
    low: float, high: float, expected: tuple[int, int]
) -> None:
    """As in COCO. Halves rounded to even numbers would make no pixel of 1.5 to 2.5, and two of 0.5 to 1.5."""
    box = box_around([(low, high), (high, low)], (8, 8), "here")
    assert box == (expected[0], expected[0], expected[1], expected[1])
    ours = coco_box_crop((max(low, 0), max(low, 0), high, high), (8, 8))
    assert ours.box == box


def test_a_mask_of_labelme_ends_with_its_last_pixel(run: Path, tmp_path: Path) -> None:
    folder = uncanny.export(run, to="labelme", out=tmp_path / "out", all=True).files["labelme"]
    (file,) = folder.glob("c-*.json")
    content = orjson.loads(file.read_bytes())
    content["shapes"][0] |= {"shape_type": "mask", "points": [[5.0, 6.0], [5.0, 9.0]], "mask": "iVBO"}
    file.write_bytes(orjson.dumps(content))
    uncanny.import_reviews(folder, run=run, reviewer="eve")
    assert findings(run)[4].anomaly.box == (5, 6, 6, 10)


def test_coco_brings_moved_boxes_and_new_ones(run: Path, tmp_path: Path) -> None:
    uncanny.export(run, to="coco", out=tmp_path / "out", all=True)
    file = tmp_path / "out/coco/annotations.json"
    content = orjson.loads(file.read_bytes())
    content["annotations"][0]["bbox"] = [11.6, 5, 20.2, 35]
    texts = {"name": "New", "phenomenon": "It is new.", "reasoning": "It was not seen.", "severity": 3}
    content["annotations"].append(
        {"id": 99, "image_id": 3, "category_id": 1, "bbox": [1, 1, 5, 5], "attributes": texts}
    )
    file.write_bytes(orjson.dumps(content))
    result = uncanny.import_reviews(file, run=run, reviewer="eve")
    assert (result.counts["edited"], result.counts["added"]) == (1, 1)
    after = findings(run)
    assert after[0].anomaly.box == (12, 5, 32, 40)
    assert after[0].decision == "accept"  # the verdicts are on the text
    assert (after[5].anomaly.name, after[5].added_by, after[5].decision) == ("New", "eve", "accept")
    assert not uncanny.import_reviews(file, run=run, reviewer="eve").counts["added"]


def test_a_new_box_without_its_texts_is_a_problem_and_nothing_is_written(run: Path, tmp_path: Path) -> None:
    before = (run / "reviews.jsonl").read_bytes()
    uncanny.export(run, to="coco", out=tmp_path / "out", all=True)
    file = tmp_path / "out/coco/annotations.json"
    content = orjson.loads(file.read_bytes())
    content["annotations"][0]["bbox"] = [1, 1, 9, 9]
    content["annotations"].append({"id": 99, "image_id": 3, "category_id": 1, "bbox": [1, 1, 5, 5]})
    file.write_bytes(orjson.dumps(content))
    with pytest.raises(ItemsError, match=r"annotation 99.*'name'"):
        uncanny.import_reviews(file, run=run, reviewer="eve")
    assert (run / "reviews.jsonl").read_bytes() == before


def test_labelme_brings_flags_and_boxes(run: Path, tmp_path: Path) -> None:
    folder = uncanny.export(run, to="labelme", out=tmp_path / "out", all=True).files["labelme"]
    (file,) = folder.glob("c-*.json")
    content = orjson.loads(file.read_bytes())
    content["shapes"][0]["flags"] = {"accept": False, "reject": True, "unsure": False}
    content["shapes"][0]["points"] = [[30.0, 20.0], [1.0, 2.0]]
    content["shapes"][0]["label"] = "anatomy"
    file.write_bytes(orjson.dumps(content))
    uncanny.import_reviews(folder, run=run, reviewer="eve")
    after = findings(run)[4]
    assert (after.anomaly.box, after.anomaly.kind, after.decision) == ((1, 2, 30, 20), "anatomy", "reject")


def test_cvat_brings_verdicts_texts_and_other_shapes(run: Path, tmp_path: Path) -> None:
    file = uncanny.export(run, to="cvat", out=tmp_path / "out", all=True).files["cvat"]
    tree = ET.parse(file)
    boxes = list(tree.iter("box"))
    for attribute in boxes[2].iter("attribute"):
        if attribute.get("name") == "decision":
            attribute.text = "unsure"
        if attribute.get("name") == "reasoning":
            attribute.text = "Light casts shadows."
    boxes[2].tag = "polygon"
    boxes[2].set("points", "1.0,2.0;9.2,4.0;3.0,8.7")
    for corner in ("xtl", "ytl", "xbr", "ybr"):
        del boxes[2].attrib[corner]
    tree.write(file)
    uncanny.import_reviews(file, run=run, reviewer="eve")
    after = findings(run)[4]
    assert (after.anomaly.box, after.anomaly.reasoning) == ((1, 2, 9, 9), "Light casts shadows.")
    assert after.decision == "unsure"


def test_xml_with_entities_is_refused(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "bomb.xml"
    file.write_text('<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb">]><annotations>&b;</annotations>')
    with pytest.raises(UsageError, match="document type"):
        uncanny.import_reviews(file, run=run, reviewer="eve")


def test_label_studio_brings_verdicts_edits_moves_and_deletions(run: Path, tmp_path: Path) -> None:
    tasks = (
        uncanny.export(run, to="labelstudio", out=tmp_path / "out", all=True).files["labelstudio"]
        / "tasks.json"
    )

    def change(number: int, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        kept = []
        for result in results:
            region = result["id"]
            if number == 1 and region.startswith("uncanny-1-"):
                continue  # deleted by the reviewer
            if number == 2:
                result["value"] |= {"x": 50.0, "y": 50.0, "width": 25.0, "height": 25.0}
                if result["from_name"] == "phenomenon":
                    result["value"]["text"] = ["A better text."]
            kept.append(result)
        if number == 2:
            place = {"x": 0, "y": 0, "width": 10, "height": 10, "rotation": 0}
            common = {"id": "new1", "original_width": 64, "original_height": 48}
            for name, key, value in (
                ("kind", "rectanglelabels", ["light"]),
                ("name", "text", ["New"]),
                ("phenomenon", "text", ["It is new."]),
                ("reasoning", "text", ["It was not seen."]),
                ("severity", "number", 5.0),
            ):
                kept.append({**common, "from_name": name, "value": {**place, key: value}})
        return kept

    file = submitted(tasks, tmp_path / "project.json", change)
    result = uncanny.import_reviews(file, run=run)
    after = findings(run)
    assert after[0].votes["label-studio ann@example.org"] == "accept"
    assert after[3].decision == "reject"
    assert (after[4].anomaly.phenomenon, after[4].anomaly.box) == ("A better text.", (32, 24, 48, 36))
    assert (after[5].anomaly.name, after[5].anomaly.kind, after[5].anomaly.box) == (
        "New",
        "light",
        (0, 0, 6, 5),
    )
    assert result.counts["added"] == 1
    assert after[1].anomaly.box is None  # that covered the whole picture, and still does
    stamps = {review.at.isoformat() for review in ReviewLog.of_run(run).read() if "label" in review.reviewer}
    assert stamps == {"2026-02-01T10:05:00+00:00"}
    size = (run / "reviews.jsonl").stat().st_size
    uncanny.import_reviews(file, run=run)
    assert (run / "reviews.jsonl").stat().st_size == size


def test_deletions_are_seen_where_the_project_exports_no_predictions(run: Path, tmp_path: Path) -> None:
    tasks = (
        uncanny.export(run, to="labelstudio", out=tmp_path / "out", all=True).files["labelstudio"]
        / "tasks.json"
    )
    file = submitted(tasks, tmp_path / "p.json", lambda _number, results: results[6:])
    content = orjson.loads(file.read_bytes())
    for task in content:
        task["annotations"][0]["prediction"] = task["predictions"][0]
        task["predictions"] = []
    file.write_bytes(orjson.dumps(content))
    uncanny.import_reviews(file, run=run)
    assert findings(run)[4].votes == {"label-studio ann@example.org": "reject"}


def test_what_was_skipped_in_label_studio_says_nothing(run: Path, tmp_path: Path) -> None:
    tasks = (
        uncanny.export(run, to="labelstudio", out=tmp_path / "out", all=True).files["labelstudio"]
        / "tasks.json"
    )
    file = submitted(tasks, tmp_path / "p.json", lambda _number, _results: [], was_cancelled=True)
    assert not any(uncanny.import_reviews(file, run=run).counts.values())


def test_a_turned_rectangle_comes_back_as_what_is_around_it(run: Path, tmp_path: Path) -> None:
    tasks = (
        uncanny.export(run, to="labelstudio", out=tmp_path / "out", all=True).files["labelstudio"]
        / "tasks.json"
    )

    def turn(number: int, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for result in results:
            if number == 2:
                result["value"] |= {"x": 50.0, "y": 50.0, "width": 12.5, "height": 25.0, "rotation": 90}
        return results

    uncanny.import_reviews(submitted(tasks, tmp_path / "p.json", turn), run=run)
    assert findings(run)[4].anomaly.box == (20, 24, 32, 32)


def test_a_box_drawn_in_cvat_belongs_to_the_picture_it_was_drawn_on(run: Path, tmp_path: Path) -> None:
    """CVAT knows copied pictures by the names of the copies, and what is drawn there has empty attributes."""
    file = uncanny.export(run, to="cvat", out=tmp_path / "out", all=True, copy_pictures=True).files["cvat"]
    tree = ET.parse(file)
    texts = {
        "name": "New",
        "phenomenon": "p",
        "reasoning": "r",
        "severity": "3",
        "index": "",
        "run_image": "",
    }
    images = list(tree.iter("image"))
    for shape in list(images[2]):
        images[2].remove(shape)
    for image in (images[0], images[2]):
        box = ET.SubElement(image, "box", label="light", xtl="1", ytl="1", xbr="9", ybr="9")
        for name, text in texts.items():
            ET.SubElement(box, "attribute", name=name).text = text
    tree.write(file)
    assert uncanny.import_reviews(file, run=run, reviewer="eve").counts["added"] == 2
    by_image = ReviewLog.of_run(run).by_image()
    assert [sum(line.version is not None for line in by_image.get(name, ())) for name in (
        "photos/a b#1.png", "photos/b.png", "photos/c.png"
    )] == [1, 0, 1]  # fmt: skip
    uncanny.import_annotations(file, out=tmp_path / "truth.jsonl")
    made = list(read_records(tmp_path / "truth.jsonl", Annotation))
    assert len(made) == 3


@pytest.mark.parametrize(
    ("shape", "box"),
    [
        ('<ellipse cx="20" cy="30" rx="5" ry="6"', (15, 24, 25, 36)),
        ('<mask rle="1,2" left="3" top="4" width="5" height="6"', (3, 4, 8, 10)),
        ('<box xtl="10" ytl="10" xbr="30" ybr="20" rotation="90.0"', (15, 5, 25, 25)),
        ('<points points="1,2;3,4"', (1, 2, 3, 4)),
    ],
)
def test_shapes_of_cvat_come_back_as_what_is_around_them(
    tmp_path: Path, shape: str, box: tuple[int, ...]
) -> None:
    texts = {"name": "N", "phenomenon": "p", "reasoning": "r", "severity": "3"}
    about = "".join(f'<attribute name="{name}">{text}</attribute>' for name, text in texts.items())
    file = tmp_path / "x.xml"
    tag = shape.split()[0][1:]
    file.write_text(
        f'<annotations><image name="a.png">{shape} label="light">{about}</{tag}></image></annotations>'
    )
    uncanny.import_annotations(file, out=tmp_path / "truth.jsonl")
    (made,) = read_records(tmp_path / "truth.jsonl", Annotation)
    assert made.anomalies[0].box == box


def test_a_circle_of_labelme_comes_back_as_what_is_around_it(run: Path, tmp_path: Path) -> None:
    folder = uncanny.export(run, to="labelme", out=tmp_path / "out", all=True).files["labelme"]
    (file,) = folder.glob("c-*.json")
    content = orjson.loads(file.read_bytes())
    content["shapes"][0] |= {"shape_type": "circle", "points": [[20, 20], [23, 24]]}
    file.write_bytes(orjson.dumps(content))
    uncanny.import_reviews(file, run=run, reviewer="eve")
    assert findings(run)[4].anomaly.box == (15, 15, 25, 25)
