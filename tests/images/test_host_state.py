"""Reading pictures leaves Pillow and the warnings of the host as they were, from many threads at once too."""

from __future__ import annotations

import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image

from uncanny.images.decode import without_warnings
from uncanny.images.encode import PixelPolicy, SendLimits
from uncanny.images.prepared import prepare, thumbnail

LIMITS = SendLimits(frozenset({"image/png", "image/jpeg"}), None, None)


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """A picture that Pillow warns of: its EXIF is cut off."""
    exif = Image.Exif()
    exif[0x010E] = "x" * 100
    path = tmp_path / "picture.png"
    Image.new("RGB", (40, 30), "blue").save(path, exif=exif.tobytes()[:-60])
    return path


def warned() -> bool:
    """Whether the host hears of a warning of Pillow's."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.warn_explicit("of Pillow", UserWarning, "Image.py", 1, module="PIL.Image")
    return bool(caught)


def test_pillow_warns_of_the_picture(picture: Path) -> None:
    with pytest.warns(UserWarning, match="Skipping tag"), Image.open(picture) as image:
        image.getexif()


@pytest.mark.filterwarnings("error")
def test_what_pillow_warns_of_is_read_by_a_host_that_makes_errors_of_warnings(picture: Path) -> None:
    assert prepare(picture, PixelPolicy(), LIMITS).changes == ()


def test_limits_and_filters_stay(picture: Path) -> None:
    filters, limit = list(warnings.filters), Image.MAX_IMAGE_PIXELS
    with ThreadPoolExecutor(8) as pool:
        policy = PixelPolicy(max_pixels=10**12)
        list(pool.map(lambda _: (prepare(picture, policy, LIMITS), thumbnail(picture)), range(64)))
    assert list(warnings.filters) == filters
    assert limit == Image.MAX_IMAGE_PIXELS
    assert warned()


def test_importing_changes_no_filter() -> None:
    code = (
        "import warnings, PIL.Image; before = list(warnings.filters), PIL.Image.MAX_IMAGE_PIXELS\n"
        "import uncanny.images, uncanny.images.overlay\n"
        "assert (list(warnings.filters), PIL.Image.MAX_IMAGE_PIXELS) == before"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_last_thread_that_leaves_takes_the_filter_out() -> None:
    first, second = without_warnings(), without_warnings()
    with first:
        with second:
            assert not warned()
        assert not warned()
        # What the host changes meanwhile stays.
        warnings.filterwarnings("ignore", message="a filter of the host's")
    assert warned()
    assert any(each[1] is not None and "host" in str(each[1]) for each in warnings.filters)
