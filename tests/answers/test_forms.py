"""The forms, and the schemas made from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from uncanny.answers.forms import (
    ANOMALIES,
    FORMS,
    RELATIONS,
    Finding,
    ItemField,
    ListForm,
    make_form,
    own_schema,
    shared_schema,
)
from uncanny.answers.lists import read_list
from uncanny.errors import AnswerError

TAKEN_BY_ALL = {"type", "properties", "required", "additionalProperties", "items", "anyOf", "description"}


def _schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for inner in [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]:
        yield from _schemas(inner)
    if "items" in schema:
        yield from _schemas(schema["items"])


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.key)
def test_a_form_has_the_fields_of_its_model(form: ListForm[Any]) -> None:
    names = [field.name for field in form.fields]
    assert names == [name for name in form.model.model_fields if name in names]
    assert {field.name for field in form.fields if field.required} >= {
        name for name, field in form.model.model_fields.items() if field.is_required()
    }
    assert form.title is None or form.title in form.model.model_fields


@pytest.mark.parametrize("schema", [*map(own_schema, FORMS), shared_schema()])
def test_schemas_keep_to_what_every_backend_takes(schema: dict[str, Any]) -> None:
    assert schema["type"] == "object"
    for each in _schemas(schema):
        assert set(each) <= TAKEN_BY_ALL
        if each.get("type") == "object":
            assert each["required"] == list(each["properties"])
            assert each["additionalProperties"] is False


def test_the_shared_schema_holds_every_form() -> None:
    assert shared_schema()["properties"]["answer"]["anyOf"] == [
        own_schema(form)["properties"]["answer"] for form in FORMS
    ]


def test_schemas_are_not_shared_between_callers() -> None:
    own_schema(RELATIONS)["properties"].clear()
    assert own_schema(RELATIONS)["properties"]


def test_two_fields_must_not_share_a_label() -> None:
    with pytest.raises(ValueError, match="Why"):
        make_form(
            "x", Finding, (ItemField("phenomenon", labels=("why",)), ItemField("reason", labels=("Why",)))
        )


def test_an_answer_of_another_step_is_an_error() -> None:
    for form in FORMS:
        for other in FORMS:
            if other is not form:
                with pytest.raises(AnswerError):
                    read_list(f'{{"{other.key}": []}}', form)


def test_a_message_quotes_little_of_the_answer() -> None:
    with pytest.raises(AnswerError) as caught:
        read_list("Ω" * 5_000, ANOMALIES)
    assert 0 < caught.value.message.count("Ω") <= 80
