"""How far a run was from its forecast, in words, and why as far as `run.json` tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncanny.records.run_manifest import RunForecast, RunManifest, Totals
from uncanny.wording import cost, count, counted

_NO_ANSWER: Final = ("unparseable", "refused", "error")


def forecast_error(info: RunManifest) -> str | None:
    """What was forecast for the images worked on, what it was, by how much it differs, and why.

    None where there is no forecast, or nothing to hold it against. Of a run that is not finished the forecast
    counts for its share of the images.
    """
    forecast, totals = info.forecast, info.totals
    if forecast is None or totals is None or not forecast.images or totals.images is None:
        return None
    images = totals.images - (totals.pending or 0) - (totals.unreadable or 0)
    figures = list(_figures(forecast, totals, images / forecast.images)) if images > 0 else []
    if not figures:
        return None
    part = f" for {images:,} of {totals.images:,} images" if totals.pending else ""
    expected = ", ".join(words for words, _ in figures)
    taken = ", ".join(words for _, words in figures)
    why = "; ".join(_reasons(forecast, totals))
    return f"{expected}{part}; it was {taken}{': ' if why else ''}{why}"


def _figures(forecast: RunForecast, totals: Totals, share: float) -> Iterator[tuple[str, str]]:
    """Each figure as it was forecast, and as it was with the difference; only those known of both."""
    for name, unit in (
        ("calls", " calls"),
        ("input_tokens", " in"),
        ("output_tokens", " out"),
        ("cost_usd", ""),
    ):
        whole, taken = getattr(forecast, name), getattr(totals, name)
        if not whole or taken is None:
            continue
        form = cost if name == "cost_usd" else count
        expected = whole * share
        yield f"{form(expected)}{unit}", f"{form(taken)} ({_difference(taken / expected - 1)})"


def _difference(share: float) -> str:
    percent = round(100 * share)
    return f"{percent:+d} %".replace("-", "\N{MINUS SIGN}") if percent else "±0 %"


def _reasons(forecast: RunForecast, totals: Totals) -> Iterator[str]:
    judged = (totals.ok or 0) + (totals.partial or 0)
    usual = forecast.objects_per_image
    if judged and totals.objects and usual and abs(totals.objects / judged - usual) >= 0.05:
        yield f"{totals.objects / judged:.1f} objects an image instead of {usual}"
    if totals.without_findings:
        yield f"nothing found in {totals.without_findings:,} of {judged:,}"
    if totals.duplicates:
        copies = "copy" if totals.duplicates == 1 else "copies"
        yield f"{totals.duplicates:,} {copies} not asked about"
    if totals.replayed:
        yield f"{counted(totals.replayed, 'answer')} reused"
    lost = sum((totals.outcomes or {}).get(outcome, 0) for outcome in _NO_ANSWER)
    if totals.pending:
        yield "calls about images that are not done count, too"
    if lost:
        yield f"{counted(lost, 'call')} without an answer of use"
