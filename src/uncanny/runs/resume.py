"""What stands of a run before it goes on: its records, what it has spent, and the texts it was begun with."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from uncanny.errors import RunMismatchError, StorageError, UsageError
from uncanny.prompts import PromptSet, current_set
from uncanny.records.record_file import RecordFile
from uncanny.records.run_folder import RunFolder, check_same_protocol, setting
from uncanny.records.run_manifest import RunManifest, Totals
from uncanny.runs.manifest import Manifest, begun_with, lost_texts
from uncanny.runs.parameters import RunOptions
from uncanny.runs.progress import Progress, Recount, SpendingFile
from uncanny.runs.task import Task
from uncanny.wording import Words, another_run, counted, harmless, marked, option

Item = TypeVar("Item")
R = TypeVar("R", bound=BaseModel)
MOST_GONE_NAMED = 3


@dataclass(frozen=True, slots=True)
class LoadedRun(Generic[Item, R]):
    """A run as far as it is known before a model is opened; `pending` inputs are to be worked on."""

    pending: Sequence[Item]
    records: RecordFile[R]
    manifest: Manifest
    spending: SpendingFile
    progress: Progress


def load_run(task: Task[Item, R]) -> LoadedRun[Item, R]:
    """What stands of the run of `task`, and with what it goes on. Blocking; changes no file.

    Raises UsageError.
    """
    folder, options = task.folder, task.options
    before = binding_manifest(folder)
    own = current_set(task.prompts)
    if before is not None and not task.prompts.chosen:
        task.prompts = begun_with(before, own)
    settings = task.settings()
    if before is not None:
        _check_texts(folder, before, task)
        check_same_protocol(folder, before.comparable(), settings.comparable())
    manifest = Manifest(folder, settings, before, record_file=task.record_file)
    spending = SpendingFile(folder.spending)
    progress = Progress(
        unit=task.unit,
        kinds=task.statuses,
        answered=task.answered_statuses,
        seconds_before=manifest.seconds_before,
    )
    _load_spending(folder, options, manifest, spending, progress, known=before is not None)
    records = task.records()
    records.made_with = {"model": str(task.models.model), "prompts": task.prompts.id}
    with nothing_left_behind(records):
        pending = task.load_pending(records, progress)
    if pending and before is not None and task.prompts.id != own.id and not task.prompts.chosen:
        words = f"{folder.path} was started with the prompts {task.prompts.id} and resumes with them. "
        words += f"To use those of this version, {own.id}, {another_run()}."
        progress.warnings.append(Words(words))
    if len(records) and folder.read_manifest() is None:
        progress.warnings.append(
            f"{folder.manifest} is missing; model and prompts of the records are those of now, other "
            "settings they were made with are not known"
        )
    progress.calls_expected = task.calls_expected(pending)
    return LoadedRun(pending, records, manifest, spending, progress)


def bring_up_to_date(task: Task[Item, R], loaded: LoadedRun[Item, R]) -> Iterator[str]:
    """Write again what is said otherwise now, and move records of inputs that are gone out of the run.

    In words, what became of them and what could not be written.
    """
    records, gone = loaded.records, loaded.progress.gone
    names = ", ".join(map(harmless, gone[:MOST_GONE_NAMED]))
    if len(gone) > MOST_GONE_NAMED:
        names += f" and {len(gone) - MOST_GONE_NAMED:,} more"
    what = f"{counted(len(gone), 'record')} of {task.unit} that are no longer in the input ({names})"
    target = task.folder.removed
    try:
        for record in task.renewed(records):
            records.append(record)
        if gone:
            records.set_aside(gone, target)
            keep = option("keep_missing", True)
            yield Words(f"{what} moved to {target}. Pass {keep} to keep such records in the run.")
    except (UsageError, StorageError) as error:
        yield Words(f"{task.folder.path} could not be brought up to date: {marked(error.message)}")


def prompts_of(folder: RunFolder, own: PromptSet) -> PromptSet:
    """The texts that a run in `folder` is asked with: those it was begun with, else `own`.

    Those that a user has chosen are asked with in any case.
    """
    before = None if own.chosen else binding_manifest(folder)
    return own if before is None else begun_with(before, own)


def _check_texts(folder: RunFolder, before: RunManifest, task: Task[Any, Any]) -> None:
    """Raises RunMismatchError where a run of this task was begun with texts that it cannot go on with."""
    prompts = before.prompts
    if before.task not in (None, task.name) or prompts.id in (None, task.prompts.id):
        return
    if before.plan != task.config_json():
        return  # other parameters may have other texts: those are named first
    differing = f"{setting('prompts', 'id')}: {prompts.id!r} before, {task.prompts.id!r} now"
    if task.prompts.chosen:
        changed = ", ".join(_changed(prompts.files, task.prompts.hashes()))
        why = f"it was started with another {changed}" if changed else "it was started with other prompts"
        remedy = f"Remove {option('prompts')} to resume with its own, or {another_run()}."
    else:
        why = lost_texts(before, current_set(task.prompts))
        remedy = f"Pass the folder of its prompts with {option('prompts')}, or {another_run()}."
    raise RunMismatchError(f"{folder.path} was made with other settings ({differing}); {why}", remedy=remedy)


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [f"{name}.md" for name in sorted({**before, **now}) if before.get(name) != now.get(name)]


def binding_manifest(folder: RunFolder) -> RunManifest | None:
    """The manifest of the run that goes on; one that never got an answer, after a typo say, binds nobody."""
    before = folder.read_manifest()
    return before if before is not None and (folder.begun() or _paid(before)) else None


def _paid(before: RunManifest) -> bool:
    """Whether a session got answers before its first record was due: they count towards the budget."""
    totals = before.totals or Totals()
    answers = sum(number for outcome, number in (totals.outcomes or {}).items() if outcome != "error")
    # Of a killed session the manifest may not know them yet.
    return bool(answers or totals.replayed or before.state == "running")


def _load_spending(
    folder: RunFolder,
    options: RunOptions,
    manifest: Manifest,
    spending: SpendingFile,
    progress: Progress,
    *,
    known: bool,
) -> None:
    """What earlier sessions spent, a killed one too; `known` is False where `run.json` is missing."""
    if known:
        progress.spending = manifest.spending
        progress.spending.take_up(spending.uncounted(progress.spending.calls))
        return
    own_cache = options.cache and options.cache_dir is None
    recount = Recount(folder.calls, folder.spending, own_cache=own_cache)
    progress.spending, progress.paid_before = recount.spending, recount.paid_here
    if recount.unread:
        lines = (
            "1 line that is not a call"
            if recount.unread == 1
            else f"{recount.unread:,} lines that are not calls"
        )
        progress.warnings.append(f"{folder.calls} has {lines}; their cost is not counted")
    if recount.first is not None:
        manifest.began(min(max(recount.first, 0.0), manifest.started))


@contextlib.contextmanager
def nothing_left_behind(records: RecordFile[Any]) -> Iterator[None]:
    """A run that could not start leaves no empty file that would look like one without inputs."""
    try:
        yield
    except BaseException:
        records.close()
        with contextlib.suppress(OSError):
            if not len(records) and not records.path.stat().st_size:
                records.path.unlink()
        raise


def in_place(folder: RunFolder, progress: Progress) -> bool:
    """Whether files can be put where they belong; a folder that was deleted is made again."""
    if not folder.lost():
        return True
    if folder.put_back():
        progress.warnings.append(f"{folder.path} was deleted; what was done by then was put back there")
        return True
    return False
