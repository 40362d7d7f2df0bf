"""Folders of generators, and of the releases of one: each folder in them is one, and the rest is skipped."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard, cast

from uncanny.errors import UsageError
from uncanny.eval.common.inputs.sources import Source, read_sources
from uncanny.images.discover import IMAGE_SUFFIXES
from uncanny.images.row_files import ROW_SUFFIXES, has_pictures
from uncanny.records.annotation_table import LINES, TABLE
from uncanny.wording import counted, option

if TYPE_CHECKING:
    from uncanny.eval.audit.parameters import Releases
    from uncanny.eval.common.inputs.sources import AnnotationSource

_RUN_FILES = ("run.json", LINES, TABLE)
_MOST_NAMED = 12


@dataclass(frozen=True, slots=True)
class GeneratorFolder:
    """What is in a folder: places by name, in order, and by name why other entries are no generators."""

    folder: Path
    generators: Mapping[str, Path]
    skipped: Mapping[str, str]

    @property
    def notice(self) -> str:
        """Which were taken and which skipped, as a sentence."""
        taken = f"{self.folder}: {counted(len(self.generators), 'folder')} taken as generators: "
        taken += f"{', '.join(self.generators)}."
        if not self.skipped:
            return taken
        skipped = [f"{name} ({why})" for name, why in list(self.skipped.items())[:_MOST_NAMED]]
        more = len(self.skipped) - len(skipped)
        return f"{taken} Skipped: {', '.join(skipped)}{f' and {more:,} more' if more else ''}."


def read_generator_folder(folder: str | PathLike[str]) -> GeneratorFolder:
    """What of `folder` is a generator: each folder in it that is a run, or holds an image, or a table with
    images in its rows, at any depth.

    Raises UsageError where it cannot be read, is a run itself, or holds no generator.
    """
    path = Path(folder)
    if _is_run(path):
        raise UsageError(f"{path} is a run, not a folder of generators", remedy=f"Write NAME={path}.")
    try:
        entries = sorted(path.iterdir(), key=lambda entry: entry.name)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror or error}",
            remedy="Pass a folder of generators' folders.",
        ) from error
    # An audit's own page, and the reports beside it, may lie among the runs.
    reasons = {entry: _why_skipped(entry) for entry in entries if not _is_own(entry)}
    generators = {entry.name: entry for entry, why in reasons.items() if why is None}
    if not generators:
        images = any(entry.suffix.lower() in IMAGE_SUFFIXES for entry in entries)
        raise UsageError(
            f"{path} contains images, not a folder for each generator"
            if images
            else f"{path} contains no generators",
            remedy=f"To audit these images as one generator, write NAME={path}."
            if images
            else "Pass a folder with a folder of images, or a run, for each generator.",
        )
    return GeneratorFolder(
        path, generators, {entry.name: why for entry, why in reasons.items() if why is not None}
    )


def read_releases(before: Releases, now: Sequence[Source]) -> tuple[Source, ...]:
    """Earlier releases by generator, each under its name, the oldest first.

    A folder of runs has them in the order of their names, numbers in them by size; the runs of `now` in it
    are passed over. Raises UsageError as `read_sources` does, and for a release that is named twice.
    """
    if not isinstance(before, Mapping):
        return read_sources(before)  # raises a UsageError that names the expected form
    several: list[tuple[str, AnnotationSource]] = []
    for name, given in before.items():
        places: Sequence[AnnotationSource] = (
            given if _are_places(given) else [cast("AnnotationSource", given)]
        )
        several += [(name, place) for each in places for place in _runs_in(each, now)]
    releases = tuple(source for name, place in several for source in read_sources({name: place}))
    seen = set[tuple[str, Path]]()
    for each in releases:
        if each.path is None:
            continue
        if (key := (each.name, each.path.resolve())) in seen:
            raise UsageError(
                f"{option('before')}: {each.path} is named twice",
                remedy="Name each earlier release once.",
            )
        seen.add(key)
    return releases


def _are_places(given: object) -> TypeGuard[Sequence[str | PathLike[str]]]:
    return (
        isinstance(given, Sequence)
        and not isinstance(given, str)
        and bool(given)
        and all(isinstance(each, str | PathLike) for each in given)
    )


def _runs_in(place: AnnotationSource, now: Sequence[Source]) -> list[AnnotationSource]:
    """The runs in a folder that is not one itself, without those of `now`; else only what was given."""
    path = Path(place) if isinstance(place, str | PathLike) else None
    if path is None or not path.is_dir() or _is_run(path):
        return [place]
    try:
        runs = sorted(filter(_is_run, path.iterdir()), key=lambda run: _numbered(run.name))
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror or error}", remedy="Pass a run, or a folder of runs."
        ) from error
    others = {each.path.resolve() for each in now if each.path is not None}
    runs = [run for run in runs if run.resolve() not in others]
    if not runs:
        raise UsageError(
            f"{option('before')}: {path} is not a run and contains none",
            remedy="Pass a run of uncanny annotate, or a folder of runs. Annotate images first.",
        )
    return [*runs]


def _is_run(path: Path) -> bool:
    return any((path / file).is_file() for file in _RUN_FILES)


def _numbered(name: str) -> list[tuple[int, str]]:
    """For an order in which v2 is before v10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _is_own(entry: Path) -> bool:
    """The page that an audit writes beside its runs, or its folder of generators' pages."""
    if entry.name == "audit.html":
        return entry.is_file()
    try:
        return entry.name == "reports" and {each.suffix for each in entry.iterdir()} == {".html"}
    except OSError:
        return False


def _why_skipped(entry: Path) -> str | None:
    if entry.name.startswith("."):
        return "hidden"
    try:
        if not entry.is_dir():
            return "an image beside the folders" if entry.suffix.lower() in IMAGE_SUFFIXES else "no folder"
        next(entry.iterdir(), None)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    if any((entry / file).is_file() for file in _RUN_FILES) or _has_image(entry):
        return None
    return "contains no images and no annotations"


def _has_image(folder: Path) -> bool:
    files = [
        Path(inner, file) for inner, _, files in os.walk(folder) for file in files if not file.startswith(".")
    ]
    return any(file.suffix.lower() in IMAGE_SUFFIXES for file in files) or any(
        _may_have_pictures(file) for file in files if file.suffix.lower() in ROW_SUFFIXES
    )


def _may_have_pictures(table: Path) -> bool:
    """Whether a table has images; one that cannot be read counts: what is wrong with it is said later."""
    try:
        return has_pictures(table)
    except UsageError:
        return True
