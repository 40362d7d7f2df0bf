"""The kinds of jobs: what each is asked for, which command it is, and what it leaves in its folder.

Each protocol of the table is a kind. Whatever a command writes goes into the folder of its job, in which it
works: `run` for runs, `out` for all else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from uncanny.errors import NotFoundError, ParamsError, UncannyError, UsageError
from uncanny.extras import install_hint
from uncanny.parameters import flags_of, in_words, shown_as
from uncanny.protocol import Protocol, is_installed, jobs
from uncanny.service.jobs.folder import OUT, RUN
from uncanny.service.jobs.params import (
    PATTERNS,
    Params,
    job_parameters,
)
from uncanny.service.jobs.references import Reference, references, replaced, texts, weights_folder

if TYPE_CHECKING:
    from uncanny.parameters import Parameters
    from uncanny.service.answers import Job
    from uncanny.service.service import Service


@dataclass(frozen=True, slots=True)
class Kind:
    """A command as a job.

    `fixed` are values that a job always has, with paths in its folder. `records` and `page` are where the
    command leaves them there, None for nowhere.
    """

    protocol: Protocol
    params: type[Params]
    fixed: Mapping[str, Any]
    records: str | None
    page: str | None

    @property
    def unit(self) -> str:
        """What its records are of, empty where its page shows none."""
        return self.protocol.unit if self.protocol.makes == "run" else ""

    @property
    def outputs(self) -> dict[str, str]:
        """What is written for people, by parameter; tables and JSON are for the service."""
        places = {name: value for name, value in self.fixed.items() if isinstance(value, str)}
        return {name: place for name, place in places.items() if name not in _TABLES and place != "-"}

    def option(self, name: str, value: Any) -> list[str]:
        """A parameter as words of a command line."""
        fields = self.protocol.parameters.model_fields | self.protocol.more.model_fields
        flag, off = flags_of(name, fields.get(name))
        if isinstance(value, bool):
            return [flag] if value else [off] * bool(off)
        if isinstance(value, Mapping):
            return [f"{flag}={key}={each}" for key, each in value.items()]
        if isinstance(value, list) and all(isinstance(each, int | float) for each in value):
            return [f"{flag}={','.join(map(str, value))}"]
        return [f"{flag}={each}" for each in (value if isinstance(value, list) else [value])]


# Of kinds that score: what a client fetches that wants the tables.
_TABLES: Final[Mapping[str, str]] = {
    "csv_file": f"{OUT}/scores.csv",
    "markdown_file": f"{OUT}/scores.md",
    "latex_file": f"{OUT}/scores.tex",
}


def kind_of(protocol: Protocol) -> Kind:
    run = protocol.makes == "run"
    page = f"{RUN}/report.html" if run else f"{OUT}/{protocol.command[0]}.html"
    has_run = "out" in protocol.parameters.model_fields and protocol.records_at != "out"
    fixed: dict[str, Any] = {"out": RUN} if has_run else {}
    if protocol.makes == "scores":
        fixed |= {"json_file": "-", "report": page, **_TABLES}
    else:
        fixed |= {"as_json": True, **({"out": OUT} if protocol.makes == "files" else {})}
    if protocol.tables:
        fixed |= _TABLES
    records = None
    if protocol.records is not None:
        records = f"{OUT if protocol.records_at else RUN}/{protocol.records}"
        if protocol.records_at:
            fixed[protocol.records_at] = records
    return Kind(protocol, job_parameters(protocol), fixed, records, page if protocol.report else None)


KINDS: Final[Mapping[str, Kind]] = {
    each.name: kind_of(each) for each in jobs().values() if is_installed(each)
}


def records_file(service: Service, job: Job) -> Path | None:
    """Where the records of a job are, or will be; None for a kind that has none, or is not known any more."""
    kind = KINDS.get(job.kind)
    return None if kind is None or kind.records is None else service.job_folder(job.id) / kind.records


def has_records(service: Service, job: Job) -> bool:
    """Whether it has brought any; one that ended before anything was done may have an empty file."""
    records = records_file(service, job)
    return records is not None and records.is_file() and records.stat().st_size > 0


def check_params(service: Service, kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters as they are kept: valid for the kind, and all they name is there and allowed.

    A path under an allowed folder is kept from the folder's name on, however it was named: anybody who reads
    is shown it. Raises NotFoundError for an unknown kind, ParamsError.
    """
    values = _read(kind, params)
    _check_call(kind, _filled(service, kind, values))

    def kept(text: str) -> str:
        return text.kept(service) if isinstance(text, Reference) else text

    named = {name: replaced(getattr(values, name), kept) for name in values.model_fields_set}
    return values.model_copy(update=named).model_dump(mode="json", exclude_unset=True, by_alias=True)


def values_of(service: Service, job: Job, folder: Path | None = None) -> dict[str, Any]:
    """What the command of a job is called with, by parameter; all it names is looked up once more.

    For a command that works in `folder` the paths go from there, since what it writes has them, and people
    read that who are not to know where the service lies. Else they are absolute. Raises NotFoundError,
    ParamsError.
    """
    called = _filled(service, job.kind, _read(job.kind, job.params), folder)
    return called | {**KINDS[job.kind].fixed}


def _filled(service: Service, kind: str, values: Params, folder: Path | None = None) -> dict[str, Any]:
    places = _places(service, kind, values)

    def place(text: str) -> str:
        path = places[text] if isinstance(text, Reference) else text
        inside = folder is not None and path.startswith(f"{service.data}{os.sep}")
        return os.path.relpath(path, folder) if inside else path

    fields = {name: replaced(getattr(values, name), place) for name in values.model_fields_set}
    return {name: value for name, value in fields.items() if value is not None}


def _check_call(kind: str, values: Mapping[str, Any]) -> None:
    """Raises ParamsError for what the function would not take."""
    protocol, called = KINDS[kind].protocol, {**values, **KINDS[kind].fixed}
    for parameters in (protocol.parameters, protocol.more):
        try:
            parameters(**{name: called[name] for name in parameters.model_fields if name in called})
        except UsageError as error:
            raise ParamsError([("params", error.text)]) from None


def title_of(job: Job) -> str:
    """What a job is called: by its name, or else by what it does, and with which model."""
    if job.name:
        return job.name
    if KINDS[job.kind].protocol.makes == "files" and isinstance(job.params.get("to"), list):
        return f"export {', '.join(map(str, job.params['to']))}"
    model = job.params.get("model")
    named = model[0] if isinstance(model, list) and model else model
    return f"{job.kind.replace('_', ' ')} {named}" if isinstance(named, str) else job.kind.replace("_", " ")


def kind_named(name: str) -> Kind:
    """Raises NotFoundError."""
    if name in KINDS:
        return KINDS[name]
    extra = jobs()[name].extra if name in jobs() else None
    if extra is not None:
        raise NotFoundError(
            f"Jobs of the kind {name} need the extra `{extra}`, which this service does not have",
            remedy=f"Install it where the service runs. {install_hint(extra)}",
        )
    raise NotFoundError(f"There is no kind of job {name!r}", remedy=f"The kinds are {', '.join(KINDS)}.")


def _read(kind: str, params: Mapping[str, Any]) -> Params:
    model = kind_named(kind).params
    try:
        return model.model_validate(dict(params))
    except ValidationError as error:
        raise ParamsError(
            [
                (".".join(map(str, each["loc"])) or "params", in_words(each, PATTERNS))
                for each in error.errors(include_url=False, include_input=False)
            ]
        ) from None


def _places(service: Service, kind: str, values: Params) -> dict[Reference, str]:
    """Where everything lies that the parameters name."""
    places: dict[Reference, str] = {}
    wrong: list[tuple[str, str]] = []
    for name in type(values).model_fields:
        for place, reference in references(getattr(values, name), name):
            try:
                places[reference] = reference.place(service)
            except ValueError as error:
                wrong.append((place, str(error)))
    wrong += _wrong_models(service, KINDS[kind].protocol.parameters, values)
    if wrong:
        raise ParamsError(wrong)
    return places


def _wrong_models(service: Service, takes: type[Parameters], values: Params) -> list[tuple[str, str]]:
    """Models that cannot be asked by their name alone, found before anything waits in a queue.

    Those that are loaded from a folder are asked by the name that the folder has on this service.
    """
    from uncanny.models.registry import IN_FOLDERS, parse_model

    wrong: list[tuple[str, str]] = []
    for name, field in takes.model_fields.items():
        asked = getattr(values, name, None) if shown_as(field).place == "model" else None
        for place, text in texts(asked, name):
            try:
                model = parse_model(text)
                if model.provider in IN_FOLDERS:
                    weights_folder(service, model.name)
            except UncannyError as error:
                wrong.append((place, error.text))
            except ValueError as error:
                wrong.append((place, str(error)))
    return wrong
