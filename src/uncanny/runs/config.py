"""What a run is started with, apart from what its task asks: models, limits, sampling, callbacks.

`AskOptions` are the keyword options of every public function that asks models; `check_options` refuses what
is none of them, `read_models` and `read_limits` make of them what the machinery of a run takes."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

from uncanny.client.endpoint import PATIENCE_S, TIMEOUT_S
from uncanny.errors import UsageError
from uncanny.models.addresses import parse_address
from uncanny.models.base import Sampling
from uncanny.models.registry import WITHOUT_NAME, ModelId, is_provider, parse_model
from uncanny.parameters import check_needed, check_parameters
from uncanny.runs.stop import Stop
from uncanny.settings import settings
from uncanny.wording import option

if TYPE_CHECKING:
    from uncanny.client.calls import CallRecord
    from uncanny.runs.progress import Progress


class ConnectOptions(TypedDict, total=False):
    """The options of `AskOptions` that hold without a run too: who is asked, how often, for how much."""

    roles: Mapping[str, str]
    fallback: str | None
    base_url: str | Mapping[str, str] | None
    concurrency: int | None
    timeout_s: float | None
    patience_s: float | None
    max_cost_usd: float | None
    max_tokens_total: int | None
    prices: str | Path | None
    prompts: str | Path | None
    cache: bool
    cache_dir: str | Path | None
    stop: Stop | None
    on_call: Callable[[CallRecord], None] | None


class AskOptions(ConnectOptions, total=False):
    """Keyword options of every function that asks models; all may be left out.

    `roles` gives single agents a model of their own, `fallback` takes over when a model is out of budget or
    quota, or is down. `base_url` is the server of the main model's provider, or a mapping from provider to
    server. `concurrency` is the most calls in flight at each model (32), `timeout_s` for one call (120).
    `patience_s` (120) is how long a model may only fail: it is given up after that time and, unless that is
    at least 4 times `timeout_s`, after 10 failed calls. `max_cost_usd` and `max_tokens_total` stop the run
    before it uses more, `limit` takes the first inputs only. `prices` is a price file. `prompts` is a folder
    of texts to ask with, as `uncanny prompts` writes them; what it has not is taken from uncanny's. `cache`
    False keeps no answers, `cache_dir` shares them between runs. `retry_failed` False keeps failed records on
    resuming. On resuming, records whose image, pair or question is no longer in the input move to
    `removed.jsonl`; `keep_missing` True keeps them in the run.

    `stop` ends the run from outside. `on_start` gets the live counters before the first call, `on_record`
    each record when it is on disk, `on_call` each call as an `uncanny.CallRecord`. `progress` shows a bar on
    standard error."""

    limit: int | None
    retry_failed: bool
    keep_missing: bool
    on_start: Callable[[Progress], None] | None
    on_record: Callable[[Any], None] | None
    progress: bool


def check_options(
    options: Mapping[str, object], known: type[ConnectOptions] = AskOptions, **own: object
) -> None:
    """Refuse what no option is called, and values of another kind than an option's (`check_parameters`).

    `own` are the function's own parameters. A limit that is misspelt would be no limit. Raises UsageError
    that names the option.
    """
    for name in options:
        if name not in known.__annotations__:
            if name in AskOptions.__annotations__:
                raise UsageError(
                    f"{option(name)} is an option of runs over many images, and has no effect here",
                    remedy="Leave it out, or start a run.",
                )
            near = difflib.get_close_matches(name, known.__annotations__, n=1)
            remedy = f"Did you mean {option(near[0])}?" if near else "Leave it out."
            raise UsageError(f"There is no option {option(name)}", remedy=remedy)
    check_parameters(**options, **own)
    stop = options.get("stop")
    if stop is not None and not isinstance(stop, Stop):
        raise UsageError(f"{option('stop')} must be an uncanny.Stop, not {stop!r}")
    if "out" in own:
        check_needed(out=own["out"])


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Which models, reached how.

    `roles` gives single agents a model of their own. `base_urls` maps a provider to its server. `timeout_s`
    is for one call, `patience_s` for a model that answered before and only fails now. `prices` is a file that
    replaces entries of the built-in price table.
    """

    model: ModelId
    roles: Mapping[str, ModelId] = field(default_factory=dict)
    fallback: ModelId | None = None
    base_urls: Mapping[str, str] = field(default_factory=dict, repr=False)  # with passwords, at times
    timeout_s: float = TIMEOUT_S
    patience_s: float = PATIENCE_S
    prices: Path | None = None

    def __post_init__(self) -> None:
        """Raises UsageError for a value out of range."""
        for name, value in (("timeout_s", self.timeout_s), ("patience_s", self.patience_s)):
            if not 0 < value < math.inf:
                raise UsageError(f"{option(name)} must be above 0, not {value!r}")
        for provider in self.base_urls:
            if provider in WITHOUT_NAME or not is_provider(provider):
                what = "has no server" if provider in WITHOUT_NAME else "is no provider"
                raise UsageError(
                    f"{option('base_url')} is an address for {provider}, which {what}",
                    remedy="Leave it out, or say which provider's it is.",
                )

    def all_models(self) -> tuple[ModelId, ...]:
        models = [self.model, *self.roles.values(), *([self.fallback] if self.fallback else [])]
        return tuple(dict.fromkeys(models))


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How much at once, and when to stop.

    `concurrency` is the most calls in flight at each model. Limits of cost and tokens hold for the run as a
    whole, earlier sessions included; None is no limit. `answers` is the answer cache's folder, None the
    run's own; `cache` False keeps no answers at all.
    """

    concurrency: int = 32
    max_cost_usd: float | None = None
    max_tokens_total: int | None = None
    limit: int | None = None
    retry_failed: bool = True
    keep_missing: bool = False
    cache: bool = True
    answers: Path | None = None

    def __post_init__(self) -> None:
        """Raises UsageError for a value out of range."""
        for name, value in (
            ("concurrency", self.concurrency),
            ("max_tokens_total", self.max_tokens_total),
            ("limit", self.limit),
        ):
            if value is not None and value < 1:
                raise UsageError(f"{option(name)} must be at least 1, not {value!r}")
        if self.max_cost_usd is not None and not 0 < self.max_cost_usd < math.inf:
            raise UsageError(f"{option('max_cost_usd')} must be above 0, not {self.max_cost_usd!r}")


def read_models(model: str, options: ConnectOptions) -> ModelOptions:
    """The models named in the options of a public function, with this machine's defaults. Raises
    UsageError."""
    main = parse_model(model)
    base_url = options.get("base_url")
    if base_url is None:
        base_urls: dict[str, str] = {}
    else:
        base_urls = {main.provider: base_url} if isinstance(base_url, str) else dict(base_url)
    for provider, url in base_urls.items():
        if not isinstance(url, str):
            raise UsageError(
                f"{option('base_url')} of {provider} must be the address of a server, not {url!r}"
            )
        parse_address(url)
    fallback, prices = options.get("fallback"), options.get("prices")
    timeout_s, patience_s = options.get("timeout_s"), options.get("patience_s")
    return ModelOptions(
        main,
        roles={role: parse_model(name) for role, name in (options.get("roles") or {}).items()},
        fallback=parse_model(fallback) if fallback else None,
        base_urls=base_urls,
        timeout_s=settings().timeout_s if timeout_s is None else timeout_s,
        patience_s=settings().patience_s if patience_s is None else patience_s,
        prices=Path(prices) if prices else settings().prices,
    )


def read_limits(options: ConnectOptions) -> RunOptions:
    """The limits in the options of a public function, with this machine's defaults. Raises UsageError."""
    of_runs = cast("AskOptions", options)
    concurrency = options.get("concurrency")
    cache_dir = options.get("cache_dir")
    return RunOptions(
        settings().concurrency if concurrency is None else concurrency,
        options.get("max_cost_usd"),
        options.get("max_tokens_total"),
        of_runs.get("limit"),
        of_runs.get("retry_failed", True),
        of_runs.get("keep_missing", False),
        options.get("cache", True),
        Path(cache_dir) if cache_dir else settings().cache_dir,
    )


def chosen(options: Mapping[str, object], names: Iterable[str]) -> dict[str, Any]:
    """Those of `options` that are among `names`: what is left out keeps its default."""
    return {name: options[name] for name in names if name in options}


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """Sent where the model takes it; None leaves a model's own default.

    `max_output_tokens` is doubled when an answer is cut off.
    """

    temperature: float | None
    top_p: float | None
    max_output_tokens: int

    def __post_init__(self) -> None:
        """Raises UsageError for a value out of range."""
        temperature, top_p, limit = self.temperature, self.top_p, self.max_output_tokens
        if temperature is not None and not 0 <= temperature <= 2:
            raise UsageError(f"{option('temperature')} must be 0 to 2, not {temperature!r}")
        if top_p is not None and not 0 < top_p <= 1:
            raise UsageError(f"{option('top_p')} must be above 0, at most 1, not {top_p!r}")
        if limit < 1:
            raise UsageError(f"{option('max_output_tokens')} must be at least 1, not {limit!r}")

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.temperature, self.top_p, self.max_output_tokens)


S = TypeVar("S", bound=SamplingConfig)


def read_sampling(kind: type[S], options: Mapping[str, object]) -> S:
    """What of `options` is in a configuration. Raises UsageError that names what is out of range."""
    return kind(**chosen(options, [field.name for field in fields(kind)]))
