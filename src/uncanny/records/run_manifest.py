"""`run.json` as it is read back: every key may be missing, none may have another type."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from uncanny.schema import MOST_COUNTED, Count, Dollars, Record

FORMAT = 1

# Counts that are not figures of usage: what is no number from 0 up is an error.
Number = Annotated[int, Field(ge=0, le=MOST_COUNTED)]


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


class Sums(Record):
    """What was measured; None is a sum that cannot be true."""

    input_tokens: Count = 0
    cached_tokens: Count = 0
    output_tokens: Count = 0
    cost_usd: Dollars = 0


class Totals(Record):
    """`run.json`'s totals; None is what the run did not measure or did not write."""

    images: Count = None
    pending: Count = None
    duplicates: Count = None
    calls: Count = None
    replayed: Count = None
    input_tokens: Count = None
    cached_tokens: Count = None
    output_tokens: Count = None
    cost_usd: Dollars = None
    sums: Sums = Sums()
    unmeasured: dict[str, Number] = Field(default_factory=dict)
    outcomes: dict[str, Number] | None = None
    seconds: Annotated[float, Field(ge=0, le=MOST_COUNTED)] | None = None


class Prompts(Record):
    """`run.json`'s prompts: `id` as in every record, a hash per file, and the system text."""

    id: str | None = None
    files: dict[str, str] = Field(default_factory=dict)
    # By name; version 0.1.0 said here whose they were.
    texts: Any = None
    system: str | None = None


class PixelCounts(Record):
    """`run.json`'s pixels: the policy, and how many images each kind of change was made to."""

    policy: dict[str, Any] = Field(default_factory=dict)
    changed: dict[str, Number] = Field(default_factory=dict)


class RunManifest(Record):
    """`run.json`. `root` is where image paths start, None for the run folder; `started` is ISO 8601.

    `items` is the item file of `mcq run`, from the run folder.

    `served_as` has the names under which each model really answered, `served_unnamed` the models of which
    some answers bear none.
    """

    format: Annotated[int, Field(strict=True, ge=1, le=FORMAT)] = FORMAT
    uncanny: str | None = None
    python: str | None = None
    libraries: dict[str, Any] = Field(default_factory=dict)
    state: str | None = None
    started: Annotated[str, AfterValidator(_moment)] | None = None
    updated: str | None = None
    task: str | None = None
    root: str | None = None
    items: str | None = None
    model: str | None = None
    roles: dict[str, str] = Field(default_factory=dict)
    fallback: str | None = None
    served_as: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    served_unnamed: tuple[str, ...] = ()
    plan: dict[str, Any] = Field(default_factory=dict)
    parameters: dict[str, Any] = Field(default_factory=dict)
    prompts: Prompts = Prompts()
    pixels: PixelCounts = PixelCounts()
    # A run that has just begun writes empty totals: nothing is known yet, as if there were none.
    totals: Annotated[Totals | None, BeforeValidator(lambda value: value or None)] = None

    @property
    def started_at(self) -> float | None:
        """When the run was first started, in seconds since the epoch."""
        if self.started is None:
            return None
        moment = datetime.fromisoformat(self.started)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

    def written(self) -> dict[str, Any]:
        """What stood in the file, key by key."""
        return self.model_dump(exclude_unset=True)
