"""Artifacts from every format, and files that are wrong: whole, or refused with all that is wrong."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections import Counter
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pycocotools import mask as coco

import uncanny.artifacts
from tests.eval.artifacts.made_sets import (
    SQUARE,
    box,
    image,
    labelme,
    point,
    polygon,
    shape,
    write_labelme,
    write_lines,
)
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.artifacts.data.formats import NO_BOX, NO_KIND, of_coco, of_labelme
from uncanny.eval.artifacts.data.load import load
from uncanny.eval.artifacts.data.pixels import Drawing
from uncanny.eval.artifacts.data.records import CATEGORY_OF_KIND, LEVELS, read_category
from uncanny.eval.common.pixels.crops import Mask, Size
from uncanny.schema import ARTIFACT_CATEGORIES, KINDS


def loaded(path: Path, **options: Any) -> Any:
    return uncanny.artifacts.load(path, **options).records


def problems(path: Any, **options: Any) -> list[str]:
    with pytest.raises(ItemsError) as caught:
        uncanny.artifacts.load(path, **options)
    return [str(problem) for problem in caught.value.problems]


def test_records_keep_what_they_have(tmp_path: Path) -> None:
    lines = [
        image("a.png", polygon(), box(), point("physics", 2, 2), source="generated", niqe=3.5),
        {"image": "b.png", "source": "real", "score": 0.25},
    ]
    first, second = loaded(write_lines(tmp_path / "artifacts.jsonl", lines))
    assert [region.kind for region in first.regions] == ["polygon", "box", "point"]
    assert first.model_extra == {"niqe": 3.5}
    assert (second.regions, second.score, second.source) == (None, 0.25, "real")


def test_a_run_folder_a_list_a_table_and_a_frame(tmp_path: Path) -> None:
    record = image("a.png", box(), source="generated")
    write_lines(tmp_path / "artifacts.jsonl", [record])
    (tmp_path / "list.json").write_text(json.dumps([record]))
    (tmp_path / "verdicts.csv").write_text("image,source,score,niqe\na.png,generated,0.9,3.5\nb.png,,0.2,\n")
    assert loaded(tmp_path)[0].regions == loaded(tmp_path / "list.json")[0].regions
    first, second = loaded(tmp_path / "verdicts.csv")
    assert (first.source, first.score, first.model_extra, first.regions) == (
        "generated",
        0.9,
        {"niqe": 3.5},
        None,
    )
    assert (second.source, second.score) == (None, 0.2)
    frame = pandas.DataFrame([{"image": "a.png", "score": 0.5}, {"image": "b.png", "score": float("nan")}])
    assert [record.score for record in uncanny.artifacts.load(frame).records] == [0.5, None]


def test_a_row_with_more_cells_than_the_head_is_refused(tmp_path: Path) -> None:
    (tmp_path / "verdicts.csv").write_text("image,source,score\na.png,generated,0.9\nb.png,generated,0,2\n")
    with pytest.raises(UsageError, match="line 3 has 4 cells, and the head of the table 3"):
        loaded(tmp_path / "verdicts.csv")


def test_a_run_under_way_and_an_image_that_was_asked_about_again(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"format": 2, "uncanny": "0.1.0", "task": "artifacts"}')
    lines = [image("a.png"), image("b.png"), image("a.png", box())]
    file = write_lines(tmp_path / "artifacts.jsonl", lines)
    with file.open("a") as more:
        more.write('{"image": "c.png", "regi')
    assert {record.image: len(record.regions) for record in loaded(tmp_path)} == {"a.png": 1, "b.png": 0}


def test_labelme_as_the_set_has_it(tmp_path: Path) -> None:
    document = labelme(
        "photo.png",
        shape("Edges & Shapes", SQUARE, confidence=0.5, description="jagged"),
        shape("symbols", [[1, 1], [4, 5]], "rectangle"),
        shape("Textures", [[4, 4], [4, 6]], "circle"),
        shape("physics", [[2, 2]], "point"),
        imagePath="..\\images\\photo.png",
        flags={"checked": True},
        niqe=4,
    )
    folder = tmp_path / "set"
    (folder / "SDXL").mkdir(parents=True)
    (folder / "SDXL" / "photo.json").write_text(json.dumps(document))
    (record,) = loaded(folder)
    assert (record.image, record.generator, record.source) == ("SDXL/photo.png", "SDXL", "generated")
    assert record.size == (8, 8)
    first, second, third, fourth = record.regions
    assert (first.category, first.confidence, first.note) == ("edges_shapes", 0.5, "jagged")
    assert second.polygon == ((1, 1), (4, 1), (4, 5), (1, 5))
    assert third.circle == (4, 4, 2)
    assert fourth.circle == (2, 2, 5), "labelme draws points with a radius of 5"
    assert record.model_extra == {"niqe": 4}


def test_flags_of_labelme_say_the_source(tmp_path: Path) -> None:
    folder = write_labelme(
        tmp_path / "set",
        labelme("a.png", flags={"real": True, "fake": False}),
        labelme("b.png", flags={"Fake": True}),
        labelme("c.png"),
        labelme("d.png", shape("color", SQUARE)),
    )
    assert [record.source for record in loaded(folder)] == ["real", "generated", None, "generated"]


def test_labelme_that_is_wrong_is_listed_whole(tmp_path: Path) -> None:
    folder = write_labelme(
        tmp_path / "set",
        labelme("a.png", shape("hands", SQUARE), shape("color", [[1, 1], [2, 2]]), shape("color", "x")),
        labelme("b.png", shape("color", SQUARE, "points"), shape("color", SQUARE, confidence=3)),
        labelme("c.png", "no shape"),  # type: ignore[arg-type]
        labelme("d.png", shape("color", [[1, 1], [2, float("inf")], [3, 3]])),
        labelme("e.png", shape("color", SQUARE), imageWidth=-1),
        labelme("g.png", shape("color", [[0, 0], [1e308, 1e308]], "circle")),
    )
    (folder / "f.json").write_text("[]")
    (folder / "folder.json").mkdir()
    os.mkfifo(folder / "pipe.json")
    found = "\n".join(problems(folder))
    for part in (
        "item 'a.json', field shapes.0.label: 'hands' is not a category; the categories are textures,",
        "item 'a.json', field shapes.1.polygon: ",
        "item 'a.json', field shapes.2.points: do not make a 'polygon': 'x'",
        "item 'b.json', field shapes.0.shape_type: is 'points'; draw one of polygon, rectangle,",
        "item 'b.json', field shapes.1.confidence: ",
        "item 'c.json', field shapes.0: must be an object",
        "item 'd.json'",
        "item 'e.json', field width",
        "item 'f.json': is not a labelme file",
        "item 'pipe.json': is a pipe",
        "item 'g.json', field shapes.0.points: do not make a 'circle'",
    ):
        assert part in found


def coco_document(*annotations: dict[str, Any]) -> dict[str, Any]:
    return {
        "images": [
            {"id": 7, "file_name": "a.png", "width": 8, "height": 8, "generator": "SDXL"},
            {"id": 9, "file_name": "b.png", "width": 8, "height": 8, "source": "real"},
        ],
        "categories": [{"id": 1, "name": "Semantics"}, {"id": 2, "name": "hands"}],
        "annotations": [
            {"id": n, "image_id": 7, "category_id": 1, **each} for n, each in enumerate(annotations)
        ],
    }


def test_coco_instances(tmp_path: Path) -> None:
    mask = np.zeros((8, 8), dtype=np.uint8, order="F")
    mask[2:4, 3:6] = 1
    encoded = coco.encode(mask)
    flat = [float(number) for corner in SQUARE for number in corner]
    document = coco_document(
        {"segmentation": [flat], "score": 0.75},
        {"segmentation": {"size": [8, 8], "counts": encoded["counts"].decode()}},
        {"segmentation": [], "bbox": [1, 2, 3, 4]},
        {"segmentation": [flat, [5.0, 5.0, 7.0, 5.0, 7.0, 7.0]]},
    )
    (tmp_path / "instances.json").write_text(json.dumps(document))
    first, second = loaded(tmp_path / "instances.json")
    kinds = [region.kind for region in first.regions]
    assert kinds == ["polygon", "mask", "box", "mask"]
    assert first.regions[0].confidence == 0.75
    assert first.regions[2].box == (1, 2, 4, 6)
    assert first.generator == "SDXL"
    assert (second.regions, second.source) == ((), "real")
    scores = uncanny.artifacts.score(
        tmp_path / "instances.json", truth=[image("a.png", {"category": "semantics", "mask": encode(mask)})]
    )
    assert scores["instances"].agnostic.pixel["recall"].value == 1


def drawn(records: Any, size: Size = (40, 30)) -> list[Mask]:
    """The pixels of every region, as they are scored."""
    drawing = Drawing()
    regions = [each for image in load(records).images for each in drawing.regions(image, size)]
    assert not drawing.problems
    return [each.pixels.on(size) for each in regions]


@st.composite
def instances(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Annotations of COCO with polygons and boxes of any numbers in and around 40 × 30 pixels."""
    place = st.floats(-20, 60) | st.integers(-20, 60).map(float)
    polygon = st.lists(place, min_size=3, max_size=8).flatmap(
        lambda xs: st.lists(place, min_size=len(xs), max_size=len(xs)).map(
            lambda ys: [number for point in zip(xs, ys, strict=True) for number in point]
        )
    )
    side = st.floats(0.1, 60)
    segmentation = st.lists(polygon, min_size=1, max_size=3).map(lambda each: {"segmentation": each})
    boxes = st.tuples(place, place, side, side).map(lambda each: {"bbox": list(each)})
    return draw(st.lists(segmentation | boxes, min_size=1, max_size=3))


@given(instances())
def test_coco_instances_have_the_pixels_of_pycocotools(annotations: list[dict[str, Any]]) -> None:
    document = coco_document(*annotations)
    document["images"] = [{"id": 7, "file_name": "a.png", "width": 40, "height": 30}]
    document["categories"].pop()
    with TemporaryDirectory() as folder:
        file = Path(folder, "instances.json")
        file.write_text(json.dumps(document))
        again = [record.model_dump(mode="json") for record in loaded(file)]
        polygons = (each.get("segmentation") or np.array([each["bbox"]]) for each in annotations)
        theirs = [coco.decode(coco.merge(coco.frPyObjects(each, 30, 40))) > 0 for each in polygons]
        for records in (file, again):
            # Several polygons without a pixel are no region.
            ours = [each.tolist() for each in drawn(records) if each.any()]
            assert ours == [each.tolist() for each in theirs if each.any()]


def test_a_square_of_coco_is_its_own_run_lengths(tmp_path: Path) -> None:
    """It used to be drawn with its outline: 25 pixels for 16, an IoU of 0.64."""
    square = [2.0, 2.0, 6.0, 2.0, 6.0, 6.0, 2.0, 6.0]
    (tmp_path / "polygons.json").write_text(json.dumps(coco_document({"segmentation": [square]})))
    mask = np.zeros((8, 8), dtype=np.uint8)
    mask[2:6, 2:6] = 1
    truth = [image("a.png", {"category": "semantics", "mask": encode(mask)})]
    scores = uncanny.artifacts.score(tmp_path / "polygons.json", truth=truth)
    assert scores["polygons"].agnostic.pixel["iou"].value == 1


def base64_png(pixels: Any, **keys: Any) -> str:
    out = BytesIO()
    Image.fromarray(np.asarray(pixels)).save(out, "PNG", **keys)
    return b64encode(out.getvalue()).decode()


def test_masks_of_labelme_lie_between_two_pixels(tmp_path: Path) -> None:
    part = base64_png(np.array([[True, False, True], [False, True, False]]))
    folder = write_labelme(
        tmp_path / "set", labelme("a.png", shape("color", [[2.9, 3], [4.2, 4]], "mask", mask=part))
    )
    (ours,) = drawn(folder, (8, 8))
    assert [(int(x), int(y)) for y, x in np.argwhere(ours)] == [(2, 3), (4, 3), (3, 4)]


def test_masks_of_labelme_that_are_wrong_are_listed(tmp_path: Path) -> None:
    part = base64_png(np.ones((2, 3), dtype=bool))
    place = [[2, 3], [4, 4]]
    folder = write_labelme(
        tmp_path / "set",
        labelme("a.png", shape("color", place, "mask", mask=None)),
        labelme("b.png", shape("color", place, "mask", mask="not base64!")),
        labelme("c.png", shape("color", place, "mask", mask="QUJD")),
        labelme("d.png", shape("color", [[2, 3], [5, 4]], "mask", mask=part)),
        labelme("e.png", shape("color", [[6, 3], [8, 4]], "mask", mask=part)),
        labelme("f.png", shape("color", place, "mask", mask=part), imageWidth=None),
        labelme("g.png", shape("color", [[2, 3]], "mask", mask=part)),
        labelme("h.png", shape("color", place, "mask", mask=part), imageWidth=10**6, imageHeight=10**6),
    )
    found = "\n".join(problems(folder))
    for item in (
        "item 'a.json', field shapes.0.mask: must be a PNG in base64, not None",
        "item 'b.json', field shapes.0.mask: is not base64",
        "item 'c.json', field shapes.0.mask: the mask is not an image",
        "item 'd.json', field shapes.0.mask: the mask is 3 × 2 pixels, but",
        "item 'e.json', field shapes.0.mask: lies outside the image of 8 × 8 pixels",
        "item 'f.json', field shapes.0.mask: a mask needs imageWidth and imageHeight",
        "item 'g.json', field shapes.0.points: do not make a 'mask'",
        "item 'h.json', field shapes.0.mask: its image is 1,000,000 × 1,000,000 pixels, more",
    ):
        assert item in found


def encode(mask: np.ndarray) -> dict[str, Any]:
    encoded = coco.encode(np.asfortranarray(mask))
    return {"size": list(mask.shape), "counts": encoded["counts"].decode()}


def test_coco_that_is_wrong_is_listed_whole(tmp_path: Path) -> None:
    document = coco_document(
        {"category_id": 2, "bbox": [1, 1, 1, 1]},
        {"category_id": 5, "bbox": [1, 1, 1, 1]},
        {"image_id": 8},
        {},
        {"segmentation": [[1.0, 2.0, 3.0]]},
        {"segmentation": {"size": [8, 8]}},
    )
    document["images"].append({"id": 10})
    (tmp_path / "instances.json").write_text(json.dumps(document))
    found = "\n".join(problems(tmp_path / "instances.json"))
    for part in (
        "field annotations.0.category_id: 'hands' is not a category",
        "field annotations.1.category_id: None is not a category",
        "field annotations.2.image_id: is of no image",
        "field annotations.3: has neither",
        "field annotations.4: has neither",
        "field annotations.5.mask",
        "field images.2.file_name: is missing",
    ):
        assert part in found


def test_an_id_that_two_images_or_categories_have_is_refused(tmp_path: Path) -> None:
    document = coco_document({"bbox": [1, 1, 1, 1]})
    document["images"][1]["id"] = 7
    document["categories"][1]["id"] = 1
    (tmp_path / "instances.json").write_text(json.dumps(document))
    found = "\n".join(problems(tmp_path / "instances.json"))
    assert "field images.id: 7 is the id of 2 of them" in found
    assert "field categories.id: 1 is the id of 2 of them" in found


def test_a_size_that_is_only_claimed_is_no_reason_to_run_out_of_memory(tmp_path: Path) -> None:
    whole: list[list[float]] = [[0, 0], [999_999, 0], [999_999, 999_999], [0, 999_999]]
    huge = {"image": "a.png", "width": 1_000_000, "height": 1_000_000}
    records = [{**huge, "regions": [polygon(points=whole), box(corners=(0, 0, 999_999, 999_999))]}]
    with pytest.raises(ItemsError) as caught:
        uncanny.artifacts.score(records, truth=records)
    assert len(caught.value.problems) == 4
    assert "1,000,000 × 1,000,000 pixels, more than uncanny can read" in str(caught.value)
    beyond = write_lines(tmp_path / "artifacts.jsonl", [{"image": "a.png", "width": 10**12, "height": 1}])
    assert "field width" in "\n".join(problems(beyond))
    flat = [corner for corners in whole for corner in corners]
    document = coco_document({"segmentation": [flat, flat]})
    document["images"][0] |= {"width": 1_000_000, "height": 1_000_000}
    (tmp_path / "instances.json").write_text(json.dumps(document))
    assert "more than uncanny can read" in "\n".join(problems(tmp_path / "instances.json"))


def test_annotations_are_boxes_with_kinds_for_categories(tmp_path: Path) -> None:
    anomaly = {"name": "Six fingers", "phenomenon": "Six.", "reasoning": "Five.", "severity": 3}
    record = {
        "image": "a.png",
        "sha256": "0" * 64,
        "width": 8,
        "height": 8,
        "status": "ok",
        "model": "demo",
        "prompts": "x@1",
        "anomalies": [
            {**anomaly, "box": [1, 1, 4, 4], "kind": "count"},
            {**anomaly, "box": [1, 1, 4, 4]},
            anomaly,
        ],
    }
    artifacts = uncanny.artifacts.load(write_lines(tmp_path / "annotations.jsonl", [record]))
    assert [region.category for region in artifacts.records[0].regions or ()] == ["semantics", None]
    assert artifacts.notes == {NO_BOX: 1, NO_KIND: 1}
    # An annotation has regions of its own: the parts that the model saw enlarged.
    record["regions"] = [{"number": 1, "box": [0, 0, 4, 4], "why": "finding", "objects": [], "scale": 2.0}]
    again = uncanny.artifacts.load(write_lines(tmp_path / "enlarged.jsonl", [record]))
    assert again.records[0].regions == artifacts.records[0].regions
    assert set(CATEGORY_OF_KIND) == set(KINDS)
    assert set(LEVELS) == set(ARTIFACT_CATEGORIES)


def test_masks_by_their_folders(tmp_path: Path) -> None:
    mask = np.zeros((8, 8), dtype=np.uint8)
    mask[1:3, 1:3] = mask[5:7, 5:7] = 255
    for name in ("textures", "Edges & Shapes", "more"):
        (tmp_path / name).mkdir()
        Image.fromarray(mask).save(tmp_path / name / "a.png")
    np.save(tmp_path / "b.npy", mask > 0)
    records = {record.image: record for record in loaded(tmp_path)}
    assert {region.category for region in records["a"].regions} == {"textures", "edges_shapes"}
    assert [region.category for region in records["more/a"].regions] == [None]
    assert records["b"].size is None
    truth = [image("b.png", polygon("color", [[1, 1], [2, 1], [2, 2], [1, 2]]))]
    scores = uncanny.artifacts.score(tmp_path, truth=truth)[tmp_path.name]
    # Two parts, of which one is the true one.
    assert scores.agnostic.regions == {"right": 1, "predicted": 2, "found": 1, "true": 1}
    assert scores.agnostic.pixel["iou"].value == 0.5
    assert scores.scopes["color"].pixel["iou"].value is None
    assert scores.scopes["color"].images == 0


def test_records_among_their_pictures_are_read_and_the_pictures_no_masks(tmp_path: Path) -> None:
    Image.new("RGB", (8, 6)).save(tmp_path / "a.png")
    (tmp_path / "truth.jsonl").write_text('{"image": "a.png", "source": "real", "regions": []}\n')
    found = load(tmp_path)
    assert [each.image for each in found.images] == ["a.png"]
    assert found.images[0].record.source == "real"
    assert not found.notes


def test_heat_maps_by_their_threshold(tmp_path: Path) -> None:
    heat = np.zeros((8, 8))
    heat[1:4, 1:4] = 0.5
    heat[1, 1] = 0.9
    np.save(tmp_path / "a.npy", heat)
    truth = [image("a.png", polygon())]
    options: dict[str, Any] = {"truth": truth, "heat_maps": True, "resamples": 0}
    half = uncanny.artifacts.score(tmp_path, **options)[tmp_path.name]
    most = uncanny.artifacts.score(tmp_path, heat_map_threshold=0.6, **options)[tmp_path.name]
    assert half.agnostic.pixel["iou"].value == 1
    assert most.agnostic.pixels == {"both": 1, "predicted": 1, "true": 9}
    wrong: Any
    for wrong in (0, 1.5, "half"):
        with pytest.raises(UsageError, match="heat_map_threshold"):
            uncanny.artifacts.load(tmp_path, heat_maps=True, heat_map_threshold=wrong)


def test_records_that_are_wrong_are_listed_with_their_lines(tmp_path: Path) -> None:
    lines = [
        image("a.png", box("hands"), box(corners=(1, 1, 1, 2)), {"category": "color"}),
        image("b.png", {**box(), "point": [1, 1]}, polygon(points=[[1, 1], [2, 2]])),
        {"image": "c.png", "score": 1.5, "source": "fake", "width": 0},
        {"regions": []},
        image("b.png"),
        image("d.png", box(confidence=2), {"category": "color", "point": [1e9, 2]}),
    ]
    file = write_lines(tmp_path / "artifacts.jsonl", lines)
    with file.open("a") as more:
        more.write("{broken\n")
    found = problems(file)
    one_of = "a region has one of polygon, box, point, circle, line, mask; this one has"
    for part in (
        "line 1, item 'a.png', field regions.0.category: Input should be 'textures'",
        "line 1, item 'a.png', field regions.1.box: a box is [x0, y0, x1, y1]",
        f"line 1, item 'a.png', field regions.2: {one_of} none",
        f"line 2, item 'b.png', field regions.0: {one_of} box and point",
        "line 2, item 'b.png', field regions.1.polygon",
        "line 3, item 'c.png', field score: Input should be less than or equal to 1, not 1.5",
        "line 3, item 'c.png', field source",
        "line 3, item 'c.png', field width",
        "line 4, field image: is missing",
        "line 6, item 'd.png', field regions.0.confidence",
        "line 6, item 'd.png', field regions.1.point",
        "line 7: not valid JSON",
    ):
        assert any(each.startswith(part) for each in found), part


def test_an_image_twice_is_named_whatever_else_is_wrong_with_it(tmp_path: Path) -> None:
    wrong = image("a.png") | {"score": 2}
    file = write_lines(tmp_path / "a.jsonl", [wrong, image("b.png"), image("b.png") | {"width": 0}, wrong])
    found = [each for each in problems(file) if "was there before" in each]
    assert [each.split(", at")[0] for each in found] == [
        "line 3, item 'b.png', field image: the image was there before",
        "line 4, item 'a.png', field image: the image was there before",
    ]


def test_an_image_twice_and_files_that_hold_nothing(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "twice.jsonl", [image("a.png"), image("a.png")])
    assert "line 2, item 'a.png', field image: the image was there before, at line 1" in problems(file)[0]
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "number.json").write_text("3")
    (tmp_path / "folder").mkdir()
    (tmp_path / "none.json").write_text("[]")
    for name, words in (
        ("empty.jsonl", "is empty"),
        ("number.json", "contains 3"),
        ("folder", "neither records nor masks"),
        ("none.json", "contains no image"),
        ("missing", "does not exist"),
    ):
        with pytest.raises(UsageError, match=words):
            uncanny.artifacts.load(tmp_path / name)
    wrong: Any
    for wrong in (3, {"image": "a.png"}, b"x"):
        with pytest.raises(UsageError, match="path or records"):
            uncanny.artifacts.load(wrong)


@pytest.mark.parametrize(
    ("spelling", "category"),
    [
        ("Edges & Shapes", "edges_shapes"),
        ("edges-and-shapes", "edges_shapes"),
        ("COLOUR", "color"),
        ("common sense", "commonsense"),
        ("Texture", "textures"),
        ("hands", None),
        ("", None),
    ],
)
def test_categories_as_they_are_spelt_elsewhere(spelling: str, category: str | None) -> None:
    assert read_category(spelling) == category


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
SHAPES = st.fixed_dictionaries(
    {"label": st.sampled_from(["color", "hands"]) | JSON, "points": JSON, "shape_type": JSON}
)


@given(st.lists(SHAPES | JSON, max_size=3), JSON, JSON)
def test_any_labelme_is_read_or_said_to_be_wrong(shapes: list[Any], path: Any, flags: Any) -> None:
    found: list[Any] = []
    document = {"shapes": shapes, "imagePath": path, "imageWidth": 8, "imageHeight": 8, "flags": flags}
    record = of_labelme(document, Path("a.json"), found, Counter())
    assert (record is None) == bool(found)


@given(
    st.lists(
        st.fixed_dictionaries({"id": JSON, "file_name": JSON, "width": JSON, "height": JSON}) | JSON,
        max_size=2,
    ),
    st.lists(
        st.fixed_dictionaries(
            {"image_id": JSON, "category_id": st.just(1), "segmentation": JSON, "bbox": JSON}
        )
        | JSON,
        max_size=3,
    )
    | JSON,
    st.just([{"id": 1, "name": "color"}]) | JSON,
)
def test_any_coco_is_read_or_said_to_be_wrong(images: Any, annotations: Any, categories: Any) -> None:
    found: list[Any] = []
    document = {"images": images, "annotations": annotations, "categories": categories}
    records = of_coco(document, found, Counter())
    assert len(records) + len(found) >= len(images)
