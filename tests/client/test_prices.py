"""The price table: which model gets which price, and what calls cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from genai_prices import Usage, calc_price
from hypothesis import given
from hypothesis import strategies as st

from uncanny.client.prices import PriceTable
from uncanny.errors import UsageError
from uncanny.models.base import Tokens
from uncanny.settings import settings

TABLE = PriceTable.load()
MILLION = 1_000_000


@pytest.mark.parametrize(
    ("model", "input_rate"),
    [
        ("openai/gpt-4o", 2.5),
        ("openai/gpt-4o-2024-08-06", 2.5),
        ("openai/gpt-4o-2024-05-13", 5.0),
        ("openai/gpt-4o-mini", 0.15),
        ("openai/gpt-4.1-nano", 0.1),
        ("anthropic/claude-opus-4-5-20251101", 5.0),
        ("anthropic/claude-3-7-sonnet-latest", 3.0),
        ("openai/gpt-4o-2024", None),
        ("anthropic/claude-opus-4-9", None),
        ("openai/gpt-99", None),
        ("gpt-4o", None),
        ("vllm/openai/gpt-4o", None),
        ("openai-compatible/gpt-4o", None),
        ("openai/", None),
        ("", None),
    ],
)
def test_a_model_gets_its_own_price_or_none(model: str, input_rate: float | None) -> None:
    price = TABLE.find(model)
    assert (price and price.input) == input_rate


LISTED = ("openai/gpt-4o", "openai/gpt-6.1-sol", "anthropic/claude-sonnet-5-5", "anthropic/claude-sonnet-4-5")


@given(
    model=st.sampled_from(LISTED),
    plain=st.integers(0, 600_000),
    cached=st.integers(0, 600_000),
    output=st.integers(0, 100_000),
)
def test_costs_are_the_librarys_above_and_below_every_tier(
    model: str, plain: int, cached: int, output: int
) -> None:
    provider, _, name = model.partition("/")
    usage = Usage(input_tokens=plain + cached, cache_read_tokens=cached, output_tokens=output)
    expected = calc_price(usage, name, provider_id=provider).total_price
    ours = TABLE.cost(model, Tokens(plain + cached, output, cached, 0))
    assert ours == pytest.approx(float(expected))


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


def test_a_job_names_prices_in_allowed_folders_only_and_the_operator_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "root").mkdir()
    outside, inside = tmp_path / "prices.json", tmp_path / "root" / "prices.json"
    for path in (outside, inside):
        path.write_text(json.dumps([GOOD]))
    monkeypatch.setenv("UNCANNY_INPUT_FOLDERS", str(tmp_path / "root"))
    settings.cache_clear()
    try:
        for path in (outside, tmp_path / "nothing.json"):
            with pytest.raises(UsageError, match="lies in no folder that may be read"):
                PriceTable.load(path)
        assert PriceTable.load(inside).find("a/b")
        monkeypatch.setenv("UNCANNY_PRICES", str(outside))
        settings.cache_clear()
        assert PriceTable.load(settings().prices).find("a/b")
    finally:
        monkeypatch.undo()
        settings.cache_clear()


BATCHES = PriceTable.load(processing="batch")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        # Input, output, cached input: the price list halves not all of them.
        ("openai/gpt-4o", (1.25, 5.0, 1.25)),
        ("openai/gpt-5", (0.625, 5.0, 0.0625)),
        ("anthropic/claude-sonnet-4-5", (1.5, 7.5, 0.15)),
    ],
)
def test_batches_have_prices_of_their_own(model: str, expected: tuple[float, float, float]) -> None:
    price = BATCHES.find(model)
    assert price is not None
    assert (price.input, price.output, price.cached_input) == expected


def test_providers_without_batches_cost_the_same() -> None:
    model = "gemini/gemini-2.5-flash"
    assert TABLE.find(model) is not None
    assert BATCHES.find(model) == TABLE.find(model)
    assert BATCHES.cost("demo", Tokens(MILLION, 1, 0, 0)) == 0


def test_a_price_of_ones_own_is_halved_in_batches(tmp_path: Path) -> None:
    longer = {"above": 1_000, "input": 4.0, "output": 30.0, "cached_input": 1.0}
    own = {
        "model": "openai/mine",
        "input": 2.0,
        "output": 20.0,
        "cached_input": 0.5,
        "long_context": [longer],
    }
    file = tmp_path / "prices.json"
    file.write_text(json.dumps([own, {**own, "model": "vllm/mine"}]))
    table = PriceTable.load(file, "batch")
    # 100 of the 200 input tokens are cached: 100 × 1.0 + 100 × 0.25 + 10 × 10.0 dollars a million.
    assert table.cost("openai/mine", Tokens(200, 10, 100, 0)) == pytest.approx(225 / MILLION)
    # Long: 1,900 × 2.0 + 100 × 0.5 + 10 × 15.0.
    assert table.cost("openai/mine", Tokens(2_000, 10, 100, 0)) == pytest.approx(4_000 / MILLION)
    assert table.cost("vllm/mine", Tokens(200, 10, 100, 0)) == pytest.approx(450 / MILLION)
