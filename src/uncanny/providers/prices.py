"""What tokens cost: list prices that come with the package, which users replace or add to."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from uncanny.errors import UsageError
from uncanny.providers.base import Tokens

# These run in this process. A server of one's own costs something, nobody knows what: it has no price.
FREE = frozenset({"demo", "noop"})

_VERSION = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$")
_Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Price(BaseModel):
    """List prices in US dollars per million tokens, without batch, priority and long-context rates.

    `cached_input` and `cache_write` are None where such tokens are billed as ordinary input. `as_of` is the
    day on which `source` said so.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Annotated[str, Field(min_length=1)]
    input: _Usd
    cached_input: _Usd | None = None
    cache_write: _Usd | None = None
    output: _Usd
    as_of: datetime.date | None = None
    source: str | None = None


_PRICES = TypeAdapter(list[Price])


class PriceTable:
    """Prices by model name, `provider/model`."""

    def __init__(self, prices: Iterable[Price]) -> None:
        self._prices = {price.model: price for price in prices}

    @classmethod
    def load(cls, path: Path | None = None) -> PriceTable:
        """The package's prices, with the entries of the JSON file at `path` in place of its own.

        Raises `UsageError` for a file that cannot be read or has a wrong entry.
        """
        prices = _PRICES.validate_json(files("uncanny.providers").joinpath("data/prices.json").read_bytes())
        return cls(prices if path is None else [*prices, *_read(path)])

    def find(self, model: str) -> Price | None:
        """The price of a model: its own entry, or that of its name without a date or `-latest`."""
        return self._prices.get(model) or self._prices.get(_VERSION.sub("", model))

    def cost(self, model: str, tokens: Tokens) -> float | None:
        """US dollars for one call; None where the price or the number of tokens is not known.

        Tokens the provider does not report as cached are billed in full, so a cost may be too high, never
        too low. Models in this process cost 0.
        """
        if model.partition("/")[0] in FREE:
            return 0.0
        price = self.find(model)
        if price is None or tokens.input is None or tokens.output is None:
            return None
        cached, written = tokens.cached or 0, tokens.cache_written or 0
        plain = max(tokens.input - cached - written, 0)
        dollars = (
            plain * price.input
            + cached * (price.input if price.cached_input is None else price.cached_input)
            + written * (price.input if price.cache_write is None else price.cache_write)
            + tokens.output * price.output
        )
        return dollars / 1_000_000


def _read(path: Path) -> list[Price]:
    example = '{"model": "openai/gpt-4o", "input": 2.5, "cached_input": 1.25, "output": 10.0}'
    remedy = f"A price file is a JSON list of entries like {example}."
    try:
        return _PRICES.validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"Cannot read the price file {path}: {error.strerror}") from None
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = "".join(
            f", entry {part + 1}" if isinstance(part, int) else f", field {part!r}" for part in problem["loc"]
        )
        raise UsageError(f"Price file {path}{where}: {problem['msg']}", remedy=remedy) from None
