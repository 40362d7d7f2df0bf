"""A scripted model for the packed schedule: it sees what it is told to, and answers by what it is asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import orjson

from tests.agents.specialists import listed
from tests.client.scripted import Line, ScriptedProvider, guarded, picture
from uncanny.agents.common.annotate_context import AnnotateContext, PackedState
from uncanny.agents.config import AnnotateConfig
from uncanny.answers.boxes import box_format
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.graphs.packed import PackedNodes, packed_graph
from uncanny.models.base import ModelRequest, ModelResponse
from uncanny.prompts import prompt_set

Rows = Sequence[Mapping[str, Any]]


def block(request: ModelRequest, tag: str) -> Rows:
    """The JSON lines in the block of that name of the first user turn."""
    text = next(
        part
        for turn in request.messages
        if turn.role == "user"
        for part in turn.parts
        if isinstance(part, str)
    )
    match = re.search(rf"<{tag}>\n(.*?)\n</{tag}>", text, re.DOTALL)
    return [orjson.loads(line) for line in match[1].splitlines()] if match and match[1].strip() else []


def keep_all(rows: Rows) -> list[dict[str, Any]]:
    """Every finding in an entry of its own."""
    return [
        {
            "ids": [row["id"]],
            "why": "seen",
            "decision": "keep",
            "phenomenon": row["phenomenon"],
            "reasoning": row["reasoning"],
        }
        for row in rows
    ]


def write_all(rows: Rows) -> list[dict[str, Any]]:
    """Every fault in a text of its own."""
    return [
        {
            "ids": [row["id"]],
            "name": "fault",
            "phenomenon": row["phenomenon"],
            "reasoning": row["reasoning"],
            "realism": 10,
            "kind": "count",
            "objects": row.get("objects", []),
        }
        for row in rows
    ]


@dataclass
class PackedSpecialists:
    """`attributes` and `relations` are faults by the object they are about, `scene` those of the scan.

    `boxes` are those of the objects. `judge` and `write` make the entries of the last two; `override` is
    asked first, and None from it leaves the answer as it is.
    """

    objects: Sequence[str] = ()
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    relations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    scene: Sequence[str] = ()
    boxes: Mapping[str, Sequence[float]] = field(default_factory=dict)
    judge: Callable[[Rows], Sequence[object]] = keep_all
    write: Callable[[Rows], Sequence[object]] = write_all
    override: Callable[[ModelRequest], Line | None] = lambda _request: None

    def __post_init__(self) -> None:
        self.model = ScriptedProvider(self._answer)

    def _answer(self, request: ModelRequest) -> Line:
        answer = self.override(request)
        return self._usual(request) if answer is None else answer

    def _usual(self, request: ModelRequest) -> ModelResponse:
        key = box_format(self.model.name).key
        match request.agent:
            case "ObjectPerceiver":
                return listed(
                    "objects",
                    *(
                        {"name": name, "description": "there", key: self.boxes.get(name, [])}
                        for name in self.objects
                    ),
                )
            case "SceneScanner":
                return listed(
                    "findings",
                    *({"objects": ["scene"], "observed": each, "explanation": "x"} for each in self.scene),
                )
            case "AttributeAnalyzer":
                return listed("findings", *self._faults(request, self.attributes))
            case "RelationReasoner":
                return listed("findings", *self._faults(request, self.relations))
            case "AnomalyIntegrator":
                return listed("entries", *self.judge(block(request, "findings")))
        return listed("anomalies", *self.write(block(request, "faults")))

    def _faults(self, request: ModelRequest, faults: Mapping[str, Sequence[str]]) -> list[dict[str, object]]:
        return [
            {"objects": [str(row["id"])], "observed": each, "explanation": "x"}
            for row in block(request, "objects")
            for each in faults.get(row["name"], ())
        ]

    def requests(self, agent: str) -> list[ModelRequest]:
        return [request for request in self.model.requests if request.agent == agent]

    def context(
        self, size: tuple[int, int] | None = None, source: Path | None = None, **config: Any
    ) -> AnnotateContext:
        return AnnotateContext(
            ModelClient({"": [guarded(self.model, concurrency=8)]}),
            CallScope("a.png"),
            AnnotateConfig(**config),
            prompt_set("packed"),
            picture(),
            size=size,
            source=source,
        )

    async def run(self, nodes: PackedNodes | None = None, **config: Any) -> PackedState:
        context = self.context(**config)
        return cast("PackedState", await packed_graph(nodes).ainvoke({"image": "a.png"}, context=context))


TWELVE = [f"thing {number}" for number in range(1, 13)]


def fates(state: PackedState) -> list[tuple[str, str, int | None]]:
    """What each finding says, what became of it, and the place of the anomaly that it went into."""
    return [(each.phenomenon, each.fate, each.anomaly) for each in state["candidates"]]
