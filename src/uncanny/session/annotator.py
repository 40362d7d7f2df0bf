"""`Annotator`: models opened once, for images one by one; and the functions for a single image.

For programs that are asked for images one at a time, as a web service is. All work is done in a thread with
an event loop of its own: the program's loop is never held up, and sessions can be used from any thread and
any loop. Nothing heavy is imported here for the same reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from uncanny.errors import UsageError
from uncanny.parameters import takes
from uncanny.runs.sync import LoopThread, blocking, look_at, until_done, wait_for
from uncanny.session.parameters import (
    AnnotateImageParameters,
    AnnotatorParameters,
    DetectCallParameters,
    DetectImageParameters,
    ImageCallParameters,
)

if TYPE_CHECKING:
    import PIL.Image

    from uncanny.schema import Annotation, Detection, Usage
    from uncanny.session.examiner import Examiner

R = TypeVar("R")
S = TypeVar("S")
I = TypeVar("I")  # noqa: E741
P = ParamSpec("P")
ImageSource: TypeAlias = "str | PathLike[str] | bytes | PIL.Image.Image"


class Annotator:
    """A session with models, shared by any number of images, calls, threads and event loops.

    ```python
    async with uncanny.Annotator("openai/gpt-4o", concurrency=16, max_cost_usd=20) as annotator:
        annotation = await annotator.annotate("photo.jpg")
    ```

    All images share the session's connections, concurrency limit, back-off, budget and answer cache. Plain
    `with` gives a `BlockingAnnotator`, whose methods are not awaited. All work runs in the session's own
    thread, including your callbacks, providers and nodes.

    Leaving the block closes the session; images in flight raise StoppedError. Open a session once, in the
    process that uses it, after any fork.

    Args:
        model: `provider/name`, as for `uncanny.annotate`.
        **options: those below; all may be left out. A model that was given up is tried again after 30 s.
            Limits of cost and tokens are those of the session as a whole: a call that would exceed them is
            not made and raises BudgetError. `prompts` are for `annotate` or for `detect`, whichever they are
            for; options of annotating are not used by `detect`, and sampling defaults to that of
            `uncanny.annotate` and `uncanny.detect`.

    Raises:
        UsageError: for wrong options.
        ModelUnusableError: on opening, where a key is missing.
    """

    @takes(AnnotatorParameters)
    def __init__(self, model: str, parameters: AnnotatorParameters) -> None:
        self._session = _Session(model, parameters)

    async def __aenter__(self) -> Annotator:
        thread = self._session.start()
        opened = asyncio.wrap_future(thread.opened)
        opened.add_done_callback(look_at)
        try:
            await asyncio.wait([opened])
        except asyncio.CancelledError:
            await until_done(asyncio.wrap_future(thread.close()))
            raise
        _result(thread.opened)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ended = asyncio.wrap_future(self._session.thread.close())
        cancelled = await until_done(ended)
        if cancelled is not None:
            raise cancelled
        ended.result()

    def __enter__(self) -> BlockingAnnotator:
        thread = self._session.start()
        try:
            wait_for(thread.opened)
        except KeyboardInterrupt:
            thread.close().result()
            raise
        except UsageError as error:
            raise error.with_traceback(None)  # noqa: B904  it is the same error, with its cause
        return BlockingAnnotator(self._session)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.thread.close().result()

    @takes(ImageCallParameters)
    async def annotate(self, image: ImageSource, parameters: ImageCallParameters) -> Annotation:
        """Annotate one image: anomalies with name, phenomenon, reasoning and severity.

        `image` is a path, the bytes of a file, or a Pillow image.

        Returns:
            The record. If its `status` is `failed` or `partial`, `errors` says why.

        Raises:
            ImageError: where the image cannot be read.
            BudgetError: where a limit of the session is reached.
            ModelUnusableError: where no model can be asked (any more).
            StoppedError: at the deadline, where the session is closed, or where its `stop` is requested.
            StorageError: where answers cannot be kept, as on a full disk.
            UsageError: for wrong arguments, and where the session is not open.
        """
        return await self._done(lambda examiner: examiner.annotate(image, parameters))

    @takes(DetectCallParameters)
    async def detect(self, image: ImageSource, parameters: DetectCallParameters) -> Detection:
        """Ask of one image, given as for `annotate`, whether it is generated, and what gives it away.

        Returns:
            The record; `source` is `generated` or `real`, None where the answer is not clear.

        Raises:
            UncannyError: as `annotate` does.
        """
        return await self._done(lambda examiner: examiner.detect(image, parameters))

    @property
    def usage(self) -> Usage:
        """Calls, tokens and cost of the session so far; None if a provider did not report a figure."""
        return self._session.usage()

    async def _done(self, work: Callable[[Examiner], Coroutine[Any, Any, R]]) -> R:
        future = asyncio.wrap_future(self._session.submit(work))
        try:
            return await future
        except UsageError as error:
            raise error.with_traceback(None)  # noqa: B904  it is the same error, with its cause


class BlockingAnnotator:
    """A session as plain code uses it: what `with uncanny.Annotator(…)` gives.

    Its methods are those of `Annotator`, and return when they are done; several threads may call them at
    once.
    """

    def __init__(self, session: _Session) -> None:
        self._session = session

    @takes(ImageCallParameters)
    def annotate(self, image: ImageSource, parameters: ImageCallParameters) -> Annotation:
        """As `Annotator.annotate`."""
        return _result(self._session.submit(lambda examiner: examiner.annotate(image, parameters)))

    @takes(DetectCallParameters)
    def detect(self, image: ImageSource, parameters: DetectCallParameters) -> Detection:
        """As `Annotator.detect`."""
        return _result(self._session.submit(lambda examiner: examiner.detect(image, parameters)))

    @property
    def usage(self) -> Usage:
        """As `Annotator.usage`."""
        return self._session.usage()


class _Session:
    """The thread of one `Annotator`, and whether it can be used."""

    def __init__(self, model: str, parameters: AnnotatorParameters) -> None:
        self.thread = LoopThread(
            partial(_examiner, model, parameters),
            closed="The session was closed before the image was done",
        )
        self._started = False

    def start(self) -> LoopThread[Examiner]:
        if self._started:
            raise UsageError("A session can be opened only once", remedy="Create another Annotator.")
        self._started = True
        self.thread.start()
        return self.thread

    def submit(self, work: Callable[[Examiner], Coroutine[Any, Any, R]]) -> Future[R]:
        future = self.thread.submit(work)
        if future is None:
            raise self._not_open()
        return future

    def usage(self) -> Usage:
        if not self.thread.opened.done():
            raise self._not_open()
        return self.thread.opened.result().usage()

    def _not_open(self) -> UsageError:
        if self.thread.was_forked:
            return UsageError(
                "The session was opened in another process",
                remedy="Open one in each process, after it was forked.",
            )
        if not self._started:
            return UsageError(
                "The session is not open", remedy="Use it inside `async with uncanny.Annotator(…) as a:`."
            )
        return UsageError("The session was closed", remedy="Use it inside its `with` block, or make another.")


@asynccontextmanager
async def _examiner(model: str, parameters: AnnotatorParameters) -> AsyncIterator[Examiner]:
    # Seconds, off the caller's event loop.
    from uncanny.session.examiner import open_examiner

    async with open_examiner(model, parameters) as examiner:
        yield examiner


def _result(future: Future[R]) -> R:
    try:
        return wait_for(future)
    except UsageError as error:
        # Where the thread that it comes from has been says nothing of the call that is wrong.
        raise error.with_traceback(None)  # noqa: B904  it is the same error, with its cause


@takes(AnnotateImageParameters)
async def annotate_image_async(image: ImageSource, parameters: AnnotateImageParameters) -> Annotation:
    """Annotate one image, given as a path, as the bytes of a file or as a Pillow image. Nothing is written.

    Each call opens its own session. For several images, use `uncanny.Annotator`.

    `image` is as for `uncanny.Annotator.annotate`, which also says what is raised; the options are those of
    `uncanny.Annotator`.

    `annotate_image_async` is the same for programs with an event loop.

    >>> annotation = uncanny.annotate_image(image, model="demo")
    >>> annotation.status
    'ok'
    >>> asyncio.run(uncanny.annotate_image_async(image, model="demo")).model
    'demo'
    """
    async with Annotator(parameters.model, **parameters.part(AnnotatorParameters).given) as annotator:
        return await annotator.annotate(image, **parameters.part(ImageCallParameters).given)


annotate_image = blocking(annotate_image_async)


@takes(DetectImageParameters)
async def detect_image_async(image: ImageSource, parameters: DetectImageParameters) -> Detection:
    """Ask of one image whether it is generated, and what gives it away. Nothing is written.

    Each call opens its own session. For several images, use `uncanny.Annotator`.

    `image` is as for `uncanny.Annotator.annotate`, which also says what is raised; the options are those of
    `uncanny.Annotator`.

    `detect_image_async` is the same for programs with an event loop.

    >>> uncanny.detect_image(image, model="demo").source
    'generated'
    >>> asyncio.run(uncanny.detect_image_async(image, model="demo")).status
    'ok'
    """
    async with Annotator(parameters.model, **parameters.part(AnnotatorParameters).given) as annotator:
        return await annotator.detect(image, **parameters.part(DetectCallParameters).given)


detect_image = blocking(detect_image_async)
