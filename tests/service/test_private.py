"""What only whoever runs the service may see: its database, where things lie, and no words of strangers."""

from __future__ import annotations

import logging
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.api.conftest import API
from tests.service.jobs.working import ended, working
from tests.service.made_jobs import client_of
from uncanny.service.folders import without_paths
from uncanny.service.jobs.folder import end_of_log
from uncanny.service.service import Service

pytestmark = pytest.mark.slow

NAMED = {Path("/srv/photos"): "photos", Path("/var/data"): "", Path("/var/data/jobs/job_a"): ""}


def test_the_database_is_its_owners_alone(tmp_path: Path) -> None:
    def rights() -> dict[str, int]:
        files = (tmp_path / "data").glob("service.db*")
        return {file.name: stat.S_IMODE(file.stat().st_mode) for file in files}

    for _ in range(2):
        with Service.open(tmp_path / "data") as service:
            if not service.tokens.any():
                service.tokens.add("ann", "reader")
            assert set(rights()) == {"service.db", "service.db-wal", "service.db-shm"}
            assert set(rights().values()) == {0o600}
        # As a copy of a backup may be.
        (tmp_path / "data" / "service.db").chmod(0o644)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("/srv/photos/a/b.jpg: cannot be read", "photos/a/b.jpg: cannot be read"),
        ("Is '/srv/photos/a b.jpg' there?", "Is 'photos/a b.jpg' there?"),
        ("/srv/photos is empty", "photos is empty"),
        ("in /var/data/jobs/job_a/run/run.json.", "in run/run.json."),
        ("in /var/data/images/set_a/a.png, too", "in images/set_a/a.png, too"),
        ('File "/usr/lib/python3.11/json/decoder.py", line 3', 'File "decoder.py", line 3'),
        ("/srv/photos2/secret/b.jpg", "b.jpg"),
        ("(/home/ann/key.pem)", "(key.pem)"),
        ("at https://example.org/v1/chat and run/a.jsonl or and/or 1/2", None),
        ("names ../../photos/a.jpg and a/b/c", None),
    ],
)
def test_words_for_readers_name_paths_from_roots_on(words: str, shown: str | None) -> None:
    assert without_paths(words, NAMED) == (words if shown is None else shown)


SPACED = {
    Path("/srv/un canny/data"): "",
    Path("/srv/un canny/data/roots"): "",
    Path("/srv/un canny/data/jobs/job_a"): "",
    Path("/srv/un canny/my (old) photos"): "my (old) photos",
    Path("/"): "root",
}


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("/srv/un canny/data/jobs/job_a/run is locked", "run is locked"),
        ("in '/srv/un canny/data/jobs/job_b/run/run.json'.", "in 'jobs/job_b/run/run.json'."),
        ("/srv/un canny/data/roots/my (old) photos/a b.jpg: gone", "my (old) photos/a b.jpg: gone"),
        ("/srv/un canny/my (old) photos/in/a b.jpg", "my (old) photos/in/a b.jpg"),
        ("/srv/un canny/my (old) photos, /srv/un canny/data, too", "my (old) photos, ., too"),
        ("(/srv/un canny/data)", "(.)"),
        ("wrapped: /srv/un\n  canny/data/images/a.png", "wrapped: images/a.png"),
        ("DATA=/srv/un canny/data/x:/srv/un canny/data/y", "DATA=x:y"),
        ("/usr/lib:/srv/un canny/data/x:/home/ann/y", "lib:x:y"),
        ("file:///srv/un canny/data/x.parquet", "file://x.parquet"),
        ("at https://srv/un canny/data/x and a/srv/un canny/data", None),
        ("names / and 1/2", None),
    ],
)
def test_a_folder_with_a_space_in_its_path_is_not_told_either(words: str, shown: str | None) -> None:
    assert without_paths(words, SPACED) == (words if shown is None else shown)


@pytest.mark.parametrize(
    "words", ["/srv/un canny/data2/x", "/srv/un canny/data-old/x", "/srv/un canny/data.b/x"]
)
def test_a_folder_beside_one_is_not_taken_for_it(words: str) -> None:
    assert without_paths(words, SPACED) == "un canny/" + words.removeprefix("/srv/un canny/")


@given(st.text(), st.text())
def test_no_words_fail_and_no_folder_is_told_among_them(before: str, after: str) -> None:
    said = without_paths(f"{before} /srv/un canny/data/jobs/job_a{after}", SPACED)
    assert "/srv/un canny/data/jobs/job_a" not in said.removeprefix(before)


@given(st.text())
def test_no_words_fail_and_a_path_among_them_is_never_whole(words: str) -> None:
    assert "/srv/other/secret" not in without_paths(f"{words} /srv/other/secret {words}", NAMED)


def test_a_job_that_fails_does_not_say_where_things_lie(tmp_path: Path) -> None:
    root = tmp_path / "server" / "photos"
    root.mkdir(parents=True)
    (root / "items.jsonl").write_text("{}\n")
    with Service.open(tmp_path / "data", roots=[root]) as service:
        job = service.submit("mcq", {"items": str(root / "items.jsonl"), "model": "demo"}, by="ann")
        with working(service):
            job = ended(service, job)
        log = end_of_log(service.job_folder(job.id), 100_000)[0]
        assert job.state == "failed"
        for words in (job.error or "", log, client_of(service).get(f"{API}/jobs/{job.id}").json()["error"]):
            assert "photos/items.jsonl" in words
            assert str(tmp_path) not in words


def test_a_library_does_not_write_what_clients_send_to_the_log(service: Service) -> None:
    client, kind = client_of(service), "multipart/form-data; boundary=x"
    written: list[logging.LogRecord] = []

    class Log(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append(record)

    log = Log()
    logging.getLogger().addHandler(log)
    try:
        for body in (b"--x\r\nmine: \x01\r\n\r\n", b"--y mine", b"--x--\r\nmine mine", b"--x\r\n\xff: mine"):
            answer = client.post(f"{API}/images", content=body, headers={"content-type": kind})
            assert answer.status_code in (400, 422)
    finally:
        logging.getLogger().removeHandler(log)
    assert not [each.getMessage() for each in written if each.name.startswith("python_multipart")]
