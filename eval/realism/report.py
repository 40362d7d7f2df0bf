"""The HTML page of a realism check: one file that needs nothing else and asks nothing of the network.

The pairs that the realism page shows: those that deceive with their pictures, those without a label.

The published figures on people and detectors by label, as percentages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment

from uncanny import __version__
from uncanny.agents.verdict import Asked
from uncanny.errors import UncannyError
from uncanny.eval.common.estimates import interval_words, p_words
from uncanny.eval.common.page import Shot, pictures, score_page, stamp
from uncanny.eval.common.published import CAVEATS, published
from uncanny.eval.realism.data import Side, Verdict
from uncanny.eval.realism.humans import HUMAN_LABELS
from uncanny.eval.realism.plots import labels, lines, places
from uncanny.eval.realism.score import RealismScore, SetScore
from uncanny.graphs.ugda_cases import Case, choice_of
from uncanny.records.jsonl import write_atomically
from uncanny.records.run_folder import RunFolder


def write_realism_page(
    score: RealismScore,
    path: Path,
    *,
    root: Path | None = None,
    published: bool = False,
    title: str | None = None,
) -> Path:
    """Write the page to `path` and return it.

    Paths of pictures start at `root`, else where the run beside the verdicts says, else at the verdicts' own
    folder; a picture that cannot be read is left out. `published` shows the published figures on people.
    The file appears whole or not at all. Raises `OSError` where it cannot be written.
    """
    rows = lines(score)
    page = (
        _environment()
        .get_template("realism.html.j2")
        .render(
            title=title or "Realism check",
            score=score,
            sets=score.sets,
            several=len(score.sets) > 1,
            rows=rows,
            n_rows=sum(1 + len(one.groups) for one in score.sets.values()),
            plots={"labels": labels(rows), "places": places(rows)},
            shown=shown(score, root),
            humans={name: one.human for name, one in score.sets.items() if one.human is not None},
            published=published_humans() if published else None,
            caveat=CAVEATS["inpainting_scores"],
            about=_about(score),
        )
    )
    write_atomically(path, [page.encode("utf-8", "replace")])
    return path


def _about(score: RealismScore) -> dict[str, Any]:
    verdicts = [verdict for one in score.sets.values() for verdict in one.verdicts.verdicts]
    return {
        "pairs": len({verdict.id for verdict in verdicts}),
        "models": sorted({verdict.model for verdict in verdicts if verdict.model is not None}),
        "prompts": sorted({verdict.prompts for verdict in verdicts if verdict.prompts is not None}),
        "undetermined": sum(one.overall.labels["undetermined"].counts for one in score.sets.values()),
        "notes": sum(bool(verdict.notes) for verdict in verdicts),
        "made": stamp(datetime.now(UTC).isoformat()),
        "version": __version__,
    }


def _environment() -> Environment:
    filters: dict[str, Callable[..., Any]] = {"p": p_words, "ends": interval_words}
    environment = score_page("uncanny.eval.realism", ("realism.css",), filters)
    environment.globals |= {
        "all_cases": CASES,
        "human_labels": HUMAN_LABELS,
        "names": {
            "all": "all",
            "deceiving": "deceiving",
            "intermediate": "intermediate",
            "non_deceiving": "non-deceiving",
        },
    }
    return environment


CASES: Mapping[Case, tuple[str, str]] = {
    1: ("follows the position", "original once, edited once"),
    2: ("prefers the edit", "edited both times"),
    3: ("leans to the edit", "edited once, both once"),
    4: ("can't tell", "both both times"),
}
# The most convincing edits first.
_ORDER: Mapping[Case | None, int] = {2: 0, 3: 1, 4: 2, 1: 3}
MOST_SHOWN = 24
MOST_LISTED = 200
_ASKED: Mapping[Asked, str] = {
    "first": "Edited image alone, realistic?",
    "original_first": "Original first, more realistic:",
    "edited_first": "Edited first, more realistic:",
}


@dataclass(frozen=True, slots=True)
class Said:
    """One question with the verdict as the page words it, and all the model wrote; None where it is gone."""

    asked: str
    verdict: str
    raw: str | None


@dataclass(frozen=True, slots=True)
class Card:
    """A pair; the pictures are data URIs, None where a file is not named or cannot be read."""

    verdict: Verdict
    original: str | None
    edited: str | None
    said: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """One set's pairs: `deceiving` holds at most `MOST_SHOWN` cards of `n_deceiving`, and so on."""

    deceiving: tuple[Card, ...]
    n_deceiving: int
    undetermined: tuple[Verdict, ...]
    n_undetermined: int


def shown(score: RealismScore, root: Path | None) -> dict[str, Shown]:
    """The pairs of each set; paths start at `root`, else where the set's run says, else at the set's file."""
    found = {}
    for name, one in score.sets.items():
        every = [verdict for verdict in one.verdicts.verdicts if verdict.label == "deceiving"]
        every.sort(key=lambda verdict: _ORDER.get(verdict.case, len(_ORDER)))
        without = [verdict for verdict in one.verdicts.verdicts if verdict.label == "undetermined"]
        cards = _cards(every[:MOST_SHOWN], root or base_of(one))
        found[name] = Shown(cards, len(every), tuple(without[:MOST_LISTED]), len(without))
    return found


def base_of(one: SetScore) -> Path:
    """Where image paths start: the root that the run beside the verdicts names, else their folder."""
    folder = one.verdicts.path.parent
    try:
        manifest = RunFolder(folder).read_manifest()
    except UncannyError:  # figures do not need the run: the page goes without pictures
        manifest = None
    return folder / (manifest.root or "") if manifest else folder


def _cards(verdicts: list[Verdict], base: Path) -> tuple[Card, ...]:
    sides = [side for verdict in verdicts for side in (verdict.original, verdict.edited)]
    known = [Shot(base / side.image, side.sha256 or "") for side in sides if side is not None]
    thumbs = iter(pictures(known, budget=0))

    def thumb(side: Side | None) -> str | None:
        return None if side is None else next(thumbs).small

    return tuple(
        Card(verdict, thumb(verdict.original), thumb(verdict.edited), said(verdict)) for verdict in verdicts
    )


def said(verdict: Verdict) -> tuple[Said, ...]:
    """What was asked of a pair, in order, with the order of images undone in the words."""
    found = []
    for key, asked in _ASKED.items():
        answer = getattr(verdict, key)
        if answer is None and key not in verdict.raw:
            continue
        if answer is None:
            words = "no verdict"
        elif key == "first":
            words = answer
        else:
            choice = choice_of(answer, original_first=key == "original_first")
            words = "both" if choice == "both" else f"the {choice}"
        found.append(Said(asked, words, verdict.raw.get(key)))
    return tuple(found)


def published_humans() -> dict[str, float]:
    """People in SAGI's table 8: `acc_deceiving`, `iou_deceiving` and so on, in percent."""
    rows: list[dict[str, Any]] = published("inpainting_scores")["human_vs_model"]
    (row,) = [row for row in rows if row["model"] == "Human"]
    return {name: value for name, value in row.items() if name != "model"}
