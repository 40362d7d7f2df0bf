"""The models of a run, opened, guarded and routed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shlex
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from uncanny.client.budget import Budget, worst_case
from uncanny.client.calls import CallRecord
from uncanny.client.client import ModelClient
from uncanny.client.endpoint import Endpoint, guarded_endpoint
from uncanny.client.prices import PriceTable
from uncanny.errors import ModelUnusableError, UsageError
from uncanny.images.encode import SendLimits
from uncanny.models.base import Capabilities, Sampling, Tokens
from uncanny.models.presets import SERVERS
from uncanny.models.registry import Access, ModelId, ModelOptions, open_model
from uncanny.records.answer_cache import AnswerCache
from uncanny.records.answer_slots import AnswerSlots, SlotReader, enter_slot, slot_of
from uncanny.records.batch_files import BatchFiles
from uncanny.runs.parameters import RunOptions
from uncanny.runs.sync import in_thread
from uncanny.settings import settings
from uncanny.wording import Words, counted, option

if TYPE_CHECKING:
    from uncanny.client.batches import Batches
    from uncanny.runs.task import Task

T = TypeVar("T")
# What a worker of a run takes one after the other: an input, and what works on it and notes its calls.
Queue = Iterator[tuple[Any, Callable[[list[CallRecord]], Awaitable[Sequence[Any]]]]]
Step = Callable[[Any, Any, list[CallRecord]], Awaitable[T]]

log = logging.getLogger("uncanny")

SELF_HOSTED = frozenset({"demo", "noop", *(name for name, preset in SERVERS.items() if preset.local)})


@dataclass(frozen=True, slots=True)
class Engine:
    """What agents ask through. `limits` is what all the models together take of an image.

    `prices` are those of batches where the run has any. `on_pixels` is told the kinds of changes to pixels
    by tasks whose records do not have them."""

    model_client: ModelClient
    endpoints: Mapping[ModelId, Endpoint]
    limits: SendLimits
    prices: PriceTable
    batches: Batches | None = None
    on_pixels: Callable[[Iterable[str]], None] = lambda _changes: None

    def queues(self, task: Task[Any, Any], pending: Iterable[Any]) -> Sequence[Queue]:
        """The pending inputs, for as many workers side by side as there are queues."""
        return [self._queue(task, pending)] * task.inputs_at_once

    def _queue(self, task: Task[Any, Any], pending: Iterable[Any]) -> Queue:
        for item in pending:
            enter_slot(slot_of(task.name_of(item)))  # for whoever takes it
            yield item, partial(task.process, item, self)

    def perform(self, step: Step[T], item: Any, calls: list[CallRecord]) -> Awaitable[T]:
        """Do one step of a task where the models are: here. `step` is a method of the task."""
        return step(item, self, calls)

    def drain(self) -> None:
        """Start no further call; those in flight come back and are kept."""
        self.model_client.drain()

    def in_flight(self) -> int:
        """Calls that have not come back."""
        return self.model_client.in_flight()

    def sent(self, sampling: Sampling) -> dict[str, dict[str, Any]]:
        """Parameters as each model is really sent them."""
        return {endpoint.name: endpoint.provider.sent(sampling) for endpoint in self.endpoints.values()}

    def notices(self) -> list[str]:
        """What turned out about servers and is worth a word to the user."""
        endpoints = self.endpoints.values()
        of_providers = [notice for endpoint in endpoints for notice in endpoint.provider.notices]
        of_batches = [] if self.batches is None else self.batches.notices()
        own = [endpoint.notice for endpoint in endpoints if endpoint.notice is not None]
        return [*of_providers, *own, *of_batches]


@asynccontextmanager
async def open_engine(
    models: ModelOptions,
    run: RunOptions,
    *,
    answers: Path | None,
    budget: Budget,
    agents: Mapping[str, str],
    on_call: Callable[[CallRecord], None],
    on_estimate: Callable[[float, float], None] | None = None,
    on_fallback: Callable[[Endpoint, ModelUnusableError], None] | None = None,
    on_pixels: Callable[[Iterable[str]], None] = lambda _changes: None,
    warn: Callable[[str], None] = log.warning,
    slots: AnswerSlots | None = None,
    server_log: Path | None = None,
    batches: Path | None = None,
    on_ready: Callable[[], None] = lambda: None,
    rest_s: float | None = None,
) -> AsyncIterator[Engine]:
    """Open every model and the answer cache; close them in the end.

    `batches` is the folder for those of the run where its options ask for any, and beside it their journal.

    `slots` are answers, opened and closed elsewhere, in the place of those in the folder `answers`. `agents`
    maps role names to agents. `warn` gets a sentence where something is amiss and the run goes on.
    `on_ready` is called when all is in order but for servers of our own, which take minutes to start. A model
    that was given up is tried again after `rest_s` seconds, or never. Raises UsageError and
    ModelUnusableError before anything is asked.
    """
    check_roles(models, agents)
    if run.batch and answers is None:
        raise UsageError(
            f"{option('batch')} needs the answer cache",
            remedy=f"Remove {option('batch')} or {option('cache', False)}.",
        )
    prices = PriceTable.load(models.prices)
    check_prices(models, run, prices)
    async with AsyncExitStack() as stack:
        endpoints: dict[ModelId, Endpoint] = {}
        for model in sorted(models.all_models(), key=lambda each: needs_server(each, models)):
            base_url = models.base_urls.get(model.provider)
            own_server = needs_server(model, models)
            if own_server:
                on_ready()
                on_ready = lambda: None  # noqa: E731  it was said
                base_url = await stack.enter_async_context(_own_server(model, server_log))
            provider = open_model(model, Access(base_url, run.timeout_s))
            stack.push_async_callback(provider.close)
            endpoints[model] = guarded_endpoint(
                provider,
                run.concurrency,
                price=partial(prices.cost, provider.name),
                worst_case=partial(worst_case, provider.name),
                timeout_s=run.timeout_s,
                patience_s=run.patience_s,
                address="own server" if own_server else None,
                rest_s=rest_s,
            )
        in_batches: Batches | None = None
        files = None if batches is None else BatchFiles(batches)
        if run.batch and files is not None:
            from uncanny.client.batches import Batches

            in_batches = Batches(
                files,
                endpoints.values(),
                prices=PriceTable.load(models.prices, batch=True),
                budget=budget,
                patience_s=run.patience_s,
            )
        elif files is not None and (waiting := sum(len(each.keys) for each in files.under_way().values())):
            warn(
                Words(
                    f"{counted(waiting, 'question')} in batches under way; without {option('batch', True)} "
                    "they are asked again, at full price"
                )
            )
        cache: AnswerCache | None = None
        if answers is not None and slots is None:
            others = SlotReader(answers)
            stack.callback(others.close)
            cache = await in_thread(partial(AnswerCache, answers, warn, others.get), AnswerCache.close)
            stack.push_async_callback(asyncio.to_thread, cache.close)
        if in_batches is not None:
            await stack.enter_async_context(in_batches)
        on_ready()
        model_client = ModelClient(
            routes(models, endpoints, agents),
            cache=slots or cache,
            batches=in_batches,
            budget=budget,
            on_call=on_call,
            on_estimate=on_estimate,
            on_fallback=on_fallback,
        )
        limits = common_limits([each.provider.capabilities for each in endpoints.values()])
        own_prices = PriceTable.load(models.prices, batch=run.batch)
        yield Engine(model_client, endpoints, limits, own_prices, in_batches, on_pixels)


def needs_server(model: ModelId, models: ModelOptions) -> bool:
    """Whether a vLLM server has to be started for the model."""
    address = models.base_urls.get(model.provider) or os.environ.get("VLLM_BASE_URL")
    return model.provider == "vllm" and not address


def check_roles(models: ModelOptions, agents: Mapping[str, str]) -> None:
    """Raises UsageError, before a server is started for nothing."""
    for role in models.roles:
        if role not in agents:
            raise UsageError(f"There is no role {role!r}", remedy=f"Roles are {', '.join(agents)}.")


def routes(
    models: ModelOptions, endpoints: Mapping[ModelId, Endpoint], agents: Mapping[str, str]
) -> dict[str, list[Endpoint]]:
    """Endpoints of each agent, its own model's first, then the fallback's."""
    after = [endpoints[models.fallback]] if models.fallback else []
    endpoints_by_agent = {"": [endpoints[models.model], *after]}
    for role, model in models.roles.items():
        endpoints_by_agent[agents[role]] = [endpoints[model], *after]
    return endpoints_by_agent


def common_limits(capabilities: list[Capabilities]) -> SendLimits:
    """What every one of the models takes, so that all of them are sent the same bytes."""
    media = frozenset.intersection(*(each.media_types for each in capabilities))
    sizes = [each.max_image_bytes for each in capabilities if each.max_image_bytes is not None]
    sides = [each.max_image_side for each in capabilities if each.max_image_side is not None]
    return SendLimits(media, min(sizes, default=None), min(sides, default=None))


def check_prices(models: ModelOptions, run: RunOptions, prices: PriceTable) -> None:
    """A limit on cost means nothing for a hosted model without a price. Raises UsageError."""
    if run.max_cost_usd is None:
        return
    for model in models.all_models():
        known = prices.cost(str(model), Tokens(1, 1, 0, 0)) is not None
        only_fallback = model == models.fallback and model.provider in SELF_HOSTED
        if not known and not only_fallback:
            raise UsageError(
                f"{option('max_cost_usd')} needs the price of {model}, which uncanny does not know",
                remedy=f"Give one with {option('prices')}, or limit tokens with "
                f"{option('max_tokens_total')}.",
            )


@asynccontextmanager
async def _own_server(model: ModelId, log: Path | None) -> AsyncIterator[str]:
    from uncanny.models.vllm.server import VllmServer

    more = shlex.split(settings().vllm_args or "")
    with contextlib.ExitStack() as stack:
        if log is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="uncanny-vllm-"))
            log = Path(folder) / "vllm.log"
        async with VllmServer(model.name, log_path=log, extra_args=more) as server:
            yield server.base_url
