"""The model that does nothing answers every step of the annotation validly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.agents.packed_specialists import PackedSpecialists
from tests.client.scripted import guarded, make_request
from uncanny.agents.common.context import schema_of
from uncanny.answers.forms import FORMS, ListForm, own_schema
from uncanny.answers.json_text import read_text
from uncanny.answers.lists import read_list
from uncanny.answers.packed import FAULTS, INVENTORY, PACKED_FORMS, PART_FAULTS, read_look
from uncanny.client.client import ModelClient
from uncanny.models.base import AnswerSchema, Message
from uncanny.models.noop import OBJECTS, NoopProvider


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.key)
async def test_it_answers_each_form(form: ListForm[Any]) -> None:
    response = await NoopProvider().generate(replace(make_request(), schema=schema_of(form)))
    items = read_list(response.text, form)
    assert len(items) == (OBJECTS if form.key == "objects" else 1)
    assert response.finish == "stop"


@pytest.mark.parametrize("form", PACKED_FORMS, ids=lambda form: form.model.__name__)
async def test_it_answers_each_packed_form(form: ListForm[Any]) -> None:
    question = Message("user", ('{"id":4,"phenomenon":"odd"}\n{"id":5,"phenomenon":"odder"}',))
    schema = AnswerSchema(form.key, own_schema(form), own_schema(form))
    response = await NoopProvider().generate(replace(make_request(), messages=(question,), schema=schema))
    items = read_list(response.text, form)
    if form is INVENTORY:
        assert len(items) == OBJECTS
    elif form in (FAULTS, PART_FAULTS):
        assert len(items) == 1
    else:
        assert [item.ids for item in items] == [(4,), (5,)]


async def test_it_answers_a_look_with_both_lists() -> None:
    schema = own_schema(FAULTS, INVENTORY)
    request = replace(make_request(), schema=AnswerSchema("look", schema, schema))
    look = read_look((await NoopProvider().generate(request)).text)
    assert (len(look.faults), len(look.inventory)) == (1, OBJECTS)


async def test_it_keeps_what_it_finds_in_the_packed_schedule() -> None:
    model, specialists = NoopProvider(), PackedSpecialists()
    context = replace(specialists.context(), model_client=ModelClient({"": [guarded(model)]}))
    state = await specialists.run(context=context)
    # It knows no boxes: tiles of the image are looked at, and one finding is in each and one in the whole.
    batches = -(-len(state["regions"]) // 4)
    assert batches
    assert len(context.scope.calls) == 1 + batches + 1
    assert [each.fate for each in state["candidates"]] == ["kept"] * (1 + len(state["regions"]))
    assert (state["errors"], len(state["objects"])) == ([], OBJECTS)


async def test_it_answers_free_prompts_with_text_and_costs_nothing() -> None:
    model = NoopProvider()
    response = await model.generate(make_request())
    assert read_text(response.text)
    assert (response.tokens.input, response.tokens.output) == (0, 0)
    await model.close()
