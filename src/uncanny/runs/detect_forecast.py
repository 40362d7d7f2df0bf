"""What a detection run would ask and roughly cost, from the files' sizes and the prompts' lengths alone."""

from __future__ import annotations

from typing import Any

from uncanny.client.prices import PriceTable
from uncanny.client.tokens import InputEstimate, image_tokens, text_tokens
from uncanny.models.base import Tokens
from uncanny.models.registry import missing_addresses
from uncanny.prompts import prompt_set
from uncanny.runs.detect_run import DetectJob
from uncanny.runs.forecast import PREFIXES
from uncanny.runs.inputs import mean_size, sample_sizes, skipped_figures, still_pending
from uncanny.schema import Detection

# One word, then a list of some anomalies or a few sentences; reasoning models use far more.
VERDICT_TOKENS = 5
SECOND_TOKENS = 350


def forecast_detect(job: DetectJob) -> dict[str, Any]:
    """Calls, tokens and cost of what is left to do: two turns an image. Opens no model and needs no key.

    An image without a clear verdict takes one call only: `calls_least` is for all of them like that. Repair
    questions and reasoning are not counted. Tokens and cost are None where a model's image tokens are not
    known (see `InputEstimate`), the cost also where its price is not. Raises UsageError.
    """
    prices = PriceTable.load(job.models.prices)
    inputs = job.inputs()
    files = inputs.files
    pending = still_pending(job.folder, files, job.options, Detection)
    sizes, unreadable = sample_sizes(pending)
    images = len(pending) - unreadable
    model = job.models.roles.get("detector", job.models.model)
    name = str(model)
    picture = image_tokens(name, *mean_size(sizes))
    first = _length("system") + _length("source")
    second = first + VERDICT_TOKENS + max(_length("anomalies"), _length("content"))
    tokens = InputEstimate()
    tokens.add(name, first, picture, calls=images)
    tokens.add(name, second, picture, calls=images)
    output = images * (VERDICT_TOKENS + SECOND_TOKENS)
    total = tokens.total
    cached = images * (first + (picture or 0)) if model.provider in PREFIXES else 0
    return {
        "images": len(files),
        "pending": len(pending),
        "unreadable": unreadable,
        **skipped_figures(inputs.skipped),
        "calls": 2 * images,
        "calls_least": images,
        "calls_most": 2 * images,
        **tokens.as_json(),
        "output_tokens": output,
        "cost_usd": None if total is None else prices.cost(name, Tokens(total, output, cached, 0)),
        "cost_usd_uncached": None if total is None else prices.cost(name, Tokens(total, output, 0, 0)),
        "image_tokens_unknown": sorted(tokens.models),
        "missing": missing_addresses(job.models.all_models(), job.models.base_urls),
    }


def _length(prompt: str) -> int:
    return text_tokens(prompt_set("detect")[prompt].template.template)
