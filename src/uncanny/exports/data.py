"""What is exported of a run: its images, one at a time, with the findings that are wanted of each.

Findings are as reviewers left them: the latest text and box, and what was added. Verified are those that
reviewers accept, by majority or all of them; only they go out unless more is asked for. Nothing here holds
more than one image.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Final, Literal

from uncanny.errors import ImageError, UsageError
from uncanny.eval.common.confidence import is_sure
from uncanny.eval.common.groups import Groups
from uncanny.eval.common.inputs.image_files import read_bytes, repeated_images, take_apart
from uncanny.eval.common.inputs.runs import ReadRun, images_of, stream_annotations
from uncanny.eval.metrics.significance import Agreement, krippendorff_alpha
from uncanny.files import dump_json
from uncanny.images.file_bytes import read_image_file
from uncanny.images.signature import sniff
from uncanny.records.calibration import Calibration
from uncanny.records.reviews import (
    DECISIONS,
    MAJORITY,
    Decision,
    RatingSpread,
    ReviewedAnomaly,
    ReviewLog,
    Rule,
    quadruple_sha256,
    rating_spread,
    review_image,
)
from uncanny.schema import Annotation, Source, columns_of
from uncanny.wording import option, shown

Split = Literal["train", "test"]
MOST_IMAGE_BYTES: Final = 2**30


def split_of(group: str, test_fraction: float) -> Split:
    """The side a group of images is on, by a hash of what it is called: whatever else is in the run.

    An image by itself is called by its digest; hashed, so that images sorted by digest are not sorted by
    side.
    """
    number = int.from_bytes(sha256(f"uncanny split {group}".encode()).digest()[:8], "big")
    return "test" if number < test_fraction * 2**64 else "train"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which findings go out: those that reviewers accept, and besides what else is asked for.

    `all`: also those that nobody has reviewed, or that reviewers are unsure of. `rejected`: also those.
    Findings below `least_confidence`, 0-1, are as if they were not there, unless people have judged, edited
    or added them: what people say counts for more than how sure the model was. The `calibration` gives those
    that count a probability.
    """

    all: bool = False
    rejected: bool = False
    least_confidence: float = 0.0
    calibration: Calibration | None = None

    def counts(self, finding: ReviewedAnomaly) -> bool:
        """Whether a finding is one at all."""
        by_people = finding.votes or finding.edited_by or finding.added_by
        return bool(by_people) or is_sure(finding.anomaly, self.least_confidence)

    def rated(self, finding: ReviewedAnomaly) -> ReviewedAnomaly:
        """The finding with its probability."""
        if self.calibration is None:
            return finding
        return replace(finding, anomaly=self.calibration.finding(finding.anomaly))

    def reason_against(self, finding: ReviewedAnomaly) -> str | None:
        """What keeps a finding from going out, as counted; None where nothing does."""
        match finding.decision:
            case "accept":
                return None
            case "reject":
                return None if self.rejected else "rejected"
            case "unsure":
                return None if self.all else "unsure"
            case None:
                return None if self.all else "unreviewed"


@dataclass(frozen=True, slots=True)
class ExportImage:
    """An image that goes out, with those of its `findings` findings that do.

    `complete` says that people, or with `all` nobody, have to say no more of it: no finding was left out only
    because it is unreviewed or unsure, so that the list is a whole one. `group` is what the images that it
    belongs with share, as `pair=7`; None for one by itself. `file` is where the picture lies, and
    `digest` what it must have to be read; None where the record does not know it.
    """

    record: Annotation
    anomalies: tuple[ReviewedAnomaly, ...]
    complete: bool
    source: Source | None
    split: Split
    group: str | None
    file: Path
    digest: str | None

    def identity(self) -> dict[str, Any]:
        """What every form says of an image: its name in the run, side, group, and columns of its table."""
        return {
            "run_image": self.record.image,
            "sha256": self.record.sha256,
            "split": self.split,
            "group": self.group,
            "columns": dict(columns_of(self.record)),
        }

    def cells(self, reference: str) -> dict[str, Any]:
        """The row of the image in a table, in which it is called `reference`; input columns are JSON."""
        identity = self.identity()
        columns = identity["columns"]
        return {
            "image": reference,
            **identity,
            "columns": dump_json(columns).decode() if columns else None,
            **{
                name: getattr(self.record, name) for name in ("width", "height", "status", "model", "prompts")
            },
            **{"source": self.source, "complete": self.complete},
        }

    def read(self) -> bytes | None:
        """The picture's file, read whole; None where it is missing, or not the one the record is about."""
        if self.digest == "":
            return None
        try:
            data = read_image_file(self.file, MOST_IMAGE_BYTES)
        except ImageError:
            return None
        # A file of annotations may name any file of this machine: without a digest it has to be a picture.
        known = sha256(data).hexdigest() == self.digest if self.digest else sniff(data) is not None
        return data if known else None


@dataclass(slots=True)
class LeftOut:
    """Images and findings that do not go out, by the reason; `stale` verdicts are about another text.

    `verdicts` counts findings by how many verdicts of each kind they have, in the order of `DECISIONS`.
    """

    images: Counter[str] = field(default_factory=Counter)
    anomalies: Counter[str] = field(default_factory=Counter)
    stale: int = 0
    verdicts: Counter[tuple[int, ...]] = field(default_factory=Counter)

    def judge(self, finding: ReviewedAnomaly) -> None:
        """Take a finding's verdicts into account for the agreement, whether or not it goes out."""
        if len(finding.votes) > 1:
            counts = Counter(finding.votes.values())
            self.verdicts[tuple(counts[decision] for decision in DECISIONS)] += 1

    def agreement(self) -> Agreement:
        return krippendorff_alpha(self._tables())

    def ratings(self) -> RatingSpread:
        return rating_spread(self._tables())

    def _tables(self) -> Iterator[dict[Decision, int]]:
        units = (
            repeat(dict(zip(DECISIONS, counts, strict=True)), number)
            for counts, number in self.verdicts.items()
        )
        return chain.from_iterable(units)


def export_images(
    read: ReadRun,
    log: ReviewLog,
    selection: Selection,
    sources: Mapping[str, Source] | Source | None,
    test_fraction: float,
    left_out: LeftOut,
    groups: Groups,
    rule: Rule = MAJORITY,
) -> Iterator[ExportImage]:
    """Images in the order of their records. What is left out is counted in `left_out`; `rule` decides.

    All images of one of the `groups`, which all records are added to first, are on one side.

    Failed and unreadable images stay out, unless a reviewer has added findings to them. Without `all` so do
    those of whose findings nobody has judged any, unless somebody has completed the image. Images that people
    annotate from nothing never go out before: they are not flawless. Raises RecordError for an invalid line,
    UsageError.
    """
    unaided = images_of(read.file) is not None
    for record in stream_annotations(read.file):
        groups.add(record)
    groups.check()
    reviews = log.by_image()
    for record in stream_annotations(read.file):
        image = review_image(record, reviews.get(record.image, ()), rule)
        left_out.stale += len(image.stale)
        sure = tuple(selection.rated(each) for each in image.anomalies if selection.counts(each))
        if len(sure) < len(image.anomalies):
            below = f"below confidence {selection.least_confidence:g}"
            left_out.anomalies[below] += len(image.anomalies) - len(sure)
        image = replace(image, anomalies=sure)
        for each in image.anomalies:
            left_out.judge(each)
        if record.status in ("failed", "unreadable") and not any(each.added_by for each in image.anomalies):
            left_out.images[record.status] += 1
            continue
        judged = image.completed_by or any(
            each.decision is not None or each.added_by for each in image.anomalies
        )
        if not judged and (unaided or not selection.all):
            left_out.images[
                "unreviewed" if image.anomalies or unaided else "without an anomaly to review"
            ] += 1
            if image.anomalies:
                left_out.anomalies["unreviewed"] += len(image.anomalies)
            continue
        reasons = [selection.reason_against(each) for each in image.anomalies]
        left_out.anomalies.update(reason for reason in reasons if reason is not None)
        yield ExportImage(
            record,
            tuple(each for each, reason in zip(image.anomalies, reasons, strict=True) if reason is None),
            not {"unreviewed", "unsure"} & set(reasons),
            _source(record, sources),
            split_of(groups.of(record), test_fraction),
            groups.name(record),
            read.picture(record.image),
            read.digest(record),
        )


def _source(record: Annotation, sources: Mapping[str, Source] | Source | None) -> Source | None:
    if isinstance(sources, str):
        return sources
    if sources is not None:
        return sources.get(record.image)
    said = (record.model_extra or {}).get("source", getattr(record, "source", None))
    return said if said in ("generated", "real") else None


def read_sources(source: str | Path | None) -> Mapping[str, Source] | Source | None:
    """What images are: `generated` or `real` for all, or a file with `image` and `source`; None as recorded.

    Raises UsageError for anything else.
    """
    if source is None or source == "generated" or source == "real":
        return source  # type: ignore[return-value]
    path = Path(source)
    if not path.is_file():
        raise UsageError(
            f"{option('source')} must be generated, real or a file, not {shown(str(source))}",
            remedy="A file has records with `image` and `source`.",
        )
    entries, problems = take_apart(read_bytes(path), path)
    problems += repeated_images(entries)
    sources: dict[str, Source] = {}
    for entry in entries:
        value = entry.value.get("source") if isinstance(entry.value, dict) else entry.value
        if value not in ("generated", "real"):
            raise UsageError(
                f"{path}: the source of {shown(entry.image)} is {shown(value)}",
                remedy="Write generated or real.",
            )
        sources[entry.image] = value
    if problems:
        raise UsageError(f"{path}: {problems[0]}", remedy="Correct the file.")
    return sources


def review_fields(finding: ReviewedAnomaly) -> dict[str, object]:
    """What reviewers made of a finding, as all forms say it: without the names of people.

    `edited` says that the text or the box is a reviewer's, `added` that all of it is.
    """
    counts = Counter(finding.votes.values())
    return {
        "decision": finding.decision,
        "rating": finding.rating,
        **{decision: counts[decision] for decision in DECISIONS},
        "edited": finding.edited_by is not None,
        "added": finding.added_by is not None,
    }


def finding_cells(finding: ReviewedAnomaly) -> dict[str, Any]:
    """A finding in a table: its fields, what reviewers made of it, and what leads back to the run."""
    return {
        **finding.anomaly.model_dump(mode="json"),
        "severity": finding.anomaly.rated_severity,
        "probability": finding.anomaly.probability,
        "index": finding.index,
        **review_fields(finding),
        "text_sha256": quadruple_sha256(finding.anomaly),
    }


def attributes_of(finding: ReviewedAnomaly) -> dict[str, Any]:
    """What a box is about, in words; `index` and `text_sha256` lead back to the finding of the run."""
    anomaly = finding.anomaly
    return {
        "name": anomaly.name,
        "phenomenon": anomaly.phenomenon,
        "reasoning": anomaly.reasoning,
        "severity": anomaly.rated_severity,
        "confidence": anomaly.confidence,
        "probability": anomaly.probability,
        "objects": list(anomaly.objects),
        "found_by": list(anomaly.found_by or ()),
        **review_fields(finding),
        "index": finding.index,
        "text_sha256": quadruple_sha256(anomaly),
    }


def clipped_box(finding: ReviewedAnomaly, record: Annotation) -> tuple[int, int, int, int] | None:
    """The finding's box within the picture; None where it has none, or none of it is in the picture."""
    box = finding.anomaly.box
    if box is None or record.width is None or record.height is None:
        return box
    clipped = (box[0], box[1], min(box[2], record.width), min(box[3], record.height))
    return clipped if clipped[0] < clipped[2] and clipped[1] < clipped[3] else None
