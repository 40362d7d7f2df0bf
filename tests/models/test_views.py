"""What models are shown of a picture: one size of each family, worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.models.tokens import image_tokens
from uncanny.models.views import (
    DEFAULT_VIEW,
    FAMILIES,
    LARGEST_PART,
    family_of,
    known_view,
    part_side,
    seen_size,
    shown_size,
)

# Family, model, size as sent, size seen, tokens.
WORKED = [
    # Into 2048²: 2048 × 1536; short side 768: 1024 × 768; 2 × 2 tiles.
    ("GPT-4o, 4.1, 4.5, 4 Turbo", "azure/gpt-4o", (4000, 3000), (1024, 768), 85 + 4 * 170),
    ("GPT-4o mini", "openai/gpt-4o-mini", (1024, 1024), (768, 768), 2833 + 4 * 5667),
    ("o1, o3", "openai/o3", (600, 400), (600, 400), 75 + 2 * 150),
    ("GPT-5, 5.1", "openai/gpt-5.1", (768, 3072), (512, 2048), 70 + 4 * 140),
    # 57 × 75 patches are too many. √(1536 · 32² / (1800 · 2400)) gives 33.9 × 45.3, so 33 columns: 33 × 44.
    ("GPT-4.1 mini", "openai/gpt-4.1-mini", (1800, 2400), (1056, 1408), 2353),
    ("GPT-4.1 nano", "openai/gpt-4.1-nano", (1024, 1024), (1024, 1024), 2520),
    ("o4-mini", "openai/o4-mini", (1024, 1024), (1024, 1024), 1762),
    ("GPT-5 mini", "openai/gpt-5-mini", (768, 1024), (768, 1024), 922),
    ("GPT-5 nano", "openai/gpt-5-nano", (640, 640), (640, 640), 600),
    # Long side 2048 first: 2048 × 320, 64 × 10 patches.
    ("GPT-5.2, 5.3, 5.x mini and nano", "openai/gpt-5.2", (4096, 640), (2048, 320), 768),
    ("GPT-5.4, 5.5", "openai/gpt-5.4", (4096, 640), (2048, 320), 768),
    # 128 × 20 patches are too many: 126.5 × 19.8 fit, so 19 rows: 121.6 columns, 122 × 19.
    ("GPT-5.6, 6", "openai/gpt-6-astra", (4096, 640), (3891, 608), 2782),
    # 52 × 30 cells are the most of this shape: 53 × 30 are 1,590.
    ("Claude before 4.7", "openrouter/anthropic/claude-sonnet-4.5", (1920, 1080), (1456, 819), 1560),
    ("Claude 4.7 and later", "anthropic/claude-opus-4-7", (5152, 1000), (2576, 500), 92 * 18),
    ("Gemini 1.5, 2", "gemini/gemini-2.5-flash", (960, 540), (960, 540), 6 * 258),
    ("Gemini 3", "gemini/gemini-3-pro", (4000, 3000), (4000, 3000), 1120),
    # 280 cells of 48² in the shape 2 : 1 are 23.7 × 11.8 cells: 23 × 11.
    ("Gemma 4", "ollama/gemma4", (400, 200), (1104, 528), 253),
    ("Gemma 3", "ollama/gemma3:12b", (1000, 500), (896, 896), 256),
    ("Qwen2-VL, Qwen2.5-VL", "vllm/Qwen/Qwen2.5-VL-7B-Instruct", (1000, 700), (1008, 700), 36 * 25),
    # 128 × 128 are too few pixels: 8 × 8 cells of 32².
    ("Qwen3-VL, Qwen3.5", "vllm/Qwen/Qwen3-VL-8B-Instruct", (128, 128), (256, 256), 64),
    # Of the shape 2 : 1 there are 2 × 1 and 4 × 2 tiles. 4 × 2 have twice the pixels of 1200 × 600.
    ("InternVL", "vllm/OpenGVLab/InternVL3_5-8B", (1200, 600), (896, 448), 3 * 256),
    # 3 × 3 tiles: 81 rows of 81 features, a token at the end of each row, 27² for the whole.
    ("LLaVA-OneVision", "vllm/llava-onevision-qwen2-7b", (1024, 1024), (1152, 1152), 81 * 81 + 81 + 729),
    ("Llama 4", "groq/meta-llama/llama-4-scout", (1024, 1024), (1024, 1024), 17 * 144),
    ("Pixtral", "mistral/pixtral-large-latest", (2048, 1024), (1024, 512), 65 * 32),
    # 5.88 megapixels of 4 : 3 are 2,800 × 2,100, multiples of 28.
    ("GLM-4.1V, 4.5V, 4.6V", "vllm/zai-org/GLM-4.6V", (4000, 3000), (2800, 2100), 7500),
    ("Kimi K2.5", "moonshot/kimi-k2.5", (2800, 2800), (1792, 1792), 4096),
]


@pytest.mark.parametrize(("family", "model", "sent", "seen", "tokens"), WORKED)
def test_what_a_family_sees(
    family: str, model: str, sent: tuple[int, int], seen: tuple[int, int], tokens: int
) -> None:
    found = family_of(model)
    assert found is not None
    assert found.name == family
    assert seen_size(model, *sent) == seen
    assert image_tokens(model, *sent) == tokens


def test_every_family_is_worked_out_and_has_a_source() -> None:
    assert {row[0] for row in WORKED} == {family.name for family in FAMILIES}
    assert all("2026" in family.source for family in FAMILIES)


@pytest.mark.parametrize(
    ("model", "side"),
    [
        ("openai/gpt-4o", 768),
        ("openai/gpt-5.2", 1248),  # 39² patches of 32
        ("openai/gpt-5.4", 1568),
        ("anthropic/claude-opus-4-20250514", 1092),  # 39² cells of 28
        ("anthropic/claude-opus-5", 1568),
        ("gemini/gemini-2.5-pro", 1568),
        ("ollama/gemma-4", 768),
        ("vllm/InternVL3-8B", 1344),
        ("vllm/pixtral-12b", 1024),
        ("gemini/gemini-3-pro", 1024),
        ("vllm/any", 1024),
    ],
)
def test_side_of_a_part_that_is_not_shrunk(model: str, side: int) -> None:
    assert part_side(model) == side
    assert part_side(model, view=512) == 512
    assert part_side(model, view=9999) == LARGEST_PART


def test_models_that_are_not_known() -> None:
    for model in ("vllm/any", "demo", "openai/gpt-3.5-turbo", "gemini/gemini-3-pro", "vllm/qwen-claude-mix"):
        assert not known_view(model)
        # Boxes in pixels count the picture as sent; regions count what is assumed.
        assert seen_size(model, 4000, 1000) == (4000, 1000)
        assert shown_size(model, 4000, 1000) == (DEFAULT_VIEW, 392)
        assert shown_size(model, 2000, 2000) == (1072, 1072)
        assert shown_size(model, 800, 600) == (800, 600)
    assert known_view("openai/gpt-4o")
    assert shown_size("openai/gpt-4o", 1024, 1024) == (768, 768)


def test_a_view_that_the_user_gives_replaces_the_table() -> None:
    assert seen_size("openai/gpt-4o", 4000, 2000, view=2000) == (2000, 1000)
    assert shown_size("vllm/any", 4000, 2000, view=3000) == (3000, 1500)
    assert seen_size("vllm/pixtral-12b", 300, 200, view=2000) == (300, 200)


SIDES = st.integers(1, 20_000)


@given(st.sampled_from(sorted({row[1] for row in WORKED} | {"vllm/any"})), SIDES, SIDES)
def test_any_picture_has_a_size(model: str, width: int, height: int) -> None:
    assert min(seen_size(model, width, height)) >= 1
    shown = shown_size(model, width, height)
    assert min(shown) >= 1
    assert (image_tokens(model, width, height) or 1) >= 1
    if not known_view(model):
        assert max(shown) <= DEFAULT_VIEW
