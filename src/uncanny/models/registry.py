"""Which providers there are: one line each, imported only when used."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module

from uncanny.errors import UsageError
from uncanny.models.base import Provider


@dataclass(frozen=True, slots=True)
class ModelId:
    """`provider/name` as the user wrote it; `name` is empty for providers with one model only."""

    provider: str
    name: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}" if self.name else self.provider


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a model. `base_url` None is the provider's own default."""

    base_url: str | None = None
    timeout_s: float = 120.0


def _openai(name: str, access: Access) -> Provider:
    from uncanny.models.openai import OpenAIProvider

    return OpenAIProvider(name, base_url=access.base_url, timeout_s=access.timeout_s)


def _anthropic(name: str, access: Access) -> Provider:
    from uncanny.models.anthropic import AnthropicProvider

    return AnthropicProvider(name, base_url=access.base_url, timeout_s=access.timeout_s)


def _vllm(name: str, access: Access) -> Provider:
    from uncanny.models.vllm.model import VLLMProvider

    return VLLMProvider(name, base_url=access.base_url, timeout_s=access.timeout_s)


def _compatible(name: str, access: Access) -> Provider:
    from uncanny.models.openai_compatible import CompatibleProvider

    return CompatibleProvider(name, base_url=access.base_url, timeout_s=access.timeout_s)


def _demo(_name: str, _access: Access) -> Provider:
    # By name: the demo model stands above the models, and only who chooses it loads it.
    provider: Provider = import_module("uncanny.demo.model").DemoProvider()
    return provider


def _noop(_name: str, _access: Access) -> Provider:
    from uncanny.models.noop import NoopProvider

    return NoopProvider()


PROVIDERS: dict[str, Callable[[str, Access], Provider]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "vllm": _vllm,
    "openai-compatible": _compatible,
    "demo": _demo,
    "noop": _noop,
}
COMPATIBLE_URL_VARIABLE = "OPENAI_COMPATIBLE_BASE_URL"
WITHOUT_NAME = frozenset({"demo", "noop"})


def parse_model(text: str) -> ModelId:
    """`openai/gpt-4o`, `vllm/Qwen/Qwen3-VL-8B-Instruct`, `demo`. Raises UsageError."""
    provider, _, name = text.strip().partition("/")
    if provider not in PROVIDERS:
        raise UsageError(
            f"{text!r} names no provider", remedy=f"Write provider/model with one of {', '.join(PROVIDERS)}."
        )
    if provider in WITHOUT_NAME:
        if name:
            raise UsageError(f"{text!r}: {provider} has one model only", remedy=f"Write {provider}.")
    elif not name:
        raise UsageError(f"{text!r} names no model", remedy=f"Write {provider}/ and the model's name.")
    return ModelId(provider, name)


def open_model(model: ModelId, access: Access) -> Provider:
    """Connect to nothing yet. Raises ModelUnusableError where a key is missing."""
    return PROVIDERS[model.provider](model.name, access)


def missing_addresses(models: Iterable[ModelId], base_urls: Mapping[str, str]) -> list[str]:
    """What is still to be said about where models are, a sentence each; empty where a run could start."""
    if "openai-compatible" not in {model.provider for model in models}:
        return []
    if base_urls.get("openai-compatible") or os.environ.get(COMPATIBLE_URL_VARIABLE, "").strip():
        return []
    remedy = f"give --base-url or set {COMPATIBLE_URL_VARIABLE}"
    return [f"openai-compatible needs the server's address before a run: {remedy}."]
