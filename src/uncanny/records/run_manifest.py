"""`run.json` as one model, for the run that writes it and for everybody who reads it.

Any key may be missing, none may have another type, and unknown keys are kept. Keys are written in the order
of the fields here, and only those that were set.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from uncanny.schema import MOST_COUNTED, Count, Dollars, Record

# Raise it with every change that makes older files unreadable; `RunFolder.read_manifest` refuses any other.
FORMAT = 2
# Whose texts a run of `mcq run` asks that a user has put in place of ours.
THE_USERS = "the user's"

# What inputs are called; one of them is in `Totals`.
UNITS = ("images", "questions", "pairs", "texts")
# Counts that are not figures of usage: what is no number from 0 up is an error.
Number = Annotated[int, Field(ge=0, le=MOST_COUNTED)]


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


class Prompts(Record):
    """The texts a run is asked with: `id` as in every record, a hash per file, the texts by name.

    `system` is the system text of a run over images. `whose` says of a run of `mcq run` whose texts were
    asked: `ours`, `the set's`, `both` of these, or `the user's`. `own` names the texts that a user has put in
    place of ours; where it is missing there are none.
    """

    id: str | None = None
    files: dict[str, str] = Field(default_factory=dict)
    texts: dict[str, str] = Field(default_factory=dict)
    system: str | None = None
    whose: str | None = None
    own: tuple[str, ...] = ()


class PixelCounts(Record):
    """What is done to pixels: the policy, and how many images each kind of change was made to."""

    policy: dict[str, Any] = Field(default_factory=dict)
    changed: dict[str, Number] = Field(default_factory=dict)


class SkippedInput(Record):
    """What lay in the folders given and is no input; `detail` is the system's own reason, if there is one."""

    path: str
    reason: str
    detail: str | None = None


class Sums(Record):
    """What was measured; None is a sum that cannot be true."""

    input_tokens: Count = 0
    cached_tokens: Count = 0
    output_tokens: Count = 0
    cost_usd: Dollars = 0


class Estimated(Record):
    """What a limit booked for answers without usage, beyond what of them was measured: the most possible."""

    tokens: Number | None = None
    cost_usd: Dollars = None


class RunForecast(Record):
    """What a run was forecast to take; None is what was not known.

    It is about all `images` that can be read, whenever they are worked on, each with so many objects.
    """

    images: Count = None
    objects_per_image: Count = None
    calls: Count = None
    input_tokens: Count = None
    output_tokens: Count = None
    cost_usd: Dollars = None


class Totals(Record):
    """How far a run is and what it took, over all its sessions.

    One of `images`, `questions` and `pairs` says how many inputs there are; those after it count their
    records by status, `pending` the inputs without one. None is what the run did not measure or did not
    write; `objects` were examined, and images `without_findings` are those of which no agent said anything is
    wrong; `sums` have what was measured where a total is not known, for want of so many `unmeasured` calls.
    """

    images: Count = None
    questions: Count = None
    pairs: Count = None
    texts: Count = None
    ok: Count = None
    partial: Count = None
    refused: Count = None
    undetermined: Count = None
    failed: Count = None
    unreadable: Count = None
    unusable: Count = None
    invalid: Count = None
    pending: Count = None
    duplicates: Count = None
    anomalies: Count = None
    regions: Count = None
    objects: Count = None
    without_findings: Count = None
    calls: Count = None
    replayed: Count = None
    input_tokens: Count = None
    cached_tokens: Count = None
    output_tokens: Count = None
    cost_usd: Dollars = None
    unmeasured: dict[str, Number] = Field(default_factory=dict)
    outcomes: dict[str, Number] | None = None
    sums: Sums = Sums()
    estimated: Estimated | None = None
    seconds: Annotated[float, Field(ge=0, le=MOST_COUNTED)] | None = None

    def least(
        self, name: Literal["input_tokens", "cached_tokens", "output_tokens", "cost_usd"]
    ) -> float | None:
        """A total, or of one that is not known in full what was measured; None where nothing was."""
        total: float | None = getattr(self, name)
        measured: float | None = getattr(self.sums, name)
        return total if total is not None else measured or None


class RunHead(Record):
    """Who made a run, when, and in what state it is."""

    format: int = FORMAT
    uncanny: str | None = None
    python: str | None = None
    libraries: dict[str, Any] = Field(default_factory=dict)
    state: str | None = None
    started: Annotated[str, AfterValidator(_moment)] | None = None
    updated: str | None = None


class RunSettings(Record):
    """All that must stay the same for a run to be one run.

    `plan` has the parameters of the task that change its outcome. `root` is where image paths start, None for
    the run folder. `items` is the item file of `mcq run`, `pairs` where the pairs of `realism run` come from,
    `texts` where those of `edits perturb` and `edits prompts` do, all from the run folder.
    """

    task: str | None = None
    model: str | None = None
    roles: dict[str, str] = Field(default_factory=dict)
    plan: dict[str, Any] = Field(default_factory=dict)
    prompts: Prompts = Prompts()
    pixels: PixelCounts = PixelCounts()
    root: str | None = None
    items: str | None = None
    pairs: str | None = None
    texts: str | None = None

    def written(self) -> dict[str, Any]:
        """What stands in the file, key by key."""
        return self.model_dump(exclude_unset=True)

    def comparable(self) -> dict[str, Any]:
        """As `written`, with nothing in it that may change while a run goes on.

        Of the prompts there is their id, and whose they are; of the pixels the policy.
        """
        whose = self.prompts.whose
        if whose == THE_USERS:
            whose = "ours"  # in place of which they stand; which texts they are, the id says
        return self.written() | {
            "prompts": {"id": self.prompts.id, "whose": whose},
            "pixels": {"policy": self.pixels.policy},
        }


class RunManifest(RunSettings, RunHead):  # the fields of the last base come first
    """`run.json`.

    `record_file` is the name of the file of records. `parameters` are those sent to each model. `forecast`
    is what the run was to take. `served_as` has the names under which each model really answered,
    `served_unnamed` the models of which some answers bear none. `skipped` lists some of what lay in the
    folders and is no input, `skipped_counts` counts all of it. `error` is why the last session ended early,
    None where it did not or was only asked to; `warnings` are what it had to say.
    """

    record_file: str | None = None
    fallback: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    forecast: RunForecast | None = None
    # A run that has just begun writes empty totals: nothing is known yet, as if there were none.
    totals: Annotated[Totals | None, BeforeValidator(lambda value: value or None)] = None
    served_as: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    served_unnamed: tuple[str, ...] = ()
    skipped: tuple[SkippedInput, ...] = ()
    skipped_counts: dict[str, Number] = Field(default_factory=dict)
    error: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def started_at(self) -> float | None:
        """When the run was first started, in seconds since the epoch."""
        if self.started is None:
            return None
        moment = datetime.fromisoformat(self.started)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
