"""What a run would ask and roughly cost, before anything is asked: what every protocol's forecast is made of.

A protocol counts its calls with a `UsageCounter` for each model and makes of them its own kind of `Forecast`,
which prints as `--dry-run` does. All of it is estimated from the files' sizes and the prompts' lengths; no
model is opened and no key needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, TypedDict, TypeVar

from pydantic import BaseModel

from uncanny.client.prices import PriceTable
from uncanny.images.discover import SkippedInputs, SkipReason
from uncanny.models.base import Tokens
from uncanny.models.registry import ModelId, ModelOptions, missing_addresses
from uncanny.models.tokens import text_tokens
from uncanny.prompts import PromptSet
from uncanny.runs.image_task import ImageTask
from uncanny.runs.inputs import mean_size, sample_sizes, skipped_line, unreadable_warning
from uncanny.runs.progress import Progress
from uncanny.runs.resume import prompts_of
from uncanny.runs.task import Task
from uncanny.wording import NOT_PRICED, Words, cost, count, layout, marked, option

# Providers whose prefix cache lowers the price, and their `Capabilities.schema_in_prefix`: a forecast opens
# no model that could be asked.
CACHED_PREFIX: Final[Mapping[str, bool]] = {"openai": True, "anthropic": True, "vllm": False}
_A_MILLION_EACH: Final = Tokens(1_000_000, 1_000_000, 0, 0)
A = TypeVar("A", bound=BaseModel)
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Usage:
    """What so many calls would use, in tokens and US dollars.

    How many tokens an image takes is not known for every model: images of the models in
    `image_tokens_unknown` are only counted, in `images_uncounted`. `cost_usd` counts on the provider's prefix
    cache where the protocol does, `cost_usd_uncached` does not; both are None where a price or the number of
    tokens is not known. `cost_usd_known` is the cost without the images that are only counted, None where a
    price is not known. `unpriced` are models without a price.
    """

    calls: int
    text_tokens: int
    image_tokens: int
    images_uncounted: int
    image_tokens_unknown: frozenset[str]
    output_tokens: int
    cost_usd: float | None
    cost_usd_uncached: float | None
    cost_usd_known: float | None
    unpriced: frozenset[str] = frozenset()

    @property
    def input_tokens_known(self) -> int:
        """Those of texts, and of the images whose tokens are known."""
        return self.text_tokens + self.image_tokens

    @property
    def input_tokens(self) -> int | None:
        """All of them; None where those of some images are not known."""
        return None if self.images_uncounted else self.input_tokens_known

    def input_json(self, suffix: str = "") -> dict[str, int | None]:
        """The three figures of the input, their keys with `suffix`."""
        return {
            f"input_tokens{suffix}": self.input_tokens,
            f"input_tokens_known{suffix}": self.input_tokens_known,
            f"images_uncounted{suffix}": self.images_uncounted,
        }


@dataclass(slots=True)
class UsageCounter:
    """Calls to one model, counted up and priced in the end, in parts of calls where inputs are an average.

    Of the input tokens `cached_tokens` come from the provider's prefix cache, and `written_tokens` go into it
    at a price of their own.
    """

    model: ModelId
    calls: float = 0
    text_tokens: float = 0
    image_tokens: float = 0
    images_uncounted: float = 0
    output_tokens: float = 0
    cached_tokens: float = 0
    written_tokens: float = 0

    def add(
        self, text: float, *images: float | None, output: float, calls: float = 1, cached: int = 0
    ) -> None:
        """So many calls with `text` tokens of text, `output` tokens back, and an image for each of `images`.

        An image is its tokens, None where they are not known. `cached` of the input tokens of all these calls
        together come from the provider's prefix cache, if it has one.
        """
        self.calls += calls
        self.text_tokens += calls * text
        for tokens in images:
            self.add_images(tokens, calls)
        self.output_tokens += calls * output
        if self.model.provider in CACHED_PREFIX:
            self.cached_tokens += cached

    def add_images(self, tokens: float | None, number: float) -> None:
        """So many images of `tokens` each, None where these are not known."""
        if tokens is None:
            self.images_uncounted += number
        else:
            self.image_tokens += number * tokens

    def usage(self, prices: PriceTable) -> Usage:
        name, with_cache, uncached = str(self.model), None, None
        calls, output, images_uncounted = map(round, (self.calls, self.output_tokens, self.images_uncounted))
        text_tokens, image_tokens = round(self.text_tokens), round(self.image_tokens)
        total = text_tokens + image_tokens
        tokens = Tokens(total, output, round(self.cached_tokens), round(self.written_tokens))
        known = prices.cost(name, tokens, calls)
        free = prices.cost(name, _A_MILLION_EACH) == 0
        if free or not images_uncounted:
            uncached = prices.cost(name, Tokens(total, output, 0, 0), calls)
            with_cache = known
        return Usage(
            calls,
            text_tokens,
            image_tokens,
            images_uncounted,
            frozenset([name] if images_uncounted else []),
            output,
            with_cache,
            uncached,
            known,
            frozenset([name] if prices.cost(name, Tokens(1, 1, 0, 0)) is None else []),
        )


def total_usage(usages: Iterable[Usage]) -> Usage:
    """All of them together; a cost is None where that of one is not known, else rounded to a millionth."""
    parts = tuple(usages)
    return Usage(
        sum(part.calls for part in parts),
        sum(part.text_tokens for part in parts),
        sum(part.image_tokens for part in parts),
        sum(part.images_uncounted for part in parts),
        frozenset[str]().union(*(part.image_tokens_unknown for part in parts)),
        sum(part.output_tokens for part in parts),
        _total_cost(part.cost_usd for part in parts),
        _total_cost(part.cost_usd_uncached for part in parts),
        _total_cost(part.cost_usd_known for part in parts),
        frozenset[str]().union(*(part.unpriced for part in parts)),
    )


def _total_cost(costs: Iterable[float | None]) -> float | None:
    total = 0.0
    for each in costs:
        if each is None:
            return None
        total += each
    return round(total, 6)


class ForecastInputs(TypedDict):
    """The fields of a `Forecast` that are about its inputs and not about calls; see there."""

    inputs: int
    pending: int
    unreadable: int
    skipped: Mapping[SkipReason, int]
    warnings: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What is left of a run, and what it would roughly use; printed, it is what `--dry-run` prints.

    Of `inputs`, called `unit`, `pending` are still to do, and so many of these are `unreadable`. `skipped`
    is what lay beside them, by reason, and `warnings` say which inputs are missing for it. It takes
    `calls_least` to `calls_most` calls, usually `calls_usual`; None where nothing is usual. `usage` is that
    of the usual calls, or else of the most. `missing` are addresses that the run could not start without, a
    sentence each.

    Retries, repair questions and reasoning are not counted, so even `calls_most` is no bound.
    """

    unit: ClassVar[str]

    inputs: int
    pending: int
    unreadable: int
    skipped: Mapping[SkipReason, int]
    warnings: tuple[str, ...]
    missing: tuple[str, ...]
    calls_least: int
    calls_usual: int | None
    calls_most: int
    usage: Usage

    @property
    def input_tokens(self) -> int | None:
        """Those of `usage`; None where a model's image tokens are not known."""
        return self.usage.input_tokens

    @property
    def output_tokens(self) -> int:
        """Those of `usage`."""
        return self.usage.output_tokens

    @property
    def cost_usd(self) -> float | None:
        """US dollars of `usage`, with the prefix cache where it is counted on; None where not known."""
        return self.usage.cost_usd

    @property
    def cost_usd_uncached(self) -> float | None:
        """US dollars of `usage` without the provider's prefix cache; None where not known."""
        return self.usage.cost_usd_uncached

    @property
    def image_tokens_unknown(self) -> list[str]:
        """Models of which it is not known how many tokens an image takes, in order of their names."""
        return sorted(self.usage.image_tokens_unknown)

    @classmethod
    def of_calls(cls, inputs: ForecastInputs, calls: UsageCounter, prices: PriceTable, **more: Any) -> Self:
        """The forecast of a run that makes just these calls; `more` are the protocol's own fields."""
        usage = calls.usage(prices)
        fields = dict.fromkeys(("calls_least", "calls_usual", "calls_most"), usage.calls)
        return cls(**inputs, **fields, usage=usage, **more)

    def to_json(self) -> dict[str, Any]:
        """What the command prints with `--dry-run --json`."""
        return {
            **self.inputs_json(),
            **self.calls_json(),
            **self.usage.input_json(),
            "output_tokens": self.output_tokens,
            **self.cost_json(),
            **self.unknowns_json(),
        }

    def lines(self) -> list[str]:
        """Inputs, calls, tokens and cost, for people."""
        return [
            f"{self.unit.capitalize():<8} {self.inputs:,}, {self.pending:,} to do{self.unreadable_words()}",
            *self.skipped_lines(),
            f"Calls    {self.calls_words() if self.calls_most else 0}",
            f"Tokens   about {input_words(count, self.usage)}, {count(self.output_tokens)} out "
            "without reasoning",
            f"Cost     {self.cost_words()}",
        ]

    def text(self) -> Words:
        """What the command prints with `--dry-run`."""
        models = ", ".join(self.image_tokens_unknown)
        why = f"How many tokens an image takes is not known for {models}"
        if self.usage.cost_usd_known is None:
            why += "; the cost is not, either"
        elif self.cost_usd is None:
            why += ": what the images cost comes on top"
        unpriced = ", ".join(sorted(self.usage.unpriced))
        give = f"Price unknown for {unpriced}: give one with {option('prices')}."
        lines = [
            *self.lines(),
            *([f"{why}."] if models else []),
            *([give] if unpriced else []),
            *map(marked, self.missing),
            "Nothing was asked. These are estimates without retries and repairs; "
            f"{option('limit', 5)} gives real figures.",
        ]
        return Words(layout(lines))

    def __str__(self) -> str:
        return str(self.text())

    def inputs_json(self) -> dict[str, Any]:
        """Inputs and what lay beside them, as JSON has them."""
        return {
            self.unit: self.inputs,
            "pending": self.pending,
            "unreadable": self.unreadable,
            "skipped": dict(self.skipped),
            "warnings": list(self.warnings),
        }

    def calls_json(self) -> dict[str, Any]:
        """How many calls, as JSON has it."""
        return {"calls": self.usage.calls}

    def cost_json(self) -> dict[str, Any]:
        """US dollars, as JSON has them."""
        return {"cost_usd": self.cost_usd}

    def unknowns_json(self) -> dict[str, Any]:
        """What the estimate leaves open, as JSON has it."""
        return {"image_tokens_unknown": self.image_tokens_unknown, "missing": list(self.missing)}

    def unreadable_words(self) -> str:
        """How many of the inputs that are left cannot be read; empty for none."""
        return f", {self.unreadable:,} unreadable" if self.unreadable else ""

    def calls_words(self) -> str:
        """How many calls."""
        return f"{self.usage.calls:,}"

    def cost_words(self) -> str:
        """US dollars, with the prefix cache and without it where that differs; of a part where only that is
        known.
        """
        usage = self.usage
        if usage.cost_usd is None:
            known = usage.cost_usd_known
            return NOT_PRICED if known is None else f"{cost(known)} without the images"
        with_cache, without = cost(usage.cost_usd), cost(usage.cost_usd_uncached)
        return with_cache if with_cache == without else f"{with_cache}, {without} without the prefix cache"

    def skipped_lines(self) -> list[str]:
        """The line about what lay beside the inputs; none where there was nothing."""
        return skipped_line(self.skipped)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagesForecast(Forecast):
    """The forecast of a run over images; `calls_usual` of its calls are counted."""

    unit = "images"

    calls_usual: int

    def calls_json(self) -> dict[str, Any]:
        ends = {"calls_least": self.calls_least, "calls_most": self.calls_most}
        return {"calls": self.calls_usual, **ends}

    def cost_json(self) -> dict[str, Any]:
        return {"cost_usd": self.cost_usd, "cost_usd_uncached": self.cost_usd_uncached}


def forecast_inputs(
    models: ModelOptions,
    *,
    inputs: int,
    pending: int,
    unreadable: int,
    skipped: SkippedInputs | None = None,
) -> ForecastInputs:
    """The fields of a forecast that are about its inputs, with the warnings that follow from them."""
    skipped = skipped or SkippedInputs()
    warning = unreadable_warning(skipped)
    return {
        "inputs": inputs,
        "pending": pending,
        "unreadable": unreadable,
        "skipped": skipped.counts,
        "warnings": () if warning is None else (warning,),
        "missing": tuple(missing_addresses(models.all_models(), models.base_urls)),
    }


@dataclass(frozen=True, slots=True)
class PendingImages:
    """Images that are left to do: how many can be read, and their mean width and height in pixels.

    `sizes` are those of some of them, evenly spread.
    """

    readable: int
    size: tuple[int, int]
    sizes: tuple[tuple[int, int], ...]
    fields: ForecastInputs


def pending_inputs(task: Task[Item, A]) -> Sequence[Item]:
    """What of the inputs of `task`, which gets the texts of its run, is left to do. Raises UsageError."""
    task.prompts = prompts_of(task.folder, task.prompts)
    task.folder.read_manifest()  # a run that this version cannot go on with is refused
    return task.load_pending(task.records(), Progress())


def prompt_tokens(prompts: PromptSet, *names: str) -> int:
    """Tokens of these texts together, with their placeholders as they stand."""
    return sum(text_tokens(prompts[name].template.template) for name in names)


def pending_images(task: ImageTask[A]) -> PendingImages:
    """What of the images of `task`, which gets the texts of its run, is left to do. Raises UsageError."""
    task.prompts = prompts_of(task.folder, task.prompts)
    task.folder.read_manifest()  # a run that this version cannot go on with is refused
    inputs = task.inputs()
    pending = [*task.stock_of_images(inputs, task.records(), Progress()).pending.values()]
    sizes, unreadable = sample_sizes(pending)
    fields = forecast_inputs(
        task.models,
        inputs=len(inputs.files),
        pending=len(pending),
        unreadable=unreadable,
        skipped=inputs.skipped,
    )
    return PendingImages(len(pending) - unreadable, mean_size(sizes), tuple(sizes), fields)


def input_words(form: Callable[[int], str], *usages: Usage) -> str:
    """Input tokens as they are shown; of two usages, from the least to the most."""
    known = range_words([form(usage.input_tokens_known) for usage in usages])
    if not any(usage.images_uncounted for usage in usages):
        return f"{known} in"
    images = range_words([f"{usage.images_uncounted:,}" for usage in usages])
    return f"{known} in, and {images} images on top"


def range_words(ends: Iterable[str]) -> str:
    """`10 to 30`, or the one figure where both ends read the same."""
    return " to ".join(dict.fromkeys(ends))
