"""What makes an answer another one, and what does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.client.scripted import CAPABILITIES, ScriptedProvider, guarded, in_turn, make_request, picture
from uncanny.agents.common.context import schema_of
from uncanny.answers.forms import FINDINGS, OBJECTS
from uncanny.client.calls import cache_key
from uncanny.models.base import Capabilities, Message, ModelRequest, Sampling

IMAGE = picture(b"one")
SAMPLING = Sampling(0.3, 0.95, 2_000)
FIRST = make_request("?", IMAGE, schema=schema_of(OBJECTS), sampling=SAMPLING)


def key(request: ModelRequest = FIRST, *, capabilities: Capabilities = CAPABILITIES, **model: Any) -> str:
    return cache_key(guarded(ScriptedProvider(in_turn(), capabilities=capabilities, **model)), request)


def test_the_same_request_has_the_same_key_for_ever() -> None:
    assert key() == key(replace(FIRST))
    # Whoever changes this throws away every answer anybody has kept.
    plain = make_request("How many?", sampling=Sampling(0.5, None, 100))
    assert key(plain).startswith("cb15e3391a8b")


@pytest.mark.parametrize(
    "other",
    [
        replace(FIRST, sample=1),
        replace(FIRST, schema=None),
        replace(FIRST, schema=schema_of(FINDINGS)),
        replace(FIRST, sampling=replace(SAMPLING, temperature=0.31)),
        replace(FIRST, sampling=replace(SAMPLING, temperature=None)),
        replace(FIRST, sampling=replace(SAMPLING, top_p=1.0)),
        replace(FIRST, sampling=replace(SAMPLING, max_output_tokens=2_001)),
        replace(FIRST, messages=FIRST.messages[1:]),
        replace(FIRST, messages=(*FIRST.messages, Message("assistant", ("!",)))),
        replace(FIRST, messages=(replace(FIRST.messages[0], role="user"), FIRST.messages[1])),
        make_request("?!", IMAGE, schema=FIRST.schema, sampling=SAMPLING),
        make_request("?", picture(b"two"), schema=FIRST.schema, sampling=SAMPLING),
        make_request("?", replace(IMAGE, media_type="image/webp"), schema=FIRST.schema, sampling=SAMPLING),
    ],
)
def test_whatever_the_answer_depends_on_changes_the_key(other: ModelRequest) -> None:
    assert key(other) != key()


def test_another_model_or_server_has_answers_of_its_own() -> None:
    keys = {key(), key(name="script/two"), key(endpoint="http://a/v1"), key(endpoint="http://b/v1")}
    assert len(keys) == 4


@pytest.mark.parametrize(
    "other",
    [
        replace(FIRST, agent="Counter", step=2, subject="cup"),
        replace(FIRST, messages=(FIRST.messages[0], replace(FIRST.messages[1], shared=0))),
        make_request("?", picture(b"one"), schema=FIRST.schema, sampling=SAMPLING),
    ],
)
def test_what_the_model_does_not_see_does_not(other: ModelRequest) -> None:
    assert key(other) == key()


def test_parameters_a_model_does_not_take_do_not_count() -> None:
    warm = replace(FIRST, sampling=replace(SAMPLING, temperature=1.0, top_p=0.5))
    cold = replace(CAPABILITIES, temperature=False, top_p=False)
    assert key(warm, capabilities=cold) == key(capabilities=cold)


def test_texts_cannot_be_moved_between_parts_and_turns_unseen() -> None:
    first = ModelRequest((Message("user", ("a", "b")),), SAMPLING)
    two = ModelRequest((Message("user", ("ab",)),), SAMPLING)
    three = ModelRequest((Message("user", ("a",)), Message("user", ("b",))), SAMPLING)
    assert len({key(first), key(two), key(three)}) == 3
