"""Images on other machines, by the URLs that fsspec knows: `s3://bucket/key`, `https://…`, `gs://…`.

Which of them can be read depends on the packages that are installed, as s3fs for `s3://`; they take keys and
addresses from their own variables.
"""

from __future__ import annotations

from uncanny.errors import ImageError, ImageFault, UsageError
from uncanny.extras import optional
from uncanny.settings import settings

_FAULTS: tuple[tuple[type[Exception], ImageFault], ...] = (
    (FileNotFoundError, "missing"),
    (PermissionError, "permission"),
)


def read_url(url: str, max_bytes: int) -> bytes:
    """What is there, at most one byte more than `max_bytes`. Blocking.

    Raises `ImageError`; also where the setting `folders` says which files may be read: nothing elsewhere is
    asked for then.
    """
    if settings().folders is not None:
        raise ImageError(f"{url}: only files in the folders that are allowed are read", kind="permission")
    if "::" in url:
        raise ImageError(f"{url}: URLs within URLs are not read", kind="unsupported")
    try:
        fsspec = optional("fsspec.core", "remote", "Reading URLs")
        system, path = fsspec.url_to_fs(url)
        data: bytes = system.cat_file(path, start=0, end=max_bytes + 1)
    except UsageError as error:
        raise ImageError(error.message, kind="unsupported", remedy=error.remedy) from error
    except (ImportError, ValueError) as error:  # there is no such scheme, or its package is missing
        raise ImageError(f"{url}: {error}", kind="unsupported") from error
    except Exception as error:  # clients of storage raise all kinds of errors
        kinds = (kind for cause, kind in _FAULTS if isinstance(error, cause))
        kind: ImageFault = next(kinds, "io_error")
        why = str(error).strip() or type(error).__name__
        raise ImageError(f"{url} cannot be read: {why}", kind=kind) from error
    return data
