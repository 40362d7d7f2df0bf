"""What a run would ask and roughly cost, from the files' sizes and the prompts' lengths alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from uncanny.agents.annotate_config import AnnotateConfig
from uncanny.client.prices import PriceTable
from uncanny.client.tokens import InputEstimate, image_tokens, text_tokens
from uncanny.eval.annotate.run import OBJECTS_AN_IMAGE, AnnotateTask
from uncanny.models.base import Tokens
from uncanny.models.registry import missing_addresses
from uncanny.prompts import prompt_set
from uncanny.runs.image_task import still_pending
from uncanny.runs.inputs import mean_size, sample_sizes, skipped_figures
from uncanny.schema import Annotation

# Prefixes of one image that are computed anew: free and constrained answers differ where schemas count.
PREFIXES = {"openai": 2, "anthropic": 2, "vllm": 1}


@dataclass(frozen=True, slots=True)
class _Kind:
    """Calls of one kind: how often for each object or image, and typical sizes in tokens."""

    role: str
    prompt: str
    per_object: int
    sees_image: bool
    data: int
    output: int


# Sizes are those of GPT-4o answers to prompts of this kind, rounded; only their order of magnitude matters.
_KINDS = (
    _Kind("attributes", "attribute_look", 1, True, 60, 400),
    _Kind("attributes", "attribute_verify", 1, True, 460, 150),
    _Kind("relations", "relation_look", 1, True, 700, 450),
    _Kind("relations", "relation_verify", 1, True, 1150, 150),
    _Kind("integrator", "integrate_merge", 1, False, 360, 300),
    _Kind("integrator", "integrate_list", 1, False, 360, 200),
)
_PERCEIVE = _Kind("perceiver", "perceive_1", 0, True, 0, 500)
_SCAN = _Kind("scanner", "scan", 0, True, 0, 250)
_FORMAT = _Kind("formatter", "format", 0, True, 1600, 1000)


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
    uses = [use for use in _uses(job.config, objects) if use[1]]
    tokens = InputEstimate()
    totals = [_used(job, prices, kind, number * images, size, tokens) for kind, number in uses]
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
        "output_tokens": sum(one.output for one in totals),
        "cost_usd": _sum(one.cost for one in totals),
        "cost_usd_uncached": _sum(one.cost_uncached for one in totals),
        "image_tokens_unknown": sorted(tokens.models),
        "missing": missing_addresses(job.models.all_models(), job.models.base_urls),
    }


@dataclass(frozen=True, slots=True)
class _Used:
    output: int
    cost: float | None
    cost_uncached: float | None


def _uses(config: AnnotateConfig, objects: int) -> Iterator[tuple[_Kind, int]]:
    yield _PERCEIVE, config.repeats
    yield _SCAN, config.scene_scans
    for kind in _KINDS:
        yield kind, kind.per_object * objects
    yield _FORMAT, 1


def _used(
    job: AnnotateTask,
    prices: PriceTable,
    kind: _Kind,
    calls: int,
    size: tuple[int, int],
    tokens: InputEstimate,
) -> _Used:
    """Output and cost of all calls of one kind; their input is added to `tokens`."""
    model = job.models.roles.get(kind.role, job.models.model)
    name, texts = str(model), prompt_set("annotate")
    system = text_tokens(texts["system"].template.template)
    question = text_tokens(texts[kind.prompt].template.template) + kind.data
    picture = image_tokens(name, *size) if kind.sees_image else 0
    tokens.add(name, system + question, *([picture] if kind.sees_image else []), calls=calls)
    output = calls * kind.output
    if picture is None:
        return _Used(output, None, None)
    total = calls * (system + picture + question)
    # Of all calls with a prefix the first ones pay for it in full.
    shares = PREFIXES.get(model.provider)
    cached = 0.0
    if shares is not None and kind.sees_image:
        cached = calls * (system + picture) * (1 - shares / _seeing(job))
    return _Used(
        output,
        prices.cost(name, Tokens(total, output, int(cached), 0)),
        prices.cost(name, Tokens(total, output, 0, 0)),
    )


def _seeing(job: AnnotateTask) -> int:
    """Calls of one image that see it."""
    objects = min(OBJECTS_AN_IMAGE, job.config.max_objects)
    return max(2, job.config.repeats + job.config.scene_scans + 4 * objects + 1)


def _sum(values: Iterator[float | None]) -> float | None:
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return round(total, 6)
