"""Asking the questions of a set: the public `run`, and the run as an object; its task is in `task.py`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Unpack, cast, overload

from uncanny.errors import UsageError
from uncanny.eval.common.frames import Cells
from uncanny.eval.common.run_result import Records, RunResult
from uncanny.eval.mcq.data.answers import ANSWERS_FILE
from uncanny.eval.mcq.data.items import Answer, ItemSet
from uncanny.eval.mcq.data.load import ItemSource, is_bundled, load, load_run_items
from uncanny.eval.mcq.data.overlay import OVERLAYS
from uncanny.eval.mcq.task import STATUS_OF, STATUSES, McqConfig, McqTask
from uncanny.parameters import called_right
from uncanny.prompts.folders import read_prompts
from uncanny.records.run_folder import RunFolder, check_no_links
from uncanny.runs.config import (
    AskOptions,
    ModelOptions,
    RunOptions,
    check_options,
)
from uncanny.runs.run import RunEnd, run_with
from uncanny.runs.several import run_models
from uncanny.runs.sync import blocking

if TYPE_CHECKING:
    from uncanny.eval.common.pictures import PicturesMode
    from uncanny.eval.mcq.score.result import McqScores
    from uncanny.eval.mcq.score.score import ScoreOptions


class McqOptions(AskOptions, total=False):
    """The keyword options of `run`: those of every function that asks models, and its own."""

    root: str | os.PathLike[str] | None
    temperature: float | None
    top_p: float | None
    max_output_tokens: int
    control: bool
    blind: bool


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

    def __fspath__(self) -> str:
        return str(self.path)

    def status(self, record: Answer) -> str:
        return STATUS_OF[record.outcome]

    @property
    def items(self) -> ItemSet:
        """What was asked: the items of this process, or those that `run.json` names. Raises UsageError."""
        return load_run_items(self.path) if self._items is None else self._items

    @property
    def answers(self) -> Records[Answer]:
        """One for each question, in order of items and questions when the run is finished."""
        return self.records

    def score(self, **options: Unpack[ScoreOptions]) -> McqScores:
        """The scores of this run alone; `options` are those of `uncanny.mcq.score`."""
        from uncanny.eval.mcq.score.score import score

        return score(self.items, self, **options)

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

    def to_json(self) -> dict[str, Any]:
        """What `uncanny mcq run --json` prints. There is no page: it belongs to the scores."""
        end, summary = self.end, self.summary
        manifest = self.manifest.written() if end is None else end.manifest
        return {
            "run": str(self.path),
            "state": manifest.get("state"),
            "answers": str(self.path / ANSWERS_FILE),
            "report": None,
            "totals": manifest.get("totals"),
            "failures": [
                {"id": answer.id, "question": answer.question, "error": answer.error}
                for answer in self.answers
                if answer.outcome == "error"
            ],
            "warnings": list(summary.warnings),
            "error": summary.error,
        }


@overload
async def run_async(
    items: ItemSource, *, model: str, out: str | os.PathLike[str], **options: Unpack[McqOptions]
) -> McqRun: ...
@overload
async def run_async(
    items: ItemSource,
    *,
    model: list[str] | tuple[str, ...],
    out: str | os.PathLike[str],
    **options: Unpack[McqOptions],
) -> dict[str, McqRun]: ...
@called_right
async def run_async(
    items: ItemSource,
    *,
    model: str | list[str] | tuple[str, ...],
    out: str | os.PathLike[str],
    root: str | os.PathLike[str] | None = None,
    temperature: float | None = 0.0,
    top_p: float | None = None,
    max_output_tokens: int = 2_000,
    control: bool = False,
    blind: bool = False,
    **options: Unpack[AskOptions],
) -> McqRun | dict[str, McqRun]:
    """Ask every question of a set, each in a call of its own.

    `items` are those of `load`, or anything it takes: an item file, `scenes`, or items. Answers go to the
    folder `out` as they come; the same call goes on where it stopped, and asks again where a question or its
    image was changed. With a list of models each has a run in a folder of its own in `out`, one after the
    other, limits hold for all together, and the runs come back by model. `root` is where image paths start.
    Sampling is sent where the model takes it, None leaves the model's own; `max_output_tokens` are doubled
    when an answer is cut off. `control` asks Q4 again without the image and with an option for saying so;
    `blind` asks all questions again without it, to be guessed from the words. `options`: see `AskOptions`.

    Returns the run, also where it ended early or some calls failed: see its `summary` and the answers'
    `outcome`. Raises UsageError for what cannot be done, ModelUnusableError where the model could not be
    asked at all; of several models, when the others are through.

    `run_async` is the same for programs with an event loop.

    >>> items = uncanny.mcq.load("scenes")[:8]
    >>> run = uncanny.mcq.run(items, model="demo", out=out)
    >>> run.score()["demo"].splits["artifact"].all_q1_4
    0.6666666666666666
    >>> len(asyncio.run(uncanny.mcq.run_async(items, model="demo", out=out)).answers)
    31

    Source: SalArt-VQA, section 4.1.
    """
    check_options(
        options,
        out=out,
        root=root,
        temperature=temperature,
        top_p=top_p,
        max_output_tokens=max_output_tokens,
        control=control,
        blind=blind,
    )
    config = McqConfig(temperature, top_p, max_output_tokens, control, blind)
    prompts = read_prompts("mcq", options.get("prompts"))
    # The bundled set by its name has a copy in the run folder and nowhere else.
    bundled = isinstance(items, str | os.PathLike) and is_bundled(items)
    source = items if bundled else load(items, root=root)
    if not source:
        raise UsageError("There are no items to ask about", remedy="Give one at least.")

    async def ask(models: ModelOptions, folder: Path, limits: RunOptions) -> McqRun:
        # A bundled set that the folder holds already is read from there, and refused where it was changed.
        asked = load(source, root=root, folder=folder)
        task = McqTask(
            folder=RunFolder(folder),
            items=asked,
            models=models,
            options=limits,
            config=config,
            prompts=prompts,
        )
        return McqRun(folder, await run_with(task, options), asked)

    return await run_models(model, Path(out), options, ask)


class _Run(Protocol):
    """`run_async`, waiting for the end."""

    @overload
    def __call__(
        self, items: ItemSource, *, model: str, out: str | os.PathLike[str], **options: Unpack[McqOptions]
    ) -> McqRun: ...
    @overload
    def __call__(
        self,
        items: ItemSource,
        *,
        model: list[str] | tuple[str, ...],
        out: str | os.PathLike[str],
        **options: Unpack[McqOptions],
    ) -> dict[str, McqRun]: ...


run = cast(_Run, blocking(run_async))
