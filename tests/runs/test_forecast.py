"""What forecasts are made of: calls counted and priced, and unknown figures that stay unknown."""

from __future__ import annotations

from uncanny.client.prices import LongContext, Price, PriceTable
from uncanny.models.registry import parse_model
from uncanny.runs.forecast import UsageCounter, input_words, range_words, total_usage

PRICES = PriceTable(
    [
        Price(model="openai/priced", input=2, cached_input=1, output=4),
        Price(model="vllm/own", input=2, cached_input=1, output=4),
    ]
)


def counter(model: str, *images: int | None, cached: int = 0) -> UsageCounter:
    calls = UsageCounter(parse_model(model))
    calls.add(1_000, *images, output=500, calls=10, cached=cached)
    return calls


def test_the_prefix_cache_lowers_the_cost() -> None:
    usage = counter("openai/priced", 100, cached=5_000).usage(PRICES)
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (10, 11_000, 5_000)
    assert usage.cost_usd == (6_000 * 2 + 5_000 * 1 + 5_000 * 4) / 1e6
    assert usage.cost_usd_uncached == (11_000 * 2 + 5_000 * 4) / 1e6


def test_unknown_image_tokens_leave_tokens_and_cost_open() -> None:
    usage = counter("vllm/own", None, 7).usage(PRICES)
    assert (usage.input_tokens, usage.cost_usd, usage.cost_usd_uncached) == (None, None, None)
    assert (usage.input_tokens_known, usage.images_uncounted) == (10_070, 10)
    assert usage.image_tokens_unknown == {"vllm/own"}
    # The texts, the one image whose tokens are known, and the answers have their price.
    assert usage.cost_usd_known == (10_070 * 2 + 5_000 * 4) / 1e6


def test_what_costs_nothing_costs_nothing_however_many_tokens_an_image_takes() -> None:
    usage = counter("demo", None).usage(PRICES)
    assert (usage.input_tokens, usage.cost_usd, usage.cost_usd_uncached) == (None, 0, 0)


def test_a_price_that_is_not_known_leaves_the_cost_open_alone() -> None:
    usage = counter("openai/priceless-model").usage(PRICES)
    assert (usage.input_tokens, usage.cost_usd) == (10_000, None)


def test_one_unknown_cost_leaves_the_total_open() -> None:
    known, unknown = counter("openai/priced", 100).usage(PRICES), counter("vllm/own", None).usage(PRICES)
    total = total_usage([known, known])
    assert known.cost_usd is not None
    assert (total.calls, total.cost_usd) == (20, 2 * known.cost_usd)
    total = total_usage([known, unknown])
    assert (total.input_tokens, total.cost_usd, total.images_uncounted) == (None, None, 10)
    assert total_usage([]).cost_usd == 0


def test_nothing_left_to_ask_costs_nothing() -> None:
    calls = UsageCounter(parse_model("openai/priced"))
    calls.add(1_000, None, output=500, calls=0)
    usage = calls.usage(PRICES)
    assert (usage.input_tokens, usage.cost_usd, usage.image_tokens_unknown) == (0, 0, frozenset())


def test_input_reads_as_one_figure_or_as_a_range() -> None:
    less, more = counter("vllm/own", 7).usage(PRICES), counter("vllm/own", None, 8).usage(PRICES)
    assert input_words("{:,}".format, less) == "10,070 in"
    assert input_words("{:,}".format, less, more) == "10,070 to 10,080 in, and 0 to 10 images on top"
    assert range_words(["5", "5"]) == "5"


def test_rates_for_long_inputs_are_those_of_calls_not_of_their_sum() -> None:
    dearer = LongContext(above=2_000, input=20, output=40)
    prices = PriceTable([Price(model="openai/priced", input=2, output=4, long_context=(dearer,))])
    short = counter("openai/priced", 100).usage(prices)
    assert short.cost_usd == (11_000 * 2 + 5_000 * 4) / 1e6
    long = counter("openai/priced", 2_000).usage(prices)
    assert long.cost_usd == (30_000 * 20 + 5_000 * 40) / 1e6
