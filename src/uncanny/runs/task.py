"""What differs between one kind of run and another: annotating images, asking questions, judging pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from pydantic import BaseModel

from uncanny.graphs.tracing import untraced
from uncanny.images.encode import PixelPolicy
from uncanny.images.file_bytes import RecordedFile, changed_files
from uncanny.prompts import PromptSet
from uncanny.records.record_file import RecordFile
from uncanny.records.run_folder import RunFolder
from uncanny.records.run_manifest import RunForecast, RunSettings
from uncanny.runs.config import ModelOptions, RunOptions
from uncanny.runs.manifest import run_settings
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
S = TypeVar("S")
MOST_INPUTS_AT_ONCE = 64
# So many more than calls at once, so that slots do not stand empty while pictures are read.
INPUTS_AHEAD = 2


# What records take over from the rows of their inputs: no model is shown it.
CELL_KEYS: Final = frozenset({"row", "columns"})


@dataclass(frozen=True, slots=True)
class Stock(Generic[I, S]):
    """`pending` are the items to be worked on, `records` what was kept of each record that stands, by key."""

    pending: Mapping[str, I]
    records: Mapping[str, S]


@dataclass(kw_only=True)
class Task(ABC, Generic[Item, R]):
    """One kind of run over many inputs, and the settings of one such run.

    `name` stands in `run.json`, `unit` is what inputs are called, `statuses` those a record can end with,
    `answered_statuses` those of them that are no failure: a refusal is an answer, too.
    `record_file` and `record_type` are the file of its records and what a line is. `roles` maps the roles of
    `--role` to agents. `root` is where image paths in records start, None for the run folder. `prompts` are
    the texts of a new run; one that was begun goes on with its own."""

    name: ClassVar[str]
    unit: ClassVar[str]
    statuses: ClassVar[tuple[str, ...]]
    answered_statuses: ClassVar[tuple[str, ...]] = ("ok",)
    record_file: ClassVar[str]

    folder: RunFolder
    models: ModelOptions
    options: RunOptions = field(default_factory=RunOptions)
    policy: PixelPolicy = field(default_factory=PixelPolicy)
    root: Path | None = None
    prompts: PromptSet
    _outdated: dict[str, Callable[[], Mapping[str, object]]] = field(
        init=False, repr=False, default_factory=dict
    )

    @property
    @abstractmethod
    def record_type(self) -> type[R]: ...

    @property
    @abstractmethod
    def roles(self) -> Mapping[str, str]: ...

    @property
    @abstractmethod
    def sampling(self) -> Sampling:
        """What `run.json` shows as sent, as far as each model takes it."""

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

    @abstractmethod
    def config_json(self) -> dict[str, Any]:
        """Every parameter that changes the outcome, as `run.json` has it under `plan`."""

    @abstractmethod
    def key(self, record: R) -> str:
        """What tells records apart; of several with one key the last stands."""

    @abstractmethod
    def load_pending(self, records: RecordFile[R], progress: Progress) -> Sequence[Item]:
        """Load `records`, count what stands into `progress`, and return the inputs still to be done.

        Raises UsageError. Tasks do it with `standing`.
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

    @abstractmethod
    def note(self, progress: Progress, record: R) -> None:
        """Count one finished record."""

    def warnings(self, progress: Progress) -> Sequence[str]:  # noqa: ARG002
        """What is to be known of the results when the run ends, in words; `progress` has counted them."""
        return ()

    def renewed(self, records: RecordFile[R]) -> Iterator[R]:
        """Records that stand, with the cells that their inputs have now; written again, without a call."""
        for key, cells in sorted(self._outdated.items()):
            record = records.get(key)
            content = record.model_dump(exclude=set(CELL_KEYS))
            yield type(record).model_validate({**content, **cells()})

    def after_records(self) -> Sequence[str]:
        """Write what is made of the records when a session has ended; in words, what could not be."""
        return ()

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
        stands: Callable[[Item, R], bool],
        files: Callable[[Item, R], Iterable[RecordedFile]] = lambda _item, _record: (),
        held: Container[str] | None = None,
        cells: Callable[[Item], Mapping[str, object]] | None = None,
    ) -> Sequence[Item]:
        """What `load_pending` does where one record answers for one item; see `take_stock`."""
        stock = self.take_stock(
            items,
            records,
            progress,
            stands=stands,
            files=files,
            held=held,
            cells=cells,
            summarize=lambda record: record,
            count=self.note,
        )
        return list(stock.pending.values())

    def take_stock(
        self,
        items: Mapping[str, I],
        records: RecordFile[R],
        progress: Progress,
        *,
        stands: Callable[[I, R], bool],
        files: Callable[[I, R], Iterable[RecordedFile]],
        held: Container[str] | None,
        summarize: Callable[[R], S],
        count: Callable[[Progress, S], None],
        cells: Callable[[I], Mapping[str, object]] | None = None,
    ) -> Stock[I, S]:
        """Which records belong to the run, and which of `items`, by key, are still to be done.

        A record of one of `items` stands where `stands` says so and all the `files` it is about hold the
        bytes they had then; otherwise the item is done again. A record of another item, one beyond the limit
        for example, belongs to the run if `held`, all keys that the inputs have now, contains its key; None
        is for inputs of which that cannot be told. Records of inputs that are gone do not belong to the run,
        unless `keep_missing` is set: `progress.gone` lists them. `summarize` says what to keep of a record
        until `count` counts it. `cells` are the keys among `CELL_KEYS` that an item's record has; a record
        that stands with others is `renewed`.
        """
        standing: dict[str, S] = {}
        about: dict[str, tuple[RecordedFile, ...]] = {}
        gone: dict[str, None] = {}
        for record in records.load():
            key = self.key(record)
            standing.pop(key, None)
            about.pop(key, None)
            self._outdated.pop(key, None)
            if key not in items:
                if held is None or key in held or self.options.keep_missing:
                    standing[key] = summarize(record)
                else:
                    gone[key] = None
            elif stands(items[key], record):
                standing[key] = summarize(record)
                about[key] = tuple(files(items[key], record))
                if cells is not None and cells_of(record) != cells(items[key]):
                    self._outdated[key] = partial(cells, items[key])
        changed = changed_files(set[RecordedFile]().union(*about.values()))
        for key, recorded in about.items():
            if not changed.isdisjoint(recorded):
                del standing[key]
                self._outdated.pop(key, None)
        for summary in standing.values():
            count(progress, summary)
        progress.gone = tuple(gone)
        progress.resumed = progress.done
        progress.total = len(items) + sum(key not in items for key in standing)
        return Stock({key: item for key, item in items.items() if key not in standing}, standing)

    def recorded(self, records: RecordFile[R]) -> Callable[[str], bool]:
        """Whether an input, as call records name it, has a record."""
        return records.__contains__


def cells_of(record: BaseModel) -> dict[str, object]:
    """The keys among `CELL_KEYS` that a record has."""
    return {name: value for name, value in (record.model_extra or {}).items() if name in CELL_KEYS}


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
