"""The source of an image by the names of the folders it lies in.

What the images of a run really are, from a file, from the bundled scenes, or from folder names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

from uncanny.errors import UsageError
from uncanny.eval.common.problems import ItemsError, Problem, shown
from uncanny.eval.semantic.data.files import SCENES, Entry, read_bytes, scenes_truth, take_apart
from uncanny.eval.semantic.data.images import AnomalyFile, ScoredImage, pair_images
from uncanny.runs.inputs import ImageFile
from uncanny.schema import Source

# `0_real` and `1_fake` are what the common collections of generated images are sorted into.
FOLDERS: Final[dict[str, Source]] = {
    "real": "real",
    "0_real": "real",
    "generated": "generated",
    "fake": "generated",
    "1_fake": "generated",
    "synthetic": "generated",
}


def folder_source(file: Path, paths: Sequence[Path]) -> Source | None:
    """What the folders between one of `paths`, itself included, and `file` say; None where they do not.

    Of a file given by itself its own folder counts. Names are taken in any case. Folders that say both, as
    in `real/old/fake`, say nothing.
    """
    names = [name.casefold() for name in _folders(file, paths)]
    said = {FOLDERS[name] for name in names if name in FOLDERS}
    return said.pop() if len(said) == 1 else None


def _folders(file: Path, paths: Sequence[Path]) -> tuple[str, ...]:
    for path in paths:
        if path != file and file.is_relative_to(path):
            return path.resolve().name, *file.relative_to(path).parent.parts
    return (file.resolve().parent.name,)


_REMEDY = 'Write lines like {"image": "a.png", "source": "generated"}; the source may be null.'


@dataclass(frozen=True, slots=True)
class SourceTruth:
    """The sources that are known, by the images' names in the run.

    `origin` says where they come from: a file, `scenes`, or `folders`. `has_anomalies`: it holds the true
    anomalies too, so that the semantic score can be had with it. `unused` counts images of the file that
    are not in the run.
    """

    sources: Mapping[str, Source]
    origin: str
    has_anomalies: bool = False
    unused: int = 0


def find_truth(name: str | None, files: Sequence[ImageFile], paths: Sequence[Path]) -> SourceTruth | None:
    """The truth about `files`: of the file `name`, of the bundled scenes, or, where it is None, of folders.

    None where no folder says anything. Raises UsageError where the file cannot be read, is wrong somewhere,
    or has none of the images.
    """
    if name is None:
        said = {file.image: folder_source(file.path, paths) for file in files}
        known = {image: source for image, source in said.items() if source is not None}
        return SourceTruth(known, "folders") if known else None
    return _paired(name, load_sources(name), files)


def load_sources(name: str) -> tuple[AnomalyFile, bool]:
    """The sources of a file, or of the bundled `scenes`, and whether true anomalies stand beside them.

    Raises UsageError.
    """
    path = Path(name)
    if name == SCENES and not path.exists():
        return scenes_truth(), True
    entries, problems = take_apart(read_bytes(path), path)
    images = [_image(entry, problems) for entry in entries]
    problems += _repeated(entries)
    if not problems and not any(image.source for image in images):
        problems.append(Problem(None, "source", "is missing in all images"))
    if problems:
        raise ItemsError(name, sorted(problems, key=lambda one: one.line or 0), remedy=_REMEDY)
    anomalies = any(_record(entry).get("anomalies") is not None for entry in entries)
    return AnomalyFile(path, tuple(images)), anomalies


def _paired(name: str, loaded: tuple[AnomalyFile, bool], files: Sequence[ImageFile]) -> SourceTruth:
    truth, has_anomalies = loaded
    if not files:
        raise UsageError("There are no images to compare with the truth")
    run = AnomalyFile(Path("the run"), tuple(ScoredImage(file.image, ()) for file in files))
    pairing = pair_images(run, truth)
    sources = {
        files[place].image: image.source
        for image, place in zip(truth.images, pairing.predicted, strict=True)
        if place is not None and image.source is not None
    }
    return SourceTruth(sources, name, has_anomalies, pairing.predicted.count(None))


def _image(entry: Entry, problems: list[Problem]) -> ScoredImage:
    said = _record(entry).get("source")
    if said is not None and said not in get_args(Source):
        wrong = f"must be {' or '.join(get_args(Source))}, not {shown(said)}"
        problems.append(Problem(entry.image, "source", wrong, line=entry.line))
        said = None
    return ScoredImage(entry.image, (), said, "source" in _record(entry), line=entry.line)


def _record(entry: Entry) -> dict[str, Any]:
    return entry.value if isinstance(entry.value, dict) else {}


def _repeated(entries: Sequence[Entry]) -> list[Problem]:
    last = {entry.image: entry for entry in entries}
    again = [entry for entry in entries if last[entry.image] is not entry]
    return [Problem(entry.image, "image", "is there again further on", line=entry.line) for entry in again]
