"""A scripted model that answers each agent's questions, and an image to ask it about."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import orjson

from tests.client.scripted import CAPABILITIES, Line, ScriptedProvider, guarded, picture, text_response
from uncanny.agents.common.annotate_context import AnnotateContext
from uncanny.agents.config import AnnotateConfig
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.models.base import Capabilities, ModelRequest, ModelResponse, SentImage
from uncanny.prompts import prompt_set
from uncanny.schema import SceneObject

Answer = Callable[[ModelRequest], Line | Awaitable[Line]]


def listed(key: str, *items: object) -> ModelResponse:
    return text_response(orjson.dumps({key: items}).decode())


def scene_object(name: str, description: str = "It stands there.") -> SceneObject:
    return SceneObject(name=name, description=description)


class Specialists:
    """Finds the given objects and one fault of each kind with every one of them.

    `answers` replaces the answer of a step, or of a step about one object, by `(agent, step, subject)`; a
    subject of None stands for every subject.
    """

    def __init__(self, *objects: str, capabilities: Capabilities = CAPABILITIES) -> None:
        self.objects = objects
        self.answers: dict[tuple[str, int, str | None], Answer] = {}
        self.model = ScriptedProvider(self._answer, capabilities=capabilities)

    def _answer(self, request: ModelRequest) -> Line | Awaitable[Line]:
        for subject in (request.subject, None):
            answer = self.answers.get((request.agent, request.step, subject))
            if answer is not None:
                return answer(request)
        about = request.subject or "scene"
        match request.agent, request.step:
            case "ObjectPerceiver", _:
                return listed("objects", *(scene_object(name).model_dump() for name in self.objects))
            case "AttributeAnalyzer", 2:
                return listed(
                    "attributes", {"name": "odd", "observed": f"{about} is odd", "explanation": "x"}
                )
            case "RelationReasoner", 2:
                return listed("relations", {"objects": [about], "observed": "it floats", "reasoning": "x"})
            case ("AnomalyIntegrator", 2) | ("SceneScanner", _):
                seen = f"{about} {request.sample}"
                return listed("findings", {"object": about, "phenomenon": seen, "explanation": "x"})
            case "AnomalyFormatter", _:
                fault = {"name": "odd", "phenomenon": "all", "reasoning": "x", "severity": 7, "objects": []}
                return listed("anomalies", fault)
        return text_response(f"Notes on {about}.")

    def requests(self, agent: str, step: int | None = None) -> list[ModelRequest]:
        return [
            request
            for request in self.model.requests
            if request.agent == agent and step in (None, request.step)
        ]

    def context(
        self, config: AnnotateConfig | None = None, image: SentImage | None = None, concurrency: int = 8
    ) -> AnnotateContext:
        model_client = ModelClient({"": [guarded(self.model, concurrency=concurrency)]})
        return image_context(model_client, config, image)


def image_context(
    model_client: ModelClient,
    config: AnnotateConfig | None = None,
    image: SentImage | None = None,
    scope: CallScope | None = None,
) -> AnnotateContext:
    """A context of `a.png`, with the texts of annotation."""
    return AnnotateContext(
        model_client,
        scope or CallScope("a.png"),
        config or AnnotateConfig(schedule="paper"),
        prompt_set("annotate"),
        image or picture(),
    )


def user_parts(request: ModelRequest) -> Sequence[object]:
    """The parts of the first user turn."""
    return next(turn for turn in request.messages if turn.role == "user").parts
