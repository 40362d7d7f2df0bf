"""Doubts about relations that no enlarged part shows: they are answered from the whole image."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

import uncanny
from uncanny.demo.scenes import scenes
from uncanny.models import registry
from uncanny.models.base import SentImage

PHOTO = scenes()[0].image_path


class Doubter:
    """Doubts a shadow somewhere, and then sees that all is well."""

    capabilities = uncanny.Capabilities()

    def __init__(self, model: str) -> None:
        self.name = f"doubter/{model}"

    async def generate(self, request: uncanny.ModelRequest) -> uncanny.ModelResponse:
        assert request.schema is not None
        parts = request.messages[-1].parts
        rows: dict[str, list[Any]] = {each: [] for each in request.schema.lists}
        finding = {"objects": ["ball"], "explanation": "x", "kind": "light"}
        if request.agent == "ObjectPerceiver":
            rows["findings"] = [{**finding, "observed": "No shadow", "confidence": 40}]
        elif request.agent == "RelationReasoner":
            assert sum(isinstance(part, SentImage) for part in parts) == 1
            assert '{"part":0,"doubts":[{"id":1,"doubt":"No shadow"}]}' in str(parts[-1])
            rows["findings"] = [{**finding, "part": 0, "doubt": 1, "observed": "A shadow", "confidence": 5}]
        return uncanny.ModelResponse(orjson.dumps(rows).decode())


def test_a_doubt_without_a_place_is_answered_from_the_whole_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_REGISTERED", {"doubter": Doubter})
    calls: list[uncanny.CallRecord] = []
    record = uncanny.annotate_image(PHOTO, model="doubter/any", max_regions=0, on_call=calls.append)
    assert (record.status, record.anomalies) == ("ok", ())
    (dropped,) = (record.model_extra or {})["candidates"]
    assert (dropped["fate"], dropped["why"]) == ("dropped", "A shadow")
    assert (dropped["first_confidence"], dropped["confidence"]) == (0.4, 0.05)
    assert [(call.agent, call.object) for call in calls] == [
        ("ObjectPerceiver", None),
        ("RelationReasoner", None),
    ]
