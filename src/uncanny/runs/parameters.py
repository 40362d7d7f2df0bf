"""Parameters of functions that ask models, apart from what their protocol asks: models, limits, images.

Each function inherits those it has. Commands show their help from here, so that nothing is imported here that
only a run needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from uncanny.errors import UsageError
from uncanny.models.presets import Processing, Window
from uncanny.parameters import CALLBACK, HERE, PYTHON, Folder, Parameters, Place, Shown, Text
from uncanny.runs.stop import Stop
from uncanny.settings import WEEK_S, settings
from uncanny.wording import option

if TYPE_CHECKING:
    from uncanny.client.calls import CallRecord
    from uncanny.images.encode import PixelPolicy
    from uncanny.models.registry import ModelOptions
    from uncanny.records.run_folder import RunFolder
else:  # commands show their options without them
    CallRecord = Any


Model = Annotated[
    Text,
    Field(description="Model to ask."),
    Shown(short="-m", metavar="PROVIDER/NAME", place="model", first=True),
]


Usd = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Tokens = Annotated[int, Field(ge=1, le=10**15)]
Inputs = Annotated[int, Field(ge=1, le=10**12)]
Calls = Annotated[int, Field(ge=1, le=10_000)]


class SpendLimits(Parameters):
    """What a run may cost; with several models these limits hold for all of them together."""

    heading = "Limits"
    max_cost_usd: Annotated[
        Usd | None, Shown(default="no limit", label="Maximum cost, in US dollars", first=True)
    ] = None
    """Stop before the run costs more, in US dollars."""
    max_tokens_total: Annotated[
        Tokens | None, Shown(default="no limit", label="Maximum number of tokens")
    ] = None
    """Stop before the run uses more tokens."""


class CallLimits(SpendLimits):
    """How many calls at once, and for how long."""

    heading = "Limits"
    concurrency: Calls = Field(default_factory=lambda: settings().concurrency)
    """Maximum number of calls in flight per model."""
    timeout_s: Annotated[
        float, Field(gt=0, le=WEEK_S), Shown(flag="--timeout", label="Timeout of a call, in seconds")
    ] = Field(default_factory=lambda: settings().timeout_s)
    """Timeout of one call, in seconds."""
    patience_s: Annotated[
        float, Field(gt=0, le=WEEK_S), Shown(flag="--patience", label="Patience, in seconds")
    ] = Field(default_factory=lambda: settings().patience_s)
    """Give up on a model after this many seconds without a good answer. If this is below 4
    timeouts, at least 10 calls must have failed, too."""


class CacheParameters(Parameters):
    """Whether and where answers are kept."""

    heading = "Cache and resuming"
    cache: bool = True
    """Store answers, so that a resumed run does not pay for them again."""
    cache_dir: Annotated[Place | None, HERE] = Field(default_factory=lambda: settings().cache_dir)
    """Share answers between runs through this folder."""

    def answers(self, own: Path | None) -> Path | None:
        """Folder of the answer cache, `own` if it is not shared; None if none is kept."""
        if not self.cache:
            return None
        return own if self.cache_dir is None else Path(self.cache_dir)


class ClusterParameters(Parameters):
    """Where the work on inputs is done."""

    heading = "Several machines"
    engine: Annotated[Literal["local", "ray"], HERE] = "local"
    """Work in this process, or in actors of Ray, on one machine or many."""
    ray_address: Annotated[
        Text | None, Shown(on=HERE.on, metavar="ADDRESS", default="a new one on this machine")
    ] = None
    """Address of a Ray cluster, such as auto or ray-head:6379."""
    ray_actors: Annotated[
        int | None, Field(ge=1, le=256), Shown(on=HERE.on, metavar="N", default="one per CPU of the cluster")
    ] = None
    """Number of actors, each a process that asks models."""

    @model_validator(mode="after")
    def _of_one_engine(self) -> Self:
        for name in ClusterParameters.model_fields:
            if self.engine == "local" and name != "engine" and getattr(self, name) is not None:
                raise UsageError(
                    f"{option(name)} works only with {option('engine')} ray",
                    remedy=f"Remove it, or pass {option('engine')} ray, too.",
                )
        return self


class RunOptions(CallLimits, CacheParameters, ClusterParameters):
    """How a run asks models, apart from which: how much at once, when to stop, what to keep and to repeat.

    Limits of cost and tokens hold for the run as a whole, earlier sessions included.
    """

    heading = "Cache and resuming"
    limit: Annotated[Inputs | None, Shown(metavar="N", label="Only the first inputs", first=True)] = None
    """Take only the first N inputs."""
    retry_failed: Annotated[bool, Shown(off="--keep-failed")] = True
    """When resuming, retry failed inputs."""
    batch: Annotated[bool, HERE] = False
    """Ask in batches, at half price: answers take minutes to hours. For models of OpenAI and Anthropic."""
    completion_window: Annotated[Window | None, HERE] = None
    """Ask in the background, for less: answers take up to 2 or 8 hours. For models of OpenAI."""
    keep_missing: bool = False
    """When resuming, keep records whose input is gone, instead of moving them to removed.jsonl."""

    @property
    def processing(self) -> Processing | None:
        """How models are asked that can be asked for less."""
        return "batch" if self.batch else self.completion_window

    def within(self, usd: float | None, tokens: int | None) -> RunOptions:
        """The same options with other limits of cost and tokens."""
        return self.model_copy(update={"max_cost_usd": usd, "max_tokens_total": tokens})


LIMITS = (*SpendLimits.model_fields, "concurrency", "limit")
"""Parameters that say how much of a run is done, and not what is found."""


class ConnectParameters(CallLimits, CacheParameters):
    """How models are asked, how often, and for how much."""

    heading = "Models"
    roles: Annotated[Mapping[str, Text], Shown(flag="--role", metavar="ROLE=MODEL", place="model")] = Field(
        default_factory=dict
    )
    """Use another model for one role."""
    fallback: Annotated[Text | None, Shown(metavar="MODEL", place="model")] = None
    """Ask this model when another is out of budget or quota, or is down."""
    base_url: Annotated[str | Mapping[str, str] | None, Shown(on=HERE.on, metavar="[PROVIDER=]URL")] = None
    """Address of the server of the model's provider, or of each provider by name. Servers of your own
    that share the calls of a model have commas between their addresses."""
    prices: Annotated[Place | None, Shown(label="Own prices")] = None
    """JSON file with prices that replace the built-in ones."""
    prompts: Annotated[Place | None, Shown(metavar="DIR", label="Own prompts")] = None
    """Folder with prompts that replace the built-in ones; see `uncanny prompts`."""
    stop: Annotated[Stop | None, PYTHON] = None
    """Ends the work from outside."""
    on_call: Annotated[Callable[[CallRecord], None] | None, CALLBACK, PYTHON] = None
    """Gets each call as an `uncanny.CallRecord`."""

    def models_of(self, model: str) -> ModelOptions:
        """This model and those of the roles, parsed. Raises UsageError."""
        from uncanny.models.addresses import addresses_of, each_address, parse_address
        from uncanny.models.presets import ALL
        from uncanny.models.registry import WITHOUT_SERVER, ModelOptions, is_provider, parse_model

        main = parse_model(model)
        base_url = self.base_url
        base_urls = {main.provider: base_url} if isinstance(base_url, str) else dict(base_url or {})
        for provider, url in base_urls.items():
            for each in each_address(url):
                parse_address(each)
            if provider in ALL:
                addresses_of(ALL[provider], url)
            if provider in WITHOUT_SERVER or not is_provider(provider):
                what = "has no server" if provider in WITHOUT_SERVER else "is not a provider"
                raise UsageError(
                    f"{option('base_url')} is an address for {provider}, which {what}",
                    remedy="Remove it, or write PROVIDER=URL with the provider that has this address.",
                )
        return ModelOptions(
            main,
            roles={role: parse_model(name) for role, name in self.roles.items()},
            fallback=parse_model(self.fallback) if self.fallback else None,
            base_urls=base_urls,
            prices=settings().prices if self.prices is None else Path(self.prices),
        )

    @property
    def options(self) -> RunOptions:
        """How much at once, and when to stop."""
        return self.part(RunOptions)


class RunParameters(ConnectParameters, RunOptions):
    """How a run asks models, where it is kept, and how it resumes."""

    out: Annotated[Place | None, Shown(on=HERE.on, flag="--run", short="-o")] = None
    """Run folder. The same call resumes the run in it."""
    on_start: Annotated[Callable[[Any], None] | None, CALLBACK, PYTHON] = None
    """Gets the live counters before the first call."""
    on_record: Annotated[Callable[[Any], None] | None, CALLBACK, PYTHON] = None
    """Gets each record when it is on disk."""
    progress: Annotated[bool, PYTHON] = False
    """Show a progress bar on standard error."""

    @property
    def folder(self) -> RunFolder:
        """The run folder; a forecast may do without one."""
        from uncanny.records.run_folder import RunFolder

        return RunFolder(Path("runs/unnamed") if self.out is None else Path(self.out))


class AskParameters(RunParameters):
    """How a run asks one model."""

    model: Model

    @property
    def models(self) -> ModelOptions:
        """The models, parsed. Raises UsageError."""
        return self.models_of(self.model)


class AskEachParameters(RunParameters):
    """How a run of each of several models asks them."""

    models: Annotated[Sequence[Text], Field(min_length=1), Shown(flag="--model", short="-m")]
    """Models to ask, one after the other; each has a run in a folder of its own in `out`."""

    def each_model(self) -> list[ModelOptions]:
        """The models, parsed. Raises UsageError."""
        chosen = [self.models_of(name) for name in self.models]
        providers = sorted({each.model.provider for each in chosen})
        if isinstance(self.base_url, str) and len(providers) > 1:
            raise UsageError(
                f"{option('base_url')} is for one provider, but the models have {', '.join(providers)}",
                remedy="Give a mapping from provider to address.",
            )
        return chosen


class PixelParameters(Parameters):
    """How images are sent."""

    heading = "Images as they are sent"
    max_side: Annotated[int | None, Field(ge=1, le=1_000_000), Shown(default="send as is")] = None
    """Scale larger images down to this many pixels on the longest side."""
    image_format: Literal["keep", "png", "jpeg"] = "keep"
    """Convert images; keep sends a file's own bytes where the model takes them."""
    jpeg_quality: Annotated[int, Field(ge=1, le=100), Shown(label="JPEG quality")] = 95
    """Quality of the JPEGs that are written."""
    max_pixels: Annotated[int, Field(ge=1, le=10**12), Shown(label="Maximum pixels per image")] = 100_000_000
    """Do not open images with more pixels."""

    @property
    def policy(self) -> PixelPolicy:
        from uncanny.images.encode import PixelPolicy

        return PixelPolicy(self.max_side, self.image_format, self.jpeg_quality, self.max_pixels)


class TableParameters(Parameters):
    """What a run over images takes from tables."""

    heading = "Tables"
    image_column: Annotated[Text | None, Shown(metavar="NAME")] = None
    """Column with the pictures in Parquet and Arrow files, if several columns have pictures, or with their
    paths or URLs."""
    columns: Annotated[
        Sequence[str] | None,
        Shown(
            flag="--column",
            metavar="NAME",
            label="Columns to copy",
            default="all with text or numbers",
        ),
    ] = None
    """Copy these columns of a table, or of metadata.csv beside the images, into the records."""


class ImageParameters(AskParameters, PixelParameters, TableParameters):
    """How a run over images asks one model about them."""

    root: Annotated[Folder | None, Shown(on=HERE.on, default="the run folder")] = None
    """Name images in records relative to this folder."""
