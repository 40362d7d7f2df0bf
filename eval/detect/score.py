"""The scores of a detection run against the truth, and of several models beside one another.

Accuracy with Wilson's interval, precision and recall of each class (AnomReason, section 4.2). An answer that
says neither clearly is wrong, and a prediction of no class.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from uncanny.errors import UsageError
from uncanny.eval.common.estimates import Share, percent_words, share_of
from uncanny.eval.common.groups import ImageGroups, image_groups
from uncanny.eval.common.headline import Versus, ranking
from uncanny.eval.common.json_fields import as_json, intervals_json, json_of, with_ends
from uncanny.eval.common.tables.paired import paired_table
from uncanny.eval.common.tables.table import MISSING, Cell, Column, RowsResult, Table
from uncanny.eval.detect.data import SourceTruth, Truth
from uncanny.eval.metrics.detection import JUDGED, SOURCES, Accuracy, Judged, accuracy
from uncanny.eval.metrics.intervals import Bools, Codes
from uncanny.eval.metrics.paired import PairedTest, paired_tests
from uncanny.parameters import check_records, path_of
from uncanny.schema import Detection, Source
from uncanny.wording import option, shown

if TYPE_CHECKING:
    from uncanny.eval.detect.run import DetectRun

COLUMNS = ("source", *JUDGED, "precision", "recall", "f1")
MODEL_COLUMNS = (
    *("model", "source", *JUDGED, "precision", "precision_low", "precision_high"),
    *("recall", "recall_low", "recall_high", "f1", "accuracy", "accuracy_low", "accuracy_high"),
)


@dataclass(frozen=True, slots=True, repr=False)
class DetectScore(RowsResult):
    """How well a run tells generated images from real ones.

    `scored` is over images with an answer and a known source: `scored.accuracy`, 0 to 1, higher is better,
    None without any. `without_answer` counts those whose call failed or that could not be read,
    `without_truth` those with an answer whose source is not known, `missing` images of the run that have no
    record yet, None where it is not known. None of them is in any score. `by_source` has precision and recall
    of each class with their counts and Wilson's intervals; `groups` are images that intervals take together,
    as those of a pair.
    """

    columns: ClassVar = COLUMNS

    scored: Accuracy
    by_source: Mapping[Source, Mapping[str, Share]]
    truth: SourceTruth
    without_answer: int
    without_truth: int
    missing: int | None = None
    groups: ImageGroups | None = None

    def to_json(self) -> dict[str, Any]:
        """`scores` of `uncanny detect --json`; shares in 0–1, None where there is nothing to take one of."""
        scored = self.scored
        return {
            "truth": self.truth.origin,
            **json_of(scored, "images accuracy"),
            "ci": {"accuracy": intervals_json(scored.interval()), "classes": intervals_json(self.by_source)},
            "classes": {source: self._class(source) for source in SOURCES},
            "confusion": {
                true: {judged: scored.counts[true, judged] for judged in JUDGED} for true in SOURCES
            },
            "unparseable": scored.unparseable,
            "without_answer": self.without_answer,
            **({} if self.missing is None else {"missing": self.missing}),
            **json_of(self, "without_truth truth_not_in_run=truth.unused groups"),
        }

    def _class(self, source: Source) -> dict[str, float | None]:
        return {**as_json(self.shares(source)), "f1": self.scored.f1(source)}

    def shares(self, source: Source) -> Mapping[str, Share]:
        """Precision and recall of one class with their counts and Wilson's intervals."""
        return self.by_source[source]

    @property
    def accuracy(self) -> Share:
        """Of all images that are scored, with Wilson's interval."""
        scored = self.scored
        return Share(scored.accuracy, scored.right, scored.images, scored.interval())

    def rows(self) -> Iterator[dict[str, Any]]:
        """One a class: what its images were taken for, and the shares in 0–1, None where of nothing."""
        for source in SOURCES:
            taken = _taken({judged: self.scored.counts[source, judged] for judged in JUDGED})
            yield {"source": source, **taken, **self._class(source)}

    def tables(self) -> tuple[Table, ...]:
        """A line a class, in percent, and the accuracy below."""
        rows = tuple(
            (
                source,
                *(self.scored.counts[source, judged] for judged in JUDGED),
                *self.shares(source).values(),
                self.scored.f1(source),
            )
            for source in SOURCES
        )
        left_out = self.left_out()
        notes = [self._accuracy(), *([f"{left_out}."] if left_out else [])]
        notes += [] if self.groups is None else [self.groups.words()]
        shares = (Column(name, unit="%") for name in ("precision", "recall", "f1"))
        return (Table(("truth", *JUDGED, *shares), rows, notes=tuple(notes)),)

    def _accuracy(self) -> str:
        ends = self.scored.interval()
        interval = "" if ends is None else f" (95 % interval {_percent(ends[0])} to {_percent(ends[1])})"
        return (
            f"Accuracy {_percent(self.scored.accuracy)}{interval}, {self.scored.right:,} of "
            f"{self.scored.images:,} right, truth by {self.truth.origin}. Columns say what images of a class "
            "were taken for; shares are percent, in brackets 95 % intervals."
        )

    def lead(self) -> str:
        """The accuracy in a sentence; empty where no image is scored."""
        if not self.scored.images:
            return ""
        ends = self.scored.interval()
        interval = "" if ends is None else f" ({_percent(ends[0])}–{_percent(ends[1])})"
        verdicts = f"{self.scored.right:,} of {self.scored.images:,} verdicts are right"
        return f"{verdicts}: accuracy {_percent(self.scored.accuracy)} %{interval}."

    def left_out(self) -> str:
        """In words: images that are in no score, or wrong without being taken for the other class."""
        counts = (
            (self.scored.unparseable, "unparseable, counted as wrong"),
            (self.missing or 0, "not judged yet, not scored"),
            (self.without_answer, "without an answer, not scored"),
            (self.without_truth, "without a known truth, not scored"),
            (self.truth.unused, "of the truth not in this run"),
        )
        return "; ".join(f"{number:,} {what}" for number, what in counts if number)


def score(records: Iterable[Detection], truth: SourceTruth, images: int | None = None) -> DetectScore:
    """A verdict counts although the second turn failed; without a verdict nothing was measured.

    `images` are those of the run, with or without a record.
    """
    pairs: list[tuple[Source, Judged]] = []
    scored: list[Detection] = []
    recorded = 0
    without_answer = without_truth = 0
    for record in records:
        recorded += 1
        source = truth.sources.get(record.image)
        if source is None:
            without_truth += 1
        elif record.verdict is None:
            without_answer += 1
        else:
            pairs.append((source, record.source or "unparseable"))
            scored.append(record)
    groups = image_groups(scored)
    codes = None if groups is None else groups.codes
    return DetectScore(
        accuracy(pairs, codes),
        _shares(pairs, codes),
        truth,
        without_answer,
        without_truth,
        None if images is None else images - recorded,
        groups,
    )


def _shares(pairs: Sequence[tuple[Source, Judged]], groups: Codes | None) -> dict[Source, dict[str, Share]]:
    """Precision and recall of each class."""
    true, judged = (np.array([pair[side] for pair in pairs], dtype=np.str_) for side in (0, 1))

    def share(right: Bools, rows: Bools) -> Share:
        return share_of(right[rows], None if groups is None else groups[rows])

    return {
        source: {
            "precision": share(true == source, judged == source),
            "recall": share(judged == source, true == source),
        }
        for source in SOURCES
    }


def _percent(share: float | None) -> str:
    return MISSING if share is None else f"{100 * share:.1f}"


@dataclass(frozen=True, slots=True, repr=False)
class DetectComparison(RowsResult):
    """One or several models on the same images: `scores` by model, None where no truth is known.

    `verdicts` counts what images were taken for, with or without a truth. `tests` compare each two models on
    the images that both judged and whose source is known; `groups` of them are taken together.
    """

    columns: ClassVar = MODEL_COLUMNS

    verdicts: Mapping[str, Mapping[Judged, int]]
    scores: Mapping[str, DetectScore | None]
    tests: tuple[PairedTest, ...]
    groups: ImageGroups | None = None

    def __getitem__(self, model: str) -> DetectScore | None:
        return self.scores[model]

    def ranked(self) -> list[str]:
        """The models by accuracy, best first; those without one last, in their order."""

        def key(name: str) -> float:
            score = self.scores[name]
            value = None if score is None else score.accuracy.value
            return 1.0 if value is None else -value

        return sorted(self.verdicts, key=key)

    def headline(self) -> str:
        """Who leads by accuracy, by the tests of the tables; empty where no truth is known."""
        shares = {name: each.accuracy for name in self.ranked() if (each := self.scores[name]) is not None}
        words = {name: percent_words(share) for name, share in shares.items() if share.value is not None}
        tests = [Versus(each.first, each.second, each.difference, each.adjusted_p) for each in self.tests]
        return ranking(words, tests, what="accuracy")

    def tables(self) -> tuple[Table, ...]:
        """A line a model, best first, with the accuracy where the truth is known; then each two models.

        Of a single model the second table has a line a class.
        """
        known = any(score is not None for score in self.scores.values())
        rows: list[tuple[Cell, ...]] = []
        notes: list[str] = []
        for name in self.ranked():
            score = self.scores[name]
            cells: list[Cell] = [name, *(self.verdicts[name].get(judged, 0) for judged in JUDGED)]
            if known and score is None:
                cells += [None] * (len(SOURCES) + 1)
            elif score is not None:
                cells += [*(score.shares(source)["recall"] for source in SOURCES), score.accuracy]
                notes += [f"{name}: {left}" for left in [score.left_out()] if left]
            rows.append(tuple(cells))
        shares = [Column(f"recall {source}", unit="%", better="higher") for source in SOURCES]
        columns = (*shares, Column("accuracy", unit="%", better="higher")) if known else ()
        notes += [] if self.groups is None else [self.groups.words()]
        notes += ["Percent, in brackets 95 % intervals (Wilson)."] if known else []
        pairs = paired_table(self.tests, self.ranked(), "source", "images")
        if len(self.scores) > 1 and (said := self.headline()):
            notes.insert(0, said)
        main = Table(("model", *JUDGED, *columns), tuple(rows), notes=tuple(notes))
        alone = next(iter(self.scores.values())) if len(self.scores) == 1 else None
        if alone is not None:
            return (replace(main, notes=main.notes[-1:]), *alone.tables())
        return (main, *([] if pairs is None else [pairs]))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Of each model a row a class, and one of `all` images that are scored, with the accuracy.

        Of a model whose images nobody knows the source of there is one row, without a source: what they were
        taken for.
        """
        for name in self.ranked():
            score = self.scores[name]
            if score is None:
                yield {"model": name, "source": None, **_taken(self.verdicts[name])}
                continue
            counts = score.scored.counts
            for source in SOURCES:
                shares = with_ends(score.shares(source))
                taken = _taken({judged: counts[source, judged] for judged in JUDGED})
                yield {"model": name, "source": source, **taken, **shares, "f1": score.scored.f1(source)}
            taken = _taken({judged: sum(counts[source, judged] for source in SOURCES) for judged in JUDGED})
            yield {"model": name, "source": "all", **taken, **with_ends({"accuracy": score.accuracy})}

    def to_json(self) -> dict[str, Any]:
        """`scores`, by model, None without a truth; under `mcnemar` each two of several models."""
        scores = {name: None if score is None else score.to_json() for name, score in self.scores.items()}
        tests = [{"models": [each.first, each.second], **each.to_json()} for each in self.tests]
        return {"scores": scores, "mcnemar": tests}


def _taken(counts: Mapping[Judged, int]) -> dict[str, int]:
    return {judged: counts[judged] for judged in JUDGED}


def detect_scores(
    runs: Mapping[str, DetectRun | str | os.PathLike[str]], truth: Truth | None = None
) -> DetectComparison:
    """Score runs of `detect` over the same images side by side, as `uncanny detect` does with several models.

    `runs` are runs or their folders, each under the name it is shown as. `truth` is that of `run.score`: a
    file, `scenes`, or a mapping from image to `generated` or `real`; without it each run has its own, and is
    not scored where it has none.

    Raises UsageError for no runs, for a folder that is not a run of `detect`, and for a ground truth that
    cannot be read or has none of these images.

    >>> run = uncanny.detect("scenes", model="demo", out=out)
    >>> scores = uncanny.detect_scores({"demo": run})
    >>> scores["demo"].scored.right
    30
    >>> scores.to_csv().splitlines()[3].split(",")[:5]
    ['demo', 'all', '15', '18', '1']
    """
    from uncanny.eval.detect.run import DetectRun

    if not isinstance(runs, Mapping):
        raise UsageError(f"{option('runs')} must be a mapping from name to run, not {shown(runs)}")
    if not runs:
        raise UsageError(f"{option('runs')} must not be empty", remedy="Pass at least one run.")
    check_records(list(runs), str, what=f"{option('runs')} must have texts for names")
    opened = {
        name: run if isinstance(run, DetectRun) else DetectRun(path_of("run", run))
        for name, run in runs.items()
    }
    if truth is not None:
        opened = {name: run.with_truth(truth) for name, run in opened.items()}
    return compare_runs(opened)


def compare_runs(runs: Mapping[str, DetectRun]) -> DetectComparison:
    """Runs of several models over the same images, by model."""
    truths = [run.truth for run in runs.values() if run.truth is not None]
    known = set().union(*(truth.sources for truth in truths))
    records = {each.image: each for run in runs.values() for each in run.detections if each.image in known}
    images = {image: place for place, image in enumerate(records)}
    right = np.zeros((len(runs), len(images)), dtype=np.bool_)
    judged = np.zeros_like(right)
    for row, run in enumerate(runs.values()):
        for record in run.detections if run.truth is not None else ():
            source = None if run.truth is None else run.truth.sources.get(record.image)
            if source is not None and record.verdict is not None:
                judged[row, images[record.image]] = True
                right[row, images[record.image]] = record.source == source
    groups = image_groups(records.values()) if len(runs) > 1 else None
    return DetectComparison(
        {name: run.verdicts() for name, run in runs.items()},
        {name: None if run.truth is None else run.score() for name, run in runs.items()},
        tuple(paired_tests(list(runs), right, judged, None if groups is None else groups.codes))
        if images
        else (),
        groups,
    )
