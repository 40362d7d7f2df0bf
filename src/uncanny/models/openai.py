"""Models hosted by OpenAI. The key comes from `OPENAI_API_KEY`."""

from __future__ import annotations

import os
import re

from openai import AsyncOpenAI

from uncanny.errors import UsageError
from uncanny.models.addresses import parse_address
from uncanny.models.base import Capabilities, Detail
from uncanny.models.http import environment_key, http_client
from uncanny.models.http_errors import ErrorContext, missing_key
from uncanny.models.openai_chat import OWN_PATH, ApiVariant, ChatModel, Place

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
DEFAULT_URL = "https://api.openai.com/v1"
# Larger images are made smaller by the server without a word.
LARGEST_SIDE = 2048
LARGEST_IMAGE = 20_000_000

_REASONING = re.compile(r"^(o\d|gpt-(?:[5-9]|\d\d))(?!.*-chat)")


class OpenAIProvider(ChatModel):
    """A model of the OpenAI API, `openai/<model>`.

    Answers follow the task's shared schema, wrapped as `{"answer": …}`, since the API renders the schema
    ahead of the prompt. `base_url` defaults to `OPENAI_BASE_URL`, then to OpenAI. Raises `ModelUnusableError`
    without a key, and `UsageError` for an address that nothing can be sent to.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 600.0,
        detail: Detail = "high",
    ) -> None:
        name = f"openai/{model}"
        key = api_key or environment_key(KEY_VARIABLE)
        if key is None:
            raise missing_key(name, KEY_VARIABLE)
        address = parse_address(
            base_url or os.environ.get(URL_VARIABLE, "").strip() or DEFAULT_URL, without=(OWN_PATH,)
        )
        if address.authorization:
            raise UsageError(
                f"{name} sends its key in the header that user and password of {address} need",
                remedy="Leave them out, or use openai-compatible/ without a key.",
            )
        client = AsyncOpenAI(
            api_key=key,
            base_url=address.url,
            default_query=dict(address.parameters),
            max_retries=0,
            timeout=timeout_s,
            http_client=http_client(address, timeout_s),
        )
        sampling = takes_sampling(model)
        super().__init__(
            Place(address, client, ErrorContext.at(address, name, model, KEY_VARIABLE, key)),
            capabilities=Capabilities(
                max_image_bytes=LARGEST_IMAGE,
                max_image_side=LARGEST_SIDE,
                temperature=sampling,
                top_p=sampling,
                schema_in_prefix=True,
                prefix_cache=True,
            ),
            variant=ApiVariant("max_completion_tokens", detail, shared_schema=True, cache_key=True),
            timeout_s=timeout_s,
        )


def takes_sampling(model: str) -> bool:
    """Whether a model takes temperature and top-p: reasoning models (o1, o3, gpt-5 and later) do not."""
    return _REASONING.match(model) is None
