"""A scripted model for the packed schedule: it sees what it is told to, and answers by what it is asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import orjson
from PIL import Image

from tests.agents.specialists import listed
from tests.client.scripted import Line, ScriptedProvider, guarded, picture, text_response
from uncanny.agents.common.annotate_context import AnnotateContext, PackedState
from uncanny.agents.config import AnnotateConfig
from uncanny.answers.boxes import box_format
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.graphs.packed import PackedNodes, packed_graph
from uncanny.models.base import ModelRequest, ModelResponse, SentImage
from uncanny.prompts import prompt_set

Row = Mapping[str, Any]
Rows = Sequence[Row]

SIDE: Final = 1024


@cache
def noise(width: int = SIDE, height: int = SIDE) -> bytes:
    """A PNG file with detail everywhere."""
    grid = np.random.default_rng(7).integers(0, 256, (-(-height // 8), -(-width // 8)), dtype=np.uint8)
    pixels = np.repeat(np.repeat(grid, 8, axis=0), 8, axis=1)[:height, :width]
    file = BytesIO()
    Image.fromarray(pixels).save(file, "PNG", compress_level=1)
    return file.getvalue()


@cache
def sent(width: int = SIDE, height: int = SIDE) -> SentImage:
    """The same as models see it."""
    return picture(noise(width, height), width, height)


def block(request: ModelRequest, tag: str) -> Rows:
    """The JSON lines in the block of that name of the first user turn."""
    turn = next(turn for turn in request.messages if turn.role == "user")
    text = "\n".join(part for part in turn.parts if isinstance(part, str))
    match = re.search(rf"<{tag}>\n(.*?)\n</{tag}>", text, re.DOTALL)
    return [orjson.loads(line) for line in match[1].splitlines()] if match and match[1].strip() else []


def keep(row: Row, **other: object) -> dict[str, Any]:
    """An entry that keeps one finding."""
    return {
        "ids": [row["id"]],
        "why": "seen",
        "decision": "keep",
        "confidence": row.get("confidence"),
        "name": "fault",
        "phenomenon": row["phenomenon"],
        "reasoning": row["reasoning"],
        "realism": 10,
        "kind": "count",
        "objects": row.get("objects", []),
        **other,
    }


def drop(*ids: int, why: str = "not there") -> dict[str, Any]:
    """An entry that drops findings."""
    return {"ids": ids, "why": why, "decision": "drop"}


def keep_all(rows: Rows) -> list[dict[str, Any]]:
    """Every finding in an entry of its own."""
    return [keep(row) for row in rows]


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


def fault(observed: str, *objects: str, **more: object) -> dict[str, Any]:
    """A fault of which the model is sure."""
    return {"objects": list(objects), "observed": observed, "explanation": "x", "confidence": 95, **more}


def doubt(observed: str, *objects: str, box: Sequence[float] = (), **more: object) -> dict[str, Any]:
    """A fault of which the model is not sure."""
    return fault(observed, *objects, **{"confidence": 40, "bbox_2d": box, **more})


# Of sixteen things on a grid of four by four, each of which may have an enlarged part of its own, and of one
# that is too large for that.
LARGE: Final = (550, 550, 1000, 1000)
GRID: Final = tuple(
    (250 * column + 95, 250 * row + 95, 250 * column + 155, 250 * row + 155)
    for row in range(4)
    for column in range(4)
)


@dataclass
class PackedSpecialists:
    """`attributes` and `relations` are faults by the object they are about, `scene` what the open look finds.

    `boxes` are those of objects, in thousandths, `GRID` where none is given; `sorts` are what they are.
    `settled` is the confidence, in percent, that a closer look leaves of a doubt by its text; 80 where none
    is given, no answer for None. `judge` and `write` make the entries of the last two; `override` is asked
    first, and None from it leaves the answer as it is. `others` are asked by agents of that name.
    """

    objects: Sequence[str] = ()
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    relations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    scene: Sequence[str | Mapping[str, Any]] = ()
    boxes: Mapping[str, Sequence[float]] = field(default_factory=dict)
    sorts: Mapping[str, str] = field(default_factory=dict)
    settled: Mapping[str, int | None] = field(default_factory=dict)
    judge: Callable[[Rows], Sequence[object]] = keep_all
    write: Callable[[Rows], Sequence[object]] = write_all
    override: Callable[[ModelRequest], Line | None] = lambda _request: None
    name: str = "script/one"
    others: Mapping[str, ScriptedProvider] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = ScriptedProvider(self.answer, name=self.name)

    def answer(self, request: ModelRequest) -> Line:
        answer = self.override(request)
        return self._usual(request) if answer is None else answer

    def _usual(self, request: ModelRequest) -> ModelResponse:
        match request.agent:
            case "ObjectPerceiver" | "SceneScanner":
                lists = {"findings": self._scene(), "inventory": self._inventory()}
                assert request.schema is not None
                return text_response(orjson.dumps({key: lists[key] for key in request.schema.lists}).decode())
            case "AttributeAnalyzer":
                return listed("findings", *self._about_parts(request, self.attributes))
            case "RelationReasoner":
                return listed("findings", *self._about_parts(request, self.relations))
            case "AnomalyIntegrator":
                return listed("entries", *self.judge(block(request, "findings")))
        return listed("anomalies", *self.write(block(request, "faults")))

    def _inventory(self) -> list[dict[str, Any]]:
        key = box_format(self.model.name).key
        places = dict(zip(self.objects, GRID, strict=False))
        return [
            {"name": name, "description": "there", "sort": self.sorts.get(name, "thing")}
            | {key: self.boxes.get(name, places.get(name, ()))}
            for name in self.objects
        ]

    def _scene(self) -> list[Mapping[str, Any]]:
        return [fault(each, "scene") if isinstance(each, str) else each for each in self.scene]

    def _about_parts(
        self, request: ModelRequest, faults: Mapping[str, Sequence[str]]
    ) -> list[dict[str, object]]:
        rows = block(request, "parts")
        shown = {name for row in rows for name in row.get("shows", ())}
        # In the whole image it sees what no part shows.
        rest = [name for name in faults if name not in shown]
        found = [
            fault(each, name, part=row["part"], doubt=0)
            for row in rows
            for name in (row.get("shows", ()) if row["part"] else rest)
            for each in faults.get(name, ())
        ]
        doubts = [(row["part"], each) for row in rows for each in row.get("doubts", ())]
        for part, each in doubts:
            left = self.settled.get(each["doubt"], 80)
            if left is not None:
                text = each["doubt"] if left else "all is in order"
                found.append(fault(text, part=part, doubt=each["id"], confidence=left))
        return found

    def requests(self, agent: str) -> list[ModelRequest]:
        return [request for request in self.model.requests if request.agent == agent]

    def asked(self, agent: str) -> list[list[int]]:
        """The numbers of the parts in each question to an agent."""
        return [[row["part"] for row in block(request, "parts")] for request in self.requests(agent)]

    def context(
        self,
        size: tuple[int, int] | None = None,
        source: Path | bytes | None = None,
        *,
        image: SentImage | None = None,
        **config: Any,
    ) -> AnnotateContext:
        others = {agent: [guarded(model, concurrency=8)] for agent, model in self.others.items()}
        return AnnotateContext(
            ModelClient({"": [guarded(self.model, concurrency=8)], **others}),
            CallScope("a.png"),
            AnnotateConfig(**config),
            prompt_set("packed"),
            image or sent(),
            size=size,
            source=noise() if source is None else source,
        )

    async def run(
        self, nodes: PackedNodes | None = None, context: AnnotateContext | None = None, **config: Any
    ) -> PackedState:
        context = context or self.context(**config)
        return cast("PackedState", await packed_graph(nodes).ainvoke({"image": "a.png"}, context=context))


TWELVE = [f"thing {number}" for number in range(1, 13)]


def fates(state: PackedState) -> list[tuple[str, str, int | None]]:
    """What each finding says, what became of it, and the place of the anomaly that it went into."""
    return [(each.phenomenon, each.fate, each.anomaly) for each in state["candidates"]]


def errors(state: PackedState) -> list[tuple[str, str | None, str]]:
    """Agent, object and kind of each question without an answer."""
    found = [error for each in state.get("sightings", []) for error in each.get("errors", [])]
    return [(each.agent, each.object, each.kind) for each in [*found, *state.get("errors", [])]]
