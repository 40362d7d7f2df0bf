"""One image file made ready: to be sent to a model, or as a small picture on a page.

What is sent is the file's own bytes wherever the provider takes them; every change to them is on record.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from PIL import ExifTags, Image

from uncanny.errors import ImageError, StorageError
from uncanny.images.decode import (
    PIXELS,
    Header,
    check_whole,
    decode,
    explain,
    header_size,
    orientation_of,
    read_header,
    without_warnings,
)
from uncanny.images.encode import PixelPolicy, SendLimits, encode, on_white, plain
from uncanny.images.file_bytes import check_size, open_image_file, read_image_file, read_stamped
from uncanny.images.signature import MEDIA_TYPES, RAW_SUFFIXES
from uncanny.wording import short_path


@dataclass(frozen=True, slots=True, weakref_slot=True)
class PreparedImage:
    """An image as it is sent. `width` and `height` are pixels of the picture as seen, before downscaling.

    `changes` is empty exactly where `sent` is the file's own bytes. Otherwise it names each change, in the
    order made: `first_frame`, `orientation:6`, `depth:16->8`, `mode:CMYK->RGB`, `icc:dropped`,
    `downscale:4096x4096->2048x2048`, `alpha:flattened-white`, `convert:TIFF->PNG`, `jpeg-quality:95`, or
    `reencode` where the same pixels are only packed tighter.
    Metadata other than the ICC profile is left out of what is encoded anew. `stamp` is that of the file as it
    was read, see `changed_files`.
    """

    source_sha256: str
    source_bytes: int
    source_format: str
    width: int
    height: int
    sent: bytes = field(repr=False)
    sent_sha256: str
    media_type: str
    sent_width: int
    sent_height: int
    changes: tuple[str, ...]
    stamp: str | None = None


@without_warnings()
def prepare(path: Path, policy: PixelPolicy, limits: SendLimits) -> PreparedImage:
    """Read, check and, only where it must be, convert one image. Blocking, and heavy on CPU and memory.

    The pixels are gone through whole in any case, so that what is sent is known to be readable. They are kept
    in memory only where they have to be, and those of few pictures at a time. Raises `ImageError` and nothing
    else, whatever the file holds; `StorageError` where no file can be opened any more.
    """
    data = b""
    try:
        _refuse_raw(path)
        file = read_stamped(path, policy.max_file_bytes)
        data = file.data
        return replace(_prepared(data, policy, limits), stamp=file.stamp)
    except StorageError:
        raise
    except Exception as error:  # decoders raise all kinds of errors on hostile files
        raise _explained(error, data, path) from error


def _refuse_raw(path: Path) -> None:
    if path.suffix.lower() in RAW_SUFFIXES:
        remedy = "Export it as JPEG, PNG or TIFF."
        raise ImageError("a camera's raw file is not read", kind="unsupported", remedy=remedy)


def _explained(error: Exception, data: bytes, source: Path | bytes) -> ImageError:
    """What `explain` says of an error, and which file it is about."""
    if isinstance(source, bytes):
        return explain(error, data)
    explained = explain(error, data, source.suffix.lower())
    message = f"{short_path(source)}: {explained.message}"
    return ImageError(message, kind=explained.kind, remedy=explained.remedy)


@without_warnings()
def stored_size(path: Path, policy: PixelPolicy | None = None) -> tuple[int, int] | None:
    """Width and height in pixels by the file's header, None where it cannot be read. Nothing is decoded.

    Raises `StorageError` where no file can be opened any more.
    """
    policy = policy or PixelPolicy()
    if path.suffix.lower() in RAW_SUFFIXES:
        return None
    try:
        with open_image_file(path, policy.max_file_bytes) as file:
            size = header_size(file)
    except StorageError:
        raise
    except Exception:  # decoders raise all kinds of errors on hostile files
        return None
    return size if size[0] * size[1] <= policy.max_pixels else None


def read_rgb(
    path: Path | bytes, policy: PixelPolicy | None = None, *, within: Sequence[Path] | None = None
) -> tuple[Image.Image, tuple[str, ...]]:
    """The pixels of a file or its bytes, upright, 8 bits, RGB, and every change made to what it holds.

    To be measured: nothing is reduced, grey is the same in all channels, transparent parts are white, and
    colours are as stored, whatever profile they have. Changes are called as in `PreparedImage`. Of `policy`
    only the limits count. The file lies `within` folders as in `read_image_file`. Raises `ImageError` and
    nothing else, whatever the file holds; `StorageError` where no file can be opened any more.
    """
    image, changes, _ = _read_rgb(path, policy or PixelPolicy(), within)
    return image, changes


class Measured(NamedTuple):
    """A picture's width and height in pixels, seen upright, and the digest of the bytes that have them."""

    width: int
    height: int
    sha256: str


def measured(path: Path, *, within: Sequence[Path] | None = None) -> Measured:
    """What a picture measures once it is decoded whole. Raises what `read_rgb` raises."""
    image, _, data = _read_rgb(path, PixelPolicy(), within)
    return Measured(image.width, image.height, hashlib.sha256(data).hexdigest())


@without_warnings()
def _read_rgb(
    source: Path | bytes, policy: PixelPolicy, within: Sequence[Path] | None
) -> tuple[Image.Image, tuple[str, ...], bytes]:
    data = source if isinstance(source, bytes) else b""
    try:
        if isinstance(source, Path):
            _refuse_raw(source)
            data = read_image_file(source, policy.max_file_bytes, within)
        header = read_header(data, policy.max_pixels)
        with PIXELS.hold(header.pixels):
            image, _, changes = plain(decode(data, header))
            if image.mode in ("LA", "RGBA"):
                changes.append("alpha:flattened-white")
                image = on_white(image)
            if image.mode != "RGB":
                changes.append(f"mode:{image.mode}->RGB")
                image = image.convert("RGB")
        image.info = {}
        return image, tuple(changes), data
    except StorageError:
        raise
    except Exception as error:  # decoders raise all kinds of errors on hostile files
        raise _explained(error, data, source) from error


@without_warnings()
def thumbnail(
    path: Path,
    side: int = 320,
    policy: PixelPolicy | None = None,
    *,
    sha256: str | None = None,
    quality: int = 80,
    within: Sequence[Path] | None = None,
) -> bytes | None:
    """`shrunk` as WebP; None when unreadable. Lossy, `quality` 1–100: for people, not for models.

    The latest ones are remembered by the digest of the file: pages of several runs show the same pictures.
    """
    policy = policy or PixelPolicy()
    data = _file(path, policy, sha256, within)
    if data is None:
        return None
    key = (sha256 or hashlib.sha256(data).hexdigest(), side, quality, policy)
    encoded = _THUMBNAILS.get(key)
    if encoded is None:
        encoded = webp(_shrunk(data, side, policy), quality)
        if encoded is not None and len(encoded) <= _REMEMBERED_BYTES:
            with _REMEMBERING:
                _THUMBNAILS[key] = encoded
                while len(_THUMBNAILS) > _REMEMBERED:
                    _THUMBNAILS.popitem(last=False)
    return encoded


# At most 256 × 128 KiB = 32 MiB: those of a page of about a hundred pictures, in both sizes.
_REMEMBERED, _REMEMBERED_BYTES = 256, 128 * 1024
_THUMBNAILS: OrderedDict[tuple[str, int, int, PixelPolicy], bytes] = OrderedDict()
_REMEMBERING = Lock()


def webp(image: Image.Image | None, quality: int) -> bytes | None:
    """Lossy, `quality` 1–100; None for what the format does not take, and where there is nothing."""
    if image is None:
        return None
    try:
        out = BytesIO()
        # More effort than this takes more than twice as long, for files a twentieth smaller.
        image.save(out, "WEBP", quality=quality, method=2)
    except Exception:  # as one beyond the sides of the format
        return None
    return out.getvalue()


@without_warnings()
def shrunk(
    path: Path | bytes,
    side: int,
    policy: PixelPolicy | None = None,
    *,
    sha256: str | None = None,
    within: Sequence[Path] | None = None,
) -> Image.Image | None:
    """The picture, of a file or its bytes, upright, at most `side` pixels long and never enlarged.

    None when unreadable.
    Of `policy` only the limits on size count. With `sha256` it is None for a file of other bytes, too, and
    with `within` for one that lies in none of these folders.
    """
    policy = policy or PixelPolicy()
    data = _file(path, policy, sha256, within)
    return None if data is None else _shrunk(data, side, policy)


def _file(
    path: Path | bytes, policy: PixelPolicy, sha256: str | None, within: Sequence[Path] | None
) -> bytes | None:
    try:
        data = path if isinstance(path, bytes) else read_image_file(path, policy.max_file_bytes, within)
    except Exception:  # a report goes without this picture, whatever is wrong with it
        return None
    return data if sha256 is None or hashlib.sha256(data).hexdigest() == sha256 else None


def _shrunk(data: bytes, side: int, policy: PixelPolicy) -> Image.Image | None:
    try:
        header = read_header(data, policy.max_pixels)
        with PIXELS.hold(header.pixels):
            image, _, _ = plain(decode(data, header, draft=side))
            image.thumbnail((side, side), Image.Resampling.LANCZOS)
        image.info = {}
    except Exception:  # as above
        return None
    return image


@without_warnings()
def prepare_bytes(data: bytes, policy: PixelPolicy, limits: SendLimits) -> PreparedImage:
    """The same for the bytes of a file that somebody has read already."""
    try:
        check_size(data, policy.max_file_bytes)
        return _prepared(data, policy, limits)
    except StorageError:
        raise
    except Exception as error:  # decoders raise all kinds of errors on hostile files
        raise explain(error, data) from error


@without_warnings()
def png_of(image: Image.Image) -> bytes:
    """The bytes of a PNG file with the pixels of `image`, and which way is up. Blocking, for seconds.

    Raises ImageError where it cannot be loaded, or has a mode that PNG does not know.
    """
    try:
        with _LOADING:  # calls side by side may have been given the same image
            image.load()  # Pillow turns a TIFF upright, and forgets its orientation, when it loads it
            turned = orientation_of(image)
            pixels = image.copy()  # saving keeps its settings in the image, and the caller's may change
        # Which way is up goes along, so that the picture is turned, and the record says so, as for a file.
        exif = Image.Exif()
        if turned != 1:
            exif[ExifTags.Base.Orientation] = turned
        file = BytesIO()
        # The quickest compression takes a quarter of the time of the usual one, for a tenth more bytes.
        pixels.save(file, "PNG", exif=exif, compress_level=1)
    except (OSError, ValueError) as error:
        raise ImageError(
            f"a Pillow image of mode {image.mode}, {image.width}x{image.height}, cannot be sent: {error}",
            kind="unsupported",
            remedy='Give image.convert("RGB"), or the path of its file.',
        ) from error
    return file.getvalue()


_LOADING = Lock()


def _prepared(data: bytes, policy: PixelPolicy, limits: SendLimits) -> PreparedImage:
    header = read_header(data, policy.max_pixels)
    if _fits_as_it_is(header, header.turned, len(data), policy, limits) and check_whole(data, header):
        return _as_it_is(data, header)
    with PIXELS.hold(header.pixels):
        decoded = decode(data, header)
        if _fits_as_it_is(header, decoded.turned, len(data), policy, limits):
            return _as_it_is(data, header)
        image, profile, changes = plain(decoded)
        del decoded
        encoded = encode(image, profile, header.format, len(data), policy, limits)
    return PreparedImage(
        source_sha256=hashlib.sha256(data).hexdigest(),
        source_bytes=len(data),
        source_format=header.format,
        width=image.width,
        height=image.height,
        sent=encoded.data,
        sent_sha256=hashlib.sha256(encoded.data).hexdigest(),
        media_type=MEDIA_TYPES[encoded.format],
        sent_width=encoded.width,
        sent_height=encoded.height,
        changes=(*changes, *encoded.changes) or ("reencode",),
    )


def _as_it_is(data: bytes, header: Header) -> PreparedImage:
    sha256, (width, height) = hashlib.sha256(data).hexdigest(), header.size
    return PreparedImage(
        source_sha256=sha256,
        source_bytes=len(data),
        source_format=header.format,
        width=width,
        height=height,
        sent=data,
        sent_sha256=sha256,
        media_type=MEDIA_TYPES[header.format],
        sent_width=width,
        sent_height=height,
        changes=(),
    )


def _fits_as_it_is(
    header: Header, turned: int | None, size: int, policy: PixelPolicy, limits: SendLimits
) -> bool:
    longest = max(header.size)
    return (
        MEDIA_TYPES[header.format] in limits.media_types
        and policy.format in ("keep", header.format.lower())
        and not header.frames
        and turned == 1
        and header.depth <= 8
        and header.mode not in ("CMYK", "LAB", "YCbCr", "I", "F")
        and (limits.max_bytes is None or size <= limits.max_bytes)
        and all(side is None or longest <= side for side in (policy.max_side, limits.max_side))
    )
