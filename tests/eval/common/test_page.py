"""What pages share: data that cannot end its script element, rates that are not rounded to all or nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.eval.common.pages.page import breakable, percent
from uncanny.eval.common.pages.pictures import page_json


@given(st.recursive(st.none() | st.text() | st.integers(-9, 9), lambda inner: st.lists(inner)))
def test_data_in_the_page_reads_back(value: object) -> None:
    written = page_json(value)
    assert json.loads(written) == value
    assert not set(written) & set("<>&\u2028\u2029")


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (None, "–"),
        (0.0, "0\N{NO-BREAK SPACE}%"),
        (0.0004, "<0.1\N{NO-BREAK SPACE}%"),
        (0.5, "50\N{NO-BREAK SPACE}%"),
        (0.983, "98.3\N{NO-BREAK SPACE}%"),
        (0.9999, ">99.9\N{NO-BREAK SPACE}%"),
        (1.0, "100\N{NO-BREAK SPACE}%"),
    ],
)
def test_rates_never_round_to_all_or_nothing(rate: float | None, words: str) -> None:
    assert percent(rate) == words


def test_names_break_at_slashes_and_dashes_and_stay_escaped() -> None:
    assert breakable("openai/gpt-4o<b>") == "openai/<wbr>gpt-<wbr>4o&lt;b&gt;"
    assert breakable("") == ""
    assert breakable("a-") == "a-"
    assert breakable("diffusion 1.5.large") == "diffusion 1.5.<wbr>large"
