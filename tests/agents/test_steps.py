"""The plan's defaults are the paper's, and nonsense is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from uncanny.agents import AnnotateConfig


def test_defaults() -> None:
    assert AnnotateConfig().model_dump() == {
        "repeats": 3,
        "max_objects": 12,
        "scene_scans": 0,
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
        AnnotateConfig(**wrong)


@pytest.mark.parametrize(
    ("config", "objects", "calls"),
    [
        (AnnotateConfig(), 8, 3 + 48 + 1),
        (AnnotateConfig(scene_scans=3), 8, 3 + 3 + 48 + 1),
        (AnnotateConfig(repeats=1, max_objects=2), 40, 1 + 12 + 1),
    ],
)
def test_calls_of_an_image(config: AnnotateConfig, objects: int, calls: int) -> None:
    assert config.calls(objects) == calls
