"""Asking the questions of a set: the public functions, and the run as an object; its task is in `task.py`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from uncanny.errors import UsageError
from uncanny.eval.common.frames import Cells
from uncanny.eval.common.json_fields import json_of
from uncanny.eval.common.parameters import ReportParameters
from uncanny.eval.common.run_result import Records, RunResult
from uncanny.eval.mcq.data.answers import ANSWERS_FILE
from uncanny.eval.mcq.data.items import Answer, ItemSet
from uncanny.eval.mcq.data.load import ItemSource, is_bundled, load, load_run_items
from uncanny.eval.mcq.data.overlay import OVERLAYS
from uncanny.eval.mcq.data.texts import question_text, system_text
from uncanny.eval.mcq.parameters import (
    McqConfig,
    McqEachParameters,
    McqParameters,
    McqShared,
    RunScoreParameters,
)
from uncanny.eval.mcq.task import STATUSES, UNSEEN, McqTask
from uncanny.images.prepared import stored_size
from uncanny.models.tokens import image_tokens, text_tokens
from uncanny.parameters import takes
from uncanny.prompts.folders import read_prompts
from uncanny.records.run_folder import RunFolder, check_no_links
from uncanny.runs.forecast import Forecast, UsageCounter, forecast_inputs, input_words, pending_inputs
from uncanny.runs.run import RunEnd, run_with
from uncanny.runs.several import Turn, run_each_model
from uncanny.runs.sync import blocking
from uncanny.wording import cost

if TYPE_CHECKING:
    from uncanny.eval.common.pages.pictures import PicturesMode
    from uncanny.eval.mcq.score.result import McqScores


class McqRun(RunResult[Answer]):
    """A run of the multiple-choice questions: an answer a question, which is a row of the data frame."""

    task = "mcq"
    record_file = ANSWERS_FILE
    record_type = Answer
    record_key = ("id", "question")
    statuses = STATUSES
    columns: ClassVar[Cells] = dict.fromkeys(
        ("id", "question", "raw", "outcome", "error", "model", "sha256"), "text"
    )

    def __init__(
        self, path: str | os.PathLike[str], end: RunEnd | None = None, items: ItemSet | None = None
    ) -> None:
        super().__init__(Path(path), end)
        self._items = items

    @property
    def items(self) -> ItemSet:
        """What was asked: the items of this process, or those that `run.json` names. Raises UsageError."""
        return load_run_items(self.path) if self._items is None else self._items

    @property
    def answers(self) -> Records[Answer]:
        """One for each question, in order of items and questions when the run is finished."""
        return self.records

    @takes(RunScoreParameters)
    def score(self, parameters: RunScoreParameters) -> McqScores:
        """The scores of this run alone, as `uncanny.mcq.score` makes them."""
        from uncanny.eval.mcq.score.score import score

        return score(self.items, self, **parameters.given)

    def report(self, out: str | os.PathLike[str] | None = None, *, pictures: PicturesMode = "link") -> Path:
        """Write the page of the scores, `report.html` in the run's folder unless `out` names another file.

        Full-size `pictures` are linked from their files, or embedded in the page.
        """
        drawn = self.path / OVERLAYS
        check_no_links(drawn)
        return self.score().report(
            RunFolder(self.path).report if out is None else out,
            published=False,
            overlays=drawn if drawn.is_dir() else None,
            pictures=pictures,
        )

    def files_json(self) -> dict[str, str | None]:
        return {"answers": str(self.path / self.record_file), "report": None}

    def found_json(self) -> dict[str, Any]:
        failed = (answer for answer in self.answers if answer.outcome == "error")
        return {"failures": [json_of(answer, "id question error") for answer in failed]}


@takes(McqParameters, "out")
async def run_async(items: ItemSource, parameters: McqParameters) -> McqRun:
    """Ask a model every question of a set, with one call per question.

    `items` are those of `load`, or anything it takes: an item file, `scenes`, or items. Answers go to the
    folder `out` as they come. The same call resumes a run that was interrupted, and asks again if a question
    or its image was changed.

    Returns the run, even if it ended early or some calls failed: see its `summary` and the answers'
    `outcome`. Raises UsageError for invalid parameters, and ModelUnusableError if the model cannot be called
    at all.

    `run_async` is the same for programs with an event loop. `run_each` asks several models.

    >>> items = uncanny.mcq.load("scenes")[:8]
    >>> run = uncanny.mcq.run(items, model="demo", out=out)
    >>> run.score()["demo"].splits["artifact"].all_q1_4
    0.6666666666666666
    >>> len(asyncio.run(uncanny.mcq.run_async(items, model="demo", out=out)).answers)
    31

    Source: SalArt-VQA, section 4.1.
    """
    source = _source(items, parameters)
    return await _ask(source, parameters, Turn.alone(parameters).check())


run = blocking(run_async)


@takes(McqEachParameters, "out")
async def run_each_async(items: ItemSource, parameters: McqEachParameters) -> dict[str, McqRun]:
    """Ask several models, one after the other, each in its own run folder in `out`. Returns runs by model.

    Limits apply to all models together. If one model fails, the others still run; its error is raised at the
    end. See `run` for the rest.

    >>> runs = uncanny.mcq.run_each("scenes", models=["demo"], out=out, limit=2)
    >>> runs["demo"].summary.state
    'finished'
    """
    return await run_each_model(parameters, partial(_ask, _source(items, parameters), parameters))


run_each = blocking(run_each_async)


def _source(items: ItemSource, parameters: McqShared) -> ItemSource:
    """The items, read once for all models; the bundled set by its name has a copy in each run folder."""
    bundled = isinstance(items, str | os.PathLike) and is_bundled(items)
    source = items if bundled else load(items, root=parameters.root)
    if not source:
        raise UsageError("There are no items to ask about", remedy="Give at least one.")
    return source


def mcq_task(
    source: ItemSource,
    parameters: McqParameters | McqEachParameters,
    turn: Turn,
    *,
    folder: Path | None = None,
) -> McqTask:
    """The task of asking a model; a bundled set is copied into `folder`. Raises UsageError. Blocking."""
    prompts = read_prompts("mcq", parameters.prompts)  # before anything is written
    return McqTask(
        folder=RunFolder(turn.folder),
        # A bundled set that the folder holds already is read from there, and refused if it was changed.
        items=load(source, root=parameters.root, folder=folder),
        models=turn.models,
        options=turn.options,
        config=parameters.part(McqConfig),
        prompts=prompts,
    )


async def _ask(source: ItemSource, parameters: McqParameters | McqEachParameters, turn: Turn) -> McqRun:
    task = mcq_task(source, parameters, turn, folder=turn.folder)
    return McqRun(turn.folder, await run_with(task, parameters), task.items)


def page_of(run: Path, parameters: ReportParameters) -> Path:
    """Write the page of a run, as `uncanny.report` does."""
    return McqRun(run).report(parameters.out, pictures=parameters.pictures)


# A letter, or a letter in a short JSON object; reasoning models use far more.
ANSWER_TOKENS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class McqForecast(Forecast):
    """What is left of a run of questions, a call each.

    `pending` are the items with a question to ask. An image that is `unreadable` counts with its text only.
    The prefix cache is not counted on: how much of an image's four questions it covers depends on the
    provider.
    """

    unit = "items"

    def inputs_json(self) -> dict[str, Any]:
        return {self.unit: self.inputs}

    def lines(self) -> list[str]:
        tokens = input_words("{:,}".format, self.usage)
        words = self.cost_words()
        if self.cost_usd is not None:
            words = f"{cost(self.cost_usd)} without the prefix cache"
        return [
            f"Items    {self.inputs:,}, {self.usage.calls:,} questions to ask, a call each",
            f"Tokens   about {tokens}, {self.output_tokens:,} out without reasoning",
            f"Cost     {words}",
        ]


@takes(McqParameters)
def forecast(items: ItemSource, parameters: McqParameters) -> McqForecast:
    """Forecast the calls, tokens and cost of `run` with the same parameters; see `annotate_forecast`.

    >>> forecast = uncanny.mcq.forecast("scenes", model="openai/gpt-4o")
    >>> forecast.inputs, forecast.calls_usual
    (34, 129)
    >>> forecast.cost_usd > 0
    True
    """
    task = mcq_task(items, parameters, Turn.alone(parameters))
    prices = task.price_table()
    pending, texts = pending_inputs(task), task.prompts
    counter, unreadable = UsageCounter(task.models.model), 0
    images: dict[str, int | None] = {}
    for item, question in task.calls(pending):
        text = text_tokens(system_text(item, texts)) + text_tokens(question_text(item, question, texts))
        if question in UNSEEN:
            counter.add(text, output=ANSWER_TOKENS)
            continue
        if item.image not in images:
            size = stored_size(task.items.image_path(item))
            unreadable += size is None
            images[item.image] = 0 if size is None else image_tokens(str(counter.model), *size)
        counter.add(text, images[item.image], output=ANSWER_TOKENS)
    inputs = forecast_inputs(
        task.models,
        inputs=len(task.items[: task.options.limit]),
        pending=len(pending),
        unreadable=unreadable,
    )
    return McqForecast.of_calls(inputs, counter, prices)
