"""What a service answers, as far as a client reads it. Keys of later versions are passed over."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from uncanny.records.reviews import Decision
from uncanny.schema import Anomaly
from uncanny.service import ENDED, State

JOB_ID: Final = "^job_[a-z2-7]{20}$"
EXIT_CODES: Final = {"finished": 0, "incomplete": 1, "over_budget": 3, "cancelled": 130, "failed": 2}
"""What a command returns for a run that ended so."""


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Who(Answer):
    """Whose token it is: `role` is `reader`, `reviewer` or `operator`."""

    name: str
    role: str


class JobProgress(Answer):
    """How far a job is; None is what is not known. `rate` is calls a second, `eta_s` seconds to go."""

    total: int | None = None
    done: int | None = None
    failed: int | None = None
    calls: int | None = None
    cost_usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    rate: float | None = None
    eta_s: float | None = None


class JobRecord(Answer):
    """A job as it was when it was asked about. `error` has the last words of one that failed."""

    id: str = Field(pattern=JOB_ID)
    kind: str
    name: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    state: State
    created_at: datetime
    created_by: str
    started_at: datetime | None = None
    ended_at: datetime | None = None
    attempt: int = 0
    exit_code: int | None = None
    error: str | None = None
    progress: JobProgress | None = None

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED


class JobPage(Answer):
    jobs: tuple[JobRecord, ...]
    next: str | None = None


class RecordPage(Answer):
    """Records as the run's file has them; `next` is where the following ones begin, None at the end."""

    records: tuple[dict[str, Any], ...]
    next: str | None = None


class RemoteFile(Answer):
    """A file of a job, by its path from the job's folder."""

    path: str
    size: int = Field(ge=0, le=2**62)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class FileList(Answer):
    files: tuple[RemoteFile, ...]
    next: str | None = None


class RemoteImage(Answer):
    """An image that the service has, under `name` in its set."""

    name: str
    sha256: str
    size: int


class RefusedImage(Answer):
    """An image that the service did not take, or that could not be read, and why."""

    name: str
    code: str | None = None
    message: str


class ImagesTaken(Answer):
    id: str = Field(pattern="^set_[a-z2-7]{20}$")
    images: tuple[RemoteImage, ...]
    refused: tuple[RefusedImage, ...] = ()


class ImageList(Answer):
    images: tuple[RemoteImage, ...]
    next: str | None = None


class FileAnswer(Answer):
    id: str = Field(pattern="^file_[a-z2-7]{20}$")
    name: str
    sha256: str
    size: int


class KindAnswer(Answer):
    """A kind of job: what it does, and a JSON schema of its parameters."""

    kind: str
    title: str = ""
    description: str = ""
    params: dict[str, Any] = Field(default_factory=dict)


class KindList(Answer):
    kinds: tuple[KindAnswer, ...]


class Finding(Answer):
    """An anomaly that people judge. `text` is the hash of what a verdict is about, `decision` the majority's.

    `anomaly` is as people have left it, `votes` who says what, `tied` whether there is no majority.
    """

    id: str
    image: str
    text: str
    anomaly: Anomaly
    votes: dict[str, Decision] = Field(default_factory=dict)
    decision: Decision | None = None
    tied: bool = False


class FindingPage(Answer):
    findings: tuple[Finding, ...]
    next: str | None = None
