"""Regions from masks that are given: files with the names of the images, or COCO instances."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from uncanny.errors import RunMismatchError, UsageError
from uncanny.eval.common.pixels.crops import Mask, crop
from uncanny.eval.common.pixels.masks import components, decode_rle, read_mask
from uncanny.eval.common.pixels.shapes import coco_box_crop, coco_polygon_crop
from uncanny.eval.pairs.data import Hint, Original
from uncanny.eval.pairs.make.regions import Region
from uncanny.files import dump_json, read_json
from uncanny.files.digests import digest
from uncanny.images.discover import IMAGE_SUFFIXES
from uncanny.records.run_folder import RunFolder
from uncanny.wording import another_run, counted, shown

_MASKS: Final = frozenset({*IMAGE_SUFFIXES, ".npy"})
_NAMELESS: Final = "the masked area"


class GivenMasks:
    """Masks by the name of their image.

    In a folder, the masks of `cat.jpg` are `cat.png` (any image file, or `.npy`), files in the folder `cat`,
    and `cat.NAME.png`, where NAME says what is there. Names may have folders before them, as the images do. A
    JSON file has COCO instances, with polygons, run lengths or boxes; the category is the name.
    """

    def __init__(self, place: Path) -> None:
        """Raises UsageError for a place that holds no masks."""
        self._place = place
        self._files: dict[str, list[tuple[str, Path]]] = {}
        self._instances: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
        if place.is_dir():
            self._read_folder()
        elif place.is_file():
            self._read_coco(read_json(place, remedy="Pass a folder of masks, or a file of COCO instances."))
        else:
            raise UsageError(f"{place} does not exist", remedy="Pass a folder of masks, or a COCO file.")
        if not self._files and not self._instances:
            raise UsageError(f"{place} contains no masks", remedy="Give masks the names of their images.")

    def regions(self, image: Path, size: tuple[int, int], number: int) -> list[Region]:
        """At most `number` regions of an image of this width and height, in the order of files or instances.

        Raises UsageError for a mask that cannot be read, or is of another size.
        """
        found: list[Region] = []
        for name, file in self._of(self._files, image.with_suffix("")):
            found += _region(read_mask(file, size), name)
        for name, instance in self._of(self._instances, image):
            found += _region(_drawn(instance, size), name)
        return found[:number]

    def digest(self, image: Path) -> str | None:
        """SHA-256, in hex, over the masks of an image and what they are of; None where it has none.

        Raises UsageError for a mask that cannot be read.
        """
        files = self._of(self._files, image.with_suffix(""))
        given = [(name, digest(file)) for name, file in files] + self._of(self._instances, image)
        return hashlib.sha256(dump_json(given)).hexdigest() if given else None

    def check_same(self, folder: RunFolder, records: Iterable[Original]) -> None:
        """Raises RunMismatchError where an image of the run has other masks than its record was made with."""
        changed = [
            each.image
            for each in records
            # A copy of an image has the candidates of the first one.
            if each.status in ("ok", "partial")
            and self.digest(Path((each.model_extra or {}).get("duplicate_of", each.image)))
            != each.masks_sha256
        ]
        if changed:
            more = f" and {counted(len(changed) - 1, 'more image')}" if changed[1:] else ""
            raise RunMismatchError(
                f"{folder.path} was made with other masks of {shown(changed[0])}{more}",
                remedy=f"Restore them to resume it, or {another_run()}.",
            )

    @staticmethod
    def _of(masks: Mapping[str, list[Any]], image: Path) -> list[Any]:
        """Those of the longest name that ends the path of the image."""
        parts = image.as_posix().split("/")
        names = ("/".join(parts[at:]) for at in range(len(parts)))
        return next((masks[name] for name in names if name in masks), [])

    def _read_folder(self) -> None:
        for file in sorted(self._place.rglob("*")):
            if file.suffix.lower() not in _MASKS or not file.is_file():
                continue
            name = file.relative_to(self._place).with_suffix("").as_posix()
            self._files.setdefault(name, []).append((_NAMELESS, file))
            folder, _, last = name.rpartition("/")
            if folder:
                self._files.setdefault(folder, []).append((_words(last), file))
            stem, dot, label = last.partition(".")
            if dot:
                whole = f"{folder}/{stem}" if folder else stem
                self._files.setdefault(whole, []).append((_words(label), file))

    def _read_coco(self, document: Any) -> None:
        if not isinstance(document, dict) or not isinstance(document.get("images"), list):
            raise UsageError(
                f"{self._place} has no COCO instances", remedy="It needs `images` and `annotations`."
            )
        names, files = _by_id(document, "categories", "name"), _by_id(document, "images", "file_name")
        for instance in _records(document, "annotations"):
            file = files.get(_key(instance, "image_id"))
            if isinstance(file, str):
                name = names.get(_key(instance, "category_id"))
                label = f"the {name}" if isinstance(name, str) and name else _NAMELESS
                self._instances.setdefault(file, []).append((label, instance))


def _records(document: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    listed = document.get(name)
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _by_id(document: Mapping[str, Any], name: str, value: str) -> dict[str | int | None, Any]:
    records = _records(document, name)
    return {key: each.get(value) for each in records if (key := _key(each, "id")) is not None}


def _key(record: Mapping[str, Any], name: str) -> str | int | None:
    key = record.get(name)
    return key if isinstance(key, str | int) else None


def _words(name: str) -> str:
    """A part of a file's name as words; a number is none."""
    words = name.replace("_", " ").replace("-", " ").strip()
    return f"the {words}" if words and not words.isdecimal() else _NAMELESS


def _region(mask: Mask, name: str) -> list[Region]:
    if not mask.any():
        return []
    labels, number = components(mask)
    sizes = np.bincount(labels.ravel())[1 : number + 1]
    rows, columns = np.nonzero(labels == int(np.argmax(sizes)) + 1)
    middle = len(rows) // 2
    point = (int(columns[middle]), int(rows[middle]))
    return [Region(Hint(source="mask", name=name, box=crop(mask).box, points=(point,)), mask)]


def _drawn(instance: Mapping[str, Any], size: tuple[int, int]) -> Mask:
    """Raises UsageError for a segmentation that cannot be drawn."""
    outline = instance.get("segmentation")
    mask = np.zeros((size[1], size[0]), dtype=np.bool_)
    try:
        if isinstance(outline, Mapping):
            return decode_rle(outline, size)
        if isinstance(outline, list) and outline:
            for ring in outline:
                mask |= coco_polygon_crop(list(zip(ring[::2], ring[1::2], strict=True)), size).on(size)
        else:
            x, y, width, height = instance["bbox"]
            mask |= coco_box_crop((x, y, x + width, y + height), size).on(size)
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise UsageError(f"the segmentation of instance {instance.get('id')} cannot be drawn") from error
    return mask
