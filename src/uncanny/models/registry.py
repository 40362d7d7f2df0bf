"""Which providers there are: ours, imported only when used, and those that users register or install."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final

from uncanny.errors import UsageError
from uncanny.models.addresses import missing_address
from uncanny.models.base import ModelProvider
from uncanny.models.custom import (
    NAME,
    ProviderFactory,
    create,
    find_entry_point,
    installed_providers,
    load_entry_point,
)
from uncanny.models.presets import PRESETS, SERVERS
from uncanny.settings import settings
from uncanny.wording import shown


@dataclass(frozen=True, slots=True)
class ModelId:
    """`provider/name` as the user wrote it; `name` is empty for providers with one model only."""

    provider: str
    name: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}" if self.name else self.provider


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Which models, reached how.

    `roles` gives single agents a model of their own. `base_urls` maps a provider to its server.
    `prices` is a file that replaces entries of the built-in price table.
    """

    model: ModelId
    roles: Mapping[str, ModelId] = field(default_factory=dict)
    fallback: ModelId | None = None
    base_urls: Mapping[str, str] = field(default_factory=dict, repr=False)  # with passwords, at times
    prices: Path | None = None

    def all_models(self) -> tuple[ModelId, ...]:
        models = [self.model, *self.roles.values(), *([self.fallback] if self.fallback else [])]
        return tuple(dict.fromkeys(models))


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a model. `base_url` None is the provider's own default."""

    base_url: str | None = None
    timeout_s: float = 120.0


DETECTOR: Final = "detector"
"""The provider whose models are folders with a detector."""

# Module and class. The demo model and detectors stand above the models: a name of them is no import.
PROVIDERS: Mapping[str, str] = {
    "openai": "uncanny.models.openai:OpenAIProvider",
    "anthropic": "uncanny.models.anthropic:AnthropicProvider",
    "vllm": "uncanny.models.openai:VLLMProvider",
    "vllm-inproc": "uncanny.models.vllm.in_process:InProcessProvider",
    "diffusers": "uncanny.models.painting.diffusers:DiffusersProvider",
    "openai-compatible": "uncanny.models.openai:CompatibleProvider",
    **dict.fromkeys(PRESETS, "uncanny.models.openai:CompatibleProvider"),
    "demo": "uncanny.demo.model:DemoProvider",
    "noop": "uncanny.models.noop:NoopProvider",
    DETECTOR: "uncanny.detectors.provider:DetectorProvider",
}
IN_FOLDERS: Final = frozenset({"diffusers", DETECTOR})
"""Providers whose models are loaded into this process from a folder of weights."""
WITHOUT_NAME = frozenset({"demo", "noop"})
WITHOUT_SERVER = WITHOUT_NAME | IN_FOLDERS | {"vllm-inproc"}
# Whose models names like these are, for an error about a name without its provider.
_MAKERS = {
    "openai": re.compile(r"(chat)?gpt-|o\d"),
    "anthropic": re.compile("claude-"),
    "gemini": re.compile("gemini-"),
}
_REGISTERED: dict[str, ProviderFactory] = {}


def register_provider(name: str, factory: ProviderFactory, *, replace: bool = False) -> None:
    """Make models of your own known as `name/…`, to functions and commands of this process.

    Packages offer theirs without a call, as `name = "module:factory"` in the entry point group
    `uncanny.providers`.

    Args:
        name: letters, digits, `.`, `_` and `-`; what stands before the first slash of a model.
        factory: called with what stands behind the slash, and with `base_url` (str or None) and `timeout_s`
            (seconds, for one call) where it has parameters of these names. A class will do. It returns an
            object with `name` (`"name/model"` in full, answers are kept under it), `capabilities`
            (`Capabilities`) and `async generate(request: ModelRequest) -> ModelResponse`. `endpoint` (an
            address, so that answers of different servers are kept apart), `secrets` (texts that are written
            nowhere), `notices` (sentences for the user), `sent(sampling)` and `close()` are used if there.
        replace: whether a name that was registered before may be registered anew, as in a notebook.

    Raises:
        UsageError: for a name that cannot be written in a command, or is taken.

    Example:
        >>> class Constant:
        ...     capabilities = uncanny.Capabilities()
        ...     def __init__(self, model):
        ...         self.name = f"constant/{model}"
        ...     async def generate(self, request):
        ...         return uncanny.ModelResponse("B")
        >>> uncanny.register_provider("constant", Constant, replace=True)
        >>> uncanny.annotate_image(image, model="constant/b").model
        'constant/b'
    """
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name!r} is not a valid provider name", remedy="Use letters, digits, '.', '_' and '-'."
        )
    if not callable(factory):
        raise UsageError(
            f"The factory of the provider {name!r} cannot be called: {factory!r}",
            remedy="Give the class itself, or a function that makes a provider.",
        )
    if name in PROVIDERS:
        raise UsageError(f"The provider {name!r} is built in", remedy="Choose another name.")
    if name in _REGISTERED and not replace:
        raise UsageError(
            f"A provider {name!r} is registered already",
            remedy="Choose another name, or pass replace=True.",
        )
    _REGISTERED[name] = factory


def is_provider(name: str) -> bool:
    """Whether models `name/…` can be used. Installed packages are looked at only where no other has the name.

    Raises UsageError where several packages have it.
    """
    if name in PROVIDERS or name in _REGISTERED:
        return True
    return NAME.fullmatch(name) is not None and find_entry_point(name) is not None


def parse_model(text: str) -> ModelId:
    """`openai/gpt-4o`, `vllm/Qwen/Qwen3-VL-8B-Instruct`, `demo`. Raises UsageError."""
    if not isinstance(text, str):
        raise UsageError(
            f"A model must be one name, not {shown(text)}",
            remedy="Write provider/model, such as openai/gpt-4o.",
        )
    provider, _, name = text.strip().partition("/")
    if not is_provider(provider):
        from difflib import get_close_matches

        known = [*PROVIDERS, *_REGISTERED, *dict.fromkeys(each.provider for each in installed_providers())]
        near = get_close_matches(provider.lower(), known, n=1) if name else []
        maker = next((each for each, start in _MAKERS.items() if start.match(text.strip())), None)
        remedy = "Write PROVIDER/MODEL, such as openai/gpt-4o; `uncanny providers` lists the providers."
        if near:
            remedy = f"Did you mean {near[0]}/{name}?"
        elif maker:
            remedy = f"Did you mean {maker}/{text.strip()}?"
        raise UsageError(f"{shown(text)} does not name a provider", remedy=remedy)
    if provider in WITHOUT_NAME:
        if name:
            raise UsageError(f"{shown(text)}: {provider} has only one model", remedy=f"Write {provider}.")
    elif not name:
        raise UsageError(
            f"{shown(text)} does not name a model", remedy=f"Write {provider}/ and the model's name."
        )
    return ModelId(provider, name)


def open_model(model: ModelId, access: Access) -> ModelProvider:
    """Connect to nothing yet.

    Raises ModelUnusableError where a key is missing, and UsageError where a provider that is not uncanny's
    own cannot be loaded or lacks something.
    """
    name = None if model.provider in WITHOUT_NAME else model.name
    factory = _factory(model.provider)
    return create(factory, str(model), name, base_url=access.base_url, timeout_s=access.timeout_s)


def weights_place(name: str) -> str:
    """Where the weights of a model of `IN_FOLDERS` are: behind its name, if the setting `weights` has names.

    Raises UsageError for a name that is not among these.
    """
    known = settings().weights
    if known is None:
        return name
    if name not in known:
        raise UsageError(
            f"{shown(name)} is not the name of a folder of weights here",
            remedy=f"The names are {', '.join(known) or 'none'}.",
        )
    return str(known[name])


def _factory(provider: str) -> ProviderFactory:
    if provider in PROVIDERS:
        module, _, name = PROVIDERS[provider].partition(":")
        factory: ProviderFactory = getattr(import_module(module), name)
        return partial(factory, preset=PRESETS[provider]) if provider in PRESETS else factory
    if provider in _REGISTERED:
        return _REGISTERED[provider]
    point = find_entry_point(provider)
    if point is None:
        raise UsageError(f"There is no provider {provider!r}", remedy="Install its package, or register it.")
    return load_entry_point(point)


def missing_addresses(models: Iterable[ModelId], base_urls: Mapping[str, str]) -> list[str]:
    """Addresses that a run could not start without or with, a sentence each; empty where all are there."""
    sentences: dict[str, str] = {}
    for model in models:
        preset = SERVERS.get(model.provider)
        why = missing_address(preset, model.name, base_urls.get(model.provider)) if preset else None
        if why is not None:
            sentences.setdefault(model.provider, why)
    return list(sentences.values())
