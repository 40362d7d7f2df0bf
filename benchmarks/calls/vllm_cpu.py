"""What the order of a question is worth: the bundled scenes on a real vLLM, with three arrangements in turns.

Needs `UNCANNY_VLLM_VENV`, see tests/vllm_cpu/README.md. The model is tiny and what it says is noise; tokens,
prefix cache and image cache are vLLM's own. Each round starts from empty caches on one server. The time of a
whole run compares nothing: noise is longer in one round than in the other, and prompts cost the tiny model
next to nothing. The time that vLLM took for prompts alone is shown instead.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import statistics
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.common import figure, sized
from uncanny.models import registry
from uncanny.models.base import Message, ModelProvider, ModelRequest, ModelResponse
from uncanny.models.openai import VLLMProvider
from uncanny.models.vllm.server import VllmServer

VENV_VARIABLE = "UNCANNY_VLLM_VENV"
TOOLS = Path(__file__).parents[2] / "tests" / "vllm_cpu"
ROUNDS = sized(2, 1)
CONCURRENCY = 8
MOST_OBJECTS = 2
# By default the tiny model shrinks images to 64 tokens. Real models see these scenes with 432.
FULL_SIZE = '{"size": {"shortest_edge": 1024, "longest_edge": 1048576}}'
COUNTERS = (
    "prefix_cache_queries_total",
    "prefix_cache_hits_total",
    "mm_cache_queries_total",
    "mm_cache_hits_total",
    "request_prefill_time_seconds_sum",
)

Arrange = Callable[[ModelRequest], ModelRequest]


class Arranged(ModelProvider):
    """A provider whose requests are put in another order on their way out.

    Without a common prefix there is nothing to warm up, so no request waits for the first one.
    """

    def __init__(self, inner: ModelProvider, arrange: Arrange) -> None:
        self._inner, self._arrange = inner, arrange
        self.name, self.endpoint = inner.name, inner.endpoint
        self.capabilities = replace(inner.capabilities, prefix_cache=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        return self._inner.secrets

    async def generate(self, request: ModelRequest) -> ModelResponse:
        return await self._inner.generate(self._arrange(request))

    async def close(self) -> None:
        await self._inner.close()


def image_last(request: ModelRequest) -> ModelRequest:
    """What differs ahead of the image, as in most hand-written scripts."""
    turns = (replace(turn, parts=turn.parts[::-1]) for turn in request.messages)
    return replace(request, messages=tuple(turns))


def numbered(numbers: Iterator[int]) -> Arrange:
    """A first line of its own for every question, like a time or an id in the system text."""

    def arrange(request: ModelRequest) -> ModelRequest:
        system, *others = request.messages
        named = Message("system", (f"Request {next(numbers):06d}.\n", *system.parts))
        return replace(request, messages=(named, *others))

    return arrange


ARRANGEMENTS: dict[str, Arrange | None] = {
    "system, image, what differs": None,
    "system, what differs, image": image_last,
    "unique first line": numbered(itertools.count(100_000)),
}


@dataclass(frozen=True, slots=True)
class Figures:
    """One round. `used` is how far the server's counters rose."""

    images: int
    ok: int
    calls: int
    seconds: float
    input: float
    output: float
    cached: float
    used: dict[str, float]

    @property
    def computed(self) -> float:
        """Prompt tokens a call that the server had to compute."""
        return (self.input - self.cached) / self.calls

    @property
    def prefill_ms(self) -> float:
        """Milliseconds a call from the prompt's start to its end, by the server's account."""
        return 1000 * self.used["request_prefill_time_seconds_sum"] / self.calls


@contextmanager
def tiny_server(folder: Path) -> Iterator[VllmServer]:
    venv = Path(os.environ[VENV_VARIABLE]).absolute()
    model = folder / "model"
    make = (venv / "bin" / "python", TOOLS / "make_tiny_vlm.py", model)
    subprocess.run(make, check=True, capture_output=True)
    server = VllmServer(
        str(model),
        log_path=folder / "vllm.log",
        command=(str(TOOLS / "vllm.sh"),),
        extra_args=("--mm-processor-kwargs", FULL_SIZE),
        env={VENV_VARIABLE: str(venv), "VLLM_SERVER_DEV_MODE": "1"},
    )
    with asyncio.Runner() as runner:
        runner.run(server.__aenter__())
        try:
            yield server
        finally:
            runner.run(server.__aexit__(None, None, None))


def at(server: VllmServer, path: str, *, post: bool = False) -> str:
    url = server.base_url.removesuffix("/v1") + path
    with urllib.request.urlopen(url, data=b"" if post else None, timeout=60) as reply:
        text: str = reply.read().decode()
    return text


def empty_caches(server: VllmServer) -> None:
    assert "true" in at(server, "/reset_prefix_cache", post=True)
    at(server, "/reset_mm_cache", post=True)
    at(server, "/reset_encoder_cache", post=True)


def counters(server: VllmServer) -> dict[str, float]:
    text = at(server, "/metrics")
    found = {name: re.findall(rf"^vllm:{name}{{.*}} (\S+)$", text, re.MULTILINE) for name in COUNTERS}
    return {name: sum(map(float, values)) for name, values in found.items()}


def measure(server: VllmServer, run: Path, arrange: Arrange | None, limit: int | None = None) -> Figures:
    from uncanny.agents.config import AnnotateConfig
    from uncanny.annotation.run import AnnotateTask
    from uncanny.cli.common.session import run_here
    from uncanny.demo.scenes import scenes
    from uncanny.models.registry import ModelOptions
    from uncanny.records.run_folder import RunFolder
    from uncanny.runs.parameters import RunOptions

    def arranged(name: str, base_url: str) -> ModelProvider:
        provider = VLLMProvider(name, base_url=base_url)
        return provider if arrange is None else Arranged(provider, arrange)

    registry.register_provider("arranged", arranged, replace=True)
    empty_caches(server)
    before = counters(server)
    models = ModelOptions(registry.ModelId("arranged", server.model), base_urls={"arranged": server.base_url})
    config = AnnotateConfig(schedule="paper", max_objects=MOST_OBJECTS)
    options = RunOptions(concurrency=CONCURRENCY, limit=limit, cache=False)
    images = [scene.image_path for scene in scenes()]
    task = AnnotateTask(folder=RunFolder(run), paths=images, models=models, config=config, options=options)
    end = run_here(task, quiet=True)
    progress, sums = end.progress, end.progress.spending.sums
    assert end.reason is None, end.error
    assert not set(progress.spending.unmeasured) - {"cost_usd"}
    return Figures(
        progress.done,
        progress.statuses["ok"],
        progress.spending.calls,
        progress.seconds(),
        sums["input_tokens"],
        sums["output_tokens"],
        sums["cached_tokens"],
        {name: value - before[name] for name, value in counters(server).items()},
    )


def show(name: str, rounds: Sequence[Figures], ours: Sequence[Figures]) -> None:
    one = rounds[0]
    cached = sum(each.cached for each in rounds) / sum(each.input for each in rounds)
    hits, queries, seen, asked = (
        sum(each.used[counter] for each in rounds)
        for counter in (
            "prefix_cache_hits_total",
            "prefix_cache_queries_total",
            "mm_cache_hits_total",
            "mm_cache_queries_total",
        )
    )
    print(f"  {name}")
    print(
        f"    {one.images} images ({one.ok} ok), {one.calls} calls, {one.input:,.0f} tokens in,"
        f" {one.output:,.0f} out; {statistics.mean(each.seconds for each in rounds):.1f} s"
        f" ({', '.join(f'{each.seconds:.1f}' for each in rounds)})"
    )
    print(
        f"    cached by usage {cached:.1%}, prefix cache {hits:,.0f}/{queries:,.0f} = {hits / queries:.1%},"
        f" image cache {seen:,.0f}/{asked:,.0f} = {seen / asked:.1%}"
    )
    for what, unit, each in (
        ("computed prompt tokens a call", "", lambda one: one.computed),
        ("time of prompts a call", "ms", lambda one: one.prefill_ms),
    ):
        value, beside = (statistics.mean(map(each, side)) for side in (rounds, ours))
        figure(f"{name}, {what}", value, unit, beside, "ours", wanted=None)


def main() -> None:
    if VENV_VARIABLE not in os.environ:
        print(f"  left out: {VENV_VARIABLE} is not set, see tests/vllm_cpu/README.md")
        return
    found: dict[str, list[Figures]] = {name: [] for name in ARRANGEMENTS}
    with tempfile.TemporaryDirectory() as tmp, tiny_server(Path(tmp)) as server:
        measure(server, Path(tmp) / "warm-up", None, 2)
        for turn in range(ROUNDS):
            for number, (name, arrange) in enumerate(ARRANGEMENTS.items()):
                found[name].append(measure(server, Path(tmp) / f"run-{turn}-{number}", arrange))
    print(f"  {CONCURRENCY} calls at once, at most {MOST_OBJECTS} objects an image, {ROUNDS} rounds in turns")
    ours = next(iter(found.values()))
    for name, rounds in found.items():
        show(name, rounds, ours)


if __name__ == "__main__":
    main()
