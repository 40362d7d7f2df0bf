"""Prompt texts as Markdown files, loaded by name and hashed.

A set is a folder of `.md` files with `$variables`, which all have to be filled in. Its id, as
`annotate@1a2b3c4d`, changes with any character of any file, and stands in every record made with it.
Users put texts of their own in place of ours (`folders.py`).

Protocols of this package keep theirs here (`prompt_set`), others wherever they like (`load_prompt_set`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template
from typing import Final

from uncanny.errors import ExtensionError
from uncanny.wording import shown


@dataclass(frozen=True, slots=True)
class Prompt:
    """One text with its `variables`. `id` is `name@hash`, the first 8 hex digits of the text's SHA-256."""

    name: str
    id: str
    template: Template
    variables: tuple[str, ...]

    def fill(self, **variables: str) -> str:
        """The text with its variables filled in. Raises ExtensionError that names what is not given."""
        self.check(variables)
        return self.template.substitute(variables)

    def check(self, given: Container[str], *, of: str | None = None) -> None:
        """Raises ExtensionError that names the variables not among `given`; `of` says whose prompt it is."""
        if missing := [f"${name}" for name in self.variables if name not in given]:
            whose = "" if of is None else f" of {of}"
            raise ExtensionError(
                f"The prompt {shown(self.name)}{whose} has variables that were not filled in: "
                f"{', '.join(missing)}",
                remedy="Pass each as a keyword argument of the call, or take it out of the prompt.",
            )


def make_prompt(name: str, text: str) -> Prompt:
    """A prompt of this text; the same text always makes the same id."""
    template = Template(text)
    return Prompt(name, f"{name}@{_digest(text)}", template, tuple(template.get_identifiers()))


@dataclass(frozen=True, slots=True)
class PromptSet:
    """All texts of one task.

    `own` names those that a user has put in place of ours. `chosen` says that a run is to be asked with this
    set and no other: one that was begun with others does not go on.
    """

    name: str
    id: str
    prompts: dict[str, Prompt]
    own: tuple[str, ...] = field(default=(), compare=False)
    chosen: bool = field(default=False, compare=False)

    def __getitem__(self, name: str) -> Prompt:
        """Raises ExtensionError for a name that is none of its prompts."""
        try:
            return self.prompts[name]
        except KeyError:
            remedy = f"They are called {', '.join(self.prompts)}."
            raise ExtensionError(f"{self.id} has no prompt {shown(name)}", remedy=remedy) from None

    def hashes(self) -> dict[str, str]:
        return {name: prompt.id.partition("@")[2] for name, prompt in self.prompts.items()}

    def texts(self) -> dict[str, str]:
        """All texts by name, with their variables."""
        return {name: prompt.template.template for name, prompt in self.prompts.items()}

    def lacks(self, other: PromptSet) -> str | None:
        """Why it cannot be asked with where `other` is, in words; None where it can.

        It has the same names, and no variable beyond theirs.
        """
        for name, prompt in other.prompts.items():
            if name not in self.prompts:
                return f"the text {name}.md is missing"
            if not self[name].template.is_valid():
                return f"{name}.md has a $ that does not start a variable"
            more = [variable for variable in self[name].variables if variable not in prompt.variables]
            if more:
                return f"{name}.md has the variable ${more[0]}, which is not filled in any more"
        return None


# Texts that several sets have in common, and how a prompt takes one in: `{{realism}}`.
SHARED: Final = "shared"
_TAKEN_IN: Final = re.compile(r"\{\{(\w+)\}\}")


@cache
def set_names() -> tuple[str, ...]:
    """The sets kept here. `annotate` has the texts of its paper schedule; other schedules have their own."""
    folders = (each for each in files(__name__).iterdir() if each.name != SHARED)
    return tuple(sorted(each.name for each in folders if _texts(each)))


@cache
def prompt_set(name: str) -> PromptSet:
    """The set kept in the folder `name`. Raises LookupError if there is none."""
    texts = _texts(files(__name__) / name) if name != SHARED else {}
    if not texts:
        raise LookupError(f"no prompts in {name!r}")
    shared = _texts(files(__name__) / SHARED)

    def whole(text: str) -> str:
        return _TAKEN_IN.sub(lambda match: whole(shared[match[1]]), text)

    return make_set(name, {each: whole(text) for each, text in texts.items()})


def current_set(prompts: PromptSet) -> PromptSet:
    """What this version of the package asks in place of `prompts`: its set of that name, else the same."""
    return prompt_set(prompts.name) if prompts.name in set_names() else prompts


def load_prompt_set(name: str, folder: Traversable) -> PromptSet:
    """The `.md` files of any folder as the set `name`: a `Path`, or what `importlib.resources.files` gives.

    `name` stands in records; it is none of the package's sets. Raises LookupError if there is no text.
    """
    texts = _texts(folder)
    if not texts:
        raise LookupError(f"no prompts in {name!r}")
    return make_set(name, texts)


def make_set(name: str, texts: Mapping[str, str]) -> PromptSet:
    """A set of these texts; the same texts always make the same id."""
    prompts = {name: make_prompt(name, texts[name]) for name in sorted(texts)}
    whole = _digest("".join(f"{prompt.id}\n" for prompt in prompts.values()))
    return PromptSet(name, f"{name}@{whole}", prompts)


UNASKED: Final = "detector@"
"""How the ids begin that stand in records of detectors, which are asked without prompts."""


def is_ours(set_id: str) -> bool:
    """Whether this is the id of one of the package's sets."""
    name = set_id.partition("@")[0]
    return name in set_names() and prompt_set(name).id == set_id


def _texts(folder: Traversable) -> dict[str, str]:
    return {
        file.name.removesuffix(".md"): file.read_text(encoding="utf-8").strip()
        for file in (folder.iterdir() if folder.is_dir() else ())
        if file.name.endswith(".md")
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
