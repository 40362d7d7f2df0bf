"""A folder of odd and broken files through a whole run."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tests.images.odd_files import make_odd_folder
from tests.runs.e2e import Run, check_no_traceback, serving, uncanny, uncanny_here
from uncanny.wording import display_path

# A host that makes errors of warnings reads the same pictures.
pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.slow
def test_every_file_fares_as_expected(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "in"
    expected = {
        display_path(Path(name)): (name, want)
        for name, want in make_odd_folder(folder).items()
        if want.outcome != "not_discovered"
    }
    assert sum(want.outcome == "unreadable" for _, want in expected.values()) >= 30
    with serving(objects=1) as server:  # vLLM has no limits of its own on images
        arguments = ("annotate", folder, *server.asked("vllm"), "--repeats", "1", "-o", run.path)
        done = uncanny_here(*arguments, "--root", folder)
        asked = server.requests()
        again = uncanny_here(*arguments, "--root", folder, "--keep-failed", "-q")
        assert server.requests() == asked
    check_no_traceback(done)
    assert (done.code, again.code) == (1, 1)
    records = {record.image: record for record in run.records()}
    assert records.keys() == expected.keys()
    wrong = []
    for image, (name, want) in expected.items():
        record = records[image]
        kinds = [error.kind for error in record.errors]
        good = record.status == want.outcome and kinds == ([want.kind] if want.kind else [])
        if want.outcome == "ok" and want.changes is not None and good:
            assert record.pixels is not None
            good = record.pixels.changes == want.changes and (record.pixels.sent is None) == (
                not want.changes
            )
            digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
            good = good and record.sha256 == digest
        if not good:
            wrong.append((image, want, record.status, kinds, record.pixels))
    assert wrong == []
    unreadable = [record for record in records.values() if record.status == "unreadable"]
    assert all(record.errors[0].agent == "image" and record.errors[0].message for record in unreadable)
    manifest = run.manifest()
    assert manifest["state"] == "finished"
    assert manifest["totals"]["unreadable"] == len(unreadable)
    assert done.told == ""


@pytest.mark.slow
def test_good_images_are_sent_byte_for_byte(tmp_path: Path, run: Run) -> None:
    """The server makes its answers up from the digest of what it was sent: same bytes, same answers."""
    folder = tmp_path / "in"
    expected = make_odd_folder(folder)
    names = [name for name, want in expected.items() if want.changes == () and "/" not in name]
    copies = tmp_path / "copies"
    copies.mkdir()
    for number, name in enumerate(names):
        (copies / f"{number}.png").write_bytes((folder / name).read_bytes())
    with serving(objects=1) as server:
        arguments = ("annotate", copies, *server.asked("vllm"), "--repeats", "1", "-o", run.path)
        done = uncanny_here(*arguments, "-q")
    assert done.code == 0
    tones = {}
    for record in run.records():
        assert record.sha256 is not None
        assert record.pixels is not None
        assert (record.pixels.changes, record.pixels.sent) == ((), None)
        tones[record.sha256] = record.objects[0].description
    for digest, description in tones.items():
        assert f"tone {bytes.fromhex(digest)[7]} " in description
    assert len(set(tones.values())) > 10


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="names of that kind cannot be made there")
def test_odd_names_survive_in_output(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "in"
    make_odd_folder(folder)
    done = uncanny("annotate", folder, "--model", "noop", "-o", run.path, "--json", "--no-report")
    check_no_traceback(done)
    assert done.code == 1
    listed = {failure["image"] for failure in done.json()["failures"]}
    assert listed == {record.image for record in run.records() if record.status != "ok"}
