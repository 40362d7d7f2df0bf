"""The merged run: a record an image, and the folder it is written to in one step."""

from __future__ import annotations

import os
import platform
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from uncanny import __version__
from uncanny.errors import UsageError
from uncanny.eval.common.inputs.sources import FINISHED, OpenSource
from uncanny.eval.merge.data import InputRun, SameImage, SeenImage
from uncanny.files import dump_json
from uncanny.records.jsonl import write_atomically
from uncanny.records.run_folder import RunFolder
from uncanny.records.run_manifest import FORMAT, Prompts, RunManifest, Totals
from uncanny.runs.inputs import Names
from uncanny.schema import Annotation, Anomaly, SceneObject, StepError, Usage
from uncanny.wording import another_run

_FIGURES: Final = ("input_tokens", "cached_tokens", "output_tokens", "cost_usd")


def check_out(out: Path, sources: Sequence[OpenSource]) -> None:
    """Raises UsageError where `out` is one of the runs, a file, or a folder with anything in it."""
    for source in sources:
        place = source.source.path if source.run is None else source.run.folder.path
        if place is not None and out.exists() and place.exists() and out.samefile(place):
            raise UsageError(
                f"{out} is {source.source.name}, one of the runs to merge",
                remedy=f"Keep that run, and {another_run()}.",
            )
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise UsageError(f"{out} is not a folder", remedy=f"Remove it, or {another_run()}.")
    try:
        is_free = not out.exists() or not any(out.iterdir())
    except OSError as error:
        raise UsageError.unwritten(out, error) from error
    if not is_free:
        raise UsageError(
            f"{out} is not empty, and a merge does not resume",
            remedy=f"Remove it, or {another_run()}.",
        )


class MergedRecords:
    """Makes the record of each image. `model` and `prompts` are those of all runs, joined by plus signs."""

    def __init__(self, runs: Sequence[InputRun], out: Path) -> None:
        records = [seen.record for run in runs for seen in run.images]
        self.model = " + ".join(sorted({record.model for record in records}))
        self.prompts = " + ".join(sorted({record.prompts for record in records}))
        self._names = Names(out)
        self._taken: dict[str, str] = {}

    def record(self, image: SameImage, anomalies: Iterable[Anomaly]) -> Annotation:
        """The record of an image with `anomalies`; where no run examined it a failed one, with the reasons.

        Raises UsageError where two images with different bytes have the same path.
        """
        examined = {name: seen for name, seen in image.items() if seen.examined}
        first = next(iter((examined or _readable(image) or image).values()))
        fields: dict[str, Any] = {
            "image": self._name(image, first),
            "sha256": first.record.sha256,
            "width": first.record.width,
            "height": first.record.height,
            "status": _status(image),
            "anomalies": tuple(anomalies),
            "objects": _objects(seen.record for seen in examined.values()),
            "errors": () if examined else tuple(_reasons(image)),
            "model": self.model,
            "prompts": self.prompts,
            "usage": _usage([seen.record for seen in image.values()]),
            "pixels": first.record.pixels,
            "examined_by": list(examined),
        }
        not_examined = {name: seen.left_out for name, seen in image.items() if not seen.examined}
        if not_examined:
            fields["not_examined_by"] = not_examined
        for key in ("row", "columns"):
            extras = [(seen.record.model_extra or {}).get(key) for seen in image.values()]
            if any(extra is not None for extra in extras):
                fields[key] = next(extra for extra in extras if extra is not None)
        return Annotation.model_validate(fields)

    def _name(self, image: SameImage, first: SeenImage) -> str:
        name = self._names.of(first.image.path)
        if name in self._taken:
            raise UsageError(
                f"{first.image.path} has different bytes in {self._taken[name]} and in {', '.join(image)}",
                remedy="The file changed between the runs. Annotate it again in both, then merge.",
            )
        self._taken[name] = ", ".join(image)
        return name


def _readable(image: SameImage) -> SameImage:
    return {name: seen for name, seen in image.items() if seen.record.status != "unreadable"}


def _status(image: SameImage) -> str:
    if any(seen.examined for seen in image.values()):
        return "ok"
    return "failed" if _readable(image) else "unreadable"


def _reasons(image: SameImage) -> Iterable[StepError]:
    """Why no run examined the image: the errors of each, with its name under the further key `run`."""
    for name, seen in image.items():
        for error in seen.record.errors:
            yield error.model_copy(update={"run": name})
        if not seen.record.errors:
            message = f"{name}: the record is {seen.left_out}"
            fields = {"agent": "uncanny", "step": 0, "kind": str(seen.left_out), "message": message}
            yield StepError.model_validate(fields | {"run": name})


def _objects(records: Iterable[Annotation]) -> tuple[SceneObject, ...]:
    """Those of all runs; of several with one name the first."""
    objects: dict[str, SceneObject] = {}
    for record in records:
        for each in record.objects:
            objects.setdefault(each.name, each)
    return tuple(objects.values())


def _usage(records: Sequence[Annotation]) -> Usage:
    """What all runs spent on an image; a figure that one of them did not measure is None."""
    usages = [record.usage for record in records]
    sums: dict[str, Any] = {"calls": sum(usage.calls for usage in usages)}
    for name in _FIGURES:
        values = [getattr(usage, name) for usage in usages]
        sums[name] = None if None in values else sum(values)
    return Usage(**sums)


def write_run(
    out: Path, records: Sequence[Annotation], merged: MergedRecords, plan: Mapping[str, Any]
) -> None:
    """Write the run folder: either all of it is there in the end, or nothing.

    `plan` says how it was made. Raises OSError; UsageError where `out` cannot be made.
    """
    work = out.absolute().with_name(f".{out.absolute().name}.{os.getpid()}.merge")
    try:
        work.mkdir(parents=True)
    except OSError as error:
        raise UsageError.unwritten(out, error) from error
    try:
        folder = RunFolder(work)
        ordered = sorted(records, key=lambda record: record.image)
        lines = (dump_json(record.model_dump(mode="json")) + b"\n" for record in ordered)
        write_atomically(folder.annotations, lines)
        statuses = Counter(record.status for record in records)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        manifest = RunManifest(
            format=FORMAT,
            uncanny=__version__,
            python=platform.python_version(),
            state=FINISHED,
            started=now,
            updated=now,
            task="merge",
            model=merged.model,
            plan=dict(plan),
            prompts=Prompts(id=merged.prompts),
            record_file=folder.annotations.name,
            totals=Totals(
                images=len(records),
                ok=statuses["ok"],
                partial=0,
                failed=statuses["failed"],
                unreadable=statuses["unreadable"],
                pending=0,
                anomalies=sum(len(record.anomalies) for record in records),
                calls=sum(record.usage.calls for record in records),
            ),
        )
        folder.write_manifest(manifest.written())
        work.replace(out)
    finally:
        shutil.rmtree(work, ignore_errors=True)
