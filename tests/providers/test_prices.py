"""The price table: which model gets which price, and what calls cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from uncanny.errors import UsageError
from uncanny.providers.base import Tokens
from uncanny.providers.prices import Price, PriceTable

TABLE = PriceTable.load()
MILLION = 1_000_000


@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("openai/gpt-4o", "openai/gpt-4o"),
        ("openai/gpt-4o-2024-08-06", "openai/gpt-4o"),
        ("openai/gpt-4o-2024-05-13", "openai/gpt-4o-2024-05-13"),
        ("openai/gpt-4o-mini", "openai/gpt-4o-mini"),
        ("openai/gpt-4o-mini-2024-07-18", "openai/gpt-4o-mini"),
        ("openai/gpt-4.1-nano", "openai/gpt-4.1-nano"),
        ("anthropic/claude-opus-4-5-20251101", "anthropic/claude-opus-4-5"),
        ("anthropic/claude-opus-4-20250514", "anthropic/claude-opus-4"),
        ("anthropic/claude-3-7-sonnet-latest", "anthropic/claude-3-7-sonnet"),
        ("openai/gpt-4o-audio-preview", None),
        ("openai/gpt-5-pro", None),
        ("openai/gpt-4", None),
        ("openai/gpt-4o-2024", None),
        ("anthropic/claude-opus-4-9", None),
        ("gpt-4o", None),
        ("vllm/openai/gpt-4o", None),
        ("", None),
    ],
)
def test_a_model_gets_its_own_price_or_none(model: str, found: str | None) -> None:
    price = TABLE.find(model)
    assert (price and price.model) == found


def test_every_price_that_comes_with_the_package_says_when_and_whence() -> None:
    path = Path(__file__).parents[2] / "src/uncanny/providers/data/prices.json"
    rows = json.loads(path.read_text())
    assert len({row["model"] for row in rows}) == len(rows) > 30
    for row in rows:
        price = Price.model_validate(row)
        assert price.as_of is not None
        assert price.source is not None
        assert price.model.startswith(("openai/", "anthropic/"))
        assert 0 < price.input < price.output
        assert (price.cached_input or 0) < price.input
        assert price.cache_write is None or price.cache_write > price.input


def test_cached_and_written_tokens_have_their_own_rates() -> None:
    tokens = Tokens(input=3 * MILLION, output=MILLION, cached=MILLION, cache_written=MILLION)
    assert TABLE.cost("anthropic/claude-opus-4-5", tokens) == pytest.approx(5 + 0.5 + 6.25 + 25)
    assert TABLE.cost("openai/gpt-4o", tokens) == pytest.approx(2.5 + 1.25 + 2.5 + 10)
    assert TABLE.cost("openai/gpt-4-turbo", tokens) == pytest.approx(3 * 10 + 30)


def test_what_is_not_known_has_no_cost_and_never_zero() -> None:
    tokens = Tokens(100, 100, 0, 0)
    assert TABLE.cost("openai/gpt-99", tokens) is None
    assert TABLE.cost("vllm/Qwen/Qwen3-VL-8B-Instruct", tokens) is None
    assert TABLE.cost("openai/gpt-4o", Tokens(None, 100)) is None
    assert TABLE.cost("openai/gpt-4o", Tokens(100, None)) is None
    assert TABLE.cost("openai/gpt-4o", Tokens(0, 0)) == 0.0
    assert TABLE.cost("openai/gpt-4o", Tokens(100, 0)) == pytest.approx(0.00025)


@pytest.mark.parametrize("model", ["demo", "noop"])
def test_models_in_this_process_are_free(model: str) -> None:
    assert TABLE.cost(model, Tokens()) == 0.0


def test_the_users_file_replaces_and_adds(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    rows = [
        {"model": "openai/gpt-4o", "input": 1, "output": 2},
        {"model": "vllm/Qwen/Qwen3-VL-8B-Instruct", "input": 0.02, "output": 0.1},
    ]
    path.write_text(json.dumps(rows))
    table = PriceTable.load(path)
    tokens = Tokens(MILLION, MILLION, MILLION, 0)
    assert table.cost("openai/gpt-4o-2024-08-06", tokens) == pytest.approx(3)
    assert table.cost("vllm/Qwen/Qwen3-VL-8B-Instruct", tokens) == pytest.approx(0.12)
    assert table.cost("openai/gpt-4o-mini", tokens) == TABLE.cost("openai/gpt-4o-mini", tokens)


GOOD = {"model": "a/b", "input": 1, "output": 2}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([GOOD, GOOD | {"input": -1}], "entry 2, field 'input'"),
        ([GOOD | {"output": "much"}], "entry 1, field 'output'"),
        ([{"model": "a/b", "output": 2}], "entry 1, field 'input'"),
        ([GOOD | {"ouput": 2}], "entry 1, field 'ouput'"),
        ([GOOD | {"as_of": "last week"}], "entry 1, field 'as_of'"),
        ({"a/b": 3}, "list"),
    ],
)
def test_a_bad_price_file_is_refused_by_entry_and_field(tmp_path: Path, content: Any, words: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps(content))
    with pytest.raises(UsageError, match=words) as caught:
        PriceTable.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_price_file_that_is_not_there_or_not_json(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Cannot read the price file"):
        PriceTable.load(tmp_path / "none.json")
    (tmp_path / "broken.json").write_text("[{")
    with pytest.raises(UsageError, match="Invalid JSON"):
        PriceTable.load(tmp_path / "broken.json")
