"""Servers with the chat completions API: OpenAI, the presets, vLLM, and any other.

A server other than OpenAI learns nothing of an OpenAI account: neither its key nor its organization. Servers
differ in data, a `Preset`; there is no class for each.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from openai import AsyncOpenAI, Omit

from uncanny.errors import ModelUnusableError, UsageError
from uncanny.models.addresses import Address, address_of, warn_of_open
from uncanny.models.base import NO_FILES, Detail, Files, ModelProvider, ModelRequest, ModelResponse
from uncanny.models.http import environment_key, http_client
from uncanny.models.http_errors import ErrorContext, NothingThereError, missing_key
from uncanny.models.openai_chat import ChatModel, Place
from uncanny.models.presets import COMPATIBLE, OPENAI, VLLM, Preset, Window

if TYPE_CHECKING:
    from uncanny.models.discount.batches import BatchApi
    from uncanny.models.discount.responses import BackgroundApi

KEY_VARIABLE = OPENAI.key_variables[0]
MOST_NAMED = 5


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
                f"{name} sends its key in the same header as the user and password of {address}",
                remedy="Remove these from the address, or use openai-compatible/ without a key.",
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
        self._largest_client: AsyncOpenAI | None = None

    def batches(self) -> BatchApi:
        from uncanny.models.discount.batches import LARGEST_RESULTS, TIMEOUT_S, OpenAIBatches

        if self._largest_client is None:
            place = self._place
            self._largest_client = place.client.with_options(
                http_client=http_client(place.address, TIMEOUT_S, LARGEST_RESULTS), timeout=TIMEOUT_S
            )
        return OpenAIBatches(self._largest_client, self._place.context, self._response_body)

    def background(self, window: Window) -> BackgroundApi:
        from uncanny.models.discount.responses import BackgroundApi

        return BackgroundApi(self._place.client, self._place.context, window, self._response_body)

    def _response_body(self, request: ModelRequest, files: Files = NO_FILES) -> dict[str, Any]:
        """Without what the server turned out not to take."""
        from uncanny.models.discount.responses import response_body

        named = ModelProvider.sent(self, request.sampling)
        parameters = {name: value for name, value in named.items() if name not in self._left_out}
        model = self._place.context.model
        return response_body(request, model, self._variant, parameters, self._left_out, files)

    async def close(self) -> None:
        await super().close()
        if self._largest_client is not None:
            await self._largest_client.close()


def takes_sampling(model: str) -> bool:
    """Whether a model takes temperature and top-p: reasoning models (o1, o3, gpt-5 and later) do not."""
    return not OPENAI.fixes_sampling(model)


class CompatibleProvider(ChatModel):
    """A model of some server, `<preset>/<model>`; `openai-compatible/<model>` without a preset.

    `base_url` defaults to the preset's variable, then to its own address. The key is in one of its variables;
    a server of one's own may want none. OpenAI's own key is never sent. Answers are constrained until the
    server says that it cannot. Raises `UsageError` without an address, and `ModelUnusableError` without a key
    where one is needed.
    """

    def __init__(
        self,
        model: str,
        *,
        preset: Preset = COMPATIBLE,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 600.0,
    ) -> None:
        name = f"{preset.name}/{model}"
        address, notices = address_of(preset, model, base_url)
        variable, key = preset_key(preset, address, api_key)
        if key == NO_KEY and preset.keys_from is not None and address.authorization is None:
            raise missing_key(name, *preset.key_variables, keys_from=preset.keys_from)
        warn_of_open(address, f"The key of {name}", key)
        context = ErrorContext.at(address, name, model, variable, key, preset)
        takes = preset.takes
        if preset.fixes_sampling(model):
            takes = replace(takes, temperature=False, top_p=False)
        super().__init__(
            Place(
                address,
                compatible_client(address, key, timeout_s, preset.key_header),
                context,
                () if preset.key_header == "Authorization" or address.authorization else ("Authorization",),
            ),
            capabilities=takes,
            variant=preset.variant,
            timeout_s=timeout_s,
        )
        self.notices += notices
        self._preset = preset

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Make one call; see `ModelProvider.generate`. Of a server of one's own, the error for a model that
        it has not names those it has."""
        try:
            return await super().generate(request)
        except NothingThereError as error:
            # The server's own message may hide names that are paths, which those of local models are.
            served = await self._served() if self._preset.lists_models else ()
            if not served or self._place.context.model in served:
                raise
            names = " or ".join(f"{self._preset.name}/{name}" for name in served[:MOST_NAMED])
            raise ModelUnusableError(error.message, remedy=f"That server has {names}.") from error

    async def is_up(self) -> bool:
        """Whether the server answers at all, with an error of the request's own if need be."""
        from uncanny.models.vllm.server import answers

        return await answers(self._place.address, api_key=self._place.client.api_key)

    async def _served(self) -> Sequence[str]:
        from uncanny.models.vllm.server import served_models

        with contextlib.suppress(ModelUnusableError):
            return await served_models(self._place.address, api_key=self._place.client.api_key)
        return ()


NO_KEY = "none"


def preset_key(preset: Preset, address: Address, key: str | None = None) -> tuple[str, str]:
    """The key to send and the variable it is in: `key`, else the first of the environment, else `NO_KEY`.

    Raises `UsageError` where the address has a user and password as well: they take the same header.
    """
    variable = preset.key_variables[0]
    for each in preset.key_variables:
        if not key and (found := environment_key(each)):
            variable, key = each, found
    if key and address.authorization and preset.key_header == "Authorization":
        raise UsageError(
            f"{variable} is set, and {address} has a user and a password: both need the same header",
            remedy="Remove one of them.",
        )
    return variable, key or NO_KEY


def compatible_client(
    address: Address, key: str, timeout_s: float, key_header: str = "Authorization"
) -> AsyncOpenAI:
    """A client that sends `key` and none of the headers the SDK takes from OpenAI's own variables."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    ambient = {line.partition(":")[0].strip() for line in lines if ":" in line}
    headers: dict[str, str | Omit] = dict.fromkeys(ambient, Omit())
    headers |= {"OpenAI-Organization": Omit(), "OpenAI-Project": Omit()}
    headers = {
        name: value for name, value in headers.items() if name.lower() not in ("authorization", key_header)
    }
    headers["Authorization"] = address.authorization or f"Bearer {key}"
    if key_header != "Authorization":
        headers[key_header] = key
    return AsyncOpenAI(
        api_key=key,
        base_url=address.url,
        default_query=dict(address.parameters),
        max_retries=0,
        timeout=timeout_s,
        http_client=http_client(address, timeout_s),
        default_headers=cast(dict[str, str], headers),
    )


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
