"""What tokens cost: the list prices of `genai-prices`, and a user's own before them.

The library is called once a model, not once a call: its arithmetic in decimals takes longer than all of ours
for a call. It is never let onto the network; which version spoke stands in `run.json`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from uncanny.errors import UsageError
from uncanny.files import read_file
from uncanny.models.base import Tokens
from uncanny.models.presets import ALL, Processing

# These run in this process. A server of one's own costs something, nobody knows what: it has no price.
FREE: Final = frozenset({"demo", "noop", "detector"})
# Our providers by the library's names. Others' models are billed by whoever serves them, at rates of theirs.
BILLED_BY: Final = {name: preset.prices for name, preset in ALL.items() if preset.prices}

_VERSION = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$")
_Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Rates(BaseModel):
    """US dollars per million tokens.

    `cached_input` and `cache_write` are None where such tokens are billed as ordinary input.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: _Usd
    cached_input: _Usd | None = None
    cache_write: _Usd | None = None
    output: _Usd

    def cost(self, tokens: Tokens) -> float | None:
        """US dollars; None where the number of tokens in or out is not known."""
        if tokens.input is None or tokens.output is None:
            return None
        cached, written = tokens.cached or 0, tokens.cache_written or 0
        plain = max(tokens.input - cached - written, 0)
        dollars = (
            plain * self.input
            + cached * (self.input if self.cached_input is None else self.cached_input)
            + written * (self.input if self.cache_write is None else self.cache_write)
            + tokens.output * self.output
        )
        return dollars / 1_000_000

    def times(self, share: float) -> Self:
        """This share of all rates."""
        rates = ((name, getattr(self, name)) for name in Rates.model_fields)
        return self.model_copy(update={name: rate * share for name, rate in rates if rate is not None})


class LongContext(Rates):
    """The rates of all tokens of a call whose input has more than `above` tokens."""

    above: Annotated[int, Field(ge=0)]


class Price(Rates):
    """What a model costs, asked in one way; an entry of a user's price file, for single calls.

    `as_of` and `source` are a user's own notes.
    """

    model: Annotated[str, Field(min_length=1)]
    long_context: tuple[LongContext, ...] = ()
    as_of: datetime.date | None = None
    source: str | None = None

    def times(self, share: float) -> Self:
        longer = tuple(each.times(share) for each in self.long_context)
        return super().times(share).model_copy(update={"long_context": longer})

    def cost(self, tokens: Tokens, calls: int = 1) -> float | None:
        """US dollars of so many calls, which use `tokens` together and about as many each."""
        size = (tokens.input or 0) / max(calls, 1)
        fitting = [rates for rates in self.long_context if size > rates.above]
        if fitting:
            return Rates.cost(max(fitting, key=lambda rates: rates.above), tokens)
        return super().cost(tokens)


_PRICES = TypeAdapter(list[Price])


class PriceTable:
    """Prices by model name, `provider/model`: `own` entries first, then the library's.

    For models that can be asked by `processing`, they are the prices of that. The library lists those of
    batches; others, and those of the user's own prices, are the provider's share of them.
    """

    def __init__(self, own: Iterable[Price] = (), processing: Processing | None = None) -> None:
        self._processing = processing
        self._own = {price.model: price.times(self._share(price.model)) for price in own}
        self._listed: dict[str, Price | None] = {}

    @classmethod
    def load(cls, path: Path | None = None, processing: Processing | None = None) -> PriceTable:
        """With the entries of the JSON file at `path` ahead of the list prices.

        Raises `UsageError` for a file that cannot be read or has a wrong entry.
        """
        return cls(() if path is None else _read(path), processing)

    def _share(self, model: str) -> float:
        preset = ALL.get(model.partition("/")[0])
        if preset is None or self._processing is None:
            return 1.0
        return preset.discounts.get(self._processing, 1.0)

    def find(self, model: str) -> Price | None:
        """The user's price of a model, or of its name without a date or `-latest`; else the list price."""
        own = self._own.get(model) or self._own.get(_VERSION.sub("", model))
        if own is not None:
            return own
        if model not in self._listed:
            share = self._share(model)
            batch = self._processing == "batch" and share < 1
            listed = list_price(model, batch=batch)
            self._listed[model] = listed if listed is None or batch else listed.times(share)
        return self._listed[model]

    def cost(self, model: str, tokens: Tokens, calls: int = 1) -> float | None:
        """US dollars of a call, or of `calls` that use `tokens` together and are about alike; None where the
        price or the number of tokens is not known.

        Tokens the provider does not report as cached are billed in full, so a cost may be too high, never
        too low. Models in this process cost 0.
        """
        if model.partition("/")[0] in FREE:
            return 0.0
        price = self.find(model)
        return None if price is None else price.cost(tokens, calls)


def list_price(model: str, *, batch: bool = False) -> Price | None:
    """Today's list price of `provider/model`, in a batch or of single calls.

    None for one that the library does not know or price.
    """
    provider, _, name = model.partition("/")
    biller = BILLED_BY.get(provider)
    if biller is None or not name:
        return None
    from genai_prices import Usage, calc_price
    from genai_prices.types import TieredPrices

    try:
        listed = calc_price(
            Usage(), name, provider_id=biller, price_context={"processing": "batch"} if batch else None
        ).model_price
    except LookupError:
        return None
    columns = {
        "input": listed.input_mtok,
        "cached_input": listed.cache_read_mtok,
        "cache_write": listed.cache_write_mtok,
        "output": listed.output_mtok,
    }
    if columns["input"] is None or columns["output"] is None:
        return None
    starts = {
        tier.start for rate in columns.values() if isinstance(rate, TieredPrices) for tier in rate.tiers
    }

    def at(size: int) -> dict[str, Decimal | None]:
        """The rates of a call with so many input tokens."""
        rates: dict[str, Decimal | None] = {}
        for column, rate in columns.items():
            if isinstance(rate, TieredPrices):
                reached = [tier.price for tier in rate.tiers if size > tier.start]
                rates[column] = reached[-1] if reached else rate.base
            else:
                rates[column] = rate
        return rates

    tiers: Sequence[LongContext] = [
        LongContext.model_validate({"above": start, **at(start + 1)}) for start in sorted(starts)
    ]
    return Price.model_validate({"model": model, "long_context": tiers, **at(0)})


def _read(path: Path) -> list[Price]:
    example = '{"model": "openai/gpt-4o", "input": 2.5, "cached_input": 1.25, "output": 10.0}'
    remedy = f"A price file is a JSON list of entries like {example}."
    from uncanny.settings import settings  # with pydantic-settings, which those who only ask do not need

    try:
        # The operator's own file lies anywhere. A job may name it, too: it is what is read without it.
        return _PRICES.validate_json(read_file(path, anywhere=path == settings().prices))
    except OSError as error:
        raise UsageError(f"Cannot read the price file {path}: {error.strerror}") from None
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = "".join(
            f", entry {part + 1}" if isinstance(part, int) else f", field {part!r}" for part in problem["loc"]
        )
        raise UsageError(f"Price file {path}{where}: {problem['msg']}", remedy=remedy) from None
