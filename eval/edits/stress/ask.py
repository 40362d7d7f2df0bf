"""Predictions of a detector that is asked here: about all images of the metadata, as given and compressed.

They are written to files that `stress` then reads as it reads any others, a line an image.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from PIL import Image

from uncanny.detectors.loading import name_of
from uncanny.detectors.parameters import DetectorParameters
from uncanny.detectors.provider import HEAT_MAPS, write_heat_map
from uncanny.errors import ImageError, UsageError
from uncanny.eval.edits.parameters import StressParameters
from uncanny.eval.edits.stress.compress import Condition, condition_of
from uncanny.eval.edits.stress.data import AS_GIVEN
from uncanny.files import dump_json
from uncanny.images.prepared import read_rgb
from uncanny.records.jsonl import write_atomically
from uncanny.records.run_folder import RunFolder, check_no_links
from uncanny.runs.display import counting_to
from uncanny.wording import counted, option

if TYPE_CHECKING:
    from uncanny.detectors.detector import Detector
    from uncanny.eval.edits.stress.data import Edits

# Keys of a line: which detector made it, and of which content of its image.
_DETECTOR: Final = "detector"
_SHA256: Final = "sha256"
# As many hex digits of a digest tell detectors apart in the names of folders.
_DIGITS: Final = 16


class Asked(NamedTuple):
    """What a detector said of the images of the metadata under a condition, and the folder of its paths."""

    folder: Path
    rows: list[dict[str, Any]]


def detector_names(places: Sequence[str | PathLike[str]], taken: Collection[str]) -> list[str]:
    """Names of detectors, which are those of their folders. Raises UsageError where two are called alike.

    `taken` are names of predictions that are there already.
    """
    names = [name_of(Path(place)) for place in places]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise UsageError(f"Two detectors are called {name}", remedy="Rename the folder of one of them.")
        if name in taken:
            raise UsageError(
                f"Predictions and a detector to ask are both called {name}",
                remedy="Give the predictions another name, as in NAME=FILE.",
            )
    return names


def ask_detectors(edits: Edits, parameters: StressParameters) -> dict[str, dict[str, Asked]]:
    """Predictions by detector and condition, kept in a folder of each detector in `detections`.

    A file that an earlier call has begun is completed: a line counts for the same detector, asked the same
    way, and the same content of its image. Images that cannot be read have no line. Raises UsageError for a
    folder without a detector, a condition that is none, and where no image is found, and RunLockedError where
    another call asks the same detector there.
    """
    if parameters.detections is None:
        raise UsageError(
            f"{option('detector')} needs a folder for its predictions",
            remedy=f"Pass one with {option('detections')}.",
        )
    out = Path(parameters.detections)
    conditions = [condition_of(each) for each in dict.fromkeys(parameters.conditions)]
    images = {name: edits.root / name for name in edits.images}
    there = {name: path for name, path in images.items() if path.is_file()}
    if not there:
        raise UsageError(
            f"None of the {counted(len(images), 'image')} can be found in {edits.root}",
            remedy=f"Name the folder that image paths start in with {option('root')}.",
        )
    digests = {name: _digest(path) for name, path in there.items()}
    asked: dict[str, dict[str, Asked]] = {}
    for place, name in zip(parameters.detector, detector_names(parameters.detector, ()), strict=True):
        from uncanny.detectors.detector import open_detector

        detector = open_detector(Path(place), parameters.part(DetectorParameters))
        detector.check_classifier()
        identity = hashlib.sha256(dump_json(detector.plan)).hexdigest()[:_DIGITS]
        folder = out / name / identity
        check_no_links(folder)
        asked[name] = {}
        # Another call would replace the files that this one adds to.
        with RunFolder(folder).locked():
            for condition in (None, *conditions):
                label = AS_GIVEN if condition is None else condition.name
                path = folder / f"{label.replace(' ', '-')}.jsonl"
                _complete(path, there, digests, detector, identity, condition, parameters)
                rows = {row["image"]: row for row in _lines(path) if row["image"] in there}
                asked[name][label] = Asked(folder, list(rows.values()))
    return asked


def _complete(
    path: Path,
    images: Mapping[str, Path],
    digests: Mapping[str, str | None],
    detector: Detector,
    identity: str,
    condition: Condition | None,
    parameters: StressParameters,
) -> None:
    before = path.read_bytes() if path.is_file() else b""
    # Images of other metadata stay. Those whose content was replaced go, and a line that a kill cut off.
    kept = [row for row in _lines(path) if digests.get(row["image"], row[_SHA256]) == row[_SHA256]]
    whole = b"".join(dump_json(row) + b"\n" for row in kept)
    if whole != before:
        write_atomically(path, [whole])
    done = {row["image"] for row in kept}
    left = [name for name in images if name not in done]
    size = parameters.batch_size
    with (
        path.open("ab") as file,
        counting_to(len(left), "images", enabled=parameters.progress) as count,
    ):
        for first in range(0, len(left), size):
            names = left[first : first + size]
            pixels = {
                name: image for name in names if (image := _pixels(images[name], condition)) is not None
            }
            judged = detector.judge_each(list(pixels.values()))
            for name, judgement in zip(pixels, judged, strict=True):
                if isinstance(judgement, ImageError):
                    continue
                if isinstance(judgement, Exception):
                    raise judgement
                row: dict[str, Any] = {
                    "image": name,
                    "source": judgement.source,
                    "score": judgement.score,
                    _SHA256: digests[name],
                    _DETECTOR: identity,
                }
                if judgement.heat is not None:
                    row["heat_map"] = f"{HEAT_MAPS}/{path.stem}/{digests[name]}.png"
                    write_heat_map(path.parent / row["heat_map"], judgement.heat)
                file.write(dump_json(row) + b"\n")
            for name in names:
                count(name)


def _digest(path: Path) -> str | None:
    """SHA-256 of a file, in hex; None where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a file that a call of `ask_detectors` has written."""
    import orjson

    content = path.read_bytes() if path.is_file() else b""
    for line in content.splitlines(keepends=True):
        if line.endswith(b"\n"):
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(row, dict) and isinstance(row.get("image"), str) and _SHA256 in row:
                yield row


def _pixels(path: Path, condition: Condition | None) -> Image.Image | None:
    """An image as its compressed copy would be read; None where it cannot be."""
    try:
        image, _ = read_rgb(path)
        if condition is None:
            return image
        encoded = BytesIO()
        image.save(encoded, condition.codec.upper(), quality=condition.quality)
        return Image.open(encoded).convert("RGB")
    except (ImageError, OSError, ValueError):
        return None
