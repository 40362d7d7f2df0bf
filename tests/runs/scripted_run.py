"""Image files and an annotator whose models follow a script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.agents.specialists import Specialists
from tests.client.scripted import guarded
from tests.runs.e2e import pictures
from uncanny.agents import AnnotateConfig
from uncanny.client.client import ModelClient
from uncanny.client.endpoint import Endpoint
from uncanny.client.prices import PriceTable
from uncanny.eval.annotate.run import ImageAnnotator
from uncanny.images import PixelPolicy, PreparedImage
from uncanny.models.registry import ModelId
from uncanny.records.record_file import RecordFile
from uncanny.runs.engine import Engine, common_limits
from uncanny.runs.inputs import ImageFile
from uncanny.runs.queue import Annotated
from uncanny.schema import Annotation


def image_files(folder: Path, number: int) -> list[ImageFile]:
    """So many different pictures, named by their files."""
    return [ImageFile(path, path.name) for path in sorted(pictures(folder, number).glob("*.png"))]


def annotator(asked: Specialists, *fallbacks: Endpoint, **config: Any) -> ImageAnnotator:
    own = guarded(asked.model)
    engine = Engine(
        ModelClient({"": [own, *fallbacks]}),
        {ModelId("script", "one"): own},
        common_limits([asked.model.capabilities]),
        PriceTable([]),
    )
    return ImageAnnotator(engine, AnnotateConfig(**config), PixelPolicy(), "script/one")


async def annotated(made: ImageAnnotator, file: ImageFile) -> Annotated[Annotation]:
    opened = await made.open(file)
    assert isinstance(opened, PreparedImage)
    return await made.annotate(file, opened)


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
