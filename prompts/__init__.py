"""Prompt texts as Markdown files, loaded by name and hashed.

A set is a folder of `.md` files with `$variables`; a missing variable fails. Its id, `annotate@1a2b3c4d`,
changes with any character of any file, and stands in every record made with it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template


@dataclass(frozen=True, slots=True)
class Prompt:
    """One text. `id` is `name@hash`, the hash the first 8 hex digits of the file's SHA-256."""

    name: str
    id: str
    template: Template

    def fill(self, **variables: str) -> str:
        """The text with its variables filled in. Raises KeyError for a variable that is not given."""
        return self.template.substitute(variables)


@dataclass(frozen=True, slots=True)
class PromptSet:
    """All texts of one task."""

    name: str
    id: str
    prompts: dict[str, Prompt]

    def __getitem__(self, name: str) -> Prompt:
        return self.prompts[name]

    def hashes(self) -> dict[str, str]:
        return {name: prompt.id.partition("@")[2] for name, prompt in self.prompts.items()}


@cache
def prompt_set(name: str) -> PromptSet:
    """The set kept in the folder `name`. Raises LookupError if there is none."""
    folder = files(__name__) / name
    texts = {
        file.name.removesuffix(".md"): file.read_text(encoding="utf-8").strip()
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".md")
    }
    if not texts:
        raise LookupError(f"no prompts in {name!r}")
    prompts = {key: Prompt(key, f"{key}@{_digest(text)}", Template(text)) for key, text in texts.items()}
    whole = _digest("".join(f"{prompt.id}\n" for prompt in prompts.values()))
    return PromptSet(name, f"{name}@{whole}", prompts)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
