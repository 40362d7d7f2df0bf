"""What the JSON of a score says beside its figures: which version made it, of what, and how sure they are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import orjson

from uncanny import __version__
from uncanny.eval.common.groups import ImageGroups
from uncanny.eval.metrics.intervals import LEVEL, METHOD

# By what was digested, or by what and the name of each set of it.
Digests = Mapping[str, str | Mapping[str, str]]


def about(
    digests: Digests,
    prompts: Mapping[str, Collection[str]],
    *,
    resamples: int,
    seed: int,
    method: str = METHOD,
    groups: ImageGroups | None = None,
) -> dict[str, Any]:
    """The object under `about` in the JSON of every score.

    `digests` are of the truth, items or pairs that figures depend on, `prompts` have by the name of a model
    or file the ids of the prompts in its records, none where they name none. The others say how intervals
    were made; `groups` are the images that they took together.
    """
    how = {"level": LEVEL, "method": method, "resamples": resamples, "seed": seed}
    return {
        "uncanny": __version__,
        "digests": dict(digests),
        "prompts": {name: sorted(ids) for name, ids in prompts.items()},
        "intervals": {**how, "groups": None if groups is None else groups.to_json()},
    }


def digest_of(entries: Iterable[object]) -> str:
    """SHA-256, in hexadecimal, of entries that JSON has a form for; their order makes no difference."""
    return hashlib.sha256(b"\n".join(sorted(map(_line, entries)))).hexdigest()


def _line(entry: object) -> bytes:
    try:
        return orjson.dumps(entry, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # halves of characters, numbers of more than 64 bits, what files may hold
        return json.dumps(entry, sort_keys=True, default=str).encode()
