"""The mistakes the demo model makes on the bundled scenes, on purpose and always the same: see docs/demo.md.

A model without mistakes would leave nothing to review and every score at its maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from uncanny.schema import ArtifactCategory

MistakeKind = Literal[
    "misses", "invents", "mislocates", "misjudges", "overlooks-once", "names-twice", "unsure"
]
MISTAKE_KINDS: tuple[MistakeKind, ...] = get_args(MistakeKind)


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake in annotating one scene. `target` names the anomaly or object concerned.

    `text` is the wrong phenomenon (`mislocates`, `invents`) or the second name (`names-twice`); `reasoning`
    goes with `invents`; `severity` is the wrong value (`misjudges`) or the invented one (`invents`).
    For `invents`, `target` is the invented anomaly's name and `at` the object it is claimed of. `confidence`,
    0-100, is how sure the model says it is (`unsure`), which is no mistake about an invented one.
    """

    scene: str
    kind: MistakeKind
    target: str
    text: str = ""
    reasoning: str = ""
    severity: int = 0
    at: str = ""
    confidence: int = 0


ANNOTATE_MISTAKES: tuple[Mistake, ...] = (
    Mistake(
        "c01-ball-on-thread",
        "invents",
        target="Ball hangs in the air",
        text="The blue-green ball hangs in the air above the white saucer with a gap below it, and neither "
        "the stand nor the saucer holds it.",
        reasoning="A solid ball has weight. Without anything that carries it, it would drop onto the saucer.",
        severity=12,
        at="ball",
    ),
    Mistake("d02-three-arms", "misses", target="Sign spells nonsense"),
    Mistake("d03-dog-four-legs", "names-twice", target="dog", text="The Dog"),
    Mistake(
        "d04-bicycle-no-fork", "misjudges", target="Front wheel is not joined to the bicycle", severity=65
    ),
    Mistake("d07-calendar-date-twice", "unsure", target="Calendar has a date twice", confidence=40),
    Mistake("d08-gable-other-in-water", "misses", target="House has another gable in the water"),
    Mistake(
        "d09-painting-reversed-perspective", "unsure", target="Painting grows with distance", confidence=40
    ),
    Mistake(
        "r01-cup-on-saucer",
        "invents",
        target="Two lemons grow into each other",
        text="At the left of the table the two yellow lemons run into each other where they touch; no edge "
        "parts the front one from the one behind.",
        reasoning="Two ripe lemons are separate solid fruits. They can touch, but neither can fill the place "
        "of the other.",
        severity=35,
        at="lemons",
    ),
    Mistake("r01-cup-on-saucer", "unsure", target="Two lemons grow into each other", confidence=30),
    Mistake("r02-mirror-candlestick", "overlooks-once", target="hairbrush"),
    Mistake(
        "r03-shadow-towards-sun",
        "mislocates",
        target="Shadow of the egg cup points towards the light",
        text="The dark shadow that starts at the foot of the pear at the back right runs to the left across "
        "the table, while the shadows of the other things run to the right.",
    ),
)


def mistakes_in(scene: str) -> tuple[Mistake, ...]:
    """The mistakes in annotating one scene, by its id; empty for most."""
    return tuple(mistake for mistake in ANNOTATE_MISTAKES if mistake.scene == scene)


DETECT_MISTAKES: dict[str, str] = {
    "d05-swan-reflection-turned": "Verdict: No",
    "d08-gable-other-in-water": "Verdict: No",
    "r01-cup-on-saucer": "Verdict: Yes",
    "r03-shadow-away-from-sun": "It could be either; I cannot tell.",
}
"""Scene → the wrong answer to whether it is generated."""

MCQ_MISTAKES: dict[str, dict[str, str]] = {
    "c01-ball-on-thread": {"q1": "yes", "q4": "A"},
    "d05-swan-reflection-turned": {"q1": "no"},
    "d08-gable-other-in-water": {"q1": "no"},
    "r01-cup-floating": {"q2": "A"},
    "d03-dog-five-legs": {"q3": "D"},
    "r04-table-three-legs": {"q4": "Probably A, but it is hard to say."},
    "r05-spoon-in-glass": {"q1": "yes", "q2": "D", "q3": "D", "q4": "D"},
    "r02-mirror-candlestick": {"q4_no_image": "C"},
}
"""Scene → question → the wrong answer given to it."""

REALISM_MISTAKES: dict[str, dict[str, str]] = {
    "d02-three-arms": {"first": "Yes"},
    "d04-bicycle-no-fork": {"first": "Yes", "original_first": "Both", "edited_first": "First"},
    "d05-swan-reflection-turned": {"first": "Yes", "edited_first": "First"},
    "d08-gable-other-in-water": {"first": "Yes", "edited_first": "Both"},
    "r01-cup-floating": {"first": "Yes", "original_first": "Both", "edited_first": "Both"},
    "r02-mirror-candlestick": {"first": "Yes", "original_first": "Second", "edited_first": "First"},
    "r04-table-three-legs": {"first": "Yes", "edited_first": "Both"},
    "r05-spoon-through-glass": {"first": "Yes", "edited_first": "no verdict"},
}
"""Edited scene → question → the wrong verdict given about it."""


ARTIFACT_CATEGORY_MISTAKES: dict[str, ArtifactCategory] = {
    "Wrong numerals on the clock": "symbols",
    "Pier of the viaduct ends in the air": "physics",
    "Ball hangs in the air": "physics",
    "Two lemons grow into each other": "edges_shapes",
}
"""Anomaly, by its name → the wrong category it is located under; of the invented ones any is wrong."""

ARTIFACT_BOX_MISTAKES: frozenset[str] = frozenset(
    {
        "Raised hand has six fingers",
        "Front wheel is not joined to the bicycle",
        "Ball hangs in the air",
        "Two lemons grow into each other",
    }
)
"""Anomalies whose box is that of the whole thing they are about."""
