"""`uncanny.Client`: jobs on a service, from Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Final, Self

from uncanny.demo.sets import BUNDLED
from uncanny.errors import NotFoundError, UsageError
from uncanny.files import read_file
from uncanny.parameters import shown_as
from uncanny.protocol import Protocol, jobs
from uncanny.records.reviews import Decision
from uncanny.service import ID_PATTERNS, State
from uncanny.service.answers import Finding, Job, JobPage, KindAnswer, KindsAnswer, StoredFile, Who
from uncanny.service.client.connection import Connection, new_key
from uncanny.service.client.job import ClientJob
from uncanny.service.client.uploads import Images, OnSent, UploadedImages, collect, upload_images
from uncanny.wording import shown

DEFAULT_URL: Final = "http://127.0.0.1:8765"
PATIENCE_S: Final = 60.0
SERVER_PATH: Final = "server:"
_REFERENCES: Final = ("upload:", "job:")
Source = str | PathLike[str] | ClientJob | UploadedImages
"""An input of a job: a file here, what was uploaded, another job, or `server:PATH` for a path there."""


class Client:
    """Client of a service (`uncanny serve`): upload images, start jobs, follow them, download results.

    >>> with uncanny.Client(address) as client:
    ...     job = client.annotate(images, model="demo").wait()
    ...     print(job.state, [record.status for record in job.annotations()])
    ...     files = job.download(out)
    finished ['ok']

    `url` is what `uncanny serve` prints. `token` is one that `uncanny token add` printed, by default that of
    the variable `UNCANNY_SERVER_TOKEN`; a service on this machine may need none. If a service can no longer
    be reached, requests that are safe to repeat are retried for `patience_s` seconds. Keys of model providers
    are never sent; the server uses its own.

    Nothing is sent before you call a method. Methods raise subclasses of `UsageError`: `AccessError` for an
    invalid token or an insufficient role, `ParamsError` for invalid parameters, `NotFoundError`,
    `ConflictError`; and `ServiceError` if the service cannot be reached or fails. Several threads may use one
    client. Close it at the end, or use it in a `with` block.
    """

    def __init__(
        self, url: str = DEFAULT_URL, token: str | None = None, *, patience_s: float = PATIENCE_S
    ) -> None:
        self.connection: Final = Connection(url, token, patience_s=patience_s)

    def __repr__(self) -> str:
        return f"<Client {self.url}>"

    @property
    def url(self) -> str:
        """The address of the service, without its path of the API."""
        return self.connection.shown

    def close(self) -> None:
        """Close all connections. Jobs continue."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def me(self) -> Who:
        """The name and role of the token."""
        return self.connection.read("me", Who)

    def kinds(self) -> dict[str, KindAnswer]:
        """The kinds of jobs that the service runs, by name, each with a JSON schema of its parameters."""
        return {each.kind: each for each in self.connection.read("kinds", KindsAnswer).kinds}

    # What jobs work on.

    def upload(
        self,
        images: Images,
        *,
        into: UploadedImages | None = None,
        on_sent: OnSent = lambda _sent, _of: None,
    ) -> UploadedImages:
        """Send images: files, folders with all images in them, the bytes of a file, or bytes by name.

        `refused` lists files that the service refused, with the reason; the others are uploaded. A file with
        the same content is not sent twice: within one call, or to the uploads in `into`, such as one that was
        interrupted. `on_sent` is called with the number of files sent and the total.
        """
        sets = into.sets if into is not None else ()
        return upload_images(self.connection, collect(images), into=sets, on_sent=on_sent)

    def upload_file(self, file: str | PathLike[str]) -> str:
        """Send a file of records, items, pairs or prices; a reference to it, as a parameter of jobs."""
        path = Path(file)
        try:
            data = read_file(path)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
        return self.send_file(path.name, data)

    def send_file(self, name: str, data: bytes) -> str:
        """Send bytes from memory as a file; see `upload_file`."""
        form = [("file", (name, data, "application/octet-stream"))]
        answer = self.connection.write("POST", "files", StoredFile, files=form)
        assert answer is not None
        return f"upload:{answer.id}"

    # Jobs.

    def submit(
        self, kind: str, params: Mapping[str, Any], *, name: str | None = None, key: str | None = None
    ) -> ClientJob:
        """Start a job of any kind with the parameters of its command, as `kinds` describes them.

        With the same `key`, repeated calls, also from other processes, start one job. Without a key, two
        calls start two jobs, but a broken connection never starts a job twice. Raises ParamsError.
        """
        content: dict[str, Any] = {"kind": kind, "params": dict(params)}
        if name is not None:
            content["name"] = name
        job = self.connection.write("POST", "jobs", Job, key=key or new_key(), content=content)
        assert job is not None
        return ClientJob(self.connection, job)

    def job(self, job_id: str) -> ClientJob:
        """A job by its id. Raises NotFoundError."""
        if re.fullmatch(ID_PATTERNS["job"], job_id) is None:
            raise NotFoundError(f"{shown(job_id)} is not the id of a job", remedy="Ids begin with job_.")
        return ClientJob(self.connection, self.connection.read(f"jobs/{job_id}", Job))

    def jobs(self, *, state: State | None = None, kind: str | None = None) -> Iterator[ClientJob]:
        """All jobs, newest first, requested page by page."""
        params = {"state": state, "kind": kind, "limit": 100}
        for page in self.connection.pages("jobs", JobPage, params, by="before"):
            yield from (ClientJob(self.connection, job) for job in page.jobs)

    def verdicts(
        self, job: ClientJob | str, decisions: Mapping[Finding, Decision] | Iterable[tuple[Finding, Decision]]
    ) -> list[Finding]:
        """Judge findings of a job under the name of the token; returns each as it is afterwards.

        Findings come from `ClientJob.findings`. Raises ConflictError for one whose text has changed since:
        those before it are judged.
        """
        judged = decisions.items() if isinstance(decisions, Mapping) else decisions
        reviewed = self.job(job) if isinstance(job, str) else job
        return [reviewed.judge(finding, decision) for finding, decision in judged]

    def __getattr__(self, kind: str) -> Callable[..., ClientJob]:
        """A method for each protocol: `client.annotate(images, model=…)`, `client.compare({"a": job, …})`.

        Its first argument is that of the command. Files are sent first, unless they are there already; the
        parameters are those of the function, `name` is what the job is called, `key` as for `submit`.
        """
        protocol = jobs().get(kind)
        if protocol is None:
            raise AttributeError(f"A client has no {kind!r}; its jobs are {', '.join(jobs())}")
        return partial(self._start, protocol)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *jobs()]

    def _start(
        self,
        protocol: Protocol,
        inputs: Any,
        *,
        name: str | None = None,
        key: str | None = None,
        **params: Any,
    ) -> ClientJob:
        given: Any
        if protocol.input.kind == "images":
            given = self._images(inputs)
        elif isinstance(inputs, Mapping):
            given = {each: self._file(source) for each, source in inputs.items()}
        else:
            given = self._file(inputs)
        fields = protocol.parameters.model_fields
        files = {each for each in params if each in fields and shown_as(fields[each]).place == "source"}
        params |= {each: self._file(params[each]) for each in files}
        params |= {each: job.reference for each, job in params.items() if isinstance(job, ClientJob)}
        return self.submit(protocol.name, params | {protocol.input.name: given}, name=name, key=key)

    # References.

    def _images(self, images: Any) -> list[str]:
        """References to images: what is there already as it is, all else sent first."""
        several = isinstance(images, Iterable) and not isinstance(images, str | bytes | Mapping | PathLike)
        there: list[str] = []
        here: list[Any] = []
        for each in list(images) if several else [images]:
            if isinstance(each, UploadedImages):
                there += each.references
            elif (reference := as_reference(each)) is not None:
                there.append(reference)
            else:
                here.append(each)
        if here:
            there += self.upload(here).references
        return there

    def _file(self, source: Any) -> str:
        reference = as_reference(source)
        return self.upload_file(source) if reference is None else reference


def as_reference(source: object) -> str | None:
    """What an input is called on the service; None where it has to be sent first.

    There are jobs, references, paths there (`server:photos/2025`), and the bundled sets.
    """
    if isinstance(source, ClientJob):
        return source.reference
    if not isinstance(source, str):
        return None
    if source.startswith(SERVER_PATH):
        return source.removeprefix(SERVER_PATH)
    if source.startswith(_REFERENCES) or source in BUNDLED or source.startswith("scenes:"):
        return source
    return None
