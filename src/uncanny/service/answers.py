"""What the service answers, for the service and its client. A client passes over keys of later versions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, get_args

from pydantic import BaseModel, ConfigDict, Field

from uncanny.errors import ImageFault
from uncanny.records.reviews import Decision
from uncanny.schema import Anomaly
from uncanny.service import ENDED, ID_PATTERNS, ROLES, State

JOB_EXAMPLE: Final[dict[str, Any]] = {
    "id": "job_aaaaaaaaaaaaaaaaaaaa",
    "kind": "annotate",
    "name": "Batch 7",
    "params": {"images": ["upload:set_aaaaaaaaaaaaaaaaaaaa"], "model": "openai/gpt-4o", "max_cost_usd": 20.0},
    "state": "running",
    "created_at": "2026-01-01T12:00:00Z",
    "created_by": "ann",
    "started_at": "2026-01-01T12:00:01Z",
    "ended_at": None,
    "attempt": 1,
    "worker": "host:4711:0a1b2c3d",
    "exit_code": None,
    "error": None,
    "progress": {
        "total": 30,
        "done": 12,
        "failed": 0,
        "calls": 410,
        "cost_usd": 0.41,
        "input_tokens": 512_000,
        "output_tokens": 20_400,
        "rate": 6.5,
        "eta_s": 95.0,
    },
}
EXIT_CODES: Final = {"finished": 0, "incomplete": 1, "over_budget": 3, "cancelled": 130, "failed": 2}
"""What a command returns for a run that ended so."""

Bytes = Annotated[int, Field(ge=0, le=2**62, examples=[60_277], description="Bytes.")]
Sha256 = Annotated[
    str,
    Field(
        pattern="^[0-9a-f]{64}$",
        examples=["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"],
    ),
]
Person = Annotated[str, Field(examples=["ann"])]
Place = Annotated[str, Field(examples=["1311768.4096"])]


class Answer(BaseModel):
    """Base of answers. A key with a default is in every answer all the same."""

    model_config = ConfigDict(frozen=True, json_schema_serialization_defaults_required=True)


class Who(Answer):
    """Whose token it is."""

    name: Person
    role: Annotated[str, Field(json_schema_extra={"enum": [*ROLES]})]


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


class Job(Answer):
    """A job as it was when it was asked about. `attempt` counts how often a worker has taken it.

    `started_at` is when it was taken first since it was submitted, or last retried. `error` has the last
    words of one that failed.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [JOB_EXAMPLE]})

    id: str = Field(pattern=ID_PATTERNS["job"])
    kind: str
    name: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    state: State
    created_at: datetime
    created_by: str
    started_at: datetime | None = None
    ended_at: datetime | None = None
    attempt: int = 0
    worker: str | None = None
    exit_code: int | None = None
    error: str | None = None
    progress: JobProgress | None = None

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED


class JobPage(Answer):
    """Jobs, the newest first; `next` is the `before` of the next page, None where this is the last."""

    jobs: tuple[Job, ...]
    next: str | None = None


class KindAnswer(Answer):
    """A kind of job: what it does, and the JSON schema of its parameters."""

    kind: Annotated[str, Field(examples=["annotate"])]
    title: str = ""
    description: str = ""
    asks_models: bool = True
    params: dict[str, Any] = Field(default_factory=dict)


class KindsAnswer(Answer):
    kinds: tuple[KindAnswer, ...]


class RecordPage(Answer):
    """Records as the run's file has them.

    `next` is where the following ones begin, None where there are none now; `end` is the same also then, to
    ask later for what a running job adds.
    """

    records: tuple[dict[str, Any], ...]
    next: Place | None = None
    end: Place = ""


class JobFile(Answer):
    """A file of a job, by its path from the job's folder."""

    path: Annotated[str, Field(examples=["run/annotations.jsonl"])]
    size: Bytes
    sha256: Sha256


class FilePage(Answer):
    """Files in order of their paths."""

    files: tuple[JobFile, ...]
    next: str | None = None


class ImageSet(Answer):
    """A set of uploaded images; `size` is that of all together."""

    id: str = Field(pattern=ID_PATTERNS["set"], examples=["set_aaaaaaaaaaaaaaaaaaaa"])
    name: Annotated[str, Field(examples=["Batch 7"])] | None
    created_at: datetime
    created_by: Person
    count: Annotated[int, Field(examples=[2])]
    size: Bytes


class StoredImage(Answer):
    """An image of a set, under its name there; width and height in pixels as stored."""

    name: Annotated[str, Field(examples=["a/cat.png"])]
    sha256: Sha256
    size: Bytes
    width: Annotated[int, Field(examples=[1024])]
    height: Annotated[int, Field(examples=[768])]


class SentImage(StoredImage):
    """An image that the set has, and the name it was sent under. A `duplicate` was there already."""

    sent_as: Annotated[str, Field(examples=["a/cat.png"])]
    duplicate: bool


class RefusedImage(Answer):
    """An image that was not kept, under the name it was sent, and why: `code` for programs."""

    name: Annotated[str, Field(examples=["notes.txt"])]
    code: Annotated[str, Field(json_schema_extra={"enum": [*get_args(ImageFault)]})]
    message: Annotated[str, Field(examples=["not an image: text. Give files in JPEG, PNG or WebP."])]


class SentImages(ImageSet):
    """The set as it is now, and what became of the images of a request."""

    images: tuple[SentImage, ...]
    refused: tuple[RefusedImage, ...] = ()


class SetPage(ImageSet):
    """A set with some of its images in order of their names, `next` for those after them."""

    images: tuple[StoredImage, ...]
    next: str | None = None


class SetsPage(Answer):
    """Sets, the newest first."""

    sets: tuple[ImageSet, ...]
    next: str | None


class StoredFile(Answer):
    """An uploaded file."""

    id: str = Field(pattern=ID_PATTERNS["file"], examples=["file_aaaaaaaaaaaaaaaaaaaa"])
    name: Annotated[str, Field(examples=["items.jsonl"])]
    sha256: Sha256
    size: Bytes
    created_at: datetime
    created_by: str


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


class AuditLine(Answer):
    """A change: who did what to which subject, when and from which address, either of which may be None."""

    seq: Annotated[int, Field(examples=[17])]
    at: datetime
    who: Person
    role: Annotated[str, Field(examples=["operator"])]
    action: Annotated[str, Field(examples=["cancel"])]
    subject: Annotated[str, Field(examples=["job_aaaaaaaaaaaaaaaaaaaa"])] | None
    address: Annotated[str, Field(examples=["127.0.0.1"])] | None
    details: dict[str, Any]


class AuditPage(Answer):
    """Changes, the newest first."""

    lines: tuple[AuditLine, ...]
    next: int | None
