"""What an image costs by schedule, counted by servers: the scenes, and pictures with 8 and 12 objects.

The answers are the demo model's, so that all schedules find the same. Tokens are counted by the fake server,
and with `UNCANNY_VLLM_VENV` (see tests/vllm_cpu/README.md) by a real vLLM too, which is sent every request,
and whose own answer, one token of noise, is not used. A cached token is billed as a tenth of one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.common import fake_server, figure, noise_png, photo_jpeg, sized
from uncanny.models import registry
from uncanny.models.base import ModelProvider, ModelRequest, ModelResponse, Sampling, Tokens

SCHEDULES = ("paper", "packed", "single")
CACHED_AT = 0.1
CONSTRUCTED = sized(4, 1)
# No larger than any model sees an image.
SIDE = 768
# What a strong model found in pictures with one or two faults meant: see the trial in benchmarks/README.md.
ANOMALIES = 4
# By the papers' authors, with their code: two pictures.
AUTHORS = (150_043, 164_840)


@dataclass(frozen=True, slots=True)
class Cost:
    """Means of an image."""

    images: int
    calls: float
    clean_calls: int
    input: float
    cached: float
    output: float

    @property
    def billed(self) -> float:
        """Input tokens, of which a cached one counts a tenth."""
        return self.input - (1 - CACHED_AT) * self.cached


class Counted(ModelProvider):
    """The demo model's answers with the tokens of a real server that was sent the same requests."""

    def __init__(self, name: str, server: ModelProvider, objects: int) -> None:
        self._server, self._objects = server, objects
        self.name, self.endpoint, self.capabilities = f"counted/{name}", server.endpoint, server.capabilities

    async def generate(self, request: ModelRequest) -> ModelResponse:
        from uncanny.demo.model import answer, demo_request
        from uncanny.models.tokens import text_tokens

        one = replace(request, sampling=Sampling(0.0, None, 1))
        tokens = (await self._server.generate(one)).tokens
        asked = demo_request(request)
        text = answer(asked, synthetic_objects=self._objects, synthetic_anomalies=ANOMALIES).text
        return ModelResponse(text, "stop", Tokens(tokens.input, text_tokens(text), tokens.cached))

    async def close(self) -> None:
        await self._server.close()


def annotate(images: Sequence[Path], run: Path, schedule: Any, **options: Any) -> Cost:
    import uncanny

    done = uncanny.annotate(images, out=run, schedule=schedule, progress=False, cache=False, **options)
    records = list(done.annotations)
    assert {record.status for record in records} == {"ok"}, [record.errors for record in records]
    clean = [record.usage.calls for record in records if not record.anomalies]
    number = len(records)
    return Cost(
        number,
        sum(record.usage.calls for record in records) / number,
        max(clean, default=0),
        sum(record.usage.input_tokens or 0 for record in records) / number,
        sum(record.usage.cached_tokens or 0 for record in records) / number,
        sum(record.usage.output_tokens or 0 for record in records) / number,
    )


def pictures(folder: Path) -> dict[str, tuple[list[Path], int]]:
    """Sets by name, with the number of objects in pictures that are no scenes."""
    from uncanny.demo.scenes import scenes

    made: dict[str, tuple[list[Path], int]] = {"scenes": ([scene.image_path for scene in scenes()], 8)}
    for objects in (8, 12):
        paths = []
        for number in range(CONSTRUCTED):
            paths.append(folder / f"{objects}-{number}.png")
            paths[-1].write_bytes(noise_png(100 * objects + number, SIDE))
        made[f"{objects} objects"] = (paths, objects)
    large = [folder / f"large-{number}.jpg" for number in range(CONSTRUCTED)]
    for number, path in enumerate(large):
        path.write_bytes(photo_jpeg(number, (4_000, 3_000)))
    made["12 MP, 12 objects"] = (large, 12)
    return made


def show(server: str, ask: Callable[[list[Path], int, str], Cost], folder: Path) -> None:
    print(f"  {server}")
    for name, (paths, objects) in pictures(folder).items():
        costs = {schedule: ask(paths, objects, schedule) for schedule in SCHEDULES}
        paper = costs["paper"]
        for schedule, cost in costs.items():
            print(
                f"    {name:<17} {schedule:<7} {cost.calls:5.1f} calls (clean at most {cost.clean_calls}), "
                f"{cost.input:8,.0f} tokens in, {cost.cached / cost.input:4.0%} cached, billed as "
                f"{cost.billed:7,.0f}, {cost.output:6,.0f} out; of paper's: "
                f"in {cost.input / paper.input:.3f}, billed {cost.billed / paper.billed:.3f}"
            )
            at = f"{server}, {name}, {schedule}"
            most = (0.20 if "12 MP" in name else 0.15) if schedule == "packed" else None
            figure(f"{at}, tokens in", cost.input, "", paper.input, "schedule paper", wanted=most)
            figure(f"{at}, tokens in", cost.input, "", min(AUTHORS), "the authors' code", wanted=None)
            figure(f"{at}, tokens billed", cost.billed, "", paper.billed, "schedule paper", wanted=None)


def main() -> None:
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)

        def fake(paths: list[Path], objects: int, schedule: str) -> Cost:
            os.environ.setdefault("OPENAI_API_KEY", "none")
            with fake_server("--objects", str(objects), "--anomalies", str(ANOMALIES)) as url:
                run = folder / f"fake-{objects}-{paths[0].stem}-{schedule}"
                return annotate(paths, run, schedule, model="openai/gpt-4o", base_url=f"{url}/v1")

        show("fake server, OpenAI's protocol", fake, folder)
        if "UNCANNY_VLLM_VENV" in os.environ:
            on_vllm(folder)
    print(f"  the authors' code: {' and '.join(f'{tokens:,}' for tokens in AUTHORS)} tokens an image")


def on_vllm(folder: Path) -> None:
    from benchmarks.calls.vllm_cpu import empty_caches, tiny_server
    from uncanny.models.openai import VLLMProvider

    with tiny_server(folder) as server:

        def real(paths: list[Path], objects: int, schedule: str) -> Cost:
            def counted(name: str, base_url: str) -> ModelProvider:
                return Counted(name, VLLMProvider(name, base_url=base_url), objects)

            registry.register_provider("counted", counted, replace=True)
            empty_caches(server)
            run = folder / f"vllm-{objects}-{paths[0].stem}-{schedule}"
            model, url = f"counted/{server.model}", {"counted": server.base_url}
            return annotate(paths, run, schedule, model=model, base_url=url, concurrency=8)

        show("vLLM", real, folder)


if __name__ == "__main__":
    main()
