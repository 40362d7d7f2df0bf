"""Images on other machines, by the URLs that fsspec knows: `s3://bucket/key`, `https://…`, `gs://…`.

Which of them can be read depends on the packages that are installed, as s3fs for `s3://`; they take keys and
addresses from their own variables. A URL may have credentials in it, as signed ones do: what is shown of it,
and kept in records, is `public_url`.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final
from urllib.parse import unquote

from uncanny.errors import ImageError, ImageFault, UsageError, may_pass
from uncanny.extras import optional
from uncanny.settings import secrets, settings

_FAULTS: tuple[tuple[type[Exception], ImageFault], ...] = (
    (FileNotFoundError, "missing"),
    (PermissionError, "permission"),
)
_STATUSES: Final[dict[int, ImageFault]] = {
    401: "permission",
    403: "permission",
    404: "missing",
    410: "missing",
}
ANSWER_S: Final = 120.0
"""How long it may take until all of an image is there."""
# Before an image is asked for again, three times in all.
_PAUSES_S: Final = (0.5, 2.0)
# A server that asks for a longer one is not asked again.
_LONGEST_PAUSE_S: Final = 15.0
_CHUNK: Final = 2**16
_PARTS = re.compile(r"(?P<scheme>[^:/]*://)(?:(?P<user>[^/?]*)@)?(?P<rest>[^?]*)(?P<query>\?.*)?", re.DOTALL)
_Getter = Callable[[Any, str, int], Awaitable[bytes]]
_HIDDEN: Final = "…"
# Shorter ones would be found in the middle of words.
_SHORTEST: Final = 4
_LONGEST_SHOWN: Final = 500


class _StatusError(Exception):
    """A web server answered with an error."""


class _PassingError(Exception):
    """Around an error after which the same may succeed, in so many seconds at least."""


def read_url(url: str, max_bytes: int) -> bytes:
    """What is there, at most one byte more than `max_bytes`. Blocking.

    Raises `ImageError`; also where the setting `folders` says which files may be read: nothing elsewhere is
    asked for then.
    """
    shown = public_url(url)[:_LONGEST_SHOWN]
    kind: ImageFault
    if settings().folders is not None:
        raise ImageError(f"{shown}: only files in the folders that are allowed are read", kind="permission")
    if "::" in url:
        raise ImageError(f"{shown}: URLs within URLs are not read", kind="unsupported")
    try:
        return _read(url, max_bytes + 1)
    except UsageError as error:
        raise ImageError(error.message, kind="unsupported", remedy=error.remedy) from error
    except ImageError:
        raise
    except (ImportError, ValueError) as error:  # there is no such scheme, or its package is missing
        message, kind = f"{shown}: {_why(error, url)}", "unsupported"
    except Exception as error:  # clients of storage raise all kinds of errors
        message = f"{shown} cannot be read: {_why(error, url)}"
        kind = next((kind for cause, kind in _FAULTS if isinstance(error, cause)), "io_error")
        if isinstance(error, _StatusError):
            kind = _STATUSES.get(error.args[1], kind)
    # Outside of the handlers: what clients raise quotes the URL, and is not to be shown as the cause.
    raise ImageError(message, kind=kind)


def public_url(url: str) -> str:
    """A URL without what may be credentials: passwords, parameters, and what users are called on the web.

    >>> public_url("https://bucket.example/a.png?X-Amz-Signature=1234")
    'https://bucket.example/a.png?…'
    >>> public_url("sftp://me:secret@host/a.png")
    'sftp://me:…@host/a.png'
    """
    parts = _PARTS.fullmatch(url)
    if parts is None:
        return url
    user, rest = parts["user"], parts["rest"]
    if parts["scheme"].lower().startswith("http"):
        user = user and _HIDDEN
        rest = rest.partition("#")[0]
    elif user is not None and ":" in user:
        user = f"{user.partition(':')[0]}:{_HIDDEN}"
    return "".join(
        (parts["scheme"], "" if user is None else f"{user}@", rest, f"?{_HIDDEN}" if parts["query"] else "")
    )


def _read(url: str, most: int) -> bytes:
    fsspec = optional("fsspec.core", "remote", "Reading URLs")
    system, path = fsspec.url_to_fs(url)
    if "file" in _protocols(system):
        raise ImageError(
            f"{public_url(url)}: files of this machine are not read by URL",
            kind="unsupported",
            remedy="Write the path without a scheme.",
        )
    get = next((_GETTERS[each] for each in _protocols(system) if each in _GETTERS), None)
    if not system.async_impl:
        data: bytes = system.cat_file(path, start=0, end=most)
    elif get is not None:
        data = optional("fsspec.asyn", "remote", "Reading URLs").sync(
            system.loop, _patiently, get, system, path, most, timeout=ANSWER_S
        )
    else:
        data = system.cat_file(path, start=0, end=most, timeout=ANSWER_S)
    return data


async def _patiently(get: _Getter, system: Any, path: str, most: int) -> bytes:
    """Again after what may pass, as long as `ANSWER_S` for all of it lasts."""
    pauses = iter(_PAUSES_S)
    while True:
        try:
            return await get(system, path, most)
        except _PassingError as passing:
            error, asked_s = passing.args
            pause_s = next(pauses, None)
            if pause_s is None or asked_s > _LONGEST_PAUSE_S:
                raise error from None
        await asyncio.sleep(max(asked_s, pause_s * random.uniform(0.5, 1.0)))


async def _get(system: Any, url: str, most: int) -> bytes:
    """From a web server. Nothing is decompressed, since a small answer could fill the memory."""
    import aiohttp

    session = await system.set_session()
    plain = {"Accept-Encoding": "identity"}
    try:
        async with session.get(system.encode_url(url), headers=plain, auto_decompress=False) as answer:
            if answer.status >= 400:
                words = f"the server answered {answer.status} {answer.reason or ''}"
                error = _StatusError(words, answer.status)
                if not may_pass(answer.status):
                    raise error
                asked = answer.headers.get("Retry-After", "")
                raise _PassingError(error, float(asked) if asked.isdecimal() else 0.0)
            return await _first(answer.content.iter_chunked(_CHUNK), most)
    except aiohttp.ClientConnectorError:  # nobody is there, or it is somebody else
        raise
    except aiohttp.ClientConnectionError as error:
        raise _PassingError(error, 0.0) from error


async def _get_object(system: Any, path: str, most: int) -> bytes:
    """From storage that speaks S3. s3fs itself reads all that comes, whatever range it asks for."""
    bucket, key, version = system.split_path(path)
    which = {"Bucket": bucket, "Key": key} | ({"VersionId": version} if version else {})
    body = (await system._call_s3("get_object", **which))["Body"]
    with contextlib.closing(body):
        return await _first(body.iter_chunks(_CHUNK), most)


async def _first(chunks: AsyncIterator[bytes], most: int) -> bytes:
    """So many bytes, whatever the server has: it need not keep to a range, nor to the size it tells."""
    data = bytearray()
    try:
        async for chunk in chunks:
            data += chunk
            if len(data) >= most:
                break
    except Exception as error:  # it was cut off, for which clients have errors of all kinds
        raise _PassingError(error, 0.0) from error
    return bytes(data[:most])


_GETTERS: Final[dict[str, _Getter]] = {"https": _get, "s3": _get_object}


def _protocols(system: Any) -> tuple[str, ...]:
    protocol = system.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)


def _why(error: Exception, url: str) -> str:
    """What an error says, without what of the URL is not to be shown, nor keys of the environment."""
    if isinstance(error, _StatusError):
        return str(error.args[0]).strip()
    if isinstance(error, TimeoutError):
        return f"no answer within {ANSWER_S:.0f} seconds"
    text = " ".join(str(error).split()) or type(error).__name__
    hidden = {secret for _, secret in secrets()}
    if (parts := _PARTS.fullmatch(url)) is not None:
        text = text.replace(url, public_url(url))
        user, query = parts["user"] or "", parts["query"] or ""
        values = [value for each in re.split("[&;]", query[1:]) for value in each.partition("=")[::2]]
        hidden |= {query[1:], user, user.partition(":")[2], *values[1::2]}
    for secret in sorted(hidden | set(map(unquote, hidden)), key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, _HIDDEN)
    return text
