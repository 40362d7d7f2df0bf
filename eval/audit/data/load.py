"""Annotation files and run folders read as streams, or refused with everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.audit.data.aggregate import Aggregate, Pairing
from uncanny.eval.audit.parameters import MOST_WORST
from uncanny.eval.common.alike import Provenance
from uncanny.eval.common.confidence import Sure
from uncanny.eval.common.groups import KNOWN, ORIGINAL_COLUMNS, Groups, cell_of
from uncanny.eval.common.inputs.runs import ReadRun
from uncanny.eval.common.inputs.sources import FINISHED, OpenSource, Source, of_place, open_source
from uncanny.eval.common.inputs.table_records import open_lines
from uncanny.eval.trust.figures import Trusted, read_trusted
from uncanny.records.calibration import Calibration
from uncanny.records.run_folder import Unfinished, unfinished
from uncanny.schema import Annotation


@dataclass(frozen=True, slots=True)
class Generator:
    """One generator's annotations: what is kept of them, how they were made, and what to know about them.

    `opened` is where single records can be read again. `trusted` is what people judged of a sample, None
    without one.
    """

    source: Source
    aggregate: Aggregate
    provenance: Provenance
    notices: tuple[str, ...] = ()
    unfinished: Unfinished | None = None
    opened: OpenSource | None = None
    trusted: Trusted | None = None

    @property
    def name(self) -> str:
        return self.source.name

    def records(self, images: Iterable[int]) -> dict[int, Annotation]:
        """Records by the place of their image among those that count; those no longer there are left out.

        Raises UsageError where the file cannot be read.
        """
        sure, lines = self.aggregate.sure, {self.aggregate.places[image]: image for image in images}
        records = self.opened.records_at(set(lines)) if self.opened else {}
        return {
            lines[line]: Sure(sure.least, calibration=sure.calibration).record(record)
            for line, record in records.items()
        }


def load_generators(
    sources: Sequence[Source],
    *,
    root: Path | None = None,
    pairing: Pairing | None = None,
    worst: int = MOST_WORST,
    min_confidence: float = 0.0,
    judged: bool = False,
    calibration: Calibration | None = None,
) -> tuple[Generator, ...]:
    """Read all records of all generators. `root` is where the image paths of annotation files start.

    Findings below `min_confidence`, 0-1, are left out and counted, the others get a probability by the
    `calibration`. With `judged`, what people judged of the samples of runs is read, too.

    Raises ItemsError with every invalid line and every image that is there twice, of all files at once, and
    UsageError for a file that cannot be read or holds nothing, or an image folder.
    """
    generators: list[Generator] = []
    paired = pairing or Pairing()
    problems: list[Problem] = []
    places: list[str] = []
    for source in sources:
        records = open_source(source, root)
        places.append(records.place)
        sure = Sure(min_confidence, calibration=calibration)
        aggregate = Aggregate(records.locate, paired, worst, from_run=records.run is not None, sure=sure)
        own_problems = _read(records, aggregate, paired.by)
        problems += (
            [of_place(each, records.place) for each in own_problems] if len(sources) > 1 else own_problems
        )
        if not own_problems and not aggregate.records:
            raise UsageError(
                f"{source.name}: {records.place} contains no annotations",
                remedy="Remove it, or annotate its images first.",
            )
        left = None
        if records.run is not None:
            left = unfinished(records.run.folder.path, "images", aggregate.records)
        made = aggregate.origin.provenance(records.run)
        unlike = None if calibration is None else calibration.unlike(made.as_made_with())
        notices = (
            *_notices(source, records.run, left),
            *_blank(source, records.run, aggregate),
            *(f"{source.name}: {words}" for words in (*sure.notices(), sure.how_many_right, unlike) if words),
        )
        generators.append(
            Generator(
                source,
                aggregate,
                made,
                notices,
                left,
                records,
                _trusted(source, aggregate) if judged and not problems else None,
            )
        )
    if problems:
        what = places[0] if len(places) == 1 else f"{len(places)} annotation files"
        raise ItemsError(what, problems, remedy="Correct these lines; nothing was audited.")
    return tuple(generators)


def _trusted(source: Source, aggregate: Aggregate) -> Trusted | None:
    """Raises UsageError for records that were written since they were read."""
    if source.kind != "run" or source.path is None:
        return None
    trusted = read_trusted(source.path, aggregate.sure.least)
    if trusted is not None and trusted.design.size != aggregate.images:
        raise UsageError(
            f"{source.name}: {source.place} changed while it was read",
            remedy="Audit it once its run has ended.",
        )
    # Where nobody has begun to judge all is as without a sample.
    return trusted if trusted is not None and trusted.design.n else None


def find_pairing(pair_by: str | None, sources: Sequence[Source], root: Path | None = None) -> Pairing:
    """The pairing that is asked for, or else the one that the records know: pairs and originals.

    The latter is for resampling alone. Records are read once more only where some have such a column.
    """
    if pair_by is not None and pair_by not in ORIGINAL_COLUMNS:
        return Pairing.named(pair_by)
    opened = [open_source(source, root) for source in sources]
    if pair_by is not None:
        return _by_original(pair_by, opened)
    mentioned = set().union(*map(_mentioned, opened))
    column = next((name for name in KNOWN if name in mentioned), None)
    if column is None:
        return Pairing()
    groups = _all(Groups(), opened)
    return Pairing(column, groups.of) if groups.grouped else Pairing()


def _by_original(column: str, opened: Sequence[OpenSource]) -> Pairing:
    """By what all records together call an original: tables may give the same one by different paths."""
    plain, groups = Pairing.named(column), _all(Groups(column), opened)

    def prompt_of(record: Annotation) -> str:
        assert plain.prompt_of is not None
        own = plain.prompt_of(record)  # raises for a record without one
        return (groups.name(record) or own).removeprefix(f"{column}=")

    return replace(plain, prompt_of=prompt_of)


def _all(groups: Groups, opened: Sequence[OpenSource]) -> Groups:
    for each in opened:
        for _, record in each.records([]):
            groups.add(record)
    return groups


def _mentioned(records: OpenSource) -> set[str]:
    """Which of the known columns records may have, by their text alone, which is read quickly, and once."""
    if records.file is None:
        every = records.source.annotations
        return {name for name in KNOWN if any(cell_of(record, name) is not None for record in every)}
    left = {name: f'"{name}":'.encode() for name in KNOWN}
    with suppress(OSError), open_lines(records.file) as lines:
        for line in lines:
            left = {name: key for name, key in left.items() if key not in line}
            if KNOWN[0] not in left:
                break
    return {*KNOWN} - {*left}


def provenances(generators: Iterable[Generator]) -> dict[str, Provenance]:
    """How each was made; one without images that count has nothing to compare."""
    return {each.name: each.provenance for each in generators if each.aggregate.images}


def _read(records: OpenSource, aggregate: Aggregate, pair_by: str | None) -> list[Problem]:
    """Add all valid records to `aggregate`; what is wrong with the others."""
    problems: list[Problem] = []
    for number, (line, record) in enumerate(records.records(problems)):
        try:
            aggregate.add(record, number if line is None else line)
        except ValueError as error:
            message = f"{error}; images are paired by it, so each record needs it"
            problems.append(Problem(record.image, pair_by, message, line=line))
    return problems


def _notices(source: Source, run: ReadRun | None, left: Unfinished | None) -> tuple[str, ...]:
    if left is not None:
        missing = f"{left.missing:,} {'image is' if left.missing == 1 else 'images are'} missing"
        return (f"{source.name}: its run is not finished ({left.state}), {missing}.",)
    if run is None or run.info.state in (None, FINISHED):
        return ()
    return (f"{source.name}: its run is not finished ({run.info.state}).",)


def _blank(source: Source, run: ReadRun | None, aggregate: Aggregate) -> tuple[str, ...]:
    """Where no object was named nothing was examined, unless the image was scanned as a whole."""
    blank = aggregate.without_objects
    if not blank or (run is not None and run.info.plan.get("scene_scans")):
        return ()
    return (
        f"{source.name}: no object is named in {blank:,} of {aggregate.images:,} images, so that nothing in "
        "them was examined; they count as flawless.",
    )
