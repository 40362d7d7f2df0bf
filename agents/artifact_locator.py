"""ArtifactLocator: where are the artifacts in this picture, and of which sort is each?

It asks once for each of the seven categories of X-AIGD, or once for all of them, for boxes in the form that
the model was trained on, and may ask how likely the picture is generated. System text and picture come first
in every call, so that a provider can reuse what it has computed for them.

An answer with boxes that cannot be is asked for again; where none becomes valid as a whole, what was valid in
the best one stays, beside the error. Source: X-AIGD, section 3.2 and appendix C.1, where every category is
asked for separately. The wording, and what belongs to a category, are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from uncanny.agents.boxes import BoxContext
from uncanny.agents.config import ArtifactsConfig
from uncanny.agents.steps import ListStep, Size, Step
from uncanny.answers import own_schema, shared_schema
from uncanny.answers.artifacts import (
    ALL_ARTIFACTS,
    ARTIFACTS,
    ArtifactReader,
    GivenArtifact,
    GivenArtifactOfAny,
    Located,
    asked_form,
    read_likelihood,
)
from uncanny.answers.boxes import BoxFormatName
from uncanny.errors import AnswerError, StepFailedError
from uncanny.models.base import AnswerSchema
from uncanny.schema import ArtifactCategory, StepError

AGENT: Final = "ArtifactLocator"
ROLES: Final[Mapping[str, str]] = {"locator": AGENT}

# A box, a note of some words, keys and quotes: 35 tokens an artifact, of which a category has one or two.
LOCATE: Final[ListStep[GivenArtifact]] = ListStep(
    AGENT, 1, "category", data_tokens=Size(120), output_tokens=Size(50), form=ARTIFACTS
)
LOCATE_ALL: Final[ListStep[GivenArtifactOfAny]] = ListStep(
    AGENT, 1, "joint", data_tokens=Size(800), output_tokens=Size(200), form=ALL_ARTIFACTS
)
ESTIMATE: Final = Step(AGENT, 2, "likelihood", output_tokens=5)


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of one question about `categories`.

    `failure` says why an answer is not whole, or is none: then `located` is None, and nothing is known of
    these categories.
    """

    categories: tuple[ArtifactCategory, ...]
    located: tuple[Located, ...] | None
    failure: StepError | None = None


@dataclass(frozen=True, slots=True)
class ArtifactContext(BoxContext[ArtifactsConfig]):
    """`BoxContext` of an image whose artifacts are located."""

    @property
    def asked_boxes(self) -> dict[str, str]:
        """How the prompts say what boxes are wanted."""
        return {"box_key": self.box_key(AGENT), "box_rule": self.box_rule(AGENT)}

    def schema(self, step: ListStep[Any]) -> AnswerSchema:
        return _schema(self.box_format(step.agent).name, joint=step is LOCATE_ALL)


async def locate_category(category: ArtifactCategory, image: ArtifactContext) -> Answered:
    """The artifacts of one category. Raises what `uncanny.errors.ENDS_RUN` names."""
    text = image.prompts[LOCATE.prompt].fill(
        category=category, definition=image.prompts[category].fill(), **image.asked_boxes
    )
    return await _locate(LOCATE, (category,), text, image)


async def locate_all(categories: Sequence[ArtifactCategory], image: ArtifactContext) -> Answered:
    """Those of all `categories` by one call. Raises as `locate_category`."""
    definitions = "\n".join(f'- "{each}": {image.prompts[each].fill()}' for each in categories)
    text = image.prompts[LOCATE_ALL.prompt].fill(definitions=definitions, **image.asked_boxes)
    return await _locate(LOCATE_ALL, categories, text, image)


async def estimate_likelihood(image: ArtifactContext) -> float:
    """How likely the image is generated, 0–1. Raises StepFailedError, and as `locate_category`."""
    messages = image.opening((image.image,), image.prompts[ESTIMATE.prompt].fill())
    return await image.generate(ESTIMATE, messages, read_likelihood, repair=image.repair("repair_text"))


async def _locate(
    step: ListStep[Any], categories: Sequence[ArtifactCategory], text: str, image: ArtifactContext
) -> Answered:
    joint = step is LOCATE_ALL
    reader = ArtifactReader(
        tuple(categories), joint, image.box_key(AGENT), lambda given: image.box(given, AGENT)
    )
    try:
        located = await image.generate(
            step,
            image.opening((image.image,), text),
            reader.read,
            repair=image.repair("repair"),
            subject=None if joint else categories[0],
            schema=image.schema(step),
        )
    except StepFailedError as failed:
        # Of a refusal, or a call that failed for good, nothing of an earlier draft is taken.
        best = reader.best if isinstance(failed.error, AnswerError) else None
        return Answered(tuple(categories), best, failed.record)
    return Answered(tuple(categories), located)


@cache
def _schema(box: BoxFormatName, *, joint: bool) -> AnswerSchema:
    form = asked_form(box, joint=joint)
    return AnswerSchema(form.key, own_schema(form), shared_schema((form,)))
