"""Models served by vLLM."""

from __future__ import annotations

import contextlib
import os

from uncanny.errors import ModelUnusableError
from uncanny.models.addresses import parse_address
from uncanny.models.base import Capabilities, ModelRequest, ModelResponse
from uncanny.models.http_errors import ErrorContext, NothingThereError
from uncanny.models.openai import MEDIA_TYPES
from uncanny.models.openai_chat import OWN_PATH, ApiVariant, ChatModel
from uncanny.models.openai_compatible import compatible_client, optional_key

KEY_VARIABLE = "VLLM_API_KEY"
URL_VARIABLE = "VLLM_BASE_URL"
DEFAULT_URL = "http://127.0.0.1:8000/v1"
MOST_NAMED = 5


class VLLMProvider(ChatModel):
    """A model of a vLLM server, `vllm/<model>`.

    `base_url` defaults to `VLLM_BASE_URL`, then to `http://127.0.0.1:8000/v1`. The key is in `VLLM_API_KEY`
    if the server was started with one. Answers follow each step's own schema: grammars do not enter the
    prompt, so the prefix cache is not touched. Images carry their digest, so that the server need not hash
    their pixels.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 600.0,
    ) -> None:
        address = parse_address(
            base_url or os.environ.get(URL_VARIABLE, "").strip() or DEFAULT_URL, without=(OWN_PATH,)
        )
        key = optional_key(address, api_key, KEY_VARIABLE)
        client = compatible_client(address, key, timeout_s)
        super().__init__(
            client,
            address=address,
            context=ErrorContext.at(address, f"vllm/{model}", model, KEY_VARIABLE, key),
            capabilities=Capabilities(
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
            variant=ApiVariant("max_tokens", None, shared_schema=False, image_uuid=True),
            timeout_s=timeout_s,
        )

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Make one call; see `ModelProvider.generate`. The error for a model that is not there names those
        that are."""
        try:
            return await super().generate(request)
        except NothingThereError as error:
            # vLLM's own message hides names that are paths, which those of local models are.
            served = await self._served()
            if not served or self._context.model in served:
                raise
            names = " or ".join(f"vllm/{name}" for name in served[:MOST_NAMED])
            raise ModelUnusableError(error.message, remedy=f"That server has {names}.") from error

    async def _served(self) -> tuple[str, ...]:
        from uncanny.models.vllm.server import served_models

        with contextlib.suppress(ModelUnusableError):
            return await served_models(self._address, api_key=self._client.api_key)
        return ()
