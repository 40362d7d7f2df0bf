"""`export`: a run as data sets in the forms other tools read, all of them in one pass over its records."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from glob import escape
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Final, cast

import orjson
from filelock import FileLock, Timeout

from uncanny.errors import StorageError, UsageError
from uncanny.eval.common.alike import Origin
from uncanny.eval.common.groups import Groups
from uncanny.eval.common.inputs.runs import ReadRun, images_of, open_annotations, stream_annotations
from uncanny.eval.common.json_fields import JsonFields, json_of
from uncanny.eval.common.tables.table import MISSING, Table, TableResult
from uncanny.eval.metrics.significance import Agreement
from uncanny.exports.data import ExportImage, LeftOut, Selection, export_images, read_sources
from uncanny.exports.formats import FORMATS, FormatName
from uncanny.exports.parameters import ExportParameters
from uncanny.exports.writer import IMAGES, ExportJob, FormatWriter
from uncanny.files import dump_json
from uncanny.parameters import path_of, takes
from uncanny.records.calibration import MadeWith
from uncanny.records.jsonl import LinesByImage, write_atomically
from uncanny.records.reviews import MAJORITY, RatingSpread, ReviewLog, Rule
from uncanny.records.run_folder import check_apart, check_recorded, unfinished
from uncanny.wording import counted, either, option, shown

MANIFEST: Final = "export.json"
_TAIL: Final = 2**18


@dataclass(frozen=True, slots=True)
class Grouping:
    """How images were kept together in the split: `by` as it was asked for, None for the default.

    `groups` counts all groups of the run, those of a single image included, `grouped` images that share
    theirs with others, and `without` those that have no column to be grouped by.
    """

    by: str | None
    groups: int
    grouped: int
    without: int

    def words(self) -> Iterator[str]:
        """What to know about the split; nothing where each image is by itself."""
        if not self.grouped:
            return
        shared = "pairs and originals" if self.by is None else shown(self.by)
        groups = counted(self.groups, "group")
        yield f"Split by {shared}: {groups}, {self.grouped:,} images share theirs with others."
        if self.by is not None and self.without:
            yield f"{counted(self.without, 'image')} without {shown(self.by)}: each is a group by itself."
        if self.groups == 1:
            yield "All images are in one group, so one side of the split is empty."


@dataclass(frozen=True, slots=True, repr=False)
class ExportResult(TableResult, JsonFields):
    """What was written: `files` by format, files or folders, and what was left out, by the reason.

    `images` and `anomalies` went out, before what single formats could not take, which is in `notes`, by
    format. `splits` are images by side, `grouping` says which were kept together. `missing_pictures` are not
    where the records say, or changed.
    `rule` decided what reviewers accepted, `agreement` is that of the run's reviewers, `ratings` their mean
    ratings of findings with two verdicts or more.
    """

    json_keys: ClassVar = (
        "out files images anomalies splits grouping left_out stale_verdicts missing_pictures "
        "rule=ruled agreement=agreed notes warnings"
    )

    out: Path
    files: Mapping[str, Path]
    images: int
    anomalies: int
    splits: Mapping[str, int]
    grouping: Grouping
    images_left_out: Mapping[str, int]
    anomalies_left_out: Mapping[str, int]
    stale_verdicts: int
    missing_pictures: int
    rule: Rule
    agreement: Agreement
    ratings: RatingSpread
    notes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def left_out(self) -> dict[str, Mapping[str, int]]:
        return {"images": self.images_left_out, "anomalies": self.anomalies_left_out}

    @property
    def ruled(self) -> dict[str, Any]:
        return self.rule._asdict()

    @property
    def agreed(self) -> dict[str, Any]:
        return {
            **json_of(self.agreement, "krippendorff_alpha=alpha anomalies=units verdicts=judgements"),
            "mean_rating": self.ratings.mean,
            "ratings": dict(self.ratings.by_bin),
        }

    def tables(self) -> tuple[Table, ...]:
        rows = tuple(
            (name, f"{self.images:,}", f"{self.anomalies:,}", str(path)) for name, path in self.files.items()
        )
        return (Table(("Format", "Images", "Anomalies", "File"), rows, notes=tuple(self._words())),)

    def _words(self) -> Iterator[str]:
        yield from self.warnings
        yield from self.grouping.words()
        left_out = {f"Left out, {what}": reasons for what, reasons in self.left_out.items() if reasons}
        for what, counts in (left_out | {**self.notes}).items():
            yield f"{what}: {', '.join(f'{number:,} {why}' for why, number in counts.items())}."
        if self.missing_pictures:
            yield f"{counted(self.missing_pictures, 'picture')} not where the records say, or changed since."
        if self.stale_verdicts:
            yield f"{counted(self.stale_verdicts, 'verdict')} about another text or picture, not counted."
        if self.rule != MAJORITY:
            yield f"Accepted is what is accepted by {self.rule.words}."
        if self.agreement.units:
            alpha = MISSING if self.agreement.alpha is None else f"{self.agreement.alpha:.3f}"
            judged = f"{self.agreement.units:,} that two or more judged"
            yield f"Agreement of reviewers: Krippendorff's α {alpha}, anomalies: {judged}."
            yield f"Their mean rating, from 0 (reject) to 1 (accept), is {self.ratings.mean:.2f}."


@takes(ExportParameters)
def export(run: str | PathLike[str], parameters: ExportParameters) -> ExportResult:
    """Export the verified anomalies of a run, or of a file of annotations, as datasets. No model is called.

    An anomaly is verified if a majority of its reviewers accepted it, or with `agree="all"` if every one of
    them did. The export has the reviewed text and box. Images without a judged finding are left out, unless
    `all` is true.

    An image's split, train or test, follows from its digest, or from the group of images it belongs to:
    images of one group are always on one side. By default the sides of a pair and the edits of an original
    are together, where a column `pair`, `pair_id`, `original` or `source_image` says so.

    From a run in progress, the finished images are exported. If the export fails, nothing is written. An
    earlier export is replaced, other files only with `force`.

    Raises UsageError if there is no such run, if it has no reviews and `all` is false, if a package is
    missing, or if other files are in the way; RecordError for an invalid record; StorageError; OSError.

    >>> run = uncanny.annotate(images, model="demo", out=out)
    >>> result = uncanny.export(run, to="csv", out=out.with_suffix(".csv"), all=True)
    >>> result.images
    1
    """
    path, out = path_of("run", run), Path(parameters.out)
    names = cast("Sequence[FormatName]", parameters.to)
    read = open_annotations(path)
    read.folder.check_links()
    if not read.file.is_file():
        check_recorded(path, read.file.name)
    log = ReviewLog.of_run(read.folder.path)
    if not parameters.all and not log.path.is_file():
        if images_of(read.file) is not None:
            raise UsageError(
                f"Nobody has looked at the images of {path} yet",
                remedy="Annotate them with `uncanny review`.",
            )
        raise UsageError(
            f"{path} has no reviews, so none of its anomalies is verified",
            remedy=f"Review it with `uncanny review`, or give {option('all', True)} to include all.",
        )
    places = _places(names, out, read, force=parameters.force)
    if places.manifest is not None and not places.manifest.is_file():
        check_apart(places.folder, (read.picture(each.image) for each in stream_annotations(read.file)))
    sources = read_sources(None if parameters.source is None else str(parameters.source))
    calibration = parameters.read_calibration()
    unlike = None if calibration is None else calibration.unlike(_made_with(read))
    with _work_folder(places.folder, out) as work:
        job = ExportJob(places.folder, work, parameters, lambda: _calls(read))
        left_out, groups = LeftOut(), Groups(parameters.group_by)
        images = export_images(
            read,
            log,
            Selection(parameters.all, parameters.rejected, parameters.min_confidence, calibration),
            sources,
            parameters.test_fraction,
            left_out,
            groups,
            parameters.rule,
        )
        counts = _write(names, places, job, images)
        done = counts["images"] + left_out.images.total()
        rest = unfinished(read.folder.path, "images", done) if read.is_run else None
        result = ExportResult(
            out=out,
            files=dict(places.targets.items()),
            images=counts["images"],
            anomalies=counts["anomalies"],
            splits={split: counts[split] for split in ("train", "test")},
            grouping=Grouping(parameters.group_by, groups.number, groups.grouped, groups.without),
            images_left_out=dict(left_out.images),
            anomalies_left_out=dict(left_out.anomalies),
            stale_verdicts=left_out.stale,
            missing_pictures=job.missing,
            rule=parameters.rule,
            agreement=left_out.agreement(),
            ratings=left_out.ratings(),
            notes={name: dict(notes) for name, notes in job.notes.items()},
            warnings=(
                *(() if rest is None else (f"Only a part is exported: {rest}.",)),
                *(() if unlike is None else (unlike,)),
            ),
        )
        places.move(work, result)
    return result


def _made_with(read: ReadRun) -> MadeWith:
    origin = Origin()
    for record in stream_annotations(read.file):
        origin.add(record)
    return origin.provenance(read).as_made_with()


def _calls(read: ReadRun) -> LinesByImage:
    if read.calls is None or not read.calls.is_file():
        raise UsageError(
            f"{read.folder.path} has no calls.jsonl: the answers of the agents are not recorded",
            remedy="Pass the run folder itself.",
        )
    return LinesByImage(read.calls)


def _write(
    names: Sequence[FormatName], places: Places, job: ExportJob, images: Iterator[ExportImage]
) -> Counter[str]:
    counts: Counter[str] = Counter()
    with job.files:
        writers: list[FormatWriter] = []
        for name in names:
            target = job.work / FORMATS[name].file
            if FORMATS[name].is_folder:
                target.mkdir()
            writers.append(FORMATS[name].load_writer()(name, target, places.targets[name], job))
        for image in images:
            job.take_picture(image)
            for writer in writers:
                writer.add(image)
            counts["images"] += 1
            counts["anomalies"] += len(image.anomalies)
            counts[image.split] += 1
        for writer in writers:
            writer.finish()
    return counts


@dataclass(frozen=True, slots=True)
class Places:
    """Where the forms go: `targets` by format, in `folder`. `manifest` is None for a file by itself."""

    folder: Path
    targets: Mapping[FormatName, Path]
    manifest: Path | None

    def move(self, work: Path, result: ExportResult) -> None:
        """Put what is complete in its place: all is written before the first is moved. Raises OSError."""
        if self.manifest is not None:
            formats = sorted({*self.targets, *_formats_of(self.manifest)})
            content = {"formats": formats, "export": result.to_json()}
            write_atomically(work / MANIFEST, [dump_json(content, indent=True)])
        self.folder.mkdir(parents=True, exist_ok=True)
        aside = work / "replaced"
        aside.mkdir()
        for name, target in self.targets.items():
            if target.is_dir() and not target.is_symlink():
                target.rename(aside / name)
            (work / FORMATS[name].file).replace(target)
        if (work / IMAGES).is_dir():
            (self.folder / IMAGES).mkdir(exist_ok=True)
            for picture in (work / IMAGES).iterdir():
                picture.replace(self.folder / IMAGES / picture.name)
        if self.manifest is not None:
            (work / MANIFEST).replace(self.manifest)


def _places(names: Sequence[FormatName], out: Path, read: ReadRun, *, force: bool) -> Places:
    """Raises UsageError where something would be replaced that is no earlier export."""
    if str(out) == "-":
        raise UsageError("Cannot write to standard output (-) here", remedy="Pass a file or a folder.")
    single = FORMATS[names[0]]
    if len(names) == 1 and not single.is_folder and out.suffix == Path(single.file).suffix:
        if out.is_dir():
            raise UsageError(f"{out} is a folder", remedy="Pass a file.")
        places = Places(out.parent, {names[0]: out}, None)
    else:
        if out.exists() and not out.is_dir():
            raise UsageError(f"{out} is a file", remedy="Pass a folder.")
        if (out / "run.json").exists():
            raise UsageError(f"{out} is the folder of a run", remedy="Pass another folder.")
        places = Places(out, {name: out / FORMATS[name].file for name in names}, out / MANIFEST)
    earlier = set() if places.manifest is None else _formats_of(places.manifest)
    inputs = [read.file, read.folder.calls, ReviewLog.of_run(read.folder.path).path]
    for name, target in places.targets.items():
        if any(file.exists() and target.exists() and target.samefile(file) for file in inputs):
            raise UsageError(f"{target} is an input and would be overwritten", remedy="Pass another file.")
        if target.is_symlink() or not target.exists() or force or name in earlier:
            if target.is_symlink():
                raise UsageError(f"{target} is a link", remedy="Remove it, or pass another folder.")
            continue
        if target.is_dir() or not _is_export(target):
            raise UsageError(
                f"{target} already exists and is not an earlier export",
                remedy=either(
                    f"Pass another place, or replace it with {option('force', True)}.",
                    service="Start a new job.",
                ),
            )
    return places


def _formats_of(manifest: Path) -> set[str]:
    try:
        formats = orjson.loads(manifest.read_bytes())["formats"]
        return set(formats) & set(FORMATS)
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        return set()


def _is_export(file: Path) -> bool:
    """Whether one of our files is there: all have the column, which Parquet names at the end."""
    with file.open("rb") as content:
        head = content.read(_TAIL)
        content.seek(max(0, os.fstat(content.fileno()).st_size - _TAIL))
        return not head or b"run_image" in head + content.read(_TAIL)


@contextmanager
def _work_folder(folder: Path, out: Path) -> Iterator[Path]:
    """A folder on the disk that `out` goes to, gone when it is left.

    It lies in `folder` where that is there: what is above may be another disk, or closed to us.
    """
    parent, name = (folder if folder.is_dir() else folder.absolute().parent), out.absolute().name
    work = parent.absolute() / f".{name}.{os.getpid()}.export"
    lock = FileLock(work / ".lock")
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for left in parent.glob(f".{escape(name)}.*.export"):
            _remove_if_left(left)
        work.mkdir()
        lock.acquire(timeout=0)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written: {error.strerror or error}",
            remedy=f"Pass a folder that you can write to with {option('out')}.",
        ) from error
    try:
        yield work
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS):
            raise
        raise StorageError(
            f"{out} cannot be written: {os.strerror(error.errno)}",
            remedy="Free some disk space, or pass another folder.",
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
        lock.release()


def _remove_if_left(work: Path) -> None:
    """Remove the work folder of an export that was killed.

    Its process is gone then, and so is the lock, which a process on another machine may still hold.
    """
    pid = work.name.split(".")[-2]
    try:
        if pid != str(os.getpid()):
            os.kill(int(pid), 0)
            return
    except (ValueError, OverflowError, PermissionError):
        return
    except ProcessLookupError:
        pass
    with contextlib.suppress(Timeout, OSError), FileLock(work / ".lock", timeout=0):
        shutil.rmtree(work, ignore_errors=True)
