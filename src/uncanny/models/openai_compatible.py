"""Any server with the chat completions API: LM Studio, llama.cpp, Ollama, OpenRouter, …

Such a server is not OpenAI and learns nothing of an OpenAI account: neither its key nor its organization.
"""

from __future__ import annotations

import os
from typing import ClassVar, cast

from openai import AsyncOpenAI, Omit

from uncanny.errors import UsageError
from uncanny.models.addresses import Address, parse_address
from uncanny.models.base import Capabilities
from uncanny.models.http import environment_key, http_client
from uncanny.models.http_errors import ErrorContext
from uncanny.models.openai_chat import OWN_PATH, ApiVariant, ChatModel, Place
from uncanny.models.registry import COMPATIBLE_URL_VARIABLE
from uncanny.wording import option


class CompatibleProvider(ChatModel):
    """A model of some server, `openai-compatible/<model>`.

    `base_url` defaults to `OPENAI_COMPATIBLE_BASE_URL`. The key is in `OPENAI_COMPATIBLE_API_KEY` if the
    server wants one; OpenAI's own key is never sent. Answers are constrained until the server says that it
    cannot. Raises `UsageError` without a base URL.

    A family of such servers is a subclass that says what is its own: how its models are named, where it is by
    default, in which variables address and key are looked for, which variant of the API it speaks.
    """

    provider: ClassVar[str] = "openai-compatible"
    url_variable: ClassVar[str] = COMPATIBLE_URL_VARIABLE
    key_variable: ClassVar[str] = "OPENAI_COMPATIBLE_API_KEY"
    default_url: ClassVar[str | None] = None
    variant: ClassVar[ApiVariant] = ApiVariant("max_tokens", "high", shared_schema=False)
    takes: ClassVar[Capabilities] = Capabilities(prefix_cache=True)

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 600.0,
    ) -> None:
        name = f"{self.provider}/{model}"
        text = base_url or os.environ.get(self.url_variable, "").strip() or self.default_url
        if not text:
            raise UsageError(
                f"{name} needs the server's address",
                remedy=f"Give {option('base_url')} or set {self.url_variable}.",
            )
        address = parse_address(text, without=(OWN_PATH,))
        key = optional_key(address, api_key, self.key_variable)
        context = ErrorContext.at(address, name, model, self.key_variable, key)
        super().__init__(
            Place(address, compatible_client(address, key, timeout_s), context),
            capabilities=self.takes,
            variant=self.variant,
            timeout_s=timeout_s,
        )


NO_KEY = "none"


def optional_key(address: Address, key: str | None, variable: str) -> str:
    """The key to send: `key`, else that of the environment, else `NO_KEY`.

    Raises `UsageError` where the address has a user and password as well: they take the same header.
    """
    key = key or environment_key(variable)
    if key and address.authorization:
        raise UsageError(
            f"{variable} is set, and {address} has a user and a password: one header is to carry both",
            remedy="Leave one of them out.",
        )
    return key or NO_KEY


def compatible_client(address: Address, key: str, timeout_s: float) -> AsyncOpenAI:
    """A client that sends `key` and none of the headers the SDK takes from OpenAI's own variables."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    ambient = {line.partition(":")[0].strip() for line in lines if ":" in line}
    headers: dict[str, str | Omit] = dict.fromkeys(ambient, Omit())
    headers |= {"OpenAI-Organization": Omit(), "OpenAI-Project": Omit()}
    headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
    headers["Authorization"] = address.authorization or f"Bearer {key}"
    return AsyncOpenAI(
        api_key=key,
        base_url=address.url,
        default_query=dict(address.parameters),
        max_retries=0,
        timeout=timeout_s,
        http_client=http_client(address, timeout_s),
        default_headers=cast(dict[str, str], headers),
    )
