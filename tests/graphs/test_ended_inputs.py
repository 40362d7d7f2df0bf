"""What ends an input waits for the calls in flight about it: they are paid for, logged and kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.agents.specialists import Specialists, image_context
from tests.client.scripted import Line, ScriptedProvider, busy, guarded, make_request, picture, text_response
from tests.virtual_time import in_virtual_time
from uncanny.agents.artifact_answerer import ItemContext, QuestionPrompt, answer_item
from uncanny.agents.config import AnnotateConfig
from uncanny.agents.realism_judge import PairContext, judge_pair
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.errors import BudgetError, ModelUnusableError
from uncanny.graphs import studio
from uncanny.graphs.annotate import annotate_graph
from uncanny.graphs.studio import StudioContext
from uncanny.models.base import ModelRequest, Sampling
from uncanny.prompts import prompt_set
from uncanny.records.answer_cache import AnswerCache

SAMPLING = Sampling(0.0, None, 100)
MCQ = prompt_set("mcq")
Walk = Callable[[ModelClient, CallScope], Awaitable[object]]


class Together:
    """A model that is asked `number` questions side by side, fails one of them for good, and answers the
    others only after that."""

    def __init__(self, number: int, answer: Callable[[ModelRequest], Line | Awaitable[Line]]) -> None:
        self._together = asyncio.Barrier(number)
        self._failed = asyncio.Event()
        self._answer = answer
        self.side_by_side: Callable[[ModelRequest], bool] = lambda _: True
        self.failing: Callable[[ModelRequest], bool] = lambda _: False
        self.model = ScriptedProvider(self._script)

    async def _script(self, request: ModelRequest) -> Line:
        if self.side_by_side(request):
            await self._together.wait()
            if self.failing(request):
                # Until the failure has gone as far up as it goes.
                asyncio.get_running_loop().call_later(0.05, self._failed.set)
                return ModelUnusableError("wrong key")
            await self._failed.wait()
        line = self._answer(request)
        return await line if isinstance(line, Awaitable) else line


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[AnswerCache]:
    opened = AnswerCache(tmp_path / "answers")
    yield opened
    opened.close()


async def check_all_came_back(together: Together, number: int, cache: AnswerCache, walk: Walk) -> None:
    scope = CallScope("a.png")
    before = len(together.model.requests)
    with pytest.raises(ModelUnusableError, match="wrong key"):
        await walk(ModelClient({"": [guarded(together.model, concurrency=64)]}, cache=cache), scope)
    assert together.model.now == 0
    assert len(together.model.requests) == len(scope.calls)
    side_by_side = scope.calls[-number:]
    assert sorted(call.outcome for call in side_by_side) == (number - 1) * ["answered"] + ["error"]
    assert len(scope.calls) - before == len(cache) + 1
    assert scope.ended is not None


OBJECTS = ("cup", "table", "hand", "lamp")


@pytest.mark.parametrize(
    ("agent", "step"),
    [("ObjectPerceiver", 1), ("AttributeAnalyzer", 1), ("RelationReasoner", 2), ("AnomalyIntegrator", 2)],
)
@pytest.mark.parametrize("form", ["bulk", "studio"])
async def test_an_image(form: str, agent: str, step: int, cache: AnswerCache) -> None:
    number = 3 if agent == "ObjectPerceiver" else len(OBJECTS)
    specialists = Specialists(*OBJECTS)
    together = Together(number, specialists._answer)
    together.side_by_side = lambda request: (request.agent, request.step) == (agent, step)
    together.failing = lambda request: request.subject == "table" or request.sample == 1

    async def walk(model_client: ModelClient, scope: CallScope) -> object:
        image = image_context(model_client, scope=scope)
        if form == "bulk":
            return await annotate_graph().ainvoke({"image": "a.png"}, context=image)
        studio._contexts["a.png", StudioContext(), "paper"] = image
        try:
            return await studio.paper_graph.ainvoke({"image": "a.png"}, context=StudioContext())
        finally:
            studio._contexts.clear()

    await check_all_came_back(together, number, cache, walk)
    # No object goes on to its next step.
    last = together.model.requests[-1]
    assert (last.agent, last.step) == (agent, step)
    assert sum(together.side_by_side(request) for request in together.model.requests) == number


@pytest.mark.parametrize("form", ["bulk", "studio"])
async def test_scans_of_an_image(form: str, cache: AnswerCache) -> None:
    together = Together(3, Specialists()._answer)
    together.side_by_side = lambda request: request.agent == "SceneScanner"
    together.failing = lambda request: request.sample == 0

    async def walk(model_client: ModelClient, scope: CallScope) -> object:
        image = image_context(model_client, AnnotateConfig(schedule="paper", scene_scans=3), scope=scope)
        if form == "bulk":
            return await annotate_graph().ainvoke({"image": "a.png"}, context=image)
        context = StudioContext(scene_scans=3)
        studio._contexts["a.png", context, "paper"] = image
        try:
            return await studio.paper_graph.ainvoke({"image": "a.png"}, context=context)
        finally:
            studio._contexts.clear()

    await check_all_came_back(together, 3, cache, walk)


async def test_an_item(cache: AnswerCache) -> None:
    together = Together(4, lambda request: text_response(f"on {request.subject}"))
    together.failing = lambda request: request.subject == "q3"
    questions = [QuestionPrompt(f"q{n}", "", f"text {n}", f"q{n}@0", None) for n in range(1, 5)]

    async def walk(model_client: ModelClient, scope: CallScope) -> object:
        context = ItemContext(model_client, scope, SAMPLING, MCQ, questions)
        return await answer_item(context)

    await check_all_came_back(together, 4, cache, walk)


@pytest.mark.parametrize("at", ["original_first", "edited_first"])
async def test_a_pair(at: str, cache: AnswerCache) -> None:
    together = Together(
        2, lambda request: text_response(f"Verdict: {'Yes' if request.subject == 'first' else 'Both'}")
    )
    together.side_by_side = lambda request: request.subject != "first"
    together.failing = lambda request: request.subject == at

    async def walk(model_client: ModelClient, scope: CallScope) -> object:
        images = picture(b"original"), picture(b"edited")
        context = PairContext(model_client, scope, SAMPLING, prompt_set("realism"), *images)
        return await judge_pair(context)

    await check_all_came_back(together, 2, cache, walk)


def test_what_waits_is_not_waited_for() -> None:
    """A question that has been told to come back in a minute, and one that waits for a slot."""

    async def main() -> None:
        first = asyncio.Event()

        async def answer(request: ModelRequest) -> Line:
            if request.subject == "q1":
                first.set()
                return busy(retry_after=60.0)
            await first.wait()
            return ModelUnusableError("wrong key")

        model = ScriptedProvider(answer)
        questions = [QuestionPrompt(f"q{n}", "", f"text {n}", f"q{n}@0", None) for n in range(1, 5)]
        scope = CallScope("item")
        context = ItemContext(
            ModelClient({"": [guarded(model, concurrency=2)]}), scope, SAMPLING, MCQ, questions
        )
        began, tasks = asyncio.get_running_loop().time(), asyncio.all_tasks()
        with pytest.raises(ModelUnusableError, match="wrong key"):
            await answer_item(context)
        assert asyncio.get_running_loop().time() == pytest.approx(began, abs=1.0)
        assert [request.subject for request in model.requests] == ["q1", "q2"]
        assert asyncio.all_tasks() == tasks

    in_virtual_time(main())


async def test_an_interrupt_still_cuts_off_what_is_in_flight() -> None:
    going = asyncio.Event()

    async def answer(_: ModelRequest) -> Line:
        going.set()
        await asyncio.Event().wait()
        raise AssertionError

    model = ScriptedProvider(answer)
    questions = [QuestionPrompt(f"q{n}", "", f"text {n}", f"q{n}@0", None) for n in range(1, 5)]
    context = ItemContext(ModelClient({"": [guarded(model)]}), CallScope("item"), SAMPLING, MCQ, questions)
    walk = asyncio.create_task(answer_item(context))
    await going.wait()
    walk.cancel()
    with pytest.raises(asyncio.CancelledError):
        await walk
    assert model.now == 0


async def test_another_input_goes_on_with_the_models_that_are_left() -> None:
    """One agent's model is unusable: the other's is not given up for that."""

    async def general(_: ModelRequest) -> Line:
        await asyncio.sleep(0)
        return text_response("fine")

    models = {"": ScriptedProvider(general), "Wrong": ScriptedProvider(lambda _: ModelUnusableError("no"))}
    model_client = ModelClient({agent: [guarded(model)] for agent, model in models.items()})
    scope = CallScope("a.png")

    async def ask(agent: str, scope: CallScope) -> str:
        return await model_client.generate(
            make_request(agent=agent), str, prompt="p", repair=str, scope=scope
        )

    with pytest.raises(ModelUnusableError):
        await ask("Wrong", scope)
    with pytest.raises(ModelUnusableError):
        await ask("Other", scope)
    assert await ask("Other", CallScope("b.png")) == "fine"
    assert model_client.endpoints("Other")[0].unavailable is None
    assert len(models[""].requests) == 1


async def test_studio_opens_an_image_anew_that_was_ended_before(tmp_path: Path) -> None:
    image = str(picture_file(tmp_path))
    context = StudioContext(model="noop")
    try:
        ended = await studio.image_context(image, context)
        ended.scope.end(BudgetError("spent"))
        state = await studio.paper_graph.ainvoke({"image": image}, context=context)
        assert state["objects"]
    finally:
        studio._contexts.clear()
        studio._providers.clear()


def picture_file(folder: Path) -> Path:
    from tests.runs.e2e import pictures

    return pictures(folder, 1) / "p00.png"
