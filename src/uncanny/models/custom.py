"""Providers that users bring: their registration, entry points of packages, and what uncanny adds to them."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any, get_args

import orjson

from uncanny.errors import (
    ModelUnusableError,
    ProviderDefectError,
    RequestRejectedError,
    TransientError,
    UncannyError,
    UsageError,
    text_of,
    writable,
)
from uncanny.models.base import (
    Capabilities,
    Finish,
    ModelProvider,
    ModelRequest,
    ModelResponse,
    Provider,
    Sampling,
    Tokens,
)
from uncanny.models.error_body import KeyMask, one_line
from uncanny.schema import as_dollars
from uncanny.wording import Words

log = logging.getLogger("uncanny")

ENTRY_POINTS = "uncanny.providers"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

# From a model's name, the part after the first slash, to a provider.
ProviderFactory = Callable[..., Provider]

_REQUIRED = ("name", "capabilities", "generate")


@dataclass(frozen=True, slots=True)
class ProviderEntryPoint:
    """A provider that an installed package offers. `factory` is `module:name`; it has not been imported."""

    provider: str
    package: str
    factory: str


def installed_providers() -> tuple[ProviderEntryPoint, ...]:
    """All that installed packages offer, by name. Nothing is imported; several may have one name."""
    found = {(point.name, point.value): point for point in entry_points(group=ENTRY_POINTS)}
    return tuple(
        ProviderEntryPoint(point.name, _package(point), point.value) for _, point in sorted(found.items())
    )


def find_entry_point(provider: str) -> EntryPoint | None:
    """The entry point of an installed package for `provider`, None where no package has one.

    Raises `UsageError` where several packages have one.
    """
    points = list(dict.fromkeys(entry_points(group=ENTRY_POINTS, name=provider)))
    if len({point.value for point in points}) > 1:
        packages = ", ".join(sorted(_package(point) for point in points))
        raise UsageError(
            f"Several packages offer a provider {provider!r}: {packages}", remedy="Uninstall all but one."
        )
    return points[0] if points else None


def load_entry_point(point: EntryPoint) -> ProviderFactory:
    """Raises `UsageError` where the package cannot be imported or has no such factory."""
    try:
        factory: object = point.load()
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}", ())
        raise UsageError(
            f"The provider {point.name!r} of {_package(point)} cannot be loaded from {point.value}: {reason}",
            remedy="Update the package, or uninstall it.",
        ) from error
    if not callable(factory):
        raise UsageError(
            f"The provider {point.name!r} of {_package(point)} is not a class or function: {point.value}",
            remedy="Update the package, or uninstall it.",
        )
    return factory


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value


def create(
    factory: ProviderFactory, model: str, name: str | None, *, base_url: str | None, timeout_s: float
) -> ModelProvider:
    """What `factory` makes of a model's `name`, and of address and time limit if it has parameters for them.

    The name is None for providers with one model only. `model` is the whole name, for messages. Raises
    `UsageError` where the factory fails or makes no provider, and whatever of ours it raises itself.
    """
    arguments = () if name is None else (name,)
    options = {"base_url": base_url, "timeout_s": timeout_s}
    try:
        taken = _parameters(factory, options)
        provider = factory(
            *arguments, **{option: value for option, value in options.items() if option in taken}
        )
        if isinstance(provider, ModelProvider) and type(provider).__module__.startswith("uncanny."):
            return provider
        limit_s = None if "timeout_s" in taken else timeout_s
        return CustomModel(provider, model, base_url, limit_s)
    except UncannyError:
        raise
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}", ())
        raise UsageError(f"{model} cannot be opened: {reason}") from error


def _parameters(factory: ProviderFactory, options: dict[str, Any]) -> set[str]:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except ValueError:  # a few callables in C have no signature
        return set()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return set(options)
    return {each.name for each in parameters if each.kind is not each.POSITIONAL_ONLY}


class CustomModel(ModelProvider):
    """A provider that a user brought, with what it lacks of a `ModelProvider`.

    `endpoint`, `secrets`, `notices`, `sent` and `close` are taken over where it has them. `base_url` is its
    endpoint where it names none. A call that takes longer than `limit_s` seconds is ended; with None the
    provider sees to that itself. Whatever it raises becomes an error of ours, so that a run goes on: errors
    of sockets and time limits may pass, Python's own are mistakes in its code, all others are that
    request's. Raises `UsageError` for what is no
    provider, or one that answers under another name than `model`.
    """

    def __init__(
        self, provider: Provider, model: str, base_url: str | None, limit_s: float | None = None
    ) -> None:
        self._provider = provider
        kind = type(provider).__name__
        missing = [name for name in _REQUIRED if getattr(provider, name, None) is None]
        if missing:
            raise UsageError(
                f"{model} cannot be used: {kind} has no {' and no '.join(missing)}",
                remedy="A provider has `name`, `capabilities` and `async generate(request) -> response`.",
            )
        if provider.name != model:
            raise UsageError(
                f"{model} cannot be used: the name of {kind} is {provider.name!r}",
                remedy=f"Set it to {model!r}: answers are stored under this name.",
            )
        if not isinstance(provider.capabilities, Capabilities):
            raise UsageError(
                f"{model} cannot be used: the capabilities of {kind} are {provider.capabilities!r}",
                remedy="Make them with `Capabilities(…)`.",
            )
        if not callable(provider.generate):
            raise UsageError(f"{model} cannot be used: `generate` of {kind} cannot be called")
        self.name, self.capabilities, self._limit_s = model, provider.capabilities, limit_s
        self._defects: set[tuple[str, int]] = set()
        self.endpoint = getattr(provider, "endpoint", None) or base_url
        self.secrets  # noqa: B018 - said now where they are none, not in the midst of a run

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def secrets(self) -> tuple[str, ...]:
        secrets: object = getattr(self._provider, "secrets", ()) or ()
        if isinstance(secrets, str):
            return (secrets,)
        if not isinstance(secrets, Iterable):
            raise ModelUnusableError(f"{self.name}: its `secrets` are not strings: {type(secrets).__name__}")
        return tuple(str(secret) for secret in secrets)

    @property
    def notices(self) -> Sequence[str]:  # type: ignore[override]  # read anew: a run adds to them
        notices: object = getattr(self._provider, "notices", ()) or ()
        texts = [notices] if isinstance(notices, str) else notices if isinstance(notices, Iterable) else ()
        return [one_line(str(notice), self.secrets) for notice in texts]

    async def generate(self, request: ModelRequest) -> ModelResponse:
        with self._errors():
            response: object = self._provider.generate(request)
            if not inspect.isawaitable(response):
                raise ModelUnusableError(f"{self.name} cannot be used: its `generate` is not async")
            response = await self._in_time(response)
        if not isinstance(response, ModelResponse) or not isinstance(response.text, str):
            raise ModelUnusableError(
                f"{self.name} cannot be used: its `generate` returned {type(response).__name__}",
                remedy="Return a `ModelResponse` with a text.",
            )
        return _checked(response)

    async def _in_time(self, response: Awaitable[object]) -> object:
        try:
            async with asyncio.timeout(self._limit_s) as limit:
                return await response
        except TimeoutError as error:
            if not limit.expired():
                raise
            message = f"{self.name}: no answer within {self._limit_s:g} s"
            raise TransientError(message, kind="timeout", overloaded=True) from error

    def sent(self, sampling: Sampling) -> dict[str, Any]:
        sent: Callable[[Sampling], dict[str, Any]] | None = getattr(self._provider, "sent", None)
        if sent is not None:
            try:
                parameters = sent(sampling)
                if isinstance(parameters, dict) and orjson.dumps(parameters):
                    return parameters
                raise TypeError(f"no mapping of parameters but {type(parameters).__name__}")
            except Exception as error:
                self._warn("sent", error)
        return super().sent(sampling)

    async def close(self) -> None:
        try:
            closing = getattr(self._provider, "close", lambda: None)()
            if inspect.isawaitable(closing):
                await closing
        except Exception as error:  # what was answered is there, and the run is over
            self._warn("close", error)

    def _warn(self, method: str, error: Exception) -> None:
        reason = one_line(f"{type(error).__name__}: {error}", self.secrets)
        log.warning("%s: its `%s` failed: %s", self.name, method, reason)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What the provider raises becomes an error of one call, or of the model; keys in it are hidden."""
        try:
            yield
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody here cancelled it: something within the provider was, and took its call along.
            raise TransientError(f"{self.name}: its call was cancelled within", kind="connection") from error
        except (TransientError, RequestRejectedError, ModelUnusableError) as error:
            error.message = Words(one_line(error.message, self.secrets))
            error.remedy = error.remedy and Words(one_line(error.remedy, self.secrets))
            raise
        except BaseException as error:  # SystemExit too: a call does not end the program
            message = one_line(f"{self.name}: {text_of(error)}", self.secrets)
            if isinstance(error, OSError):  # with TimeoutError and ConnectionError
                raise TransientError(message, kind="connection") from error
            # Code that is wrong, and not a server: Python raises it, and no library.
            if not isinstance(error, _MISTAKES) and type(error).__module__ != "builtins":
                raise RequestRejectedError(message) from error
            self._log_defect(error)
            kind = type(self._provider).__name__
            message = one_line(f"{self.name}: the code of {kind} failed: {text_of(error)}", self.secrets)
            raise ProviderDefectError(message) from error

    def _log_defect(self, error: BaseException) -> None:
        """The traceback, once for each line of code that fails: thousands of the same hide all else."""
        place = traceback.extract_tb(error.__traceback__)[-1]
        if (at := (place.filename, place.lineno or 0)) not in self._defects:
            self._defects.add(at)
            lines = writable("".join(traceback.format_exception(error))).rstrip()
            log.error("%s", KeyMask(self.secrets)(f"{self.name} has a defect:\n{lines}"))


# Of these what a library derives is a mistake, too.
_MISTAKES = (AssertionError, AttributeError, LookupError, NameError, NotImplementedError, TypeError)


def _checked(response: ModelResponse) -> ModelResponse:
    """The response without what is not of its kind: that was not told."""
    return replace(
        response,
        finish=response.finish if response.finish in get_args(Finish) else "stop",
        tokens=response.tokens if isinstance(response.tokens, Tokens) else Tokens(),
        model=response.model if isinstance(response.model, str) else None,
        request_id=response.request_id if isinstance(response.request_id, str) else None,
        reason=response.reason if isinstance(response.reason, str) else None,
        cost_usd=as_dollars(response.cost_usd),
    )
