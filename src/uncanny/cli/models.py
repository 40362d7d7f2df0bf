"""Options about models and runs, the same in every command that asks models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from uncanny.cli.numbers import SECONDS, Real, Whole
from uncanny.errors import UsageError

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
) -> Any:
    """`ModelOptions` from the command line. Raises UsageError."""
    from uncanny.models.addresses import parse_address
    from uncanny.models.registry import PROVIDERS, ModelId, parse_model
    from uncanny.runs.config import ModelOptions
    from uncanny.settings import settings

    def one(name: str) -> ModelId:
        parts = [part.strip() for part in name.split(",")]
        if len(parts) > 1 and all(part.partition("/")[0] in PROVIDERS for part in parts):
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
        if not (equals and provider in PROVIDERS):
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
) -> Any:
    """`RunOptions` from the command line."""
    from uncanny.runs.config import RunOptions
    from uncanny.settings import settings

    concurrency = settings().concurrency if concurrency is None else concurrency
    answers = cache_dir or settings().cache_dir
    return RunOptions(concurrency, max_cost_usd, max_tokens_total, limit, retry_failed, cache, answers)
