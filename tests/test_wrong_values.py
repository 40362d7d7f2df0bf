"""Every parameter of every public function refuses, in our words, what is no value of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uncanny
from tests.doors import PROTOCOLS
from tests.runs.e2e import uncanny_here
from uncanny.demo.scenes import scenes
from uncanny.errors import UncannyError, UsageError
from uncanny.session.parameters import AnnotatorParameters

IMAGE = next(scene.image_path for scene in scenes() if scene.anomalies)
NAN, INF = float("nan"), float("inf")
WRONG: tuple[object, ...] = (object(), -1, [3], {"a": 3}, b"bytes", lambda: None, NAN, INF)
BOXES: dict[Any, Any] = {"A": (0, 0, 5, 5), "B": (5, 5, 9, 9)}
MASK = np.eye(10)
Arguments = Callable[[Path], dict[str, Any]]


@cache
def _items() -> Any:
    return uncanny.mcq.load("scenes")[:1]


@cache
def _picks() -> Any:
    return {_items()[0].id: uncanny.mcq.choose_box(MASK, BOXES)}


@cache
def _pairs() -> Any:
    return uncanny.edits.load("scenes").pairs


RIGHT: Mapping[str, Arguments] = {
    "annotate": lambda out: {"images": IMAGE, "model": "noop", "out": out},
    "annotate_image": lambda _: {"image": IMAGE, "model": "noop"},
    "detect_image": lambda _: {"image": IMAGE, "model": "noop"},
    "annotate_forecast": lambda _: {"images": IMAGE, "model": "noop"},
    "detect": lambda out: {"images": IMAGE, "model": "noop", "out": out},
    "detect_forecast": lambda _: {"images": IMAGE, "model": "noop"},
    "detect_scores": lambda out: {"runs": {"a": out.parent / "detected"}},
    "compare": lambda out: {"runs": (out.parent / "annotated", out.parent / "again"), "resamples": 10},
    "merge": lambda out: {"runs": {"a": out.parent / "annotated", "b": out.parent / "again"}, "out": out},
    "audit": lambda out: {"sources": {"a": out.parent / "annotated"}, "resamples": 10},
    "sample": lambda out: {"runs": (out.parent / "annotated", out.parent / "again"), "size": 1},
    "trust": lambda out: {"run": out.parent / "annotated"},
    "report": lambda out: {"run": out.parent / "annotated"},
    "export": lambda out: {"run": out.parent / "annotated", "to": "csv", "out": out, "all": True},
    "import_reviews": lambda out: {
        "files": out.parent / "table/anomalies.csv",
        "run": out.parent / "annotated",
    },
    "import_annotations": lambda out: {"files": out.parent / "table/anomalies.csv", "out": out / "a.jsonl"},
    "register_provider": lambda _: {"name": "wrong-values", "factory": dict, "replace": True},
    "artifacts.run": lambda out: {"images": IMAGE, "model": "noop", "out": out},
    "artifacts.forecast": lambda _: {"images": IMAGE, "model": "noop"},
    "artifacts.load": lambda _: {"artifacts": "scenes"},
    "artifacts.score": lambda _: {"predictions": "scenes", "truth": "scenes", "resamples": 10},
    "curate.filter": lambda out: {"texts": "scenes", "model": "noop", "out": out, "limit": 1},
    "curate.filter_forecast": lambda _: {"texts": "scenes", "model": "noop"},
    "curate.cluster": lambda out: {"prompts": "scenes", "clip": out},
    "curate.references": lambda _: {"images": "scenes", "pool": "scenes"},
    "curate.split": lambda _: {"identities": "scenes", "generators": ["A"], "shared": 1, "own": 1},
    "edits.crop": lambda out: {"pairs": _pairs()[:1], "out": out, "side": 32, "short_side": 32},
    "edits.masks": lambda out: {"masks": _pairs()[0].masks[0], "out": out},
    "edits.load": lambda _: {"source": "scenes"},
    "edits.measure": lambda out: {"pairs": "scenes", "out": out.with_suffix(".jsonl"), "threads": 1},
    "edits.perturb": lambda out: {"texts": "scenes", "model": "noop", "out": out, "limit": 1},
    "edits.perturb_forecast": lambda _: {"texts": "scenes", "model": "noop"},
    "edits.prompts": lambda out: {"texts": "scenes", "model": "noop", "out": out, "limit": 1},
    "edits.prompts_forecast": lambda _: {"texts": "scenes", "model": "noop"},
    "edits.stress": lambda _: {
        "predictions": [{"image": "b.png", "score": 0.7}],
        "meta": [{"original": "a.png", "edited": "b.png"}],
        "resamples": 10,
    },
    "edits.compress": lambda out: {"images": IMAGE, "out": out, "conditions": ["jpeg-50"]},
    "edits.gate": lambda out: {"pairs": "scenes", "out": out.with_suffix(".jsonl")},
    "edits.open_perceptual": lambda _: {},
    "edits.score_people": lambda out: {
        "pairs": [{"id": "1", "original": "a.png", "edited": "b.png"}],
        "people": out.parent / "judgements.jsonl",
        "resamples": 10,
    },
    "edits.score_ratings": lambda out: {
        "pairs": [{"id": "1", "original": "a.png", "edited": "b.png"}],
        "people": out.parent / "ratings.jsonl",
        "resamples": 10,
    },
    "learn.reasoner": lambda out: {"data": out.parent / "annotated", "base": out.parent, "out": out},
    "learn.grounder": lambda out: {"data": out.parent / "annotated", "base": out.parent, "out": out},
    "learn.detector": lambda out: {"data": out.parent / "annotated", "base": out.parent, "out": out},
    "learn.multitask": lambda out: {"data": out.parent / "annotated", "base": out.parent, "out": out},
    "mcq.load": lambda _: {"source": "scenes"},
    "mcq.run": lambda out: {"items": "scenes", "model": "noop", "out": out, "limit": 1},
    "mcq.run_each": lambda out: {"items": "scenes", "models": ["noop"], "out": out, "limit": 1},
    "mcq.forecast": lambda _: {"items": "scenes", "model": "noop"},
    "mcq.score": lambda out: {"items": "scenes", "answers": out.parent / "answered", "resamples": 10},
    "mcq.keep": lambda out: {"items": "scenes", "reviews": out.parent / "item_reviews.jsonl"},
    "mcq.plan": lambda _: {"difference": 20, "discordant": 30},
    "mcq.check": lambda _: {"source": "scenes", "images": False},
    "mcq.build": lambda out: {"run": out.parent / "annotated", "out": out.with_suffix(".jsonl")},
    "mcq.overlay": lambda out: {"source": _items(), "out": out},
    "mcq.export_table": lambda out: {"source": _items(), "out": out.with_suffix(".csv")},
    "mcq.import_table": lambda out: {"source": out.parent / "table.csv", "out": out},
    "mcq.baseline_answers": lambda _: {"items": "scenes", "baseline": "random"},
    "mcq.random_expectation": lambda _: {"items": "scenes"},
    "mcq.write_predictions": lambda out: {"answers": [], "path": out, "items": _items()},
    "mcq.choose_box": lambda _: {"mask": MASK, "boxes": BOXES},
    "mcq.read_mask": lambda _: {"path": IMAGE},
    "mcq.box_answers": lambda _: {"items": _items(), "picks": _picks(), "model": "mine"},
    "mcq.score_boxes": lambda _: {"items": _items(), "picks": _picks(), "resamples": 10},
    "pairs.make": lambda out: {"images": IMAGE, "inpainter": "demo", "out": out, "attempts": 1},
    "pairs.make_forecast": lambda _: {"images": IMAGE, "inpainter": "demo"},
    "pairs.screen": lambda out: {"pairs": out.parent / "pairs", "out": out},
    "pairs.screen_forecast": lambda out: {"pairs": out.parent / "pairs"},
    "pairs.items": lambda out: {"pairs": out.parent / "pairs"},
    "realism.load": lambda _: {"source": "scenes"},
    "realism.run": lambda out: {"pairs": "scenes", "model": "noop", "out": out, "limit": 1},
    "realism.run_each": lambda out: {"pairs": "scenes", "models": ["noop"], "out": out, "limit": 1},
    "realism.forecast": lambda _: {"pairs": "scenes", "model": "noop"},
    "realism.score": lambda out: {"verdicts": out.parent / "judged", "resamples": 10},
    "semantic.load": lambda out: {"anomalies": out.parent / "annotated"},
    "semantic.score": lambda out: {
        "predictions": out.parent / "annotated",
        "truth": out.parent / "annotated",
        "similarity": "chrf",
        "resamples": 10,
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    uncanny.annotate(IMAGE, model="noop", out=folder / "annotated")
    uncanny.annotate(IMAGE, model="noop", out=folder / "again")
    uncanny.detect(IMAGE, model="noop", out=folder / "detected")
    uncanny.export(folder / "annotated", to="csv", out=folder / "table", all=True)
    uncanny.mcq.run("scenes", model="demo", out=folder / "answered", limit=1)
    uncanny.realism.run("scenes", model="demo", out=folder / "judged", limit=1)
    uncanny.mcq.export_table(_items(), out=folder / "table.csv")
    uncanny.pairs.make(IMAGE, inpainter="demo", out=folder / "pairs", attempts=1)
    judgement = '{"id": "1", "shown": "edited", "image": "b.png", "person": "ann", "judged": "edited"}'
    (folder / "judgements.jsonl").write_text(judgement)
    rating = '{"id": "1", "original": "a.png", "edited": "b.png", "person": "ann", "change": "some"}'
    (folder / "ratings.jsonl").write_text(rating)
    review = '{"id": "d01-five-fingers", "person": "ann", "decision": "accept"}'
    (folder / "item_reviews.jsonl").write_text(review)
    return folder


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (NAN, "`timeout_s` must be a finite number, not nan"),
        (np.float32("nan"), "`timeout_s` must be a finite number, not"),
        (INF, "`timeout_s` must be a finite number, not inf"),
        (10**400, "`timeout_s` must be a number, not 1000"),
        (-INF, "`timeout_s` must be a finite number, not -inf"),
        (np.array([1.0, 2.0]), "`timeout_s` must be a number, not "),
    ],
)
def test_what_is_no_number_or_none_that_counts_is_named(value: float, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        uncanny.annotate_image(IMAGE, model="noop", timeout_s=value)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize("value", ["nan", "-nan", "inf", "1e999"])
def test_the_command_line_takes_no_such_number(value: str) -> None:
    done = uncanny_here("annotate", IMAGE, "-m", "noop", "-o", "run", "--temperature", value)
    assert done.code == 2
    words = "must be a number" if "nan" in value else "must be from 0 to"
    assert f"--temperature {words}" in done.told


def test_all_functions_are_here() -> None:
    assert set(RIGHT) == {
        f"{room}{name}"
        for room, names in (
            ("", uncanny),
            *((f"{n}.", getattr(uncanny, n)) for n in PROTOCOLS),
        )
        for name in names.__all__
        if inspect.isfunction(getattr(names, name)) and not name.endswith("_async")
    }


def call(function: Any, arguments: Mapping[str, Any]) -> None:
    """With what it takes by place in its place; there a wrong value is one of several."""
    by_name = dict(arguments)
    by_place: list[Any] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            values = by_name.pop(parameter.name)
            by_place += values if isinstance(values, tuple) else [values, IMAGE]
    function(*by_place, **by_name)


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_a_wrong_value_is_refused_in_our_words(
    name: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some values are paths after all
    function: Any = uncanny
    for part in name.split("."):
        function = getattr(function, part)
    parameters = inspect.signature(function).parameters
    names = [*(each for each in parameters if each != "options")]
    if "options" in parameters:
        names += [*AnnotatorParameters.model_fields]
    number = 0
    for parameter in dict.fromkeys(names):
        for value in WRONG:
            number += 1
            arguments = RIGHT[name](folder / f"{name}-{number}")
            try:
                call(function, arguments | {parameter: value})
            except UncannyError:
                continue
            except Exception as error:
                raise AssertionError(f"{parameter}={value!r}: {type(error).__name__}: {error}") from error
