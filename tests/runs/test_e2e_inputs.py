"""What lies in the folders given: nothing of it gets lost without a word."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.eval.realism.realism_run import RealismRun
from tests.images.bombs import jpeg_of_scans
from tests.images.odd_files import encoded, picture
from tests.runs.e2e import Done, Run, check_no_traceback, environment, pictures, uncanny_here

HEIC = b"\0\0\0\x1cftypheic\0\0\0\0mif1heicmiaf" + bytes(200)
WITHOUT_PLUGINS = (
    "import sys; sys.modules['pillow_heif'] = sys.modules['pillow_jxl'] = None; "
    "from uncanny.cli import main; main(sys.argv[1:])"
)
# Longer than any path may be, so that nobody can read what is in it, not even root.
DEPTH = 20


def without_plugins(*arguments: object) -> Done:
    """The command in a process that finds no plugin of Pillow."""
    command = [sys.executable, "-c", WITHOUT_PLUGINS, *map(str, arguments)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment())
    return Done(process.returncode, process.stdout, process.stderr)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return pictures(tmp_path / "in", 1)


@pytest.fixture
def unreadable(images: Path) -> Iterator[Path]:
    """`images` with a folder in it that cannot be read, with an image in it."""
    start = os.open(images, os.O_RDONLY)
    try:
        here = start
        for _ in range(DEPTH):
            os.mkdir("d" * 250, dir_fd=here)
            below = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
            if here != start:
                os.close(here)
            here = below
        os.close(os.open("lost.png", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        os.close(here)
        yield images
    finally:
        os.close(start)


@pytest.mark.slow
def test_an_image_whose_plugin_is_missing_gets_a_record_that_names_it(images: Path, run: Run) -> None:
    for number in range(4):
        (images / f"photo{number}.heic").write_bytes(HEIC)
    (images / "art.jxl").write_bytes(b"\xff\x0a" + bytes(200))
    (images / "drawing.svg").write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg'/>")
    (images / "raw.dng").write_bytes(encoded(picture(), "TIFF"))
    (images / "scan.tga").write_bytes(bytes(range(100)))
    done = without_plugins("annotate", images, "--model", "noop", "-o", run.path, "--no-report")
    check_no_traceback(done)
    assert done.code == 1
    told = {Path(record.image).suffix: record.errors for record in run.records() if record.errors}
    assert {error.kind for errors in told.values() for error in errors} == {"unsupported"}
    assert "pip install -e '.[formats]'" in told[".heic"][0].message
    assert "pip install -e '.[formats]'" in told[".jxl"][0].message
    assert "SVG is not read" in told[".svg"][0].message
    assert "raw file" in told[".dng"][0].message
    assert "Targa is not read" in told[".tga"][0].message
    assert run.statuses() == {"ok": 1, "unreadable": 8}
    assert "pip install -e '.[formats]'" in done.out


def test_an_image_is_read_with_its_plugin(images: Path, run: Run) -> None:
    import pillow_heif
    import pillow_jxl  # noqa: F401 - imported, it registers itself

    pillow_heif.register_heif_opener()
    (images / "photo.heic").write_bytes(encoded(picture(), "HEIF"))
    (images / "art.jxl").write_bytes(encoded(picture(), "JXL"))
    (images / "cut.heic").write_bytes(encoded(picture(), "HEIF")[:-200])
    done = uncanny_here("annotate", images, "--model", "noop", "-o", run.path, "--no-report")
    assert done.code == 1
    assert run.statuses() == {"ok": 3, "unreadable": 1}
    for name, kind in (("photo.heic", "HEIC"), ("art.jxl", "JXL")):
        record = run.record(name)
        assert record.pixels is not None
        assert (record.width, record.height, record.pixels.changes) == (48, 32, (f"convert:{kind}->PNG",))
    assert [error.kind for error in run.record("cut.heic").errors] == ["truncated"]


def test_an_image_that_would_take_minutes_to_decode_gets_a_record_that_says_so(
    images: Path, run: Run
) -> None:
    """Four megapixels in 3,000 scans, which take half a minute: 110 kB."""
    (images / "slow.jpg").write_bytes(jpeg_of_scans(3000, (2000, 2000)))
    begun = time.process_time()
    done = uncanny_here("annotate", images, "--model", "noop", "-o", run.path)
    assert time.process_time() - begun < 10
    check_no_traceback(done)
    assert (done.code, run.statuses()) == (1, {"ok": 1, "unreadable": 1})
    (error,) = run.record("slow.jpg").errors
    assert error.kind == "bomb"
    assert error.message.endswith(
        "in/slow.jpg: the file has more than 100 scans: to decode it could take minutes. "
        "If it is a real picture, save it anew with another program."
    )


@pytest.mark.parametrize("command", ["annotate", "detect"])
def test_a_folder_that_cannot_be_read_is_told_and_no_success(
    command: str, unreadable: Path, run: Run
) -> None:
    (unreadable / "notes.txt").write_text("x")
    (unreadable / ".hidden.png").write_text("x")
    arguments = (command, unreadable, "--model", "noop", "-o", run.path, "--no-report")
    done = uncanny_here(*arguments)
    check_no_traceback(done)
    assert done.code == 1
    assert run.statuses() == {"ok": 1}
    assert "Warning: 1 folder that cannot be read, so images in it are missing" in done.told
    assert "File name too long" in done.told
    assert "Skipped  1 folder that cannot be read, 1 hidden one, 1 file that is not an image" in done.out
    manifest = run.manifest()
    assert manifest["skipped_counts"] == {"unreadable_folder": 1, "hidden": 1, "other_file": 1}
    folder, *rest = manifest["skipped"]
    assert (folder["reason"], folder["detail"]) == ("unreadable_folder", "File name too long")
    assert rest == [
        {"path": "../in/.hidden.png", "reason": "hidden"},
        {"path": "../in/notes.txt", "reason": "other_file"},
    ]
    again = uncanny_here(*arguments, "--json")
    assert again.code == 1
    assert again.json()["skipped"] == manifest["skipped_counts"]
    assert len(again.json()["warnings"]) == 1


@pytest.mark.parametrize("command", ["annotate", "detect"])
def test_a_dry_run_says_the_same(command: str, unreadable: Path) -> None:
    (unreadable / "notes.txt").write_text("x")
    arguments = (command, unreadable, "--model", "noop", "--dry-run")
    done = uncanny_here(*arguments)
    assert done.code == 1
    assert "Warning: 1 folder that cannot be read" in done.told
    assert "Skipped  1 folder that cannot be read, 1 file that is not an image" in done.out
    found = uncanny_here(*arguments, "--json")
    assert found.code == 1
    assert found.json()["skipped"] == {"unreadable_folder": 1, "other_file": 1}


def test_an_audit_says_the_same_of_each_generator(unreadable: Path, tmp_path: Path) -> None:
    whole = pictures(tmp_path / "whole", 1)
    arguments: list[Any] = ["audit", f"a={unreadable}", f"b={whole}", "--model", "noop", "--repeats", "1"]
    arguments += ["-o", tmp_path / "audit", "--no-report", "--resamples", "0"]
    dry = uncanny_here(*arguments, "--dry-run")
    assert (dry.code, dry.told.count("Warning")) == (1, 1)
    assert dry.told.startswith("a: Warning: 1 folder that cannot be read")
    done = uncanny_here(*arguments)
    assert (done.code, done.told.count("Warning")) == (1, 1)
    assert "a: Warning: 1 folder that cannot be read" in done.told


def test_pairs_of_folders_say_the_same(unreadable: Path, tmp_path: Path) -> None:
    edited = pictures(tmp_path / "edited", 1)
    run = RealismRun(tmp_path / "run")
    arguments = ("realism", "run", "--original", unreadable, "--edited", edited, "--model", "demo")
    dry = uncanny_here(*arguments, "--dry-run")
    assert (dry.code, dry.told.count("Warning")) == (1, 1)
    assert "Skipped  1 folder" in dry.out
    done = uncanny_here(*arguments, "-o", run.path)
    assert (done.code, done.told.count("Warning")) == (1, 1)
    assert run.manifest()["skipped_counts"] == {"unreadable_folder": 1}


def test_no_images_at_all_names_what_is_there_instead(images: Path, tmp_path: Path) -> None:
    (images / "p00.png").rename(images / "p00.txt")
    done = uncanny_here("annotate", images, "--model", "noop", "-o", tmp_path / "run")
    assert done.code == 2
    assert "only 1 file that is not an image" in done.told


@pytest.mark.skipif(os.name == "nt", reason="names of that kind cannot be made there")
def test_names_that_look_alike_are_two_images(images: Path, run: Run) -> None:
    for name in (b"\\xff.png", b"\xff.png"):
        try:
            Path(os.fsdecode(os.fsencode(images) + b"/" + name)).write_bytes(encoded(picture(), "PNG"))
        except OSError:
            pytest.skip("the file system takes UTF-8 names only")
    arguments = ("annotate", images, "--model", "noop", "-o", run.path, "--no-report", "--json")
    for _ in range(2):
        done = uncanny_here(*arguments)
        assert (done.code, done.json()["totals"]["pending"], done.json()["totals"]["ok"]) == (0, 0, 3)
    names = [record.image for record in run.records()]
    assert names == [r"../in/\x5cxff.png", r"../in/\xff.png", "../in/p00.png"]


def test_a_dry_run_waits_for_no_pipe(images: Path) -> None:
    os.mkfifo(images / "pipe.png")
    done = uncanny_here("annotate", images, "--model", "noop", "--dry-run", "--json")
    assert (done.code, done.json()["unreadable"]) == (0, 1)


def test_skipped_inputs_of_a_large_folder_are_listed_in_part(images: Path, run: Run) -> None:
    for number in range(2_100):
        (images / f"{number:04d}.txt").touch()
    done = uncanny_here("annotate", images, "--model", "noop", "-o", run.path, "--no-report")
    assert (done.code, done.told) == (0, "")
    manifest = orjson.loads((run.path / "run.json").read_bytes())
    assert (len(manifest["skipped"]), manifest["skipped_counts"]) == (2_000, {"other_file": 2_100})
    assert "2,100 files that are not images" in done.out
