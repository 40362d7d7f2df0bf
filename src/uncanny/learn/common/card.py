"""The model card: what a model is, what it was made from and how, how it did, what it is not for."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from uncanny import __version__
from uncanny.learn.common.result import LearnRun
from uncanny.protocol import protocols
from uncanny.records.jsonl import write_named
from uncanny.wording import counted

_CARD = """\
---
base_model: {base}
library_name: {library}
tags:
{tags}
---

# {title}

{about}

## Use

{use}

## Training

Trained by uncanny {version} with `uncanny {command}`, seed {seed}, on {machine}.

{training}

| Data | SHA-256 |
| --- | --- |
{data}

The base model's files have the digest `{base_sha256}`. `run.json` of the run has all parameters and versions.

| Parameter | Value |
| --- | --- |
{parameters}

## Limits

{limits}

The licenses of the base model and of the training data apply. uncanny knows neither: add them before you
publish the model.
"""


def write_card(
    run: LearnRun,
    *,
    title: str,
    about: str,
    use: str,
    library: str,
    limits: Sequence[str],
) -> Path:
    """Write `README.md` into the folder of the model and return its path. Raises OSError.

    `about` says in a paragraph what the model does, `use` how to load and serve it, `limits` what it is not
    for, a sentence each.
    """
    plan, command = run.manifest.plan, protocols()[str(run.manifest.task)].command
    data: Mapping[str, Any] = plan.get("data", {})
    counts: Mapping[str, int] = run.results.get("examples", {})
    sizes = {name: f", {counted(number, 'example')}" for name, number in counts.items()}
    rows = [f"| {name}{sizes.get(name, '')} | `{sha256}` |" for name, sha256 in data.items()]
    own = {name: value for name, value in plan.items() if name not in ("data", "base_sha256", "seed")}
    text = _CARD.format(
        base=_yaml(str(run.manifest.model)),
        library=library,
        tags="\n".join(f"- {each}" for each in ("uncanny", *command[1:])),
        title=title,
        about=about,
        use=use,
        version=__version__,
        command=shlex.join(command),
        seed=plan.get("seed"),
        machine=run.results.get("machine", "an unknown machine"),
        training=run.to_markdown(best=False),
        data="\n".join(rows),
        base_sha256=plan.get("base_sha256"),
        parameters="\n".join(f"| {name} | `{_cell(value)}` |" for name, value in own.items()),
        limits="\n".join(f"- {each}" for each in limits),
    )
    path = run.model / "README.md"
    write_named(path, [text.encode("utf-8", "replace")])
    return path


def _yaml(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|")


def detector_words(run: LearnRun, command: str) -> str:
    """The command line that asks the trained detector, as a card shows it."""
    return f"```sh\nuncanny {command} IMAGES --detector {run.model} -o runs/d\n```"
