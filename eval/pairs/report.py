"""The page of pairs: how many candidates were rejected where, and a wall of all, with mask and difference."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from jinja2 import Environment

from uncanny.errors import UsageError
from uncanny.eval.common.pages.page import score_page, write_rendered
from uncanny.eval.common.pages.pictures import Layer, Mark, PageViews, PicturesMode, Shot, Shown, View
from uncanny.eval.common.pixels.difference import AMPLIFIED, difference, grey_picture
from uncanny.eval.common.pixels.masks import read_mask
from uncanny.eval.pairs.data import STEP_NAMES
from uncanny.eval.pairs.outcome import Outcome
from uncanny.eval.pairs.result import PairsResult

# Candidates on the page, kept ones first; it says how many there are beyond.
MOST_SHOWN: Final = 300
_THREADS: Final = 2
_ORDER: Final = ("kept", "open", "rejected")


@dataclass(frozen=True, slots=True)
class Card:
    """A candidate: its pictures, by the names of their layers, and what became of it, in words."""

    outcome: Outcome
    shown: Shown
    layers: tuple[str, ...]
    verdict: str
    figures: tuple[tuple[str, str], ...]


def write_pairs_page(result: PairsResult, path: Path, *, pictures: PicturesMode = "link") -> Path:
    """Write the page to `path` and return it; what `PairsResult.report` does."""
    views = PageViews(path, pictures)
    ordered = sorted(result.outcomes, key=lambda each: _ORDER.index(each.verdict))
    chosen = [each for each in ordered if each.pair.edited_file is not None][:MOST_SHOWN]
    table = result.tables()[0]
    return write_rendered(
        _environment(),
        "pairs.html.j2",
        path,
        title="Pairs",
        result=result,
        table=table,
        steps=[
            (STEP_NAMES[step], number, _share(number, result.candidates))
            for step, number in result.rejected.items()
            if number
        ],
        kept_share=_share(result.kept, result.candidates),
        waiting=sum(result.open.values()),
        waiting_share=_share(sum(result.open.values()), result.candidates),
        cards=_cards(chosen, views),
        n_drawn=sum(each.pair.edited_file is not None for each in result.outcomes),
        page_views=views,
    )


@cache
def _environment() -> Environment:
    return score_page("uncanny.eval.pairs", ("pairs.css", "wall.css"), {}, scripts=("wall.js",))


def _share(number: int, of: int) -> float:
    return number / of if of else 0.0


def _cards(chosen: Sequence[Outcome], views: PageViews) -> tuple[Card, ...]:
    with ThreadPoolExecutor(_THREADS) as pool:
        layers = list(pool.map(_layers, chosen))
    shown = views.add(
        [_view(each, tuple(its_layers)) for each, its_layers in zip(chosen, layers, strict=True)]
    )
    return tuple(
        Card(each, view, tuple(layer.name for layer in its_layers), _verdict(each), tuple(_figures(each)))
        for each, view, its_layers in zip(chosen, shown, layers, strict=True)
    )


def _view(outcome: Outcome, layers: tuple[Layer, ...]) -> View:
    finding = outcome.finding
    severity = None if finding is None else finding.rated_severity
    region = outcome.pair.candidate.region
    marks = (
        (Mark(finding.name, finding.box, severity, finding.phenomenon),)
        if finding is not None
        else (Mark(region.name, region.box, dashed=True),)
    )
    original = outcome.pair.original
    size = (original.width or 1, original.height or 1)
    return View(outcome.pair.id, layers, marks, size)


def _layers(outcome: Outcome) -> list[Layer]:
    pair = outcome.pair
    edited = Shot(pair.edited_file or Path(), pair.candidate.sha256)
    original = Shot(pair.original_file)
    layers = [Layer("edited", edited), Layer("original", original)]
    if pair.mask_file is not None:
        with contextlib.suppress(UsageError):  # gone since it was made: the page shows what there is
            layers.append(Layer("mask", data=grey_picture(np.asarray(read_mask(pair.mask_file)))))
    apart = difference(original, edited)
    return layers if apart is None else [*layers, Layer(f"difference × {AMPLIFIED}", data=apart)]


def _verdict(outcome: Outcome) -> str:
    if outcome.rejected is not None:
        return f"{STEP_NAMES[outcome.rejected.step]}: {outcome.rejected.why}"
    if outcome.open is not None:
        return outcome.open[:1].upper() + outcome.open[1:]
    return "Kept by people" if outcome.judged else "Kept on the model's word"


def _figures(outcome: Outcome) -> list[tuple[str, str]]:
    candidate, screened = outcome.pair.candidate, outcome.screened
    figures = [
        ("region", f"{candidate.region.name}, {candidate.mask_source or 'no mask'}"),
        ("inpainter", candidate.revision or candidate.model),
        ("seed", str(candidate.seed)),
    ]
    names = [name for name in ("guidance", "strength", "steps") if name in candidate.sent]
    figures += [(name, f"{candidate.sent[name]:g}") for name in names]
    if candidate.prompt:
        figures.append(("prompt", candidate.prompt))
    if screened is not None:
        changed = screened.measured.get("changed_of_mask")
        if changed is not None:
            figures.append(("of the mask changed", f"{changed:.0%}"))
        if screened.label is not None:
            figures.append(("model says", f"{screened.label}: {screened.reason}"))
    return figures
