"""`--dry-run` prints what the public forecast of the same run is, before the run and after a part of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import uncanny
from tests.runs.e2e import pictures, uncanny_here
from uncanny.runs.forecast import Forecast
from uncanny.wording import rendered

FORECASTS: dict[str, Callable[..., Forecast]] = {
    "annotate": uncanny.annotate_forecast,
    "detect": uncanny.detect_forecast,
    "mcq run": uncanny.mcq.forecast,
    "realism run": uncanny.realism.forecast,
    "artifacts run": uncanny.artifacts.forecast,
    "edits prompts": uncanny.edits.prompts_forecast,
}


@pytest.mark.parametrize("command", FORECASTS)
def test_a_dry_run_prints_the_public_forecast(command: str, tmp_path: Path) -> None:
    pictures(tmp_path / "in", 3)
    source = "scenes" if " " in command else str(tmp_path / "in")
    forecast = FORECASTS[command](source, model="openai/gpt-4o", limit=2)
    words = (*command.split(), source, "--limit", "2", "--dry-run")
    dry = uncanny_here(*words, "--model", "openai/gpt-4o")
    assert dry.out.rstrip("\n") == rendered(forecast.text(), "terminal")
    assert forecast.text() == str(forecast)
    assert str(forecast).endswith("`limit=5` gives real figures.")
    json = uncanny_here(*words, "--model", "openai/gpt-4o", "--json").json()
    assert list(json.items()) == list(forecast.to_json().items())


@pytest.mark.parametrize("command", FORECASTS)
def test_what_is_done_is_not_counted(command: str, tmp_path: Path) -> None:
    pictures(tmp_path / "in", 3)
    source, out = "scenes" if " " in command else str(tmp_path / "in"), tmp_path / "run"
    assert uncanny_here(*command.split(), source, "--limit", "2", "--model", "noop", "-o", out).code in (0, 1)
    options: dict[str, Any] = {"model": "noop", "out": out, "limit": 3, "retry_failed": False}
    forecast = FORECASTS[command](source, **options)
    assert (forecast.inputs, forecast.pending) == (3, 1)
    assert FORECASTS[command](source, model="noop", limit=3).pending == 3


def test_parameters_out_of_range_are_refused() -> None:
    with pytest.raises(uncanny.UncannyError, match="repeats"):
        uncanny.annotate_forecast("anywhere", model="demo", repeats=0)
    with pytest.raises(uncanny.UncannyError, match="temperature"):
        uncanny.mcq.forecast("scenes", model="demo", temperature=3)


@pytest.mark.parametrize("command", FORECASTS)
def test_an_option_that_is_misspelt_is_refused(command: str) -> None:
    with pytest.raises(uncanny.UncannyError, match="no option `limits`"):
        FORECASTS[command]("scenes", model="demo", limits=3)


def test_a_cost_that_is_not_known_is_said_once(tmp_path: Path) -> None:
    images = pictures(tmp_path / "images", 1)
    done = uncanny_here("annotate", images, "-m", "openai/unheard-of", "--dry-run")
    assert "Cost     not priced\n" in done.out


def test_a_cost_is_said_as_far_as_it_is_known(tmp_path: Path) -> None:
    images = pictures(tmp_path / "images", 1)
    dry = ("annotate", images, "--dry-run", "-m")
    free = uncanny_here(*dry, "demo").out
    assert "Cost     $0\n" in free
    assert "is not known for demo.\n" in free
    partly = uncanny_here(*dry, "xai/grok-4").out
    assert re.search(r"^Cost     \$0\.\d+ without the images$", partly, re.MULTILINE)
    assert "is not known for xai/grok-4: what the images cost comes on top.\n" in partly
    # Where nothing comes of the prefix cache, one figure is enough.
    whole = uncanny_here(*dry, "azure/gpt-4o").out
    assert re.search(r"^Cost     \$0\.\d+$", whole, re.MULTILINE)
    assert " out without reasoning\n" in whole
