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
            remedy=f"Name an http:// one, or list {host} in NO_PROXY.",
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
