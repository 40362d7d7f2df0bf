"""The folder to which people's answers go: made, or gone on with, and never that of something else."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from uncanny import __version__
from uncanny.errors import UsageError
from uncanny.records.run_folder import RunFolder, check_same_protocol
from uncanny.records.run_manifest import FORMAT, RunManifest
from uncanny.wording import option


def begin(path: Path, settings: Mapping[str, Any], record_file: str) -> None:
    """Make the folder with a `run.json` that has `settings`, or see to it that its own has the same.

    Raises UsageError where it cannot be made or holds records of something else, RunMismatchError.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be made: {error.strerror or error}", remedy="Name another folder."
        ) from error
    folder = RunFolder(path)
    before = folder.read_manifest()
    if before is not None:
        written = before.written()
        check_same_protocol(folder, {key: written.get(key) for key in settings}, dict(settings))
        return
    if folder.begun():
        raise UsageError(
            f"{path} holds records of something else", remedy=f"Name another one with {option('out')}."
        )
    head = {"format": FORMAT, "uncanny": __version__, "started": datetime.now(UTC).isoformat()}
    manifest = RunManifest.model_validate({**head, **settings, "record_file": record_file})
    folder.write_manifest(manifest.written())
