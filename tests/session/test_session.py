"""A session that many share: one client, one limit, one budget; and what ends one image, or all of them."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import io
import multiprocessing
import ssl
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import uncanny
from tests.runs.e2e import pictures, serving
from uncanny.demo.scenes import scenes
from uncanny.errors import (
    BudgetError,
    ImageError,
    ModelDownError,
    ModelUnusableError,
    StoppedError,
    TransientError,
    UsageError,
)
from uncanny.models import registry
from uncanny.models.base import Message, ModelRequest, ModelResponse, Tokens
from uncanny.models.noop import NoopProvider
from uncanny.session import examiner

SCENE = next(scene for scene in scenes() if scene.anomalies)
IMAGE = SCENE.image_path
Answer = Callable[[ModelRequest], Awaitable[ModelResponse]]
who_asks: contextvars.ContextVar[str] = contextvars.ContextVar("who_asks", default="nobody")


class Scripted:
    """Answers as the noop model does, after whatever `before` does; counts calls."""

    capabilities = uncanny.Capabilities()

    def __init__(self, before: Callable[[ModelRequest], Awaitable[object]] | None = None) -> None:
        self.name = "scripted/any"
        self.calls = self.now = self.most = self.closed = 0
        self.threads: set[str] = set()
        self._before, self._noop = before, NoopProvider()

    async def generate(self, request: ModelRequest) -> ModelResponse:
        self.calls += 1
        self.now += 1
        self.most = max(self.most, self.now)
        self.threads.add(threading.current_thread().name)
        try:
            if self._before is not None:
                await self._before(request)
            return ModelResponse((await self._noop.generate(request)).text, tokens=Tokens(100, 10, 0, 0))
        finally:
            self.now -= 1

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scripted]:
    """Makes the models named `scripted/…` that provider."""
    monkeypatch.setattr(registry, "_REGISTERED", {})

    def register(before: Callable[[ModelRequest], Awaitable[object]] | None = None) -> Scripted:
        provider = Scripted(before)
        uncanny.register_provider("scripted", lambda _name: provider, replace=True)
        return provider

    return register


def session(**options: Any) -> uncanny.Annotator:
    return uncanny.Annotator("scripted/any", **{"schedule": "single", **options})


@pytest.mark.slow
async def test_images_share_one_client_one_limit_and_one_tls_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    images = sorted(pictures(tmp_path, 20).iterdir())

    def contexts() -> int:
        return sum(type(each) is ssl.SSLContext for each in gc.get_objects())

    with serving(latency_ms=20.0) as server:
        async with uncanny.Annotator("openai/any", base_url=server.v1, concurrency=5) as annotator:
            before = contexts()
            found = await asyncio.gather(*map(annotator.annotate, images))
            assert [record.image for record in found] == [str(image) for image in images]
            assert {record.status for record in found} == {"ok"}
            assert contexts() == before
            assert annotator.usage.calls == server.requests() == sum(each.usage.calls for each in found)
        assert server.stats()["max_concurrent"] == 5


async def test_each_model_of_a_session_has_the_same_tls_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    made: list[object] = []
    create = ssl.SSLContext.load_verify_locations

    def counted(*arguments: Any) -> Any:
        made.append(arguments)
        return create(*arguments)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", counted)
    for _ in range(3):
        async with uncanny.Annotator("openai/a", fallback="openai/b", roles={"formatter": "openai/c"}):
            pass
    assert len(made) <= 1


async def test_a_session_does_its_work_in_a_thread_of_its_own(scripted: Callable[..., Scripted]) -> None:
    seen: list[str] = []

    async def note(_request: ModelRequest) -> None:
        seen.append(who_asks.get())

    provider = scripted(note)
    async with session() as annotator:
        who_asks.set("me")
        record = await annotator.annotate(IMAGE)
    assert (record.status, provider.calls, provider.closed) == ("ok", 1, 1)
    assert threading.current_thread().name not in provider.threads
    assert seen == ["me"]


def test_plain_code_has_the_same_session_for_all_its_threads(scripted: Callable[..., Scripted]) -> None:
    provider = scripted(lambda _: asyncio.sleep(0.02))
    with session(concurrency=3) as annotator, ThreadPoolExecutor(8) as threads:
        records = list(threads.map(lambda _: annotator.annotate(IMAGE), range(12)))
        assert annotator.detect(IMAGE).status == "ok"
        assert annotator.usage.calls == provider.calls
    assert {record.status for record in records} == {"ok"}
    assert provider.most == 3


async def test_a_session_is_shared_between_event_loops(scripted: Callable[..., Scripted]) -> None:
    provider = scripted()

    def elsewhere(annotator: uncanny.Annotator) -> str:
        return asyncio.run(annotator.annotate(IMAGE)).status

    async with session() as annotator:
        others = (asyncio.to_thread(elsewhere, annotator) for _ in range(3))
        here, there = await asyncio.gather(annotator.annotate(IMAGE), asyncio.gather(*others))
    assert [here.status, *there] == ["ok"] * 4
    assert provider.calls == 4


async def test_a_path_bytes_and_a_pillow_image_are_annotated_and_named(
    scripted: Callable[..., Scripted],
) -> None:
    scripted()
    with PIL.Image.open(IMAGE) as opened:
        async with session() as annotator:
            found = await asyncio.gather(
                annotator.annotate(str(IMAGE)),
                annotator.annotate(IMAGE.read_bytes()),
                *(annotator.annotate(opened, name="mine") for _ in range(4)),
            )
    assert [record.image for record in found] == [str(IMAGE), "image", *["mine"] * 4]
    assert found[0].sha256 == found[1].sha256 != found[2].sha256
    assert len({(record.width, record.height) for record in found}) == 1


async def test_what_is_wrong_with_one_image_is_raised_for_it_alone(scripted: Callable[..., Scripted]) -> None:
    scripted()
    truncated = IMAGE.read_bytes()[:2_000]
    lazily = PIL.Image.open(io.BytesIO(truncated))
    async with session() as annotator:
        good, *bad = await asyncio.gather(
            annotator.annotate(IMAGE),
            annotator.annotate(truncated),
            annotator.annotate(lazily),
            annotator.annotate("nowhere.png"),
            annotator.annotate(b""),
            annotator.annotate(3),  # type: ignore[arg-type]
            annotator.annotate(IMAGE, name=3),  # type: ignore[arg-type]
            annotator.annotate(IMAGE, deadline_s=0),
            annotator.detect(IMAGE, protocol="talk"),  # type: ignore[arg-type]
            return_exceptions=True,
        )
    assert isinstance(good, uncanny.Annotation)
    assert [type(error) for error in bad] == [ImageError] * 4 + [UsageError] * 4
    words = ["cut off", "truncated", "nowhere.png", "empty", "not int", "`name`", "`deadline_s`", "protocol"]
    for error, word in zip(bad, words, strict=True):
        assert word in str(error)


async def test_who_is_cancelled_ends_alone_and_gives_its_slot_back(scripted: Callable[..., Scripted]) -> None:
    hanging = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def hang(_request: ModelRequest) -> None:
        if provider.calls == 1:
            loop.call_soon_threadsafe(hanging.set)
            await asyncio.Event().wait()

    provider = scripted(hang)
    async with session(concurrency=1) as annotator:
        doomed = asyncio.create_task(annotator.annotate(IMAGE))
        await hanging.wait()
        others = [asyncio.create_task(annotator.annotate(IMAGE)) for _ in range(3)]
        doomed.cancel()
        assert {(await other).status for other in others} == {"ok"}
        with pytest.raises(asyncio.CancelledError):
            await doomed
    assert provider.now == 0


@pytest.mark.parametrize("plain", [True, False])
def test_an_image_that_takes_too_long_is_given_up(scripted: Callable[..., Scripted], plain: bool) -> None:
    async def hang(_request: ModelRequest) -> None:
        if provider.calls == 1:
            await asyncio.Event().wait()

    provider = scripted(hang)

    async def within_a_loop() -> None:
        async with session(concurrency=1) as annotator:
            with pytest.raises(StoppedError, match=r"not done within 0\.05 s"):
                await annotator.annotate(IMAGE, deadline_s=0.05)
            assert (await annotator.annotate(IMAGE, deadline_s=60)).status == "ok"

    if not plain:
        asyncio.run(within_a_loop())
        return
    with session(concurrency=1) as annotator:
        with pytest.raises(StoppedError, match=r"not done within 0\.05 s"):
            annotator.annotate(IMAGE, deadline_s=0.05)
        assert annotator.annotate(IMAGE, deadline_s=60).status == "ok"


async def test_leaving_ends_what_is_in_flight_and_what_comes_later(scripted: Callable[..., Scripted]) -> None:
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def hang(_request: ModelRequest) -> None:
        loop.call_soon_threadsafe(began.set)
        await asyncio.Event().wait()

    provider = scripted(hang)
    annotator = session()
    with pytest.raises(UsageError, match="not open"):
        await annotator.annotate(IMAGE)
    async with annotator:
        tasks = [asyncio.create_task(annotator.annotate(IMAGE)) for _ in range(5)]
        await began.wait()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in ended] == [StoppedError] * 5
    assert "closed before the image was done" in str(ended[0])
    assert (provider.now, provider.closed) == (0, 1)
    with pytest.raises(UsageError, match="was closed"):
        await annotator.annotate(IMAGE)
    with pytest.raises(UsageError, match="opened only once"):
        async with annotator:
            pass
    assert annotator.usage.calls == 0


async def test_a_session_that_is_cancelled_while_it_opens_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Opening:
        async def __aenter__(self) -> None:
            await asyncio.Event().wait()

        async def __aexit__(self, *_: object) -> None:
            """Never entered."""

    def slow(_model: str, _options: object) -> Opening:
        return Opening()

    monkeypatch.setattr(examiner, "open_examiner", slow)
    before = set(threading.enumerate())
    annotator = session()
    opening = asyncio.create_task(annotator.__aenter__())
    await asyncio.sleep(0.05)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
        assert not thread.is_alive(), thread


async def test_the_budget_is_the_sessions(scripted: Callable[..., Scripted], tmp_path: Path) -> None:
    provider = scripted()
    images = sorted(pictures(tmp_path, 6).iterdir())
    async with session(max_tokens_total=9_000, max_output_tokens=2_000, concurrency=1) as annotator:
        found = await asyncio.gather(*map(annotator.annotate, images), return_exceptions=True)
        spent = annotator.usage
        more = (annotator.annotate(IMAGE) for _ in range(100))
        with pytest.raises(BudgetError, match="of 9,000 tokens"):
            await asyncio.gather(*more)
    errors = [each for each in found if isinstance(each, BaseException)]
    assert all(isinstance(error, BudgetError) for error in errors)
    assert spent.input_tokens == 100 * (len(images) - len(errors))
    assert provider.calls * 110 <= 9_000


async def test_answers_are_kept_and_shared(scripted: Callable[..., Scripted], tmp_path: Path) -> None:
    provider = scripted(lambda _: asyncio.sleep(0.02))
    async with session(cache_dir=tmp_path) as annotator:
        first, *rest = await asyncio.gather(*(annotator.annotate(IMAGE) for _ in range(5)))
    assert provider.calls == 1
    async with session(cache_dir=tmp_path) as annotator:
        assert (await annotator.annotate(IMAGE)).anomalies == first.anomalies == rest[0].anomalies
        assert annotator.usage.calls == 0
    async with session(cache_dir=tmp_path, cache=False) as annotator:
        await annotator.annotate(IMAGE)
    assert provider.calls == 2


async def test_a_model_that_was_down_is_tried_again(
    scripted: Callable[..., Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    up = False

    async def down(_request: ModelRequest) -> None:
        if not up:
            raise ModelUnusableError("no credit left")

    provider = scripted(down)
    monkeypatch.setattr(examiner, "REST_S", 0.3)
    async with session() as annotator:
        for _ in range(3):
            with pytest.raises(ModelUnusableError, match="no credit left") as caught:
                await annotator.annotate(IMAGE)
        assert provider.calls == 1
        depth = len(caught.traceback)
        for _ in range(5):
            with pytest.raises(ModelUnusableError, match="no credit left") as caught:
                await annotator.annotate(IMAGE)
        assert len(caught.traceback) == depth  # the same error is raised each time, and keeps no history
        up = True
        await asyncio.sleep(0.4)
        assert (await annotator.annotate(IMAGE)).status == "ok"


async def test_a_model_that_fails_at_all_images_is_given_up_whatever_they_are_called(
    scripted: Callable[..., Scripted],
) -> None:
    async def down(_request: ModelRequest) -> None:
        raise TransientError("status 500", kind="server")

    scripted(down)
    async with session(patience_s=0.2) as annotator:
        images = (annotator.annotate(IMAGE, name="the same") for _ in range(4))
        found = await asyncio.gather(*images, return_exceptions=True)
    assert {type(each) for each in found} == {ModelDownError}


async def test_a_requested_stop_ends_what_is_in_flight_and_refuses_the_rest(
    scripted: Callable[..., Scripted],
) -> None:
    stop = uncanny.Stop()

    async def hang(_request: ModelRequest) -> None:
        stop.request()
        await asyncio.Event().wait()

    provider = scripted(hang)
    async with session(stop=stop) as annotator:
        for _ in range(2):
            with pytest.raises(StoppedError, match="a stop was requested"):
                await annotator.annotate(IMAGE)
    assert provider.calls == 1


async def test_what_a_node_or_a_callback_raises_reaches_the_one_who_asked(
    scripted: Callable[..., Scripted],
) -> None:
    scripted()
    errors: list[BaseException] = [KeyError("my own"), asyncio.CancelledError()]  # no cancellation of ours
    told: list[uncanny.CallRecord] = []

    async def perceive(_state: Any, _image: Any) -> Any:
        if errors:
            raise errors.pop(0)
        return {"objects": [], "cut": []}

    nodes: Any = {"perceive": perceive}
    async with session(schedule="packed", nodes=nodes, on_call=told.append) as annotator:
        with pytest.raises(KeyError, match="my own"):
            await annotator.annotate(IMAGE)
        with pytest.raises(Exception, match="'perceive' raised"):
            await annotator.annotate(IMAGE)
        assert (await annotator.annotate(IMAGE)).status == "ok"
    assert {type(call) for call in told} == {uncanny.CallRecord}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_cost": 1}, "no option `max_cost`. Did you mean `max_cost_usd`?"),
        ({"limit": 3}, "no option `limit`"),
        ({"retry_failed": True}, "no option `retry_failed`"),
        ({"progress": True}, "no option `progress`"),
        ({"on_record": print}, "no option `on_record`"),
        ({"image_column": "image"}, "no option `image_column`"),
        ({"repeats": 2, "schedule": "single"}, "`repeats` has no effect with the schedule `single`"),
        ({"temperature": 9}, "temperature"),
        ({"max_side": 0}, "`max_side` must be at least 1"),
        ({"roles": {"nobody": "noop"}}, "There is no role 'nobody'"),
        ({"prompts": "nowhere"}, "nowhere does not exist"),
        ({"model": "nothing/x"}, "does not name a provider"),
    ],
)
def test_a_wrong_option_is_named_when_it_opens(options: dict[str, Any], message: str) -> None:
    model = options.pop("model", "noop")
    for ask in (uncanny.annotate_image, uncanny.detect_image):
        with pytest.raises(UsageError, match=message.replace("?", r"\?")):
            ask(IMAGE, model=model, **options)
    with pytest.raises(UsageError, match=message.replace("?", r"\?")), uncanny.Annotator(model, **options):
        pass


def test_the_texts_of_a_folder_are_for_the_protocol_they_are_of(
    scripted: Callable[..., Scripted], tmp_path: Path
) -> None:
    from uncanny.prompts.folders import write_prompts

    write_prompts("detect", tmp_path)
    (tmp_path / "source.md").write_text("Is this photograph real?")
    asked: list[str] = []

    async def note(request: ModelRequest) -> None:
        asked.append(text_of(request.messages))

    scripted(note)
    with session(prompts=tmp_path) as annotator:
        annotator.annotate(IMAGE)
        annotator.detect(IMAGE, protocol="independent")
    assert ["photograph real" in text for text in asked].count(True) == 1


def text_of(messages: tuple[Message, ...]) -> str:
    return "\n".join(part for turn in messages for part in turn.parts if isinstance(part, str))


def test_one_image_functions_are_a_session_of_one(scripted: Callable[..., Scripted]) -> None:
    provider = scripted()
    options: Any = {"model": "scripted/any", "schedule": "single", "max_side": 64}
    records = [
        uncanny.annotate_image(IMAGE, **options),
        asyncio.run(uncanny.annotate_image_async(IMAGE, **options)),
    ]
    assert {record.pixels.sent.width for record in records if record.pixels and record.pixels.sent} == {64}
    found = [
        uncanny.detect_image(IMAGE, model="demo"),
        asyncio.run(uncanny.detect_image_async(IMAGE, model="demo", protocol="independent")),
    ]
    assert [each.source for each in found] == ["generated", "generated"]
    assert (provider.calls, provider.closed) == (2, 2)


def in_a_child(annotator: uncanny.BlockingAnnotator, outcome: Any) -> None:
    try:
        annotator.annotate(IMAGE)
    except UsageError as error:
        outcome.put(str(error))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_session_is_not_used_in_a_process_that_was_forked_later(scripted: Callable[..., Scripted]) -> None:
    scripted()
    fork = multiprocessing.get_context("fork")
    outcome = fork.Queue()
    with session() as annotator:
        child = fork.Process(target=in_a_child, args=(annotator, outcome))
        child.start()
        assert "opened in another process" in outcome.get(timeout=60)
        child.join()
        assert annotator.annotate(IMAGE).status == "ok"


async def test_a_blocking_provider_does_not_hold_up_the_loop(scripted: Callable[..., Scripted]) -> None:
    async def block(_request: ModelRequest) -> None:
        time.sleep(0.3)  # noqa: ASYNC251 - what a provider should not do

    scripted(block)
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    async with session() as annotator:
        beating = asyncio.create_task(beat())
        await annotator.annotate(IMAGE)
        beating.cancel()
    assert beats > 2
