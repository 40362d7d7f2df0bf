"""`uncanny providers --probe`: against the fake server in both APIs, and against servers of other kinds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from tests.runs.e2e import Server, serving, uncanny_here
from uncanny.errors import ProviderDefectError, RequestRejectedError
from uncanny.models.base import Capabilities, ModelProvider, ModelRequest, ModelResponse, Tokens
from uncanny.models.registry import register_provider
from uncanny.models.views.probe import SIDES, Probe, probe


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def test_openai(server: Server) -> None:
    before = server.requests()
    done = uncanny_here("providers", "--probe", "openai/gpt-4o", "--base-url", server.v1)
    assert (done.code, done.err) == (0, "")
    lines = [line.split() for line in done.out.splitlines()]
    assert ["512", "×", "512", "255", "255"] in lines
    assert ["3,072", "×", "3,072", "765", "765"] in lines
    assert "sees at most about 768 × 768 pixels: tokens stop growing at 765." in done.out
    assert "you do not need --view" in done.out
    assert server.requests() - before == len(SIDES) + 1


def test_anthropic_as_json(server: Server) -> None:
    done = uncanny_here(
        "providers", "--probe", "anthropic/claude-haiku-4-5", "--base-url", server.url, "--json"
    )
    assert done.code == 0
    probe = done.json()
    assert [each["side"] for each in probe["squares"]] == list(SIDES)
    assert [each["tokens"] for each in probe["squares"]] == [100, 361, 784, 1369, 1521, 1521, 1521]
    assert probe["table_agrees"] is True
    # 39 cells of 28 pixels are 1,092.
    assert 1060 <= probe["view"] <= 1100


def test_a_model_that_the_table_does_not_know(server: Server) -> None:
    done = uncanny_here("providers", "--probe", "openai/made-up", "--base-url", server.v1)
    assert "unknown" in done.out
    assert "does not know what this model sees: pass --view 768." in done.out


def test_a_model_whose_tokens_do_not_show_what_it_sees(server: Server) -> None:
    key = {"GEMINI_API_KEY": "made-up-key"}
    done = uncanny_here("providers", "--probe", "gemini/gemini-3-pro", "--base-url", server.v1, env=key)
    assert "the same number of tokens for every size" in done.out
    assert "If you know the long side that it sees, pass it as --view." in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--probe", "demo"), "demo cannot be probed"),
        (("--probe", "noop"), "noop cannot be probed"),
        (("openai", "--probe", "openai/gpt-4o"), "--probe does not take the provider 'openai'"),
        (("--base-url", "http://127.0.0.1:9"), "--base-url is only for --probe"),
        (("--probe", "gpt-4o"), "openai/gpt-4o"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], words: str) -> None:
    done = uncanny_here("providers", *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_a_server_that_cannot_be_reached() -> None:
    done = uncanny_here("providers", "--probe", "openai/gpt-4o", "--base-url", "http://127.0.0.1:9/v1")
    assert done.code != 0
    assert "127.0.0.1:9" in done.err


class Counting(ModelProvider):
    """Counts a picture as `count` says by its side; without a picture, 10 tokens."""

    capabilities = Capabilities()

    def __init__(self, name: str, count: Callable[[int], int | None]) -> None:
        self.name, self._count = name, count

    async def generate(self, request: ModelRequest) -> ModelResponse:
        image = request.first_image()
        if image is None:
            return ModelResponse("Gray", tokens=Tokens(input=10))
        tokens = self._count(image.width)
        return ModelResponse("Gray", tokens=Tokens(input=None if tokens is None else 10 + tokens))


async def measured(count: Callable[[int], int | None], name: str = "own/any") -> tuple[Probe, str]:
    found = await probe(Counting(name, count))
    return found, " ".join(found.sentences())


def test_a_table_that_is_wrong_for_a_server() -> None:
    def capped(name: str) -> Counting:
        return Counting(f"capped/{name}", lambda side: (min(side, 1000) // 10) ** 2 // 5)

    register_provider("capped", capped, replace=True)
    words = uncanny_here("providers", "--probe", "capped/qwen3-vl-8b").out
    side = re.search(r"is wrong for this model: pass --view (\d+)\.", words)
    assert side is not None
    assert int(side[1]) == pytest.approx(1000, abs=15)


async def test_tokens_that_grow_to_the_end_and_tokens_that_do_not_grow() -> None:
    found, words = await measured(lambda side: (side // 32) ** 2)
    assert found.view == SIDES[-1]
    assert "sees at least 3,072 × 3,072 pixels" in words
    found, words = await measured(lambda _: 1120, "gemini/gemini-3-pro")
    assert (found.view, found.agrees) == (None, None)
    assert "the same number of tokens for every size" in words


async def test_a_size_that_the_server_rejects_ends_it() -> None:
    def count(side: int) -> int:
        if side > 1024:
            raise RequestRejectedError("The prompt is too long")
        return (side // 32) ** 2

    found, words = await measured(count)
    assert [each.side for each in found.squares] == [256, 512, 768, 1024, 1536]
    assert (found.squares[-1].tokens, found.view) == (None, 1024)
    assert "The server rejects 1,536 × 1,536 pixels: The prompt is too long" in words

    def none(_side: int) -> int:
        raise RequestRejectedError("no images here")

    with pytest.raises(RequestRejectedError):
        await measured(none)


@pytest.mark.parametrize(
    ("tokens", "words"), [(None, "does not report input tokens"), (0, "counts no tokens")]
)
async def test_usage_that_says_nothing(tokens: int | None, words: str) -> None:
    with pytest.raises(ProviderDefectError, match=words):
        await measured(lambda _: tokens)
