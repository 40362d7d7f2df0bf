"""The table of protocols: what each is called, what it takes, and what it leaves.

A protocol describes itself in the module `protocol` of its own folder. Commands, kinds of jobs, forms, pages
and the client read this table; `MODULES` is the only list of protocols.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from uncanny.extras import Extra
    from uncanny.parameters import Parameters

MODULES: Final = (
    "uncanny.annotation.protocol",
    "uncanny.eval.detect.protocol",
    "uncanny.eval.mcq.protocol",
    "uncanny.eval.realism.protocol",
    "uncanny.eval.semantic.protocol",
    "uncanny.eval.audit.protocol",
    "uncanny.eval.compare.protocol",
    "uncanny.eval.merge.protocol",
    "uncanny.eval.artifacts.protocol",
    "uncanny.eval.edits.protocol",
    "uncanny.eval.pairs.protocol",
    "uncanny.eval.curate.protocol",
    "uncanny.exports.protocol",
    "uncanny.learn.protocol",
)

InputKind = Literal["images", "items", "pairs", "generators", "named", "run", "chats", "truth"]
"""What the first argument is: images, a file that names some (items, pairs, chats), generators by name, runs
or files of records by name, a run, or a truth of artifacts."""


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


@dataclass(frozen=True)
class Protocol:
    """A way of examining images, or of scoring what was found in them.

    `name` is the task in `run.json` and the kind of a job; `command` are the words that call it. `title` and
    `summary` say what it does, in two words and in a sentence or two. `input` is its first argument; a
    protocol without one is not a job. `makes` is a run, scores with a page and tables, or files. `records`
    is the file of its records: in a run's folder, or, of scores, the one that `records_at`, a parameter,
    names. `prompts` are the sets of texts of the package that it asks with. `report` says whether it has a
    page without further input; `then` is a command that writes it. `tables`: a run's command writes tables
    of scores, too. `reviewed`: people judge its findings. `unit` is what its records are of.

    What takes long to import is named as MODULE:NAME. `takes` are the parameters of the function that runs
    it, `takes_more` those that its command has besides. `run` asks one model, and `forecast` says what that
    would cost, for a protocol whose command is made from this table. `record` is the class of its records.
    `page` writes the page of a run, from its folder and `ReportParameters`. `csv_head` are the columns of
    its CSV. `packages` are those that it needs of an `extra`: a service without them has no such job.
    """

    name: str
    command: tuple[str, ...]
    title: str = ""
    summary: str = ""
    takes: str = ""
    input: Input = Input("", "images", "")
    makes: Literal["run", "scores", "files"] = "run"
    records: str | None = None
    records_at: str = ""
    prompts: tuple[str, ...] = ()
    report: bool = True
    then: tuple[str, ...] = ()
    tables: bool = False
    reviewed: bool = False
    unit: str = "images"
    takes_more: str = "uncanny.parameters:Parameters"
    run: str = ""
    forecast: str = ""
    record: str = ""
    page: str = ""
    csv_head: str = ""
    extra: Extra | None = None
    packages: tuple[str, ...] = ()

    @cached_property
    def parameters(self) -> type[Parameters]:
        """What the function that runs it takes."""
        kind: type[Parameters] = named(self.takes)
        return kind

    @cached_property
    def more(self) -> type[Parameters]:
        """What its command takes besides."""
        kind: type[Parameters] = named(self.takes_more)
        return kind

    @property
    def asks(self) -> bool:
        """Whether it asks models."""
        return "model" in self.parameters.model_fields


def named(place: str) -> Any:
    """What MODULE:NAME stands for."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


@cache
def protocols() -> Mapping[str, Protocol]:
    """All protocols by name, in the order in which pages list them."""
    modules = [import_module(name) for name in MODULES]
    return {each.name: each for module in modules for each in module.PROTOCOLS}


def run_records() -> list[str]:
    """The files of records that runs have, annotations first."""
    names = (each.records for each in protocols().values() if each.makes == "run")
    return list(dict.fromkeys(name for name in names if name))


def prompt_names() -> list[str]:
    """The package's sets of texts that models are asked with."""
    return list(dict.fromkeys(name for each in protocols().values() for name in each.prompts))


def jobs() -> Mapping[str, Protocol]:
    """Those that a service runs, where it has the packages."""
    return {name: each for name, each in protocols().items() if each.input.name}


def is_installed(protocol: Protocol) -> bool:
    """Whether all packages are here that a protocol needs besides uncanny's own."""
    return all(find_spec(each) is not None for each in protocol.packages)
