"""What parameters of jobs are made of: their types with bounds, and groups that several kinds share.

Names and bounds are those of the options of the commands; a test holds them to it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from uncanny.service.jobs.references import Reference, Source
from uncanny.settings import WEEK_S

T = TypeVar("T")


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _unique(values: list[T]) -> list[T]:
    if len(values) != len(set(map(str, values))):
        raise ValueError("names one of them twice")
    return values


def _stays(model: str) -> str:
    if ".." in model.split("/"):
        raise ValueError("leads to a folder above")
    return model


# A name behind the provider that cannot be taken for an option or a path by a server that is started for it.
_MODEL: Final = r"^[A-Za-z0-9._-]+(/\w[\w.:@/+-]*)?$"
_ROLE: Final = r"^[a-z][a-z0-9_-]{0,39}$"
# It stands before an equals sign in an argument, and may become the name of a folder.
_NAME: Final = r"^\w[\w .()+-]{0,59}$"
_LANGUAGE: Final = r"^[^\W\d_][^\d\n\r\t\x00]{0,59}$"
_BACKBONE: Final = r"^\w[\w.-]*(/\w[\w.-]*)?$"
_DEVICE: Final = r"^(cpu|mps|cuda(:[0-9]{1,2})?)$"
_TABLE_COLUMN: Final = r"^[^\s\x00-\x1f-][^\x00-\x1f]{0,199}$"
_COLUMN: Final = r"^\w[\w.-]{0,99}$"
PATTERNS: Final = {
    _MODEL: "must be a provider and the name of its model, such as openai/gpt-4o, without blanks",
    _ROLE: "must be roles and their models, ROLE=PROVIDER/NAME, such as integrator=openai/gpt-4o",
    _NAME: "needs a name before each, as NAME=…: letters, digits, blanks and . ( ) + - _, at most 60, a "
    "letter or digit first",
    _LANGUAGE: "must be the name of a language, such as German",
    _BACKBONE: "must be the name of a model on the hub, such as roberta-large",
    _DEVICE: "must be cpu, mps or cuda, or one of several as cuda:1",
    _TABLE_COLUMN: "must be the name of a column, without a hyphen first",
    _COLUMN: "must be the name of a key of records, such as prompt_id",
}
"""What each form of text takes, in words; a parameter's name stands before them."""

Model = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=_MODEL), AfterValidator(_stays)
]
Role = Annotated[str, StringConstraints(pattern=_ROLE)]
Name = Annotated[str, StringConstraints(pattern=_NAME)]
Language = Annotated[str, StringConstraints(pattern=_LANGUAGE)]
Backbone = Annotated[str, StringConstraints(max_length=200, pattern=_BACKBONE)]
Device = Annotated[str, StringConstraints(pattern=_DEVICE)]
Column = Annotated[str, StringConstraints(pattern=_COLUMN)]
TableColumn = Annotated[str, StringConstraints(pattern=_TABLE_COLUMN)]
References = Annotated[
    list[Reference],
    BeforeValidator(_listed),
    AfterValidator(_unique),
    Field(min_length=1, max_length=1000),
]
Sources = Annotated[
    list[Source], BeforeValidator(_listed), AfterValidator(_unique), Field(min_length=1, max_length=1000)
]
NamedReferences = Annotated[dict[Name, Reference], Field(min_length=1, max_length=100)]
ComparedReferences = Annotated[dict[Name, Reference], Field(min_length=2, max_length=100)]
NamedSources = Annotated[dict[Name, Source], Field(min_length=1, max_length=100)]
Seconds = Annotated[float, Field(gt=0, le=WEEK_S, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
PositiveShare = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
OutputTokens = Annotated[int, Field(ge=1, le=1_000_000)]
Resamples = Annotated[int, Field(ge=0, le=1_000_000)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
BoxFormat = Literal["xyxy-1000", "yxyx-1000", "xyxy-999", "xyxy-1", "pixels"]


class Params(BaseModel):
    """Base of the parameters of every kind: no further keys, no text for a number.

    A field is the option of its name; what is None is left to the command.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class AskParams(Params):
    """How models are asked, in every kind that asks some."""

    roles: dict[Role, Model] | None = Field(None, max_length=20)
    fallback: Model | None = None
    concurrency: int | None = Field(None, ge=1, le=10_000)
    timeout_s: Seconds | None = None
    patience_s: Seconds | None = None
    max_cost_usd: float | None = Field(None, gt=0, le=1e9, allow_inf_nan=False)
    max_tokens_total: int | None = Field(None, ge=1, le=10**15)
    limit: int | None = Field(None, ge=1, le=10**12)
    prices: Reference | None = None
    prompts: Reference | None = None
    cache: bool | None = None
    retry_failed: bool | None = None
    keep_missing: bool | None = None


class SamplingParams(Params):
    """How answers are sampled."""

    temperature: float | None = Field(None, ge=0, le=2, allow_inf_nan=False)
    top_p: PositiveShare | None = None
    max_output_tokens: OutputTokens | None = None


class PixelParams(Params):
    """How images are read and sent."""

    max_side: int | None = Field(None, ge=1, le=1_000_000)
    image_format: Literal["keep", "png", "jpeg"] | None = None
    jpeg_quality: int | None = Field(None, ge=1, le=100)
    max_pixels: int | None = Field(None, ge=1, le=10**12)
    image_column: TableColumn | None = None
    columns: list[TableColumn] | None = Field(None, max_length=200)


class AnnotateOptions(AskParams, SamplingParams, PixelParams):
    """How images are annotated."""

    schedule: Literal["packed", "paper", "single"] | None = None
    repeats: int | None = Field(None, ge=1, le=100)
    max_objects: int | None = Field(None, ge=1, le=1_000)
    scene_scans: int | None = Field(None, ge=0, le=100)
    batch_objects: int | None = Field(None, ge=1, le=100)
    strictness: Literal["open", "strict"] | None = None
    language: Language | None = None
    box_format: BoxFormat | None = None
    formatter_output_tokens: OutputTokens | None = None


class SimilarityParams(Params):
    """How texts are compared."""

    similarity: Literal["bertscore", "chrf"] | None = None
    backbone: Backbone | None = None
    num_layers: int | None = Field(None, ge=1, le=1_000)
    device: Device | None = None
    batch_tokens: int | None = Field(None, ge=1, le=10**9)
    balance: Share | None = Field(None, alias="lambda")
    resamples: Resamples | None = None
    seed: Seed | None = None


def written(name: str, value: Any) -> list[str]:
    """A parameter as options of a command line; none for None. False needs `--no-…` or the like of its own.

    Values stand in one argument with their option, so that none can be taken for another option.
    """
    flag = "--" + _FLAGS.get(name, name).replace("_", "-")
    if value is None:
        return []
    if isinstance(value, bool):
        if value:
            return [flag]
        return [_NEGATED[name]] if name in _NEGATED else []
    if isinstance(value, dict):
        return [f"{flag}={key}={each}" for key, each in value.items()]
    if isinstance(value, list) and name in _JOINED:
        return [f"{flag}={','.join(map(str, value))}"]
    if isinstance(value, list):
        return [f"{flag}={each}" for each in value]
    return [f"{flag}={value}"]


_FLAGS: Final = {
    "roles": "role",
    "timeout_s": "timeout",
    "patience_s": "patience",
    "categories": "category",
    "columns": "column",
    "balance": "lambda",
}
_JOINED: Final = ("thresholds",)
_NEGATED: Final = {"cache": "--no-cache", "retry_failed": "--keep-failed"}
