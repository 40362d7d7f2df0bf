"""Forms made from the parameters of kinds, and parameters read from forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from uncanny.service.jobs.kinds import KINDS, check_params
from uncanny.service.service import Service
from uncanny.service.web.forms import form_fields, read_form
from uncanny.service.web.views import command_line

# Of each kind what a form may be filled in with, and the parameters that are meant.
FILLED: dict[str, tuple[list[tuple[str, str]], dict[str, Any]]] = {
    "detect": (
        [("images", "scenes\n"), ("model", "demo"), ("limit", "5"), ("temperature", "0.5"), ("cache", "no")],
        {"images": ["scenes"], "model": "demo", "limit": 5, "temperature": 0.5, "cache": False},
    ),
    "mcq": (
        [("items", " scenes "), ("model", "demo"), ("control", "on"), ("retry_failed", ""), ("fallback", "")],
        {"items": "scenes", "model": "demo", "control": True},
    ),
    "artifacts": (
        [("images", "scenes"), ("model", "demo"), ("categories", "textures"), ("categories", "color")],
        {"images": ["scenes"], "model": "demo", "categories": ["textures", "color"]},
    ),
    "semantic": (
        [
            ("predictions", "a=scenes\nb = scenes"),
            ("truth", "scenes"),
            ("balance", "0.5"),
            ("thresholds", "0.5\n0.7"),
        ],
        {
            "predictions": {"a": "scenes", "b": "scenes"},
            "truth": "scenes",
            "balance": 0.5,
            "thresholds": [0.5, 0.7],
        },
    ),
    "audit": (
        [("generators", "r=scenes:rendered"), ("model", "demo"), ("roles", "integrator=demo")],
        {"generators": {"r": "scenes:rendered"}, "model": "demo", "roles": {"integrator": "demo"}},
    ),
}


@pytest.fixture
def address() -> None:
    """On SQLite alone."""
    return


@pytest.mark.parametrize("kind", FILLED)
def test_what_is_filled_in_becomes_parameters_and_back(service: Service, kind: str) -> None:
    values, params = FILLED[kind]
    filled = read_form(KINDS[kind].params, values)
    assert filled.wrong == {}
    assert filled.params == params
    assert check_params(service, kind, filled.params) == params
    fields = form_fields(KINDS[kind].params, params)
    again = [
        (field.name, text)
        for field in fields
        for text in (field.values if field.widget == "choices" else (field.value,))
    ]
    assert read_form(KINDS[kind].params, again).params == params


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_has_a_field_that_says_what_it_does(kind: str) -> None:
    assert KINDS[kind].params.__doc__
    fields = form_fields(KINDS[kind].params)
    names = {field.alias or name for name, field in KINDS[kind].params.model_fields.items()}
    assert {field.name for field in fields} == names
    assert [field.name for field in fields if not field.help] == []
    assert not any("[default" in field.help or "Repeatable" in field.help for field in fields)


def test_what_does_not_fit_is_said_at_its_field() -> None:
    values = [("limit", "many"), ("temperature", "9"), ("model", "a b"), ("nothing", "x")]
    wrong = read_form(KINDS["annotate"].params, values).wrong
    assert wrong == {
        "limit": "Must be a whole number.",
        "temperature": "Must be at most 2.",
        "model": "Must be a provider and the name of its model, such as openai/gpt-4o, without blanks.",
        "images": "This is needed.",
    }
    assert read_form(KINDS["realism"].params, [("model", "demo")]).wrong[""].startswith("Give either pairs")


def test_none_of_two_lines_of_one_name_is_lost_and_each_needs_a_name() -> None:
    wrong = read_form(KINDS["compare"].params, [("runs", "a=scenes\n a = other")]).wrong
    assert wrong["runs"] == "'a' is there twice: give each a name of its own."
    assert read_form(KINDS["compare"].params, [("runs", "a=x")]).wrong["runs"] == "Must have at least 2."
    wrong = read_form(KINDS["audit"].params, [("generators", "photos")]).wrong
    assert wrong["generators"].startswith("Needs a name before each, as NAME=…")
    values = [("predictions", "a=scenes"), ("truth", "scenes"), ("thresholds", "0.5, 0.7 0.9")]
    assert read_form(KINDS["semantic"].params, values).params["thresholds"] == [0.5, 0.7, 0.9]


def test_the_command_is_one_that_can_be_typed(tmp_path: Path) -> None:
    with Service.open(tmp_path / "data") as service:
        uploaded = service.uploads.new_set(name="my photos", by="ann")
        params = {
            "images": [f"upload:{uploaded.id}", "/data/x y"],
            "model": "demo",
            "cache": False,
            "limit": 5,
        }
        line = command_line(service, "annotate", params)
        assert line == "uncanny annotate 'my photos' '/data/x y' -o RUN --model=demo --no-cache --limit=5"
        job = f"job:job_{'a' * 20}"
        line = command_line(service, "compare", {"runs": {"a": job, "b": "scenes"}})
        assert line == f"uncanny compare a=runs/job_{'a' * 20} b=scenes --report=compare.html"
        line = command_line(
            service, "semantic", {"predictions": {"a": "x"}, "truth": "t", "thresholds": [0.5, 0.7]}
        )
        out = "--report=semantic.html --per-image=images.jsonl"
        assert line == f"uncanny semantic a=x {out} --truth=t --thresholds=0.5,0.7"
        line = command_line(service, "edits_measure", {"pairs": "p.jsonl"})
        assert line == "uncanny edits measure p.jsonl --report=edits.html -o edits.jsonl"


def test_weights_are_chosen_among_those_of_the_service() -> None:
    """Without any their fields would only be in the way."""
    model = KINDS["edits_measure"].params
    names = {"dreamsim", "text_model"}
    fields = {field.name: field for field in form_fields(model, {"dreamsim": "b"}, weights=["a", "b"])}
    assert {(fields[name].widget, fields[name].choices) for name in names} == {("choice", ("a", "b"))}
    assert fields["dreamsim"].value == "b"
    assert names.isdisjoint(field.name for field in form_fields(model, weights=[]))
    assert read_form(model, [("pairs", "scenes"), ("dreamsim", "b")]).params == {
        "pairs": "scenes",
        "dreamsim": "b",
    }


def test_fields_have_names_for_people_and_are_folded_by_group() -> None:
    fields = {field.name: field for field in form_fields(KINDS["export"].params)}
    names = fields["to"].names or {}
    assert set(names) == set(fields["to"].choices)
    assert (names["labelstudio"], names["coco"]) == ("Label Studio", "COCO")
    assert (fields["agree"].choices, fields["least_verdicts"].widget) == (("majority", "all"), "number")
    groups = {field.name: field.group for field in form_fields(KINDS["annotate"].params)}
    assert groups["max_side"] == "Images as they are sent"
    assert groups["concurrency"] == "Limits"
    assert groups["temperature"] == "Sampling"
    assert groups["max_objects"] == "Agents"
    assert all(field.group for field in form_fields(KINDS["edits_measure"].params) if not field.first)
