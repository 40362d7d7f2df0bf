"""The table of steps, and the configuration that says how often they are taken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from uncanny.agents import AnnotateConfig
from uncanny.agents.steps import FORMAT, PAPER, PERCEIVE, ROLES
from uncanny.prompts import prompt_set


def test_defaults() -> None:
    assert AnnotateConfig(schedule="paper").model_dump() == {
        "schedule": "paper",
        "repeats": 3,
        "max_objects": 12,
        "scene_scans": 0,
        "batch_objects": 6,
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
        {"unknown": 1},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AnnotateConfig(schedule="paper", **wrong)


@pytest.mark.parametrize(
    ("config", "objects", "calls"),
    [
        (AnnotateConfig(schedule="paper"), 8, 3 + 48 + 1),
        (AnnotateConfig(schedule="paper", scene_scans=3), 8, 3 + 3 + 48 + 1),
        (AnnotateConfig(schedule="paper", repeats=1, max_objects=2), 40, 1 + 12 + 1),
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
