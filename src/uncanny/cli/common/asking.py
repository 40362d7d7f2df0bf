"""Commands that ask models: their options, what functions behind them get, and the command of a protocol."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from uncanny.cli.common.command import Command
from uncanny.cli.common.files import check_run_folder
from uncanny.cli.common.options import PATH, F, force_option, json_option, quiet_option, together
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.places import Place, complete_model
from uncanny.demo.sets import BUNDLED, SCENES
from uncanny.detectors.parameters import DetectorParameters
from uncanny.errors import UsageError
from uncanny.models.registry import DETECTOR
from uncanny.protocol import Protocol, named

if TYPE_CHECKING:
    from uncanny.parameters import Parameters

_MODELS = partial(
    click.option,
    "--model",
    "-m",
    "models",
    multiple=True,
    shell_complete=complete_model,
    metavar="PROVIDER/NAME",
    help="Model to ask; repeatable. Each model gets its own run folder in RUN.",
)
_DETECTORS = click.option(
    "--detector",
    "detectors",
    multiple=True,
    type=PATH,
    metavar="DIR",
    help="Folder of a detector to ask in place of a model; repeatable.",
)
_DRY_RUN = click.option(
    "--dry-run", is_flag=True, help="Count calls and estimate tokens and cost, without calling a model."
)


def asking_options(
    kind: type[Parameters], *, without: Collection[str] = (), several: bool = True, summary: bool = True
) -> Callable[[F], F]:
    """Options for the parameters of a function that asks models; `several` lets `--model` be repeated.

    `summary` adds `--json`, which prints the summary of a run.
    """
    own = parameter_options(kind, without={*without, "model"} if several else without)
    first = [_MODELS(required=True)] if several else []
    if issubclass(kind, DetectorParameters):
        first = [_MODELS(), _DETECTORS]
    return together(*first, own, _DRY_RUN, *([json_option] if summary else []), quiet_option)


def models_of(values: Mapping[str, Any]) -> list[str]:
    """The models that were named, and the detectors in their place. Raises UsageError without any."""
    names = [*values["models"], *(f"{DETECTOR}/{folder}" for folder in values.get("detectors", ()))]
    if not names:
        raise UsageError("No model is given", remedy="Pass -m PROVIDER/NAME, or --detector DIR.")
    return names


def asked(kind: type[Parameters], values: Mapping[str, Any], models: Sequence[str]) -> dict[str, Any]:
    """Keyword arguments of a function that asks `models`, from what click has parsed. Raises UsageError."""
    given = given_parameters(kind, values)
    for name in (*models, *filter(None, [given.get("fallback")])):
        _check_one_model(name)
    if "roles" in given:
        given["roles"] = role_models(given["roles"])
    if "base_url" in given:
        given["base_url"] = _base_urls(given["base_url"], models)
    return given | {"progress": not values["quiet"]}


def _check_one_model(name: str) -> None:
    from uncanny.models.registry import is_provider

    parts = [part.strip() for part in name.split(",")]
    if len(parts) > 1 and all(is_provider(part.partition("/")[0]) for part in parts):
        separately = " ".join(f"-m {part}" for part in parts)
        raise UsageError(
            f"{name!r} is {len(parts)} models, not one",
            remedy=f"If the command takes several models, write {separately}.",
        )


def role_models(roles: Sequence[str]) -> dict[str, str]:
    """From ROLE=PROVIDER/NAME, by role. Raises UsageError."""
    models: dict[str, str] = {}
    for each in roles:
        role, equals, model = each.partition("=")
        if not equals:
            raise UsageError(
                f"--role {each!r} does not name a model", remedy="Write --role ROLE=PROVIDER/NAME."
            )
        _check_one_model(model)
        if models.setdefault(role, model) != model:
            raise UsageError(f"--role gives {role} two models", remedy="Remove one of them.")
    return models


def _base_urls(base_urls: Sequence[str], models: Sequence[str]) -> dict[str, str]:
    """Servers by provider; an address without one is that of the only provider of `models`."""
    from uncanny.cli.common.config import address_variable
    from uncanny.models.addresses import each_address, parse_address
    from uncanny.models.registry import is_provider, parse_model

    providers = sorted({parse_model(model).provider for model in models})
    ctx = click.get_current_context(silent=True)
    from_file = ctx is not None and ctx.get_parameter_source("base_url") is ParameterSource.DEFAULT_MAP
    urls: dict[str, str] = {}
    for each in base_urls:
        provider, equals, url = each.partition("=")
        if not (equals and is_provider(provider)):
            if len(providers) > 1:
                raise UsageError(
                    f"--base-url needs a provider, because the models are from {', '.join(providers)}",
                    remedy="Write --base-url PROVIDER=URL.",
                )
            provider, url = providers[0], each
        if from_file and os.environ.get(address_variable(provider), "").strip():
            continue  # the environment goes before a file
        for one in each_address(url):
            parse_address(one)
        urls[provider] = f"{urls[provider]},{url}" if provider in urls else url
    return urls


_HELP = """{summary}

Results go to RUN/{records} as they come; the same command resumes the run. With several models each has a run
in a folder of its own in RUN. Exit code, of several models the worst: 0 all done, 1 some failed, 2 usage
error,
3 budget spent, 130 interrupted."""


def run_command(protocol: Protocol) -> click.Command:
    """Asks models, or forecasts it, and says in the end how far the run is."""
    given = protocol.input
    several = given.kind == "images"
    kind: click.ParamType[Any] = (
        PATH
        if several
        else Place(*(() if not given.bundled else (SCENES,) if given.kind == "items" else BUNDLED))
    )

    @click.command(
        protocol.command[-1],
        cls=Command,
        job=protocol.name,
        help=_HELP.format(summary=protocol.summary, records=protocol.records),
    )
    @click.argument(given.name, nargs=-1 if several else 1, required=True, type=kind)
    @asking_options(protocol.parameters)
    @parameter_options(protocol.more)
    @force_option
    def command(force: bool, **values: Any) -> None:
        from uncanny.cli.common.several import Asking, Scores, ask_models
        from uncanny.cli.common.summary import Summary

        inputs = values[given.name]
        check = partial(check_run_folder, inputs=[] if several else [Path(inputs)], report=False, force=force)
        forecast = named(protocol.forecast) if protocol.forecast else None
        run = named(protocol.run)
        asking = Asking(
            protocol.parameters, inputs, run, forecast, check, Summary, lambda _: Scores((), None)
        )
        raise click.exceptions.Exit(ask_models(asking, values))

    return command
