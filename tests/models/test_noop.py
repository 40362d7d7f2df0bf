"""The model that does nothing answers every step of the annotation validly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.client.scripted import make_request
from uncanny.agents.common.context import schema_of
from uncanny.answers.forms import FORMS, ListForm, own_schema, shared_schema
from uncanny.answers.json_text import read_text
from uncanny.answers.lists import read_list
from uncanny.answers.packed import PACKED_FORMS, Fault
from uncanny.models.base import AnswerSchema, Message
from uncanny.models.noop import OBJECTS, NoopProvider


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.key)
async def test_it_answers_each_form(form: ListForm[Any]) -> None:
    response = await NoopProvider().generate(replace(make_request(), schema=schema_of(form)))
    items = read_list(response.text, form)
    assert len(items) == (OBJECTS if form.key == "objects" else 1)
    assert response.finish == "stop"


@pytest.mark.parametrize("form", PACKED_FORMS, ids=lambda form: form.key)
async def test_it_answers_each_packed_form_for_each_number(form: ListForm[Any]) -> None:
    question = Message("user", ('{"id":4,"name":"cup"}\n{"id":5,"name":"table"}',))
    schema = AnswerSchema(form.key, own_schema(form), shared_schema(PACKED_FORMS))
    response = await NoopProvider().generate(replace(make_request(), messages=(question,), schema=schema))
    items = read_list(response.text, form)
    if form.key == "objects":
        assert len(items) == OBJECTS
    else:
        assert [number for item in items for number in numbers_of(item)] == [4, 5]


def numbers_of(item: Any) -> tuple[int, ...]:
    return item.numbers if isinstance(item, Fault) else item.ids


async def test_it_answers_free_prompts_with_text_and_costs_nothing() -> None:
    model = NoopProvider()
    response = await model.generate(make_request())
    assert read_text(response.text)
    assert (response.tokens.input, response.tokens.output) == (0, 0)
    await model.close()
