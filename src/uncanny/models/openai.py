"""Models hosted by OpenAI. The key comes from `OPENAI_API_KEY`."""

from __future__ import annotations

from dataclasses import replace

from openai import AsyncOpenAI

from uncanny.errors import UsageError
from uncanny.models.addresses import warn_of_open
from uncanny.models.base import Detail
from uncanny.models.http import environment_key, http_client
from uncanny.models.http_errors import ErrorContext, missing_key
from uncanny.models.openai_chat import ChatModel, Place
from uncanny.models.preset_addresses import address_of
from uncanny.models.presets import OPENAI

KEY_VARIABLE = OPENAI.key_variables[0]


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
            raise missing_key(name, KEY_VARIABLE, keys_from=OPENAI.keys_from)
        address, notices = address_of(OPENAI, model, base_url)
        if address.authorization:
            raise UsageError(
                f"{name} sends its key in the header that user and password of {address} need",
                remedy="Leave them out, or use openai-compatible/ without a key.",
            )
        warn_of_open(address, f"The key of {name}", key)
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
            Place(address, client, ErrorContext.at(address, name, model, KEY_VARIABLE, key, OPENAI)),
            capabilities=replace(OPENAI.takes, temperature=sampling, top_p=sampling),
            variant=replace(OPENAI.variant, detail=detail),
            timeout_s=timeout_s,
        )
        self.notices += notices


def takes_sampling(model: str) -> bool:
    """Whether a model takes temperature and top-p: reasoning models (o1, o3, gpt-5 and later) do not."""
    return not OPENAI.fixes_sampling(model)
