"""What has to be known before semantic scores are believed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from uncanny.eval.published import CAVEATS
from uncanny.eval.semantic.result import PredictionScore, SemanticScore

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
