"""Where a preset's server is: named by the user, by the environment or by the preset; wrong forms put right.

Users paste addresses: with the path of a call, without that of the API, of another API of the same server, in
Azure's older form. What they meant is certain where the host is the preset's own; it is put right then, and a
sentence says so. Elsewhere the error names the right form.
"""

from __future__ import annotations

import os
import re
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from uncanny.errors import UsageError
from uncanny.models.addresses import OWN_PATH, Address, parse_address
from uncanny.models.presets import PRESETS, Preset
from uncanny.wording import Words, either, environment, marked, option

_PLACE = "{place}"
_PLACE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?")
# What calls of the protocol add to a base URL; users paste one with the rest.
_CALLS = (OWN_PATH, "/completions", "/responses", "/models", "/embeddings")
_OLD_AZURE = re.compile(r"/openai/deployments(?:/(?P<deployment>[^/]+))?(?:/.*)?$")
_TWICE = re.compile(r"(/v\d+[a-z\d]*)(?:/v\d+[a-z\d]*)+$")


def address_of(
    preset: Preset, model: str, base_url: str | None = None, *, calls: tuple[str, ...] = _CALLS
) -> tuple[Address, list[str]]:
    """The address of `preset` for calls to `model`, and a sentence for each thing that was put right in it.

    `base_url` comes first, then the preset's variable, then its own address. `calls` are paths that calls add
    themselves. Raises `UsageError` where there is none, and for one that no call can go to.
    """
    name = f"{preset.name}/{model}"
    variable = os.environ.get(preset.url_variable, "").strip()
    text = (base_url or variable).strip()
    if not text:
        return parse_address(_own_address(preset, name)), []
    if "://" not in text and preset.place_variables and _PLACE_NAME.fullmatch(text):
        return parse_address(preset.addresses[0].replace(_PLACE, text)), []  # the resource's name alone
    address = parse_address(text, without=calls)  # says what is wrong with it, if something is
    parts = urlsplit(text)
    path = parts.path.rstrip("/")
    right = _right_form(preset, parts)
    old = _OLD_AZURE.search(path) if preset.addresses and "/openai/v1" in preset.addresses[0] else None
    if old is not None:
        deployment = old["deployment"]
        form = right or f"https://{parts.hostname}/openai/v1"
        if right is None or (deployment and deployment != model):
            whose = f" of the deployment {deployment!r}" if deployment else ""
            raise UsageError(
                f"{address} is the older form of an address{whose}, and the model is {name}",
                remedy=f"Write {form}, and the deployment after {preset.name}/.",
            )
    if right is not None:
        return _put_right(preset, name, parts, right, bare=not path and not base_url)
    for other in preset.other_paths:
        if path == other:
            fixed = parse_address(_with(parts, path=urlsplit(preset.addresses[0]).path))
            return fixed, [_changed(name, address, fixed, f"{other} is another API of {preset.title}")]
    twice = _TWICE.search(urlsplit(address.url).path.rstrip("/"))
    if twice is not None:
        short = urlsplit(address.url).path.rstrip("/")[: twice.start()] + twice[1]
        fixed = parse_address(_with(parts, path=short))
        return fixed, [_changed(name, address, fixed, "the version stood in it twice")]
    if any(path.endswith(call) for call in calls):
        return address, [_changed(name, parse_address(text), address, "calls add their path")]
    return address, [] if preset.addresses else _better_known(name, model, parts)


def missing_address(preset: Preset, model: str, base_url: str | None) -> Words | None:
    """Why a run could not start for want of an address, or for what is wrong with it; None where it could."""
    if base_url or os.environ.get(preset.url_variable, "").strip():
        try:
            address_of(preset, model, base_url)
        except UsageError as error:
            return error.text
        return None
    try:
        _own_address(preset, preset.name)
    except UsageError as error:
        return Words(f"Before a run, {marked(error.text)}")
    return None


def _own_address(preset: Preset, name: str) -> str:
    """The preset's own address, with the place that its variables name."""
    if preset.addresses and not preset.place_variables:
        return preset.addresses[0]
    variables = [*preset.place_variables, preset.url_variable]
    values = [os.environ.get(variable, "").strip() for variable in preset.place_variables]
    place = next(filter(None, values), "")
    if not place:
        named = " or ".join(variables)
        raise UsageError(
            f"{name} needs the server's address",
            remedy=either(f"Give {option('base_url')} or set {named}.", service=f"Set {environment(named)}."),
        )
    if _PLACE_NAME.fullmatch(place) is None:
        raise UsageError(
            f"{name}: {' or '.join(preset.place_variables)} is not part of an address: {place[:80]!r}",
            remedy=f"It goes into {preset.addresses[0].replace(_PLACE, '…')}.",
        )
    return preset.addresses[0].replace(_PLACE, place)


def _right_form(preset: Preset, parts: SplitResult) -> str | None:
    """The preset's address with the host of `parts`; None for hosts that are not its own.

    Local servers have none: whatever answers on this machine may be a proxy for another.
    """
    if preset.local:
        return None
    host = (parts.hostname or "").lower()
    for form in preset.addresses:
        own = urlsplit(form.replace(_PLACE, "0place0")).hostname or ""
        if re.fullmatch(re.escape(own).replace("0place0", r"[a-z0-9-]+"), host):
            return f"https://{host}{urlsplit(form).path}"
    return None


def _better_known(name: str, model: str, parts: SplitResult) -> list[str]:
    """That a host given for any server is one whose ways are known; empty where it is not."""
    return [
        f"{name}: {parts.hostname} is {other.title}; {other.name}/{model} knows what it takes and its prices"
        for other in PRESETS.values()
        if _right_form(other, parts)
    ]


def _put_right(
    preset: Preset, name: str, parts: SplitResult, right: str, *, bare: bool
) -> tuple[Address, list[str]]:
    """An address of the preset's own host in the one form that there is; `bare` is the host's alone."""
    wanted = urlsplit(right)
    path = parts.path.rstrip("/")
    query = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != "api-version"]
    fixed = parse_address(parts._replace(scheme="https", path=wanted.path, query=urlencode(query)).geturl())
    written = parse_address(parts.geturl()).shown
    why = []
    if parts.scheme.lower() != "https":
        why.append(f"{preset.title} is asked over https")
    if path != wanted.path and wanted.path and not bare:
        why.append(f"its path is {wanted.path}")
    if len(query) < len(parse_qsl(parts.query, keep_blank_values=True)):
        why.append("it takes no api-version")
    return fixed, [_changed(name, written, fixed, " and ".join(why))] if why else []


def _with(parts: SplitResult, *, path: str) -> str:
    return parts._replace(path=path).geturl()


def _changed(name: str, written: object, used: Address, why: str) -> str:
    return f"{name}: {used} was used for {written}: {why}"
