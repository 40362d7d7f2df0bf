"""Models served by vLLM."""

from __future__ import annotations

import os

from uncanny.providers.base import Traits
from uncanny.providers.chat_model import ChatModel
from uncanny.providers.exchange import environment_key
from uncanny.providers.faults import Where
from uncanny.providers.foreign import foreign_client
from uncanny.providers.openai import MEDIA_TYPES
from uncanny.providers.wire_openai import Dialect

KEY_VARIABLE = "VLLM_API_KEY"
URL_VARIABLE = "VLLM_BASE_URL"
DEFAULT_URL = "http://127.0.0.1:8000/v1"
NO_KEY = "none"


class VLLMProvider(ChatModel):
    """A model of a vLLM server, `vllm/<model>`.

    The base URL is given, in `VLLM_BASE_URL` or `http://127.0.0.1:8000/v1`, the key in `VLLM_API_KEY` if the
    server was started with one. Answers follow each step's own schema: grammars do not enter the prompt, so
    the prefix cache does not mind. Images carry their digest, so that the server need not hash their pixels.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 600.0,
    ) -> None:
        address = base_url or os.environ.get(URL_VARIABLE, "").strip() or DEFAULT_URL
        key = api_key or environment_key(KEY_VARIABLE) or NO_KEY
        client = foreign_client(address, key, timeout_s)
        super().__init__(
            client,
            where=Where(f"vllm/{model}", model, str(client.base_url), KEY_VARIABLE, key),
            traits=Traits(
                media_types=MEDIA_TYPES,
                max_image_bytes=None,
                max_image_side=None,
                temperature=True,
                top_p=True,
                structured=True,
                schema_in_prefix=False,
                prefix_cache=True,
                fixed_concurrency=True,
            ),
            dialect=Dialect("max_tokens", None, shared_schema=False, image_uuid=True),
            timeout_s=timeout_s,
        )
