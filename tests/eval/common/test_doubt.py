"""Hand-worked doubts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.service.made_review import anomaly
from uncanny.eval.common.anomalies.doubt import Doubt, doubts
from uncanny.schema import Annotation


def record(*anomalies: dict[str, Any], **more: object) -> Annotation:
    known = {
        "image": "a.png",
        "sha256": None,
        "width": 4,
        "height": 4,
        "status": "ok",
        "model": "m",
        "prompts": "p",
    }
    return Annotation.model_validate({**known, "anomalies": anomalies, **more})


def test_each_sign_counts_as_far_as_it_is_known() -> None:
    (doubt,) = doubts(record(anomaly(severity=75)))
    assert doubt.signs == {"realism in the middle": 0.5, "found by one agent only": 1, "object partial": 0}
    assert doubt.value == pytest.approx(0.5)
    assert doubt.reasons == ["realism in the middle", "found by one agent only"]


def test_what_nobody_knows_is_left_out() -> None:
    (doubt,) = doubts(record(anomaly(severity=0, found_by=None, objects=[])))
    assert doubt.signs == {"realism in the middle": 0}
    assert Doubt({}).value == 0.5


def test_a_failed_step_makes_its_objects_partial() -> None:
    error = {"agent": "A", "step": 1, "kind": "k", "message": "m"}
    errors = [error | {"object": "cup"}, error | {"object": None, "objects": ["hand", "ear"]}]
    found = doubts(record(anomaly(), anomaly(objects=["ear"]), anomaly(objects=["foot"]), errors=errors))
    assert [doubt.signs["object partial"] for doubt in found] == [1, 1, 0]


def test_the_integrator_disagrees_where_it_corrected_or_said_nothing() -> None:
    candidates = [
        {"number": 1, "fate": "kept", "anomaly": 0},
        {"number": 2, "fate": "corrected", "anomaly": 1},
        {"number": 3, "fate": "unchecked", "anomaly": 2},
        {"number": 4, "fate": "dropped", "anomaly": None},
        "nonsense",
    ]
    found = doubts(record(anomaly(), anomaly(), anomaly(), anomaly(), candidates=candidates))
    assert [doubt.signs.get("agents disagree") for doubt in found] == [0, 1, 1, None]
