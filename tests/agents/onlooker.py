"""A scripted model before a picture with planted faults, which it sees in some steps and in no others.

A step is shown some of the picture's objects, or the whole of it. What it is not asked about it does not say,
however good its eyes are; that is what tells one schedule from another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from tests.agents.packed_specialists import (
    LARGE,
    PackedSpecialists,
    Rows,
    block,
    fault,
    keep_all,
    noise,
    sent,
    write_all,
)
from tests.agents.specialists import listed
from tests.client.scripted import Line, ScriptedProvider, guarded, text_response, texts
from uncanny.agents.common.annotate_context import AnnotateContext, PackedState
from uncanny.agents.config import AnnotateConfig
from uncanny.agents.steps import SCHEDULES, ScheduleName
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.errors import RequestRejectedError
from uncanny.graphs.packed import schedule_graph
from uncanny.models.base import ModelRequest
from uncanny.prompts import prompt_set

# `look` is an open look at the whole picture: the first call of the packed schedule, the one of the single.
Eye = Literal["attributes", "relations", "look"]
EYES: Final[Mapping[str, Eye]] = {
    "AttributeAnalyzer": "attributes",
    "RelationReasoner": "relations",
    "SceneScanner": "look",
}


def one_entry_a_fault(rows: Rows) -> list[dict[str, Any]]:
    """Findings in the same words are one fault."""
    entries: dict[str, dict[str, Any]] = {}
    for entry in keep_all(rows):
        entries.setdefault(entry["phenomenon"], entry | {"ids": []})["ids"] += entry["ids"]
    return list(entries.values())


def keep_the_first(rows: Rows) -> list[dict[str, Any]]:
    """Loses count after one finding."""
    return keep_all(rows[:1])


@dataclass
class Onlooker:
    """`faults` are texts with the objects each is about, and `sees` which of them by eye.

    An eye of `closed` answers nothing when it is asked about that object. `mirror` is a large one among them.
    `judge` makes the entries of the packed schedule's integrator; None is for one that does not answer.
    """

    objects: Sequence[str]
    faults: Mapping[str, Sequence[str]]
    sees: Collection[tuple[Eye, str]]
    closed: Collection[tuple[Eye, str]] = ()
    judge: Callable[[Rows], Sequence[object]] | None = one_entry_a_fault
    mirror: str = ""
    model: ScriptedProvider = field(init=False)

    async def anomalies(self, schedule: ScheduleName, **config: Any) -> list[str]:
        """The texts of what a schedule reports, in its order."""
        answers = {"packed": self._packed, "paper": self._paper, "single": self._single}
        self.model = ScriptedProvider(answers[schedule])
        context = AnnotateContext(
            ModelClient({"": [guarded(self.model)]}),
            CallScope("a.png"),
            AnnotateConfig(schedule=schedule, **config),
            prompt_set(SCHEDULES[schedule].prompts),
            sent(),
            source=noise(),
        )
        graph = cast("Any", schedule_graph(schedule))
        state = cast("PackedState", await graph.ainvoke({"image": "a.png"}, context=context))
        return [each.phenomenon for each in state["anomalies"]]

    def _seen(self, eye: Eye, asked_about: Collection[str] = ()) -> list[str]:
        """Faults of the objects asked about; an open look is at everything."""
        return [
            text
            for text, concerned in self.faults.items()
            if (eye, text) in self.sees and (eye == "look" or set(concerned) & set(asked_about))
        ]

    def _mentioned(self, request: ModelRequest) -> list[str]:
        """Faults that the question repeats: what a step without eyes of its own goes by."""
        asked = texts(request, "user")[0]
        return [text for text in self.faults if text in asked]

    def _is_closed(self, eye: Eye, asked_about: Collection[str]) -> bool:
        return any((eye, name) in self.closed for name in asked_about)

    def _packed(self, request: ModelRequest) -> Line:
        match request.agent:
            case "ObjectPerceiver":
                seen = [fault(text, "scene") for text in self._seen("look")]
                return PackedSpecialists(
                    self.objects, scene=seen, boxes={self.mirror: LARGE}, sorts={self.mirror: "reflection"}
                ).answer(request)
            case "AttributeAnalyzer" | "RelationReasoner":
                eye, parts = EYES[request.agent], dict[str, int]()
                for row in block(request, "parts"):
                    shown = row.get("shows", ()) if row["part"] else [self.mirror]
                    parts |= dict.fromkeys(shown, row["part"])
                if self._is_closed(eye, parts):
                    return text_response("I would rather not.")
                found = [
                    fault(text, name, part=parts[name])
                    for text in self._seen(eye, parts)
                    for name in self.faults[text]
                    if name in parts
                ]
                return listed("findings", *found)
            case "AnomalyIntegrator":
                if self.judge is None:
                    return RequestRejectedError("I would rather not.")
                return listed("entries", *self.judge(block(request, "findings")))
        return listed("anomalies", *write_all(block(request, "faults")))

    def _paper(self, request: ModelRequest) -> Line:
        about = request.subject or ""
        match request.agent, request.step:
            case "ObjectPerceiver", _:
                return self._inventory()
            case (("AttributeAnalyzer" | "RelationReasoner"), step):
                eye = EYES[request.agent]
                if self._is_closed(eye, [about]):
                    return RequestRejectedError("I would rather not.")
                seen = self._seen(eye, [about])
                if step == 1:
                    return text_response("; ".join(seen) or "Nothing is wrong.")
                if eye == "attributes":
                    found = [{"name": "odd", "observed": text, "explanation": "x"} for text in seen]
                else:
                    found = [{"objects": about, "observed": text, "reasoning": "x"} for text in seen]
                return listed(eye, *found)
            case "AnomalyIntegrator", 1:
                return text_response("; ".join(self._mentioned(request)))
            case "AnomalyIntegrator", _:
                seen = self._mentioned(request)
                return listed(
                    "findings", *({"object": about, "phenomenon": text, "explanation": "x"} for text in seen)
                )
        fault = {"name": "odd", "reasoning": "x", "severity": 5, "objects": []}
        return listed("anomalies", *(fault | {"phenomenon": text} for text in self._mentioned(request)))

    def _single(self, _request: ModelRequest) -> Line:
        entries = [
            f"@{number}. Name: odd\nPhenomenon: {text}\nReasoning: x\nRealism: 5"
            for number, text in enumerate(self._seen("look"), start=1)
        ]
        return text_response("\n".join(entries) or "No anomalies.")

    def _inventory(self) -> Line:
        return listed("objects", *({"name": name, "description": "there"} for name in self.objects))
