"""Predictions and truths from files, run folders or records in memory: whole, or refused with every error.

`load` reads one of them. `open_predictions` takes what a caller may give as predictions and names each, so
that a report can tell them apart.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from uncanny.demo.scenes import bundled_set, pictures
from uncanny.demo.sets import SCENES
from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.common.anomalies.read import AnomalySet, EntryReader, Role, ScoredAnomaly, ScoredImage
from uncanny.eval.common.inputs.image_files import (
    Entry,
    from_records,
    read_bytes,
    repeated_images,
    take_apart,
)
from uncanny.eval.common.inputs.runs import check_findings, check_found
from uncanny.eval.common.inputs.table_records import record_tables
from uncanny.protocol import run_records
from uncanny.records.annotation_table import restore_lines
from uncanny.records.run_folder import RunFolder, Unfinished, check_recorded, unfinished
from uncanny.wording import counted, shown

RECORDS = "annotations.jsonl"

PathLike = str | os.PathLike[str]
# `Annotation`s, or records of the same keys as the files have.
Records = Iterable[BaseModel | Mapping[str, Any]]
Anomalies = PathLike | AnomalySet | Records
Predictions = Anomalies | Sequence[PathLike] | Mapping[str, Anomalies]


def load(anomalies: Anomalies, *, role: Role = "predictions") -> AnomalySet:
    """Load the anomalies of a file, of a run folder's `annotations.jsonl`, or of records in memory.

    A file has records (`image`, `anomalies`, `source`) as JSON Lines or a JSON list, one JSON object with the
    images as keys, and, in either, an answer as plain text instead of the list of anomalies. Fields of an
    anomaly have many names, as `Observed Phenomenon` and `Severity Score: "25/100 (…)"`. Records in memory
    are `Annotation`s or dicts of the same keys. As a truth, the word `scenes` is that of the bundled images,
    where there is no such file.

    Raises ItemsError with everything that is wrong, repeated images too, UsageError for a file that cannot
    be read or has no image.

    >>> len(uncanny.semantic.load("scenes", role="truth").images) > 0
    True
    """
    if isinstance(anomalies, AnomalySet):
        return anomalies
    if isinstance(anomalies, str | os.PathLike):
        if role == "truth" and (bundled := bundled_set(os.fspath(anomalies))) is not None:
            return scenes_truth(bundled)
        return _load_file(Path(anomalies), role)
    if not isinstance(anomalies, Iterable):
        raise UsageError(
            f"the {role} must be a path or records, not {shown(anomalies)}",
            remedy="Give a path, or a list of records.",
        )
    return _load_records(anomalies, role, f"the {role}")


def open_predictions(predictions: Predictions) -> dict[str, Callable[[], AnomalySet]]:
    """What is to be scored, by name and in order; each is read when it is called for, a file anew each time.

    Of paths without names the name is that of `name_paths`, of records `predictions`. Raises UsageError for
    what are no predictions, none at all, or two of one name.
    """
    if isinstance(predictions, Mapping):
        if not predictions:
            raise UsageError("there are no predictions to score", remedy="Give at least one file or run.")
        return {str(name): _opener(str(name), source) for name, source in predictions.items()}
    if isinstance(predictions, AnomalySet):
        return {"predictions": lambda: predictions}
    if isinstance(predictions, str | os.PathLike):
        predictions = [predictions]
    if not isinstance(predictions, Iterable):
        raise UsageError(
            f"predictions must be paths or records, not {shown(predictions)}",
            remedy="Give a path, several, a dict of names and paths, or a list of records.",
        )
    items: list[Any] = list(predictions)
    paths = [Path(item) for item in items if isinstance(item, str | os.PathLike)]
    if items and len(paths) < len(items):
        if paths:
            raise UsageError(
                "predictions mix paths and records in one list",
                remedy="Give a dict: a name for each path and for each list of records.",
            )
        return {"predictions": lambda: _load_records(items, "predictions", "the predictions")}
    if not items:
        raise UsageError("there are no predictions to score", remedy="Give at least one file or run.")
    return {name: partial(load, path) for name, path in name_paths([(None, path) for path in paths]).items()}


def _opener(name: str, source: Anomalies) -> Callable[[], AnomalySet]:
    if isinstance(source, AnomalySet | str | os.PathLike):
        return partial(load, source)
    if not isinstance(source, Iterable):
        raise UsageError(
            f"predictions {name!r} must be a path or records, not {shown(source)}",
            remedy="Give a path, or a list of records.",
        )
    records: Records = list(source) if isinstance(source, Iterator) else source
    return lambda: _load_records(records, "predictions", f"the predictions {name!r}")


def _load_file(path: Path, role: Role) -> AnomalySet:
    file, folder = path, path.parent
    if path.is_dir():
        RunFolder(path).check_links()
        lines, folder = restore_lines(path), path
        if lines.is_file() or not record_tables(path):
            _check_run(path, lines)
            file = lines
    check_findings(file)
    data = read_bytes(file)
    of_run = (file != path or path.name == RECORDS) and (folder / "run.json").is_file()
    if of_run and not data.endswith(b"\n"):
        data = data[: data.rfind(b"\n") + 1]  # a line that is being written
    entries, problems = take_apart(data, file)
    if of_run:  # an image that was generated again has a further line while the run goes on
        entries = list({entry.image: entry for entry in entries}.values())
    else:
        problems += repeated_images(entries)
    left = partial(unfinished, folder, "images") if of_run else None
    return _read(entries, problems, role, str(path), str(file), left)


def _check_run(folder: Path, lines: Path) -> None:
    """Name what else the folder holds, where it is no run that finds anomalies: its `lines` are not there."""
    if lines.is_file():
        return
    inner = sorted(file.parent.name for file in folder.glob(f"*/{RECORDS}"))
    if inner:
        runs = " ".join(f"{name}={folder / name}" for name in inner)
        raise UsageError(
            f"{folder} is not a run, but contains {counted(len(inner), 'run')}: {', '.join(inner)}",
            remedy=f"Pass each: {runs}",
        )
    check_recorded(folder, RECORDS)


def _load_records(records: Records, role: Role, origin: str) -> AnomalySet:
    dumped = [record.model_dump() if isinstance(record, BaseModel) else record for record in records]
    check_found(origin, (record for record in dumped if isinstance(record, Mapping)))
    entries, problems = from_records(dumped)
    return _read(entries, problems + repeated_images(entries), role, origin, origin, None)


def _read(
    entries: Sequence[Entry],
    problems: list[Problem],
    role: Role,
    origin: str,
    what: str,
    left: Callable[[int], Unfinished | None] | None,
) -> AnomalySet:
    """`what` names it in errors; `left` says what a run of so many images has still to do."""
    reader = EntryReader(role)
    images = tuple(image for entry in entries if (image := reader.image(entry)) is not None)
    problems += reader.problems
    if problems:
        problems.sort(key=lambda problem: problem.line or 0)
        raise ItemsError(what, problems, remedy="Correct these; nothing was scored.")
    if not images:
        raise UsageError(f"{what} contains no image", remedy="Give a file with one image per line.")
    allowances = reader.allowances
    return AnomalySet(
        origin,
        images,
        allowances.blank_texts,
        allowances.unread_severities,
        tuple(allowances.unread_answers),
        left(len(images)) if left else None,
        _texts(entries),
    )


def _texts(entries: Sequence[Entry]) -> tuple[str, ...]:
    records = (entry.value for entry in entries if isinstance(entry.value, Mapping))
    ids = {record.get("prompts") for record in records if isinstance(record.get("prompts"), str)}
    return tuple(sorted(map(str, ids)))


def scenes_truth(name: str = SCENES) -> AnomalySet:
    """What is true of a bundled set: anomalous ones stand for generated images, clean ones for real."""
    images = [
        ScoredImage(
            Path(scene.image).name,
            tuple(
                ScoredAnomaly(anomaly.name, anomaly.phenomenon, anomaly.reasoning, anomaly.severity)
                for anomaly in scene.anomalies
            ),
            "generated" if scene.role == "anomalous" else "real",
            has_source=True,
            sha256=scene.sha256,
            columns={} if scene.pair_id is None else {"pair": scene.pair_id},
        )
        for scene in pictures(name)
    ]
    return AnomalySet(name, tuple(images))


def name_paths(paths: Sequence[tuple[str | None, Path]], *, what: str = "predictions") -> dict[str, Path]:
    """Paths by their names: the one that comes with it, else a run's model, else that of file or folder.

    Derived names that are the same get the folder's name behind them, or else become the paths. Raises
    UsageError for two paths of one name; `what` they are says the error.
    """
    names = [name or _derived_name(path) for name, path in paths]
    for form in ("{name} ({folder})", "{path}"):
        counts = Counter(names)
        names = [
            name
            if chosen or counts[name] == 1
            else form.format(name=name, folder=_folder(path).name, path=path)
            for name, (chosen, path) in zip(names, paths, strict=True)
        ]
    named: dict[str, Path] = {}
    for name, (_, path) in zip(names, paths, strict=True):
        if name in named:
            raise UsageError(
                f"two {what} are called {name!r}: {named[name]} and {path}",
                remedy="Give each its own name: NAME=PATH.",
            )
        named[name] = path
    return named


def _derived_name(path: Path) -> str:
    # A file of such a name says nothing, its folder does.
    if not path.is_dir() and path.name not in run_records():
        return path.stem
    folder = _folder(path)
    manifest = RunFolder(folder).read_manifest()
    return (manifest and manifest.model) or folder.name


def _folder(path: Path) -> Path:
    return path.resolve() if path.is_dir() else path.resolve().parent
