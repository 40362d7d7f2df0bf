"""Whose texts models were asked with, by the ids in their records, so that figures pass for no others.

Ids of this version's sets and of earlier ones that are kept are uncanny's; any other is a user's, or one of a
version that this one does not know.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from uncanny.prompts import is_ours

MOST_NAMED = 5
_LONGEST = 60


def other_texts(ids: Collection[str]) -> list[str]:
    """Those of the ids that are not uncanny's, sorted."""
    return sorted(each for each in ids if not is_ours(each))


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
    named = {name: tuple(sorted(ids)) for name, ids in sets.items() if ids}
    if len(set(named.values())) > 1:
        each = "; ".join(f"{name}: {_listed(ids)}" for name, ids in list(named.items())[:MOST_NAMED])
        more = f"; and {len(named) - MOST_NAMED:,} more" if len(named) > MOST_NAMED else ""
        yield f"Not all were asked with the same texts, so more than the model differs: {each}{more}"


def _listed(ids: Collection[str]) -> str:
    shown = [each if len(each) <= _LONGEST else f"{each[: _LONGEST - 1]}…" for each in list(ids)[:MOST_NAMED]]
    return ", ".join(shown) + (", …" if len(ids) > MOST_NAMED else "")
