"""What people's judgements of edited images and originals come to, beside a detector's.

Source: SAGI, supplementary, sections 1.7 and 3.3, tables 7 to 9. Accuracy is over judgements, IoU over edited
images. Deviations: IoU is against the mask itself, and beside it, as in the paper, against the mask turned
into boxes, one a connected part; an edit that is judged real has no boxes and counts as IoU 0, which the
paper leaves open, and `found_iou` leaves it out. P-values of the questionnaire are corrected for the number
of columns.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np

from uncanny.errors import UsageError
from uncanny.eval.common.estimates import Estimate, shares_of
from uncanny.eval.common.groups import ORIGINAL_COLUMNS, ImageGroups
from uncanny.eval.common.pixels.crops import Crop, Mask, crop
from uncanny.eval.common.pixels.masks import component_crops
from uncanny.eval.common.pixels.shapes import box_crop
from uncanny.eval.edits.data import EditFiles, EditSet, EditSource, from_cell, load, read_masks
from uncanny.eval.edits.parameters import PeopleParameters
from uncanny.eval.edits.people.data import Judgement, Profile, Side, Verdict, read_judgements, replaced
from uncanny.eval.edits.people.result import Detector, Figures, Left, PeopleScores
from uncanny.eval.edits.presets import PRESETS, level_of
from uncanny.eval.edits.stress.data import (
    GENERATED,
    REAL,
    Source,
    join,
    named_sources,
    read_edits,
    read_predictions,
    refuse,
)
from uncanny.eval.edits.stress.localize import Located, localize, mean_iou
from uncanny.eval.metrics.association import questionnaire
from uncanny.eval.metrics.intervals import Ints, group_codes, ratio
from uncanny.eval.metrics.regions import region_counts
from uncanny.eval.metrics.significance import krippendorff_alpha
from uncanny.parameters import check_records, takes

PeopleSource = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_PEOPLE: Final = "What people said is a run folder or a file, or several of them"
# What edits are told apart by besides the columns that are asked for.
_FACTORS: Final = ("method", "model", "dataset")
_GROUP_RESAMPLES: Final = 2_000
_ORDER: Final[Mapping[str, int]] = {"small": 0, "medium": 1, "large": 2}
_OF_ORIGINAL: Final[Mapping[Verdict | None, int]] = {"edited": 1, "real": 3, None: 4}


class _Key(NamedTuple):
    """One image: an edit by its id, an original, which several edits may have, by its file."""

    shown: Side
    name: str


class _Row(NamedTuple):
    """One judgement; `judged` is None of a detector that says neither. IoUs are None where unmeasured."""

    image: _Key
    judged: Verdict | None
    iou: float | None = None
    box_iou: float | None = None
    located: bool = False


@takes(PeopleParameters)
def score_people(pairs: EditSource, people: PeopleSource, parameters: PeopleParameters) -> PeopleScores:
    """Score people who judged the images of `pairs`: each person and all together, by method, model and size.

    `pairs` are as in `load`: what `measure` has written brings bins of size along. `people` are run folders
    of `uncanny edits people`, or files of `Judgement` records. `predictions` are as in `stress`. Where a
    person has judged an image twice, the last time counts; people of the same name in two of them are two
    people. A judgement of an image that was replaced since does not count. Intervals take an original and its
    edits as a whole.

    Raises UsageError for what cannot be read, where nothing was judged, and where no judgement is of an image
    of the pairs; ItemsError with all that is wrong in files.

    >>> line = '{"id": "1", "shown": "%s", "image": "", "person": "ann", "judged": "edited"}'
    >>> lines = [line % shown for shown in ("original", "edited")]
    >>> written = (folder / "judgements.jsonl").write_text(chr(10).join(lines))
    >>> pairs = [uncanny.edits.EditPair(id="1", original="original.png", edited="edited.png")]
    >>> scores = uncanny.edits.score_people(pairs, folder / "judgements.jsonl")
    >>> scores.people["ann"].accuracy.value, scores.people["ann"].recall.value
    (0.5, 1.0)
    """
    paths = (str, os.PathLike)
    sources = [people] if isinstance(people, paths) else check_records(people, paths, what=_PEOPLE)
    predictions = parameters.predictions
    if predictions is None or (isinstance(predictions, Mapping) and not predictions):
        predicted: Mapping[str, Source] = {}
    else:
        predicted = named_sources(predictions)
    recorded, profiles = read_judgements([Path(each) for each in sources])
    task = _Task(load(pairs, root=parameters.root), parameters.resamples, parameters.seed)
    judgements, left = task.known(recorded)
    if not judgements:
        raise UsageError(
            "None of the judgements is about an image of these pairs",
            remedy="Pass the pairs that were shown.",
        )
    by_person: dict[str, list[Judgement]] = defaultdict(list)
    for each in judgements:
        by_person[each.person].append(each)
    rows = {person: [task.row(each) for each in own] for person, own in by_person.items()}
    everything = [row for own in rows.values() for row in own]
    seconds = {
        person: [each.seconds for each in own if each.seconds is not None]
        for person, own in by_person.items()
    }
    votes = task.votes(everything)
    majority = [_Row(image, verdict) for image, each in votes.items() if (verdict := _most(each)) is not None]
    detectors, problems = {}, []
    for name, source in predicted.items():
        scored, wrong = task.detector(name, source, parameters.threshold, set(votes))
        problems += wrong
        if scored is not None:
            detectors[name] = scored
    refuse(problems, list(predicted))
    return PeopleScores(
        people={person: task.figures(own, seconds=seconds[person]) for person, own in sorted(rows.items())},
        together=task.figures(everything, seconds=[each for own in seconds.values() for each in own]),
        majority=task.figures(majority, located=False),
        ties=sum(_most(each) is None for each in votes.values()),
        agreement=krippendorff_alpha(votes.values()),
        factors=task.factors(everything, parameters),
        detectors=detectors,
        questionnaire=questionnaire(
            [each.person for each in judgements],
            [each.judged == _truth(each.shown) for each in judgements],
            _answers(profiles),
            least_answers=parameters.least_answers,
            seed=parameters.seed,
        ),
        least_answers=parameters.least_answers,
        left=left,
        pairs=task.pairs,
        grouped=ImageGroups.of(ORIGINAL_COLUMNS[0], task.originals(votes)),
        judgements=tuple(judgements),
        resamples=parameters.resamples,
        seed=parameters.seed,
    )


def _answers(profiles: Sequence[Profile]) -> dict[str, dict[str, str | None]]:
    """By column what each person said, by the last word."""
    last = {profile.person: profile for profile in profiles}
    columns = dict.fromkeys(name for profile in last.values() for name in profile.answers)
    return {
        column: {person: profile.answers.get(column) for person, profile in last.items()}
        for column in columns
    }


def _truth(shown: Side) -> Verdict:
    return "edited" if shown == "edited" else "real"


def _most(votes: Counter[str]) -> Verdict | None:
    """What most people say of an image; None for a tie."""
    edited, real = votes["edited"], votes["real"]
    return None if edited == real else "edited" if edited > real else "real"


def box_ious(
    boxes: Sequence[Sequence[float]], mask: Mask, *, parts: Sequence[Crop] | None = None
) -> tuple[float, float]:
    """IoU of the union of `boxes` with a mask that is not empty, and with the mask turned into boxes; 0–1.

    Boxes are x0, y0, x1, y1 in pixels, x1 and y1 excluded. Without any both are 0. `parts` are the mask's
    connected parts (8 neighbours), of which each becomes its box; they are found where they are not given.
    """
    size = (mask.shape[1], mask.shape[0])
    drawn = [box_crop(box, size) for box in boxes]
    if parts is None:
        parts = component_crops(crop(mask), 8)
    shapes = ([crop(mask)], [box_crop(part.box, size) for part in parts])
    counts = [region_counts(drawn, shape) for shape in shapes]
    first, second = (each.both / (each.predicted + each.true - each.both) for each in counts)
    return first, second


@dataclass(eq=False)
class _Task:
    """The pairs, and what figures are made with."""

    pairs: EditSet
    resamples: int
    seed: int
    _by_id: dict[str, EditFiles] = field(init=False)
    _masks: dict[str, tuple[Mask, Sequence[Crop]] | str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._by_id = {each.id: each for each in self.pairs}

    def key(self, pair: str, shown: Side) -> _Key:
        return _Key(shown, pair if shown == "edited" else str(self._by_id[pair].original))

    def originals(self, images: Iterable[_Key]) -> list[str]:
        """What images belong together by: the file of an original, its own and of each of its edits."""
        return [
            str(self._by_id[image.name].original) if image.shown == "edited" else image.name
            for image in images
        ]

    def known(self, recorded: Sequence[Judgement]) -> tuple[list[Judgement], Left]:
        """The judgements that count, the last of each person and image, and what does not."""
        last: dict[tuple[str, _Key], Judgement] = {}
        unknown, stale, repeated = Counter[str](), 0, 0
        failed: dict[tuple[str, _Key], Judgement] = {}
        for each, is_stale in zip(recorded, replaced(recorded, self._by_id), strict=True):
            if each.id not in self._by_id:
                unknown[each.id] += 1
                continue
            at = (each.person, self.key(each.id, each.shown))
            if each.judged is None:
                failed[at] = each
            elif is_stale:
                stale += 1
            else:
                repeated += at in last
                last.pop(at, None)
                last[at] = each
        unjudged = [each for at, each in failed.items() if at not in last]
        judgements = list(last.values())
        seen = {self.key(each.id, each.shown) for each in judgements}
        every = {self.key(each.id, shown) for each in self.pairs for shown in ("original", "edited")}
        left = Left(tuple(unknown), unknown.total(), len(unjudged), stale, repeated, len(every - seen))
        return judgements, left

    def row(self, judgement: Judgement) -> _Row:
        key = self.key(judgement.id, judgement.shown)
        if judgement.shown == "original":
            return _Row(key, judgement.judged)
        mask = self.mask(judgement.id)
        boxes = judgement.boxes or ()
        if isinstance(mask, str) or not _fits(judgement, mask[0]):
            return _Row(key, judgement.judged, located=bool(boxes))
        iou, box_iou = box_ious(boxes, mask[0], parts=mask[1])
        return _Row(key, judgement.judged, iou, box_iou, bool(boxes))

    def mask(self, pair: str) -> tuple[Mask, Sequence[Crop]] | str:
        """The mask of an edit with its connected parts, or why there is none to compare with."""
        if pair not in self._masks:
            self._masks[pair] = self._read_mask(self._by_id[pair])
        return self._masks[pair]

    def _read_mask(self, files: EditFiles) -> tuple[Mask, Sequence[Crop]] | str:
        if not files.masks:
            return "the edit has no mask"
        try:
            mask = read_masks(files.masks)
        except UsageError as error:
            return error.message
        return (mask, component_crops(crop(mask), 8)) if mask.any() else "the mask is empty"

    def votes(self, rows: Iterable[_Row]) -> dict[_Key, Counter[str]]:
        votes: dict[_Key, Counter[str]] = defaultdict(Counter)
        for row in rows:
            if row.judged is not None:
                votes[row.image][row.judged] += 1
        return votes

    def figures(
        self,
        rows: Sequence[_Row],
        *,
        seconds: Sequence[float] = (),
        located: bool = True,
        most_resamples: int | None = None,
    ) -> Figures:
        """All figures of these judgements; originals are resampled, each together with its edits."""
        resamples = min(self.resamples, most_resamples or self.resamples)
        images = {image: place for place, image in enumerate(dict.fromkeys(row.image for row in rows))}
        # True and false positives, false and true negatives; an edit is positive. An original that a detector
        # says nothing clear of is wrong, and no positive.
        counts: Ints = np.zeros((5, len(images)), dtype=np.int16)
        for row in rows:
            edited = row.image.shown == "edited"
            column = (0 if row.judged == "edited" else 2) if edited else _OF_ORIGINAL[row.judged]
            counts[column, images[row.image]] += 1
        tp, fp, fn, tn, unclear = counts
        ratios = [
            ratio(tp + tn, counts.sum(axis=0)),
            ratio(tp, tp + fp),
            ratio(tp, tp + fn),
            ratio(tn, tn + fp + unclear),
            ratio(2 * tp, 2 * tp + fp + fn),
        ]
        groups = group_codes(self.originals(images))
        accuracy, precision, recall, specificity, f1 = shares_of(
            ratios, groups, resamples=resamples, seed=self.seed
        )
        has_edits = bool((tp + fn).any())
        on_edits = [row for row in rows if row.image.shown == "edited"]
        measured = [row for row in on_edits if row.iou is not None]
        by_name: Mapping[str, Callable[[_Row], float | None]] = {
            "iou": lambda row: row.iou,
            "box_iou": lambda row: row.box_iou,
            "found_iou": lambda row: row.iou if row.located else None,
        }
        ious = {
            name: self._mean(measured, value, resamples) if located else Estimate(None)
            for name, value in by_name.items()
        }
        return Figures(
            judged=len(rows),
            images=len(images),
            unclear=sum(row.judged is None for row in rows),
            accuracy=accuracy,
            precision=precision,
            recall=recall,
            specificity=specificity,
            f1=Estimate(f1.value, f1.interval) if has_edits else Estimate(None),
            **ious,
            with_iou=len(measured) if located else 0,
            without_iou=sum(row.iou is None and row.image.shown == "edited" for row in rows)
            if located
            else 0,
            boxed=sum(row.located for row in rows),
            seconds=median(seconds) if seconds else None,
        )

    def _mean(self, rows: Sequence[_Row], value: Callable[[_Row], float | None], resamples: int) -> Estimate:
        """The mean over images of the mean of those who judged them."""
        by_image: dict[_Key, list[float]] = defaultdict(list)
        for row in rows:
            if (measured := value(row)) is not None:
                by_image[row.image].append(measured)
        values = np.array([sum(each) / len(each) for each in by_image.values()])
        groups = group_codes(self.originals(by_image))
        return mean_iou(values, groups=groups, resamples=resamples, seed=self.seed)

    def factors(self, rows: Sequence[_Row], parameters: PeopleParameters) -> dict[str, dict[str, Figures]]:
        """By what is known of the pairs: the judgements of a group's edits and of their originals."""
        groups: dict[str, dict[str, set[_Key]]] = {}
        columns = {name for each in self.pairs for name, cell in each.pair if cell is not None}
        for each in self.pairs:
            for factor, level in self._levels(each, columns, parameters):
                images = groups.setdefault(factor, {}).setdefault(level, set())
                images |= {self.key(each.id, "edited"), self.key(each.id, "original")}
        missing = [name for name in parameters.by if name not in groups]
        if missing:
            preset = PRESETS.get(missing[0])
            remedy = "Pass one that they have." if preset is None else preset.remedy
            raise UsageError(f"The pairs have no column {missing[0]}", remedy=remedy)
        return {
            factor: {
                level: self.figures(
                    [row for row in rows if row.image in images], most_resamples=_GROUP_RESAMPLES
                )
                for level, images in sorted(
                    levels.items(), key=lambda each: (_ORDER.get(each[0], 0), each[0])
                )
            }
            for factor, levels in groups.items()
        }

    def _levels(
        self, each: EditFiles, columns: set[str], parameters: PeopleParameters
    ) -> Iterable[tuple[str, str]]:
        extra = each.pair.model_extra or {}
        row = dict(each.pair)
        for name in dict.fromkeys((*_FACTORS, *parameters.by)):
            level = level_of(name, row, columns, parameters.in_domain)
            if level is not None:
                yield name, level
        bins = from_cell(extra.get("bins"))
        if isinstance(bins, Mapping):
            yield from ((str(name), str(level)) for name, level in bins.items() if level is not None)

    def detector(
        self, name: str, source: Source, threshold: float | None, seen: set[_Key]
    ) -> tuple[Detector | None, list[Any]]:
        """A detector on the images that people have judged."""
        predictions, problems = read_predictions(source, threshold, what=name)
        table = [
            {"id": each.id, "original": each.pair.original, "edited": each.pair.edited} for each in self.pairs
        ]
        edits, wrong = read_edits([table])
        problems += wrong
        if problems:
            return None, problems
        joined = join(predictions, edits)
        by_name = {each.pair.original: self.key(each.id, "original") for each in self.pairs}
        by_name |= {each.pair.edited: self.key(each.id, "edited") for each in self.pairs}
        scored: list[tuple[_Key, int]] = [
            (key, predicted)
            for predicted, known in zip(joined.predicted.tolist(), joined.known.tolist(), strict=True)
            if (key := by_name[edits.images[known]]) in seen
        ]
        ious = self._detector_ious(scored, predictions)
        verdicts: dict[int, Verdict] = {GENERATED: "edited", REAL: "real"}
        rows = [
            _Row(key, verdicts.get(int(predictions.verdicts[predicted])), ious.get(key))
            for key, predicted in scored
        ]
        figures = self.figures(rows, located=bool(ious))
        return Detector(figures, len(seen) - len(rows), len(joined.only_predicted)), []

    def _detector_ious(self, scored: Sequence[tuple[_Key, int]], predictions: Any) -> dict[_Key, float]:
        located = []
        for key, predicted in scored:
            if key.shown != "edited" or not self._by_id[key.name].masks:
                continue
            heat_map, mask = predictions.heat_maps[predicted], predictions.masks[predicted]
            if heat_map is not None or mask is not None:
                truth = [
                    str(each) if isinstance(each, Path) else each for each in self._by_id[key.name].masks
                ]
                located.append((key, Located(key.name, truth, heat_map, mask, Path(), predictions.root)))
        _, placed = localize([each for _, each in located], threshold=0.5, resamples=0, seed=self.seed)
        return {key: iou for (key, _), iou in zip(located, placed.ious.tolist(), strict=True) if iou == iou}


def _fits(judgement: Judgement, mask: Mask) -> bool:
    """Whether boxes and mask count the same pixels; files of other tools may not say."""
    size = (judgement.width, judgement.height)
    return None in size or size == (mask.shape[1], mask.shape[0])
