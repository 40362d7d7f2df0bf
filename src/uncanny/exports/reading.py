"""What people did in other tools, back into a run: verdicts, texts and boxes as lines of its `reviews.jsonl`.

`import_reviews` compares a file with what stands in the run, and logs what is different; `import_annotations`
makes a file of annotations of one that belongs to no run. Files are read whole or refused with all that is
wrong; what form each has is told by its name, or else by its content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import ValidationError

from uncanny.errors import ItemsError, Problem, UncannyError, UsageError, writable
from uncanny.eval.common.inputs.runs import ReadRun, open_run, stream_annotations
from uncanny.eval.common.inputs.table_records import data_set_files
from uncanny.eval.common.tables.table import Table, TableResult
from uncanny.exports.data import clipped_box
from uncanny.exports.formats import FORMATS, READ_NAMES, ReadName
from uncanny.exports.formats.coco import SIDECAR
from uncanny.exports.formats.cvat import in_xml
from uncanny.exports.formats.parquet import data_files
from uncanny.exports.parameters import ImportAnnotationsParameters, ImportReviewsParameters
from uncanny.exports.returned import TEXTS, Returned, check_decided
from uncanny.exports.writer import COPY_NAME
from uncanny.files import open_file, read_file
from uncanny.parameters import takes
from uncanny.records.jsonl import LinesByImage, parse_line, write_named
from uncanny.records.reviews import (
    DECISIONS,
    Decision,
    Review,
    ReviewedAnomaly,
    ReviewedImage,
    ReviewLog,
    completion,
    new_review,
    quadruple_sha256,
    read_reviews,
    review_image,
)
from uncanny.schema import Annotation, Anomaly
from uncanny.wording import either, option, shown

_CHANGES: Final = (*TEXTS, "severity", "kind")


@dataclass(frozen=True, slots=True, repr=False)
class ImportResult(TableResult):
    """What came of an import: findings read, and by what came of each how many.

    Of reviews `verdicts`, `edited` texts or boxes and `added` findings are new lines in the log; `unchanged`
    said nothing new, `stale` were about a text that is another one now.
    """

    file: Path
    findings: int
    counts: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"file": str(self.file), "findings": self.findings, **self.counts}

    def tables(self) -> tuple[Table, ...]:
        names = tuple(self.counts)
        cells = (str(self.file), f"{self.findings:,}", *(f"{self.counts[name]:,}" for name in names))
        return (Table(("File", "Findings", *(name.capitalize() for name in names)), (cells,)),)


@takes(ImportReviewsParameters)
def import_reviews(files: Files, parameters: ImportReviewsParameters) -> ImportResult:
    """Import reviews from another tool into a run. Importing the same file again changes nothing.

    `files` are one or several of the forms of `export` that tools give back, or logs of reviews from another
    copy of the run; folders stand for such files in them.

    A verdict is imported if it differs from the one in the run; from Label Studio, each submitted one is. A
    changed text or box becomes a new version. A box without a finding becomes a new finding, which needs all
    four fields. Raises ItemsError with everything that is wrong, and UsageError; nothing is written then.

    >>> run = uncanny.annotate(images, model="demo", out=out)
    >>> table = uncanny.export(run, to="csv", out=out.with_suffix(".csv"), all=True).files["csv"]
    >>> _ = table.write_text(table.read_text().replace(",,,0,0,0,", ",accept,,0,0,0,"))
    >>> uncanny.import_reviews(table, run=run, reviewer="ann").counts["verdicts"] > 0
    True
    """
    read = open_run(Path(parameters.run))
    read.folder.check_links()
    log = ReviewLog.of_run(read.folder.path)
    sources = import_files(files, parameters.format)
    with log.locked():
        state = _RunState(read, log)
        reviews: list[Review] = []
        counts = Counter({"verdicts": 0, "edited": 0, "added": 0, "unchanged": 0, "stale": 0})
        problems: list[Problem] = []
        findings = 0
        whole: dict[tuple[str, str], ReviewedImage] = {}
        for name, file in sources:
            if name == REVIEWS:
                lines = list(read_reviews(file))
                findings += len(lines)
                names = dict.fromkeys(line.image for line in lines if line.image not in state)
                problems += [Problem(name, None, f"{file}: the run has no such image") for name in names]
                fresh = state.not_logged(lines)
                counts["verdicts"] += len(fresh)
                counts["unchanged"] += len(lines) - len(fresh)
                reviews += fresh
                continue
            returned = FORMATS[name].load_reader()(file)
            for image, group in groupby(returned, key=lambda each: (each.image, each.sha256)):
                changes = state.changes(*image)
                if changes is None:
                    problems.append(Problem(image[0], None, f"{file}: the run has no such image"))
                    continue
                for entry in group:
                    findings += entry.anomaly is not None or entry.decision is not None
                    try:
                        reviews += changes.take(entry, file, parameters.reviewer, counts)
                    except UncannyError as error:
                        if not (parameters.reviewer or entry.reviewer):
                            raise  # which concerns every finding of the file
                        problems.append(Problem(image[0], None, f"{file}, {entry.where}: {error}"))
                    who = parameters.reviewer or entry.reviewer
                    if parameters.complete and who:
                        whole[changes.image.annotation.image, who] = changes.image
        _refuse(problems)
        if parameters.complete:
            check_decided({name: image for (name, _), image in whole.items()}, state.reviews, reviews)
            # Behind all that is said of the images: what is added opens an image again.
            touched = {each.image for each in reviews}
            done = [
                completion(image.annotation, who)
                for (name, who), image in whole.items()
                if name in touched or who not in image.completed_by
            ]
            reviews += done
            counts["completed"] = len(done)
        if reviews:
            log.append(reviews)
    return ImportResult(log.path, findings, dict(counts))


@takes(ImportAnnotationsParameters)
def import_annotations(files: Files, parameters: ImportAnnotationsParameters) -> ImportResult:
    """Write a file of annotations from another tool's boxes with name, phenomenon, reasoning and severity.

    Use it for boxes that belong to no run, such as a ground truth for `uncanny semantic`. Findings that are
    marked as rejected are left out. `files` are those of `import_reviews`, without logs of reviews. Raises
    ItemsError that names each finding without one of the four fields, UsageError.

    >>> run = uncanny.annotate(images, model="demo", out=out)
    >>> boxes = uncanny.export(run, to="coco", out=out.with_name("coco"), all=True).files["coco"]
    >>> uncanny.import_annotations(boxes, out=out.with_name("truth.jsonl")).counts["images"]
    1
    """
    target = Path(parameters.out)
    if target.is_dir():
        raise UsageError(f"{target} is a folder", remedy="Pass a file.")
    sources = import_files(files, parameters.format)
    if target.exists() and any(target.samefile(file) for file in files_read(sources)):
        raise UsageError(f"{target} is an input and would be overwritten", remedy="Pass another file.")
    if target.exists() and not parameters.force:
        raise UsageError(
            f"{target} already exists",
            remedy=f"Pass another file, or replace it with {option('force', True)}.",
        )
    images: dict[str, list[Returned]] = {}
    names = set()
    for name, file in sources:
        if name == REVIEWS:
            raise UsageError(
                f"{file} is a log of reviews, which belongs to a run",
                remedy=f"Pass {either('run to import_reviews', terminal=option('run'))}.",
            )
        names.add(name)
        for entry in FORMATS[name].load_reader()(file):
            images.setdefault(entry.image, []).append(entry)
    problems: list[Problem] = []
    counts = Counter({"images": 0, "anomalies": 0, "rejected": 0})
    records = []
    for image, entries in sorted(images.items()):
        anomalies = []
        for entry in entries:
            try:
                if _decision(entry) == "reject":
                    counts["rejected"] += 1
                elif entry.anomaly is not None:
                    anomalies.append(_anomaly(entry.anomaly))
            except UncannyError as error:
                problems.append(Problem(image, None, f"{entry.where}: {error}"))
        sizes = [entry.size for entry in entries if None not in entry.size]
        width, height = sizes[0] if sizes else (None, None)
        records.append(
            Annotation(
                image=image,
                sha256=next((entry.sha256 for entry in entries if entry.sha256), None),
                width=width,
                height=height,
                status="ok",
                anomalies=tuple(anomalies),
                model="import",
                prompts=f"import@{'+'.join(sorted(names))}",
            )
        )
        counts["images"] += 1
        counts["anomalies"] += len(anomalies)
    _refuse(problems)
    if not records:
        raise UsageError("The files to import have no images", remedy="Export it again.")
    write_named(target, (record.model_dump_json().encode() + b"\n" for record in records))
    return ImportResult(target, counts["anomalies"] + counts["rejected"], dict(counts))


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise ItemsError(
            "This cannot be imported", problems, remedy="Correct the files; nothing was written."
        )


class _RunState:
    """The records of a run by image, and what reviewers have said of each."""

    def __init__(self, read: ReadRun, log: ReviewLog) -> None:
        self._read, self._log = read, log
        self._lines = LinesByImage(read.file)
        self.reviews = log.by_image()
        self._names: Mapping[str, str] | None = None
        self._changes: dict[str, _Changes] = {}

    def __contains__(self, image: str) -> bool:
        return image in self._lines

    def changes(self, image: str, sha256: str | None) -> _Changes | None:
        """One for each image, by whatever name files call it; None where the run has no such image.

        By name, by digest, or by a file name that is there once, of a copied picture that which it was given.
        """
        name: str | None = image
        if image not in self._lines:
            others = self._by_other_names()
            name = others.get(sha256 or "") or others.get(_file_name(image))
            if not name and (copied := COPY_NAME.fullmatch(_file_name(image))):
                name = others.get(copied[1])
        if not name:
            return None
        if name not in self._changes:
            number, line = self._lines[name][-1]
            record = parse_line(line, Annotation, self._read.file, number)
            self._changes[name] = _Changes(review_image(record, self.reviews.get(name, ())))
        return self._changes[name]

    def not_logged(self, reviews: Iterable[Review]) -> list[Review]:
        """Each review once that the log does not have."""
        known = {_line_key(each) for image in self.reviews for each in self.reviews[image]}
        fresh: dict[str, Review] = {}
        for each in reviews:
            fresh.setdefault(_line_key(each), each)
        return [each for key, each in fresh.items() if key not in known]

    def _by_other_names(self) -> Mapping[str, str]:
        """Names by digest and by file name; the empty string where several have it."""
        if self._names is None:
            names: dict[str, str] = {}
            for record in stream_annotations(self._read.file):
                digest = record.sha256 or ""
                for other in {digest, digest[:32], _file_name(record.image)} - {""}:
                    names[other] = "" if other in names else record.image
            self._names = names
        return self._names


class _Changes:
    """What files say of one image that the run does not have yet, as lines for its log."""

    def __init__(self, image: ReviewedImage) -> None:
        self.image = image
        self._findings = list(image.anomalies)
        self._taken: set[tuple[object, ...]] = set()

    def take(self, entry: Returned, file: Path, reviewer: str | None, counts: Counter[str]) -> list[Review]:
        """The line that `entry` makes, if any; what came of it is counted. Raises UsageError."""
        decision = _decision(entry)
        if entry.anomaly is None and decision is None:
            return []
        if entry.index is None:
            return self._add(entry, decision, reviewer, counts)
        # A box that was copied in another tool leads to the same finding as the one it was copied from.
        key = (file, str(entry.index), entry.text_sha256, entry.reviewer, entry.at)
        if key in self._taken:
            raise UsageError(
                f"repeats finding {entry.index} of the image",
                remedy="Remove one of them. If the copy is a new finding, leave its `index` empty.",
            )
        self._taken.add(key)
        for finding in self._findings:
            text = quadruple_sha256(finding.anomaly)
            if finding.index == entry.index and entry.text_sha256 in (None, text):
                break
        else:
            counts["stale"] += 1
            return []
        version = _version(finding, entry, self.image.annotation)
        if decision is not None and version is None:
            standing = finding.votes.get(_who(entry, reviewer)) == decision
            if standing or (entry.reviewer is None and decision in finding.decisions):
                decision = None
        if decision is None and version is None:
            counts["unchanged"] += 1
            return []
        moved = version is not None and quadruple_sha256(version) == text
        if moved and entry.reviewer is None and decision in finding.decisions:
            decision = None  # who moves a box does not vote; of another text, the file's decision counts
        counts["edited"] += version is not None
        counts["verdicts"] += decision is not None
        return [self._line(finding.index, finding.anomaly, entry, reviewer, decision, version)]

    def _add(
        self, entry: Returned, decision: Decision | None, reviewer: str | None, counts: Counter[str]
    ) -> list[Review]:
        if entry.anomaly is None:
            raise UsageError(
                "this verdict is about a finding that the run does not have", remedy="Export the run again."
            )
        anomaly = _anomaly(entry.anomaly)
        text = quadruple_sha256(anomaly)
        for each in self._findings:
            if quadruple_sha256(each.anomaly) == text and each.anomaly.box == anomaly.box:
                counts["unchanged"] += 1
                return []
        if any(each.original and quadruple_sha256(each.original) == text for each in self._findings):
            counts["stale"] += 1  # the model's text, as it was before somebody edited it
            return []
        who, index = _who(entry, reviewer), self.image.next_index(each.index for each in self._findings)
        self._findings.append(ReviewedAnomaly(index, anomaly, None, {}, who))
        counts["added"] += 1
        return [self._line(index, None, entry, who, decision or "accept", anomaly)]

    def _line(
        self,
        index: int,
        judged: Anomaly | None,
        entry: Returned,
        reviewer: str | None,
        decision: Decision | None,
        version: Anomaly | None,
    ) -> Review:
        who = _who(entry, reviewer)
        return new_review(self.image.annotation, index, judged, who, decision, version=version, at=entry.at)


def _who(entry: Returned, reviewer: str | None) -> str:
    who = reviewer or entry.reviewer
    if not who or not who.strip():
        raise UsageError(
            f"It is not known who made the change in {entry.where}",
            remedy=f"Pass {option('reviewer')}.",
        )
    return writable(who).strip()[:200].strip()


def _version(finding: ReviewedAnomaly, entry: Returned, record: Annotation) -> Anomaly | None:
    """The finding as it came back; None where nothing of it is different."""
    if entry.anomaly is None:
        return None
    now = finding.anomaly.model_dump()
    # A file that says that nobody rated it has the stand-in, too.
    before = now if "severity_rated" in entry.anomaly else now | {"severity": finding.anomaly.rated_severity}
    changes = {
        name: entry.anomaly[name]
        for name in _CHANGES
        if name in entry.anomaly and not _same(entry.anomaly[name], before[name])
    }
    changes |= {"severity_rated": True} if "severity" in changes else {}
    if entry.knows_kind and "kind" not in entry.anomaly and "box" in entry.anomaly and now["kind"]:
        changes["kind"] = None
    box = entry.anomaly.get("box")
    if box is not None and tuple(box) not in (clipped_box(finding, record), finding.anomaly.box):
        changes["box"] = box
    return _anomaly(now | changes) if changes else None


def _same(value: object, other: object) -> bool:
    """Texts that differ only in what a form cannot keep are the same."""
    if isinstance(value, str) and isinstance(other, str):
        return in_xml(value).split() == in_xml(other).split()
    return value == other


def _anomaly(fields: Mapping[str, Any]) -> Anomaly:
    try:
        return Anomaly.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"field {name!r}: {first['msg']}",
            remedy="A finding needs name, phenomenon, reasoning and a severity from 0 to 100.",
        ) from error


def _decision(entry: Returned) -> Decision | None:
    if entry.decision in (None, ""):
        return None
    decision = str(entry.decision).strip().lower()
    if decision not in DECISIONS:
        raise UsageError(
            f"the decision cannot be {shown(entry.decision)}",
            remedy=f"Write {', '.join(DECISIONS)} or nothing.",
        )
    return decision


def _line_key(review: Review) -> str:
    return review.id or review.model_dump_json()


def _file_name(image: str) -> str:
    return image.replace("\\", "/").rsplit("/", 1)[-1]


REVIEWS: Final = "reviews"
_NEVER_READ: Final = (SIDECAR, "export.json", "run.json")
Files = str | PathLike[str] | Sequence[str | PathLike[str]]


def import_files(files: Files, format: ReadName | None) -> list[tuple[ReadName, Path]]:
    """Files with the names of their formats. Raises UsageError."""
    paths = [files] if isinstance(files, str | PathLike) or not isinstance(files, Iterable) else list(files)
    for path in paths:
        if not isinstance(path, str | PathLike) or not str(path) or "\0" in str(path):
            raise UsageError(f"Files to import are paths, not {shown(path)}", remedy="Pass one or several.")
    chosen = [file for path in paths for file in _files(Path(path), format)]
    if not chosen:
        raise UsageError("There is nothing to import", remedy="Pass files of another tool.")
    return [(format or _format_of(file), file) for file in chosen]


def files_read(sources: Iterable[tuple[ReadName, Path]]) -> Iterator[Path]:
    """Every file that is there and will be read: those in data sets, and what lies beside COCO files."""
    for name, path in sources:
        files = data_files(path) if path.is_dir() else [path]
        if name == "coco":
            files.append(path.with_name(SIDECAR))
        yield from (file for file in files if file.exists())


def _files(path: Path, format: ReadName | None) -> Iterator[Path]:
    """The file, or those in the folder; a data set of Hugging Face is a folder that is read as one."""
    is_read_whole = format == "hf" or (format is None and bool(data_set_files(path)))
    if path.is_file() or (path.is_dir() and is_read_whole):
        yield path
        return
    if not path.is_dir():
        raise UsageError(f"{path} does not exist", remedy="Pass a file of another tool.")
    suffixes = {suffix for each in FORMATS.values() for suffix in each.reads}
    yield from sorted(
        file
        for file in path.iterdir()
        if file.suffix.lower() in suffixes and file.is_file() and file.name not in _NEVER_READ
    )


def _format_of(file: Path) -> ReadName:
    if file.is_dir():
        return "hf"
    suffix = file.suffix.lower()
    match suffix:
        case ".csv":
            return "csv"
        case ".xml":
            return "cvat"
        case ".parquet":
            return "parquet"
        case ".jsonl":
            with open_file(file) as lines:
                first = next((line for line in lines if line.strip()), b"")
            return REVIEWS if b'"reviewer"' in first else "jsonl"
        case ".json":
            with open_file(file) as content:
                if content.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
                    return "labelstudio"
            try:
                keys = orjson.loads(read_file(file).removeprefix(b"\xef\xbb\xbf")).keys()
            except (orjson.JSONDecodeError, AttributeError) as error:
                raise UsageError(f"{file} is not valid JSON: {error}") from error
            if "shapes" in keys:
                return "labelme"
            if "annotations" in keys:
                return "coco"
    raise UsageError(
        f"Cannot tell the format of {file}",
        remedy=f"Name it with {option('format')}: {', '.join(READ_NAMES)}.",
    )
