"""Scores as the papers print them; `source` in each table names the paper and its tables.

`caveat` says, for each table that is shown beside a user's own scores, in what else the two differ: whoever
shows published rows shows this with them. What holds of MCQ depends on the items, and is said there.

Whose texts models were asked with is told by the ids in their records, so that figures pass for no others.
Ids of this version's sets and of earlier ones that are kept are uncanny's; `own:…` is a text that a set of
items carries; any other is a user's, or one of a version that this one does not know. Records without an id,
such as those of other tools, say nothing: nobody knows what these models were asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from importlib.resources import files
from typing import Any, Final, Literal, cast, get_args

import orjson

from uncanny.prompts import UNASKED, is_ours

MOST_NAMED = 5
_LONGEST = 60


def other_texts(ids: Collection[str]) -> list[str]:
    """Those of the ids that are neither uncanny's nor of a set's own prompts, sorted."""
    return sorted(each for each in _asked_ids(ids) if not _of_set(each) and not is_ours(each))


def _asked_ids(ids: Collection[str]) -> list[str]:
    return [each for each in ids if not each.startswith(UNASKED)]


def _of_set(prompts: str) -> bool:
    return prompts.startswith("own:")


Source = Literal["ours", "set", "others", "none", "unknown"]
SOURCES: Final[tuple[Source, ...]] = get_args(Source)
_WITH: Final[Mapping[Source, str]] = {
    "ours": "uncanny's own prompts",
    "set": "the set's own prompts",
    "others": "other prompts than uncanny's",
    "none": "no prompts, since it is a detector",
}


def sources(ids: Collection[str]) -> tuple[Source, ...]:
    """Whose prompts the ids in some records are; `unknown` where the records have none."""
    if ids and not _asked_ids(ids):
        return ("none",)
    if not ids:
        return ("unknown",)
    own, others = sum(map(_of_set, ids)), len(other_texts(ids))
    there = {"set": own > 0, "others": others > 0, "ours": len(_asked_ids(ids)) > own + others}
    return tuple(source for source in SOURCES if there.get(source))


def asked_with(sets: Mapping[str, Collection[str]]) -> tuple[frozenset[Source], str]:
    """Whose prompts stand behind figures, as far as their records say so, and the same as a sentence.

    `sets` is as in `texts_notes`. The sentence has no full stop; without sets it is empty.
    """
    by_source: dict[tuple[Source, ...], list[str]] = {}
    for name, ids in sets.items():
        by_source.setdefault(sources(ids), []).append(name)
    words = [_asked(names, each, alone=len(by_source) == 1) for each, names in by_source.items()]
    sentence = "; ".join(words)
    return frozenset(source for each in by_source for source in each), sentence[:1].upper() + sentence[1:]


def _asked(names: list[str], of: tuple[Source, ...], *, alone: bool) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    whose = "" if alone else f" ({', '.join(names[:MOST_NAMED])}{more})"
    if of == ("unknown",):
        return f"the records do not say which prompts were used, if any{whose}"
    return f"asked with {' and '.join(_WITH[source] for source in of)}{whose}"


def texts_notes(sets: Mapping[str, Collection[str]]) -> Iterator[str]:
    """What is to be known of the texts behind figures that stand side by side, as sentences.

    `sets` has by the name of a model, a file or a generator the ids of the texts in its records; none where
    they say nothing. Nothing is said where all are uncanny's, and the same.
    """
    by_texts: dict[tuple[str, ...], list[str]] = {}
    for name, ids in sets.items():
        if others := other_texts(ids):
            by_texts.setdefault(tuple(others), []).append(name)
    for asked_with, names in by_texts.items():
        more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
        yield (
            f"{', '.join(names[:MOST_NAMED])}{more}: asked with other texts than uncanny's "
            f"({_listed(asked_with)}); {'its' if len(names) == 1 else 'their'} figures do not "
            "compare with uncanny's, and with published ones only where these are the authors' texts"
        )
    named = {name: of_file for name, ids in sets.items() if (of_file := _named(ids))}
    if len(set(named.values())) > 1:
        each = "; ".join(f"{name}: {_listed(ids)}" for name, ids in list(named.items())[:MOST_NAMED])
        more = f"; and {len(named) - MOST_NAMED:,} more" if len(named) > MOST_NAMED else ""
        yield f"Not all were asked with the same texts, so more than the model differs: {each}{more}"


def _named(ids: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(each for each in _asked_ids(ids) if not _of_set(each)))


def _listed(ids: Collection[str]) -> str:
    shown = [each if len(each) <= _LONGEST else f"{each[: _LONGEST - 1]}…" for each in list(ids)[:MOST_NAMED]]
    return ", ".join(shown) + (", …" if len(ids) > MOST_NAMED else "")


Published = Literal[
    "artifact_scores",
    "detection_scores",
    "edit_scores",
    "generator_audit",
    "inpainting_scores",
    "mcq_scores",
    "semantic_scores",
]

Compared = Literal["artifact_scores", "semantic_scores", "inpainting_scores", "generator_audit"]
_CAVEATS: Mapping[Compared, str] = {
    "artifact_scores": (
        "Published rows are about the authors' test images, and models there were asked with the authors' "
        "prompts."
    ),
    "semantic_scores": (
        "Published models were asked with the authors' prompts about the authors' test images, and about the "
        "source in a call of its own."
    ),
    "inpainting_scores": (
        "Published figures are about the authors' images, labelled by the authors' model asked with the "
        "authors' prompts."
    ),
    "generator_audit": (
        "Published generators were judged by other assessors, asked with the authors' prompts, on images of "
        "other captions."
    ),
}
# No model was asked there.
EDITS_CAVEAT = (
    "Published detectors were run with their own settings on the authors' evaluation set, which holds "
    "more edits than real images, on which precision depends: for orientation only."
)
# Of people; appendix D and section 5.
RATINGS_CAVEAT = (
    "Published: Semi-Truths, table 5, the mode of three ratings of each of 800 pairs, with an ICC(2,k) of "
    "0.835. mask_ratio is its Area Ratio; metrics that it does not print were below 0.10. People, images and "
    "edits were others: for orientation only."
)


def caveat(table: Compared, sets: Mapping[str, Collection[str]]) -> str:
    """In what else than the model published rows differ from figures of a user's files, in sentences.

    `sets` has by the name of each file the ids of the prompts in its records, see `asked_with`: what a file
    does not say of itself is not said of it here.
    """
    whose, sentence = asked_with(sets)
    ending = (
        "for orientation only, rows differ in more than the model"
        if whose == {"ours"}
        else "rows compare only where images and prompts are the authors'"
    )
    yours = f" Yours: {sentence[:1].lower()}{sentence[1:]}; {ending}." if sentence else ""
    return f"{_CAVEATS[table]}{yours}"


def published(name: Published) -> dict[str, Any]:
    """One paper's tables; the key `source` says which paper and which tables."""
    return cast(
        dict[str, Any], orjson.loads((files("uncanny.eval") / "published" / f"{name}.json").read_bytes())
    )
