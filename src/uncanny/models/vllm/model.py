"""Models served by vLLM."""

from __future__ import annotations

from uncanny.models.openai import CompatibleProvider
from uncanny.models.presets import VLLM


class VLLMProvider(CompatibleProvider):
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
        super().__init__(model, preset=VLLM, base_url=base_url, api_key=api_key, timeout_s=timeout_s)
