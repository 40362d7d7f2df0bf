"""Any server that speaks the chat completions protocol: LM Studio, llama.cpp, Ollama, OpenRouter, …"""

from __future__ import annotations

import os

from uncanny.errors import UsageError
from uncanny.providers.address import parse_address
from uncanny.providers.base import Traits
from uncanny.providers.chat_model import OWN_PATH, ChatModel
from uncanny.providers.faults import Where
from uncanny.providers.foreign import foreign_client, foreign_key
from uncanny.providers.image_tokens import Detail
from uncanny.providers.openai import MEDIA_TYPES
from uncanny.providers.registry import COMPATIBLE_URL_VARIABLE
from uncanny.providers.wire_openai import Dialect

URL_VARIABLE = COMPATIBLE_URL_VARIABLE
KEY_VARIABLE = "OPENAI_COMPATIBLE_API_KEY"


class CompatibleProvider(ChatModel):
    """A model of some server, `openai-compatible/<model>`.

    The base URL is given or in `OPENAI_COMPATIBLE_BASE_URL`, the key in `OPENAI_COMPATIBLE_API_KEY` if the
    server wants one; OpenAI's own key is never sent. Constrained answers are asked for until the server says
    that it has none. Raises `UsageError` without a base URL.
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
        name = f"openai-compatible/{model}"
        text = base_url or os.environ.get(URL_VARIABLE, "").strip()
        if not text:
            raise UsageError(
                f"{name} needs the server's address", remedy=f"Give --base-url or set {URL_VARIABLE}."
            )
        address = parse_address(text, without=(OWN_PATH,))
        key = foreign_key(address, api_key, KEY_VARIABLE)
        client = foreign_client(address, key, timeout_s)
        super().__init__(
            client,
            address=address,
            where=Where.at(address, name, model, KEY_VARIABLE, key),
            traits=Traits(
                media_types=MEDIA_TYPES,
                max_image_bytes=None,
                max_image_side=None,
                temperature=True,
                top_p=True,
                structured=True,
                schema_in_prefix=False,
                prefix_cache=True,
            ),
            dialect=Dialect("max_tokens", detail, shared_schema=False),
            timeout_s=timeout_s,
        )
