"""Predictions of a detector that is asked here: about all images of the metadata, as given and compressed.

They are written to files that `stress` then reads as it reads any others, a line an image.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PIL import Image

from uncanny.detectors.parameters import DetectorParameters
from uncanny.detectors.provider import HEAT_MAPS, write_heat_map
from uncanny.errors import ImageError, UsageError
from uncanny.eval.edits.parameters import StressParameters
from uncanny.eval.edits.stress.compress import Condition, condition_of
from uncanny.eval.edits.stress.data import AS_GIVEN
from uncanny.files import dump_json
from uncanny.images.prepared import read_rgb
from uncanny.records.run_folder import check_no_links
from uncanny.runs.display import counting_to
from uncanny.wording import counted, option

if TYPE_CHECKING:
    from uncanny.detectors.detector import Detector
    from uncanny.eval.edits.stress.data import Edits

# Which weights made a line: those of others are made again.
_WEIGHTS: Final = "detector"


def ask_detectors(edits: Edits, parameters: StressParameters) -> dict[str, dict[str, Path]]:
    """Files of predictions, by detector and condition, in a folder of each detector in `detections`.

    A file that an earlier call has begun is completed. Images that cannot be read have no line. Raises
    UsageError for a folder without a detector, a condition that is none, and where no image is found.
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
    files: dict[str, dict[str, Path]] = {}
    for place in parameters.detector:
        from uncanny.detectors.detector import open_detector

        detector = open_detector(Path(place), parameters.part(DetectorParameters))
        name = Path(place).resolve().name
        if name in files:
            raise UsageError(f"Two detectors are called {name}", remedy="Rename the folder of one of them.")
        folder = out / name
        check_no_links(folder)
        folder.mkdir(parents=True, exist_ok=True)
        files[name] = {}
        for condition in (None, *conditions):
            label = AS_GIVEN if condition is None else condition.name
            path = files[name][label] = folder / f"{label.replace(' ', '-')}.jsonl"
            _complete(path, there, detector, condition, parameters)
    return files


def _complete(
    path: Path,
    images: Mapping[str, Path],
    detector: Detector,
    condition: Condition | None,
    parameters: StressParameters,
) -> None:
    weights = _identity(detector)
    kept = [line for line in _lines(path) if line.get(_WEIGHTS) == weights and line.get("image") in images]
    done = {line["image"] for line in kept}
    # Those of other weights go; a line that a kill cut off goes with them.
    path.write_bytes(b"".join(dump_json(line) + b"\n" for line in kept))
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
            judged = detector.judge(list(pixels.values()))
            for name, judgement in zip(pixels, judged, strict=True):
                row: dict[str, Any] = {
                    "image": name,
                    "source": judgement.source,
                    "score": judgement.score,
                    _WEIGHTS: weights,
                }
                if judgement.heat is not None:
                    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
                    row["heat_map"] = f"{HEAT_MAPS}/{path.stem}/{digest}.png"
                    write_heat_map(path.parent / row["heat_map"], judgement.heat)
                file.write(dump_json(row) + b"\n")
            for name in names:
                count(name)


def _identity(detector: Detector) -> str:
    """Of weights, labels, and how maps are made, in a word."""
    return hashlib.sha256(dump_json(dict(detector.described))).hexdigest()[:16]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    import orjson

    content = path.read_bytes() if path.is_file() else b""
    for line in content.splitlines(keepends=True):
        if line.endswith(b"\n"):
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(row, dict):
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
