"""The service as one object: its data folder, its database, and what is kept in both."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import orjson
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from uncanny.demo.scenes import DATA as SCENES
from uncanny.errors import NotFoundError, UsageError
from uncanny.service import is_id, new_id
from uncanny.service.answers import Job
from uncanny.service.folders import ROOTS, Roots, link_to, without_paths
from uncanny.service.jobs.folder import RUN
from uncanny.service.jobs.kinds import check_params
from uncanny.service.store.database import Also, Database, nothing
from uncanny.service.store.jobs import JobStore
from uncanny.service.store.requests import AuditLog, IdempotencyStore
from uncanny.service.store.tables import facts
from uncanny.service.store.tokens import TokenStore
from uncanny.service.store.uploads import UploadStore
from uncanny.wording import option

# Bytes without which neither the database nor a record can be written.
LEAST_FREE: Final = 256 * 1024
DATA: Final = Path("uncanny-data")
_MARK: Final = "service.id"
_FOLDERS: Final = ("jobs", "images", "files")


class Service:
    """What routes, pages and workers are given. Close it in the end, or use it as a context."""

    def __init__(
        self,
        data: Path,
        database: Database,
        roots: Roots,
        weights: Mapping[str, Path] | None = None,
    ) -> None:
        """`open` is how one is made."""
        self.data = data
        self.roots = roots
        self.weights = dict(weights or {})
        self.database = database
        self.jobs = JobStore(database)
        self.tokens = TokenStore(database)
        self.uploads = UploadStore(database, data)
        self.audit = AuditLog(database)
        self.idempotency = IdempotencyStore(database)

    @classmethod
    def open(
        cls,
        data: Path = DATA,
        *,
        database: str | None = None,
        roots: Sequence[Path] = (),
        weights: Mapping[str, Path] | None = None,
    ) -> Service:
        """The service kept in the folder `data`, which is made, and in the database at `database`.

        Without an address it is SQLite in the folder. Several processes share one PostgreSQL and one folder.
        `roots` are folders from which jobs may take files, `weights` those of models' weights that jobs may
        load, by name. Raises UsageError where the folder or the database cannot be used, belongs to another
        one, or a root is not a folder.
        """
        weights = weights or {}
        for name, folders in (("root", roots), ("weights", weights.values())):
            for folder in folders:
                if not folder.is_dir():
                    raise UsageError(
                        f"{option(name)} {folder} is not a folder", remedy="Pass an existing folder."
                    )
        for folder in (data, *roots):
            if os.pathsep in str(folder.resolve()):
                raise UsageError(f"{folder} has {os.pathsep!r} in its path", remedy="Give it another name.")
        if (data / "run.json").exists() or (data / "annotations.jsonl").exists():
            raise UsageError(
                f"{data} is the folder of a run",
                remedy=f"Pass a folder of the service's own ({option('data')}); to review the run: uncanny "
                f"review {data}.",
            )
        try:
            for name in _FOLDERS:
                (data / name).mkdir(parents=True, exist_ok=True)
            links = data.resolve() / ROOTS
            link_to(links / "scenes", SCENES.resolve())
            named = Roots(links, dict.fromkeys(root.resolve() for root in roots))
        except OSError as error:
            raise UsageError(
                f"{data} cannot be used: {error.strerror or error}",
                remedy=f"Pass a folder that can be written to ({option('data')}).",
            ) from error
        opened = Database.open(data, database)
        try:
            service = cls(
                data.resolve(),
                opened,
                named,
                {name: folder.resolve() for name, folder in weights.items()},
            )
            service._check_data()
            if opened.is_sqlite:
                service.jobs.release_all()
        except BaseException:
            opened.close()
            raise
        return service

    def submit(self, kind: str, params: Mapping[str, Any], *, name: str | None = None, by: str) -> Job:
        """Check, and put into the queue. Raises what `check_params` raises."""
        return self.jobs.submit(kind, check_params(self, kind, params), name=name, by=by)

    def is_disk_full(self) -> bool:
        """Whether the disk of the data folder takes no more, or is about to."""
        try:
            return shutil.disk_usage(self.data).free < LEAST_FREE
        except OSError:
            return False

    @property
    def folders(self) -> Sequence[Path]:
        """Real paths of the folders that images may lie in, whatever the records of a job name.

        What records name is no reference of a job, and anybody who uploads some may name any file in them.
        """
        return [*(self.data / name for name in _FOLDERS), *self.roots.values(), SCENES.resolve()]

    def child_settings(self) -> dict[str, str]:
        """What the processes of jobs find in their environment besides this one's."""
        folders = os.pathsep.join(map(str, self.folders))
        scenes = str(self.data / ROOTS / "scenes")
        weights = {name: str(folder) for name, folder in self.weights.items()}
        return {
            "UNCANNY_FOLDERS": folders,
            "UNCANNY_INPUT_FOLDERS": folders,
            "UNCANNY_SCENES": scenes,
            "UNCANNY_WEIGHTS": orjson.dumps(weights).decode(),
        }

    def without_paths(self, text: str, folder: Path | None = None) -> str:
        """What a command in `folder` says, for people: paths from it, the data folder or a root's name on."""
        named = {folder: name for name, folder in (*self.weights.items(), *self.roots.items())}
        named |= {self.data: "", self.data / ROOTS: "", **({folder: ""} if folder else {})}
        return without_paths(text, named)

    def job_folder(self, job_id: str) -> Path:
        """Where a job's files lie: `run`, `out`, `result.json`, `stderr.log`. Raises NotFoundError."""
        if not is_id(job_id, "job"):
            raise NotFoundError(f"There is no job {job_id}")
        return self.data / "jobs" / job_id

    def run_folder(self, job_id: str) -> Path:
        """Where a job's run lies, of a kind that has one. Raises NotFoundError."""
        return self.job_folder(job_id) / RUN

    def delete_job(self, job_id: str, also: Also = nothing) -> None:
        """Delete a job that has ended, with its folder. Raises NotFoundError, ConflictError.

        `also` is done in the transaction that deletes it.
        """
        folder = self.job_folder(job_id)
        self.jobs.delete(job_id, also)
        shutil.rmtree(folder, ignore_errors=True)

    def sweep(self) -> None:
        """Remove folders of jobs that are deleted: a kill may have come in between."""
        folders = {each.name: each for each in (self.data / "jobs").iterdir() if is_id(each.name, "job")}
        # A folder is made only after its job is in the database.
        known = self.jobs.known(list(folders))
        for name in folders.keys() - known:
            shutil.rmtree(folders[name], ignore_errors=True)

    def close(self) -> None:
        with contextlib.suppress(SQLAlchemyError):
            self.audit.flush()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_data(self) -> None:
        """A database and the folder its jobs lie in belong together: each says which is the other."""
        file = self.data / _MARK
        try:
            with file.open("x", encoding="utf-8") as new:
                new.write(new_id("set"))
        except FileExistsError:
            pass
        mine = file.read_text(encoding="utf-8")
        query = select(facts.c.value).where(facts.c.name == "data")
        try:
            with self.database.write() as connection:
                known = connection.execute(query).scalar_one_or_none()
                if known is None:
                    connection.execute(insert(facts).values(name="data", value=mine))
                    known = mine
        except IntegrityError:  # another process has just written it
            with self.database.read() as connection:
                known = connection.execute(query).scalar_one()
        if known != mine:
            raise UsageError(
                f"The database belongs to another data folder than {self.data}",
                remedy=f"Pass the folder it was made with ({option('data')}), or another database.",
            )
