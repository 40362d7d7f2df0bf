from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, features

from uncanny.errors import ImageError
from uncanny.images.encode import PixelPolicy, SendLimits
from uncanny.images.prepared import prepare, thumbnail

# A host that makes errors of warnings reads the same pictures.
pytestmark = pytest.mark.filterwarnings("error")

TAKEN = SendLimits(frozenset({"image/jpeg", "image/png", "image/webp", "image/gif"}), 2**20, 2_000)
# Damage to a header may declare millions of pixels; a small limit keeps that quick.
POLICY = PixelPolicy(max_pixels=100_000)
NOBODY = 65_534
KINDS = ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", *(["AVIF"] if features.check("avif") else [])]
STARTS = [
    b"",
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"GIF89a",
    b"II*\0",
    b"MM\0*",
    b"BM",
    b"RIFF\0\1\0\0WEBPVP8 ",
]
STARTS += [b"\0\0\0\x18ftypavif", b"\0\0\0\x18ftypmif1"]
quick = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def spot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged") / "image.png"


@pytest.fixture(scope="module")
def whole(odd_files: ModuleType) -> dict[str, bytes]:
    return {kind: odd_files.encoded(odd_files.picture(40, 40), kind) for kind in KINDS}


def survives(path: Path, data: bytes) -> bytes | None:
    """RGB pixels as sent, None where the image is refused; any error but `ImageError` passes through."""
    path.write_bytes(data)
    small = thumbnail(path, policy=POLICY)
    try:
        image = prepare(path, POLICY, TAKEN)
    except ImageError as error:
        return None if str(path) in str(error) else b"an error that does not say where"
    assert small is not None
    assert bool(image.changes) == (image.sent != data)
    return pixels(image.sent)


@cache
def pixels(data: bytes) -> bytes:
    return Image.open(BytesIO(data)).convert("RGB").tobytes()


@quick
@given(start=st.sampled_from(STARTS), rest=st.binary(max_size=400))
def test_any_bytes_at_all(start: bytes, rest: bytes, spot: Path) -> None:
    survives(spot, start + rest)


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_cut_file_is_never_taken_for_another_picture(
    kind: str, share: float, spot: Path, whole: dict[str, bytes]
) -> None:
    data = whole[kind]
    assert survives(spot, data[: int(len(data) * share)]) in (None, pixels(data))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@quick
@given(
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=8)
)
def test_changed_bytes(
    kind: str, flips: list[tuple[float, int]], spot: Path, whole: dict[str, bytes]
) -> None:
    data = bytearray(whole[kind])
    for share, mask in flips:
        data[int(len(data) * share)] ^= mask
    survives(spot, bytes(data))


def test_a_changed_pixel_byte_of_a_png_is_noticed(spot: Path, whole: dict[str, bytes]) -> None:
    data = whole["PNG"]
    for at in range(data.index(b"IDAT"), data.index(b"IEND") - 4, 7):
        assert survives(spot, data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]) is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gone.png", "missing"),
        ("x" * 10_000 + ".png", "name_too_long"),
        (".", "not_a_file"),
        ("nul\0byte.png", "missing"),
        ("image.txt/below.png", "missing"),
    ],
)
def test_names_that_are_no_files(name: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "image.txt").write_text("x")
    with pytest.raises(ImageError) as caught:
        prepare(tmp_path / name, POLICY, TAKEN)
    assert caught.value.kind == kind
    assert len(str(caught.value)) < 600
    assert thumbnail(tmp_path / name) is None


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device")
def test_devices_are_not_read() -> None:
    for name in ("/dev/zero", "/dev/null"):
        with pytest.raises(ImageError) as caught:
            prepare(Path(name), POLICY, TAKEN)
        assert caught.value.kind == "not_a_file"


@contextmanager
def not_as_root() -> Iterator[None]:
    """As nobody where the tests run as root, who may read everything."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no users there")
def test_no_permission(odd_files: ModuleType) -> None:
    # Not in `tmp_path`, whose folders only their owner may enter.
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        good, locked = Path(folder) / "good.png", Path(folder) / "locked.png"
        for path in (good, locked):
            path.write_bytes(odd_files.encoded(odd_files.picture(), "PNG"))
            prepare(path, POLICY, TAKEN)
        locked.chmod(0)
        with not_as_root():
            assert prepare(good, POLICY, TAKEN).changes == ()
            with pytest.raises(ImageError) as caught:
                prepare(locked, POLICY, TAKEN)
    assert caught.value.kind == "permission"
