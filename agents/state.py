"""What is known of an image while it is annotated: the state that agents read, and what each adds to it.

An agent is a coroutine function from a state and the image to what it found out. So it can be a node of a
graph as it stands, and one of a user's own can be put in its place. The state holds names and findings only;
image, models and the log of calls are in the `ImageContext`.
"""

from __future__ import annotations

import operator
from typing import Annotated, TypedDict

from uncanny.agents.config import AnnotateConfig
from uncanny.agents.context import ImageContext
from uncanny.answers import AttributeFinding, Finding, RelationFinding
from uncanny.schema import Anomaly, SceneObject, StepError

Context = ImageContext[AnnotateConfig]


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
    """What is known about one object: `subject`, at place `order` of all `objects`.

    `attributes`, `relations`, `findings`: each set by one agent. `error`: why one failed, which ends the
    object.
    """

    image: str
    order: int
    subject: SceneObject
    objects: list[SceneObject]
    attributes: list[AttributeFinding]
    relations: list[RelationFinding]
    findings: list[Finding]
    error: StepError | None


class ScanState(TypedDict, total=False):
    """One scene scan: `order` is its number, counted from 0; `findings` is set by the scanner."""

    image: str
    order: int
    findings: list[Finding]


def findings_of(state: AnnotateState) -> list[Finding]:
    """All findings about an image, in the order of its objects, then of its scans."""
    branches = sorted(state.get("examined", []), key=lambda branch: branch["order"])
    return [finding for branch in branches for finding in branch["findings"]]
