"""Annotating one image to its record, without any file or run.

`annotate_image` has an `_async` twin for programs with an event loop of their own.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from uncanny.agents import AnnotateConfig
from uncanny.agents.own_agent import OwnAgent
from uncanny.errors import StoppedError, UsageError
from uncanny.eval.annotate.run import AnnotateTask
from uncanny.images import PixelPolicy
from uncanny.images.decode import orientation_of
from uncanny.images.prepared import prepare, prepare_bytes
from uncanny.prompts.folders import read_prompts
from uncanny.records.run_folder import RunFolder
from uncanny.runs.config import AskOptions, check_options, read_limits, read_models
from uncanny.runs.inputs import ImageFile
from uncanny.runs.stop import Stop
from uncanny.runs.sync import blocking
from uncanny.schema import Annotation
from uncanny.wording import option

if TYPE_CHECKING:
    import PIL.Image

    from uncanny.agents.state import Context
    from uncanny.client.calls import CallRecord
    from uncanny.graphs.annotate import AnnotateGraph, AnnotateNodes
    from uncanny.graphs.packed import PackedGraph, PackedNodes


async def annotate_image_async(
    image: str | Path | bytes | PIL.Image.Image,
    *,
    model: str,
    name: str | None = None,
    config: AnnotateConfig | None = None,
    policy: PixelPolicy | None = None,
    agents: Sequence[OwnAgent] = (),
    nodes: AnnotateNodes | PackedNodes | None = None,
    graph: AnnotateGraph[Context] | PackedGraph[Context] | None = None,
    **options: Unpack[AskOptions],
) -> Annotation:
    """Annotate one image, given as a path, as the bytes of a file or as a Pillow image. Nothing is written.

    `name` is what the record calls it: the path as it was written, or else `image`. `config` and `policy`
    are the parameters that `annotate` takes one by one; `agents`, `nodes` and `graph` are the same as there.
    Of `options` those about records and resuming mean nothing here.

    Raises ImageError where it cannot be read, UsageError, StoppedError by `stop`, and ModelUnusableError or
    BudgetError where the model cannot be asked any more. A record with `status` `failed` says in `errors`
    what went wrong.

    `annotate_image_async` is the same for programs with an event loop.

    >>> annotation = uncanny.annotate_image(image, model="demo")
    >>> annotation.status
    'ok'
    >>> asyncio.run(uncanny.annotate_image_async(image, model="demo")).model
    'demo'
    """
    kinds = dict.fromkeys(AnnotateConfig.model_fields, "config=uncanny.AnnotateConfig")
    kinds |= dict.fromkeys(("max_side", "jpeg_quality", "max_pixels"), "policy=uncanny.PixelPolicy")
    for parameter in options.keys() & kinds.keys():
        remedy = f"Write {kinds[parameter]}({parameter}=…)."
        raise UsageError(f"{option(parameter)} is a parameter of runs", remedy=remedy)
    check_options(options, name=name)
    for parameter, value, kind in (("config", config, AnnotateConfig), ("policy", policy, PixelPolicy)):
        if value is not None and not isinstance(value, kind):
            raise UsageError(f"{option(parameter)} must be an uncanny.{kind.__name__}, not {value!r}")
    path = Path(image) if isinstance(image, str | Path) else None
    task = AnnotateTask(
        folder=RunFolder(Path()),
        paths=(),
        models=read_models(model, options),
        options=read_limits(options),
        policy=policy or PixelPolicy(),
        config=config or AnnotateConfig(),
        agents=agents,
        nodes=nodes,
        graph=graph,
        prompts=read_prompts((config or AnnotateConfig()).table.prompts, options.get("prompts")),
    )
    work = asyncio.ensure_future(_annotation(image, path, name, task, options.get("on_call") or _ignore))
    stop = options.get("stop") or Stop()

    def cancel() -> None:
        work.cancel()

    try:
        with stop.listening(cancel):
            return await work
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if not stop.requested or (current is not None and current.cancelling()):
            raise
        raise StoppedError("The image was not annotated: a stop was requested") from None


annotate_image = blocking(annotate_image_async)


async def _annotation(
    image: str | Path | bytes | PIL.Image.Image,
    path: Path | None,
    name: str | None,
    task: AnnotateTask,
    on_call: Callable[[CallRecord], None],
) -> Annotation:
    from uncanny.client.budget import Budget
    from uncanny.runs.engine import open_engine

    limits = task.options
    async with open_engine(
        task.models,
        limits,
        answers=limits.answers if limits.cache else None,
        budget=Budget(limits.max_cost_usd, limits.max_tokens_total, usual_calls=task.calls_per_input),
        agents=task.roles,
        on_call=on_call,
    ) as engine:
        if path is not None:
            opened = await asyncio.to_thread(prepare, path, task.policy, engine.limits)
        else:
            data = task.source = image if isinstance(image, bytes) else _png(image)
            opened = await asyncio.to_thread(prepare_bytes, data, task.policy, engine.limits)
        file = ImageFile(path or Path(), name or (str(image) if path else "image"))
        return await task.examine(file, opened, engine, [])


def _ignore(_call: CallRecord) -> None:
    """The callback of who wants none."""


def _png(image: Any) -> bytes:
    if not hasattr(image, "save"):
        raise UsageError(
            f"An image is a path, bytes or a Pillow image, not {type(image).__name__}",
            remedy="Open it with PIL.Image.open, or give its path.",
        )
    from PIL import ExifTags, Image

    file = io.BytesIO()
    try:
        image.load()  # Pillow turns a TIFF upright, and forgets its orientation, when it loads it
        # Which way is up goes along, so that the picture is turned, and the record says so, as for a file.
        exif = Image.Exif()
        if (turned := orientation_of(image)) != 1:
            exif[ExifTags.Base.Orientation] = turned
        image.save(file, "PNG", exif=exif)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"A Pillow image of mode {image.mode}, {image.width}x{image.height}, cannot be sent: {error}",
            remedy='Give image.convert("RGB"), or the path of its file.',
        ) from error
    return file.getvalue()
