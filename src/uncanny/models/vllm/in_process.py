"""vLLM in this process, `vllm-inproc/<model>`: no server, no port, and images are not sent anywhere.

One thread owns the engine. It adds requests as they come and steps through all of them together, so that they
are batched as a server would batch them: none waits for the end of another.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import shlex
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import orjson

from uncanny.errors import (
    ModelUnusableError,
    ProviderError,
    RequestRejectedError,
    TransientError,
    UsageError,
    text_of,
)
from uncanny.extras import install_hint
from uncanny.models.base import Finish, ModelProvider, ModelRequest, ModelResponse, Tokens
from uncanny.models.error_body import one_line
from uncanny.models.openai_chat import chat_body
from uncanny.models.presets import VLLM
from uncanny.models.vllm.server import STRUCTURED_OUTPUTS
from uncanny.settings import settings

_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine in this process, where nothing can be left behind
    "VLLM_LOGGING_LEVEL": "ERROR",  # some warnings come with each request
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",  # standard output has results
}
_FINISHES: dict[str | None, Finish] = {"stop": "stop", "length": "length"}
_STOP_S = 60.0


@dataclass(slots=True, eq=False)
class _Work:
    """One request, and who waits for it. `number` is the engine's name of it, None before it was added."""

    request: ModelRequest
    loop: asyncio.AbstractEventLoop
    result: asyncio.Future[ModelResponse]
    number: str | None = None
    cancelled: bool = False

    def finish(self, outcome: ModelResponse | ProviderError) -> None:
        """From the engine's thread."""

        def hand_over() -> None:
            if not self.result.done():
                if isinstance(outcome, ProviderError):
                    self.result.set_exception(outcome)
                else:
                    self.result.set_result(outcome)

        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            self.loop.call_soon_threadsafe(hand_over)


class InProcessProvider(ModelProvider):
    """A model that vLLM runs in this process, loaded by the first request.

    Options of vLLM are those of the setting `vllm_args`. A request that takes longer than `timeout_s` seconds
    is ended; loading the model does not count. Raises `UsageError` where vLLM is not installed.
    """

    capabilities = VLLM.takes

    def __init__(self, model: str, *, timeout_s: float = 600.0) -> None:
        self.name = f"vllm-inproc/{model}"
        if find_spec("vllm") is None:
            raise UsageError(
                f"{self.name} needs vLLM in this Python",
                remedy=install_hint("vllm", instead=f"use a server: vllm/{model}"),
            )
        self._model, self._timeout_s = model, timeout_s
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._loaded = threading.Event()
        self._lock = threading.Lock()  # nothing is put into the queue after the thread has ended
        self._ended: ModelUnusableError | None = None

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Make one call; see `ModelProvider.generate`."""
        loop = asyncio.get_running_loop()
        work = _Work(request, loop, loop.create_future())
        with self._lock:
            if self._ended is not None:
                raise self._ended.with_traceback(None)
            self._queue.put(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
                self._thread.start()
        try:
            while not self._loaded.is_set() and not work.result.done():
                await asyncio.wait([work.result], timeout=0.2)
            async with asyncio.timeout(self._timeout_s):
                return await work.result
        except TimeoutError as error:
            message = f"{self.name}: no answer within {self._timeout_s:g} s"
            raise TransientError(message, kind="timeout", overloaded=True) from error
        finally:
            work.cancelled = True  # of no effect on one that is done

    def starting(self) -> str | None:
        """That the model is being loaded, while it is."""
        return "loading the model" if self._thread is not None and not self._loaded.is_set() else None

    async def close(self) -> None:
        """End the engine's thread. Requests that wait for it get an error."""
        if self._thread is not None:
            self._queue.put(None)
            # A model that is still being loaded is not waited for: the thread ends with the process.
            await asyncio.to_thread(self._thread.join, _STOP_S if self._loaded.is_set() else 1.0)

    def _run(self) -> None:
        """The engine's thread: requests by its name of them, until it is told to end or the engine fails."""
        under_way: dict[str, _Work] = {}
        problem = ModelUnusableError(f"{self.name} was closed")
        try:
            with closing(_Engine(self._model, self.name)) as engine:
                self._loaded.set()
                while self._take(engine, under_way):
                    cancelled = [number for number, work in under_way.items() if work.cancelled]
                    for number in cancelled:
                        del under_way[number]
                    engine.abort(cancelled)
                    for number, response in engine.step() if under_way else ():
                        if (work := under_way.pop(number, None)) is not None:
                            work.finish(response)
        except BaseException as error:  # with SystemExit, which vLLM raises for options that it does not know
            problem = self._problem(error)
        finally:
            with self._lock:
                self._ended = problem
            for work in [*under_way.values(), *filter(None, self._new(wait=False))]:
                work.finish(problem)
            self._loaded.set()

    def _take(self, engine: _Engine, under_way: dict[str, _Work]) -> bool:
        """Add what has come in; False when the end is wanted."""
        for work in self._new(wait=not under_way):
            if work is None:
                return False
            if work.cancelled:
                continue
            try:
                under_way[engine.add(work.request)] = work
            except Exception as error:  # an image that cannot be read, a prompt that is too long
                work.finish(RequestRejectedError(one_line(f"{self.name}: {text_of(error)}", ())))
        return True

    def _problem(self, error: BaseException) -> ModelUnusableError:
        if isinstance(error, ModelUnusableError):
            return error
        return ModelUnusableError(
            one_line(f"{self.name} cannot be used: {text_of(error)}", ()),
            remedy="Fix the cause. Options of vLLM are in UNCANNY_VLLM_ARGS.",
        )

    def _new(self, *, wait: bool) -> Iterator[_Work | None]:
        """What has come in; `wait` for the first where there is nothing else to do."""
        with contextlib.suppress(queue.Empty):
            if wait:
                yield self._queue.get()
            while True:
                yield self._queue.get_nowait()


class _Engine:
    """vLLM's `LLM`, as far as it is used here. All of it happens in one thread."""

    def __init__(self, model: str, name: str) -> None:
        for variable, value in _ENVIRONMENT.items():
            os.environ.setdefault(variable, value)
        self._name = name
        self._vllm: Any = import_module("vllm")
        self._llm = self._vllm.LLM(**_arguments(model))
        if not hasattr(self._llm, "enqueue_chat"):
            version = getattr(self._vllm, "__version__", "unknown")
            raise ModelUnusableError(
                f"{name} needs a later version of vLLM than {version}",
                remedy=f"Update vLLM, or use a server: vllm/{model}.",
            )

    def add(self, request: ModelRequest) -> str:
        """The engine's number of it. Raises whatever vLLM raises about the request."""
        body = orjson.loads(chat_body(request, self._name, VLLM.variant, {}, frozenset()))
        given: dict[str, Any] = {
            "temperature": request.sampling.temperature,
            "top_p": request.sampling.top_p,
            "max_tokens": request.sampling.max_output_tokens,
        }
        if request.schema is not None:
            structured: Any = import_module("vllm.sampling_params").StructuredOutputsParams
            given["structured_outputs"] = structured(json=request.schema.own)
        # As a server does: what is not given is the model's own default.
        defaults: dict[str, Any] = self._llm.model_config.get_diff_sampling_param()
        given = {name: value for name, value in given.items() if value is not None}
        parameters = self._vllm.SamplingParams.from_optional(**{**defaults, **given})
        added: str = self._llm.enqueue_chat(body["messages"], parameters, use_tqdm=False)[0]
        # Of `0-b882738d` outputs have the 0: what follows is the engine's own.
        return added.partition("-")[0]

    def close(self) -> None:
        """End the engine's own threads and processes."""
        self._llm.llm_engine.engine_core.shutdown()

    def abort(self, numbers: list[str]) -> None:
        if numbers:
            self._llm.llm_engine.abort_request(numbers)

    def step(self) -> Iterator[tuple[str, ModelResponse | ProviderError]]:
        """One step of all requests together; those that are done with it."""
        for output in self._llm.llm_engine.step():
            if output.finished:
                yield output.request_id, self._response(output)

    def _response(self, output: Any) -> ModelResponse | ProviderError:
        answer = output.outputs[0]
        finish = _FINISHES.get(answer.finish_reason)
        if finish is None:
            return TransientError(
                f"{self._name}: generation ended with {answer.finish_reason}", kind="aborted"
            )
        tokens = Tokens(len(output.prompt_token_ids), len(answer.token_ids), output.num_cached_tokens)
        return ModelResponse(answer.text, finish, tokens, self._name.partition("/")[2], output.request_id)


def _arguments(model: str) -> dict[str, Any]:
    """Keywords of `LLM`, from the options that `vllm serve` would be given. Raises `UsageError`."""
    module: Any = import_module("vllm.engine.arg_utils")
    parser = module.EngineArgs.add_cli_args(module.FlexibleArgumentParser())
    words = ["--model", model, *STRUCTURED_OUTPUTS, *shlex.split(settings().vllm_args or "")]
    keywords: dict[str, Any] = vars(module.EngineArgs.from_cli_args(parser.parse_args(words)))
    return keywords
