"""Where a server is: a base URL, checked before anything is sent there, and shown without its secrets."""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import logging
import os
import re
import socket
from dataclasses import dataclass, field, replace
from functools import cache
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

from uncanny.errors import UsageError
from uncanny.models.error_body import HIDDEN, SHORTEST_SECRET, one_line
from uncanny.models.presets import PRESETS, Preset
from uncanny.wording import Words, either, environment, marked, option

log = logging.getLogger("uncanny")

LONGEST_URL = 2_000
# What calls of the chat completions API add to a base URL; users paste it with the rest.
OWN_PATH = "/chat/completions"

# The one parameter of base URLs that is known to be no secret: Azure's.
_SHOWN_PARAMETERS = frozenset({"api-version"})
# Parameters that only say whose account it is: answers kept under one key are found again with the next.
_CREDENTIALS = re.compile(r"key|token|secret|pass|pwd|auth|sig|cred|code|session|jwt|sas", re.IGNORECASE)
_UNGUESSABLE = 16
_HOST_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_VERSION = re.compile(r"/v\d+[a-z\d]*(/|$)")
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy")


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that the environment names for a server. `shown` is its address without credentials."""

    url: str = field(repr=False)
    shown: str
    secrets: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Address:
    """A server's base URL, taken apart.

    `url` ends in a slash and has neither credentials nor parameters; `parameters` go with every call, and
    `authorization` is the header that `user:password@` stands for, None without one. `shown` is for people,
    files and messages. `identity` stands for the server in the keys of kept answers; parameters that are
    credentials are not in it. `secrets` are what must not be repeated. `proxy` is None for calls that go
    straight to the server, as those within this machine always do.
    """

    url: str
    shown: str
    identity: str = field(repr=False)
    parameters: dict[str, str] = field(default_factory=dict, repr=False)
    authorization: str | None = field(default=None, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    proxy: Proxy | None = None

    def __str__(self) -> str:
        return self.shown

    @property
    def has_version(self) -> bool:
        """Whether the path names a version of the API, such as `/v1`."""
        return _VERSION.search(urlsplit(self.url).path) is not None

    def with_version(self) -> Address:
        """The same with `/v1` at the end of the path; it stands for the same server."""
        place = self.url.partition("://")[2]
        return replace(self, url=f"{self.url}v1/", shown=self.shown.replace(place, f"{place}v1/", 1))


def parse_address(
    text: str, *, without: tuple[str, ...] = (), remedy: str = "Write http://HOST:PORT/v1 or https://HOST/v1."
) -> Address:
    """Read a base URL. `without` are ends of the path that are not part of one: calls add them.

    Raises `UsageError` for what no call can go to, without repeating a password.
    """
    try:
        return _parse(text.strip(), without)
    except _NoAddressError as error:
        raise UsageError(
            f"{redacted(text)!r} is not a base URL: {error}",
            remedy=remedy,
        ) from None


_BETWEEN = re.compile(r"[,\s](?=https?://)", re.IGNORECASE)


def each_address(text: str) -> list[str]:
    """The base URLs in a text, which has commas between several servers of one model."""
    return [each.strip(", \t\n") for each in _BETWEEN.split(text.strip())]


def redacted(text: str) -> str:
    """What was meant to be a URL, without all that could be credentials or parameters, on one line."""
    scheme, slashes, rest = text.partition("://")
    if not slashes:
        scheme, rest = "", text
    _, at, host = rest.rpartition("@")
    shown, query, _ = host.partition("?")
    return one_line(
        scheme + slashes + (f"{HIDDEN}@" if at else "") + shown + (f"?{HIDDEN}" if query else ""), ()
    )


class _NoAddressError(Exception):
    """Why a text is no base URL, in words that repeat nothing of it."""


def _parse(text: str, without: tuple[str, ...]) -> Address:
    if len(text) > LONGEST_URL:
        raise _NoAddressError(f"it has {len(text):,} characters")
    if not text.isprintable() or " " in text:
        raise _NoAddressError("there is white space in it, or what does not print")
    if not text.lower().startswith(("http://", "https://")):
        raise _NoAddressError("it does not begin with http:// or https://")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise _NoAddressError("its host or port is not right") from None
    host = _host(parts.hostname or "", bracketed="[" in parts.netloc)
    if port == 0:
        raise _NoAddressError("nothing listens on port 0")
    if parts.fragment:
        raise _NoAddressError("there is a # in it; a password has %23 instead")
    path = parts.path
    for end in without:
        path = path.rstrip("/").removesuffix(end)
    netloc = host if port is None else f"{host}:{port}"
    # Slashes at the end are dropped once more: `//.` has them only after its dot is resolved.
    url = _as_sent(f"{parts.scheme}://{netloc}{path.rstrip('/')}/").rstrip("/") + "/"
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    known = {name: value for name, value in parameters.items() if not _CREDENTIALS.search(name)}
    identity = url.rstrip("/") if urlsplit(url).path == "/" else url
    authorization = _authorization(parts)
    shown = url.replace("://", f"://{HIDDEN}@", 1) if authorization else url
    if parameters:
        shown += "?" + "&".join(
            f"{quote(name)}={quote(value) if name in _SHOWN_PARAMETERS else HIDDEN}"
            for name, value in parameters.items()
        )
    return Address(
        url,
        one_line(shown, ()),
        identity + (f"?{urlencode(known)}" if known else ""),
        parameters,
        authorization,
        _secrets(text),
        _proxy(parts.scheme, host.strip("[]"), port),
    )


def _host(host: str, *, bracketed: bool) -> str:
    """The host as it goes into a URL."""
    if not host:
        raise _NoAddressError("it names no host")
    try:
        if bracketed:
            ipaddress.IPv6Address(host)
            return f"[{host}]"
        name = host.encode("idna").decode()
        name.encode().decode("idna")
    except ValueError:  # with UnicodeError
        raise _NoAddressError("its host is not a valid host name") from None
    if len(name) > 253 or not _HOST_NAME.fullmatch(name):
        raise _NoAddressError("its host is not a valid host name")
    # Numbers go out as one address: `127.1` by itself is refused by the transport, and passed on by a proxy.
    numbers = _numbers(name)
    if numbers is not None:
        return str(numbers)
    return name.rstrip(".") if is_here(name) else name


def _numbers(name: str) -> ipaddress.IPv4Address | None:
    """The address that one to four numbers stand for, also in octal and hexadecimal; None for a name."""
    try:
        return ipaddress.IPv4Address(socket.inet_aton(name.rstrip(".")))
    except OSError:
        return None


def _as_sent(url: str) -> str:
    """The URL in the form in which the SDKs send it, and which is part of the keys of kept answers."""
    import httpx2

    try:
        return str(httpx2.URL(url))
    except httpx2.InvalidURL:
        raise _NoAddressError("nothing can be sent to it") from None


def _authorization(parts: SplitResult) -> str | None:
    if not parts.username and not parts.password:
        return None
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def _secrets(text: str) -> tuple[str, ...]:
    """All that must not be repeated of a URL, in every form a server could repeat it."""
    head, _, query = text.partition("?")
    user, at, _ = head.rpartition("://")[2].rpartition("@")
    secrets: list[str] = []
    if at:
        name, _, password = user.partition(":")
        secrets += [user, password or name]
        secrets.append(base64.b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode())
    secrets += [
        value
        for name, value in parse_qsl(query, keep_blank_values=True)
        # A word as short as "description" is no secret, and taking it out would spoil answers.
        if _CREDENTIALS.search(name) or (name not in _SHOWN_PARAMETERS and len(value) >= _UNGUESSABLE)
    ]
    forms = [form for each in secrets for form in (each, unquote(each), quote(each), quote(each, safe=""))]
    return tuple(dict.fromkeys(form for form in forms if form))


def _proxy(scheme: str, host: str, port: int | None) -> Proxy | None:
    """The proxy for a server, by the variables that curl and others read; NO_PROXY may name networks, too."""
    proxies = getproxies()
    url = proxies.get(scheme) or proxies.get("all")
    if not url or is_here(host) or _bypassed(host, port, proxies.get("no", "")):
        return None
    url = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise ValueError
        _as_sent(url)
    except (ValueError, _NoAddressError):
        names = [name for name in os.environ if name.lower() in _PROXY_VARIABLES]
        raise UsageError(
            f"The proxy {redacted(url)!r} ({', '.join(names) or 'system settings'}) cannot be used",
            remedy=f"Pass an http:// one, or list {host} in NO_PROXY.",
        ) from None
    return Proxy(url, redacted(url), _secrets(url))


_NAMES_OF_THIS_MACHINE = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})


def is_here(host: str) -> bool:
    """Whether a host is this machine, however it is spelled: `127.1`, `0` and `localhost.` are."""
    name = host.strip("[]").rstrip(".").lower()
    if name in _NAMES_OF_THIS_MACHINE or name.endswith(".localhost"):
        return True
    address: ipaddress.IPv4Address | ipaddress.IPv6Address | None = _numbers(name)
    if ":" in name:
        with contextlib.suppress(ValueError):
            six = ipaddress.IPv6Address(name)
            address = six.ipv4_mapped or six
    return address is not None and (address.is_loopback or address.is_unspecified)


def warn_of_open(address: Address, what: str, secret: str) -> None:
    """Warn, once in a process, where `secret`, or a password in the address, crosses a network in the open.

    `what` names the secret in the warning. One of less than `SHORTEST_SECRET` characters is a local server's
    word for none.
    """
    parts = urlsplit(address.url)
    known = len(secret) >= SHORTEST_SECRET or address.secrets
    if known and parts.scheme == "http" and not is_here(parts.hostname or ""):
        warned_of(what, address.shown)


@cache
def warned_of(what: str, shown: str) -> None:
    log.warning(
        "%s goes to %s over plain http: anybody on the way can read it. Use https://, or a tunnel.",
        what,
        shown,
    )


def _bypassed(host: str, port: int | None, no_proxy: str) -> bool:
    if proxy_bypass(host if port is None or ":" in host else f"{host}:{port}"):
        return True
    for entry in no_proxy.split(","):
        try:
            if ipaddress.ip_address(host) in ipaddress.ip_network(entry.strip().strip("[]"), strict=False):
                return True
        except ValueError:
            continue
    return False


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

    `base_url` comes first, then the preset's variable, then its own address; of several addresses it is the
    first. `calls` are paths that calls add themselves. Raises `UsageError` where there is none, and for one
    that no call can go to.
    """
    name = f"{preset.name}/{model}"
    variable = os.environ.get(preset.url_variable, "").strip()
    text = each_address(base_url or variable)[0]
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


def addresses_of(preset: Preset, base_url: str | None) -> list[str]:
    """The servers that are to share the calls of a model: those of `base_url`, else of the preset's variable.

    Empty where neither says. Raises `UsageError` for several addresses of a service, which has one.
    """
    text = (base_url or os.environ.get(preset.url_variable, "")).strip()
    addresses = list(dict.fromkeys(each_address(text))) if text else []
    if len(addresses) > 1 and not preset.local:
        raise UsageError(
            f"{preset.name} has {len(addresses)} addresses, but only servers of your own can be several",
            remedy="Remove all addresses but one.",
        )
    return addresses


def missing_address(preset: Preset, model: str, base_url: str | None) -> Words | None:
    """Why a run could not start for want of an address, or for what is wrong with it; None where it could."""
    if base_url or os.environ.get(preset.url_variable, "").strip():
        try:
            for each in addresses_of(preset, base_url):
                address_of(preset, model, each)
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
