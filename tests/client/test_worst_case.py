"""What is reserved of a budget before a call must be enough for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.client.scripted import make_request, picture
from uncanny.agents.common.context import schema_of
from uncanny.answers.forms import ANOMALIES
from uncanny.client.budget import worst_case
from uncanny.models.base import Sampling
from uncanny.models.tokens import image_tokens, text_tokens
from uncanny.prompts import prompt_set

MODELS = ["openai/gpt-4o", "openai/gpt-5", "anthropic/claude-sonnet-4-5", "vllm/Qwen/Qwen3-VL-8B-Instruct"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("prompt", sorted(prompt_set("annotate").prompts))
def test_it_is_above_the_usual_estimate(model: str, prompt: str) -> None:
    text = prompt_set("annotate")[prompt].template.template
    request = make_request(text, replace(picture(), width=1024, height=768))
    parts = [part for message in request.messages for part in message.parts]
    texts = sum(text_tokens(part) for part in parts if isinstance(part, str))
    assert (worst_case(model, request).input or 0) >= texts + (image_tokens(model, 1024, 768) or 0)


def test_output_counts_in_full_and_nothing_as_cached() -> None:
    worst = worst_case("openai/gpt-4o", make_request(sampling=Sampling(max_output_tokens=5_000)))
    assert (worst.output, worst.cached, worst.cache_written) == (5_000, 0, 0)


def test_an_image_of_unknown_cost_is_taken_as_a_dear_one() -> None:
    bare = worst_case("openai-compatible/x", make_request("?")).input or 0
    seeing = worst_case("openai-compatible/x", make_request("?", picture())).input or 0
    assert seeing - bare >= (image_tokens("openai/gpt-4o", 2048, 2048) or 0)


def test_a_schema_costs_something_too() -> None:
    plain = make_request("?")
    bound = replace(plain, schema=schema_of(ANOMALIES))
    assert (worst_case("openai/gpt-4o", bound).input or 0) > (worst_case("openai/gpt-4o", plain).input or 0)
