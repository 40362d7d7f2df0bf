"""Compressed copies: where they lie, what they hold, and what happens to images that cannot be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import uncanny
from uncanny.errors import ItemsError, UsageError


def picture(path: Path, mode: str = "RGB", *, exif: Image.Exif | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    pixels = np.kron(rng.integers(0, 255, (6, 8, 4), dtype=np.uint8), np.ones((8, 8, 1), dtype=np.uint8))
    Image.fromarray(pixels, "RGBA").convert(mode).save(path, exif=exif or Image.Exif())
    return path


def test_copies_lie_in_a_folder_a_condition(tmp_path: Path) -> None:
    images = tmp_path / "images"
    picture(images / "a" / "cat.png")
    picture(images / "dog.webp", "RGBA")
    result = uncanny.edits.compress(images, out=tmp_path / "copies")
    assert {str(path.relative_to(tmp_path / "copies")) for path in (tmp_path / "copies").rglob("*.*")} == {
        f"{codec}-{quality}/{name}{suffix}"
        for codec, suffix in (("jpeg", ".jpg"), ("webp", ".webp"))
        for quality in (85, 70, 50)
        for name in ("a/cat", "dog")
    }
    assert (result.images, result.existing, result.failed) == (2, 0, {})
    for codec in ("JPEG", "WEBP"):
        sizes = [result.written[f"{codec.lower()}-{quality}"][1] for quality in (85, 70, 50)]
        assert sizes == sorted(sizes, reverse=True)
        name = next((tmp_path / "copies" / f"{codec.lower()}-50").glob("dog.*"))
        with Image.open(name) as copy:
            assert (copy.format, copy.mode, copy.size) == (codec, "RGB", (64, 48))
    Image.open(images / "a" / "cat.png").save(tmp_path / "again.jpg", quality=70)
    copy_of_cat = tmp_path / "copies" / "jpeg-70" / "a" / "cat.jpg"
    assert copy_of_cat.read_bytes() == (tmp_path / "again.jpg").read_bytes()
    assert "2 images" in str(result)


def test_copies_are_upright_and_say_nothing_of_their_file(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010F] = "a camera"
    file = picture(tmp_path / "turned.jpg", exif=exif)
    uncanny.edits.compress(file, out=tmp_path / "copies", conditions=["webp-85"])
    with Image.open(tmp_path / "copies" / "webp-85" / "turned.webp") as copy:
        assert copy.size == (48, 64)
        assert not copy.getexif()


def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    picture(tmp_path / "images" / "a.png")
    first = uncanny.edits.compress(tmp_path / "images", out=tmp_path / "copies", conditions=["jpeg-50"])
    copy = tmp_path / "copies" / "jpeg-50" / "a.jpg"
    before = copy.read_bytes(), copy.stat().st_mtime_ns
    picture(tmp_path / "images" / "b.png")
    seen: list[str] = []
    again = uncanny.edits.compress(
        tmp_path / "images", out=tmp_path / "copies", conditions=["jpeg-50"], on_image=seen.append
    )
    assert (first.written["jpeg-50"][0], again.written["jpeg-50"][0], again.existing) == (1, 1, 1)
    assert (copy.read_bytes(), copy.stat().st_mtime_ns) == before
    assert seen == ["a.png", "b.png"]


@pytest.mark.parametrize("folder", [".", "copies"])
def test_copies_beside_their_images_are_not_copied_again(folder: str, tmp_path: Path) -> None:
    picture(tmp_path / "cat.png")
    out = tmp_path / folder
    for _ in range(2):
        result = uncanny.edits.compress(tmp_path, out=out, conditions=["jpeg-50"])
        assert result.images == 1
    assert [path.relative_to(out).as_posix() for path in out.rglob("*.jpg")] == ["jpeg-50/cat.jpg"]
    # Named by itself, a folder of copies is one of images.
    assert uncanny.edits.compress(out / "jpeg-50", out=out, conditions=["webp-50"]).images == 1


def test_an_image_that_cannot_be_read_costs_its_own_copies(tmp_path: Path) -> None:
    picture(tmp_path / "images" / "good.png")
    (tmp_path / "images" / "broken.png").write_bytes(b"no picture")
    (tmp_path / "images" / "notes.txt").write_text("words")
    result = uncanny.edits.compress(tmp_path / "images", out=tmp_path / "copies")
    assert list(result.failed) == ["broken.png"]
    assert result.images == 1
    assert result.skipped.counts == {"other_file": 1}
    assert "No copy of broken.png" in str(result)
    assert result.to_json()["failed"] == result.failed


def test_what_is_refused(tmp_path: Path) -> None:
    picture(tmp_path / "images" / "a.png")
    picture(tmp_path / "images" / "a.webp")
    with pytest.raises(ItemsError, match=r"a\.webp.*would have the same copy as a\.png"):
        uncanny.edits.compress(tmp_path / "images", out=tmp_path / "copies")
    assert not (tmp_path / "copies").exists()
    for condition in ("png-50", "jpeg", "jpeg-0", "jpeg-101", "jpeg-085", "jpeg-٥"):
        with pytest.raises(UsageError, match="is not a condition"):
            uncanny.edits.compress(
                tmp_path / "images" / "a.png", out=tmp_path / "copies", conditions=[condition]
            )
    with pytest.raises(UsageError, match="No such file"):
        uncanny.edits.compress(tmp_path / "none", out=tmp_path / "copies")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "jpeg-50").symlink_to(tmp_path / "images")
    with pytest.raises(UsageError):
        uncanny.edits.compress(tmp_path / "images" / "a.png", out=tmp_path / "links")


def test_predictions_on_copies_are_joined_with_the_images_metadata(tmp_path: Path) -> None:
    meta = [{"original": f"o/{n}.png", "edited": f"e/{n}.png"} for n in range(3)]
    for row in meta:
        for file in row.values():
            picture(tmp_path / "images" / file)
    uncanny.edits.compress(tmp_path / "images", out=tmp_path / "copies")
    seen = [
        {"image": str(path.relative_to(tmp_path)), "score": 0.9 if "/e/" in str(path) else 0.2}
        for path in sorted((tmp_path / "copies" / "jpeg-70").rglob("*.jpg"))
    ]
    first = uncanny.edits.stress({"jpeg-70": seen}, meta=meta)["detector"].first
    assert first.auc.value == 1
    assert first.coverage.only_predicted == first.coverage.only_known == ()


def test_an_image_too_wide_for_a_format_costs_its_own_copies(tmp_path: Path) -> None:
    Image.new("RGB", (16_400, 2)).save(tmp_path / "wide.png")
    picture(tmp_path / "cat.png")
    (tmp_path / "loop.png").symlink_to("loop.png")
    result = uncanny.edits.compress(tmp_path, out=tmp_path / "copies", conditions=["webp-50"])
    assert result.written["webp-50"][0] == 1
    assert set(result.failed) == {"wide.png", "loop.png"}
    assert result.failed["wide.png"].startswith("webp-50 cannot hold 16,400 × 2 pixels")
