"""`run.json`: with what a run is made, and how far it is."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from uncanny import __version__
from uncanny.errors import RunError, StorageError
from uncanny.images.discover import SkippedInputs
from uncanny.images.encode import PixelPolicy
from uncanny.models.registry import ModelOptions
from uncanny.prompts import PromptSet, make_set
from uncanny.records.run_folder import RunFolder
from uncanny.records.run_manifest import (
    FORMAT,
    PixelCounts,
    Prompts,
    RunForecast,
    RunManifest,
    RunSettings,
    SkippedInput,
    Totals,
)
from uncanny.runs.inputs import Names
from uncanny.runs.progress import Progress, Spending
from uncanny.wording import Words, marked

State = Literal["running", "finished", "interrupted", "budget", "stopped"]
_LIBRARIES = ("langgraph", "openai", "anthropic", "pydantic", "pillow", "orjson", "genai-prices", "vllm")


class Manifest:
    """The content of `run.json`, kept up to date.

    `settings` hold all that must stay the same for a run to be one run; the rest tells how it went.
    """

    def __init__(
        self,
        folder: RunFolder,
        settings: RunSettings,
        before: RunManifest | None,
        *,
        record_file: str,
    ) -> None:
        self._folder = folder
        before = before or RunManifest()
        totals = before.totals or Totals()
        now = _iso(time.time())
        self._manifest = RunManifest(
            format=FORMAT,
            uncanny=__version__,
            python=platform.python_version(),
            libraries=_versions(),
            state="running",
            started=before.started or now,
            updated=now,
            **settings.written(),
            record_file=record_file,
            fallback=before.fallback,
            parameters=before.parameters,
            totals=totals,
        )
        self.expect(before.forecast)
        self._listed: tuple[SkippedInput, ...] | None = None
        self.spending = Spending.recorded(before)
        self.seconds_before = totals.seconds or 0.0
        # In seconds since the epoch.
        self.started = before.started_at or time.time()

    def sent(self, models: ModelOptions, parameters: dict[str, dict[str, Any]]) -> None:
        """Note the fallback and the parameters as they go over the wire."""
        fallback = None if models.fallback is None else str(models.fallback)
        self._update(fallback=fallback, parameters=parameters)

    def expect(self, forecast: RunForecast | None) -> None:
        """Note what the run is forecast to take; what was said of as many images before stands."""
        known = self._manifest.forecast
        if forecast is not None and (known is None or known.images != forecast.images):
            self._update(forecast=forecast)

    def began(self, moment: float) -> None:
        """Put the start of the run to an earlier `moment`, in seconds since the epoch."""
        self.started = moment
        self._update(started=_iso(moment))

    @property
    def path(self) -> Path:
        return self._folder.manifest

    @property
    def content(self) -> Mapping[str, Any]:
        """As it was last to be written."""
        return self._manifest.written()

    def write(self, state: State, progress: Progress, error: RunError | None = None) -> None:
        """Raises OSError, and StorageError where the folder is gone."""
        if error is not None:
            self._update(error=str(error))
        if progress.warnings:
            self._update(warnings=tuple(progress.warnings))
        self._update(
            state=state,
            updated=_iso(time.time()),
            pixels=self._manifest.pixels.model_copy(update={"changed": dict(progress.pixel_changes)}),
            totals=self._totals(progress),
            **progress.spending.served.as_recorded(),
        )
        if progress.skipped is not None:
            self._update(
                skipped=self._skipped(progress.skipped), skipped_counts=dict(progress.skipped.counts)
            )
        self._folder.write_manifest(self._manifest.written())

    def _update(self, **values: object) -> None:
        self._manifest = self._manifest.model_copy(update=values)

    def _totals(self, progress: Progress) -> Totals:
        counts: dict[str, Any] = {
            progress.unit: progress.total,
            **{name: progress.statuses[name] for name in progress.kinds},
            "pending": progress.total - progress.done,
        }
        if progress.items:
            counts |= {"duplicates": progress.duplicates, progress.items: progress.items_found}
        if self._manifest.forecast is not None:
            counts |= {"objects": progress.objects, "without_findings": progress.without_findings}
        seconds = round(self.seconds_before + progress.seconds(), 3)
        return Totals(**counts, **progress.spending.as_recorded(), seconds=seconds)

    def _skipped(self, skipped: SkippedInputs) -> tuple[SkippedInput, ...]:
        if self._listed is None:
            root = self._manifest.root
            names = Names(self._folder.path if root is None else Path(root))
            self._listed = tuple(
                SkippedInput(path=names.of(each.path), reason=each.reason)
                if each.detail is None
                else SkippedInput(path=names.of(each.path), reason=each.reason, detail=each.detail)
                for each in skipped.listed
            )
        return self._listed


def run_settings(
    task: str,
    models: ModelOptions,
    config: dict[str, Any],
    prompts: PromptSet,
    policy: PixelPolicy,
    root: Path | None,
) -> RunSettings:
    """What a run must keep to from beginning to end, as far as all tasks have it.

    The texts are kept in full: a later version that words them anew goes on with these.
    """
    own = {"own": prompts.own} if prompts.own else {}
    return RunSettings(
        task=task,
        model=str(models.model),
        roles={role: str(model) for role, model in sorted(models.roles.items())},
        plan=config,
        prompts=Prompts.model_validate(
            {"id": prompts.id, "files": prompts.hashes(), "texts": prompts.texts(), **own}
        ),
        pixels=PixelCounts(policy=asdict(policy)),
        root=None if root is None else str(root.absolute()),
    )


def begun_with(manifest: RunManifest, own: PromptSet) -> PromptSet:
    """The prompts a run was begun with, as `run.json` has them.

    `own` are the package's. They are also returned if `run.json` lacks the run's prompts or this version
    cannot ask with them: their id then differs from the one in `run.json`, and `lost_texts` says why.
    """
    if manifest.prompts.id == own.id:
        return own
    kept = _kept(manifest, own)
    return own if kept is None or kept.lacks(own) else kept


def lost_texts(manifest: RunManifest, own: PromptSet) -> str:
    """Why a run cannot go on with the texts it was begun with, in words."""
    kept = _kept(manifest, own)
    if kept is None:
        return f"its prompts, {manifest.prompts.id}, are not kept in it"
    return f"this version cannot ask with its prompts, {manifest.prompts.id}: {kept.lacks(own)}"


def _kept(manifest: RunManifest, own: PromptSet) -> PromptSet | None:
    kept = make_set(own.name, manifest.prompts.texts)
    return replace(kept, own=manifest.prompts.own) if kept.id == manifest.prompts.id else None


def _versions() -> dict[str, str]:
    versions = {}
    for name in _LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")


def unwritten_manifest(manifest: Manifest, error: OSError | StorageError, more: str = "") -> Words:
    """What is said where `run.json` could not be written."""
    why = marked(error.text) if isinstance(error, StorageError) else error.strerror or str(error)
    return Words(f"{manifest.path} could not be written: {why}{more}")
