"""A model behind the chat completions protocol; hosted OpenAI, vLLM and others differ in a `Dialect` only."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import replace
from typing import Any

from openai import AsyncOpenAI

from uncanny.errors import ProviderError, TransientError
from uncanny.providers.address import Address
from uncanny.providers.base import Reply, Request, Sampling, Tokens, Traits
from uncanny.providers.exchange import Exchanged, exchange
from uncanny.providers.faults import Flagged, NothingThereError, Rejection, Where
from uncanny.providers.server_words import ServerWords
from uncanny.providers.wire_openai import Dialect, LimitName, chat_body, read_chat

# In the order in which they are given up when a message names several.
_ADAPTABLE = (
    "max_completion_tokens",
    "max_tokens",
    "prompt_cache_key",
    "detail",
    "uuid",
    "top_p",
    "temperature",
)
_OPTIONAL = frozenset({"response_format", "prompt_cache_key", "detail", "uuid"})
OWN_PATH = "/chat/completions"
"""What calls add to a base URL; users paste it with the rest."""

_NOT_TAKEN = re.compile(
    r"unsupported|not support|n't support|unknown|unrecogni[sz]ed|unexpected|extra inputs|not permitted"
    r"|not allowed|only the default|cannot both",
    re.IGNORECASE,
)
_SCHEMA_WORDS = re.compile(r"response_format|json_schema|structured output|guided|grammar", re.IGNORECASE)


def _says_nothing_is_there(error: ProviderError) -> bool:
    """Whether an error may be about the path: also some servers' status 200 without an answer."""
    if isinstance(error, NothingThereError):
        return not error.unknown_model
    return isinstance(error, TransientError) and error.kind == "bad_body"


class ChatModel:
    """A `Provider` over an SDK client; one HTTP call per question.

    A server that answers 400 naming a parameter it does not take is asked again without that parameter, once
    for each, and is not sent it any more: `sent` says what goes out. Where there is nothing at an address
    whose path names no version, `/v1` is tried once, and kept if something answers there; `notices` says so.
    `traits` and `endpoint` stay as they are, because answers are kept under them.
    """

    def __init__(
        self,
        client: AsyncOpenAI,
        *,
        address: Address,
        where: Where,
        traits: Traits,
        dialect: Dialect,
        timeout_s: float,
    ) -> None:
        self._client, self._address, self._where, self._traits = client, address, where, traits
        self._dialect, self._timeout_s = dialect, timeout_s
        self._endpoint = address.identity
        self._left_out: frozenset[str] = frozenset()
        self._in_doubt = not address.has_version
        self.notices: list[str] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._where.name!r} at {self._where.endpoint})"

    @property
    def name(self) -> str:
        return self._where.name

    @property
    def traits(self) -> Traits:
        return self._traits

    @property
    def endpoint(self) -> str | None:
        return self._endpoint

    @property
    def secrets(self) -> tuple[str, ...]:
        return self._where.secrets

    @property
    def left_out(self) -> frozenset[str]:
        """Fields of a request the server turned out not to take."""
        return self._left_out

    def sent(self, sampling: Sampling) -> dict[str, Any]:
        """The sampling parameters as they go over the wire."""
        wanted = {
            "temperature": sampling.temperature if self._traits.temperature else None,
            "top_p": sampling.top_p if self._traits.top_p else None,
            self._limit(): sampling.max_output_tokens,
        }
        left_out = self._left_out - {self._limit()}
        return {name: value for name, value in wanted.items() if value is not None and name not in left_out}

    async def ask(self, request: Request) -> Reply:
        """Make one call; see `Provider.ask`."""
        while True:
            left_out, parameters = self._left_out, self.sent(request.sampling)
            body = chat_body(request, self._where.model, self._dialect, parameters, left_out)
            try:
                content, headers = await self._exchange(body)
            except Flagged as flagged:
                return Reply("", "refusal", Tokens(), reason=flagged.reason)
            except Rejection as rejection:
                carried = (_OPTIONAL | parameters.keys()) - left_out
                if request.schema is None:
                    carried -= {"response_format"}
                refused = self._not_taken(rejection.words, carried)
                if refused is None:
                    raise
                self._left_out |= {refused}
            else:
                return read_chat(content, headers.get("x-request-id"), self._where)

    async def _exchange(self, body: bytes) -> Exchanged:
        client = self._client
        try:
            found = await self._post(body, client, self._where)
        except (NothingThereError, TransientError) as error:
            if not _says_nothing_is_there(error):
                raise
            first = error
        else:
            self._in_doubt = False
            return found
        if self._client is not client:  # another call has found the place meanwhile
            return await self._post(body, self._client, self._where)
        if not self._in_doubt:
            raise first
        return await self._below_version(body, first)

    async def _below_version(self, body: bytes, first: ProviderError) -> Exchanged:
        """The same call with `/v1` in the path. Raises `first` if there is nothing either."""
        address = self._address.with_version()
        client = self._client.with_options(base_url=address.url)
        where = replace(self._where, endpoint=address.shown)
        try:
            found = await self._post(body, client, where)
        except ProviderError as error:
            if _says_nothing_is_there(error):
                first.message += f" ({address}, tried as well, is no better)"
                raise first from None
            if not isinstance(error, TransientError):
                self._move(address, client, where)
            raise
        self._move(address, client, where)
        return found

    def _move(self, address: Address, client: AsyncOpenAI, where: Where) -> None:
        if self._in_doubt:
            self._in_doubt = False
            self.notices.append(
                f"{where.name}: nothing is at {self._address}; {address} was used: give that as --base-url"
            )
            self._address, self._client, self._where = address, client, where

    async def _post(self, body: bytes, client: AsyncOpenAI, where: Where) -> Exchanged:
        return await exchange(client, OWN_PATH, body, where=where, timeout_s=self._timeout_s)

    async def close(self) -> None:
        await self._client.close()

    def _limit(self) -> LimitName:
        first = self._dialect.limit
        if first not in self._left_out:
            return first
        return "max_tokens" if first == "max_completion_tokens" else "max_completion_tokens"

    def _not_taken(self, words: ServerWords, carried: Set[str]) -> str | None:
        """Which of the fields `carried` the server does not take; None where it objects to something else."""
        unsupported = _NOT_TAKEN.search(words.message) is not None
        # Servers without constrained decoding say so in many ways; what OpenAI has against a schema is to be
        # seen.
        about_schema = words.parameter == "response_format" or _SCHEMA_WORDS.search(words.message)
        if about_schema and "response_format" in carried and (unsupported or not self._dialect.shared_schema):
            return "response_format"
        if not unsupported:
            return None
        for field in _ADAPTABLE:
            named = re.search(rf"\b{field}\b", words.parameter or words.message)
            if named and field in carried:
                return field
        return None
