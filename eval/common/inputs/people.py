"""What people said, in one run folder or several: all its lines, people of the same name told apart."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.common.inputs.problems import parse_records
from uncanny.schema import Record


def read_people(folders: Sequence[Path], kinds: Mapping[str, type[Record]]) -> list[list[Any]]:
    """The records of each kind, by the name of its file, in the order of the lines; all have a `person`.

    Files of the first kind may be named in place of folders, and have to be there; the others lie beside
    them. A file that is named twice is read once. A last line that is half-written is passed over. A person
    who is in several folders counts as one in each, named with the folder: two people may have the same name.
    Raises ItemsError with every invalid line, UsageError for what cannot be read.
    """
    problems: list[Problem] = []
    read: dict[Path, list[list[Any]]] = {}
    # A folder and its file, and other spellings of them, are one: nobody is counted twice.
    firsts = {each: each / next(iter(kinds)) if each.is_dir() else each for each in folders}
    once = {os.path.realpath(first): (each, first) for each, first in reversed(firsts.items())}
    for folder, first in reversed(once.values()):
        if not first.exists():
            lacks = f"contains no {first.name}" if folder.is_dir() else "does not exist"
            raise UsageError(f"{folder} {lacks}", remedy="Pass a folder in which people answered.")
        read[folder] = []
        for place, (name, kind) in enumerate(kinds.items()):
            file = first.with_name(name) if place else first
            lines, wrong = (
                parse_records(file, kind, growing=True) if not place or file.is_file() else ([], [])
            )
            read[folder].append([each for _, each in lines])
            problems += wrong
    if problems:
        what = str(folders[0]) if len(folders) == 1 else f"{len(folders)} folders"
        raise ItemsError(what, problems, remedy="Correct these lines; nothing was scored.")
    names = {folder: {each.person for own in lists for each in own} for folder, lists in read.items()}
    often = Counter(person for own in names.values() for person in own)
    known = Counter(folder.name for folder in read)
    for folder, lists in read.items():
        where = folder.name if known[folder.name] == 1 else folder
        new = {person: f"{person} ({where})" for person in names[folder] if often[person] > 1}
        for own in lists:
            own[:] = [each.model_copy(update={"person": new.get(each.person, each.person)}) for each in own]
    return [[each for lists in read.values() for each in lists[place]] for place in range(len(kinds))]
