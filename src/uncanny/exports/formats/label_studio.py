"""Label Studio: a task an image with the findings as predictions, and the labelling interface they are for.

A finding is a region: a rectangle, and texts, a number and the verdict, which belong to it by sharing its
`id`; its `score` is the confidence. Coordinates are percent of the picture. A finding without a box covers
the whole picture, since only regions can have texts of their own; it comes back without one unless somebody
has moved it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import orjson

from uncanny.errors import UsageError
from uncanny.eval.common.inputs.image_files import read_bytes
from uncanny.exports.data import ExportImage, clipped_box
from uncanny.exports.returned import (
    LABELS,
    NO_KIND,
    TEXTS,
    Returned,
    Size,
    box_around,
    known_object,
    returned_anomaly,
    text_or_none,
    turned,
    whole,
)
from uncanny.exports.writer import FormatWriter
from uncanny.files import dump_json
from uncanny.records.reviews import DECISIONS, ReviewedAnomaly, quadruple_sha256
from uncanny.settings import settings

FILE: Final = "tasks.json"
CONFIG: Final = "config.xml"
LOCAL_FILES: Final = "/data/local-files/?d="

_REGION: Final = re.compile(r"uncanny-([0-9]{1,10})-([0-9a-f]{64})-(box|image)")
_INTERFACE: Final = """\
<View>
  <Image name="image" value="$image" zoom="true" zoomControl="true"/>
  <RectangleLabels name="kind" toName="image">
{labels}
  </RectangleLabels>
  <Choices name="decision" toName="image" choice="single" showInline="true" perRegion="true">
{decisions}
  </Choices>
  <TextArea name="name" toName="image" perRegion="true" editable="true" maxSubmissions="1" rows="1"/>
  <TextArea name="phenomenon" toName="image" perRegion="true" editable="true" maxSubmissions="1" rows="3"/>
  <TextArea name="reasoning" toName="image" perRegion="true" editable="true" maxSubmissions="1" rows="3"/>
  <Number name="severity" toName="image" perRegion="true" min="0" max="100" step="1"/>
</View>
"""


def interface() -> str:
    """The labelling interface, to be pasted into the settings of a project."""
    return _INTERFACE.format(
        labels="\n".join(f'    <Label value="{name}"/>' for name in LABELS),
        decisions="\n".join(
            f'    <Choice value="{name}" hotkey="{key}"/>' for key, name in zip("123", DECISIONS, strict=True)
        ),
    )


class LabelStudioWriter(FormatWriter):
    """`tasks.json`, a task a line of a JSON list, and `config.xml`."""

    def start(self) -> None:
        (self.target / CONFIG).write_text(interface(), encoding="utf-8")
        self._file = self.open(self.target / FILE)
        self._tasks = 0

    def add(self, image: ExportImage) -> None:
        record = image.record
        if record.width is None or record.height is None:
            self.note("images of unknown size, left out")
            return
        results = [result for each in image.anomalies for result in self._region(each, image)]
        task = {
            "data": {"image": self._address(image), **image.identity()},
            "predictions": [{"model_version": record.model, "result": results}],
        }
        self._file.write((b",\n" if self._tasks else b"[\n") + dump_json(task))
        self._tasks += 1

    def _address(self, image: ExportImage) -> str:
        """As Label Studio's local storage has it, whose root is `/`, unless a prefix is asked for.

        Where inputs are confined to some folders, as a service's jobs are, it is for other machines: there
        the root is the folder of the copies, or of the images.
        """
        if self.job.parameters.image_prefix is not None:
            return self.reference(image)
        if settings().input_folders is not None:
            return LOCAL_FILES + quote(self.job.upload_path(image))
        return LOCAL_FILES + quote(self.job.picture(image).absolute().as_posix().lstrip("/"))

    def _region(self, finding: ReviewedAnomaly, image: ExportImage) -> Iterator[dict[str, Any]]:
        record, anomaly = image.record, finding.anomaly
        box = clipped_box(finding, record)
        if box is None:
            self.note("without a box, as the whole picture")
        width, height = float(record.width or 1), float(record.height or 1)
        x0, y0, x1, y1 = (0.0, 0.0, width, height) if box is None else box
        place = {
            "x": 100 * x0 / width,
            "y": 100 * y0 / height,
            "width": 100 * (x1 - x0) / width,
            "height": 100 * (y1 - y0) / height,
            "rotation": 0,
        }
        whole_or_box = "image" if box is None else "box"
        common: dict[str, Any] = {
            "id": f"uncanny-{finding.index}-{quadruple_sha256(anomaly)}-{whole_or_box}",
            "to_name": "image",
            "original_width": record.width,
            "original_height": record.height,
            "image_rotation": 0,
        }

        def control(name: str, kind: str, key: str, value: object) -> dict[str, Any]:
            return {**common, "from_name": name, "type": kind, "value": {**place, key: value}}

        if anomaly.confidence is not None:
            common["score"] = anomaly.confidence

        yield control("kind", "rectanglelabels", "rectanglelabels", [anomaly.kind or NO_KIND])
        for name in TEXTS:
            yield control(name, "textarea", "text", [getattr(anomaly, name)])
        if anomaly.severity_rated:
            yield control("severity", "number", "number", anomaly.severity)
        if finding.decision is not None:
            yield control("decision", "choices", "choices", [finding.decision])

    def finish(self) -> None:
        self._file.write(b"\n]\n" if self._tasks else b"[]\n")


def read(file: Path) -> Iterator[Returned]:
    """What people submitted, of a JSON export of Label Studio: a finding for each region, and a rejection for
    each predicted region that is not in a submitted annotation any more.

    Annotations that were skipped do not count. A rectangle that was turned comes back as what is around it.
    Raises UsageError, OSError.
    """
    try:
        tasks = orjson.loads(read_bytes(file))
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{file} is not valid JSON: {error}", remedy="Export it again as JSON.") from error
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise UsageError(f"{file} is not a list of tasks", remedy="Export it from Label Studio as JSON.")
    for number, task in enumerate(tasks):
        yield from _of_task(task, f"task {task.get('id', number)}", file)


def _of_task(task: Mapping[str, Any], where: str, file: Path) -> Iterator[Returned]:
    data = known_object(task.get("data"))
    name = data.get("run_image") or data.get("image")
    if not isinstance(name, str):
        raise UsageError(f"{file}, {where}: names no image", remedy="Export it as JSON, not as JSON-MIN.")
    picture = name, text_or_none(data.get("sha256"))
    predictions = _objects(task.get("predictions"))
    for annotation in _objects(task.get("annotations", task.get("completions"))):
        if annotation.get("was_cancelled"):
            continue
        regions: dict[str, list[dict[str, Any]]] = {}
        for result in _objects(annotation.get("result")):
            regions.setdefault(str(result.get("id")), []).append(result)
        known: dict[str, Any] = {"reviewer": _reviewer(annotation), "at": _time(annotation)}
        for region, results in regions.items():
            yield _of_region(region, results, picture, f"{where}, region {region}", file, known)
        # Exports of a project may leave out the predictions and have the one that was started from here.
        started_from = [*predictions, *_objects([annotation.get("prediction")])]
        predicted = {str(each.get("id")) for one in started_from for each in _objects(one.get("result"))}
        for region in sorted(predicted - regions.keys()):
            if own := _REGION.fullmatch(region):
                place = f"{where}, region {region}"
                yield Returned(*picture, (None, None), place, int(own[1]), own[2], "reject", **known)


def _of_region(
    region: str,
    results: list[dict[str, Any]],
    image: tuple[str, str | None],
    where: str,
    file: Path,
    known: Mapping[str, Any],
) -> Returned:
    fields: dict[str, Any] = {}
    decision = None
    own = _REGION.fullmatch(region)
    size: Size = (None, None)
    for result in results:
        value = result.get("value")
        if not isinstance(value, dict):
            continue
        size = (whole(result.get("original_width")), whole(result.get("original_height")))
        match result.get("from_name"):
            case "kind":
                labels = value.get("rectanglelabels")
                fields["kind"] = labels[0] if isinstance(labels, list) and labels else None
                fields["box"] = _box(value, size, f"{file}, {where}")
                if own is not None and own[3] == "image" and fields["box"] == (0, 0, *size):
                    del fields["box"]
            case "decision":
                choices = value.get("choices")
                decision = choices[0] if isinstance(choices, list) and choices else None
            case "severity":
                number = value.get("number")
                fields["severity"] = int(number) if isinstance(number, float) and number % 1 == 0 else number
            case str(name) if name in TEXTS:
                text = value.get("text")
                fields[name] = "\n".join(map(str, text)) if isinstance(text, list) else text
    index, text = (None, None) if own is None else (int(own[1]), own[2])
    return Returned(*image, size, where, index, text, decision, returned_anomaly(fields), **known)


def _box(value: Mapping[str, Any], size: Size, where: str) -> tuple[int, int, int, int]:
    """From percent to pixels; a rectangle turns around its upper left corner, clockwise."""
    try:
        width, height = float(size[0] or ""), float(size[1] or "")
        x, y = float(value["x"]) * width / 100, float(value["y"]) * height / 100
        w, h = float(value["width"]) * width / 100, float(value["height"]) * height / 100
        corners = [(x, y), (x + w, y), (x, y + h), (x + w, y + h)]
        corners = turned(corners, float(value.get("rotation") or 0), (x, y))
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{where}: has no rectangle in percent", remedy="Export it as JSON.") from error
    return box_around(corners, size, where)


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _reviewer(annotation: Mapping[str, Any]) -> str | None:
    by = annotation.get("completed_by")
    if isinstance(by, dict):
        by = by.get("email") or by.get("id")
    return None if by is None else f"label-studio {by}"


def _time(annotation: Mapping[str, Any]) -> datetime | None:
    for key in ("updated_at", "created_at"):
        try:
            at = datetime.fromisoformat(str(annotation[key]))
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        except (KeyError, ValueError, OverflowError):
            continue
    return None
