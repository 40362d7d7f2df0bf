"""The table of steps, and the configuration that says how often they are taken."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, cast

import pytest

from uncanny.agents.config import AnnotateConfig, DetectConfig
from uncanny.agents.steps import FORMAT, PAPER, PERCEIVE, ROLES, ScheduleName
from uncanny.errors import UsageError
from uncanny.prompts import prompt_set


def test_defaults() -> None:
    assert AnnotateConfig(schedule="paper").model_dump() == {
        "schedule": "paper",
        "repeats": 3,
        "max_objects": 12,
        "scene_scans": 0,
        "max_regions": 12,
        "view": None,
        "strictness": "open",
        "language": "English",
        "box_format": None,
        "temperature": 0.3,
        "top_p": 0.95,
        "max_output_tokens": 2_000,
        "formatter_output_tokens": 5_000,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"repeats": 0},
        {"max_objects": 0},
        {"scene_scans": -1},
        {"temperature": 2.1},
        {"temperature": float("nan")},
        {"top_p": 0},
        {"top_p": 1.1},
        {"max_output_tokens": 0},
        {"max_regions": -1},
        {"max_regions": 101},
        {"view": 63},
        {"unknown": 1},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        AnnotateConfig(schedule="paper", **wrong)
    assert f"`{next(iter(wrong))}`" in str(caught.value)
    with pytest.raises(UsageError):
        AnnotateConfig.model_validate({"schedule": "paper", **wrong})


def test_what_is_refused_is_named_with_what_to_do() -> None:
    for wrong, message, remedy in (
        ({"repeat": 1}, "There is no option `repeat`", "Did you mean `repeats`?"),
        ({"repeats": "many"}, "`repeats` must be a whole number", None),
        ({"schedule": "papers"}, "`schedule` must be 'packed', 'paper' or 'single'", None),
        ({"language": "<English>"}, "`language` must be the name of a language: letters, spaces", None),
    ):
        with pytest.raises(UsageError, match=re.escape(message)) as caught:
            AnnotateConfig(**cast(dict[str, Any], wrong))
        assert remedy is None or (caught.value.remedy or "").startswith(remedy)
    with pytest.raises(UsageError, match="`protocol`"):
        DetectConfig(protocol="talk")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("schedule", "without_effect"),
    [
        ("packed", set()),
        ("paper", {"box_format", "max_regions", "view"}),
        (
            "single",
            {
                "repeats",
                "max_objects",
                "scene_scans",
                "max_regions",
                "view",
                "box_format",
                "formatter_output_tokens",
            },
        ),
    ],
)
def test_what_a_schedule_has_no_use_for_is_refused(schedule: str, without_effect: set[str]) -> None:
    values: dict[str, Any] = {
        "repeats": 9,
        "max_objects": 9,
        "scene_scans": 9,
        "max_regions": 9,
        "view": 900,
        "strictness": "strict",
        "language": "German",
        "box_format": "pixels",
        "temperature": 0.9,
        "top_p": 0.9,
        "max_output_tokens": 9,
        "formatter_output_tokens": 9,
    }
    assert values.keys() | {"schedule"} == AnnotateConfig.model_fields.keys()
    for name in values.keys() - {"schedule"} - without_effect:
        assert getattr(AnnotateConfig(**{"schedule": schedule, name: values[name]}), name) == values[name]
    whole = AnnotateConfig(schedule=cast(ScheduleName, schedule))
    assert AnnotateConfig(**whole.model_dump()) == whole
    for name in without_effect:
        with pytest.raises(UsageError, match=f"`{name}` has no effect"):
            whole.check_effect([name])
        message = f"`{name}` has no effect with the schedule `{schedule}`"
        with pytest.raises(UsageError, match=message):
            AnnotateConfig(**{"schedule": schedule, name: values[name]})


@pytest.mark.parametrize(
    ("config", "agents"),
    [
        (AnnotateConfig(), set(ROLES.values())),
        (AnnotateConfig(scene_scans=0), set(ROLES.values()) - {"SceneScanner"}),
        (AnnotateConfig(schedule="paper"), set(ROLES.values()) - {"SceneScanner"}),
        (AnnotateConfig(schedule="paper", scene_scans=1), set(ROLES.values())),
        (AnnotateConfig(schedule="single"), {"SceneScanner"}),
    ],
)
def test_agents_that_are_asked(config: AnnotateConfig, agents: set[str]) -> None:
    assert config.asked_agents() == agents


@pytest.mark.parametrize(
    ("config", "objects", "calls"),
    [
        (AnnotateConfig(schedule="paper"), 8, 3 + 48 + 1),
        (AnnotateConfig(schedule="paper", scene_scans=3), 8, 3 + 3 + 48 + 1),
        (AnnotateConfig(schedule="paper", repeats=1, max_objects=2), 40, 1 + 12 + 1),
        # look, three batches of parts, relations, integrate
        (AnnotateConfig(), 12, 1 + 3 + 1 + 1),
        (AnnotateConfig(), 40, 1 + 3 + 1 + 1),
        (AnnotateConfig(repeats=3, scene_scans=3), 4, 1 + 2 + 2 + 1 + 1 + 1),
        (AnnotateConfig(scene_scans=0), 4, 1 + 1 + 1 + 1),
        (AnnotateConfig(max_regions=5), 12, 1 + 2 + 1 + 1),
    ],
)
def test_calls_of_an_image(config: AnnotateConfig, objects: int, calls: int) -> None:
    assert config.calls(objects) == calls


def test_each_step_is_in_the_table_once_and_every_agent_has_some() -> None:
    steps = [(step.agent, step.number) for step in PAPER.steps]
    assert len(set(steps)) == len(steps)
    assert {agent for agent, _ in steps} == set(ROLES.values())


def test_every_text_of_the_table_is_in_the_prompt_set() -> None:
    texts = prompt_set("annotate").prompts
    names = {step.prompt_name(sample) for step in PAPER.steps for sample in range(step.wordings)}
    assert names == texts.keys() - {"system", "open", "strict", "relation_context", "repair", "repair_text"}


def test_repeats_take_turns_at_the_wordings() -> None:
    names = [PERCEIVE.prompt_name(sample) for sample in range(4)]
    assert names == ["perceive_1", "perceive_2", "perceive_3", "perceive_1"]
    assert {FORMAT.prompt_name(sample) for sample in range(4)} == {"format"}


def test_calls_of_a_table() -> None:
    times = AnnotateConfig(schedule="paper", scene_scans=1).times(8)
    assert PAPER.calls(times) == 3 + 1 + 48 + 1
    assert replace(PAPER, steps=()).calls(times) == 0
