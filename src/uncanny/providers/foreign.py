"""Clients for servers that speak OpenAI's protocol without being OpenAI: they learn nothing of an account."""

from __future__ import annotations

import os
from typing import cast

from openai import AsyncOpenAI, Omit

from uncanny.errors import UsageError
from uncanny.providers.address import Address
from uncanny.providers.exchange import environment_key, http_client

NO_KEY = "none"


def foreign_key(address: Address, key: str | None, variable: str) -> str:
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


def foreign_client(address: Address, key: str, timeout_s: float) -> AsyncOpenAI:
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
