"""What a session does in its own event loop: it opens models once, and examines images through them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from uncanny.agents.config import DetectConfig
from uncanny.annotation.run import AnnotateTask, annotate_config
from uncanny.client.budget import Budget
from uncanny.client.calls import CallRecord
from uncanny.errors import StoppedError, UsageError
from uncanny.eval.detect.run import DetectTask
from uncanny.images.encode import PixelPolicy, SendLimits
from uncanny.images.prepared import PreparedImage, png_of, prepare, prepare_bytes
from uncanny.prompts import PromptSet, prompt_set
from uncanny.prompts.folders import read_prompts
from uncanny.records.run_folder import RunFolder
from uncanny.runs.engine import Engine, open_engine
from uncanny.runs.image_task import MOST_IMAGES_AT_ONCE, ImageTask
from uncanny.runs.inputs import ImageFile
from uncanny.runs.progress import Spending
from uncanny.runs.stop import Stop
from uncanny.runs.task import INPUTS_AHEAD
from uncanny.schema import Annotation, Detection, Usage
from uncanny.session.parameters import AnnotatorParameters, DetectCallParameters, ImageCallParameters
from uncanny.wording import option

if TYPE_CHECKING:
    from uncanny.session.annotator import ImageSource

A = TypeVar("A", Annotation, Detection)
# After so many seconds a model that was given up is tried again: a session may outlive an outage.
REST_S = 30.0


@asynccontextmanager
async def open_examiner(model: str, parameters: AnnotatorParameters) -> AsyncIterator[Examiner]:
    """All that images need, read, compiled and opened. Raises UsageError and ModelUnusableError."""
    config = annotate_config(parameters, None)
    models, limits = parameters.models_of(model), parameters.options
    folder = RunFolder(Path())
    annotate = AnnotateTask(
        folder=folder,
        paths=(),
        models=models,
        options=limits,
        policy=parameters.policy,
        config=config,
        agents=parameters.agents,
        nodes=parameters.nodes,
        graph=parameters.graph,
        prompts=_texts(config.table.prompts, "detect", parameters.prompts),
    )
    annotate.compiled_graph  # noqa: B018 - now, and not with the first image
    detect = DetectTask(
        folder=folder,
        paths=(),
        models=models,
        options=limits,
        policy=annotate.policy,
        config=parameters.part(DetectConfig),
        prompts=_texts("detect", config.table.prompts, parameters.prompts),
    )
    spending, on_call = Spending(), parameters.on_call

    def note(call: CallRecord) -> None:
        spending.add(call)
        if on_call is not None:
            on_call(call)

    async with open_engine(
        models,
        limits,
        answers=limits.answers(None),
        budget=Budget(limits.max_cost_usd, limits.max_tokens_total, usual_calls=annotate.calls_per_input),
        agents={**annotate.roles, **detect.roles},
        on_call=note,
        rest_s=REST_S,
    ) as engine:
        yield Examiner(engine, annotate, detect, spending, parameters.stop or Stop())


class Examiner:
    """Examines images side by side, as many at once as keep the models busy, in order of their arrival."""

    def __init__(
        self, engine: Engine, annotate: AnnotateTask, detect: DetectTask, spending: Spending, stop: Stop
    ) -> None:
        self._engine, self._spending, self._stop = engine, spending, stop
        self._annotate, self._detect = annotate, detect
        # More would only fill the memory with pictures that wait for a call.
        at_once = min(MOST_IMAGES_AT_ONCE, annotate.options.concurrency + INPUTS_AHEAD)
        self._room = asyncio.Semaphore(at_once)

    async def annotate(self, image: ImageSource, call: ImageCallParameters) -> Annotation:
        return await self._examined(self._annotate, image, call)

    async def detect(self, image: ImageSource, call: DetectCallParameters) -> Detection:
        task = self._detect
        if call.protocol != task.config.protocol:
            config = DetectConfig(**task.config.model_dump() | {"protocol": call.protocol})
            task = replace(task, config=config)
        return await self._examined(task, image, call)

    def usage(self) -> Usage:
        """What all calls so far have used; a figure that one of them left unmeasured is None."""
        spending = self._spending
        return Usage.model_validate(
            {"calls": spending.calls, **{name: spending.figure(name) for name in spending.sums}}
        )

    async def _examined(self, task: ImageTask[A], image: ImageSource, call: ImageCallParameters) -> A:
        work = asyncio.current_task()
        assert work is not None
        requested = False

        def stop() -> None:
            nonlocal requested
            requested = True
            work.cancel()

        try:
            with self._stop.listening(stop):
                async with asyncio.timeout(call.deadline_s) as limit:
                    async with self._room:
                        policy, limits = task.policy, self._engine.limits
                        opened = await asyncio.to_thread(_opened, image, call.name, policy, limits)
                        with self._engine.model_client.telemetry.input() as watch:
                            record = await task.examine(*opened, self._engine, [])
                            watch.recorded(task.outcomes([record]))
                        if isinstance(record, Annotation) and isinstance(image, str | PathLike):
                            record.set_place(file=Path(fspath(image)).absolute())  # noqa: ASYNC240
                        return record
        except TimeoutError:
            if not limit.expired():
                raise
            raise StoppedError(
                f"The image was not done within {call.deadline_s:g} s",
                remedy=f"Raise {option('deadline_s')}, or ask fewer images at once.",
            ) from None
        except asyncio.CancelledError:
            if not requested:
                raise
            raise StoppedError("The image was not examined: a stop was requested") from None


def _opened(
    image: object, name: str | None, policy: PixelPolicy, limits: SendLimits
) -> tuple[ImageFile, PreparedImage]:
    """An image and what its record calls it. Blocking, and heavy. Raises UsageError, ImageError."""
    if isinstance(image, str | PathLike):
        path = Path(fspath(image))
        return ImageFile(path, name or str(image)), prepare(path, policy, limits)
    if not isinstance(image, bytes):
        from PIL import Image

        if not isinstance(image, Image.Image):
            raise UsageError(
                f"An image is a path, the bytes of a file or a Pillow image, not {type(image).__name__}",
                remedy="Make one with PIL.Image.open(file) or PIL.Image.fromarray(array), or give its path.",
            )
        image = png_of(image)
    return ImageFile(Path(), name or "image", image), prepare_bytes(image, policy, limits)


def _texts(protocol: str, other: str, folder: str | PathLike[str] | None) -> PromptSet:
    """The prompts of `protocol` in the folder; ours where those in it are for the `other`."""
    try:
        return read_prompts(protocol, folder)
    except UsageError:
        try:
            read_prompts(other, folder)
        except UsageError:
            pass
        else:
            return prompt_set(protocol)
        raise
