"""A run folder from somebody else: nothing in it has a file outside of it written, deleted, shown or sent."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
from PIL import Image

from tests.runs.e2e import Done, Run, Server, check_no_traceback, pictures, serving, uncanny_here
from uncanny.errors import UsageError
from uncanny.records.reviews import ReviewLog

pytestmark = pytest.mark.slow

FILES = (
    ".lock", "run.json", "annotations.jsonl", "calls.jsonl", "spending.jsonl", "others.jsonl", "vllm.log",
    "answers/answers.db", "answers/pending-1.lock", "answers/pending-1.0",
)  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(objects=1) as server:
        yield server


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return pictures(tmp_path / "in", 2)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_text("precious\nlast line without an end")
    return path


def command(images: Path, server: Server, run: Run) -> list[object]:
    return ["annotate", images, *server.asked(), "-o", run.path]


def check_refused(done: Done, *words: str) -> None:
    check_no_traceback(done)
    assert (done.code, done.out, len(done.told.splitlines())) == (2, "", 1), done
    for word in words:
        assert word in done.told


@pytest.mark.parametrize("name", FILES)
def test_links_to_other_files_are_refused(
    name: str, server: Server, images: Path, run: Run, victim: Path
) -> None:
    arguments = command(images, server, run)
    assert uncanny_here(*arguments, "--limit", "1").code == 0
    (run.path / name).unlink(missing_ok=True)
    (run.path / name).symlink_to(victim)
    asked = server.requests()
    check_refused(uncanny_here(*arguments), f"{name} is a link to {victim}", "never reached through links")
    assert victim.read_text() == "precious\nlast line without an end"
    assert server.requests() == asked


# It is replaced, not written to.
@pytest.mark.parametrize("name", sorted({*FILES} - {"run.json"}))
def test_files_with_another_name_elsewhere_are_not_written_to(
    name: str, server: Server, images: Path, run: Run, victim: Path
) -> None:
    arguments = command(images, server, run)
    assert uncanny_here(*arguments, "--limit", "1").code == 0
    (run.path / name).unlink(missing_ok=True)
    (run.path / name).hardlink_to(victim)
    asked = server.requests()
    check_refused(uncanny_here(*arguments), f"{name} has another name", "hard link", "Put a copy of it")
    assert victim.read_text() == "precious\nlast line without an end"
    assert server.requests() == asked


def test_a_backup_by_hard_links_is_read_and_not_written_to(
    server: Server, images: Path, run: Run, tmp_path: Path
) -> None:
    arguments = command(images, server, run)
    assert uncanny_here(*arguments, "--limit", "1").code == 0
    backup = tmp_path / "backup"
    shutil.copytree(run.path, backup, copy_function=os.link)
    before = (backup / "annotations.jsonl").read_bytes()
    assert uncanny_here("report", backup, "-o", tmp_path / "page.html").code == 0
    check_refused(uncanny_here(*arguments), "has another name")
    assert (backup / "annotations.jsonl").read_bytes() == before


@pytest.mark.parametrize("name", ["reviews.jsonl", ".reviews.lock"])
@pytest.mark.parametrize("link", [Path.hardlink_to, Path.symlink_to])
def test_reviews_are_not_written_through_links(
    name: str, link: Callable[[Path, Path], None], server: Server, images: Path, run: Run, victim: Path
) -> None:
    assert uncanny_here(*command(images, server, run)).code == 0
    link(run.path / name, victim)
    with pytest.raises(UsageError, match="link"):
        ReviewLog.of_run(run.path).append([])
    assert victim.read_text() == "precious\nlast line without an end"


@pytest.mark.parametrize(("name", "task"), [("answers", "annotate"), ("overlays", "mcq")])
def test_links_to_other_folders_are_refused(
    name: str, task: str, server: Server, images: Path, run: Run
) -> None:
    other = images.parent / "other"
    other.mkdir()
    run.path.mkdir()
    (run.path / name).symlink_to(other)
    words = command(images, server, run)
    if task == "mcq":
        words = ["mcq", "run", "scenes", "-m", "demo", "-o", run.path]
    check_refused(uncanny_here(*words), f"{name} is a link to {other}")
    assert not list(other.iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("name", ["run.json", "annotations.jsonl", "calls.jsonl", ".lock"])
def test_nobody_waits_at_a_pipe(name: str, server: Server, images: Path, run: Run) -> None:
    run.path.mkdir()
    os.mkfifo(run.path / name)
    check_refused(uncanny_here(*command(images, server, run)), f"{name} is no file")


def test_what_only_reads_a_run_does_not_follow_links_either(
    server: Server, images: Path, run: Run, tmp_path: Path
) -> None:
    assert uncanny_here(*command(images, server, run)).code == 0
    records = tmp_path / "elsewhere.jsonl"
    shutil.move(run.path / "annotations.jsonl", records)
    (run.path / "annotations.jsonl").symlink_to(records)
    for arguments in (
        ("report", run.path),
        ("semantic", run.path, "--truth", records, "--similarity", "chrf"),
        ("audit", f"a={run.path}", f"b={run.path}"),
        ("mcq", "build", run.path, "-o", tmp_path / "items.jsonl"),
    ):
        check_refused(uncanny_here(*arguments), "annotations.jsonl is a link to")


def test_a_temporary_name_that_is_a_link_is_not_written_through(
    server: Server, images: Path, run: Run, victim: Path
) -> None:
    run.path.mkdir()
    for name in ("run.json", "report.html", "annotations.jsonl"):
        (run.path / f".{name}.{os.getpid()}.tmp").symlink_to(victim)
    (run.path / "report.html").symlink_to(victim)
    assert uncanny_here(*command(images, server, run), "--force").code == 0
    assert victim.read_text() == "precious\nlast line without an end"
    assert not (run.path / "report.html").is_symlink()


def private(folder: Path) -> Path:
    """A picture that the owner of this machine would not give away."""
    folder.mkdir()
    Image.new("RGB", (64, 64), (200, 30, 30)).save(folder / "private.png")
    return folder / "private.png"


@pytest.mark.parametrize("sha256", [None, "0" * 64])
def test_the_page_shows_no_picture_but_those_that_were_judged(
    sha256: str | None, server: Server, images: Path, run: Run, tmp_path: Path
) -> None:
    assert uncanny_here(*command(images, server, run)).code == 0
    page = run.path / "report.html"
    # Each picture in two sizes, and the place of its finding.
    assert page.read_text().count("data:image/webp") == 6
    secret = private(tmp_path / "home")
    path = run.path / "annotations.jsonl"
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    lines[0] |= {"image": f"../{secret.relative_to(tmp_path)}", "sha256": sha256}
    lines[1] |= {"image": str(secret), "sha256": sha256}
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    assert uncanny_here("report", run.path).code == 0
    assert "data:image/webp" not in page.read_text()
    done = uncanny_here("audit", f"a={run.path}", f"b={run.path}", "--report", tmp_path / "audit.html")
    check_no_traceback(done)
    assert "data:image/webp" not in (tmp_path / "audit.html").read_text()


@pytest.mark.parametrize(
    ("protocol", "folder", "file", "keys"),
    [
        ("mcq run", "items", "items.jsonl", ("image",)),
        ("mcq run", "items", "items.jsonl", ("overlay",)),
        ("realism run", "pairs", "pairs.jsonl", ("original", "edited")),
    ],
)
def test_a_bundled_set_that_names_other_files_is_not_asked_about(
    protocol: str,
    folder: str,
    file: str,
    keys: tuple[str, ...],
    server: Server,
    run: Run,
    tmp_path: Path,
) -> None:
    arguments = [*protocol.split(), "scenes", *server.asked(), "-o", run.path]
    assert uncanny_here(*arguments, "--limit", "1").code == 0
    path = run.path / folder / file
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    for key in keys:
        lines[3][key] = os.path.relpath(private(tmp_path / key), path.parent)
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    asked = server.requests()
    check_refused(uncanny_here(*arguments), f"{path} names ", "private.png", "not the bundled set")
    assert server.requests() == asked


@pytest.mark.parametrize("protocol", ["detect", "mcq run", "realism run", "audit", "demo"])
def test_pictures_are_not_copied_over_links_nor_asked_about_through_them(
    protocol: str, server: Server, run: Run, tmp_path: Path
) -> None:
    secret = private(tmp_path / "home")
    model = server.asked() if protocol != "demo" else ()
    what = {"demo": [], "audit": ["a=scenes"]}.get(protocol, ["scenes"])
    arguments = [*protocol.split(), *what, *model, "-o", run.path]
    inner = {"mcq run": "items/images", "realism run": "pairs/original", "audit": "a/images"}
    folder = run.path / inner.get(protocol, "images")
    folder.mkdir(parents=True)
    (folder / "zz.png").symlink_to(secret)
    asked = server.requests()
    check_refused(uncanny_here(*arguments), "zz.png is a link to")
    (folder / "zz.png").unlink()
    folder.rmdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    folder.symlink_to(outside)
    check_refused(uncanny_here(*arguments), f"{folder.name} is a link to")
    assert not list(outside.iterdir())
    assert server.requests() == asked


def test_items_in_a_run_bring_no_other_pictures_into_its_page(
    server: Server, run: Run, tmp_path: Path
) -> None:
    assert uncanny_here("mcq", "run", "scenes", *server.asked(), "-o", run.path).code == 0
    assert uncanny_here("report", run.path).code == 0
    path = run.path / "items" / "items.jsonl"
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    lines[0]["image"] = os.path.relpath(private(tmp_path / "home"), path.parent)
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    check_refused(uncanny_here("report", run.path), "private.png", "uncanny mcq score")


def test_a_review_that_is_none_is_named(server: Server, images: Path, run: Run, tmp_path: Path) -> None:
    assert uncanny_here(*command(images, server, run)).code == 0
    (run.path / "reviews.jsonl").write_text('{"image": "x"}\n{"image": 5}\n')
    done = uncanny_here("mcq", "build", run.path, "-o", tmp_path / "items.jsonl")
    check_refused(done, "reviews.jsonl:2, field 'image'")
