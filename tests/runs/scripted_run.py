"""Image files and an annotator whose models follow a script."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.agents.specialists import Specialists
from tests.client.scripted import guarded
from tests.runs.e2e import pictures
from uncanny.agents.config import AnnotateConfig
from uncanny.annotation.run import AnnotateTask
from uncanny.client.calls import CallRecord
from uncanny.client.client import ModelClient
from uncanny.client.endpoint import Endpoint
from uncanny.client.prices import PriceTable
from uncanny.models.registry import ModelId, ModelOptions
from uncanny.records.record_file import RecordFile
from uncanny.records.run_folder import RunFolder
from uncanny.runs.engine import Engine, common_limits
from uncanny.runs.inputs import ImageFile
from uncanny.schema import Annotation


def image_files(folder: Path, number: int) -> list[ImageFile]:
    """So many different pictures, named by their files."""
    return [ImageFile(path, path.name) for path in sorted(pictures(folder, number).glob("*.png"))]


@dataclass(frozen=True, slots=True)
class Annotator:
    """The task of annotating, with the engine whose models follow the script."""

    task: AnnotateTask
    engine: Engine


@dataclass(frozen=True, slots=True)
class Annotated:
    record: Annotation
    calls: list[CallRecord]


def annotator(asked: Specialists, *fallbacks: Endpoint, **options: Any) -> Annotator:
    own = guarded(asked.model)
    model = ModelId("script", "one")
    # `Specialists` answer the questions of the paper's schedule.
    config = AnnotateConfig(**{"schedule": "paper", **options})
    engine = Engine(
        ModelClient({"": [own, *fallbacks]}),
        {model: own},
        common_limits([asked.model.capabilities]),
        PriceTable([]),
    )
    task = AnnotateTask(folder=RunFolder(Path()), paths=(), models=ModelOptions(model), config=config)
    return Annotator(task, engine)


async def annotated(made: Annotator, file: ImageFile) -> Annotated:
    calls: list[CallRecord] = []
    (record,) = await made.task.process(file, made.engine, calls)
    return Annotated(record, calls)


def records_of(path: Path, *records: Annotation) -> RecordFile[Annotation]:
    """A record file with these records in it, loaded."""
    file = RecordFile(path, Annotation, lambda record: record.image)
    list(file.load())
    for record in records:
        file.append(record)
    return file


def record(image: str, **changes: Any) -> Annotation:
    content = {
        "image": image,
        "sha256": "0" * 64,
        "width": 4,
        "height": 3,
        "status": "ok",
        "model": "script/one",
        "prompts": "annotate@0",
    }
    return Annotation.model_validate(content | changes)
