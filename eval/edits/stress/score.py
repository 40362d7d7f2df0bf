"""From predictions and metadata to a stress table: where does a detector miss edits?

Sources: Semi-Truths, section 4 and appendix F (precision, recall and F1 by class and, as `all`, their mean;
recall of the edited images by size, source, method, model and directional edit), SAGI, supplementary, section
3 (AUC, IoU, compression). Where this differs: shares come with intervals, differences with tests, a group is
never without its size, and edits that no table describes are a group of their own, not left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import Problem, UsageError
from uncanny.eval.common.estimates import Estimate, Share, share_of
from uncanny.eval.common.groups import IMAGE, ImageGroups
from uncanny.eval.edits.parameters import StressParameters
from uncanny.eval.edits.presets import columns_for
from uncanny.eval.edits.stress.ask import Asked, ask_detectors, detector_names
from uncanny.eval.edits.stress.condition import (
    CODES,
    ConditionScore,
    Coverage,
    DetectorScore,
    Paired,
    class_scores,
)
from uncanny.eval.edits.stress.data import (
    AS_GIVEN,
    GENERATED,
    NONE,
    Edits,
    Joined,
    Predictions,
    Source,
    by_detector,
    is_rows,
    join,
    named_sources,
    read_edits,
    read_predictions,
    refuse,
)
from uncanny.eval.edits.stress.factors import Factor, Group, Grouping, PairTest, groupings, image_codes
from uncanny.eval.edits.stress.localize import Located, Placed, localize, mean_iou
from uncanny.eval.edits.stress.result import StressResult
from uncanny.eval.metrics.association import against_the_rest, association, holm
from uncanny.eval.metrics.auc import auc, average_precision
from uncanny.eval.metrics.detection import Accuracy
from uncanny.eval.metrics.intervals import (
    Bools,
    Codes,
    Floats,
    effective_size,
    group_codes,
    sums_by_group,
)
from uncanny.eval.metrics.paired import ImageClass, PairedTest, paired_tests_by_class
from uncanny.eval.metrics.significance import group_sign_test, mcnemar_exact
from uncanny.parameters import takes
from uncanny.schema import Source as SourceName
from uncanny.wording import option

# Of more groups there is no common test: one of each against the rest says more.
MOST_TESTED: Final = 50
# IoU of a group is resampled so often: there may be hundreds of groups.
_GROUP_RESAMPLES: Final = 1_000


@takes(StressParameters, optional=True)
def stress(
    predictions: Source | Sequence[Source] | Mapping[str, Source] | None, parameters: StressParameters
) -> StressResult:
    """Show which edits detectors miss, as `uncanny edits stress` does.

    `predictions` are files (JSON Lines, CSV, Parquet), run folders of `detect`, or data frames, one or
    several; a mapping gives each a name. A name is that of a detector, `DETECTOR@CONDITION` for its
    predictions on changed copies of the same images, or such a condition alone, as `jpeg-85`, where there is
    one detector. Detectors that are named as `detector` are asked here, about all images of the metadata as
    they are and under each of the `conditions`, and their predictions kept in `detections`; `predictions` may
    then be left out. `meta` are tables of the same kinds, or what `edits.measure` returns, one or several.

    Raises ItemsError with all that is wrong in the tables, and UsageError for what cannot be read, a folder
    without a detector, or where predictions and metadata have no image in common.

    >>> meta = [{"original": "a.png", "edited": "b.png", "mask_ratio": 0.1, "method": "inpainting"}]
    >>> seen = [{"image": "a.png", "score": 0.2}, {"image": "b.png", "score": 0.7}]
    >>> scores = uncanny.edits.stress({"mine": seen}, meta=[meta])
    >>> scores["mine"].factor("method")["inpainting"].recall.counts
    1
    """
    group_by = parameters.group_by
    root = None if parameters.root is None else Path(parameters.root)
    if predictions is None and not parameters.detector:
        raise UsageError(
            "There are no predictions", remedy=f"Give a file, or a detector with {option('detector')}."
        )
    named = {} if predictions is None else by_detector(named_sources(predictions))
    meta = parameters.meta
    tables = meta if isinstance(meta, list | tuple) and not is_rows(meta) else [meta]
    grouping = [] if group_by in (None, IMAGE) else [str(group_by)]
    edits, problems = read_edits(tables, (*columns_for(parameters.by), *grouping), root)
    asked: dict[str, dict[str, Asked]] = {}
    if parameters.detector:
        detector_names(parameters.detector, named)
        refuse(problems, edits.places)
        asked = ask_detectors(edits, parameters)
    return _score_all(named, asked, edits, problems, parameters)


def _score_all(
    named: Mapping[str, Mapping[str, Source]],
    asked: Mapping[str, Mapping[str, Asked]],
    edits: Edits,
    problems: list[Problem],
    parameters: StressParameters,
) -> StressResult:
    threshold, group_by = parameters.threshold, parameters.group_by
    root = None if parameters.root is None else Path(parameters.root)
    read: dict[str, dict[str, Predictions]] = {}
    for detector, conditions in {**named, **asked}.items():
        read[detector] = {}
        for condition, given in conditions.items():
            what = detector if condition == AS_GIVEN else f"{detector}@{condition}"
            # What was asked here has its paths from its own folder.
            own, source = given if isinstance(given, Asked) else (root, given)
            read[detector][condition], wrong = read_predictions(source, threshold, own, what=what)
            problems += wrong
    refuse(problems, [*edits.places, *(each.place for some in read.values() for each in some.values())])
    groups = edits.groups(group_by)
    task = _Task(edits, groupings(edits, parameters), groups, parameters)
    scored = {
        name: {condition: task.condition(each) for condition, each in conditions.items()}
        for name, conditions in read.items()
    }
    return StressResult(
        {name: task.detector(name, conditions) for name, conditions in scored.items()},
        edits,
        read,
        tests=task.tests({name: each[AS_GIVEN] for name, each in scored.items() if AS_GIVEN in each}),
        groups=groups,
        least_edits=parameters.least_edits,
        resamples=parameters.resamples,
        seed=parameters.seed,
        published=parameters.published,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """One condition's arrays: an entry an image that is in the figures."""

    score: ConditionScore
    known: NDArray[np.int64]
    right: Bools


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """The edits of one condition, an entry an edit: where they are in the metadata and what came of them.

    `scores` and `placements` are NaN where there is none. `real` are the real images with a score, by their
    places in the metadata, and `real_scores` theirs. `groups` say which edits belong together.
    """

    known: NDArray[np.int64]
    hits: Bools
    scores: Floats
    placements: Floats
    placed: Placed
    real: NDArray[np.int64]
    real_scores: Floats
    groups: Codes | None


@dataclass(frozen=True, slots=True)
class _Task:
    """What all detectors and conditions are scored with."""

    edits: Edits
    groupings: Sequence[Grouping]
    groups: ImageGroups | None
    parameters: StressParameters

    @property
    def drawn(self) -> tuple[int, int]:
        """Resamples and seed."""
        return self.parameters.resamples, self.parameters.seed

    def _size(self, right: Bools, images: NDArray[np.int64]) -> float | None:
        """How many independent images say as much of the accuracy."""
        codes = self.codes(images)
        if codes is None or not len(codes):
            return None
        return effective_size(sums_by_group(right, codes), sums_by_group(np.ones(len(codes)), codes))

    def codes(self, images: NDArray[np.int64]) -> Codes | None:
        """The groups of some of the images; None where all images are by themselves."""
        return None if self.groups is None else self.groups.codes[images]

    def tests(self, detectors: Mapping[str, _Scored]) -> dict[ImageClass, list[PairedTest]]:
        """Each two detectors on the images as given that both judged."""
        known = np.flatnonzero(self.edits.truth != NONE)
        right = np.zeros((len(detectors), len(self.edits.truth)), dtype=np.bool_)
        answered = np.zeros_like(right)
        for row, each in enumerate(detectors.values()):
            answered[row, each.known], right[row, each.known] = True, each.right
        generated = self.edits.truth[known] == GENERATED
        return paired_tests_by_class(
            list(detectors), right[:, known], answered[:, known], generated, self.codes(known)
        )

    def detector(self, name: str, scored: Mapping[str, _Scored]) -> DetectorScore:
        first = next(iter(scored))
        others = [condition for condition in scored if condition != first]
        compared = [self._paired(scored[first], scored[other]) for other in others]
        adjusted = holm([each.p_value for each in compared])
        return DetectorScore(
            name,
            {condition: each.score for condition, each in scored.items()},
            {
                other: replace(each, adjusted_p=p)
                for other, each, p in zip(others, compared, adjusted, strict=True)
            },
        )

    def condition(self, predictions: Predictions) -> _Scored:
        joined = join(predictions, self.edits)
        if self.parameters.balanced:
            joined = joined.balanced(self.edits, self.parameters.seed)
        truth = self.edits.truth[joined.known]
        verdicts, scores = predictions.verdicts[joined.predicted], predictions.scores[joined.predicted]
        generated = truth == GENERATED
        cells = Counter(zip(truth.tolist(), verdicts.tolist(), strict=True))
        accuracy = Accuracy(
            Counter({(_source(true), CODES[judged]): count for (true, judged), count in cells.items()}),
            self._size(truth == verdicts, joined.known),
        )
        scored = ~np.isnan(scores)
        area = auc(scores[scored], generated[scored])
        placements = np.full(len(truth), np.nan)
        placements[scored & generated] = area.placements
        localization, placed = self._localize(predictions, joined, generated)
        hits = verdicts == GENERATED
        edited = joined.known[generated]
        judged = _Judged(
            edited,
            hits[generated],
            scores[generated],
            placements[generated],
            placed,
            joined.known[scored & ~generated],
            scores[scored & ~generated],
            self.codes(edited),
        )
        factors = self._factors(judged)
        return _Scored(
            ConditionScore(
                accuracy,
                class_scores(accuracy, truth, verdicts, self.codes(joined.known), *self.drawn),
                area,
                average_precision(
                    scores[scored],
                    generated[scored],
                    groups=self._densely(joined.known[scored]),
                    resamples=self._few,
                    seed=self.parameters.seed,
                ),
                localization,
                factors,
                Coverage.of(predictions, joined),
                predictions.threshold,
                np.stack([joined.known, joined.predicted])[:, generated & (verdicts != GENERATED)],
            ),
            joined.known,
            verdicts == truth,
        )

    def _densely(self, images: NDArray[np.int64]) -> Codes | None:
        """The groups of some of the images, numbered from 0 without a gap."""
        codes = self.codes(images)
        return None if codes is None else group_codes(codes.tolist())

    def _localize(self, predictions: Predictions, joined: Joined, generated: Bools) -> tuple[Any, Placed]:
        """The figures, and what was measured of each edit."""
        masks = self.edits.column("mask")
        predicted, known = joined.predicted[generated], joined.known[generated]
        some = [
            place
            for place, ours in enumerate(predicted.tolist())
            if predictions.heat_maps[ours] is not None or predictions.masks[ours] is not None
        ]
        located = [
            Located(
                predictions.images[ours],
                masks[self.edits.rows[theirs]],
                predictions.heat_maps[ours],
                predictions.masks[ours],
                self.edits.root,
                predictions.root,
            )
            for ours, theirs in zip(predicted[some].tolist(), known[some].tolist(), strict=True)
        ]
        localization, placed = localize(
            located,
            threshold=self.parameters.heat_map_threshold,
            resize=self.parameters.resize_maps,
            map_size=self.parameters.map_size,
            groups=self.codes(known[some]),
            resamples=self.parameters.resamples,
            seed=self.parameters.seed,
        )
        return localization, placed.among(np.array(some, dtype=np.int64), len(known))

    def _factors(self, judged: _Judged) -> dict[str, Factor]:
        rows = self.edits.rows[judged.known]
        factors = {
            grouping.name: self._factor(grouping, grouping.codes[rows], judged) for grouping in self.groupings
        }
        adjusted = holm([None if each.test is None else each.test.p_value for each in factors.values()])
        return {
            name: replace(each, adjusted_p=p)
            for (name, each), p in zip(factors.items(), adjusted, strict=True)
        }

    def _factor(self, grouping: Grouping, codes: NDArray[np.int64], judged: _Judged) -> Factor:
        order = np.argsort(codes, kind="stable")
        sorted_codes = codes[order]
        hits, placements, images = judged.hits, judged.placements, judged.groups

        def of(place: int) -> NDArray[np.int64]:
            """The edits of one group."""
            first, last = np.searchsorted(sorted_codes, [place, place + 1])
            return order[first:last]

        def recall(place: int) -> Share:
            return share_of(hits[of(place)], None if images is None else images[of(place)])

        kept = codes >= 0
        n = len(grouping.names)
        sizes = np.bincount(codes[kept], minlength=n)
        detected = np.bincount(codes[kept & hits], minlength=n)
        ranked = kept & ~np.isnan(placements)
        ranks = np.bincount(codes[ranked], minlength=n)
        sums = np.bincount(codes[ranked], weights=placements[ranked], minlength=n)
        within = self._aucs_within(grouping, codes, judged)
        p_values = holm([None if p != p else p for p in against_the_rest(detected, sizes).tolist()])
        groups = tuple(
            Group(
                name,
                recall(place),
                float(sums[place] / ranks[place]) if ranks[place] else None,
                self._iou(judged.placed.ious[of(place)], None if images is None else images[of(place)]),
                p_values[place],
                within.get(place),
                judged.placed.pixel_auc(of(place), images, resamples=self._few, seed=self.parameters.seed),
            )
            for place, name in enumerate(grouping.names)
            if sizes[place] or grouping.kind == "bins"
        )
        if grouping.kind == "phrases":
            groups = tuple(sorted(groups, key=lambda each: (each.recall.value or 0.0, -each.recall.out_of)))
        table = np.stack([detected, sizes - detected], axis=1)
        tested = grouping.kind != "phrases" and np.count_nonzero(sizes) <= MOST_TESTED
        return Factor(
            grouping.name,
            grouping.kind,
            groups,
            grouping.cutoffs,
            association(table, seed=self.parameters.seed) if tested else None,
            None,
            self._pairs(grouping, table) if grouping.kind == "bins" else (),
            recall(-1),
            int((codes == -2).sum()),
        )

    def _aucs_within(
        self, grouping: Grouping, codes: NDArray[np.int64], judged: _Judged
    ) -> dict[int, float | None]:
        """By group of a column that real images have, too: the AUC against those of the same group."""
        if grouping.kind != "levels" or len(grouping.names) > MOST_TESTED:
            return {}
        of_real = image_codes(grouping, self.edits)[judged.real]
        if not (of_real >= 0).any():
            return {}
        areas = {}
        for place in range(len(grouping.names)):
            edits = judged.scores[(codes == place) & ~np.isnan(judged.scores)]
            real = judged.real_scores[of_real == place]
            both = np.concatenate([edits, real])
            areas[place] = auc(both, np.arange(len(both)) < len(edits)).value
        return areas

    @property
    def _few(self) -> int:
        """Resamples of what there may be hundreds of."""
        return min(self.parameters.resamples, _GROUP_RESAMPLES)

    def _iou(self, ious: Floats, groups: Codes | None) -> Estimate | None:
        if np.isnan(ious).all():
            return None
        return mean_iou(ious, groups=groups, resamples=self._few, seed=self.parameters.seed)

    def _pairs(self, grouping: Grouping, table: NDArray[np.int64]) -> tuple[PairTest, ...]:
        places = list(combinations(range(len(grouping.names)), 2))
        tests = [association(table[list(pair)], seed=self.parameters.seed) for pair in places]
        adjusted = holm([test.p_value for test in tests])
        return tuple(
            PairTest(grouping.names[first], grouping.names[second], test, p)
            for (first, second), test, p in zip(places, tests, adjusted, strict=True)
        )

    def _paired(self, before: _Scored, after: _Scored) -> Paired:
        """Of the edits that both have a verdict on: found in one and not in the other."""
        _, ours, theirs = np.intersect1d(before.known, after.known, assume_unique=True, return_indices=True)
        generated = self.edits.truth[before.known[ours]] == GENERATED
        first, second = before.right[ours][generated], after.right[theirs][generated]
        lost, gained = int((first & ~second).sum()), int((second & ~first).sum())
        n = int(generated.sum())
        groups = self.codes(before.known[ours][generated])
        if groups is None:
            return Paired(n, lost, gained, float(mcnemar_exact(lost, gained)) if n else None, None)
        differences = sums_by_group(first.astype(np.int64) - second, groups)
        return Paired(n, lost, gained, group_sign_test(differences) if n else None, None)


def _source(code: int) -> SourceName:
    return "generated" if code == GENERATED else "real"
