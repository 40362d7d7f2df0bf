"""Options that several commands have: numbers in a sensible range, models and runs, annotation, pixels.

Each group is a decorator, the types of what a command is called with, and a function that makes of them what
the runs take. Heavy imports stay inside, so that `--help` needs none."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

import click

from uncanny.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from uncanny.agents.config import AnnotateConfig
    from uncanny.images import PixelPolicy
    from uncanny.models.registry import ModelId
    from uncanny.runs.config import ModelOptions, RunOptions

MOST_SHOWN = 40


class AskKeywords(TypedDict):
    """What commands that ask models are called with, besides the models."""

    roles: tuple[str, ...]
    fallback: str | None
    base_urls: tuple[str, ...]
    concurrency: int | None
    timeout_s: float | None
    patience_s: float | None
    max_cost_usd: float | None
    max_tokens_total: int | None
    limit: int | None
    prices: Path | None
    cache: bool
    cache_dir: Path | None
    retry_failed: bool
    dry_run: bool
    as_json: bool
    quiet: bool


class SampledKeywords(AskKeywords):
    """The same, for a command whose models are sampled with options of their own."""

    temperature: float | None
    top_p: float | None
    max_output_tokens: int


class PixelKeywords(TypedDict):
    """What is done to images before they are sent."""

    max_side: int | None
    image_format: Literal["keep", "png", "jpeg"]
    jpeg_quality: int
    max_pixels: int


class AnnotateKeywords(SampledKeywords, PixelKeywords):
    """What `annotate_options` and `model_options` bring."""

    model: str
    repeats: int
    max_objects: int
    scene_scans: int
    formatter_output_tokens: int


class DetectKeywords(SampledKeywords, PixelKeywords):
    """What `uncanny detect` has besides its own options."""


class Whole(click.ParamType[int]):
    """A whole number from `least` to `most`, both included."""

    name = "integer"

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            raise _wrong(param, value, "is no whole number") from None
        if not self.least <= number <= self.most:
            raise _wrong(param, value, f"is not from {self.least:,} to {self.most:,}")
        return number


class Real(click.ParamType[float]):
    """A finite number up to `most`, from `least`, or above it with `above`."""

    name = "float"

    def __init__(self, least: float, most: float, *, above: bool = False) -> None:
        self.least, self.most, self.above = least, most, above

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(value)
        except ValueError:
            raise _wrong(param, value, "is no number") from None
        low = number > self.least if self.above else number >= self.least
        if not (low and number <= self.most) or math.isnan(number):
            start = "above" if self.above else "from"
            raise _wrong(param, value, f"is not {start} {self.least:g} to {self.most:,.0f}")
        return number


def _wrong(param: click.Parameter | None, value: object, why: str) -> UsageError:
    name = "A number" if param is None else param.opts[0]
    text = str(value)
    return UsageError(f"{name} {text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + '…'} {why}")


OUTPUT_TOKENS = Whole(1, 1_000_000)
TEMPERATURE = Real(0, 2)
TOP_P = Real(0, 1, above=True)
SECONDS = Real(0, 7 * 24 * 3600.0, above=True)
RESAMPLES = Whole(0, 1_000_000)
SEED = Whole(0, 2**63 - 1)


F = TypeVar("F", bound=Callable[..., Any])

_MODEL = click.option("--model", "-m", required=True, metavar="PROVIDER/NAME", help="The model to ask.")
_MODELS = click.option(
    "--model",
    "-m",
    "models",
    multiple=True,
    required=True,
    metavar="PROVIDER/NAME",
    help="The model to ask. Repeatable: a run of each, in folders of their own in RUN.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
_OPTIONS = [
    click.option(
        "--role", "roles", multiple=True, metavar="ROLE=MODEL", help="Another model for one role; repeatable."
    ),
    click.option(
        "--fallback", metavar="MODEL", help="Takes over when a model is out of budget or quota, or is down."
    ),
    click.option(
        "--base-url",
        "base_urls",
        multiple=True,
        metavar="[PROVIDER=]URL",
        help="Server of the main model's provider, or of the one named; repeatable.",
    ),
    click.option(
        "--concurrency", type=Whole(1, 10_000), help="Most calls in flight at each model. [default: 32]"
    ),
    click.option("--timeout", "timeout_s", type=SECONDS, help="Seconds for one call. [default: 120]"),
    click.option(
        "--patience",
        "patience_s",
        type=SECONDS,
        help="Seconds without one good answer before a failing model is given up. [default: 120]",
    ),
    click.option(
        "--max-cost-usd",
        type=Real(0, 1e9, above=True),
        help="Stop before the run costs more. [default: no limit]",
    ),
    click.option(
        "--max-tokens-total", type=Whole(1, 10**15), help="Stop before it uses more. [default: no limit]"
    ),
    click.option("--limit", type=Whole(1, 10**12), metavar="N", help="Only the first N inputs."),
    click.option(
        "--prices",
        type=click.Path(path_type=Path),
        help="JSON file with prices that replace the built-in ones.",
    ),
    click.option("--cache/--no-cache", default=True, help="Keep finished answers. [default: cache]"),
    click.option(
        "--cache-dir",
        type=click.Path(path_type=Path),
        help="Share answers between runs. [default: in the run folder]",
    ),
    click.option(
        "--retry-failed/--keep-failed",
        default=True,
        help="On resuming, ask again for what failed. [default: retry-failed]",
    ),
    click.option("--dry-run", is_flag=True, help="Count calls, estimate tokens and cost; ask nothing."),
    click.option("--quiet", "-q", is_flag=True, help="No progress, no summary."),
]


def model_options(command: F) -> F:
    """Decorate a command with all of them."""
    return _decorated(command, [_MODEL, *_OPTIONS[:-1], _JSON, _OPTIONS[-1]])


def several_models_options(command: F) -> F:
    """The same for a command that asks any number of models, one after the other."""
    return _decorated(command, [_MODELS, *_OPTIONS[:-1], _JSON, _OPTIONS[-1]])


def options_where_asked(command: F, when: str) -> F:
    """The same for a command that asks a model only at times, and whose `--json` is another one."""
    model = click.option("--model", "-m", metavar="PROVIDER/NAME", help=f"The model to ask, {when}.")
    return _decorated(command, [model, *_OPTIONS])


def _decorated(command: F, options: Sequence[Callable[[F], F]]) -> F:
    for option in reversed(options):
        command = option(command)
    return command


def read_models(
    *,
    model: str,
    roles: tuple[str, ...],
    fallback: str | None,
    base_urls: tuple[str, ...],
    timeout_s: float | None,
    patience_s: float | None,
    prices: Path | None,
    **_: object,
) -> ModelOptions:
    """`ModelOptions` from the command line. Raises UsageError."""
    from uncanny.models.addresses import parse_address
    from uncanny.models.registry import is_provider, parse_model
    from uncanny.runs.config import ModelOptions
    from uncanny.settings import settings

    def one(name: str) -> ModelId:
        parts = [part.strip() for part in name.split(",")]
        if len(parts) > 1 and all(is_provider(part.partition("/")[0]) for part in parts):
            asked = " ".join(f"-m {part}" for part in parts)
            raise UsageError(
                f"{name!r} is {len(parts)} models and not the name of one",
                remedy=f"Where a command asks several, write {asked}.",
            )
        return parse_model(name)

    main = one(model)
    urls: dict[str, str] = {}
    for each in base_urls:
        provider, equals, url = each.partition("=")
        if not (equals and is_provider(provider)):
            provider, url = main.provider, each
        parse_address(url)
        if urls.setdefault(provider, url) != url:
            raise UsageError(f"--base-url gives {provider} two addresses", remedy="Leave one of them out.")
    named: dict[str, ModelId] = {}
    for each in roles:
        role, equals, name = each.partition("=")
        if not equals:
            raise UsageError(f"--role {each!r} names no model", remedy="Write --role ROLE=PROVIDER/NAME.")
        if named.setdefault(role, one(name)) != one(name):
            raise UsageError(f"--role gives {role} two models", remedy="Leave one of them out.")
    timeout_s = settings().timeout_s if timeout_s is None else timeout_s
    patience_s = settings().patience_s if patience_s is None else patience_s
    return ModelOptions(
        main,
        roles=named,
        fallback=one(fallback) if fallback else None,
        base_urls=urls,
        timeout_s=timeout_s,
        patience_s=patience_s,
        prices=prices or settings().prices,
    )


def read_run_options(
    *,
    concurrency: int | None,
    max_cost_usd: float | None,
    max_tokens_total: int | None,
    limit: int | None,
    retry_failed: bool,
    cache: bool,
    cache_dir: Path | None,
    **_: object,
) -> RunOptions:
    """`RunOptions` from the command line."""
    from uncanny.runs.config import RunOptions
    from uncanny.settings import settings

    concurrency = settings().concurrency if concurrency is None else concurrency
    answers = cache_dir or settings().cache_dir
    return RunOptions(concurrency, max_cost_usd, max_tokens_total, limit, retry_failed, cache, answers)


PLAN = (
    *("repeats", "max_objects", "scene_scans", "temperature", "top_p"),
    *("max_output_tokens", "formatter_output_tokens"),
)
_PIXELS = [
    click.option(
        "--max-side",
        type=Whole(1, 1_000_000),
        help="Scale larger images down to this many pixels. [default: send as is]",
    ),
    click.option(
        "--image-format",
        type=click.Choice(["keep", "png", "jpeg"]),
        default="keep",
        show_default=True,
        help="Convert images; keep sends a file's own bytes where the model takes them.",
    ),
    click.option(
        "--jpeg-quality",
        type=Whole(1, 100),
        default=95,
        show_default=True,
        help="Where a JPEG has to be written.",
    ),
    click.option(
        "--max-pixels",
        type=Whole(1, 10**12),
        default=100_000_000,
        show_default=True,
        help="Larger images are not opened.",
    ),
]
_ANNOTATE_OPTIONS = [
    click.option(
        "--repeats", type=Whole(1, 100), default=3, show_default=True, help="Drafts of the object list."
    ),
    click.option(
        "--max-objects",
        type=Whole(1, 1_000),
        default=12,
        show_default=True,
        help="Most objects examined in an image.",
    ),
    click.option(
        "--scene-scans",
        type=Whole(0, 100),
        default=0,
        show_default=True,
        help="Extra looks at the image as a whole.",
    ),
    click.option(
        "--temperature",
        type=TEMPERATURE,
        default=0.3,
        show_default=True,
        help="Sent where the model takes one.",
    ),
    click.option(
        "--top-p", type=TOP_P, default=0.95, show_default=True, help="Sent where the model takes one."
    ),
    click.option(
        "--max-output-tokens",
        type=OUTPUT_TOKENS,
        default=2000,
        show_default=True,
        help="Doubled when an answer is cut off.",
    ),
    click.option(
        "--formatter-output-tokens",
        type=OUTPUT_TOKENS,
        default=5000,
        show_default=True,
        help="The same for the last step.",
    ),
    *_PIXELS,
]


def annotate_options(command: F) -> F:
    """Decorate a command with all of them."""
    return _with(_ANNOTATE_OPTIONS, command)


def pixel_options(command: F) -> F:
    """Decorate a command with those about what is done to images before they are sent."""
    return _with(_PIXELS, command)


def _with(options: Sequence[Callable[[F], F]], command: F) -> F:
    for option in reversed(options):
        command = option(command)
    return command


def read_config(**options: Any) -> AnnotateConfig:
    """`AnnotateConfig` from the command line. Raises UsageError."""
    from uncanny.agents.config import AnnotateConfig

    return checked(AnnotateConfig, {name: options[name] for name in PLAN})


def read_policy(
    *,
    max_side: int | None,
    image_format: Literal["keep", "png", "jpeg"],
    jpeg_quality: int,
    max_pixels: int,
    **_: object,
) -> PixelPolicy:
    """`PixelPolicy` from the command line. Raises UsageError."""
    from uncanny.images import PixelPolicy

    return PixelPolicy(
        max_side=max_side, format=image_format, jpeg_quality=jpeg_quality, max_pixels=max_pixels
    )


T = TypeVar("T", bound="BaseModel")


def checked(model: type[T], values: dict[str, Any]) -> T:
    """Build `model`. Raises UsageError that names the option."""
    from pydantic import ValidationError

    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors()[0]
        option = "--" + str(first["loc"][0]).replace("_", "-")
        raise UsageError(f"{option} {first['input']!r}: {first['msg']}") from error
