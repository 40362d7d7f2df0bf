"""The command that a job is, as somebody types it elsewhere: with their own names of files and folders."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from uncanny.errors import NotFoundError
from uncanny.service.jobs.kinds import KINDS
from uncanny.service.jobs.params import written
from uncanny.service.service import Service


def command_line(service: Service, kind: str, params: Mapping[str, Any]) -> str:
    """`uncanny …`, to be copied. What was uploaded is named as it was sent, other jobs by `runs/JOB`."""
    made = KINDS[kind]
    options: list[str] = []
    for each in made.fixed:
        options += _fixed(each)
    inputs: list[str] = []
    for name, value in params.items():
        shown = _named(service, value)
        if name != made.inputs:
            options += written(name, shown)
        elif isinstance(shown, dict):
            inputs = [f"{key}={each}" for key, each in shown.items()]
        elif shown is not None:
            inputs = [str(each) for each in shown] if isinstance(shown, list) else [str(shown)]
    return shlex.join(["uncanny", *made.command, *inputs, *options])


def _fixed(option: str) -> list[str]:
    """What the service always gives, with a name of the reader's own for what is written."""
    flag, _, value = option.partition("=")
    if flag == "--json":
        return []
    if value in ("run", "out"):
        return ["-o", value.upper()]
    name = value.rpartition("/")[2]
    return ["-o", name] if flag == "--out" else [flag, name]


def _named(service: Service, value: Any) -> Any:
    if isinstance(value, str):
        return _place(service, value)
    if isinstance(value, Mapping):
        return {key: _named(service, each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_named(service, each) for each in value]
    return value


def _place(service: Service, text: str) -> str:
    scheme, _, what = text.partition(":")
    if scheme == "job" and what.startswith("job_"):
        return f"runs/{what}"
    if scheme != "upload":
        return text
    try:
        if what.startswith("set_"):
            return service.uploads.image_set(what).name or "images/"
        return service.uploads.file(what).name
    except NotFoundError:
        return text
