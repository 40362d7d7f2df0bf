"""What annotating images uses: calls, tokens and cost, from what images hold and how long the texts are.

Forecasts are made of it, and `run.json` keeps what it said of a run, to be held against what the run took.
Not counted are repair questions, reasoning, and that calls about relations share a list of objects which a
provider may keep too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from uncanny.agents.common.annotate_context import answer_schema, system_text
from uncanny.agents.common.context import asked_box_format, prompt_of
from uncanny.agents.common.own_agent import OwnAgent, own_calls
from uncanny.agents.config import AnnotateConfig
from uncanny.agents.steps import ROLES, SCAN_IMAGE, TAKE_INVENTORY, WHOLE_SIDE, InView, Step
from uncanny.client.prices import PriceTable
from uncanny.images.encode import PixelPolicy
from uncanny.models.registry import ModelId, ModelOptions
from uncanny.models.tokens import image_tokens, least_cached, text_tokens
from uncanny.prompts import Prompt, PromptSet
from uncanny.runs.forecast import CACHED_PREFIX, Usage, UsageCounter, total_usage

OBJECTS_AN_IMAGE: Final = 8
# What one look at the whole picture lists.
FAULTS_AN_IMAGE: Final = 4
# Of enlarged parts, in pixels: between what is tall, wide and small.
_PART: Final = (640, 512)
# Writing a prefix into the cache has a price of its own there.
_WRITES_ARE_BILLED: Final = frozenset({"anthropic"})
_ROLE_OF: Final[Mapping[str, str]] = {agent: role for role, agent in ROLES.items()}


@dataclass(frozen=True, slots=True)
class Contents:
    """What an image holds: `objects`, and `findings` of all agents, of which several may be one fault.

    `parts` of it are enlarged, by default one for each object that is examined. `related`: there is something
    in them for the RelationReasoner.
    """

    objects: int
    findings: int
    parts: int | None = None
    related: bool = True


def usual_contents(config: AnnotateConfig) -> Contents:
    """`OBJECTS_AN_IMAGE` objects, or as many as are examined at most, and `FAULTS_AN_IMAGE` findings.

    Where each object is examined by itself there is a finding about each.
    """
    objects = min(OBJECTS_AN_IMAGE, config.max_objects)
    return Contents(objects, objects if config.schedule == "paper" else FAULTS_AN_IMAGE)


@dataclass(frozen=True, slots=True)
class Plan:
    """How images are annotated: parameters, texts, models, what is done to pixels, added agents."""

    config: AnnotateConfig
    prompts: PromptSet
    models: ModelOptions
    policy: PixelPolicy
    agents: tuple[OwnAgent, ...] = ()

    @property
    def jointly(self) -> bool:
        """Whether one model is asked for objects and for faults of the whole image."""
        return self._model(TAKE_INVENTORY) == self._model(SCAN_IMAGE)

    def own_calls(self, objects: int, parts: int | None = None) -> int:
        """Calls of the added agents about one image with so many objects and enlarged parts."""
        return own_calls(self.agents, self.config.times(objects, regions=parts))

    def usage(
        self,
        prices: PriceTable,
        images: int,
        sizes: Sequence[tuple[int, int]],
        contents: Mapping[Contents, int] | None = None,
    ) -> Usage:
        """What so many images would use.

        `sizes` in pixels are those of some of them; one of 1024 × 1024 stands for all where there are none.
        `contents` count what the images hold; by default each holds what is usual.
        """
        contents = contents or {usual_contents(self.config): 1}
        share = images / sum(contents.values())
        sent = [_sent(size, self.policy.max_side) for size in sizes or [(1024, 1024)]]
        counts: dict[ModelId, UsageCounter] = {}
        for each, number in contents.items():
            self._add(counts, each, number * share, sent)
        return total_usage(count.usage(prices) for count in counts.values())

    def _add(
        self,
        counts: dict[ModelId, UsageCounter],
        contents: Contents,
        images: float,
        sizes: Sequence[tuple[int, int]],
    ) -> None:
        """Count `images` images that hold `contents`."""
        own = (agent.step for agent in self.agents if agent.calls)
        parts = self.config.parts(contents.objects) if contents.parts is None else contents.parts
        times = self.config.times(contents.objects, regions=parts, jointly=self.jointly)
        times["relations"] *= contents.related
        # A step that is about findings is taken only where there are some.
        calls = [
            (step, min(times[step.per], contents.findings) if step.of_findings else times[step.per])
            for step in (*self.config.table.steps, *own)
            if not step.spare
        ]
        finders = sum(number for step, number in calls if step.finds)
        system = text_tokens(system_text(self.prompts, self.config))
        prefixes: defaultdict[tuple[ModelId, int], int] = defaultdict(int)
        for step, number in calls:
            if not number:
                continue
            model = self._model(step)
            findings = contents.findings / (number if step.of_findings else max(finders, 1))
            subjects = {"object": 1.0}.get(step.per, contents.objects)
            view = InView(subjects, contents.objects, findings, self.config.repeats)
            schema = self._schema_tokens(step, model)
            text = schema + system + self._question(step, str(model)) + step.data.tokens(view)
            shown = parts / number if step.per == "batch" else min(step.parts, parts)
            counter = counts.setdefault(model, UsageCounter(model))
            counter.add(text, output=step.answer.tokens(view), calls=images * number)
            counter.add_images(image_tokens(str(model), *_PART), images * number * shown)
            if step.sees_image or step.per == "batch":
                whole = sizes if step.sees_image else [_sent(size, WHOLE_SIDE) for size in sizes]
                counter.add_images(_mean_tokens(model, whole), images * number)
            if step.sees_image and not step.alone:
                prefixes[model, schema] += number
        for (model, schema), number in prefixes.items():
            kept = _kept(model, sizes, schema + system)
            counts[model].cached_tokens += images * (number - 1) * kept
            if model.provider in _WRITES_ARE_BILLED:
                counts[model].written_tokens += images * kept

    def _model(self, step: Step) -> ModelId:
        return self.models.roles.get(_ROLE_OF.get(step.agent, step.agent), self.models.model)

    def _schema_tokens(self, step: Step, model: ModelId) -> int:
        """Tokens of the schema that a provider renders into the prompt; 0 where it renders none."""
        schema = answer_schema(step, str(model), self.config) if CACHED_PREFIX.get(model.provider) else None
        return 0 if schema is None else text_tokens(orjson.dumps(schema.shared).decode())

    def _question(self, step: Step, model: str) -> float:
        """Tokens of a step's texts, before anything is filled in but other texts."""
        wordings = [prompt_of(step, self.prompts, sample) for sample in range(self.config.repeats)]
        names = [name for name in step.texts if name in self.prompts.prompts]
        rule = f"box_{asked_box_format(model, self.config).name}"
        if "box_rule" in wordings[0].variables and rule in self.prompts.prompts:
            names.append(rule)
        asked = sum(_tokens(prompt) for prompt in wordings) / len(wordings)
        return asked + sum(_tokens(self.prompts[name]) for name in names)


def _tokens(prompt: Prompt) -> int:
    return text_tokens(prompt.template.template)


def _sent(size: tuple[int, int], max_side: int | None) -> tuple[int, int]:
    """The size at which an image is sent."""
    scale = 1.0 if max_side is None else min(1.0, max_side / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _mean_tokens(model: ModelId, sizes: Sequence[tuple[int, int]]) -> float | None:
    """Tokens of an image, on average over its sizes; None where they are not known."""
    tokens = [image_tokens(str(model), *size) for size in sizes]
    known = [each for each in tokens if each is not None]
    return sum(known) / len(known) if known else None


def _kept(model: ModelId, sizes: Sequence[tuple[int, int]], text: int) -> float:
    """Tokens that a provider keeps of a prefix of `text` tokens of text and an image, on average."""
    if model.provider not in CACHED_PREFIX:
        return 0.0
    least = least_cached(str(model))
    prefixes = [text + (image_tokens(str(model), *size) or 0) for size in sizes]
    return sum(tokens for tokens in prefixes if tokens >= least) / len(prefixes)
