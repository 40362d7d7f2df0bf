"""What agents that go by words are asked about, and the task that each of them is.

An input is a picture in words: its caption, the label of a mask, the objects in it, and perhaps its file.
They come from a JSON Lines file, from the bundled scenes, or from a program, and are read whole or refused.
"""

from __future__ import annotations

import hashlib
import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Protocol, Self, TypeVar

from pydantic import Field

from uncanny.agents.common.context import FailureKind, failure_kind
from uncanny.demo.scenes import SETS, bundled_set, pictures
from uncanny.errors import ItemsError, StepFailedError, UsageError
from uncanny.eval.common.inputs.problems import NonEmpty, by_line, parse_records, repeated_ids
from uncanny.eval.common.parameters import TextParameters
from uncanny.files import dump_json
from uncanny.images.columns import plain_cells
from uncanny.images.discover import discover
from uncanny.images.file_bytes import RecordedFile
from uncanny.images.prepared import PreparedImage
from uncanny.models.parameters import SamplingParameters
from uncanny.parameters import check_records
from uncanny.prompts import PromptSet, prompt_set
from uncanny.prompts.folders import read_prompts
from uncanny.records.record_file import RecordFile
from uncanny.records.run_folder import check_apart, copy_into
from uncanny.records.run_manifest import RunSettings
from uncanny.runs.forecast import Forecast, UsageCounter, forecast_inputs
from uncanny.runs.inputs import Names
from uncanny.runs.progress import Progress
from uncanny.runs.task import Task
from uncanny.schema import Record, StepError, Usage
from uncanny.wording import counted

if TYPE_CHECKING:
    from uncanny.client.calls import CallRecord

WriteOutcome = Literal["ok", "refused", "invalid", "failed", "unusable"]
STATUSES: Final = ("ok", "refused", "invalid", "failed", "unusable")
_OUTCOMES: Final[Mapping[FailureKind, WriteOutcome]] = {"unparseable": "invalid", "refused": "refused"}


class DescribedImage(Record):
    """One line of a file of texts: a picture in words. A line of an `edits.jsonl` is one, too.

    `original` is the picture's file, relative to the file or to a root. `label` names what a mask covers,
    `caption` describes the whole picture, `objects` are the things in it. Each may be None. Further keys with
    text, numbers or flags go into the records, under `columns`.
    """

    id: NonEmpty
    original: NonEmpty | None = None
    label: NonEmpty | None = None
    caption: NonEmpty | None = None
    objects: tuple[Annotated[NonEmpty, Field(max_length=200)], ...] | None = None


TextSource = str | os.PathLike[str] | Sequence[DescribedImage]
_TEXTS: Final = "Images and texts are a file, the word `scenes` or uncanny.edits.DescribedImage records"
_REMEDY: Final = 'Write lines like {"id": "1", "caption": "A dog on a lawn.", "objects": ["dog", "lawn"]}.'


@dataclass(frozen=True, slots=True)
class TextSet:
    """Pictures in words with unique ids, and where they came from: a file, the scenes, or a program.

    `folder` is where paths of files start.
    """

    images: tuple[DescribedImage, ...]
    source: Path | str
    folder: Path

    def source_from(self, folder: Path) -> str:
        """The source as a run's manifest has it, from `folder`, so that both can be moved together."""
        return self.source if isinstance(self.source, str) else os.path.relpath(self.source, folder)


def load_texts(source: TextSource, *, root: str | os.PathLike[str] | None = None) -> TextSet:
    """The pictures in words of a JSON Lines file, the word `scenes`, or of a program; or a folder of images.

    `root` is where paths of pictures start, the file's own folder unless it is given, and the working
    directory for those of a program. Pictures are not looked at. Those of a folder have no caption; their id
    is their path in it.

    Raises ItemsError with every invalid line and repeated id, UsageError for what cannot be read or is empty.
    """
    base = None if root is None else Path(root)
    if not isinstance(source, str | os.PathLike):
        records = check_records(source, DescribedImage, what=_TEXTS)
        problems = repeated_ids([(None, each) for each in records], "give every record its own")
        name, folder = "the list of records", base or Path.cwd()
    elif (bundled := bundled_set(os.fspath(source))) is not None:
        return TextSet(tuple(_described_scenes(bundled)), bundled, SETS[bundled] / "images")
    elif Path(source).is_dir():
        return _images_of(Path(source))
    else:
        path = Path(source)
        lines, problems = parse_records(path, DescribedImage)
        problems += repeated_ids(lines, "give every line its own", problems)
        records = tuple(record for _, record in lines)
        name, folder = str(path), base or path.parent
    if problems:
        raise ItemsError(name, sorted(problems, key=by_line), remedy="Correct these; nothing was started.")
    if not records:
        raise UsageError(f"{name} is empty", remedy=_REMEDY)
    return TextSet(
        tuple(records), Path(source) if isinstance(source, str | os.PathLike) else "program", folder
    )


def _images_of(folder: Path) -> TextSet:
    names = [os.path.relpath(file, folder) for file in discover([folder]).files]
    if not names:
        raise UsageError(f"{folder} contains no images", remedy="Pass another folder, or a JSON Lines file.")
    images = tuple(DescribedImage(id=Path(name).as_posix(), original=name) for name in names)
    return TextSet(images, folder, folder)


def _described_scenes(name: str) -> Iterator[DescribedImage]:
    """The clean picture of each bundled pair; the label is the thing that its partner is wrong about."""
    wrong = {scene.pair_id: scene.anomalies[0].objects[0] for scene in pictures(name) if scene.anomalies}
    for scene in pictures(name):
        if scene.pair_id is None or scene.role != "clean":
            continue
        names = [entry.name for entry in scene.objects]
        label = wrong[scene.pair_id] if wrong[scene.pair_id] in names else names[0]
        yield DescribedImage(
            id=scene.pair_id,
            original=scene.image_path.name,
            label=label,
            caption=f"A picture of {', '.join(names[:4])}",
            objects=tuple(names),
        )


def task_parts(prompts: str, texts: TextSource, parameters: TextParameters) -> dict[str, Any]:
    """What a `TextTask` is made with but its configuration, to ask with a set of `prompts`.

    Nothing is written yet. Raises UsageError.
    """
    return {
        "folder": parameters.folder,
        "prompts": read_prompts(prompts, parameters.prompts),
        "models": parameters.models,
        "options": parameters.options,
        "texts": load_texts(texts, root=parameters.root),
        "root": None if parameters.root is None else Path(parameters.root),
    }


def texts_of_run(texts: TextSet, run: Path, *, copy: bool) -> TextSet:
    """`texts` as the run in the folder `run` asks about them: pictures of the bundled set are copied into it.

    Raises UsageError where they cannot be copied.
    """
    if texts.source not in SETS or not copy:
        return texts
    files = (texts.folder / image.original for image in texts.images if image.original)
    return replace(texts, folder=copy_into(run / "images", files))


def nothing_to_ask(texts: TextSet, what: str) -> UsageError:
    """No picture of a set has what is asked about."""
    return UsageError(f"None of {counted(len(texts.images), 'picture')} has {what}", remedy=_REMEDY)


class Written(Record):
    """What the records of both agents have in common.

    `outcome` is `ok`; `refused`; `invalid` where no answer passed the checks; `failed` where there was none;
    `unusable` where nothing could be asked. `errors` say why. `asked` changes with what was asked about.
    """

    id: str
    original: str | None
    outcome: WriteOutcome
    errors: tuple[StepError, ...] = ()
    model: str
    prompts: str
    asked: str
    usage: Usage = Usage()
    sha256: str | None = None
    file_stamp: str | None = None


class Asked(Protocol):
    """One input: the picture in words, and what its calls and record are known by."""

    @property
    def image(self) -> DescribedImage: ...
    @property
    def key(self) -> str: ...


I = TypeVar("I", bound=Asked)  # noqa: E741
W = TypeVar("W", bound=Written)


@dataclass(kw_only=True)
class TextTask(Task[I, W]):
    """A run with a record for each text, about the pictures of `texts`."""

    unit = "texts"
    statuses = STATUSES
    answered_statuses: ClassVar[tuple[str, ...]] = ("ok", "refused")
    # A refusal would come again.
    asked_again = frozenset({"invalid", "failed", "unusable"})

    texts: TextSet
    config: SamplingParameters
    prompts: PromptSet = field(default_factory=lambda: prompt_set("edits"))

    @abstractmethod
    def asked(self) -> Sequence[I]:
        """All inputs."""

    @abstractmethod
    def record(self, item: I, outcome: WriteOutcome, **more: Any) -> W:
        """A record of an input."""

    @abstractmethod
    def about(self, item: I) -> Sequence[object]:
        """What an input is about, besides its file: another one makes another question."""

    def settings(self) -> RunSettings:
        return super().settings().model_copy(update={"texts": self.texts.source_from(self.folder.path)})

    def name_of(self, item: I) -> str:
        return item.key

    def for_workers(self) -> Self:
        task = super().for_workers()
        task.texts = replace(self.texts, images=())
        return task

    def load_pending(self, records: RecordFile[W], progress: Progress) -> Sequence[I]:
        # The limit is one on pictures: all that is asked about one belongs together.
        first = {image.id for image in self.texts.images[: self.options.limit]}
        every = {item.key: item for item in self.asked()}
        check_apart(self.folder.path, (file for item in every.values() if (file := self.file(item))))
        items = {key: item for key, item in every.items() if item.image.id in first}
        held = None if self.texts.source == "program" else every
        return self.standing(items, records, progress, held=held)

    def failed(self, item: I, error: StepError, calls: Sequence[CallRecord]) -> Sequence[W]:  # noqa: ARG002
        return (self.record(item, "failed", errors=(error,)),)

    def file(self, item: I) -> Path | None:
        """The picture's file; None where there is none."""
        return None if item.image.original is None else self.texts.folder / item.image.original

    def common(self, item: I, image: PreparedImage | None = None) -> dict[str, Any]:
        """The fields that all records have."""
        file = self.file(item)
        names = Names(self.folder.path if self.root is None else self.root)
        return {
            "id": item.image.id,
            "original": None if file is None else names.of(file),
            "model": str(self.models.model),
            "prompts": self.prompts.id,
            "asked": self._digest(item),
            "sha256": None if image is None else image.source_sha256,
            "file_stamp": None if image is None else image.stamp,
            **self.cells(item),
        }

    def is_about(self, item: I, record: W) -> bool:
        return record.asked == self._digest(item)

    def files_of(self, item: I, record: W) -> Iterator[RecordedFile]:
        file = self.file(item)
        if file is not None and record.sha256 is not None:
            yield RecordedFile(file, record.sha256, record.file_stamp)

    def cells(self, item: I) -> dict[str, Any]:
        columns = plain_cells(item.image.model_extra or {})
        return {"columns": columns} if columns else {}

    def _digest(self, item: I) -> str:
        content = [item.image.original, *self.about(item)]
        return hashlib.sha256(dump_json(content)).hexdigest()[:8]


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingForecast(Forecast):
    """What is left of a run over texts: always the same number of calls, repairs aside.

    The prefix cache is not counted on: the texts are too short for one.
    """

    unit = "texts"

    calls_usual: int

    def unreadable_words(self) -> str:
        number = self.unreadable
        return f", {number:,} of them with a picture that cannot be read" if number else ""


def forecast_of(
    task: TextTask[I, W],
    pending: int,
    unreadable: int,
    counter: UsageCounter,
    kind: type[WritingForecast] = WritingForecast,
) -> WritingForecast:
    """The forecast of a task with so many `pending` inputs, whose calls are counted."""
    items = task.asked()
    pictures = set(list(dict.fromkeys(item.image.id for item in items))[: task.options.limit])
    number = sum(1 for item in items if item.image.id in pictures)  # the limit is one on pictures
    inputs = forecast_inputs(task.models, inputs=number, pending=pending, unreadable=unreadable)
    return kind.of_calls(inputs, counter, task.price_table())


def failure(failed: StepFailedError) -> dict[str, Any]:
    """The fields of a record that say why there is no text."""
    outcome = _OUTCOMES.get(failure_kind(failed.error), "failed")
    return {"outcome": outcome, "errors": (failed.record,)}
