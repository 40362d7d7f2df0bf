"""The table of protocols: what each is called, what it takes, and what it leaves.

A protocol describes itself in the module `protocol` of its own folder. Commands, kinds of jobs, forms, pages
and the client read this table; `MODULES` is the only list of protocols.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Final, Literal

from uncanny.parameters import Parameters

MODULES: Final = (
    "uncanny.annotation.protocol",
    "uncanny.eval.detect.protocol",
    "uncanny.eval.mcq.protocol",
    "uncanny.eval.realism.protocol",
    "uncanny.eval.semantic.protocol",
    "uncanny.eval.audit.protocol",
    "uncanny.eval.compare.protocol",
    "uncanny.eval.artifacts.protocol",
    "uncanny.eval.edits.protocol",
    "uncanny.exports.protocol",
)

InputKind = Literal["images", "items", "pairs", "generators", "named", "run"]
"""What the first argument is: images, a file that names images (items, pairs), generators by name, runs or
files of records by name, or a run."""


@dataclass(frozen=True, slots=True)
class Input:
    """The first argument of a protocol: its name in Python, in jobs and in forms, and what a form says of it.

    `bundled`: the word `scenes` stands for the images, items or pairs that come with uncanny. `least` is the
    least number of what has names.
    """

    name: str
    kind: InputKind
    help: str
    bundled: bool = True
    least: int = 1


@dataclass(frozen=True, slots=True)
class Protocol:
    """A way of examining images, or of scoring what was found in them.

    `name` is the task in `run.json` and the kind of a job; `command` are the words that call it. `title` and
    `summary` say what it does, in two words and in a sentence. `parameters` are those of the function that
    runs it, `more` those that its command has besides. `makes` is a run, scores with a page and tables, or
    files. `records` is the file of its records: in a run's folder, or, of scores, the one that `records_at`,
    a parameter, names. `report` says whether it has a page without further input; `then` is a command that
    writes it. `tables`: a run's command writes tables of scores, too; `csv_head`, as
    MODULE:NAME, are the columns of their CSV. `reviewed`: people judge its findings.
    `unit` is what its records are of.
    """

    name: str
    command: tuple[str, ...]
    title: str
    summary: str
    parameters: type[Parameters]
    input: Input
    makes: Literal["run", "scores", "files"] = "run"
    records: str | None = None
    records_at: str = ""
    report: bool = True
    then: tuple[str, ...] = ()
    tables: bool = False
    csv_head: str = ""
    reviewed: bool = False
    unit: str = "images"
    more: type[Parameters] = Parameters

    @property
    def asks(self) -> bool:
        """Whether it asks models."""
        return "model" in self.parameters.model_fields


@cache
def protocols() -> Mapping[str, Protocol]:
    """All protocols by name, in the order in which pages list them."""
    modules = [import_module(name) for name in MODULES]
    return {each.name: each for module in modules for each in module.PROTOCOLS}
