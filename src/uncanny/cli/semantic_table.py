"""Semantic scores in 80 columns.

What has to be known before semantic scores are believed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from uncanny.cli.terminal import layout
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.published import CAVEATS
from uncanny.eval.common.published import published as published_figures
from uncanny.eval.metrics.semap import PROTOCOLS, VIEWS, ProtocolName, View
from uncanny.eval.semantic.score.result import Difference, PredictionScore, SemanticScore

NAME_WIDTH = 23
MOST_PAIRS = 6
MEANS = {
    "release": "release: matched once an image, as in the published tables",
    "paper": "paper: matched at each threshold by confidence, appendix B",
}
# Table 2 of the paper was made with this backbone.
DETECTION_BACKBONE = "distilbert-base-uncased"


def score_text(found: SemanticScore, *, published: bool) -> str:
    """Everything worth a glance; the rest is in the JSON."""
    lines = list(_head(found))
    for protocol in PROTOCOLS:
        lines += ["", *_protocol(found, protocol, published=published)]
        lines += ["", *_thresholds(found, protocol)]
    if any(score.accuracy for score in found.predictions.values()):
        lines += ["", *_accuracy(found, published=published)]
    if found.differences:
        lines += ["", *_differences(found)]
    told = list(notes(found, published=published))
    return layout([*lines, "", *told] if told else lines)


def _head(found: SemanticScore) -> Iterator[str]:
    measure = found.measure
    parts = [str(measure.get("measure"))]
    if measure.get("backbone"):
        parts.append(f"{measure['backbone']}, layer {measure['num_layers']}")
    yield f"Similarity  {', '.join(parts)}"
    yield f"Views       phenomenon, reasoning, full = {found.balance:g} phe + {1 - found.balance:g} rea"
    truth = found.truth
    yield f"Truth       {truth.path}: {truth.images:,} images, {truth.anomalies:,} anomalies"
    yield f"Signature   {found.signature}"


def _columns(first: str, second: str, heading: str) -> Iterator[str]:
    names = "".join(f"{view:>8}" for view in VIEWS)
    yield heading
    yield f"{'':<{NAME_WIDTH}}{'images':>7}{first:>24} {second:>24}"
    yield f"{'':<{NAME_WIDTH}}{'':>7}{names} {names}"


def _protocol(found: SemanticScore, protocol: ProtocolName, *, published: bool) -> Iterator[str]:
    scores = {name: score.protocols[protocol] for name, score in found.predictions.items()}
    yield from _columns("SemAP", "SemF1", MEANS[protocol])
    for name, score in scores.items():
        yield from _row(name, score.images, score.semap, score.semf1)
    if published and protocol == "release" and found.no_comparison is None:
        yield from _published_rows(_table(found), "semap", "semf1")
    if any(score.csemap for score in scores.values()):
        over = "generated images" if protocol == "release" else "all images"
        yield ""
        yield from _columns("cSemAP", "cSemF1", f"{protocol}, where the source is recognised, over {over}")
        for name, score in scores.items():
            if score.csemap and score.csemf1:
                yield from _row(name, score.detection_images, score.csemap, score.csemf1)
        if published and protocol == "release" and _detection_compares(found):
            yield from _published_rows(published_figures("detection_scores")["rows"], "csemap", "csemf1")


def _row(
    name: str, images: int, first: Mapping[View, Estimate], second: Mapping[View, Estimate]
) -> Iterator[str]:
    cells = [f"{_figure(views[view].value):>8}" for views in (first, second) for view in VIEWS]
    yield f"{_short(name)}{images:>7,}{''.join(cells[:3])} {''.join(cells[3:])}"
    ends = [_ends(views["full"]) for views in (first, second)]
    if all(ends):
        yield f"{'  95 % of full':<{NAME_WIDTH}}{'':>7}{ends[0]:>24} {ends[1]:>24}"


def _thresholds(found: SemanticScore, protocol: ProtocolName) -> Iterator[str]:
    yield (
        f"{f'{protocol}, full':<{NAME_WIDTH}}{'at':>5}{'TP':>8}{'pred':>8}{'true':>8}"
        f"{'SemAP':>9}{'SemF1':>8}{'micro F1':>10}"
    )
    for name, score in found.predictions.items():
        for number, one in enumerate(score.protocols[protocol].thresholds):
            yield (
                f"{_short('' if number else name)}{one.threshold:>5g}{one.tp['full']:>8,}{one.n_pred:>8,}"
                f"{one.n_true:>8,}{_figure(one.semap['full']):>9}{_figure(one.semf1['full']):>8}"
                f"{_figure(one.micro['full'].f1):>10}"
            )


def _accuracy(found: SemanticScore, *, published: bool) -> Iterator[str]:
    yield f"{'source':<{NAME_WIDTH}}{'images':>7}{'accuracy':>10}{'95 %':>17}{'unclear':>9}"
    for name, score in found.predictions.items():
        if score.accuracy:
            held = score.accuracy
            yield (
                f"{_short(name)}{held.images:>7,}{_figure(held.figure.value):>10}"
                f"{_ends(held.figure) or '–':>17}{held.unclear:>9,}"
            )
    if published and _detection_compares(found):
        for row in published_figures("detection_scores")["rows"]:
            yield f"{_short(row['model'])}{'':>7}{row['acc']:>10.4f}"


def _published_rows(rows: Iterable[Mapping[str, Any]], first: str, second: str) -> Iterator[str]:
    yield "published, asked with the authors' texts on the authors' test set:"
    for row in rows:
        cells = [f"{_figure(row.get(f'{metric}_{view}')):>8}" for metric in (first, second) for view in VIEWS]
        yield f"{_short(row['model'])}{'':>7}{''.join(cells[:3])} {''.join(cells[3:])}"


def _table(found: SemanticScore) -> list[dict[str, Any]]:
    tables: dict[str, list[dict[str, Any]]] = published_figures("semantic_scores")["backbones"]
    return tables.get(str(found.measure.get("backbone")), [])


def _detection_compares(found: SemanticScore) -> bool:
    return found.no_comparison is None and found.measure.get("backbone") == DETECTION_BACKBONE


def _differences(found: SemanticScore) -> Iterator[str]:
    pairs: dict[tuple[str, str], list[Difference]] = {}
    for one in found.differences:
        if one.view == "full":
            pairs.setdefault((one.first, one.second), []).append(one)
    yield "Differences in full, image by image, with 95 % intervals (paired bootstrap)"
    for (first, second), held in list(pairs.items())[:MOST_PAIRS]:
        yield f"{first} − {second}"
        for one in held:
            value = "–" if one.figure.value is None else f"{one.figure.value:+.4f}"
            interval = one.figure.interval
            ends = "" if interval is None else f"{interval[0]:+.4f} to {interval[1]:+.4f}"
            metric = one.metric.replace("sem", "Sem").replace("ap", "AP").replace("f1", "F1")
            yield f"  {one.protocol:<9}{metric:<8}{value:>9}{ends:>22}{one.images:>9,} images"
    if len(pairs) > MOST_PAIRS:
        yield f"  and {len(pairs) - MOST_PAIRS} more pairs: all are in the JSON"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _ends(figure: Estimate) -> str:
    return f"{figure.interval[0]:.4f} to {figure.interval[1]:.4f}" if figure.interval else ""


def _short(name: str) -> str:
    """Names often differ at their ends, so it is the middle that goes."""
    kept = NAME_WIDTH - 2
    cut = name if len(name) <= kept else name[: kept // 2] + "…" + name[kept // 2 + 1 - kept :]
    return f"{cut:<{NAME_WIDTH}}"


WIDTH = 80
MOST_NAMED = 3
_MOST_IN_NAME = 60


def notes(found: SemanticScore, *, published: bool) -> Iterator[str]:
    """Lines of at most 80 columns, a paragraph each beginning at the margin."""
    for text in _texts(found, published=published):
        yield from wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _texts(found: SemanticScore, *, published: bool) -> Iterator[str]:
    if found.no_comparison is not None:
        left = " --published shows none." if published else ""
        yield f"Published figures do not compare: {found.no_comparison}.{left}"
    elif published:
        yield CAVEATS["semantic_scores"]
    truth = next(iter(found.predictions.values())).left_out.truth
    if truth:
        yield f"{_count(truth, 'image')} of the truth failed or are partial and in no figure{_named(truth)}"
    for name, score in found.predictions.items():
        for text in _of_one(score):
            yield f"{name}: {text}"
    if not found.resamples:
        yield "Without resamples there are no intervals."


def _of_one(score: PredictionScore) -> Iterator[str]:
    left = score.left_out
    columns = score.columns
    if clean := int((columns.scored["release"] & (columns.n_true == 0)).sum()):
        images = "image has" if clean == 1 else "images have"
        yield f"{clean:,} {images} no true anomaly, which release scores 0 whatever is predicted"
    if by_file := score.paired_by.get("file"):
        yield f"{by_file:,} images are paired by file name alone: all folders differ"
    if score.unfinished is not None:
        yield f"{score.unfinished}; the same command goes on with it"
    if left.only_truth:
        missing = _count(left.only_truth, "image")
        yield f"{missing} without a prediction: not in release, empty in paper{_named(left.only_truth)}"
    if left.only_predictions:
        surplus = _count(left.only_predictions, "predicted image")
        yield f"{surplus} not in the truth and in no figure{_named(left.only_predictions)}"
    for status, names in left.unfinished.items():
        if names:
            yield f"{_count(names, f'{status} record')} in no score; run it again{_named(names)}"
    if left.without_source:
        unknown = _count(left.without_source, "image")
        yield f"{unknown} without a true source, not in detection{_named(left.without_source)}"
    if score.unread_answers:
        answers = _count(score.unread_answers, "answer")
        yield f"{answers} not a list of anomalies: one prediction each that matches nothing" + _named(
            score.unread_answers
        )
    if score.blank_texts:
        yield f"{score.blank_texts:,} blank phenomena or reasonings are similar to nothing"
    if score.unread_severities:
        yield (
            f"{score.unread_severities:,} severities are no number from 0 to 100; "
            "these images rank in the given order"
        )


def _count(names: Sequence[str], what: str) -> str:
    return f"{len(names):,} {what}{'' if len(names) == 1 else 's'}"


def _named(names: Sequence[str]) -> str:
    shown = [name if len(name) <= _MOST_IN_NAME else "…" + name[1 - _MOST_IN_NAME :] for name in names]
    more = ", … all in the JSON" if len(names) > MOST_NAMED else ""
    return f" ({', '.join(shown[:MOST_NAMED])}{more})"
