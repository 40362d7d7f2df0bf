"""The models of a run, opened, guarded and routed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from uncanny.client.budget import Budget, worst_case
from uncanny.client.calls import CallRecord
from uncanny.client.client import ModelClient
from uncanny.client.endpoint import Endpoint, guarded_endpoint
from uncanny.client.prices import PriceTable
from uncanny.client.replicas import Replica, Replicas
from uncanny.errors import ModelUnusableError, UsageError
from uncanny.images.encode import SendLimits
from uncanny.models.addresses import addresses_of, parse_address
from uncanny.models.base import Capabilities, ModelProvider, Sampling, Tokens
from uncanny.models.presets import ALL, SERVERS, VLLM, Window
from uncanny.models.registry import WITHOUT_SERVER, Access, ModelId, ModelOptions, open_model
from uncanny.records.answer_cache import AnswerCache
from uncanny.records.answer_slots import AnswerSlots, SlotReader, enter_slot, slot_of
from uncanny.records.batch_files import BackgroundLog, BatchFiles
from uncanny.runs.parameters import RunOptions
from uncanny.runs.sync import in_thread
from uncanny.settings import settings
from uncanny.wording import Words, counted, option

if TYPE_CHECKING:
    from uncanny.client.discount import Discount
    from uncanny.models.vllm.server import VllmServer
    from uncanny.runs.task import Task

T = TypeVar("T")
# What a worker of a run takes one after the other: an input, and what works on it and notes its calls.
Queue = Iterator[tuple[Any, Callable[[list[CallRecord]], Awaitable[Sequence[Any]]]]]
Step = Callable[[Any, Any, list[CallRecord]], Awaitable[T]]

log = logging.getLogger("uncanny")

SELF_HOSTED = WITHOUT_SERVER | {name for name, preset in SERVERS.items() if preset.local}
PROBE_S = 5.0
"""Seconds between two looks at a server that did not answer."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What agents ask through. `limits` is what all the models together take of an image.

    `discount` answers for less where the run asks for it, and `prices` are those of it. `on_pixels` is told
    the kinds of changes to pixels by tasks whose records do not have them."""

    model_client: ModelClient
    endpoints: Mapping[ModelId, Endpoint]
    limits: SendLimits
    prices: PriceTable
    discount: Discount[Any] | None = None
    on_pixels: Callable[[Iterable[str]], None] = lambda _changes: None

    def queues(self, task: Task[Any, Any], pending: Iterable[Any]) -> Sequence[Queue]:
        """The pending inputs, for as many workers side by side as there are queues."""
        return [self._queue(task, pending)] * task.inputs_at_once

    def _queue(self, task: Task[Any, Any], pending: Iterable[Any]) -> Queue:
        for item in pending:
            enter_slot(slot_of(task.name_of(item)))  # for the worker that takes it
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
        servers = [server for endpoint in endpoints for server in endpoint.servers]
        of_providers = [notice for server in servers for notice in server.provider.notices]
        of_discount = [] if self.discount is None else self.discount.notices()
        own = [endpoint.notice for endpoint in endpoints if endpoint.notice is not None]
        return [*of_providers, *own, *of_discount]


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
    folder: Path | None = None,
    on_ready: Callable[[], None] = lambda: None,
    on_wait: Callable[[Callable[[], str | None]], None] = lambda _: None,
    rest_s: float | None = None,
) -> AsyncIterator[Engine]:
    """Open every model and the answer cache; close them in the end.

    `folder` is that of the run, for logs of servers and what is handed in where its options ask for that.

    `slots` are answers, opened and closed elsewhere, in the place of those in the folder `answers`. `agents`
    maps role names to agents. `warn` gets a sentence where something is amiss and the run goes on.
    `on_ready` is called when all is in order but for servers of our own, which take minutes to start;
    `on_wait` gets what says how far these are, None while all answer. A model that was given up is
    tried again after `rest_s` seconds, or never. Raises UsageError and ModelUnusableError before anything is
    asked.
    """
    check_roles(models, agents)
    if run.batch and run.completion_window is not None:
        raise UsageError(
            f"{option('batch')} and {option('completion_window')} exclude each other", remedy="Remove one."
        )
    if run.processing is not None and answers is None:
        cheaper = option("batch") if run.batch else option("completion_window")
        raise UsageError(
            f"{cheaper} needs the answer cache", remedy=f"Remove {cheaper} or {option('cache', False)}."
        )
    prices = PriceTable.load(models.prices)
    check_prices(models, run, prices)
    async with AsyncExitStack() as stack:
        endpoints: dict[ModelId, Endpoint] = {}
        started: list[VllmServer] = []
        waits: list[Callable[[], str | None]] = []
        on_wait(lambda: next(filter(None, (wait() for wait in waits)), None))
        for model in sorted(models.all_models(), key=lambda each: needs_server(each, models)):
            own: Sequence[VllmServer] = ()
            if needs_server(model, models):
                on_ready()
                on_ready = lambda: None  # noqa: E731  it was said
                opening = _own_servers(model, folder, len(started), warn, waits)
                own = await stack.enter_async_context(opening)
                started += own
            endpoint = _endpoint(model, models, run, prices, own, warn=warn, rest_s=rest_s)
            endpoints[model] = await stack.enter_async_context(endpoint)
            waits.append(endpoints[model].provider.starting)
        discount = None if folder is None else _discount(folder, run, models, endpoints, budget, warn)
        cache: AnswerCache | None = None
        if answers is not None and slots is None:
            others = SlotReader(answers)
            stack.callback(others.close)
            cache = await in_thread(partial(AnswerCache, answers, warn, others.get), AnswerCache.close)
            stack.push_async_callback(asyncio.to_thread, cache.close)
        if discount is not None:
            await stack.enter_async_context(discount)
        on_ready()
        model_client = ModelClient(
            routes(models, endpoints, agents),
            cache=slots or cache,
            discount=discount,
            budget=budget,
            on_call=on_call,
            on_estimate=on_estimate,
            on_fallback=on_fallback,
        )
        limits = common_limits([each.provider.capabilities for each in endpoints.values()])
        own_prices = PriceTable.load(models.prices, run.processing)
        yield Engine(model_client, endpoints, limits, own_prices, discount, on_pixels)


def _discount(
    folder: Path,
    run: RunOptions,
    models: ModelOptions,
    endpoints: Mapping[ModelId, Endpoint],
    budget: Budget,
    warn: Callable[[str], None],
) -> Discount[Any] | None:
    """What answers for less, where the run asks for it."""
    files, log = BatchFiles(folder / "batches"), BackgroundLog(folder / "background.jsonl")
    opened: Discount[Any] | None = None
    every = endpoints.values()
    if run.batch:
        from uncanny.client.batches import Batches

        opened = Batches(
            files,
            every,
            prices=PriceTable.load(models.prices, "batch"),
            budget=budget,
            patience_s=run.patience_s,
        )
    elif run.completion_window is not None:
        from uncanny.client.background import Background

        opened = Background(
            log,
            every,
            window=run.completion_window,
            prices={each: PriceTable.load(models.prices, each) for each in get_args(Window)},
            budget=budget,
            patience_s=run.patience_s,
        )
    for left, way, parameter in (
        (0 if run.batch else sum(len(each.keys) for each in files.under_way().values()), "batches", "batch"),
        (0 if run.completion_window else len(log.under_way()), "the background", "completion_window"),
    ):
        if left:
            warn(
                Words(
                    f"{counted(left, 'question')} under way in {way}; without {option(parameter, True)} "
                    "they are asked, and paid for, again"
                )
            )
    return opened


def needs_server(model: ModelId, models: ModelOptions) -> bool:
    """Whether a vLLM server has to be started for the model: nobody has said where one is."""
    return model.provider == VLLM.name and not addresses_of(VLLM, models.base_urls.get(model.provider))


@asynccontextmanager
async def _endpoint(
    model: ModelId,
    models: ModelOptions,
    run: RunOptions,
    prices: PriceTable,
    own: Sequence[VllmServer],
    *,
    warn: Callable[[str], None],
    rest_s: float | None,
) -> AsyncIterator[Endpoint]:
    """A model behind its server, or behind several that share its calls; `own` are those started for it."""
    given = models.base_urls.get(model.provider)
    preset = ALL.get(model.provider)
    urls: Sequence[str | None] = [each.base_url for each in own]
    if not urls:
        several = [] if preset is None else addresses_of(preset, given)
        urls = several if len(several) > 1 else [given]
    async with AsyncExitStack() as stack:
        providers = [open_model(model, Access(url, run.timeout_s)) for url in urls]
        for provider in providers:
            stack.push_async_callback(provider.close)
        guarded = partial(
            guarded_endpoint,
            price=partial(prices.cost, str(model)),
            worst_case=partial(worst_case, str(model)),
            timeout_s=run.timeout_s,
            patience_s=run.patience_s,
            address="own server" if own else None,
            rest_s=rest_s,
        )
        endpoint = guarded(providers[0], run.concurrency)
        if own or len(providers) > 1:
            share = -(-run.concurrency // len(providers))
            members = [
                Replica(
                    guarded(provider, share),
                    f"{model} at {parse_address(url or '')}",
                    own[number].revive if own else partial(_until_up, provider),
                    waited_for=bool(own),
                    restarts=partial(getattr, own[number], "restarts") if own else lambda: 0,
                )
                for number, (provider, url) in enumerate(zip(providers, urls, strict=True))
            ]
            replicas = Replicas(members, endpoint.breaker, warn)
            endpoint.replicas = await stack.enter_async_context(replicas)
        yield endpoint


async def _until_up(provider: ModelProvider) -> None:
    while not await provider.is_up():  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(PROBE_S)


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
async def _own_servers(
    model: ModelId,
    folder: Path | None,
    before: int,
    warn: Callable[[str], None],
    waits: list[Callable[[], str | None]],
) -> AsyncIterator[Sequence[VllmServer]]:
    """Those of one model, after so many of other models, which have logs of their own."""
    from uncanny.models.vllm.fleet import started, starting, vllm_fleet

    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="uncanny-vllm-")))
        servers = vllm_fleet(
            model.name,
            log_path=folder / (f"vllm-{before + 1}.log" if before else "vllm.log"),
            replicas=settings().vllm_replicas,
            extra_args=shlex.split(settings().vllm_args or ""),
            max_restarts=settings().vllm_restarts,
            on_restart=warn,
        )
        waits.append(partial(starting, servers))
        async with started(servers):
            try:
                yield servers
            finally:
                waits.clear()  # they end now, and nobody waits for them to start
