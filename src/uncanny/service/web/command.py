"""The command that a job is, as somebody types it elsewhere: with their own names of files and folders."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from uncanny.errors import NotFoundError
from uncanny.service.jobs.folder import OUT, RUN
from uncanny.service.jobs.kinds import KINDS
from uncanny.service.jobs.references import job_of, replaced
from uncanny.service.service import Service
from uncanny.service.store.ids import is_id


def command_line(service: Service, kind: str, params: Mapping[str, Any]) -> str:
    """`uncanny …`, to be copied. What was uploaded is named as it was sent, other jobs by `runs/JOB`."""
    made = KINDS[kind]
    named = replaced(params, lambda text: _name(service, text))
    inputs = _words(named.pop(made.protocol.input.name, []))
    options = [word for name, value in named.items() for word in made.option(name, value)]
    out: list[str] = []
    for name, place in made.outputs.items():
        target = place.upper() if place in (RUN, OUT) else place.rpartition("/")[2]
        out += ["-o", target] if name == "out" else made.option(name, target)
    return shlex.join(["uncanny", *made.protocol.command, *inputs, *out, *options])


def _words(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{key}={each}" for key, each in value.items()]
    return list(map(str, value)) if isinstance(value, list) else [str(value)]


def _name(service: Service, text: str) -> str:
    if (job := job_of(text)) is not None:
        return f"runs/{job}"
    upload = text.removeprefix("upload:")
    try:
        if is_id(upload, "set"):
            return service.uploads.image_set(upload).name or "images/"
        if is_id(upload, "file"):
            return service.uploads.file(upload).name
    except NotFoundError:
        pass
    return text
