"""Which images a run is about, and what they really are: from a file, from the bundled scenes, or from folder
names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final, get_args

from uncanny.demo.scenes import SETS, bundled_set, pictures
from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.common.anomalies.load import scenes_truth
from uncanny.eval.common.anomalies.read import ScoredImage
from uncanny.eval.common.inputs.image_files import Entry, read_bytes, repeated_images, take_apart
from uncanny.eval.common.matching import pair_images
from uncanny.runs.inputs import ImageFile
from uncanny.schema import Detection, Source
from uncanny.wording import shown

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
    path = next((path for path in paths if path != file and file.is_relative_to(path)), None)
    names = (
        (file.resolve().parent.name,)
        if path is None
        else (path.resolve().name, *file.relative_to(path).parent.parts)
    )
    sources = {FOLDERS[name.casefold()] for name in names if name.casefold() in FOLDERS}
    return sources.pop() if len(sources) == 1 else None


# A file, the word `scenes`, or sources by image.
Truth = str | PathLike[str] | Mapping[str, Source | None]


_REMEDY = 'Write lines like {"image": "a.png", "source": "generated"}; the source may be null.'


def set_of(records: Iterable[Detection]) -> str | None:
    """The bundled set that all images are of, by their bytes; None of others, and of no image."""
    digests = {record.sha256 for record in records}
    return next(
        (name for name in SETS if digests and digests <= {each.sha256 for each in pictures(name)}), None
    )


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


def find_truth(
    truth: Truth | None,
    files: Sequence[ImageFile],
    paths: Sequence[Path],
    digests: Mapping[str, str | None] | None = None,
) -> SourceTruth | None:
    """The truth about `files`: of a file, the bundled scenes, a mapping, or, where it is None, of folders.

    `digests` are those of the files, by image, where they have been read. None where no folder says anything.
    Raises UsageError where the file cannot be read, is wrong somewhere, or has none of the images.
    """
    if truth is None:
        sources = {file.image: folder_source(file.path, paths) for file in files}
        known = {image: source for image, source in sources.items() if source is not None}
        return SourceTruth(known, "folders") if known else None
    if isinstance(truth, Mapping):
        return _paired("the truth", _mapped(truth), False, files, digests or {})
    if not isinstance(truth, str | PathLike):
        raise UsageError(
            f"The truth must be a file, the word `scenes` or a mapping from image to source, "
            f"not {shown(truth)}"
        )
    records, has_anomalies = load_sources(str(truth))
    return _paired(str(truth), records, has_anomalies, files, digests or {})


def _mapped(truth: Mapping[str, Source | None]) -> list[ScoredImage]:
    problems: list[Problem] = []
    records = [_record(Entry(str(image), {"source": truth[image]}, None), problems) for image in truth]
    if problems or not records:
        raise ItemsError("the truth", problems) if problems else UsageError("The truth is empty")
    return records


def load_sources(name: str) -> tuple[Sequence[ScoredImage], bool]:
    """The sources of a file, or of the bundled `scenes`, and whether true anomalies stand beside them.

    Raises UsageError.
    """
    path = Path(name)
    if (bundled := bundled_set(name)) is not None:
        return scenes_truth(bundled).images, True
    entries, problems = take_apart(read_bytes(path), path)
    records = [_record(entry, problems) for entry in entries]
    problems += repeated_images(entries)
    if not problems and not any(record.source for record in records):
        problems.append(Problem(None, "source", "is missing in all images"))
    if problems:
        raise ItemsError(name, sorted(problems, key=lambda problem: problem.line or 0), remedy=_REMEDY)
    anomalies = any(_fields(entry).get("anomalies") is not None for entry in entries)
    return records, anomalies


def _paired(
    name: str,
    truth: Sequence[ScoredImage],
    has_anomalies: bool,
    files: Sequence[ImageFile],
    digests: Mapping[str, str | None],
) -> SourceTruth:
    if not files:
        raise UsageError("There are no images to compare with the truth")
    run = [ScoredImage(file.image, (), sha256=digests.get(file.image)) for file in files]
    pairing = pair_images(run, truth, labels=("the run", name))
    sources = {
        files[place].image: record.source
        for record, place in zip(truth, pairing.predicted, strict=True)
        if place is not None and record.source is not None
    }
    return SourceTruth(sources, name, has_anomalies, pairing.predicted.count(None))


def _record(entry: Entry, problems: list[Problem]) -> ScoredImage:
    source = _fields(entry).get("source")
    if source is not None and source not in get_args(Source):
        wrong = f"must be {' or '.join(get_args(Source))}, not {shown(source)}"
        problems.append(Problem(entry.image, "source", wrong, line=entry.line))
        source = None
    return ScoredImage(entry.image, (), source)


def _fields(entry: Entry) -> dict[str, Any]:
    return entry.value if isinstance(entry.value, dict) else {}
