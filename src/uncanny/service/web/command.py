"""The command that a job is, as somebody types it elsewhere: with their own names of files and folders."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from uncanny.errors import NotFoundError
from uncanny.service.jobs.kinds import KINDS, arguments
from uncanny.service.jobs.references import job_of, replaced
from uncanny.service.service import Service
from uncanny.service.store.ids import is_id


def command_line(service: Service, kind: str, params: Mapping[str, Any]) -> str:
    """`uncanny …`, to be copied. What was uploaded is named as it was sent, other jobs by `runs/JOB`."""
    made = KINDS[kind]
    inputs, options = arguments(made, replaced(params, lambda text: _name(service, text)))
    fixed = [word for option in made.fixed for word in _fixed(option)]
    return shlex.join(["uncanny", *made.command, *inputs, *fixed, *options])


def _fixed(option: str) -> list[str]:
    """What the service always gives, with a name of the reader's own for what is written.

    Not what a reader need not have: what is printed has the figures, and any form of them can be asked for.
    """
    flag, _, value = option.partition("=")
    if flag in ("--json", "--csv", "--markdown", "--latex"):
        return []
    if value in ("run", "out"):
        return ["-o", value.upper()]
    name = value.rpartition("/")[2]
    return ["-o", name] if flag == "--out" else [flag, name]


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
