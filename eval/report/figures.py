"""The plain figures at the top of the page, as words: what was not measured says so."""

from __future__ import annotations

from dataclasses import dataclass

from uncanny.eval.report.calls import CallIndex
from uncanny.eval.report.tally import Tally
from uncanny.records.run_manifest import RunManifest

OUTCOMES = {
    "answered": "answered",
    "unparseable": "unparseable answer",
    "refused": "refused by the model",
    "error": "infrastructure error",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with what it counts; `notes` are further lines."""

    label: str
    value: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """One part of a whole; `rate` is 0-1, None when the whole is empty."""

    key: str
    label: str
    count: int
    rate: float | None


def figures(info: RunManifest, tally: Tally, index: CallIndex) -> list[Figure]:
    return [
        _images(info, tally),
        _anomalies(tally),
        _calls(info, tally, index),
        _tokens(info, tally),
        _cost(info, tally),
        _time(info),
    ]


def outcomes(info: RunManifest, index: CallIndex) -> list[Share]:
    """Calls by outcome, kept apart; from `run.json`, else from `calls.jsonl`. Empty when neither has any."""
    counts = dict((info.totals and info.totals.outcomes) or index.outcomes)
    total = sum(counts.values())
    if not total:
        return []
    known = [(key, label, counts.pop(key, 0)) for key, label in OUTCOMES.items()]
    others = [(key, key, count) for key, count in sorted(counts.items())]
    return [Share(key, label, count, count / total) for key, label, count in known + others]


def percent(rate: float | None) -> str:
    """A rate for people: never 0% or 100% for what is only nearly so, and a dash for none."""
    if rate is None:
        return "–"
    if 0 < rate < 0.001:
        return "<0.1%"
    if 0.999 < rate < 1:
        return ">99.9%"
    return f"{rate:.1%}".replace(".0%", "%")


def duration(seconds: float) -> str:
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def dollars(cost: float) -> str:
    return f"${cost:,.2f}" if cost >= 1 or cost == 0 else f"${cost:.2g}" if cost < 0.01 else f"${cost:.3f}"


def _images(info: RunManifest, tally: Tally) -> Figure:
    expected = info.totals.images if info.totals else None
    behind = expected is not None and expected > tally.images
    value = f"{tally.images:,} of {expected:,}" if behind else f"{tally.images:,}"
    notes = [", ".join(f"{count:,} {status}" for status, count in tally.statuses.most_common())]
    if info.totals and info.totals.duplicates:
        notes.append(f"{info.totals.duplicates:,} duplicates")
    return Figure("images recorded" if behind else "images", value, tuple(filter(None, notes)))


def _anomalies(tally: Tally) -> Figure:
    judged = tally.per_image.total()
    if not judged:
        return Figure("anomalies", f"{tally.anomalies:,}", ("no image judged yet",))
    clean = tally.per_image[0]
    return Figure(
        "anomalies",
        f"{tally.anomalies:,}",
        (f"{tally.anomalies / judged:.1f} an image that was judged", f"{clean:,} of {judged:,} without any"),
    )


def _calls(info: RunManifest, tally: Tally, index: CallIndex) -> Figure:
    totals = info.totals
    calls = totals.calls if totals and totals.calls is not None else index.calls or tally.calls
    replayed = totals.replayed if totals and totals.replayed is not None else index.replayed
    notes = (f"{replayed:,} replayed from the answer cache",) if replayed else ()
    return Figure("calls", f"{calls:,}", notes)


def _tokens(info: RunManifest, tally: Tally) -> Figure:
    totals = info.totals
    if totals is not None:
        tokens_in, cached, tokens_out = totals.input_tokens, totals.cached_tokens, totals.output_tokens
    else:
        tokens_in, cached, tokens_out = tally.input_tokens, tally.cached_tokens, tally.output_tokens
    if tokens_in is None and tokens_out is None:
        return Figure("tokens", "not reported")
    into = "input not reported" if tokens_in is None else f"{tokens_in:,} in"
    out = "output not reported" if tokens_out is None else f"{tokens_out:,} out"
    if cached is None or not tokens_in:
        share = "cached share not reported"
    else:
        share = f"{percent(cached / tokens_in)} of input cached"
    return Figure("tokens", f"{(tokens_in or 0) + (tokens_out or 0):,}", (f"{into}, {out}", share))


def _cost(info: RunManifest, tally: Tally) -> Figure:
    if info.totals is not None:
        cost, unpriced = info.totals.cost_usd, 0
    else:
        cost, unpriced = tally.cost_usd, tally.unpriced
    if cost is None:
        return Figure("cost", "not priced", ("no price is known for the model",))
    notes = (f"{dollars(cost / tally.images)} an image",) if tally.images else ()
    if unpriced:
        notes = (f"{unpriced:,} images not priced",)
    return Figure("cost", ("at least " if unpriced else "") + dollars(cost), notes)


def _time(info: RunManifest) -> Figure:
    seconds = info.totals.seconds if info.totals else None
    return Figure("wall time", "not recorded" if seconds is None else duration(seconds))
