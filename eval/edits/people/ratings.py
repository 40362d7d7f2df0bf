"""How much people say has changed between an original and its edit, beside what was measured of the pair.

Source: Semi-Truths, section 5 and appendix D, table 5: people rate a pair "not much", "some" or "a lot"; the
mode of three ratings is the pair's; ICC(2,k) says how reliable ratings are; pairs that were rated before
serve as attention checks; and the mode is correlated with each metric of change. Deviations: what the paper
leaves open is decided here. A pair whose ratings have no single mode is in no correlation, and is counted.
Who passes too few attention checks is left out. Coefficients have intervals.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from uncanny.errors import UsageError
from uncanny.eval.common.groups import ORIGINAL_COLUMNS, ImageGroups
from uncanny.eval.edits.columns import FIGURES
from uncanny.eval.edits.data import EditFiles, EditSource, load
from uncanny.eval.edits.parameters import RateParameters
from uncanny.eval.edits.people.data import CHANGES, Change, Rating, read_ratings, replaced
from uncanny.eval.edits.people.ratings_result import LeftRatings, Metric, Rater, RatingScores, Reliable
from uncanny.eval.metrics.intervals import group_codes
from uncanny.eval.metrics.ratings import correlations, icc
from uncanny.parameters import check_records, takes

RaterSource = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_RATERS: Final = "Ratings are a run folder or a file, or several of them"
NUMBERS: Final[Mapping[Change, int]] = {change: number for number, change in enumerate(CHANGES, start=1)}
# All that `measure` says of a pair in numbers.
_METRICS: Final = tuple(name for name in FIGURES if name != "shape")


@takes(RateParameters)
def score_ratings(pairs: EditSource, people: RaterSource, parameters: RateParameters) -> RatingScores:
    """Score people who rated how much has changed in each of `pairs`: agreement, and what it follows.

    `pairs` are as in `load`; the file that `measure` wrote has the metrics that ratings are correlated with.
    `people` are run folders of `uncanny edits rate`, or files of `Rating` records. Where a person has rated a
    pair twice, the last time counts; people of the same name in two of them are two people. A rating of a
    picture that was replaced since does not count. Intervals take edits of one original as a whole.

    Raises UsageError for what cannot be read, where nothing was rated, and where no rating is of one of the
    pairs; ItemsError with all that is wrong in files.

    >>> line = '{"id": "1", "original": "", "edited": "", "person": "ann", "change": "some"}'
    >>> written = (folder / "ratings.jsonl").write_text(line)
    >>> pairs = [uncanny.edits.EditPair(id="1", original="original.png", edited="edited.png")]
    >>> uncanny.edits.score_ratings(pairs, folder / "ratings.jsonl").changes
    {'1': 'some'}
    """
    paths = (str, os.PathLike)
    sources = [people] if isinstance(people, paths) else check_records(people, paths, what=_RATERS)
    recorded = read_ratings([Path(each) for each in sources])
    files = load(pairs, root=parameters.root)
    known = {each.id: each for each in files}
    said = _said(recorded, known)
    if not said.ratings:
        raise UsageError(
            "None of the ratings is of one of these pairs", remedy="Pass the pairs that were shown."
        )
    raters = _raters(said, parameters.least_passed)
    by_pair: dict[str, dict[str, Change]] = defaultdict(dict)
    for each in said.ratings:
        if raters[each.person].counts and each.change is not None:
            by_pair[each.id][each.person] = each.change
    rated = {each: by_pair[each] for each in known if each in by_pair}
    changes = {pair: mode(list(ratings.values())) for pair, ratings in rated.items()}
    left = LeftRatings(
        unknown=said.unknown,
        unshown=said.unshown,
        stale=said.stale,
        repeated=said.repeated,
        inattentive=sum(each.rated for each in raters.values() if not each.counts),
        unrated=len(known) - len(rated),
    )
    originals = {each.id: str(each.original) for each in files}
    return RatingScores(
        raters=raters,
        least_passed=parameters.least_passed,
        ratings={pair: dict(ratings) for pair, ratings in rated.items()},
        changes=changes,
        icc=_reliability(list(rated.values())),
        metrics={
            name: _metric(name, known, changes, originals, parameters)
            for name in _METRICS
            if any(_value(each, name) is not None for each in files)
        },
        left=left,
        pairs=files,
        grouped=ImageGroups.of(ORIGINAL_COLUMNS[0], [originals[pair] for pair in rated]),
        with_published=parameters.published,
        resamples=parameters.resamples,
        seed=parameters.seed,
    )


def mode(changes: Sequence[Change]) -> Change | None:
    """The most common rating; None if there are none, or several tie."""
    ranked = Counter(changes).most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


class _Said(NamedTuple):
    """The last rating of each person and pair, and of each check; what else there was, counted."""

    ratings: list[Rating]
    checks: list[Rating]
    unknown: int
    unshown: int
    stale: int
    repeated: int


def _said(recorded: Sequence[Rating], known: Mapping[str, EditFiles]) -> _Said:
    # A pair has up to three trials: itself, and its original in a check of either kind.
    last: dict[tuple[str, Change | None, str], Rating] = {}
    failed: set[tuple[str, Change | None, str]] = set()
    unknown = stale = repeated = 0
    for each, is_stale in zip(recorded, replaced(recorded, known), strict=True):
        at = (each.person, each.check, each.id)
        if each.check is None and each.id not in known:
            unknown += 1
        elif each.change is None:
            failed.add(at)
        elif is_stale:
            stale += 1
        else:
            repeated += at in last
            last[at] = each
    ratings = [each for (_, check, _), each in last.items() if check is None]
    checks = [each for (_, check, _), each in last.items() if check is not None]
    return _Said(ratings, checks, unknown, len(failed - last.keys()), stale, repeated)


def _raters(said: _Said, least_passed: float) -> dict[str, Rater]:
    raters = {}
    for person in sorted({each.person for each in (*said.ratings, *said.checks)}):
        own = [each for each in said.ratings if each.person == person]
        checks = [each for each in said.checks if each.person == person]
        passed = sum(each.change == each.check for each in checks)
        seconds = [each.seconds for each in own if each.seconds is not None]
        raters[person] = Rater(
            rated=len(own),
            passed=passed,
            checks=len(checks),
            counts=not checks or passed / len(checks) >= least_passed,
            given={change: sum(each.change == change for each in own) for change in CHANGES},
            seconds=median(seconds) if seconds else None,
        )
    return raters


def _reliability(rated: Sequence[Mapping[str, Change]]) -> Reliable:
    """ICC over the pairs with `k` ratings or more; `k` is the number that keeps most ratings.

    Columns are people if the same k rated all of these pairs. Otherwise they are the first, second, … rating
    of a pair, as they must have been in the paper, where 145 people gave three ratings a pair.
    """
    most = max(map(len, rated), default=0)
    if most < 2:
        return Reliable(None, 0, None, *icc([[]]))
    k = max(range(2, most + 1), key=lambda each: (each * sum(len(own) >= each for own in rated), each))
    enough = [own for own in rated if len(own) >= k]
    people = sorted(set(enough[0]).intersection(*enough))
    if len(people) == k:
        table = [[NUMBERS[own[person]] for person in people] for own in enough]
        return Reliable(k, len(table), "people", *icc(table))
    table = [[NUMBERS[change] for change in list(own.values())[:k]] for own in enough]
    return Reliable(k, len(table), "order", *icc(table))


def _value(files: EditFiles, name: str) -> float | None:
    """What was measured of a pair: tables of other programs may hold numbers as text."""
    value = (files.pair.model_extra or {}).get(name)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


def _metric(
    name: str,
    known: Mapping[str, EditFiles],
    changes: Mapping[str, Change | None],
    originals: Mapping[str, str],
    parameters: RateParameters,
) -> Metric:
    measured = [
        (pair, change, value)
        for pair, change in changes.items()
        if change is not None and (value := _value(known[pair], name)) is not None
    ]
    by_change: dict[Change, list[float]] = {each: [] for each in CHANGES}
    for _, change, value in measured:
        by_change[change].append(value)
    found = correlations(
        [NUMBERS[change] for _, change, _ in measured],
        [value for _, _, value in measured],
        group_codes(originals[pair] for pair, _, _ in measured),
        resamples=parameters.resamples,
        seed=parameters.seed,
    )
    medians = {change: median(values) if values else None for change, values in by_change.items()}
    return Metric(found.n, found.pearson, found.kendall, found.spearman, medians)
