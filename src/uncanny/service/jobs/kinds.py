"""The kinds of jobs: what each is asked for, which command it is, and what it leaves in its folder.

A further kind is a class of parameters and a line in `KINDS`. Whatever a command writes goes into the folder
of its job, in which it works: `run` for runs, `out` for all else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field, ValidationError, model_validator

from uncanny.errors import NotFoundError, ParamsError, UncannyError
from uncanny.exports.formats import FormatName
from uncanny.schema import ArtifactCategory
from uncanny.service.jobs.faults import in_words
from uncanny.service.jobs.params import (
    PATTERNS,
    AnnotateOptions,
    AskParams,
    BoxFormat,
    Column,
    ComparedReferences,
    Device,
    Model,
    NamedReferences,
    NamedSources,
    Params,
    PixelParams,
    PositiveShare,
    References,
    Resamples,
    SamplingParams,
    Seed,
    Share,
    SimilarityParams,
    Sources,
    written,
)
from uncanny.service.jobs.references import Reference, Source, Weights, references, replaced

if TYPE_CHECKING:
    from uncanny.service.service import Service
    from uncanny.service.store.jobs import Job


class AnnotateParams(AnnotateOptions):
    """Find what is wrong in images."""

    images: References
    model: Model
    format: Literal["jsonl", "parquet"] | None = None


class DetectParams(AskParams, SamplingParams, PixelParams):
    """Tell generated images from real ones, and say by what."""

    images: Sources
    model: Model
    truth: Source | None = None
    protocol: Literal["conversation", "independent"] | None = None
    format: Literal["jsonl", "parquet"] | None = None


class McqParams(AskParams, SamplingParams):
    """Ask four questions about the artifact of each image. `root` is where the items' image paths start."""

    items: Source
    root: Reference | None = None
    model: Model
    control: bool | None = None
    blind: bool | None = None


class RealismParams(AskParams, SamplingParams):
    """Find out which edited images would fool a viewer: `pairs`, or folders `original` and `edited`."""

    pairs: Source | None = None
    original: Reference | None = None
    edited: Reference | None = None
    root: Reference | None = None
    model: Model

    @model_validator(mode="after")
    def _one_source(self) -> RealismParams:
        _check_pairs(self.pairs, self.original, self.edited)
        return self


class SemanticParams(SimilarityParams):
    """Score predicted anomalies against the true ones."""

    predictions: NamedSources
    truth: Source
    thresholds: list[Share] | None = Field(None, min_length=1, max_length=20)
    keep_all: bool | None = None
    published: bool | None = None


class AuditParams(AnnotateOptions):
    """Rank generators by how plausible their images are. Folders of images are annotated by `model` first."""

    generators: NamedSources
    against: NamedReferences | None = None
    before: NamedReferences | None = None
    own: list[Annotated[str, Field(min_length=1, max_length=100)]] | None = Field(None, max_length=100)
    title: str | None = Field(None, min_length=1, max_length=200)
    similarity: Literal["chrf", "bertscore"] | None = None
    threshold: PositiveShare | None = None
    model: Model | None = None
    pair_by: Column | None = None
    allow_mixed: bool | None = None
    published: bool | None = None
    worst: int | None = Field(None, ge=0, le=10_000)
    root: Reference | None = None
    resamples: Resamples | None = None
    seed: Seed | None = None


class CompareParams(SimilarityParams):
    """What changed between runs over the same images; each is compared with the first."""

    runs: ComparedReferences
    truth: Source | None = None
    by: Literal["image", "prompt"] | None = None
    threshold: PositiveShare | None = None
    iou: PositiveShare | None = None
    root: Reference | None = None


class ArtifactsParams(AskParams, SamplingParams, PixelParams):
    """Locate the artifacts of images, by seven categories."""

    images: Sources
    model: Model
    categories: list[ArtifactCategory] | None = Field(None, min_length=1, max_length=7)
    joint: bool | None = None
    likelihood: bool | None = None
    box_format: BoxFormat | None = None


class EditsMeasureParams(Params):
    """Measure how much edits changed and where: `pairs`, or folders `original` and `edited`."""

    pairs: Source | None = None
    original: Reference | None = None
    edited: Reference | None = None
    masks: Reference | None = None
    root: Reference | None = None
    preserved: bool | None = None
    cutoffs: Reference | None = None
    published: bool | None = None
    lpips: Literal["alex", "vgg", "squeeze"] | None = None
    lpips_weights: Reference | None = None
    dreamsim: Weights | None = None
    text_model: Weights | None = None
    device: Device | None = None
    threads: int | None = Field(None, ge=1, le=1024)
    protocol: Literal["uncanny", "paper", "release"] | None = None
    window: int | None = Field(None, ge=3, le=999)
    threshold: Share | None = None
    least_object: int | None = Field(None, ge=0, le=10**9)
    dilation: int | None = Field(None, ge=1, le=999)
    least_component: int | None = Field(None, ge=0, le=10**9)
    neighbours: float | None = Field(None, ge=0, le=1e9, allow_inf_nan=False)
    diffused_ratio: Share | None = None
    low_percentile: float | None = Field(None, ge=0, le=100, allow_inf_nan=False)
    high_percentile: float | None = Field(None, ge=0, le=100, allow_inf_nan=False)
    deviations: float | None = Field(None, ge=0, le=1e9, allow_inf_nan=False)

    @model_validator(mode="after")
    def _one_source(self) -> EditsMeasureParams:
        _check_pairs(self.pairs, self.original, self.edited)
        if self.masks is not None and self.original is None:
            raise ValueError("masks go with original and edited")
        return self


class ExportParams(Params):
    """Write the verified anomalies of a run as data sets."""

    run: Reference
    to: list[FormatName] = Field(min_length=1, max_length=11)
    all: bool | None = None
    rejected: bool | None = None
    source: Literal["generated", "real"] | Reference | None = Field(None, union_mode="left_to_right")
    test_fraction: Share | None = None
    group_by: Column | None = None
    seed: Seed | None = None
    max_tokens: int | None = Field(None, ge=1, le=10**9)
    chat: Literal["parts", "tags"] | None = None
    pictures: Literal["reference", "copy"] | None = None


def _check_pairs(pairs: object, original: object, edited: object) -> None:
    if (original is None) != (edited is None):
        raise ValueError("original and edited go together")
    if (pairs is None) == (original is None):
        raise ValueError("either pairs, or original and edited, have to be given")


@dataclass(frozen=True, slots=True)
class Kind:
    """A command as a job.

    `inputs` is the field that becomes the arguments of the command, `fixed` are options that are always
    given, with paths in the folder of the job. `records` and `page` are where it leaves them there, None for
    nowhere. `asks` says whether it asks models. `then` is a command that follows, if there is anything to
    make a page of; whatever becomes of it, the job has the end of the first one.
    """

    name: str
    title: str
    params: type[Params]
    command: tuple[str, ...]
    inputs: str
    fixed: tuple[str, ...]
    records: str | None = None
    page: str | None = None
    asks: bool = False
    then: tuple[str, ...] = ()


_RUN: Final = ("--run=run", "--json")
_JSON: Final = "--json=-"
# Of kinds that score: what a client fetches that wants the tables.
_TABLES: Final = ("--csv=out/scores.csv", "--markdown=out/scores.md", "--latex=out/scores.tex")
_PAGE: Final = ("report", "run")
KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind(
            *("annotate", "Find anomalies", AnnotateParams, ("annotate",), "images", _RUN),
            *("run/annotations.jsonl", "run/report.html", True),
        ),
        Kind(
            *("detect", "Real or generated", DetectParams, ("detect",), "images", (*_RUN, *_TABLES)),
            *("run/annotations.jsonl", "run/report.html", True),
        ),
        Kind(
            *("mcq", "Four questions", McqParams, ("mcq", "run"), "items", _RUN),
            *("run/answers.jsonl", "run/report.html", True, _PAGE),
        ),
        Kind(
            *("realism", "Would it fool a viewer", RealismParams, ("realism", "run"), "pairs", _RUN),
            *("run/verdicts.jsonl", "run/report.html", True, _PAGE),
        ),
        Kind(
            *("semantic", "Score by meaning", SemanticParams, ("semantic",), "predictions"),
            (_JSON, "--report=out/semantic.html", "--per-image=out/images.jsonl", *_TABLES),
            *("out/images.jsonl", "out/semantic.html"),
        ),
        Kind(
            *("audit", "Rank generators", AuditParams, ("audit",), "generators"),
            (_JSON, "--out=run", "--report=out/audit.html", *_TABLES),
            *(None, "out/audit.html", True),
        ),
        Kind(
            *("compare", "Compare runs", CompareParams, ("compare",), "runs"),
            (_JSON, "--report=out/compare.html", *_TABLES),
            *(None, "out/compare.html"),
        ),
        Kind(
            *("artifacts", "Locate artifacts", ArtifactsParams, ("artifacts", "run"), "images", _RUN),
            *("run/artifacts.jsonl", None, True),
        ),
        Kind(
            *("edits_measure", "Measure edits", EditsMeasureParams, ("edits", "measure"), "pairs"),
            (_JSON, "--out=out/edits.jsonl", "--report=out/edits.html", *_TABLES),
            *("out/edits.jsonl", "out/edits.html"),
        ),
        Kind(*("export", "Export a data set", ExportParams, ("export",), "run"), ("--json", "--out=out")),
    )
}
# Of these people judge the findings.
REVIEWED_KINDS: Final = ("annotate", "detect")


def records_file(service: Service, job: Job) -> Path | None:
    """Where the records of a job are, or will be; None for a kind that has none, or is not known any more."""
    kind = KINDS.get(job.kind)
    return None if kind is None or kind.records is None else service.job_folder(job.id) / kind.records


def check_params(service: Service, kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters as they are kept: valid for the kind, and all they name is there and allowed.

    A path under an allowed folder is kept from the folder's name on, however it was named: anybody who reads
    is shown it. Raises NotFoundError for an unknown kind, ParamsError.
    """
    values = _read(kind, params)
    _places(service, values)

    def kept(text: str) -> str:
        return text.kept(service) if isinstance(text, Reference) else text

    named = {name: replaced(getattr(values, name), kept) for name in values.model_fields_set}
    return values.model_copy(update=named).model_dump(mode="json", exclude_unset=True, by_alias=True)


def command_of(service: Service, job: Job, folder: Path | None = None) -> list[str]:
    """The command line of a job, all it names looked up once more. Raises NotFoundError, ParamsError.

    For a command that works in `folder` the paths go from there, since what it writes has them, and people
    read that who are not to know where the service lies. Else they are absolute.
    """
    values = _read(job.kind, job.params)
    places = _places(service, values)
    kind = KINDS[job.kind]

    def place(text: str) -> str:
        path = places[text] if isinstance(text, Reference) else text
        return (
            os.path.relpath(path, folder) if folder and path.startswith(f"{service.data}{os.sep}") else path
        )

    fields = {name: replaced(getattr(values, name), place) for name in type(values).model_fields}
    inputs, options = arguments(kind, fields)
    return [*kind.command, *kind.fixed, *options, "--", *inputs]


def arguments(kind: Kind, params: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The inputs and the options of a command line, of parameters in which files have their names there."""
    inputs: list[str] = []
    options: list[str] = []
    for name, value in params.items():
        if name != kind.inputs:
            options += written(name, value)
        elif isinstance(value, dict):
            inputs = [f"{key}={each}" for key, each in value.items()]
        elif value is not None:
            inputs = list(map(str, value)) if isinstance(value, list) else [str(value)]
    return inputs, options


def title_of(job: Job) -> str:
    """What a job is called: by its name, or else by what it does, and with which model."""
    if job.name:
        return job.name
    if job.kind == "export" and isinstance(job.params.get("to"), list):
        return f"export {', '.join(map(str, job.params['to']))}"
    model = job.params.get("model")
    named = model[0] if isinstance(model, list) and model else model
    return f"{job.kind.replace('_', ' ')} {named}" if isinstance(named, str) else job.kind.replace("_", " ")


def _read(kind: str, params: Mapping[str, Any]) -> Params:
    if kind not in KINDS:
        raise NotFoundError(f"There is no kind of job {kind!r}", remedy=f"There are {', '.join(KINDS)}.")
    try:
        return KINDS[kind].params.model_validate(dict(params))
    except ValidationError as error:
        raise ParamsError(
            [
                (".".join(map(str, each["loc"])) or "params", in_words(each, PATTERNS))
                for each in error.errors(include_url=False, include_input=False)
            ]
        ) from None


def _places(service: Service, values: Params) -> dict[Reference, str]:
    """Where everything lies that the parameters name."""
    places: dict[Reference, str] = {}
    wrong: list[tuple[str, str]] = []
    for name in type(values).model_fields:
        for field, reference in references(getattr(values, name), name):
            try:
                places[reference] = reference.place(service)
            except ValueError as error:
                wrong.append((field, str(error)))
    wrong += _wrong_models(values)
    if wrong:
        raise ParamsError(wrong)
    return places


def _wrong_models(values: Params) -> list[tuple[str, str]]:
    """Models that cannot be asked by their name alone, found before anything waits in a queue."""
    from uncanny.models.registry import parse_model

    models: dict[str, str | None] = {name: getattr(values, name, None) for name in ("model", "fallback")} | {
        f"roles.{role}": model for role, model in (getattr(values, "roles", None) or {}).items()
    }
    wrong: list[tuple[str, str]] = []
    for field, model in models.items():
        try:
            if model is not None:
                parse_model(model)
        except UncannyError as error:
            wrong.append((field, str(error)))
    return wrong
