"""What is known of an image while it is annotated: the state that agents read, and what each adds to it.

An agent is a coroutine function from a state and the image to what it found out. So it can be a node of a
graph as it stands, and one of a user's own can be put in its place. The state holds names and findings only;
image, models and the log of calls are in the `ImageContext`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Annotated, Required, TypedDict

from uncanny.agents.common.annotate_context import AnnotateContext as Context
from uncanny.answers.forms import AttributeFinding, Finding, RelationFinding
from uncanny.answers.packed import Fault
from uncanny.schema import Anomaly, Box, Candidate, SceneObject, StepError

__all__ = [
    "AnnotateState",
    "BatchFinding",
    "BatchState",
    "Context",
    "Examined",
    "JudgedFault",
    "ObjectState",
    "PackedState",
    "ScanState",
    "Sighting",
    "as_findings",
    "findings_of",
    "numbered",
]


class Examined(TypedDict):
    """What came of one object or one scan: `order` sorts findings as if nothing had run side by side."""

    order: int
    findings: list[Finding]
    error: StepError | None


class AnnotateState(TypedDict, total=False):
    """One image on its way.

    `image` is its name. `objects`, `cut`: set by the perceiver, the objects to examine and those above the
    limit. `examined`: one entry from each object and each scan. `anomalies`: set by the formatter. `failure`:
    why one of these two failed, which ends the image.
    """

    image: str
    objects: list[SceneObject]
    cut: list[SceneObject]
    examined: Annotated[list[Examined], operator.add]
    anomalies: list[Anomaly]
    failure: StepError | None


class ObjectState(TypedDict, total=False):
    """What is known about one object: `subject`, at place `order` of all `objects`; `cut` as of the image.

    `attributes`, `relations`, `findings`: each set by one agent. `error`: why one failed, which ends the
    object.
    """

    image: str
    order: int
    subject: SceneObject
    objects: list[SceneObject]
    cut: list[SceneObject]
    attributes: list[AttributeFinding]
    relations: list[RelationFinding]
    findings: list[Finding]
    error: StepError | None


class ScanState(TypedDict, total=False):
    """One look at the whole image: `order` is its number, from 0, which repeats are told apart by.

    `findings`: set by the scanner of the paper's schedule; that of the packed one returns a `Sighting`.
    """

    image: str
    order: int
    findings: list[Finding]


def findings_of(state: AnnotateState) -> list[Finding]:
    """All findings about an image, in the order of its objects, then of its scans."""
    branches = sorted(state.get("examined", []), key=lambda branch: branch["order"])
    return [finding for branch in branches for finding in branch["findings"]]


class BatchFinding(TypedDict):
    """What one agent of the packed schedule found wrong: `objects` by name, `box` in pixels of the image."""

    found_by: str
    objects: tuple[str, ...]
    phenomenon: str
    reasoning: str
    box: Box | None


class Sighting(TypedDict, total=False):
    """What came of one look at a batch, or at the whole image.

    An agent has to set `findings`. `errors` are questions without an answer; a look may have several.
    `answered` says whether anything was said at all, if only that nothing is wrong; left out, it is True.
    `order` is set by the graph: it sorts findings as if nothing had run side by side.
    """

    findings: Required[list[BatchFinding]]
    errors: list[StepError]
    answered: bool
    order: int


class JudgedFault(TypedDict):
    """One fault as the integrator leaves it: the numbers of its findings, from 1, and what now holds."""

    numbers: tuple[int, ...]
    phenomenon: str
    reasoning: str
    box: Box | None


class PackedState(TypedDict, total=False):
    """One image on its way through the packed schedule, or the single one.

    `objects`, `cut`, `located`: set by the perceiver, as in `AnnotateState`; `located` are names of objects
    whose boxes two drafts agree on. `sightings`: one from each batch of an agent and each scan. `faults`,
    `candidates`: set by the integrator, what stands, and every finding with what became of it. `anomalies`:
    set by the formatter, with `candidates` that say which anomaly each became. `errors`: what went wrong
    without ending the image, `failure` what ended it.
    """

    image: str
    objects: list[SceneObject]
    cut: list[SceneObject]
    located: list[str]
    sightings: Annotated[list[Sighting], operator.add]
    faults: list[JudgedFault]
    candidates: list[Candidate]
    anomalies: list[Anomaly]
    errors: Annotated[list[StepError], operator.add]
    failure: StepError | None


class BatchState(TypedDict):
    """One batch on its way to one agent: `batch` are the places, from 1, of its objects in `objects`.

    `order` is the number of the batch, from 0. What the agent says of it is a `Sighting`.
    """

    image: str
    order: int
    batch: tuple[int, ...]
    objects: list[SceneObject]
    cut: list[SceneObject]


def as_findings(
    agent: str, faults: Iterable[Fault], image: Context, objects: Sequence[SceneObject] = ()
) -> list[BatchFinding]:
    """What `agent` was answered, as the state has it: boxes in pixels of the image.

    Faults of a batch have numbers, from 1, for `objects`, and get their names.
    """

    def names(fault: Fault) -> tuple[str, ...]:
        if not objects:
            return fault.objects
        return tuple(objects[number - 1].name for number in fault.numbers if 1 <= number <= len(objects))

    return [
        {
            "found_by": agent,
            "objects": names(each),
            "phenomenon": each.observed,
            "reasoning": each.explanation,
            "box": image.box(each.box),
        }
        for each in faults
    ]


def numbered(state: PackedState) -> list[BatchFinding]:
    """All findings about an image, number 1 first: of its batches in their order, then of its scans."""
    sightings = sorted(state.get("sightings", []), key=lambda sighting: sighting["order"])
    return [finding for sighting in sightings for finding in sighting["findings"]]
