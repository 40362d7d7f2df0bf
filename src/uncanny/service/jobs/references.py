"""What jobs work on, as their parameters name it: uploads, other jobs, and files under allowed folders.

Nothing else on the machine can be named. Links are followed before it is decided what lies where, and once
more each time a job starts. An address on the network is no reference, and never asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from uncanny.demo.sets import BUNDLED
from uncanny.errors import NotFoundError
from uncanny.service import ENDED, is_id
from uncanny.service.folders import Roots
from uncanny.service.jobs.folder import OUT, RUN
from uncanny.wording import shown

if TYPE_CHECKING:
    from uncanny.service.service import Service

_LONGEST: Final = 4096
_EXAMPLES: Final = ("upload:set_" + "a" * 20, "job:job_" + "b" * 20, "photos/2025")
_BUNDLED: Final = (*BUNDLED, "scenes:rendered", "scenes:drawn")


class Reference(str):
    """`upload:SET`, `upload:FILE`, `job:JOB`, or a path under an allowed folder, from its name on."""

    __slots__ = ()
    _bundled = False

    @classmethod
    def __get_pydantic_core_schema__(
        cls, _source: Any, _handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        text = core_schema.str_schema(min_length=1, max_length=_LONGEST, strict=True)
        return core_schema.no_info_after_validator_function(cls._read, text)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        words = " or the words scenes and large-scenes for the bundled sets," if cls._bundled else ""
        return handler(schema) | {
            "description": f"upload:ID, job:ID,{words} or a path under an allowed folder.",
            "examples": [*_EXAMPLES, *(BUNDLED if cls._bundled else ())],
        }

    @classmethod
    def _read(cls, text: str) -> Reference:
        if any(not char.isprintable() for char in text):
            raise ValueError("has characters that no name has")
        return cls(text)

    def place(self, service: Service) -> str:
        """What the command is given in its place: an absolute path. Raises ValueError that says why not."""
        if self._bundled and self in _BUNDLED:
            return str(self)
        scheme, colon, what = self.partition(":")
        if colon and scheme == "upload":
            return str(_upload(service, what))
        if colon and scheme == "job":
            return str(_of_job(service, what))
        if "://" in self:
            raise ValueError(f"{shown(self)} is an address on the network; upload what is there")
        return str(_under_root(service.roots, self))

    def kept(self, service: Service) -> str:
        """The same as it is kept: a path under an allowed folder from that folder's name on."""
        real = service.roots.real(self) if self._is_path() else None
        return str(self) if real is None else service.roots.name(real)

    def _is_path(self) -> bool:
        return not self.startswith(("upload:", "job:")) and not (self._bundled and self in _BUNDLED)


class Source(Reference):
    """A reference, or a word for the images and answers that come with uncanny."""

    __slots__ = ()
    _bundled = True


class Weights(Reference):
    """A folder of a model's weights, by the name that it has on this service (`--weights`).

    Such folders may hold code that runs when they are loaded: nobody who uses the service names one by its
    path, or fills one by an upload.
    """

    __slots__ = ()

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(schema) | {
            "description": "The name of a folder of weights that the service was started with.",
            "examples": ["minilm"],
        }

    def place(self, service: Service) -> str:
        return str(weights_folder(service, self))

    def _is_path(self) -> bool:
        return False


def weights_folder(service: Service, name: str) -> Path:
    """The folder of weights that has the name on this service. Raises ValueError that says why not."""
    folder = service.weights.get(name)
    if folder is None:
        there = ", ".join(service.weights) or "none: `uncanny serve --weights DIR` names them"
        raise ValueError(f"{shown(name)} is not the name of a folder of weights here; the names are {there}")
    return folder


def texts(value: object, place: str = "") -> Iterator[tuple[str, str]]:
    """All texts in parameters, each after where it stands, such as `images.0`."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from texts(each, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from texts(each, f"{place}.{number}")


def references(value: object, place: str = "") -> Iterator[tuple[str, Reference]]:
    """All references in validated parameters, each after where it stands."""
    return ((where, text) for where, text in texts(value, place) if isinstance(text, Reference))


def replaced(value: Any, other: Callable[[str], str]) -> Any:
    """Parameters with `other` of every text in its place."""
    if isinstance(value, str):
        return other(value)
    if isinstance(value, Mapping):
        return {key: replaced(each, other) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [replaced(each, other) for each in value]
    return value


def job_of(text: str) -> str | None:
    """The job that a reference names; None where it names none."""
    scheme, _, what = text.partition(":")
    return what if scheme == "job" and is_id(what, "job") else None


def _upload(service: Service, upload: str) -> Path:
    if is_id(upload, "set"):
        folder = service.uploads.images_folder(upload)
        if folder.is_dir():
            return folder
    elif is_id(upload, "file"):
        try:
            file = service.uploads.file_path(upload)
        except NotFoundError:
            pass
        else:
            if file.is_file():
                return file
    raise ValueError(f"there is no upload {shown(upload)}")


def _of_job(service: Service, job_id: str) -> Path:
    """The run folder of a job, or else the records that it wrote."""
    try:
        job = service.jobs.get(job_id)
    except NotFoundError:
        raise ValueError(f"there is no job {shown(job_id)}") from None
    if job.state not in ENDED:
        raise ValueError(f"job {job_id} is {job.state}; wait for its end")
    folder = service.job_folder(job_id)
    if (folder / RUN).is_dir():
        return folder / RUN
    records = sorted((folder / OUT).glob("*.jsonl"))
    if len(records) == 1:
        return records[0]
    raise ValueError(f"job {job_id} has no records")


def _under_root(roots: Roots, text: str) -> Path:
    """Where that lies what `text` names, from a root's name on, from within one, or absolute."""
    if not roots:
        raise ValueError(
            f"{shown(text)} is a path, and no folder is allowed; "
            "upload the files, or start the service with one"
        )
    place = roots.place(text)
    if place is not None:
        return place
    # Whether something lies outside is nobody's business either.
    raise ValueError(f"{shown(text)} is not there, or is not in an allowed folder")
