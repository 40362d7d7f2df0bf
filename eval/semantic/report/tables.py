"""Semantic scores as tables: what `uncanny semantic` prints and a notebook shows.

A table for each protocol (their scores are never mixed), the breakdown by threshold, how often the source is
recognised, and the differences of two files. Under the last one stands what has to be known before any score
is believed: what was compared, what was left out, and what was read with allowances.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.published import caveat, texts_notes
from uncanny.eval.common.similarity.weights import measure_words
from uncanny.eval.common.tables.table import Cell, Column, Table, explain_intervals
from uncanny.eval.metrics.semap import PROTOCOLS, VIEWS, ProtocolName
from uncanny.eval.semantic.report.rows import (
    METRICS,
    PublishedRow,
    best_first,
    headline,
    pairs_of,
    published_detection,
    published_semantic,
)
from uncanny.eval.semantic.score.result import Metric, PredictionScore, SemanticScore
from uncanny.wording import counted

# Up to so many pairs of files have a table of their differences; all are in the JSON.
MOST_PAIRS = 6
MOST_NAMED = 3
TITLES = {
    "release": "release: matched once an image, as in the published tables",
    "paper": "paper: matched at each threshold by confidence, appendix B",
}
_MOST_IN_NAME = 60


def score_tables(score: SemanticScore) -> tuple[Table, ...]:
    """The tables, release first; with published models where those are wanted and compare."""
    score = best_first(score)
    tables = [
        table
        for protocol in PROTOCOLS
        for table in (_protocol(score, protocol), _thresholds(score, protocol))
    ]
    if any(each.accuracy for each in score.predictions.values()):
        tables.append(_accuracy(score))
    tables += _differences(score)
    last = tables[-1]
    notes = (*last.notes, *_notes(score))
    own = (*tables[:-1], replace(last, notes=notes))
    return explain_intervals(own, wanted=score.resamples, groups=score.groups)


def _protocol(score: SemanticScore, protocol: ProtocolName) -> Table:
    """Models below one another for each metric, so that a column compares them."""
    by_metric: dict[Metric, list[tuple[Cell, ...]]] = {}
    for name, prediction in score.predictions.items():
        for metric, images, views in prediction.protocols[protocol].by_metric():
            cells = [views[view] if view == "full" else views[view].value for view in VIEWS]
            by_metric.setdefault(metric, []).append((name, METRICS[metric], images, *cells))

    def lowest_last(row: tuple[Cell, ...]) -> float:
        return -row[-1].value if isinstance(row[-1], Estimate) and row[-1].value is not None else 1.0

    own = {}
    for metric, rows in by_metric.items():
        rows.sort(key=lowest_last)
        own[metric] = len(rows)
    if score.published and protocol == "release":
        _add_published(by_metric, ("semap", "semf1"), published_semantic(score))
        _add_published(by_metric, ("csemap", "csemf1"), published_detection(score))
    notes = []
    if "csemap" in by_metric:
        over = "generated images" if protocol == "release" else "all images whose source is known"
        notes.append(f"cSemAP and cSemF1 count where the source is recognised, over {over}.")
    all_rows: list[tuple[Cell, ...]] = []
    rivals = []
    for metric in METRICS:
        if metric in by_metric:
            rivals.append(tuple(range(len(all_rows), len(all_rows) + own[metric])))
            all_rows += by_metric[metric]
    scores = [Column(view, digits=4, better="higher") for view in VIEWS]
    columns: tuple[str | Column, ...] = ("", "score", "images", *scores)
    return Table(columns, tuple(all_rows), TITLES[protocol], tuple(notes), tuple(rivals))


def _add_published(
    by_metric: dict[Metric, list[tuple[Cell, ...]]],
    metrics: Sequence[Metric],
    published: Iterable[PublishedRow],
) -> None:
    """Beside own scores alone: without detection of our own theirs is not shown either."""
    for row in published:
        for number, metric in enumerate(metrics):
            if metric in by_metric:
                values = row.scores[number * len(VIEWS) : (number + 1) * len(VIEWS)]
                cells = [each.value for each in values]
                by_metric[metric].append((row.model, METRICS[metric], None, *cells))


def _thresholds(score: SemanticScore, protocol: ProtocolName) -> Table:
    rows: list[tuple[Cell, ...]] = []
    at: dict[float, list[int]] = {}
    for name, prediction in score.predictions.items():
        for each in prediction.protocols[protocol].thresholds:
            at.setdefault(each.threshold, []).append(len(rows))
            figures = (each.semap["full"], each.semf1["full"], each.micro["full"].f1)
            counts = (each.tp["full"], each.n_pred, each.n_true)
            rows.append((name, f"{each.threshold:g}", *counts, *figures))
    scores = (Column(name, digits=4, better="higher") for name in ("SemAP", "SemF1", "micro F1"))
    return Table(
        ("", "at", "TP", "pred", "true", *scores),
        tuple(rows),
        f"{protocol} by threshold, full",
        compared=tuple(map(tuple, at.values())),
    )


def _accuracy(score: SemanticScore) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (name, accuracy.images, accuracy.estimate, accuracy.unclear)
        for name, prediction in score.predictions.items()
        if (accuracy := prediction.accuracy) is not None
    ]
    own = len(rows)
    if score.published:
        rows += [(row.model, None, row.scores[-1].value, None) for row in published_detection(score)]
    columns = ("", "images", Column("accuracy", digits=4, better="higher"), "unclear")
    return Table(columns, tuple(rows), "source: generated or real, unclear counts as wrong", compared=own)


def _differences(score: SemanticScore) -> Iterator[Table]:
    pairs = pairs_of(score)
    for number, (first, second, differences) in enumerate(pairs[:MOST_PAIRS], start=1):
        rows = [
            (
                each.protocol,
                METRICS[each.metric],
                *(each.images, each.estimate, each.p_value, each.adjusted_p, each.cohens_d),
            )
            for each in differences.values()
            if each.view == "full"
        ]
        left = len(pairs) - MOST_PAIRS if number == MOST_PAIRS else 0
        yield Table(
            (
                *("", "score", "images", Column("full, paired", digits=4, signed=True)),
                *(Column("p", p_value=True), Column("p, Holm", p_value=True), Column("d_z", digits=2)),
            ),
            tuple(rows),
            f"{first} − {second}, image by image",
            (f"And {left} more pairs: all are in the JSON.",) if left > 0 else (),
        )


def _notes(score: SemanticScore) -> Iterator[str]:
    if said := headline(score):
        yield said
    share = f"full = {score.balance:g} phe + {1 - score.balance:g} rea"
    yield f"Similarity: {measure_words(score.measure)}; phe phenomenon, rea reasoning, {share}"
    truth = score.truth
    yield f"Truth: {truth.path}: {truth.images:,} images, {truth.anomalies:,} anomalies"
    yield f"Signature: {score.signature}"
    if score.no_comparison is not None:
        left = " They are not shown." if score.published else ""
        yield f"Published figures do not compare: {score.no_comparison}.{left}"
    elif score.published:
        yield caveat("semantic_scores", score.texts)
    yield from texts_notes(score.texts)
    if failed := next((each.left_out.truth for each in score.predictions.values()), ()):
        images = counted(len(failed), "image")
        yield f"{images} of the truth failed or are partial and not counted{_names(failed)}"
    for name, prediction in score.predictions.items():
        for note in _prediction_notes(prediction):
            yield f"{name}: {note}"
    if not score.resamples:
        yield "Without resamples there are no intervals."
    else:
        yield "In brackets 95 % intervals over images, of the accuracy Wilson's."
    if len(score.predictions) > 1:
        yield (
            "p: paired bootstrap, of few images an exact sign-flip test, corrected by Holm for all pairs of "
            "files; d_z: Cohen's, the mean difference over the standard deviation of the differences."
        )


def _prediction_notes(prediction: PredictionScore) -> Iterator[str]:
    left = prediction.left_out
    if prediction.sure:
        yield str(prediction.sure)
    if clean := prediction.without_truth:
        images = "image has" if clean == 1 else "images have"
        yield f"{clean:,} {images} no true anomaly, which release scores 0 whatever is predicted"
    if by_file := prediction.paired_by.get("file"):
        yield f"{by_file:,} images are paired by file name alone: all folders differ"
    if prediction.unfinished is not None:
        yield f"{prediction.unfinished}; annotate with the same settings to go on"
    if left.only_truth:
        missing = counted(len(left.only_truth), "image")
        yield f"{missing} without a prediction: not in release, empty in paper{_names(left.only_truth)}"
    if left.only_predictions:
        surplus = counted(len(left.only_predictions), "predicted image")
        yield f"{surplus} not in the truth and not counted{_names(left.only_predictions)}"
    for status, names in left.unfinished.items():
        if names:
            yield f"{counted(len(names), f'{status} record')} not scored; run it again{_names(names)}"
    if left.without_source:
        unknown = counted(len(left.without_source), "image")
        yield f"{unknown} without a true source, not in detection{_names(left.without_source)}"
    if prediction.unread_answers:
        answers = counted(len(prediction.unread_answers), "answer")
        names_of = _names(prediction.unread_answers)
        yield f"{answers} not a list of anomalies: one prediction each that matches nothing{names_of}"
    if prediction.blank_texts:
        yield f"{prediction.blank_texts:,} blank phenomena or reasonings are similar to nothing"
    if prediction.unread_severities:
        yield (
            f"{prediction.unread_severities:,} severities are not numbers from 0 to 100; "
            "these images rank in the given order"
        )


def _names(names: Sequence[str]) -> str:
    shown = [name if len(name) <= _MOST_IN_NAME else "…" + name[1 - _MOST_IN_NAME :] for name in names]
    more = ", … all in the JSON" if len(names) > MOST_NAMED else ""
    return f" ({', '.join(shown[:MOST_NAMED])}{more})"
