"""`uncanny providers`: what can stand before a model's slash, where it is, and whether its key is set.

With `--probe`, what a model sees of a picture.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from uncanny.cli.common.command import Command
from uncanny.cli.common.places import complete_model
from uncanny.cli.common.terminal import complain, say, say_json
from uncanny.errors import UsageError
from uncanny.wording import layout

if TYPE_CHECKING:
    from uncanny.models.custom import ProviderEntryPoint
    from uncanny.models.presets import Preset
    from uncanny.models.views.probe import Probe


@click.command("providers", cls=Command, config=False)
@click.argument("name", required=False, metavar="[PROVIDER]", shell_complete=complete_model)
@click.option(
    "--probe",
    "model",
    metavar="PROVIDER/NAME",
    shell_complete=complete_model,
    help="Measure what this model sees of a picture, with 8 calls that cost money where the model does.",
)
@click.option("--base-url", metavar="URL", help="Address of the server of --probe.")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def command(name: str | None, model: str | None, base_url: str | None, as_json: bool) -> None:
    """List all providers with their key variable, whether it is set, known prices, and address.

    Providers of installed packages are listed last. With PROVIDER, show everything known about one: what it
    accepts, how it refuses, and what is not verified. Keys are never shown, and no server is called unless
    you pass --probe.

    --probe sends one question without a picture and then with blank squares of 256 to 3,072 pixels, and reads
    the input tokens that the server reports. Where they stop growing, the server shrinks larger pictures.
    These are real calls: 8 of up to a few thousand input tokens each, and at most 512 output tokens.

    \b
    A model of a service, with nothing but its key:
      export GEMINI_API_KEY=…
      uncanny annotate photos/ --model gemini/gemini-2.5-pro -o runs/a

    \b
    What a model sees of a picture:
      uncanny providers --probe openai/gpt-4o
    """
    if model is not None:
        if name is not None:
            raise UsageError(f"--probe does not take the provider {name!r}", remedy=f"Leave out {name}.")
        _probe(model, base_url, as_json)
        return
    if base_url is not None:
        raise UsageError("--base-url is only for --probe", remedy="Pass --probe PROVIDER/NAME.")
    from uncanny.models.custom import installed_providers
    from uncanny.models.presets import ALL
    from uncanny.models.registry import PROVIDERS

    presets, installed = list(ALL.values()), list(installed_providers())
    if name is not None:
        name = name.rstrip("/")
        presets = [ALL[name]] if name in ALL else []
        known = dict.fromkeys((*ALL, *(each.provider for each in installed)))
        # A package cannot put a provider in place of uncanny's own.
        installed = [each for each in installed if each.provider == name and name not in PROVIDERS]
        if not presets and not installed:
            raise UsageError(f"There is no provider {name!r}", remedy=f"Pass one of {', '.join(known)}.")
    if as_json:
        facts = [*map(_facts, presets), *(asdict(each) for each in installed)]
        say_json(facts if name is None else facts[0])
    elif name is not None and presets:
        say(layout(_details(presets[0])))
    else:
        listed = _list(presets) if presets else []
        say(layout([*listed, *(line for each in installed for line in _of_package(each, installed))]))


def _probe(model: str, base_url: str | None, as_json: bool) -> None:
    import asyncio

    from uncanny.models.registry import WITHOUT_NAME, Access, open_model, parse_model
    from uncanny.models.views.probe import probe

    model_id = parse_model(model)
    if model_id.provider in WITHOUT_NAME:
        raise UsageError(
            f"{model_id} cannot be probed: it has no server that shows it pictures",
            remedy="Probe a model of a server, such as openai/gpt-4o.",
        )
    provider = open_model(model_id, Access(base_url=base_url))

    async def measure() -> Probe:
        try:
            return await probe(provider)
        finally:
            await provider.close()

    measured = asyncio.run(measure())
    for notice in provider.notices:
        complain(notice)
    if as_json:
        say_json(measured.json())
        return
    say(
        layout(
            [
                f"{'pixels':<16}{'tokens':>8}{'by the table':>15}",
                *(
                    f"{f'{each.side:,} × {each.side:,}':<16}{_count(each.tokens, 'rejected'):>8}"
                    f"{_count(each.table, 'unknown'):>15}"
                    for each in measured.squares
                ),
                "",
                *measured.sentences(),
                _advice(measured),
            ]
        )
    )


def _advice(measured: Probe) -> str:
    """Whether the built-in table can be relied on, and what to pass otherwise."""
    if measured.agrees:
        return "The built-in table agrees: you do not need --view."
    wrong = "does not know what this model sees" if measured.agrees is None else "is wrong for this model"
    if measured.view is None:
        return f"The built-in table {wrong}. If you know the long side that it sees, pass it as --view."
    return f"The built-in table {wrong}: pass --view {measured.view}."


def _count(tokens: int | None, none: str) -> str:
    return none if tokens is None else f"{tokens:,}"


def _of_package(provider: ProviderEntryPoint, others: Sequence[ProviderEntryPoint]) -> list[str]:
    """Two lines: the package that offers it, and why it cannot be used where that is so."""
    from uncanny.models.registry import PROVIDERS

    if provider.provider in PROVIDERS:
        use = "not used: uncanny has a provider of this name"
    elif any(each != provider and each.provider == provider.provider for each in others):
        use = "cannot be used: several packages have this name"
    else:
        use = "not imported yet; the package says which key it needs"
    head = f"{provider.provider + '/':<20}{provider.package}, {provider.factory}"
    return [head, f"{'':<20}{use}"]


def _list(presets: list[Preset]) -> list[str]:
    """Two lines each: key and prices, address and pictures."""
    from uncanny.models.registry import WITHOUT_SERVER

    lines = []
    for each in presets:
        prices = "prices known" if each.prices else "prices not known"
        lines.append(f"{each.name + '/':<20}{_key_words(each)}; {prices}")
        lines.append(f"{'':<20}{_address(each)[0]} ({_pictures(each, briefly=True)})")
    dates = sorted({each.as_of for each in presets})
    return [
        *lines,
        f"In this process, without server and key: {', '.join(sorted(WITHOUT_SERVER - {'noop'}))}.",
        f"As of {' to '.join(dates)}. `uncanny providers PROVIDER` tells more about one. Prices that are not",
        "known are given with --prices.",
    ]


def _pictures(preset: Preset, *, briefly: bool = False) -> str:
    """Formats and limits, in a few words; `briefly` without those of a whole request."""
    takes, variant = preset.takes, preset.variant
    formats = [
        kind.removeprefix("image/").upper().replace("WEBP", "WebP") for kind in sorted(takes.media_types)
    ]
    limits = [f"{takes.max_image_bytes / 1e6:.3g} MB" if takes.max_image_bytes else ""]
    if not briefly:
        limits += [
            f"{takes.max_image_side:,} px" if takes.max_image_side else "",
            f"{variant.max_images} images a request" if variant.max_images else "",
            f"{variant.max_request_bytes / 1e6:.3g} MB a request" if variant.max_request_bytes else "",
        ]
    return "; ".join(filter(None, (" ".join(formats), *limits)))


def _details(preset: Preset) -> list[str]:
    facts = _facts(preset)
    takes = facts["takes"]
    address, known = _address(preset)
    pairs = [
        ("Models", f"{preset.name}/NAME, of {preset.title}"),
        ("Address", address if known else f"not known: {address}"),
        ("", f"another one: --base-url or {preset.url_variable}"),
        ("Key", _key_words(preset)),
        ("", f"from {preset.keys_from}" if preset.keys_from else ""),
        ("Prices", f"known by genai-prices as {preset.prices}" if preset.prices else "not known: --prices"),
        ("Images", _pictures(preset)),
        ("Sent", f"{takes['output_limit']}, {takes['constrained']}"),
        ("Refuses", preset.refuses),
        ("Notes", preset.notes),
        ("Not verified", preset.unverified),
        *(("Source" if not number else "", source) for number, source in enumerate(preset.sources)),
        ("As of", preset.as_of),
    ]
    return [f"{label:<13}{text}".rstrip() for label, text in pairs if text]


def _key_words(preset: Preset) -> str:
    variable = _variable(preset)
    if os.environ.get(variable, "").strip():
        return f"{variable}: set"
    return f"{' or '.join(preset.key_variables)}: not set" + (", not needed" if preset.local else "")


def _variable(preset: Preset) -> str:
    set_ones = [name for name in preset.key_variables if os.environ.get(name, "").strip()]
    return (set_ones or list(preset.key_variables))[0]


def _address(preset: Preset) -> tuple[str, bool]:
    """Where it is, as the environment says; else what is missing, and False."""
    from uncanny.models.addresses import address_of

    try:
        return address_of(preset, "NAME")[0].shown, True
    except UsageError as error:
        return (error.remedy or error.message), False


def _facts(preset: Preset) -> dict[str, Any]:
    address, known = _address(preset)
    variant, takes = preset.variant, preset.takes
    return {
        "provider": preset.name,
        "title": preset.title,
        "address": address if known else None,
        "address_variable": preset.url_variable,
        "key_variables": list(preset.key_variables),
        "key_needed": not preset.local,
        "key_set": bool(os.environ.get(_variable(preset), "").strip()),
        "keys_from": preset.keys_from,
        "prices": preset.prices,
        "takes": {
            "output_limit": variant.limit,
            "constrained": "json_schema, strict" if variant.strict else "json_schema",
            "media_types": sorted(takes.media_types),
            "max_image_bytes": takes.max_image_bytes,
            "max_image_side": takes.max_image_side,
            "max_images": variant.max_images,
            "max_request_bytes": variant.max_request_bytes,
            "prompt_cache_key": variant.cache_key,
        },
        "cached_tokens": variant.cached,
        "refuses": preset.refuses,
        "notes": preset.notes,
        "not_verified": preset.unverified,
        "sources": list(preset.sources),
        "as_of": preset.as_of,
    }
