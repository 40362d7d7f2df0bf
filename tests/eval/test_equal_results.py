"""Results can be compared: with a copy, across processes, and with others, without an error from an array."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import uncanny
from tests.bundled_runs import BundledRuns
from tests.doors import every_module


def holds_arrays(kind: type[Any], module: ModuleType) -> bool:
    aliases = [
        name for name, value in vars(module).items() if getattr(value, "__origin__", None) is np.ndarray
    ]
    arrays = re.compile(rf"\b({'|'.join([*aliases, 'NDArray', 'ndarray'])})\b")
    return any(each.compare and arrays.search(str(each.type)) for each in dataclasses.fields(kind))


@pytest.mark.slow
def test_no_dataclass_leaves_the_comparison_of_arrays_to_python() -> None:
    """`==` of arrays is an array, which is neither true nor false."""
    found = [
        (module, kind)
        for module in every_module()
        for kind in vars(module).values()
        if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ == module.__name__
    ]
    assert len(found) > 300
    held = [kind for module, kind in found if holds_arrays(kind, module)]
    assert len(held) > 10
    assert not [kind for kind in held if kind.__dataclass_params__.eq]  # type: ignore[attr-defined]


def test_scores_are_equal_to_their_copies_and_to_no_others(bundled_run: BundledRuns) -> None:
    run = uncanny.AnnotateRun(bundled_run("annotate").path)
    scores = uncanny.semantic.score(run, truth="scenes", similarity="chrf", resamples=20)
    (name,) = scores.predictions
    columns = scores.predictions[name].columns
    assert len(columns.images) > 2
    for same in (copy.deepcopy(scores), pickle.loads(pickle.dumps(scores))):
        assert same == scores
    semap = {protocol: dict(views) for protocol, views in columns.semap.items()}
    semap["paper"]["full"] = semap["paper"]["full"] + 1
    for other in (replace(columns, semap=semap), replace(columns, n_true=columns.n_true[1:]), columns.images):
        assert columns != other
    assert uncanny.semantic.score(run, truth="scenes", similarity="chrf", resamples=30) != scores
