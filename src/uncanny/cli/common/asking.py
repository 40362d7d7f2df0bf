"""Options of commands that ask models, what such a command is called with, and how public functions take it.

What click makes of the options is a `TypedDict` of keywords, and a function turns those into the keyword
options of the public functions. Heavy imports stay inside: `--help` reads this module.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

import click
from click.core import ParameterSource

from uncanny.cli.common.options import (
    OUTPUT_TOKENS,
    PATH,
    SECONDS,
    F,
    Real,
    Whole,
    json_option,
    quiet_option,
    together,
)
from uncanny.cli.common.places import Place, complete_model
from uncanny.errors import UsageError

if TYPE_CHECKING:
    from uncanny.agents.config import Strictness
    from uncanny.agents.steps import ScheduleName
    from uncanny.annotation.run import AnnotateOptions
    from uncanny.answers.boxes import BoxFormatName
    from uncanny.runs.config import AskOptions
    from uncanny.runs.image_options import ImageOptions

# As in `agents.steps` and `answers.boxes`, which take long to import.
SCHEDULE_NAMES = ("packed", "paper", "single")
BOX_FORMAT_NAMES = ("xyxy-1000", "yxyx-1000", "xyxy-999", "xyxy-1", "pixels")


def sampling_options(*, temperature: float, top_p: float | None, max_output_tokens: int) -> Callable[[F], F]:
    """How models are sampled, with the defaults of a protocol; `top_p` None leaves the model its own."""
    own = " [default: the model's own]" if top_p is None else ""
    return together(
        click.option(
            "--temperature",
            type=Real(0, 2),
            default=temperature,
            show_default=True,
            help="Sent where the model takes one.",
        ),
        click.option(
            "--top-p",
            type=Real(0, 1, above=True),
            default=top_p,
            show_default=top_p is not None,
            help=f"Sent where the model takes one.{own}",
        ),
        click.option(
            "--max-output-tokens",
            type=OUTPUT_TOKENS,
            default=max_output_tokens,
            show_default=True,
            help="Doubled when an answer is cut off.",
        ),
    )


_MODEL = click.option(
    "--model",
    "-m",
    required=True,
    shell_complete=complete_model,
    metavar="PROVIDER/NAME",
    help="The model to ask.",
)
_MODELS = click.option(
    "--model",
    "-m",
    "models",
    multiple=True,
    required=True,
    shell_complete=complete_model,
    metavar="PROVIDER/NAME",
    help="The model to ask. Repeatable: a run of each, in folders of their own in RUN.",
)
_ASKING = together(
    click.option(
        "--role",
        "roles",
        multiple=True,
        shell_complete=complete_model,
        metavar="ROLE=MODEL",
        help="Another model for one role; repeatable.",
    ),
    click.option(
        "--fallback",
        shell_complete=complete_model,
        metavar="MODEL",
        help="Takes over when a model is out of budget or quota, or is down.",
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
        help="Seconds without one good answer before a model is given up, and at least 10 failed calls "
        "unless that is 4 times --timeout or more. [default: 120]",
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
        type=PATH,
        help="JSON file with prices that replace the built-in ones.",
    ),
    click.option(
        "--prompts",
        type=PATH,
        metavar="DIR",
        help="Folder of texts to ask with in place of uncanny's; see `uncanny prompts`.",
    ),
    click.option("--cache/--no-cache", default=True, help="Keep finished answers. [default: cache]"),
    click.option(
        "--cache-dir",
        type=PATH,
        help="Share answers between runs. [default: in the run folder]",
    ),
    click.option(
        "--retry-failed/--keep-failed",
        default=True,
        help="On resuming, ask again for what failed. [default: retry-failed]",
    ),
    click.option(
        "--keep-missing",
        is_flag=True,
        help="On resuming, keep records whose image, pair or item is no longer in the input. "
        "[default: move them to removed.jsonl]",
    ),
    click.option("--dry-run", is_flag=True, help="Count calls, estimate tokens and cost; ask nothing."),
)

model_options = together(_MODEL, _ASKING, json_option, quiet_option)
models_options = together(_MODELS, _ASKING, json_option, quiet_option)


# Of the model that BERTScore compares texts with.
backbone_options = together(
    click.option(
        "--backbone",
        type=Place(free=True),
        help="Name or folder of BERTScore's model. [default: distilbert-base-uncased]",
    ),
    click.option(
        "--num-layers", type=Whole(1, 1_000), help="Layer of the backbone. [default: the usual one]"
    ),
    click.option("--device", help="cpu, cuda, cuda:1, mps. [default: the fastest there is]"),
    click.option("--batch-tokens", type=Whole(1, 10**9), help="Tokens a forward pass. [default: by device]"),
)


def options_where_asked(when: str) -> Callable[[F], F]:
    """The same for a command that asks a model only at times, and whose `--json` is another one."""
    model = click.option(
        "--model",
        "-m",
        shell_complete=complete_model,
        metavar="PROVIDER/NAME",
        help=f"The model to ask, {when}.",
    )
    return together(model, _ASKING, quiet_option)


records_format_option = click.option(
    "--format",
    type=click.Choice(["jsonl", "parquet"]),
    default="jsonl",
    show_default=True,
    help="With parquet the records are also a table, RUN/annotations.parquet, when the run ends.",
)
pixel_options = together(
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
    click.option(
        "--image-column",
        metavar="NAME",
        help="Where Parquet and Arrow files have their pictures, if in several columns.",
    ),
    click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="NAME",
        help="Column of a table, or of metadata.csv beside the images, to copy into the records; repeatable. "
        "[default: all columns of text and numbers]",
    ),
)
box_format_option = click.option(
    "--box-format",
    type=click.Choice(BOX_FORMAT_NAMES),
    default=None,
    help="How models are asked for boxes.  [default: as each was trained, by its name]",
)
annotate_options = together(
    click.option(
        "--schedule",
        type=click.Choice(SCHEDULE_NAMES),
        default=None,
        help="How agents are asked: several objects a call (packed), one at a time as published (paper), or "
        "one call for all (single).  [default: packed, or that of the run]",
    ),
    click.option(
        "--repeats",
        type=Whole(1, 100),
        default=None,
        help="Drafts of the object list.  [default: 1, paper 3]",
    ),
    click.option(
        "--max-objects",
        type=Whole(1, 1_000),
        default=None,
        help="Most objects examined in an image.  [default: 12]",
    ),
    click.option(
        "--scene-scans",
        type=Whole(0, 100),
        default=None,
        help="Looks at the image as a whole.  [default: 1, paper 0]",
    ),
    click.option(
        "--batch-objects",
        type=Whole(1, 100),
        default=None,
        help="Most objects in a call of packed.  [default: 6]",
    ),
    click.option(
        "--strictness",
        type=click.Choice(["open", "strict"]),
        default="open",
        show_default=True,
        help="Report what is odd and unlikely too (open), or impossibilities only (strict).",
    ),
    click.option(
        "--language", default="English", show_default=True, help="Language of the answers, by its name."
    ),
    box_format_option,
    sampling_options(temperature=0.3, top_p=0.95, max_output_tokens=2000),
    click.option(
        "--formatter-output-tokens",
        type=OUTPUT_TOKENS,
        default=None,
        help="The same for the last step.  [default: 5000]",
    ),
    pixel_options,
)


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
    prompts: Path | None
    cache: bool
    cache_dir: Path | None
    retry_failed: bool
    keep_missing: bool
    dry_run: bool
    quiet: bool


class SampledKeywords(AskKeywords):
    """The same, for a command with `sampling_options`."""

    temperature: float | None
    top_p: float | None
    max_output_tokens: int


class ImageKeywords(SampledKeywords):
    """The same, for a command with `pixel_options` besides."""

    max_side: int | None
    image_format: Literal["keep", "png", "jpeg"]
    jpeg_quality: int
    max_pixels: int
    image_column: str | None
    columns: tuple[str, ...]


class AnnotateKeywords(ImageKeywords):
    """The same, for a command with `annotate_options`."""

    schedule: ScheduleName | None
    repeats: int | None
    max_objects: int | None
    scene_scans: int | None
    batch_objects: int | None
    strictness: Strictness
    language: str
    box_format: BoxFormatName | None
    formatter_output_tokens: int | None


def read_ask_options(options: AskKeywords, models: Sequence[str]) -> AskOptions:
    """As the functions that ask `models` take them. Raises UsageError."""
    fallback = options["fallback"]
    for name in (*models, *([fallback] if fallback else [])):
        _check_one_model(name)
    return {
        "roles": role_models(options["roles"]),
        "fallback": fallback,
        "base_url": _base_urls(options["base_urls"], models),
        "concurrency": options["concurrency"],
        "timeout_s": options["timeout_s"],
        "patience_s": options["patience_s"],
        "max_cost_usd": options["max_cost_usd"],
        "max_tokens_total": options["max_tokens_total"],
        "limit": options["limit"],
        "prices": options["prices"],
        "prompts": options["prompts"],
        "cache": options["cache"],
        "cache_dir": options["cache_dir"],
        "retry_failed": options["retry_failed"],
        "keep_missing": options["keep_missing"],
        "progress": not options["quiet"],
    }


def read_image_options(options: ImageKeywords, models: Sequence[str]) -> ImageOptions:
    """As the functions that show images to `models` take them. Raises UsageError."""
    return {
        **read_ask_options(options, models),
        "temperature": options["temperature"],
        "top_p": options["top_p"],
        "max_output_tokens": options["max_output_tokens"],
        "max_side": options["max_side"],
        "image_format": options["image_format"],
        "jpeg_quality": options["jpeg_quality"],
        "max_pixels": options["max_pixels"],
        "image_column": options["image_column"],
        "columns": options["columns"] or None,
    }


def read_annotate_options(options: AnnotateKeywords, model: str) -> AnnotateOptions:
    """As `uncanny.annotate` takes them. Raises UsageError."""
    return {
        **read_image_options(options, [model]),
        "schedule": options["schedule"],
        "repeats": options["repeats"],
        "max_objects": options["max_objects"],
        "scene_scans": options["scene_scans"],
        "batch_objects": options["batch_objects"],
        "strictness": options["strictness"],
        "language": options["language"],
        "box_format": options["box_format"],
        "formatter_output_tokens": options["formatter_output_tokens"],
    }


def _check_one_model(name: str) -> None:
    from uncanny.models.registry import is_provider

    parts = [part.strip() for part in name.split(",")]
    if len(parts) > 1 and all(is_provider(part.partition("/")[0]) for part in parts):
        separately = " ".join(f"-m {part}" for part in parts)
        raise UsageError(
            f"{name!r} is {len(parts)} models and not the name of one",
            remedy=f"Where a command asks several, write {separately}.",
        )


def role_models(roles: Sequence[str]) -> dict[str, str]:
    """From ROLE=PROVIDER/NAME, by role. Raises UsageError."""
    models: dict[str, str] = {}
    for each in roles:
        role, equals, model = each.partition("=")
        if not equals:
            raise UsageError(f"--role {each!r} names no model", remedy="Write --role ROLE=PROVIDER/NAME.")
        _check_one_model(model)
        if models.setdefault(role, model) != model:
            raise UsageError(f"--role gives {role} two models", remedy="Leave one of them out.")
    return models


def _base_urls(base_urls: Sequence[str], models: Sequence[str]) -> dict[str, str]:
    """Servers by provider; an address without one is that of the only provider of `models`."""
    from uncanny.cli.common.config import address_variable
    from uncanny.models.addresses import parse_address
    from uncanny.models.registry import is_provider, parse_model

    providers = sorted({parse_model(model).provider for model in models})
    ctx = click.get_current_context(silent=True)
    from_file = ctx is not None and ctx.get_parameter_source("base_urls") is ParameterSource.DEFAULT_MAP
    urls: dict[str, str] = {}
    for each in base_urls:
        provider, equals, url = each.partition("=")
        if not (equals and is_provider(provider)):
            if len(providers) > 1:
                raise UsageError(
                    f"A --base-url is for one provider, and {', '.join(providers)} are asked",
                    remedy="Write --base-url PROVIDER=URL.",
                )
            provider, url = providers[0], each
        if from_file and os.environ.get(address_variable(provider), "").strip():
            continue  # the environment goes before a file
        parse_address(url)
        if urls.setdefault(provider, url) != url:
            raise UsageError(f"--base-url gives {provider} two addresses", remedy="Leave one of them out.")
    return urls
