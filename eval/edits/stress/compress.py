"""Compressed copies of images, for detectors to be run on: JPEG and WebP at the qualities of SAGI's test.

A copy lies at `DIR/jpeg-85/NAME.jpg`, with the image's own path in place of NAME: predictions on it are
joined with the metadata of its image by the end of that path. Source: SAGI, supplementary, section 3.2
(qualities 85, 70, 50); the encoder is not named there, here it is Pillow's with its defaults, 4:2:0 for
JPEG.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

from uncanny.demo.scenes import bundled_set, pictures
from uncanny.errors import ImageError, ItemsError, Problem, UsageError
from uncanny.eval.common.tables.table import Table, TableResult
from uncanny.eval.edits.columns import failures
from uncanny.eval.edits.parameters import CODECS, Codec, CompressParameters
from uncanny.images.discover import SkippedInputs, discover
from uncanny.images.prepared import read_rgb
from uncanny.parameters import check_records, takes
from uncanny.records.jsonl import write_atomically
from uncanny.records.run_folder import check_no_links
from uncanny.runs.display import counting_to
from uncanny.wording import counted, display_path, shown

_SUFFIXES: Final = {"jpeg": ".jpg", "webp": ".webp"}
_THREADS: Final = 2
_CONDITION: Final = re.compile(rf"({'|'.join(CODECS)})-([1-9]\d?|100)", re.ASCII)


class Condition(NamedTuple):
    """A codec at a quality from 1 to 100; its name is that of the folder of its copies."""

    codec: Codec
    quality: int

    @property
    def name(self) -> str:
        return f"{self.codec}-{self.quality}"


@dataclass(frozen=True, slots=True, repr=False)
class CompressResult(TableResult):
    """What was written: folders by condition, with the number of copies and their bytes.

    `images` were read, of `bytes` together. `failed` says by image why there is no copy of it, `existing` how
    many copies were there before and stayed. `skipped` is what else lay in the folders.
    """

    out: Path
    images: int
    bytes: int
    written: dict[str, tuple[int, int]]
    existing: int
    failed: dict[str, str]
    skipped: SkippedInputs

    def to_json(self) -> dict[str, Any]:
        return {
            "out": str(self.out),
            "images": self.images,
            "bytes": self.bytes,
            "conditions": {
                name: {"folder": str(self.out / name), "written": n, "bytes": size}
                for name, (n, size) in self.written.items()
            },
            "existing": self.existing,
            "failed": self.failed,
            "skipped": dict(self.skipped.counts),
        }

    def tables(self) -> tuple[Table, ...]:
        """A line a condition."""
        rows = tuple(
            (
                name,
                f"{n:,}",
                f"{size / 1e6:.1f}",
                f"{100 * size / self.bytes:.0f} %" if self.bytes and n else "–",
            )
            for name, (n, size) in self.written.items()
        )
        notes = [f"{counted(self.images, 'image')} of {self.bytes / 1e6:.1f} MB, copies in {self.out}."]
        if self.existing:
            notes.append(f"{self.existing:,} copies were there already and stayed.")
        notes += failures([f"No copy of {image}: {why}." for image, why in self.failed.items()])
        return (Table(("", "written", "MB", "of the originals"), rows, notes=tuple(notes)),)


@takes(CompressParameters)
def compress(
    images: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], parameters: CompressParameters
) -> CompressResult:
    """Write compressed copies of images, one for each condition, as `uncanny edits compress` does.

    `images` are folders or files, one or several, or the word `scenes` for the bundled ones. Copies are
    upright and RGB, without EXIF and profile, on white where the image is transparent; of an animation the
    first frame. Existing copies are kept. An image that cannot be read is skipped and reported.

    Raises UsageError for images that are not there, and a condition that is none, ItemsError where two images
    would have the same copy.

    >>> result = uncanny.edits.compress(images, out=out / "copies", conditions=["webp-50"])
    >>> result.written["webp-50"][0]
    1
    """
    wanted = tuple(dict.fromkeys(map(condition_of, parameters.conditions)))
    target = Path(parameters.out)
    named, skipped = _images(images, target)
    _check_names(named)
    check_no_links(target)
    written = {condition.name: (0, 0) for condition in wanted}
    failed: dict[str, str] = {}
    existing = total = 0
    with (
        counting_to(len(named), "images", enabled=parameters.progress) as count,
        ThreadPoolExecutor(_THREADS) as pool,
    ):
        for (name, _), result in zip(
            named, pool.map(lambda each: _copies(each[0], each[1], target, wanted), named), strict=True
        ):
            if isinstance(result, str):
                failed[name] = result
            else:
                total += result.bytes
                existing += len(wanted) - len(result.written)
                for condition, size in result.written.items():
                    n, before = written[condition]
                    written[condition] = (n + 1, before + size)
            count(name)
            if parameters.on_image is not None:
                parameters.on_image(name)
    return CompressResult(target, len(named) - len(failed), total, written, existing, failed, skipped)


def condition_of(name: str) -> Condition:
    """The condition of this name, such as jpeg-85. Raises UsageError."""
    text, _, quality = str(name).partition("-")
    codec = next((each for each in CODECS if each == text), None)
    if codec is None or not _CONDITION.fullmatch(str(name)):
        raise UsageError(
            f"{shown(name)} is not a condition",
            remedy="Write jpeg-85 or webp-50, with a quality from 1 to 100.",
        )
    return Condition(codec, int(quality))


def _images(
    images: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], out: Path
) -> tuple[list[tuple[str, Path]], SkippedInputs]:
    """Files with their names: the path within the folder that was given, of a file its own name.

    Copies that an earlier call has written to `out` within such a folder are not copied again.
    """
    if isinstance(images, str | os.PathLike):
        given: Sequence[str | os.PathLike[str]] = [images]
    else:
        given = check_records(images, (str, os.PathLike), what="Images are folders or files")
    if not given:
        raise UsageError("No images are given", remedy="Give a folder or image files.")
    named: list[tuple[str, Path]] = []
    skipped = SkippedInputs()
    for each in given:
        path = Path(each)
        if (bundled := bundled_set(each)) is not None:
            named += [(scene.image_path.name, scene.image_path) for scene in pictures(bundled)]
            continue
        found = discover([path])
        written_within = path.is_dir() and out.resolve().is_relative_to(path.resolve())
        skipped += found.skipped
        named += [
            (display_path(file.relative_to(path)) if path.is_dir() else file.name, file)
            for file in found.files
            if not (written_within and _is_copy(file, out))
        ]
    if not named:
        raise UsageError(f"There are no images in {', '.join(map(str, given))}")
    return named, skipped


def _is_copy(file: Path, out: Path) -> bool:
    try:
        # The file itself may be a link that leads back to itself, which has no end to be found.
        folder, *rest = (file.parent.resolve() / file.name).relative_to(out.resolve()).parts
    except ValueError:
        return False
    return bool(rest) and _CONDITION.fullmatch(folder) is not None


def _check_names(named: Sequence[tuple[str, Path]]) -> None:
    problems = []
    first: dict[str, str] = {}
    for name, _ in named:
        before = first.setdefault(str(Path(name).with_suffix("")), name)
        if before is not name:
            problems.append(Problem(name, None, f"would have the same copy as {before}; rename one of them"))
    if problems:
        raise ItemsError("the images", problems, remedy="Nothing was written.")


class _Written(NamedTuple):
    bytes: int
    written: dict[str, int]


def _copies(name: str, path: Path, out: Path, conditions: Sequence[Condition]) -> _Written | str:
    """The copies of one image that are not there yet, or why there can be none."""
    targets = {
        condition: out / condition.name / Path(name).with_suffix(_SUFFIXES[condition.codec])
        for condition in conditions
    }
    missing = {condition: target for condition, target in targets.items() if not target.exists()}
    written: dict[str, int] = {}
    try:
        size = path.stat().st_size
        if not missing:
            return _Written(size, written)
        image, _ = read_rgb(path)
        for condition, target in missing.items():
            try:
                encoded = BytesIO()
                image.save(encoded, condition.codec.upper(), quality=condition.quality)
            except (OSError, ValueError) as error:  # WebP ends at 16,383 pixels, JPEG at 65,500
                return f"{condition.name} cannot hold {image.width:,} × {image.height:,} pixels: {error}"
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, [encoded.getvalue()])
            written[condition.name] = len(encoded.getvalue())
    except ImageError as error:
        return error.message
    except OSError as error:
        return str(error.strerror or error)
    return _Written(size, written)
