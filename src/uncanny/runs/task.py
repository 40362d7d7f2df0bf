"""What differs between one kind of run and another: annotating images, asking questions, judging pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar

from pydantic import BaseModel

from uncanny.graphs.tracing import untraced
from uncanny.images.encode import PixelPolicy
from uncanny.images.file_bytes import RecordedFile, changed_files, unsure_files
from uncanny.models.registry import ModelOptions
from uncanny.prompts import PromptSet
from uncanny.records.record_file import RecordFile
from uncanny.records.run_folder import RunFolder
from uncanny.records.run_manifest import RunForecast, RunSettings
from uncanny.runs.manifest import run_settings
from uncanny.runs.parameters import RunOptions
from uncanny.runs.progress import Progress
from uncanny.schema import StepError

if TYPE_CHECKING:
    from uncanny.client.calls import CallRecord, CallScope
    from uncanny.client.prices import PriceTable
    from uncanny.models.base import Sampling
    from uncanny.runs.engine import Engine

Item = TypeVar("Item")
R = TypeVar("R", bound=BaseModel)
I = TypeVar("I")  # noqa: E741
MOST_INPUTS_AT_ONCE = 64
# So many more than calls at once, so that slots do not stand empty while pictures are read.
INPUTS_AHEAD = 2


# What records take over from the rows of their inputs: no model is shown it.
CELL_KEYS: Final = frozenset({"row", "columns"})


@dataclass(frozen=True, slots=True)
class Stock(Generic[I]):
    """`pending` are the items to be worked on, `records` the `summary` of each record that stands, by key."""

    pending: Mapping[str, I]
    records: Mapping[str, Any]


@dataclass(kw_only=True)
class Task(ABC, Generic[Item, R]):
    """One kind of run over many inputs, and the settings of one such run.

    `name` stands in `run.json`, `unit` is what inputs are called, `statuses` those a record can end with,
    `answered_statuses` those of them that are no failure: a refusal is an answer, too.
    `asked_again` are those that a run asks for again when it resumes, unless failed records are kept.
    Where `in_steps`, `process` asks nothing itself, but has its engine perform methods of the task.
    `record_file` and `record_type` are the file of its records and what a line is. `roles` maps the roles of
    `--role` to agents. `root` is where image paths in records start, None for the run folder. `config` has
    the parameters that change the outcome. `prompts` are the texts of a new run; one that was begun goes on
    with its own."""

    name: ClassVar[str]
    unit: ClassVar[str]
    statuses: ClassVar[tuple[str, ...]]
    answered_statuses: ClassVar[tuple[str, ...]] = ("ok",)
    asked_again: ClassVar[frozenset[str]] = frozenset()
    in_steps: ClassVar[bool] = False
    record_file: ClassVar[str]

    folder: RunFolder
    models: ModelOptions
    options: RunOptions = field(default_factory=RunOptions)
    policy: PixelPolicy = field(default_factory=PixelPolicy)
    root: Path | None = None
    config: Any = None
    prompts: PromptSet
    _outdated: dict[str, Callable[[], Mapping[str, object] | None]] = field(
        init=False, repr=False, default_factory=dict
    )

    @property
    @abstractmethod
    def record_type(self) -> type[R]: ...

    @property
    @abstractmethod
    def roles(self) -> Mapping[str, str]: ...

    @property
    def sampling(self) -> Sampling:
        """What `run.json` shows as sent, as far as each model takes it."""
        sampling: Sampling = self.config.sampling
        return sampling

    @property
    def inputs_at_once(self) -> int:
        """How many inputs are worked on side by side: enough to keep every slot of a model busy."""
        return min(MOST_INPUTS_AT_ONCE, self.options.concurrency + INPUTS_AHEAD)

    @property
    @abstractmethod
    def calls_per_input(self) -> int:
        """About how many calls one input takes, for progress and budget."""

    def calls_expected(self, pending: Sequence[Item]) -> int:
        """About how many calls the pending inputs take; tasks that know it to the call say so."""
        return len(pending) * self.calls_per_input

    def config_json(self) -> dict[str, Any]:
        """Every parameter that changes the outcome, as `run.json` has it under `plan`."""
        plan: dict[str, Any] = self.config.model_dump(mode="json")
        return plan

    @abstractmethod
    def key(self, record: R) -> str:
        """What tells records apart; of several with one key the last stands."""

    def name_of(self, item: Item) -> str:
        """What tells an input from others, the same in each session."""
        return str(item)

    def for_workers(self) -> Self:
        """This task for other processes, which work on inputs one by one: without the inputs of the run."""
        return copy(self)

    def __getstate__(self) -> dict[str, Any]:
        """For copies, in other processes too: what it was made with, and nothing that it has come to know."""
        made_with = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        return {**made_with, "folder": RunFolder(self.folder.path)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for each in fields(self):
            if not each.init and each.default_factory is not MISSING:
                setattr(self, each.name, each.default_factory())

    @abstractmethod
    def load_pending(self, records: RecordFile[R], progress: Progress) -> Sequence[Item]:
        """Load `records`, count what stands into `progress`, and return the inputs still to be done.

        Raises UsageError. Tasks do it with `standing`, or with `take_stock`.
        """

    @abstractmethod
    async def process(self, item: Item, engine: Engine, calls: list[CallRecord]) -> Sequence[R]:
        """The records of one input. `calls` gets every call, also where this raises; see `asking`.

        Raises what `ENDS_RUN` names when no model can be asked any more, and ExtensionError for what cannot
        work with any input: both end the run. Whatever else it raises is a defect, which costs this input
        alone.
        """

    @abstractmethod
    def failed(self, item: Item, error: StepError, calls: Sequence[CallRecord]) -> Sequence[R]:
        """The records of an input that a defect ended; `calls` are those made about it by then."""

    def failed_by(self, item: Item, defect: str, calls: Sequence[CallRecord]) -> Sequence[R]:
        """`failed` by an error in words."""
        return self.failed(item, StepError(agent="uncanny", step=0, kind="defect", message=defect), calls)

    def note(self, progress: Progress, record: R) -> None:
        """Count one finished record."""
        self.count(progress, self.summary(record))

    def status(self, record: R) -> str:
        """The one of `statuses` that a record counts as: its `status`, or else its `outcome`."""
        fields: Any = record
        return str(fields.status if hasattr(record, "status") else fields.outcome)

    def outcomes(self, records: Iterable[R]) -> Iterator[tuple[str, str, bool]]:
        """Of each record its key, its status, and whether that is an answer."""
        for record in records:
            status = self.status(record)
            yield self.key(record), status, status in self.answered_statuses

    def summary(self, record: R) -> Any:
        """What `count` needs of a record; it is kept for each record of a run that resumes."""
        return self.status(record)

    def count(self, progress: Progress, summary: Any) -> None:
        """Count one finished record by its `summary`."""
        progress.statuses[summary] += 1

    def stands(self, item: Any, record: R) -> bool:
        """Whether a record still answers for its item, as far as the record alone says it."""
        kept = not self.options.retry_failed or self.status(record) not in self.asked_again
        return kept and self.is_about(item, record)

    def is_about(self, item: Any, record: R) -> bool:  # noqa: ARG002
        """Whether a record was asked for with what its item is now."""
        return True

    def files_of(self, item: Any, record: R) -> Iterable[RecordedFile]:  # noqa: ARG002
        """The files a record is about, as they were read for it: it stands while they hold the same bytes."""
        return ()

    def cells(self, item: Any) -> Mapping[str, object] | None:  # noqa: ARG002
        """The keys among `CELL_KEYS` that the record of an item has; None where records keep theirs."""
        return None

    def warnings(self, progress: Progress) -> Sequence[str]:  # noqa: ARG002
        """What is to be known of the results when the run ends, in words; `progress` has counted them."""
        return ()

    def renewed(self, records: RecordFile[R]) -> Iterator[R]:
        """Records that stand, with the cells that their inputs have now; written again, without a call."""
        for key, cells in sorted(self._outdated.items()):
            record = records.get(key)
            content = record.model_dump(exclude=set(CELL_KEYS))
            yield type(record).model_validate({**content, **(cells() or {})})

    def after_records(self) -> Sequence[str]:
        """Write what is made of the records when a session has ended; in words, what could not be."""
        return ()

    def price_table(self) -> PriceTable:
        """What its calls cost. Raises UsageError."""
        from uncanny.client.prices import PriceTable

        return PriceTable.load(self.models.prices, self.options.processing)

    def forecast(self, prices: PriceTable) -> RunForecast | None:  # noqa: ARG002
        """What the whole run is to take, for `run.json`; None where nothing is foretold. Blocking.

        The inputs are those that `load_pending` found.
        """
        return None

    def settings(self) -> RunSettings:
        """All that must stay the same for a run to be one run; it stands in `run.json`."""
        return run_settings(self.name, self.models, self.config_json(), self.prompts, self.policy, self.root)

    def records(self) -> RecordFile[R]:
        """The run's record file, not opened yet."""
        return RecordFile(self.folder.path / self.record_file, self.record_type, self.key)

    def standing(
        self,
        items: Mapping[str, Item],
        records: RecordFile[R],
        progress: Progress,
        *,
        held: Container[str] | None = None,
    ) -> Sequence[Item]:
        """What `load_pending` does where one record answers for one item; see `take_stock`."""
        return list(self.take_stock(items, records, progress, held=held).pending.values())

    def take_stock(
        self,
        items: Mapping[str, I],
        records: RecordFile[R],
        progress: Progress,
        *,
        held: Container[str] | None,
        known: Callable[[str, list[Any]], Any] | None = None,
    ) -> Stock[I]:
        """Which records belong to the run, and which of `items`, by key, are still to be done.

        A record of one of `items` stands where `stands` says so and its files (`files_of`) hold the bytes
        they had then; otherwise the item is done again. A record of another item, one beyond the limit for
        example, belongs to the run if `held`, all keys that the inputs have now, contains its key; None is
        for inputs of which that cannot be told. Records of inputs that are gone do not belong to the run,
        unless `keep_missing` is set: `progress.gone` lists them. A record that stands with other `cells` than
        its item's is `renewed`. `known` returns the summary of a record that stands by what the index says of
        it, None where it has to be read.
        """
        standing: dict[str, Any] = {}
        about: dict[str, tuple[RecordedFile, ...]] = {}
        gone: dict[str, None] = {}
        others = set[str]()
        found: tuple[dict[str, Any], ...] = (standing, about, gone, self._outdated)

        def stands_by_index(key: str, words: list[Any]) -> bool:
            for each in found:
                each.pop(key, None)
            if known is None or (summary := known(key, words)) is None:
                return False
            standing[key] = summary
            return True

        for record in records.load(None if known is None else stands_by_index):
            key = self.key(record)
            for each in found:
                each.pop(key, None)
            if key not in items:
                if held is None or key in held or self.options.keep_missing:
                    standing[key] = self.summary(record)
                    others.add(key)
                else:
                    gone[key] = None
            elif self.stands(items[key], record):
                standing[key] = self.summary(record)
                if unsure := tuple(unsure_files(self.files_of(items[key], record))):
                    about[key] = unsure
                if (cells := self.cells(items[key])) is not None and cells_of(record) != cells:
                    self._outdated[key] = partial(self.cells, items[key])
        changed = changed_files(set[RecordedFile]().union(*about.values()))
        for key, recorded in about.items():
            if not changed.isdisjoint(recorded):
                del standing[key]
                self._outdated.pop(key, None)
        for summary in standing.values():
            self.count(progress, summary)
        progress.gone = tuple(gone)
        progress.resumed = progress.done
        progress.total = len(items) + len(others)
        return Stock(_Without(items, standing), standing)

    def recorded(self, records: RecordFile[R]) -> Callable[[str], bool]:
        """Whether an input, as call records name it, has a record."""
        return records.__contains__


class DefectElsewhereError(Exception):
    """A defect ended an input in another process. `str()` is the traceback, `words` what a record says."""

    def __init__(self, words: str, records: Sequence[Any], traceback: str) -> None:
        super().__init__(words, records, traceback)
        self.words, self.records = words, records

    def __str__(self) -> str:
        return str(self.args[-1])


def cells_of(record: BaseModel) -> dict[str, object]:
    """The keys among `CELL_KEYS` that a record has."""
    return {name: value for name, value in (record.model_extra or {}).items() if name in CELL_KEYS}


class _Without(Mapping[str, I]):
    """Items but for those that are done, without a copy of them: there may be millions."""

    def __init__(self, items: Mapping[str, I], done: Mapping[str, object]) -> None:
        self._items, self._done = items, done

    def __contains__(self, key: object) -> bool:
        return key in self._items and key not in self._done

    def __getitem__(self, key: str) -> I:
        if key in self._done:
            raise KeyError(key)
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._items if key not in self._done)

    def __len__(self) -> int:
        return len(self._items) - sum(key in self._items for key in self._done)


@contextmanager
def asking(engine: Engine, name: str, calls: list[CallRecord]) -> Iterator[CallScope]:
    """The scope of the calls about the input `name`; they are added to `calls` whatever happens.

    What a graph does within is nobody else's to see.
    """
    with untraced(), engine.model_client.scope(name) as scope:
        try:
            yield scope
        finally:
            calls.extend(scope.calls)
