"""What a run would ask and roughly cost, from the files' sizes and the prompts' lengths alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from uncanny.agents.steps import ROLES, Step
from uncanny.client.prices import PriceTable
from uncanny.client.tokens import InputEstimate, image_tokens, text_tokens
from uncanny.eval.annotate.run import OBJECTS_AN_IMAGE, AnnotateTask
from uncanny.models.base import Tokens
from uncanny.models.registry import missing_addresses
from uncanny.prompts import prompt_set
from uncanny.runs.image_task import still_pending
from uncanny.runs.inputs import mean_size, sample_sizes, skipped_figures
from uncanny.schema import Annotation

# Providers whose prefix cache lowers the price; True where a schema is rendered ahead of the messages.
CACHED_PREFIX: Final[Mapping[str, bool]] = {"openai": True, "anthropic": True, "vllm": False}
_ROLE_OF: Final[Mapping[str, str]] = {agent: role for role, agent in ROLES.items()}


def forecast(job: AnnotateTask) -> dict[str, Any]:
    """Calls, tokens and cost of what is left to do. Opens no model and needs no key.

    Where a model's image tokens are not known, tokens and cost are None and what is known stands beside them
    (`InputEstimate`); the cost is also None where the price is not known. Raises UsageError.
    """
    prices = PriceTable.load(job.models.prices)
    inputs = job.inputs()
    pending = still_pending(job.folder, inputs.files, job.options, Annotation)
    sizes, unreadable = sample_sizes(pending)
    images = len(pending) - unreadable
    objects = min(OBJECTS_AN_IMAGE, job.config.max_objects)
    size = mean_size(sizes)
    tokens = InputEstimate()
    times = job.config.times(objects)
    totals = [
        _used(job, prices, step, times[step.per] * images, size, tokens)
        for step in job.config.schedule.steps
        if times[step.per]
    ]
    return {
        "images": len(inputs.files),
        "pending": len(pending),
        "unreadable": unreadable,
        **skipped_figures(inputs.skipped),
        "objects_per_image": objects,
        "calls": images * job.config.calls(objects),
        "calls_least": images * (job.config.repeats + job.config.scene_scans),
        "calls_most": images * job.config.calls(job.config.max_objects),
        **tokens.as_json(),
        "output_tokens": sum(used.output for used in totals),
        "cost_usd": _sum(used.cost for used in totals),
        "cost_usd_uncached": _sum(used.cost_uncached for used in totals),
        "image_tokens_unknown": sorted(tokens.models),
        "missing": missing_addresses(job.models.all_models(), job.models.base_urls),
    }


@dataclass(frozen=True, slots=True)
class _Used:
    output: int
    cost: float | None
    cost_uncached: float | None


def _used(
    job: AnnotateTask,
    prices: PriceTable,
    step: Step,
    calls: int,
    size: tuple[int, int],
    tokens: InputEstimate,
) -> _Used:
    """Output and cost of all calls of one step; their input is added to `tokens`."""
    model = job.models.roles.get(_ROLE_OF[step.agent], job.models.model)
    name, texts = str(model), prompt_set("annotate")
    system = text_tokens(texts["system"].template.template)
    question = text_tokens(texts[step.prompt_name()].template.template) + step.data_tokens
    picture = image_tokens(name, *size) if step.sees_image else 0
    tokens.add(name, system + question, *([picture] if step.sees_image else []), calls=calls)
    output = calls * step.output_tokens
    if picture is None:
        return _Used(output, None, None)
    total = calls * (system + picture + question)
    cached = 0.0
    if model.provider in CACHED_PREFIX and step.sees_image:
        cached = calls * (system + picture) * _cached_share(job, CACHED_PREFIX[model.provider])
    return _Used(
        output,
        prices.cost(name, Tokens(total, output, int(cached), 0)),
        prices.cost(name, Tokens(total, output, 0, 0)),
    )


def _cached_share(job: AnnotateTask, schema_in_prefix: bool) -> float:
    """Of the calls of an image that see it: those that find its prefix computed, since others went before."""
    schedule = job.config.schedule
    calls = schedule.image_calls(job.config.times(OBJECTS_AN_IMAGE))
    return 1 - schedule.prefixes(schema_in_prefix=schema_in_prefix) / max(2, calls)


def _sum(values: Iterator[float | None]) -> float | None:
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return round(total, 6)
