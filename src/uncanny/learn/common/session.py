"""A session of training: it holds the run's folder, knows what was done before, and says how it ends.

A run folder has `run.json` (parameters, versions, digests of data and model), `steps.jsonl`, `results.json`,
`examples.jsonl`, `checkpoints/`, `model/` with its card, and `report.html`.
"""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

import orjson

from uncanny import __version__
from uncanny.demo.scenes import bundled_folder
from uncanny.detectors.loading import TRAINED
from uncanny.errors import UsageError
from uncanny.files import dump_json, read_json
from uncanny.files.digests import digest
from uncanny.learn.common.machine import is_first_process, library_versions, wait_for_all
from uncanny.learn.common.parameters import LearnParameters, SessionParameters
from uncanny.learn.common.steps import STEPS, StepLog
from uncanny.records.jsonl import write_atomically
from uncanny.records.run_folder import RunFolder, check_same_protocol
from uncanny.records.run_manifest import FORMAT, RunManifest, RunSettings, Totals
from uncanny.wording import option

RESULTS: Final = "results.json"
EXAMPLES: Final = "examples.jsonl"
CHECKPOINTS: Final = "checkpoints"
MODEL: Final = TRAINED
# Written into a checkpoint when all of it is there. A run that was killed leaves some without it.
_WHOLE: Final = "complete"

State = Literal["running", "finished", "interrupted", "stopped"]


class StopTrainingError(Exception):
    """Ends a session that was asked to; its last checkpoint is written."""


@dataclass
class LearnSession:
    """One process that trains in a run folder.

    `finished`: an earlier session has trained to the end. `resumed` is the checkpoint that training goes on
    from, None at the beginning. `seconds_before` were spent by earlier sessions. Of several processes that
    train together only the first one `writes`; `state` is known to all.
    """

    folder: RunFolder
    settings: RunSettings
    parameters: Mapping[str, Any]
    writes: bool
    finished: bool
    resumed: Path | None
    seconds_before: float
    started: str
    began: float = field(default_factory=time.monotonic)
    state: State = "running"

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def steps(self) -> StepLog:
        return StepLog(self.path / STEPS)

    @property
    def checkpoints(self) -> Path:
        return self.path / CHECKPOINTS

    @property
    def model(self) -> Path:
        return self.path / MODEL

    @property
    def seconds(self) -> float:
        """Since the run began, without the time between its sessions."""
        return self.seconds_before + time.monotonic() - self.began

    def write_results(self, results: Mapping[str, Any]) -> None:
        """`results.json`: what came of it, in figures. Raises OSError."""
        if self.writes:
            write_atomically(self.path / RESULTS, [dump_json(dict(results), indent=True)])

    def write_examples(self, examples: Sequence[Mapping[str, Any]]) -> None:
        """`examples.jsonl`: held-out inputs with what was expected and what the model says of them."""
        if self.writes:
            write_atomically(self.path / EXAMPLES, [dump_json(dict(each)) + b"\n" for each in examples])

    def forget(self) -> None:
        """Take back `run.json`: training did not begin, and may with other settings. Raises OSError."""
        if self.writes:
            self.folder.manifest.unlink(missing_ok=True)

    def write(self, state: State, error: str | None = None) -> None:
        """`run.json`, in this state. Raises OSError."""
        self.state = state
        if not self.writes:
            return
        manifest = RunManifest(
            format=FORMAT,
            uncanny=__version__,
            python=platform.python_version(),
            libraries=dict(library_versions()),
            state=state,
            started=self.started,
            updated=_now(),
            **self.settings.written(),
            record_file=STEPS,
            parameters=dict(self.parameters),
            totals=Totals(seconds=round(self.seconds, 3)),
            error=error,
        )
        self.folder.write_manifest(manifest.written())


@contextmanager
def training(
    task: str, parameters: LearnParameters, *, data: Mapping[str, Path], plan: Mapping[str, Any]
) -> Iterator[LearnSession]:
    """Hold the run folder of `parameters` while it is trained in, and write how it ended.

    `data` are the files that the result depends on, by name, and `plan` what else must stay the same besides
    the parameters. Where an earlier session has trained to the end, `finished` is set and nothing is written.
    A StopTrainingError ends the session, and goes no further. A UsageError before the first step leaves a
    folder that other settings may use.
    Raises RunMismatchError where the folder was made with other settings, RunLockedError, UsageError.
    """
    folder, base = RunFolder(Path(parameters.out)), Path(parameters.base)
    values = {
        name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in parameters
    }
    settings = RunSettings(
        task=task,
        model=os.fspath(parameters.base),
        plan={
            **{
                name: value
                for name, value in values.items()
                if name not in SessionParameters.model_fields and name != "base"
            },
            **plan,
            # The cache of the hub lies outside the folders that a service reads.
            "base_sha256": digest(base) if base.is_dir() else digest(base_folder(parameters), anywhere=True),
            "data": {name: digest(bundled_folder(path) or path) for name, path in data.items()},
        },
    )
    session_only = SessionParameters.model_fields.keys()
    first = is_first_process()
    with folder.locked() if first else nullcontext():
        before = folder.read_manifest()
        if before is not None:
            check_same_protocol(folder, _comparable(before), _comparable(settings))
        totals = None if before is None else before.totals
        session = LearnSession(
            folder,
            settings,
            {name: values[name] for name in session_only}
            | {"data": {name: str(path) for name, path in data.items()}},
            writes=first,
            finished=before is not None and before.state == "finished",
            resumed=last_checkpoint(folder.path / CHECKPOINTS),
            seconds_before=(totals.seconds or 0.0) if totals else 0.0,
            started=(before.started if before is not None else None) or _now(),
        )
        if session.finished:
            session.state = "finished"
            yield session
            return
        session.write("running")
        try:
            yield session
        except StopTrainingError:
            session.write("interrupted")
            wait_for_all()
            return
        except KeyboardInterrupt:
            session.write("interrupted")
            raise
        except Exception as error:
            if before is None and isinstance(error, UsageError) and not session.steps.path.is_file():
                session.forget()
            else:
                session.write("stopped", f"{type(error).__name__}: {error}")
            raise
        session.write("finished")
        if first:
            shutil.rmtree(session.checkpoints, ignore_errors=True)
        # The others read what the first one has written.
        wait_for_all()


def mark_whole(checkpoint: Path) -> None:
    """Say of a checkpoint that all of it is there. Raises OSError."""
    write_atomically(checkpoint / _WHOLE, [b""])


def last_checkpoint(folder: Path) -> Path | None:
    """The `checkpoint-STEP` of the highest step that was written to the end; None without one."""
    whole = [
        each
        for each in folder.glob("checkpoint-*")
        if (each / _WHOLE).is_file() and step_of(each) is not None
    ]
    return max(whole, key=lambda each: step_of(each) or 0, default=None)


def step_of(checkpoint: Path) -> int | None:
    """The number of steps that a checkpoint was written after."""
    number = checkpoint.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else None


def base_folder(parameters: LearnParameters) -> Path:
    """The folder of the base model, of a name that in the cache of the Hugging Face Hub.

    uncanny downloads nothing. Raises UsageError where there is neither.
    """
    base = Path(parameters.base)
    if (base / "config.json").is_file():
        return base
    name = os.fspath(parameters.base)
    if not base.exists():
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError

        try:
            return Path(snapshot_download(name, local_files_only=True))
        except (LocalEntryNotFoundError, ValueError):
            pass
    raise UsageError(
        f"{option('base')} is {name!r}, which is neither a folder with a config.json nor in the local cache",
        remedy=f"Get it with `hf download {name}`, or pass a folder made by `save_pretrained`.",
    )


def read_results(run: Path) -> Mapping[str, Any]:
    """`results.json` of a run; nothing where training has not ended. Raises UsageError."""
    path = run / RESULTS
    return read_json(path, remedy="Restore it, or train again.") if path.is_file() else {}


def _comparable(settings: RunSettings) -> dict[str, Any]:
    """As JSON reads it back, where tuples are lists; what a run calls its model is the base of a training."""
    plain: dict[str, Any] = orjson.loads(dump_json(settings.comparable()))
    plain["plan"] = {"base": plain.pop("model"), **plain["plan"]}
    return plain


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
