"""The mistakes the demo model makes on the bundled scenes, on purpose and always the same: see docs/demo.md.

A model without mistakes would leave nothing to review and every score at its maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

MistakeKind = Literal["misses", "invents", "mislocates", "misjudges", "overlooks-once", "names-twice"]
KINDS: tuple[MistakeKind, ...] = get_args(MistakeKind)


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in one scene. `target` names the anomaly or object concerned.

    `text` is the wrong phenomenon (`mislocates`, `invents`) or the second name (`names-twice`); `reasoning`
    goes with `invents`; `severity` is the wrong value (`misjudges`) or the invented one (`invents`).
    For `invents`, `target` is the invented anomaly's name and `at` the object it is claimed of.
    """

    scene: str
    kind: MistakeKind
    target: str
    text: str = ""
    reasoning: str = ""
    severity: int = 0
    at: str = ""


MISTAKES: tuple[Mistake, ...] = ()


def mistakes_in(scene: str) -> tuple[Mistake, ...]:
    """The mistakes made in one scene, by its id; empty for most."""
    return tuple(mistake for mistake in MISTAKES if mistake.scene == scene)
