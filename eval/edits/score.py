"""Measuring a set of edits: each pair by itself, on all cores, then what depends on the set.

Sources: Semi-Truths, sections 3.1 and C.2, algorithm 2; the area outside the mask: SAGI, supplementary,
section 3. Where this differs: pairs of two sizes are not resized but recorded as failed; all-black edits are
measured and are in no cut-off.

Threads and not processes: NumPy, SciPy and Pillow give up the interpreter lock while they work on an image,
and perceptual measures are in memory once. What was measured is kept beside the output until that is
written, so that the same call goes on where it was interrupted.
"""

from __future__ import annotations

import hashlib
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import orjson

from uncanny.errors import ImageError, UsageError
from uncanny.eval.edits.columns import PRESERVED, check_suffix
from uncanny.eval.edits.data import EditFiles, EditSet, EditSource, check_sizes, load, read_masks, read_side
from uncanny.eval.edits.parameters import (
    LoadParameters,
    MeasureConfig,
    MeasureParameters,
    PerceptualParameters,
)
from uncanny.eval.edits.result import (
    NOT_ASKED,
    EditMeasure,
    MeasuredEdits,
    SetCutoffs,
    of_set,
    with_set,
)
from uncanny.eval.metrics import edits as metrics
from uncanny.eval.metrics.edits import Mask, Pixels
from uncanny.files import dump_json, load_json, read_file
from uncanny.images.decode import PixelLimit
from uncanny.images.prepared import stored_size
from uncanny.parameters import check_records, takes
from uncanny.records.jsonl import append_whole, make_folder_of, open_to_append
from uncanny.runs.display import counting_to

# Of both images of all pairs at a time: the arrays of a pair take about 30 bytes a pixel.
_PIXELS: Final = PixelLimit(100_000_000)
_AHEAD: Final = 4
_FORMAT: Final = "edits/1"


class ImageDistance(Protocol):
    """How far apart two images are to an eye, 0 for the same; called from several threads."""

    @property
    def described(self) -> Mapping[str, Any]:
        """What values depend on: package, backbone, weights."""
        ...

    def distance(self, original: Pixels, edited: Pixels) -> float: ...


class TextLikeness(Protocol):
    """How alike two texts are in meaning, 1 for the same; called from several threads."""

    @property
    def described(self) -> Mapping[str, Any]: ...

    def likeness(self, before: str, after: str) -> float: ...


@dataclass(frozen=True, slots=True)
class Perceptual:
    """Measures by learned models, each None where it is not wanted."""

    lpips: ImageDistance | None = None
    dreamsim: ImageDistance | None = None
    text_similarity: TextLikeness | None = None

    @property
    def described(self) -> dict[str, Any]:
        measures = {"lpips": self.lpips, "dreamsim": self.dreamsim, "text_similarity": self.text_similarity}
        return {name: dict(each.described) for name, each in measures.items() if each is not None}


NOTHING: Final = Perceptual()


@takes(MeasureParameters, optional=True)
def measure(pairs: EditSource | None, parameters: MeasureParameters) -> MeasuredEdits:
    """Measure how much each edit of a set changed, and where, as `uncanny edits measure` does.

    `pairs` are as in `load`. An interrupted call with `out` resumes. `cutoffs` are those of
    another set, as its `cutoffs`, their JSON, or a file of it, in place of this set's own.

    A pair that cannot be measured is never an error: its record says why. Raises what `load` and
    `open_perceptual` raise, and UsageError for invalid parameters.

    >>> edits = uncanny.edits.measure("scenes")
    >>> edits["r06"].shape
    'localized'
    """
    target = None if parameters.out is None else Path(parameters.out)
    if target is not None:
        check_suffix(target)
    given = SetCutoffs() if parameters.cutoffs is None else SetCutoffs.read(parameters.cutoffs)
    check_records([parameters.perceptual or NOTHING], Perceptual, what="Open measures are `Perceptual`")
    models = parameters.perceptual or _opened(parameters)
    files = load(pairs, **parameters.part(LoadParameters).given)
    constants = parameters.part(MeasureConfig)
    work = Work(constants, parameters.preserved, models)
    with _Kept(target, work) as kept:
        edits = list(_measured(files, kept, parameters))
        typical = of_set(edits, constants, given)
        result = MeasuredEdits(
            tuple(with_set(each, typical, constants) for each in edits),
            files,
            typical,
            constants,
            models.described,
            parameters.published,
        )
        if target is not None:
            result.write(target)
            kept.finish()
    return result


def _opened(parameters: MeasureParameters) -> Perceptual:
    own = parameters.part(PerceptualParameters).given
    if not own:
        return NOTHING
    from uncanny.eval.edits.perceptual import open_perceptual

    return open_perceptual(**own)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Work:
    """What is measured of a pair."""

    parameters: MeasureConfig
    preserved: bool = False
    perceptual: Perceptual = NOTHING

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "parameters": self.parameters.model_dump(),
            "preserved": self.preserved,
            "perceptual": self.perceptual.described,
        }


def _measured(files: EditSet, kept: _Kept, parameters: MeasureParameters) -> Iterator[EditMeasure]:
    """In the order given; so many pairs ahead at a time that memory stays small."""
    threads = parameters.threads or _cores()
    with (
        counting_to(len(files), "edits", enabled=parameters.progress) as count,
        ThreadPoolExecutor(threads, thread_name_prefix="edits") as pool,
    ):
        rest = iter(files)
        waiting: dict[Future[EditMeasure], int] = {}
        done: dict[int, EditMeasure] = {}
        placed, given = 0, 0
        try:
            while True:
                for each in islice(rest, threads * _AHEAD - len(waiting)):
                    waiting[pool.submit(kept.measured, each)] = placed
                    placed += 1
                if not waiting:
                    return
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    place = waiting.pop(future)
                    done[place] = future.result()
                    count(done[place].id)
                    if parameters.on_record is not None:
                        parameters.on_record(done[place])
                while given in done:
                    yield done.pop(given)
                    given += 1
        finally:
            for future in waiting:
                future.cancel()


def measure_edit(files: EditFiles, work: Work) -> EditMeasure:
    """One edit by itself: everything but bins and shape. Never raises for what is wrong with the files."""
    words: dict[str, Any] = {
        "protocol": work.parameters.protocol,
        "scene_diversity": files.pair.diversity,
        "scene_complexity": files.pair.complexity,
    }
    try:
        size = stored_size(files.original)
        with _PIXELS.hold(2 * size[0] * size[1] if size else 0):
            figures = _figures(files, work)
    except ImageError as error:
        return EditMeasure(id=files.id, status="failed", problem=str(error), **words)
    except MemoryError:
        return EditMeasure(id=files.id, status="failed", problem="not enough memory to read it", **words)
    return EditMeasure(id=files.id, **words, **figures)


def _figures(files: EditFiles, work: Work) -> dict[str, Any]:
    parameters = work.parameters
    original, changes = read_side(files.original, "original")
    edited, more = read_side(files.edited, "edited")
    check_sizes(original, edited)
    unmeasured: dict[str, str] = {}
    wrong = False
    mask, why = mask_of(files, original)
    if why is not None:
        unmeasured["mask_ratio"] = why
        wrong = bool(files.masks)
    squares = metrics.squared_difference(original, edited)
    edit = parameters.post_edit(squares)
    ssim = metrics.ssim(original, edited, window=parameters.window)
    if ssim is None:
        unmeasured["ssim"] = "the image is smaller than the window"
    elif parameters.protocol == "paper":
        ssim = metrics.normalized(ssim)
    black = not edited.any()
    notes = [*changes, *more]
    if black:
        notes.append("the edited image is all black")
    if not squares.any():
        notes.append("the edited image is the same, pixel by pixel")
    figures: dict[str, Any] = {
        "mask_ratio": None if mask is None else metrics.mask_ratio(mask),
        "ssim": ssim,
        "mse": metrics.mse(squares),
        "post_edit_ratio": edit.ratio,
        "largest_component_ratio": edit.largest_component_ratio,
        "largest_centroid_distance": edit.largest_centroid_distance,
        "components": len(edit.components),
        "clusters": edit.clusters,
        "all_black": black,
        "width": original.shape[1],
        "height": original.shape[0],
    }
    del squares, edit
    if work.preserved:
        figures |= _preserved(original, edited, mask, why, work, unmeasured)
    failed = _perceptual(files, original, edited, work.perceptual, figures, unmeasured)
    return {
        **figures,
        "unmeasured": unmeasured,
        "notes": tuple(notes),
        "status": "partial" if wrong or failed else "ok",
    }


def mask_of(files: EditFiles, image: Pixels) -> tuple[Mask | None, str | None]:
    """The masks of an edit as one, or why there is none."""
    if not files.masks:
        return None, "no mask is given"
    try:
        mask = read_masks(files.masks, (image.shape[1], image.shape[0]))
    except UsageError as error:
        return None, error.message
    return (mask, None) if mask.any() else (None, "the mask is empty")


def _preserved(
    original: Pixels,
    edited: Pixels,
    mask: Mask | None,
    why: str | None,
    work: Work,
    unmeasured: dict[str, str],
) -> dict[str, Any]:
    window, lpips = work.parameters.window, work.perceptual.lpips
    kept = None if mask is None else metrics.preserved(original, edited, mask, window=window)
    if mask is None or kept is None:
        unmeasured |= dict.fromkeys(PRESERVED, why or "the mask covers the whole image")
        return {}
    if math.isinf(kept.psnr):
        unmeasured["preserved_psnr"] = "infinite: nothing changed outside the mask"
    if kept.ssim is None:
        unmeasured["preserved_ssim"] = "no window lies outside the mask"
    figures: dict[str, Any] = {
        "preserved_psnr": None if math.isinf(kept.psnr) else kept.psnr,
        "preserved_mse": kept.mse,
        "preserved_mae": kept.mae,
        "preserved_ssim": kept.ssim,
    }
    if lpips is None:
        unmeasured["preserved_lpips"] = NOT_ASKED
    else:
        # Inside the mask both are the original: what is left differs outside alone, without made-up edges.
        outside = np.where(mask[..., None], original, edited)
        figures["preserved_lpips"], reason = _tried(lpips.distance, original, outside)
        if reason is not None:
            unmeasured["preserved_lpips"] = reason
    return figures


def _perceptual(
    files: EditFiles,
    original: Pixels,
    edited: Pixels,
    perceptual: Perceptual,
    figures: dict[str, Any],
    unmeasured: dict[str, str],
) -> bool:
    """Fills in what learned models measure; whether one of them failed."""
    failed = False
    for name, distance in (("lpips", perceptual.lpips), ("dreamsim", perceptual.dreamsim)):
        if distance is None:
            unmeasured[name] = NOT_ASKED
            continue
        figures[name], reason = _tried(distance.distance, original, edited)
        if reason is not None:
            unmeasured[name], failed = reason, True
    texts, likeness = files.pair.texts, perceptual.text_similarity
    if likeness is None or texts is None:
        unmeasured["text_similarity"] = NOT_ASKED if likeness is None else "no words for both sides"
        return failed
    figures["text_similarity"], reason = _tried(likeness.likeness, *texts)
    if reason is not None:
        unmeasured["text_similarity"], failed = reason, True
    return failed


def _tried(function: Callable[..., float], *arguments: Any) -> tuple[float | None, str | None]:
    """A model's value, or why it gave none: models refuse small images in their own ways."""
    try:
        value = float(function(*arguments))
    except Exception as error:
        return None, f"the model failed ({type(error).__name__}: {error})"[:200]
    return (value, None) if math.isfinite(value) else (None, "the model gave no finite number")


class _Kept:
    """What was measured by an interrupted call, by the files and all that figures depend on.

    A line an edit in a file beside the output, which goes when that is written. Lines that cannot be read,
    as the last one after a kill, are measured again.
    """

    def __init__(self, target: Path | None, work: Work) -> None:
        self._work = work
        self._identity = orjson.dumps(work.identity, option=orjson.OPT_SORT_KEYS)
        self._records: dict[str, EditMeasure] = {}
        self._path = None if target is None else target.with_name(f".{target.name}.unfinished")
        self._file: FileIO | None = None
        self._writing = threading.Lock()
        if self._path is None:
            return
        if self._path.is_file():
            for line in read_file(self._path).splitlines():
                try:
                    content = load_json(line)
                    self._records[content["key"]] = EditMeasure.model_validate(content["record"])
                except (ValueError, KeyError, TypeError):
                    continue
        make_folder_of(self._path)
        self._file = open_to_append(self._path)
        if self._path.stat().st_size:
            append_whole(self._file, b"\n")

    def __enter__(self) -> _Kept:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def measured(self, files: EditFiles) -> EditMeasure:
        """The record of an edit, measured now where none is kept."""
        key = self._key(files)
        record = self._records.get(key)
        if record is None or record.id != files.id:
            record = measure_edit(files, self._work)
            # Failed ones are tried again: a file may be there next time.
            if self._file is not None and record.status != "failed":
                line = dump_json({"key": key, "record": record.model_dump(mode="json")}) + b"\n"
                with self._writing:
                    append_whole(self._file, line)
        return record

    def finish(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _key(self, files: EditFiles) -> str:
        """Changes when a file does, by its size, times and inode."""
        places = (files.original, files.edited, *files.masks)
        parts = [(os.fspath(each), _stamp(each)) if isinstance(each, Path) else each for each in places]
        words = (files.id, files.pair.texts, files.pair.diversity, files.pair.complexity)
        content = "".join(map(repr, (*parts, words))).encode("utf-8", "backslashreplace")
        return hashlib.sha256(self._identity + content).hexdigest()


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return ()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
