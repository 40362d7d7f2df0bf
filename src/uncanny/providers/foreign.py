"""Clients for servers that speak OpenAI's protocol without being OpenAI: they learn nothing of an account."""

from __future__ import annotations

import os
from typing import cast

from openai import AsyncOpenAI, Omit

from uncanny.providers.exchange import checked_url, http_client


def foreign_client(base_url: str, key: str, timeout_s: float) -> AsyncOpenAI:
    """A client that sends `key` and none of the headers the SDK takes from OpenAI's own variables."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    ambient = {line.partition(":")[0].strip() for line in lines if ":" in line}
    headers: dict[str, str | Omit] = dict.fromkeys(ambient, Omit())
    headers |= {"OpenAI-Organization": Omit(), "OpenAI-Project": Omit()}
    headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
    headers["Authorization"] = f"Bearer {key}"
    return AsyncOpenAI(
        api_key=key,
        base_url=checked_url(base_url),
        max_retries=0,
        timeout=timeout_s,
        http_client=http_client(timeout_s),
        default_headers=cast(dict[str, str], headers),
    )
