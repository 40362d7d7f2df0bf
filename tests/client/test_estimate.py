"""Estimates of tokens against the providers' published examples and measurements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.models.base import Detail, Message, ModelRequest, Sampling, encode_image
from uncanny.models.tokens import disagreement, image_tokens, text_tokens


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        # The worked examples of OpenAI's vision guide.
        ("openai/gpt-4o", 1024, 1024, 765),
        ("openai/gpt-4o", 2048, 4096, 1105),
        ("openai/gpt-4.1-2025-04-14", 1024, 1024, 765),
        ("openai/gpt-4o-mini", 1024, 1024, 2833 + 4 * 5667),
        ("openai/gpt-4.1-mini", 1800, 2400, 2353),  # 1452 patches × 1.62
        ("openai/gpt-4.1-nano", 1024, 1024, 2520),
        ("openai/o4-mini", 1024, 1024, 1762),
        ("openai/o3", 1024, 1024, 75 + 4 * 150),
        ("openai/gpt-5", 1024, 1024, 70 + 4 * 140),
        ("openai/gpt-5.1", 1024, 1024, 70 + 4 * 140),
        ("openai/gpt-5-chat-latest", 1024, 1024, 70 + 4 * 140),
        ("openai/gpt-4o", 128, 64, 85 + 170),
        # Measured on the API by users, the question's own tokens taken off.
        ("openai/gpt-5-mini", 768, 1024, 922),
        ("openai/gpt-5-mini", 2048, 768, 1844),
        ("openai/gpt-6-astra", 1920, 1080, 2448),
        ("openai/gpt-6-astra", 2560, 1440, 2931),
        ("openai/gpt-6-astra", 4032, 3024, 2942),
        ("anthropic/claude-haiku-4-5", 256, 256, 100),
        ("anthropic/claude-haiku-4-5", 1280, 720, 1196),
        ("anthropic/claude-haiku-4-5", 1920, 1080, 1560),
        ("anthropic/claude-opus-5-5", 1024, 1024, 1369),
        ("anthropic/claude-opus-5-5", 1920, 1080, 2691),
        ("anthropic/claude-3-5-sonnet-20241022", 1000, 1000, 1296),
        ("vllm/Qwen/Qwen2.5-VL-7B-Instruct", 1024, 1024, 1369),
        ("vllm/Qwen/Qwen3-VL-8B-Instruct", 1024, 1024, 1024),
        ("vllm/HuggingFaceTB/SmolVLM-256M-Instruct", 1024, 1024, None),
        ("openai/gpt-3.5-turbo", 1024, 1024, None),
        ("openai/o3-mini", 1024, 1024, None),
        ("demo", 1024, 1024, None),
    ],
)
def test_tokens_of_an_image(model: str, width: int, height: int, tokens: int | None) -> None:
    assert image_tokens(model, width, height) == tokens


def test_low_detail_and_original_size() -> None:
    assert image_tokens("openai/gpt-4o", 1024, 1024, "low") == 85
    assert image_tokens("openai/gpt-6-astra", 3840, 2160, "original") == 9792


def test_a_size_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="0 × 5"):
        image_tokens("openai/gpt-4o", 0, 5)


MODELS = st.sampled_from(
    [
        "openai/gpt-4o",
        "openai/gpt-4.1-mini",
        "openai/gpt-5.4",
        "anthropic/claude-haiku-4-5",
        "anthropic/claude-opus-5",
        "anthropic/claude-3-opus-20240229",
        "vllm/Qwen/Qwen2.5-VL-7B-Instruct",
        "vllm/Qwen/Qwen3-VL-8B-Instruct",
    ]
)
SIDES = st.integers(1, 20_000)


@given(MODELS, SIDES, SIDES, st.sampled_from(["low", "high", "auto"]))
def test_every_image_has_some_tokens_and_not_endlessly_many(
    model: str, width: int, height: int, detail: Detail
) -> None:
    tokens = image_tokens(model, width, height, detail)
    assert tokens is not None
    assert 1 <= tokens <= 16_384
    assert tokens == image_tokens(model, height, width, detail)


@pytest.mark.parametrize(
    ("model", "sides", "measured", "words"),
    [
        ("openai/gpt-4o", [1024], 765, None),
        ("openai/gpt-4o", [1024], 765 + 30, None),
        ("openai/gpt-4o", [1024, 512], 85 + 170 + 2 * 765, "2 images (1024 × 1024 pixels the first of them)"),
        ("openai/gpt-4o", [1024], 85, "85 tokens for 1 image (1024 × 1024 pixels) where 765 were expected"),
        ("openai/gpt-4o", [1024], 0, "no tokens for images"),
        ("openai/gpt-4o", [1024], None, None),
        ("openai/gpt-4o", [], 0, None),
        ("vllm/unknown", [1024], 5, None),
    ],
)
def test_tokens_that_are_not_the_expected_ones(
    model: str, sides: list[int], measured: int | None, words: str | None
) -> None:
    images = [
        encode_image(sha256="0" * 64, media_type="image/png", width=side, height=side, data=b"x")
        for side in sides
    ]
    request = ModelRequest((Message("system", ("four",)), Message("user", (*images, "abcde"))), Sampling())
    said = disagreement(model, request, measured)
    assert (said is None) if words is None else (said is not None and words in said)


def test_tokens_of_an_empty_text() -> None:
    assert text_tokens("") == 0
