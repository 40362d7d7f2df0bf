"""Models served by vLLM."""

from __future__ import annotations

import contextlib

from uncanny.errors import ModelUnusableError
from uncanny.models.base import Capabilities, ModelRequest, ModelResponse
from uncanny.models.http_errors import NothingThereError
from uncanny.models.openai_chat import ApiVariant
from uncanny.models.openai_compatible import CompatibleProvider

MOST_NAMED = 5


class VLLMProvider(CompatibleProvider):
    """A model of a vLLM server, `vllm/<model>`.

    `base_url` defaults to `VLLM_BASE_URL`, then to `http://127.0.0.1:8000/v1`. The key is in `VLLM_API_KEY`
    if the server was started with one. Answers follow each step's own schema: grammars do not enter the
    prompt, so the prefix cache is not touched. Images carry their digest, so that the server need not hash
    their pixels.
    """

    provider = "vllm"
    url_variable = "VLLM_BASE_URL"
    key_variable = "VLLM_API_KEY"
    default_url = "http://127.0.0.1:8000/v1"
    variant = ApiVariant("max_tokens", None, shared_schema=False, image_uuid=True)
    takes = Capabilities(prefix_cache=True, fixed_concurrency=True)

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Make one call; see `ModelProvider.generate`. The error for a model that is not there names those
        that are."""
        try:
            return await super().generate(request)
        except NothingThereError as error:
            # vLLM's own message hides names that are paths, which those of local models are.
            served = await self._served()
            if not served or self._place.context.model in served:
                raise
            names = " or ".join(f"vllm/{name}" for name in served[:MOST_NAMED])
            raise ModelUnusableError(error.message, remedy=f"That server has {names}.") from error

    async def _served(self) -> tuple[str, ...]:
        from uncanny.models.vllm.server import served_models

        with contextlib.suppress(ModelUnusableError):
            return await served_models(self._place.address, api_key=self._place.client.api_key)
        return ()
