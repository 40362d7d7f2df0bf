"""Files for image models and detectors: masks softened for inpainting, and crops that keep the mask.

Source: Semi-Truths, appendix A.1 (masks) and C.1 with algorithm 1 (crops). The paper names no threshold of a
crop and no size before it: by default half of the mask has to be in it, and images are resized to 256 pixels
on their shorter side, as detectors with a crop of 224 pixels do.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import ImageError, ItemsError, Problem, UsageError
from uncanny.eval.common.pixels.crops import Mask
from uncanny.eval.common.pixels.masks import MOST_PIXELS, read_mask
from uncanny.eval.common.pixels.window import How, Window, mask_window
from uncanny.eval.common.tables.table import Table, TableResult
from uncanny.eval.edits.columns import failures, places_of, write_rows
from uncanny.eval.edits.data import EditFiles, EditSource, check_sizes, load, read_masks, read_side
from uncanny.eval.edits.parameters import (
    CropParameters,
    LoadParameters,
    MaskConfig,
    MasksParameters,
    MeasureConfig,
)
from uncanny.eval.metrics.edits import squared_difference
from uncanny.images.encode import png_bytes
from uncanny.parameters import check_records, takes
from uncanny.records.jsonl import write_atomically
from uncanny.records.run_folder import check_no_links
from uncanny.runs.display import counting_to
from uncanny.wording import counted, display_path

if TYPE_CHECKING:
    from PIL import Image

PAIRS = "pairs.jsonl"
_LONGEST_NAME = 200
_MASKS = frozenset({".png", ".npy", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".jpg", ".jpeg"})


def soften(mask: Mask, config: MaskConfig) -> NDArray[np.uint8]:
    """A mask for an inpainting model: widened, its outline evened out, its edge blurred; 0–255.

    Two maximum filters, a mode filter, then a Gaussian blur, by Pillow, whose blur is three box filters.
    """
    from PIL import Image, ImageFilter

    image = Image.fromarray(np.where(mask, 255, 0).astype(np.uint8))
    for _ in range(config.widenings):
        image = image.filter(ImageFilter.MaxFilter(config.filter_side))
    image = image.filter(ImageFilter.ModeFilter(config.filter_side))
    return np.asarray(image.filter(ImageFilter.GaussianBlur(config.blur)))


@dataclass(frozen=True, slots=True, repr=False)
class PreparedMasks(TableResult):
    """The masks that were written to `out`, by name with the share of the image that they covered before.

    `small` are those below the least share, which have no file. `failed` says why a mask could not be read.
    """

    out: Path
    written: Mapping[str, float]
    small: Mapping[str, float]
    failed: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        return {
            "out": str(self.out),
            "written": dict(self.written),
            "small": dict(self.small),
            "failed": dict(self.failed),
        }

    def tables(self) -> tuple[Table, ...]:
        rows = (
            ("written", len(self.written)),
            ("too small", len(self.small)),
            ("failed", len(self.failed)),
        )
        notes = (f"Masks in {self.out}.", *failures([f"{name}: {why}." for name, why in self.failed.items()]))
        return (Table(("", "masks"), rows, notes=notes),)


@takes(MasksParameters)
def masks(
    masks: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], parameters: MasksParameters
) -> PreparedMasks:
    """Write masks as an inpainting model is given them, as `uncanny edits masks` does.

    `masks` are folders or files, one or several; what is not black is masked. `DIR/NAME.png` is gray, white
    where the model is to paint. A mask that covers less of the image than `least_area` is left out. Existing
    files are replaced.

    Raises UsageError for masks that are not there, ItemsError where two would have the same file.

    >>> mask = uncanny.edits.load("scenes").pairs[0].masks[0]
    >>> len(uncanny.edits.masks(mask, out=out, least_area=0).written)
    1

    Source: Semi-Truths, appendix A.1 and figure 9.
    """
    config, target = parameters.part(MaskConfig), Path(parameters.out)
    files = _mask_files(masks, target)
    check_no_links(target)
    written: dict[str, float] = {}
    small: dict[str, float] = {}
    failed: dict[str, str] = {}
    with counting_to(len(files), "masks", enabled=parameters.progress) as count:
        for name, file in files.items():
            count(name)
            try:
                mask = read_mask(file)
            except UsageError as error:
                failed[name] = error.message
                continue
            share = float(mask.mean())
            if share < config.least_area:
                small[name] = share
                continue
            _save(soften(mask, config), target / f"{name}.png")
            written[name] = share
    return PreparedMasks(target, written, small, failed)


def _mask_files(
    masks: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], out: Path
) -> dict[str, Path]:
    """Mask files by their name without suffix, with the folders below the one given."""
    if isinstance(masks, str | os.PathLike):
        given: Sequence[str | os.PathLike[str]] = [masks]
    else:
        given = check_records(masks, (str, os.PathLike), what="Masks are folders or files")
    files: dict[str, Path] = {}
    problems = []
    for each in map(Path, given):
        if not each.exists():
            raise UsageError(f"{each} does not exist", remedy="Pass a folder of masks, or mask files.")
        own = sorted(each.rglob("*")) if each.is_dir() else [each]
        for file in own:
            if file.suffix.lower() not in _MASKS or file.resolve().is_relative_to(out.resolve()):
                continue
            name = display_path(
                (file.relative_to(each) if each.is_dir() else Path(file.name)).with_suffix("")
            )
            if name in files:
                message = f"would have the same file as {files[name].name}; rename one of them"
                problems.append(Problem(file.name, None, message))
            files.setdefault(name, file)
    if problems:
        raise ItemsError("the masks", problems, remedy="Nothing was written.")
    if not files:
        raise UsageError(f"There are no masks in {', '.join(map(str, given))}")
    return files


def _save(pixels: NDArray[np.uint8] | Image.Image, path: Path) -> None:
    from PIL import Image

    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, [png_bytes(image)])


@dataclass(frozen=True, slots=True, repr=False)
class Crops(TableResult):
    """Crops that were written to `out`: by id the window of each edit, in pixels of the resized image.

    `without_mask` counts those whose window is by the post-edit mask. `failed` says why an edit has no crop.
    """

    out: Path
    windows: Mapping[str, Window]
    without_mask: int
    failed: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        return {
            "out": str(self.out),
            "windows": {name: {**each._asdict(), "box": each.box} for name, each in self.windows.items()},
            "without_mask": self.without_mask,
            "failed": dict(self.failed),
        }

    def tables(self) -> tuple[Table, ...]:
        words: Mapping[How, str] = {
            "center": "in the middle",
            "drawn": "elsewhere, with enough of the mask",
            "most": "elsewhere, with the most of it",
        }
        ways = Counter(each.how for each in self.windows.values())
        rows = tuple((words[how], ways[how]) for how in words)
        notes = [f"Crops of {counted(len(self.windows), 'edit')} in {self.out}; {PAIRS} names them."]
        if self.without_mask:
            notes.append(f"{self.without_mask:,} without a mask, cropped by what changed.")
        notes += failures([f"{name}: {why}." for name, why in self.failed.items()])
        return (Table(("crop", "edits"), rows, notes=tuple(notes)),)


@takes(CropParameters)
def crop(pairs: EditSource | None, parameters: CropParameters) -> Crops:
    """Write crops of edits and originals that keep the edit, as `uncanny edits crop` does.

    `pairs` are as in `load`. Both images and the mask are resized to `short_side` and cropped to `side`: in
    the middle if it keeps the share `least_kept` of the mask, else elsewhere. An edit without a mask is
    cropped by its post-edit mask. `DIR/pairs.jsonl` has the pairs with the new files, ready for a detector
    and for `measure`, with the box, the share kept, and all their other columns.

    Raises what `load` raises, and UsageError where the folder cannot be used.

    >>> crops = uncanny.edits.crop("scenes", out=out / "crops", side=64, short_side=96)
    >>> len(crops.windows)
    16

    Source: Semi-Truths, appendix C.1 and algorithm 1.
    """
    edits, target = load(pairs, **parameters.part(LoadParameters).given), Path(parameters.out)
    check_no_links(target)
    windows: dict[str, Window] = {}
    failed: dict[str, str] = {}
    records: list[dict[str, Any]] = []
    without = 0
    with counting_to(len(edits), "edits", enabled=parameters.progress) as count:
        for files in edits:
            count(files.id)
            # Each with a seed of its own, so that one more edit moves no other crop.
            own = int.from_bytes(sha256(files.id.encode()).digest()[:8], "big")
            rng = np.random.default_rng([parameters.seed, own])
            try:
                window, record = _crop(files, target, parameters, rng)
            except (ImageError, UsageError) as error:
                failed[files.id] = error.message
                continue
            without += not files.masks
            windows[files.id] = window
            records.append(record)
    if records:
        target.mkdir(parents=True, exist_ok=True)
        write_rows(records, target / PAIRS)
    return Crops(target, windows, without, failed)


def _crop(
    files: EditFiles, out: Path, parameters: CropParameters, rng: np.random.Generator
) -> tuple[Window, dict[str, Any]]:
    """Writes the crops of one edit. Raises ImageError and UsageError for what cannot be read."""
    from PIL import Image

    (original, _), (edited, _) = (
        read_side(files.original, "original"),
        read_side(files.edited, "edited"),
    )
    check_sizes(original, edited)
    height, width = edited.shape[:2]
    if files.masks:
        mask = read_masks(files.masks, (width, height))
    else:
        mask = MeasureConfig().post_edit(squared_difference(original, edited)).mask
    scale = parameters.short_side / min(width, height)
    size = tuple(max(parameters.short_side, round(each * scale)) for each in (width, height))
    if size[0] * size[1] > max(MOST_PIXELS, width * height):
        raise ImageError(
            f"{width} × {height} pixels would become {size[0]:,} × {size[1]:,}", kind="unsupported"
        )
    # Whatever is partly masked is masked, so that no small mask is lost.
    shares = Image.fromarray(mask.astype(np.float32)).resize(size, Image.Resampling.BOX)
    small = np.asarray(shares) > 0
    window = mask_window(small, parameters.side, parameters.least_kept, rng)
    name = quote(files.id, safe=" ")
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}-{sha256(files.id.encode()).hexdigest()[:16]}"
    name += ".png"
    images = {
        side: Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC)
        for side, pixels in (("original", original), ("edited", edited))
    }
    images["masks"] = Image.fromarray(np.where(small, 255, 0).astype(np.uint8))
    for side, image in images.items():
        _save(image.crop(window.box), out / side / name)
    record = files.pair.model_dump(mode="json", exclude_none=True) | {
        "original": f"original/{name}",
        "edited": f"edited/{name}",
        "mask": f"masks/{name}",
        "crop": list(window.box),
        "crop_kept": window.kept,
        "of": places_of(files, out)["edited"],
    }
    return window, record
