"""ArtifactLocator: where are the artifacts in this picture, and of which sort is each?

It asks once for each of the seven categories of X-AIGD, or once for all of them, for boxes in the form that
the model was trained on, and may ask how likely the picture is generated. System text and picture come first
in every call, so that a provider can reuse what it has computed for them.

An answer with boxes that cannot be is asked for again; where none becomes valid as a whole, what was valid in
the best one stays, beside the error. Source: X-AIGD, section 3.2 and appendix C.1, where every category is
asked for separately. The wording, and what belongs to a category, are ours.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from uncanny.agents.common.context import BoxContext, Wording, asked_box_format
from uncanny.agents.config import ArtifactsConfig
from uncanny.agents.steps import ListStep, Size, Step
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
from uncanny.answers.boxes import BoxFormatName, GivenBox
from uncanny.answers.forms import own_schema, shared_schema
from uncanny.errors import AnswerError, StepFailedError
from uncanny.models.base import AnswerSchema
from uncanny.schema import ArtifactCategory, Box, StepError

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


async def locate_artifacts(image: ArtifactContext) -> tuple[list[Answered], float | StepError | None]:
    """All questions about an image, side by side: what came of each, and how likely the image is generated.

    The likelihood is None where it is not asked for, or says why there is none. Raises as `locate_category`.
    """
    config = image.config
    questions: list[Coroutine[Any, Any, Answered | float | StepError]] = (
        [locate_all(config.categories, image)]
        if config.joint
        else [locate_category(category, image) for category in config.categories]
    )
    if config.likelihood:
        questions.append(_likelihood_or_failure(image))
    answers = await image.scope.side_by_side(questions)
    located = [each for each in answers if isinstance(each, Answered)]
    return located, next((each for each in answers if not isinstance(each, Answered)), None)


async def _likelihood_or_failure(image: ArtifactContext) -> float | StepError:
    try:
        return await estimate_likelihood(image)
    except StepFailedError as failed:
        return failed.record


async def locate_category(category: ArtifactCategory, image: ArtifactContext) -> Answered:
    """The artifacts of one category. Raises what `uncanny.errors.ENDS_RUN` names."""
    definition = image.prompts[category].fill()
    return await _locate(LOCATE, (category,), image, category=category, definition=definition)


async def locate_all(categories: Sequence[ArtifactCategory], image: ArtifactContext) -> Answered:
    """Those of all `categories` by one call. Raises as `locate_category`."""
    definitions = "\n".join(f'- "{each}": {image.prompts[each].fill()}' for each in categories)
    return await _locate(LOCATE_ALL, categories, image, definitions=definitions)


async def estimate_likelihood(image: ArtifactContext) -> float:
    """How likely the image is generated, 0–1. Raises StepFailedError, and as `locate_category`."""
    messages = image.opening((image.image,), image.prompts[ESTIMATE.prompt].fill())
    return await image.generate(ESTIMATE, messages, read_likelihood, repair=image.repair("repair_text"))


async def _locate(
    step: ListStep[Any],
    categories: Sequence[ArtifactCategory],
    image: ArtifactContext,
    **variables: str,
) -> Answered:
    joint = step is LOCATE_ALL
    readers: list[ArtifactReader] = []

    def worded(model: str) -> Wording[tuple[Located, ...]]:
        def pixels(given: GivenBox | None) -> Box | None:
            return image.box(given and replace(given, model=model))

        readers.append(ArtifactReader(tuple(categories), joint, image.box_key(model), pixels))
        schema = _schema(asked_box_format(model, image.config).name, joint=joint)
        return Wording(image.messages(step, model, (), 0, variables), readers[-1].read, schema)

    first = worded(image.first_model(step))
    try:
        located = await image.generate(
            step,
            first.messages,
            first.read,
            repair=image.repair("repair"),
            subject=None if joint else categories[0],
            schema=first.schema,
            fallback=worded,
        )
    except StepFailedError as failed:
        # Of a refusal, or a call that failed for good, nothing of an earlier draft is taken.
        drafts = (reader.best for reader in reversed(readers) if reader.best is not None)
        best = next(drafts, None) if isinstance(failed.error, AnswerError) else None
        return Answered(tuple(categories), best, failed.record)
    return Answered(tuple(categories), located)


@cache
def _schema(box: BoxFormatName, *, joint: bool) -> AnswerSchema:
    form = asked_form(box, joint=joint)
    return AnswerSchema(form.key, own_schema(form), shared_schema((form,)))
