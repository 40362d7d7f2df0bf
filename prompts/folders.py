"""Texts of users: a folder that is asked with in place of ours, and our own written out to begin from.

A folder has `.md` files of the same names as ours; what is missing there is taken from ours. It is read whole
or refused with the file and the variable that are wrong, before anything is asked.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Final

from uncanny.errors import UsageError
from uncanny.files import open_file
from uncanny.files.beneath import OutsideError, names_in
from uncanny.prompts import PromptSet, make_set, prompt_set
from uncanny.settings import secrets
from uncanny.wording import counted, option, shown

# Which schedule of `uncanny annotate` asks with which texts.
SCHEDULES: Final[Mapping[str, str]] = {"packed": "packed", "annotate": "paper", "single": "single"}
README: Final = "README.md"
MOST_BYTES: Final = 1_000_000

# What stands in the place of a variable. Data from models and files is JSON unless it says otherwise.
VARIABLES: Final[Mapping[str, str]] = {
    "attributes": "what is wrong with the object itself, as a list",
    "box_key": "the name under which boxes are wanted, such as `bbox_2d`",
    "box_rule": "what the numbers of a box are, from the text `box_….md` of the model's form",
    "caption": "what the whole picture shows, in words",
    "category": "the name of the sort of artifact that is asked for, such as `edges_shapes`",
    "choices": "the options, one a line: `A. …`",
    "count": "how many findings or enlarged parts there are",
    "cut": "names of the objects above the limit, which are not examined",
    "definition": "what belongs to it: the text of that name, such as `edges_shapes.md` or `small.md`",
    "definitions": "the names of all sorts that are asked for, each with its text",
    "doubts": "how to answer what others doubt, from `doubts.md`, or nothing where nothing is doubted",
    "findings": "everything found so far, as a list, or numbered, one a line",
    "first": "the object that was painted over first, and after which words",
    "height": "of the picture as it is sent, in pixels",
    "inventory": "what to list of the picture, from `inventory.md`",
    "language": "the language of the answers, by its name",
    "limit": "how many objects are examined at most",
    "listed": "which enlarged parts the model is shown, from `listed.md`",
    "magnitude": "how much is to change: `small`, `medium` or `large`",
    "names": "the names of all objects",
    "notes": "the model's own free text of the step before",
    "object": "the object in question, with name and description",
    "objects": "objects of the picture, as a list, or one a line",
    "of": "what a box is within: the picture, or a part of it",
    "open_look": "what to look for in the whole picture, from `open_look.md`",
    "part_rule": "as `$box_rule`, for a box within an enlarged part",
    "parts": "the enlarged parts with what they show, one a line",
    "question": "the text of the question that is asked with a picture otherwise, filled in",
    "problem": "what is wrong with the answer before, in words",
    "relations": "what is wrong between the object and others, as a list",
    "scene": "all objects, numbered, one a line",
    "shown": "which parts the integrator is shown, from `shown.md`, or nothing where there are none",
    "size": "how large that is, in words",
    "strictness": "the text `open.md` or `strict.md`",
    "text": "the label or caption that is to be changed",
    "width": "of the picture as it is sent, in pixels",
    "words": "the verdicts there are, in words; of a label or caption, how many words it may have",
}
# Without these a text asks the same question; without any other it asks about nothing.
OPTIONAL: Final = frozenset(
    {
        "box_key",
        "box_rule",
        "category",
        "count",
        "cut",
        "doubts",
        "height",
        "inventory",
        "language",
        "limit",
        "magnitude",
        "names",
        "of",
        "open_look",
        "part_rule",
        "problem",
        "shown",
        "size",
        "strictness",
        "width",
        "words",
    }
)


@dataclass(frozen=True, slots=True)
class TextFile:
    """One text of a protocol: the file it is in, and the variables it needs and may have besides."""

    file: str
    needed: tuple[str, ...]
    optional: tuple[str, ...]

    @property
    def variables(self) -> str:
        """For people: `$object, $notes`; those that may be left out in brackets."""
        return ", ".join([*(f"${name}" for name in self.needed), *(f"[${name}]" for name in self.optional)])

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.needed, *self.optional)


def text_files(protocol: str) -> tuple[TextFile, ...]:
    """The texts of a protocol, by name."""
    return tuple(_text_file(name, text) for name, text in sorted(prompt_set(protocol).texts().items()))


def read_prompts(protocol: str, folder: str | os.PathLike[str] | None) -> PromptSet:
    """The texts of `folder`, and ours where it has none; all ours for None.

    The set has the name of ours, so that records say `mcq@` and a hash of all its texts. Files are UTF-8; a
    `README.md`, hidden files and copies that editors keep (`q1.md~`) are passed over. A `system.md` that is
    empty sends no system text, any other text has to say something.

    Raises UsageError for what is no folder of texts, a file that is none of ours, a variable that our text
    has not, and one that it needs.
    """
    ours = prompt_set(protocol)
    if folder is None:
        return ours
    texts = _read_folder(protocol, Path(folder))
    mixed = make_set(protocol, ours.texts() | texts)
    own = tuple(name for name in sorted(texts) if mixed[name].id != ours[name].id)
    return replace(mixed, own=own, chosen=True)


def write_prompts(protocol: str, folder: Path, *, force: bool = False) -> tuple[Path, ...]:
    """Write our texts into `folder`, and `README.md` with a table of their variables; returns the files.

    Raises UsageError for a file that already exists with another prompt, unless with `force`, and where
    the folder cannot be written.
    """
    contents = {f"{name}.md": f"{text}\n" for name, text in prompt_set(protocol).texts().items()}
    contents[README] = variables_page(protocol)
    files = {folder / name: content.encode() for name, content in contents.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = [path for path, content in files.items() if path.exists() and path.read_bytes() != content]
        if others and not force:
            raise UsageError(
                f"{others[0]} already exists with another prompt",
                remedy=f"Pass another folder with {option('out')}, or {option('force', True)}.",
            )
        for path, content in files.items():
            path.write_bytes(content)
    except OSError as error:
        raise UsageError(
            f"The prompts cannot be written to {folder}: {error.strerror or error}",
            remedy=f"Pass a folder that you can write to with {option('out')}.",
        ) from error
    return tuple(files)


def variables_page(protocol: str) -> str:
    """The table of a protocol's texts and their variables, as Markdown."""
    names = sorted({name for file in text_files(protocol) for name in file.names})
    return "\n".join(
        [
            f"# Texts of `{protocol}`, {prompt_set(protocol).id}",
            "",
            "Change any of them, delete those that are to stay as they are, and name this folder as",
            "`prompts`. Variables in brackets may be left out; write `$$` for a dollar sign.",
            "",
            "| File | Variables |",
            "| --- | --- |",
            *(
                f"| `{file.file}` | {file.variables and f'`{file.variables}`'} |"
                for file in text_files(protocol)
            ),
            "",
            "| Variable | What stands in its place |",
            "| --- | --- |",
            *(f"| `${name}` | {VARIABLES.get(name, '')} |" for name in names),
            "",
        ]
    )


def _text_file(name: str, text: str) -> TextFile:
    variables = sorted(set(Template(text).get_identifiers()))
    needed = tuple(each for each in variables if each not in OPTIONAL)
    return TextFile(f"{name}.md", needed, tuple(each for each in variables if each in OPTIONAL))


def _read_folder(protocol: str, folder: Path) -> dict[str, str]:
    named = f"{option('prompts')}: {folder}"
    try:
        real = folder.resolve()
        files = [folder / name for name in names_in(folder)]
    except FileNotFoundError:
        raise UsageError(f"{named} does not exist", remedy=_remedy(protocol)) from None
    except NotADirectoryError:
        remedy = f"Pass the folder it is in: {folder.parent}."
        raise UsageError(f"{named} is a file, not a folder of prompts", remedy=remedy) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{named} cannot be read: {why}", remedy=_remedy(protocol)) from error
    texts = [
        file
        for file in files
        if not file.name.startswith(".")
        and not file.name.endswith("~")
        and file.name.casefold() != README.casefold()
    ]
    if not texts:
        raise UsageError(f"{named} contains no prompts", remedy=_remedy(protocol))
    known = {file.file: file for file in text_files(protocol)}
    if any(file.name == protocol and file.is_dir() and not file.is_symlink() for file in texts):
        remedy = f"Pass {folder / protocol}."
        raise UsageError(f"{named} contains prompts of several protocols", remedy=remedy)
    for file in texts:
        if file.name not in known:
            what = f"{named}: {protocol} has no prompt {shown(file.name)}"
            raise UsageError(what, remedy=_where_it_is(protocol, file.name, known))
    return {file.name.removesuffix(".md"): _read_text(file, real, known[file.name]) for file in texts}


def _where_it_is(protocol: str, name: str, known: Iterable[str]) -> str:
    """What to do about a text that a protocol has not: another schedule has it, or its name is misspelt."""
    if protocol in SCHEDULES:
        for other, schedule in SCHEDULES.items():
            if name.removesuffix(".md") in prompt_set(other).prompts:
                return (
                    f"`{other}` has it: pass {option('schedule', schedule)}, "
                    f"or start from `uncanny prompts {protocol}`."
                )
    near = difflib.get_close_matches(name, known, n=1)
    return f"It is called {near[0]}?" if near else f"They are called {', '.join(known)}."


def _read_text(path: Path, folder: Path, ours: TextFile) -> str:
    """A prompt that lies in the real `folder`. What a link leads to elsewhere is never sent to models."""
    named = str(path)
    try:
        with open_file(path, within=[folder]) as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise UsageError(f"{named} has more than {MOST_BYTES:,} bytes", remedy="Shorten the prompt.")
        text = data.decode("utf-8-sig")
    except OutsideError:
        raise UsageError(
            f"{named} is a link that leads out of the folder", remedy="Put the file itself there."
        ) from None
    except IsADirectoryError:
        raise UsageError(f"{named} is a folder, not a file", remedy="Put the file itself there.") from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{named} is not UTF-8: byte {error.start + 1} is 0x{error.object[error.start]:02x}",
            remedy="Save it as UTF-8.",
        ) from None
    except OSError as error:
        raise UsageError(f"{named} cannot be read: {error.strerror or error}") from error
    text = re.sub(r"\r\n?", "\n", text).strip()
    if not text and ours.file != "system.md":
        raise UsageError(f"{named} is empty", remedy="Write a prompt, or delete the file to use uncanny's.")
    for variable, secret in secrets():
        if secret in text:
            # It would be sent to models and stand in `run.json`.
            raise UsageError(f"{named} contains the key or password in {variable}", remedy="Remove it.")
    _check_variables(named, text, ours)
    return text


def _check_variables(named: str, text: str, ours: TextFile) -> None:
    known = ours.names
    its = f"It has {_listed(known)}." if known else "It has none."
    for place in Template.pattern.finditer(text):
        where = f"{named}, line {text.count(chr(10), 0, place.start()) + 1}"
        name = place["named"] or place["braced"]
        if place["invalid"] is not None:
            piece = text[place.start() :].split(maxsplit=1)[0]
            raise UsageError(
                f"{where}: {shown(piece)} is not a variable", remedy="Write $$ for a dollar sign."
            )
        if name is not None and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            remedy = f"Did you mean ${near[0]}?" if near else f"{its} Write $$ for a dollar sign."
            raise UsageError(f"{where}: there is no variable ${name} in this prompt", remedy=remedy)
    given = set(Template(text).get_identifiers())
    missing = [name for name in ours.needed if name not in given]
    if missing:
        raise UsageError(
            f"{named}: {_listed(missing)} {'is' if len(missing) == 1 else 'are'} missing",
            remedy=f"It stands for {VARIABLES.get(missing[0], 'what is asked about')}; without it the "
            "model is not told.",
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"${name}" for name in names)


def _remedy(protocol: str) -> str:
    texts = counted(len(text_files(protocol)), "prompt")
    return f"`uncanny prompts {protocol}` shows {texts} to start from, and writes them to a folder."
