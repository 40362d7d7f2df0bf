"""The sample of a run's images that people judge whole: the file `sample.json` of a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, get_args

import orjson
from pydantic import Field

from uncanny.errors import StorageError
from uncanny.files import open_file
from uncanny.records.jsonl import check_plain, parse_line, write_atomically
from uncanny.schema import Record

SAMPLE: Final = "sample.json"
VERSION: Final = 1

Design = Literal["random", "active"]
DESIGNS: tuple[Design, ...] = get_args(Design)


class SampledImage(Record):
    """An image of the sample; `probability`, from a billionth to 1, is that of being in it."""

    image: str
    sha256: str | None = None
    probability: Annotated[float, Field(ge=1e-9, le=1, allow_inf_nan=False)]


class Sample(Record):
    """Which images of a run people judge, in the order in which they were drawn.

    `frame` counts the images that could be drawn, and `size` those that were. `paired` is what images of
    several runs that are drawn together have in common.
    """

    version: Literal[1] = VERSION
    design: Design
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)]
    paired: str | None = None
    frame: Annotated[int, Field(ge=1)]
    size: Annotated[int, Field(ge=1)]
    images: tuple[SampledImage, ...]


def read_sample(folder: Path) -> Sample | None:
    """The sample of a run; None where none was drawn. Raises RecordError for a file that is not one."""
    path = folder / SAMPLE
    check_plain(path)
    if not path.is_file():
        return None
    with open_file(path) as file:
        data = file.read()
    return parse_line(data, Sample, path, 1)


def write_sample(folder: Path, sample: Sample) -> Path:
    """Write the file in one step, and return its path. Raises StorageError, UsageError."""
    path = folder / SAMPLE
    check_plain(path)
    content = orjson.dumps(sample.model_dump(mode="json", exclude_none=True), option=orjson.OPT_INDENT_2)
    try:
        write_atomically(path, [content, b"\n"])
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written: {error.strerror}", remedy="Free some disk space."
        ) from error
    return path
