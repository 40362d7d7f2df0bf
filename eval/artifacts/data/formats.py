"""Other people's formats as records: labelme, COCO instances, folders of masks, annotations with boxes.

What a format cannot say stays unsaid: a mask by its file name alone has no category and its image no source.
A region has the pixels that its own tool gives it: labelme's those of `labelme.utils.shape_to_mask`, COCO's
those of pycocotools.
"""

from __future__ import annotations

import math
from base64 import b64decode
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from uncanny.errors import Problem, UncannyError, UsageError
from uncanny.eval.artifacts.data.records import (
    CATEGORY_OF_KIND,
    ArtifactImage,
    ArtifactRecord,
    Region,
    read_category,
)
from uncanny.eval.common.inputs.problems import of_validation
from uncanny.eval.common.pixels.crops import Crop, union
from uncanny.eval.common.pixels.masks import check_size, decode_mask, encode_rle
from uncanny.eval.common.pixels.shapes import POINT_RADIUS, coco_polygon_crop
from uncanny.schema import ARTIFACT_CATEGORIES, ArtifactCategory, Box, Kind, Record, Source, Status, Whole
from uncanny.wording import shown

NO_BOX: Final = "anomaly without a box: no place to score"
NO_KIND: Final = "anomaly without a kind: in category-agnostic figures only"
_CATEGORIES = ", ".join(ARTIFACT_CATEGORIES)
_DRAWN: Final = ("polygon", "rectangle", "oriented_rectangle", "circle", "point", "line", "linestrip", "mask")
_FLAGS: Final[Mapping[str, Source]] = {"real": "real", "generated": "generated", "fake": "generated"}
# What labelme and COCO keep of an image that is a key of ours, or no statement about the image.
_NOT_KEPT: Final = frozenset(
    {"version", "flags", "shapes", "imagePath", "imageData", "imageHeight", "imageWidth", "lineColor"}
    | {"fillColor", "id", "file_name", "regions", "image", "license", "coco_url", "flickr_url"}
)


class LocatedAnomaly(Record):
    """What of an anomaly says where and of which kind it is; other keys are kept and not looked at."""

    name: str | None = None
    phenomenon: str | None = None
    box: Box | None = None
    kind: Kind | None = None


class AnnotatedImage(Record):
    """What of an annotation is scored here."""

    image: str
    sha256: str | None = None
    width: Whole | None = None
    height: Whole | None = None
    status: Status = "ok"
    source: Source | None = None
    anomalies: tuple[LocatedAnomaly, ...] = ()


def of_annotation(record: AnnotatedImage, notes: Counter[str]) -> ArtifactRecord:
    """An annotation as a record: anomalies with a box, of the category that their kind stands for.

    `notes` counts those that have no box or no kind.
    """
    regions = []
    for anomaly in record.anomalies:
        if anomaly.box is None:
            notes[NO_BOX] += 1
            continue
        notes[NO_KIND] += anomaly.kind is None
        category = None if anomaly.kind is None else CATEGORY_OF_KIND[anomaly.kind]
        regions.append(Region(category=category, box=anomaly.box, note=anomaly.name or anomaly.phenomenon))
    return ArtifactRecord(
        image=record.image,
        sha256=record.sha256,
        width=record.width,
        height=record.height,
        status=record.status,
        source=record.source,
        regions=tuple(regions),
    )


def is_labelme(document: object) -> bool:
    return isinstance(document, dict) and isinstance(document.get("shapes"), list)


def of_labelme(
    document: Mapping[str, Any], file: Path, problems: list[Problem], notes: Counter[str]
) -> ArtifactRecord | None:
    """A labelme document as a record; None where it cannot be one. `file` is its path in the folder read.

    Labels are categories. The image is called as `imagePath` says, in the folder of the file. An image with
    artifacts is generated, unless a flag (`real`, `generated`, `fake`) or a key `source` says otherwise;
    `generator` is the key of this name, else the folder that the file is in. Other keys are kept.
    """
    name, before = str(file), len(problems)
    flags = document.get("flags")
    flagged = [word for word, is_set in flags.items() if is_set] if isinstance(flags, dict) else []
    source = next((_FLAGS[word.casefold()] for word in flagged if word.casefold() in _FLAGS), None)
    regions = [
        region
        for number, shape in enumerate(document["shapes"])
        if (region := _shape(shape, number, document, name, problems)) is not None
    ]
    path = document.get("imagePath")
    image = path.replace("\\", "/").rpartition("/")[2] if isinstance(path, str) and path else file.stem
    values = {
        **{key: value for key, value in document.items() if key not in _NOT_KEPT},
        "image": (file.parent / image).as_posix(),
        "width": document.get("imageWidth"),
        "height": document.get("imageHeight"),
        "source": document.get("source") or source or ("generated" if regions else None),
        "generator": document.get("generator") or (file.parts[0] if len(file.parts) > 1 else None),
        "regions": regions,
    }
    notes["image without shapes and without a source"] += values["source"] is None
    if len(problems) > before:
        return None
    return _record(values, name, problems)


def _shape(
    shape: object, number: int, document: Mapping[str, Any], name: str, problems: list[Problem]
) -> Region | None:
    field = f"shapes.{number}"
    if not isinstance(shape, dict):
        problems.append(Problem(name, field, f"must be an object, not {shown(shape)}"))
        return None
    category = _category(shape.get("label"), name, f"{field}.label", problems)
    if category is None:
        return None
    values: dict[str, Any] = {
        "category": category,
        "confidence": shape.get("confidence"),
        "note": shape.get("description") or None,
    }
    points, kind = shape.get("points"), shape.get("shape_type") or "polygon"
    try:
        if kind == "mask":
            size = document.get("imageWidth"), document.get("imageHeight")
            values["mask"] = _pasted(shape.get("mask"), points, size)
        else:
            values |= _geometry(kind, points)
    except (TypeError, ValueError, IndexError, OverflowError):
        problems.append(Problem(name, f"{field}.points", f"do not make a {shown(kind)}: {shown(points)}"))
        return None
    except KeyError:
        problems.append(
            Problem(name, f"{field}.shape_type", f"is {shown(kind)}; draw one of {', '.join(_DRAWN)}")
        )
        return None
    except UncannyError as error:
        problems.append(Problem(name, f"{field}.mask", error.message))
        return None
    return _region(values, name, field, problems)


def _category(
    label: object, item: str | None, field: str, problems: list[Problem]
) -> ArtifactCategory | None:
    category = read_category(label) if isinstance(label, str) else None
    if category is None:
        message = f"{shown(label)} is not a category; the categories are {_CATEGORIES}"
        problems.append(Problem(item, field, message))
    return category


def _region(values: object, item: str | None, field: str, problems: list[Problem]) -> Region | None:
    try:
        return Region.model_validate(values)
    except ValidationError as error:
        problems += [
            Problem(item, f"{field}.{each.field}", each.message)
            for each in of_validation(error, item=item, line=None)
        ]
        return None


def _geometry(kind: str, points: Any) -> dict[str, Any]:
    """Raises KeyError for a kind that is no region, ValueError and others for points that do not fit."""
    places = [(float(x), float(y)) for x, y in points]
    match kind:
        case "polygon":
            return {"polygon": places}
        case "oriented_rectangle":
            first, second, third, fourth = places
            return {"polygon": (first, second, third, fourth)}
        case "rectangle":
            (x0, y0), (x1, y1) = places
            left, right, top, bottom = min(x0, x1), max(x0, x1), min(y0, y1), max(y0, y1)
            return {"polygon": [(left, top), (right, top), (right, bottom), (left, bottom)]}
        case "circle":
            (x, y), (u, v) = places
            # Not `hypot`: the last digit is to be labelme's.
            return {"circle": (x, y, math.sqrt((x - u) ** 2 + (y - v) ** 2))}
        case "point":
            ((x, y),) = places
            return {"circle": (x, y, POINT_RADIUS)}
        case "line":
            start, end = places
            return {"line": (start, end)}
        case "linestrip":
            return {"line": places}
        case _:
            raise KeyError(kind)


def _pasted(mask: object, points: Any, size: tuple[Any, Any]) -> dict[str, Any]:
    """Run lengths of a labelme mask, a PNG in base64 between two pixels of the image, both included.

    Raises UsageError where it is none or does not fit, ValueError and others for points that are none.
    """
    (x0, y0), (x1, y1) = ((int(x), int(y)) for x, y in points)
    width, height = size
    if not all(isinstance(side, int) and side > 0 for side in size):
        raise UsageError("a mask needs imageWidth and imageHeight")
    if not (0 <= x0 <= x1 < width and 0 <= y0 <= y1 < height):
        raise UsageError(f"lies outside the image of {width} × {height} pixels")
    check_size(size, None, "its image")
    if not isinstance(mask, str):
        raise UsageError(f"must be a PNG in base64, not {shown(mask)}")
    try:
        data = b64decode(mask, validate=True)
    except ValueError as error:
        raise UsageError(f"is not base64: {error}") from error
    pixels = decode_mask(data, (x1 - x0 + 1, y1 - y0 + 1))
    return encode_rle(Crop(x0, y0, pixels).on((width, height)))


def is_coco(document: object) -> bool:
    return (
        isinstance(document, dict) and isinstance(document.get("images"), list) and "annotations" in document
    )


def of_coco(
    document: Mapping[str, Any], problems: list[Problem], notes: Counter[str]
) -> list[ArtifactRecord]:
    """COCO instances as records: every image, those without an instance too.

    A category is one of the seven by its name. Of an instance the segmentation counts, else its box. An
    instance of several polygons is one region. `score` of an instance is its confidence. Other keys of an
    image are kept, such as `source` and `generator`.
    """
    names = {_key(each, "id"): each.get("name") for each in _objects(document, "categories", problems)}
    images = {_key(each, "id"): each for each in _objects(document, "images", problems)}
    images.pop(None, None)
    _refuse_repeated(document, "images", problems)
    _refuse_repeated(document, "categories", problems)
    regions: defaultdict[object, list[Region]] = defaultdict(list)
    for number, instance in enumerate(_objects(document, "annotations", problems)):
        image = images.get(_key(instance, "image_id"))
        if image is None:
            problems.append(Problem(None, f"annotations.{number}.image_id", "is of no image of the file"))
            continue
        region = _instance(instance, image, names, f"annotations.{number}", problems)
        if region is not None:
            regions[_key(image, "id")].append(region)
    records = []
    for number, each in enumerate(_objects(document, "images", [])):
        if not isinstance(each.get("file_name"), str):
            problems.append(Problem(None, f"images.{number}.file_name", "is missing"))
            continue
        kept = {key: value for key, value in each.items() if key not in _NOT_KEPT}
        record = _record(
            {**kept, "image": each["file_name"], "regions": regions[_key(each, "id")]},
            each["file_name"],
            problems,
        )
        if record is not None:
            records.append(record)
    notes["image without instances"] += sum(not record.regions for record in records)
    return records


def _objects(document: Mapping[str, Any], name: str, problems: list[Problem]) -> Sequence[Mapping[str, Any]]:
    """The objects of a list; what else stands in it, or in its place, is a problem."""
    values = document.get(name)
    if not isinstance(values, list):
        problems.append(Problem(None, name, f"must be a list, not {shown(values)}"))
        return ()
    problems += [
        Problem(None, f"{name}.{number}", f"must be an object, not {shown(value)}")
        for number, value in enumerate(values)
        if not isinstance(value, dict)
    ]
    return [value for value in values if isinstance(value, dict)]


def _refuse_repeated(document: Mapping[str, Any], name: str, problems: list[Problem]) -> None:
    """An id that two have says of neither what belongs to it."""
    counts = Counter(_key(each, "id") for each in _objects(document, name, []))
    problems += [
        Problem(None, f"{name}.id", f"{shown(key)} is the id of {count:,} of them; give each its own")
        for key, count in counts.items()
        if key is not None and count > 1
    ]


def _key(value: Mapping[str, Any], name: str) -> int | str | None:
    """What others refer to it by; None for what nothing can refer to."""
    key = value.get(name)
    return key if isinstance(key, int | str) else None


def _instance(
    instance: Mapping[str, Any],
    image: Mapping[str, Any],
    names: Mapping[int | str | None, Any],
    field: str,
    problems: list[Problem],
) -> Region | None:
    item = image.get("file_name")
    item = item if isinstance(item, str) else None
    label = names.get(_key(instance, "category_id"))
    category = _category(label, item, f"{field}.category_id", problems)
    if category is None:
        return None
    values: dict[str, Any] = {"category": category}
    values["confidence"] = instance.get("confidence", instance.get("score"))
    try:
        values |= _segmentation(instance, image)
        return _region(values, item, field, problems)
    except (TypeError, ValueError, KeyError, IndexError, OverflowError):
        problems.append(Problem(item, field, "has neither a segmentation nor a bbox that can be read"))
    except UncannyError as error:
        problems.append(Problem(item, f"{field}.segmentation", error.message))
    return None


def _segmentation(instance: Mapping[str, Any], image: Mapping[str, Any]) -> dict[str, Any]:
    """Raises UsageError, and ValueError and others for what can be neither polygons nor a box."""
    drawn = instance.get("segmentation")
    if isinstance(drawn, dict):
        return {"mask": drawn}
    if drawn:
        polygons = [
            [(float(x), float(y)) for x, y in zip(each[::2], each[1::2], strict=True)] for each in drawn
        ]
        if len(polygons) == 1:
            return {"polygon": polygons[0], "rule": "coco"}
        if image.get("width") is None or image.get("height") is None:
            raise UsageError("has several polygons, which need the image's width and height to be one region")
        size = int(image["width"]), int(image["height"])
        parts = [Region(polygon=tuple(each), rule="coco").polygon or () for each in polygons]
        whole = union([coco_polygon_crop(each, size) for each in parts])
        return {"mask": encode_rle(whole.on(size))}
    x, y, width, height = map(float, instance["bbox"])
    return {"box": (x, y, x + width, y + height), "rule": "coco"}


def of_masks(files: Iterable[Path], folder: Path, heat: float | None) -> list[ArtifactImage]:
    """A record an image of masks in `folder`: `[CATEGORY/]…/NAME.png` is a mask of the image `…/NAME`.

    Each connected part of a mask is a region.
    """
    regions: defaultdict[str, list[Region]] = defaultdict(list)
    for file in files:
        parts: Sequence[str] = file.relative_to(folder).with_suffix("").parts
        category = read_category(parts[0]) if len(parts) > 1 else None
        image = "/".join(parts if category is None else parts[1:])
        regions[image].append(Region(category=category, mask=file.relative_to(folder).as_posix()))
    return [
        ArtifactImage(ArtifactRecord(image=image, regions=tuple(each)), folder, parts=True, heat=heat)
        for image, each in regions.items()
    ]


def _record(values: Mapping[str, Any], name: str, problems: list[Problem]) -> ArtifactRecord | None:
    try:
        return ArtifactRecord.model_validate(values)
    except ValidationError as error:
        problems += of_validation(error, item=name, line=None)
        return None
