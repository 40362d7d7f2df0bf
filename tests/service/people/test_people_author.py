"""MCQ items written on a page: what is kept of a file, what is checked, and two authors at once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import orjson
import pytest
from starlette.testclient import TestClient

from tests.runs.e2e import uncanny_here
from tests.service.running import serving
from uncanny.errors import ReviewConflictError, UsageError
from uncanny.eval.mcq.data.checks import check
from uncanny.eval.mcq.data.export import export_table
from uncanny.eval.mcq.data.load import copy_scenes, load
from uncanny.eval.mcq.data.released import import_table
from uncanny.eval.mcq.data.texts import question_text
from uncanny.service.people.authoring import ItemsFile
from uncanny.service.people.mcq_pages import _as_fields, mcq_author_app
from uncanny.service.safety import Guard

ADDRESS = "http://127.0.0.1:8000"
OURS = {"Origin": ADDRESS}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = copy_scenes(tmp_path / "set")
    lines = path.read_bytes().splitlines()
    first = orjson.loads(lines[0]) | {"note": {"by": "ann"}, "draft": True}
    first["q2"]["source"] = "a book"
    path.write_bytes(b"\n".join([orjson.dumps(first), *lines[1:]]) + b"\n")
    return path


@pytest.fixture
def items(file: Path) -> ItemsFile:
    return ItemsFile(file, images=file.parent / "images")


@pytest.fixture
def client(items: ItemsFile) -> Iterator[TestClient]:
    app = Guard(mcq_author_app(items))
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as each:
        yield each


def fields_of(items: ItemsFile, place: int = 0) -> dict[str, Any]:
    return _as_fields(items.entries()[place].data or {})


def test_saving_what_is_there_changes_nothing(file: Path, items: ItemsFile) -> None:
    before = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    for place, entry in enumerate(items.entries()):
        items.save(entry.key, fields_of(items, place))
    assert [orjson.loads(line) for line in file.read_bytes().splitlines()] == before


def test_a_box_with_a_huge_number_is_shown(file: Path, client: TestClient) -> None:
    lines = file.read_bytes().splitlines()
    first = orjson.loads(lines[0])
    first["q3"]["boxes"]["A"][0] = 1e30
    file.write_bytes(b"\n".join([orjson.dumps(first), *lines[1:]]) + b"\n")
    assert str(int(1e30)) in client.get("/").text


def test_only_what_was_changed_is_written_and_unknown_keys_stay(file: Path, items: ItemsFile) -> None:
    lines = file.read_bytes().splitlines()
    fields = fields_of(items)
    fields["q2"]["A"] = "another place"
    fields["q3"]["B"] = [1, 2, 30, 40]
    fields["draft"] = False
    items.save(items.entries()[0].key, fields)
    after = file.read_bytes().splitlines()
    assert after[1:] == lines[1:]
    first, old = orjson.loads(after[0]), orjson.loads(lines[0])
    assert first["note"] == {"by": "ann"}
    assert first["q2"] == {**old["q2"], "options": {**old["q2"]["options"], "A": "another place"}}
    assert first["q3"]["boxes"] == {**old["q3"]["boxes"], "B": [1, 2, 30, 40]}
    assert "draft" not in first
    assert len(load(file)) == 34


def test_filled_in_prompts_of_an_exported_item_follow_its_options(file: Path, tmp_path: Path) -> None:
    table = export_table(load(file)[:2], out=tmp_path / "t.parquet")
    copied = import_table(table, out=tmp_path / "copied").file
    items = ItemsFile(copied)
    first = orjson.loads(copied.read_bytes().splitlines()[0])
    for draft in (False, True):  # nothing of it is in a prompt
        items.save(items.entries()[0].key, fields_of(items) | {"draft": draft})
        after = orjson.loads(copied.read_bytes().splitlines()[0])
        assert {**after, "draft": None} == {**first, "draft": None}
    fields = fields_of(items)
    fields["q2"]["A"] = "another place"
    items.save(items.entries()[0].key, fields)
    changed, other = load(copied)
    assert (changed.prompts, changed.prompts_id, changed.system) == (None, None, None)
    assert "another place" in question_text(changed, "q2")
    assert other.prompts is not None


def test_lines_that_are_no_items_stay_byte_for_byte(file: Path) -> None:
    odd = b'{"id": "half", "q2": 7}\n{broken\n[1]\n'
    file.write_bytes(odd + file.read_bytes())
    items = ItemsFile(file)
    assert [(each.id, each.errors > 0) for each in items.listed()[:4]] == [
        ("half", True),
        ("(no id)", True),
        ("(no id)", True),
        ("c01-ball-on-thread", False),
    ]
    items.save(items.entries()[5].key, fields_of(items, 5))
    assert file.read_bytes().startswith(odd)
    # One of them can be mended.
    items.save(items.entries()[0].key, fields_of(items, 4) | {"id": "whole"})
    assert orjson.loads(file.read_bytes().splitlines()[0])["id"] == "whole"


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "BOM"])
@pytest.mark.parametrize("last", [True, False], ids=["ended", "open"])
def test_blank_lines_and_line_ends_stay_byte_for_byte(
    end: bytes, mark: bytes, last: bool, file: Path
) -> None:
    lines = file.read_bytes().splitlines()[:4]
    spaced = [lines[0], b"", b"  \t", lines[1], b"{broken", b"", lines[2] + b"  ", lines[3]]
    file.write_bytes(mark + end.join(spaced) + (end + b" " + end if last else b""))
    before = file.read_bytes()
    items = ItemsFile(file)
    assert len(items.entries()) == 5
    # Changed and changed back, the whole file is as it was, but for how the one item was written.
    compact = orjson.dumps(orjson.loads(lines[3]))
    for draft in (True, False):
        items.save(items.entries()[4].key, fields_of(items, 4) | {"draft": draft})
    assert file.read_bytes() == before.replace(lines[3], compact)
    items.save(None, fields_of(items, 4) | {"id": "new"})
    after = file.read_bytes()
    start = before.replace(lines[3], compact) + (b"" if last else end)
    assert after.startswith(start)
    assert after.endswith(end)
    assert after[len(start) :].count(b"\n") == 1
    items.remove(items.entries()[5].key)
    assert file.read_bytes() == start
    items.remove(items.entries()[1].key)
    assert file.read_bytes() == start.replace(lines[1] + end, b"")


FOREIGN = {
    "a picture": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "a page": b"<html>\n<p>Notes</p>\n</html>\n",
    "one JSON document": b'{\n  "name": "x",\n  "split": "art_pg"\n}\n',
    "records": b'{"image": "a.png", "status": "ok", "anomalies": []}\n',
    "pairs": b'{"id": "a", "original": "a.png", "edited": "b.png"}\n',
    "lists and numbers": b"[1]\n7\n",
    "UTF-16": '{"id": "a", "split": "art_pg"}\n'.encode("utf-16"),
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_file_without_an_item_is_left_alone_unless_forced(
    content: bytes, tmp_path: Path, file: Path
) -> None:
    foreign = tmp_path / "foreign.jsonl"
    foreign.write_bytes(content)
    images = file.parent / "images"
    with pytest.raises(UsageError, match=r"foreign\.jsonl contains no item"):
        ItemsFile(foreign, images=images)
    assert foreign.read_bytes() == content
    done = uncanny_here("mcq", "author", foreign, "--images", images)
    assert done.code == 2
    assert "contains no item" in done.told
    assert "--force" in done.told
    items = ItemsFile(foreign, images=images, force=True)
    items.save(None, fields_of(ItemsFile(file)) | {"image": ""})
    assert foreign.read_bytes().startswith(content)


@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\n"])
def test_an_empty_file_is_begun(content: bytes, tmp_path: Path, file: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(content)
    items = ItemsFile(empty)
    items.save(None, fields_of(ItemsFile(file)) | {"image": ""})
    assert empty.read_bytes().startswith(content)
    assert len(ItemsFile(empty).entries()) == 1


def test_a_link_to_a_file_stays_a_link(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(file)
    items = ItemsFile(link, root=file.parent)
    items.save(items.entries()[0].key, fields_of(items) | {"pair_id": "by the link"})
    assert link.is_symlink()
    assert b"by the link" in file.read_bytes()


def test_two_authors_never_overwrite_each_other(file: Path, items: ItemsFile) -> None:
    other = ItemsFile(file)
    key = items.entries()[0].key
    theirs = fields_of(items) | {"pair_id": "theirs"}
    other.save(key, theirs)
    with pytest.raises(ReviewConflictError, match="Someone else has changed"):
        items.save(key, fields_of(items) | {"pair_id": "ours"})
    with pytest.raises(ReviewConflictError):
        items.remove(key)
    # Other items are not in each other's way.
    items.save(items.entries()[1].key, fields_of(items, 1) | {"pair_id": "x"})
    pairs = [orjson.loads(line).get("pair_id") for line in file.read_bytes().splitlines()]
    assert pairs[:2] == ["theirs", "x"]


@pytest.mark.slow
def test_checks_are_those_of_the_command(file: Path, items: ItemsFile) -> None:
    entry = next(each for each in items.entries() if (each.data or {}).get("split") == "art_pg")
    good = _as_fields(entry.data or {})
    assert [p for p in items.check(entry.key, good) if p.severity == "error"] == []
    wrongs: list[dict[str, Any]] = [
        good | {"split": "ref_real"},
        good | {"pair_id": ""},
        good | {"id": items.entries()[0].id},
        good | {"q1": ""},
        good | {"q2": good["q2"] | {"A": ""}},
        good | {"q2": good["q2"] | {"answer": ""}},
        good | {"q3": good["q3"] | {"C": None}},
        good | {"q3": good["q3"] | {"C": [0, 0, 90_000, 10]}},
        good | {"q4": good["q4"] | {"answer": "E"}},
    ]
    for wrong in wrongs:
        live = {(p.field, p.message) for p in items.check(entry.key, wrong) if p.severity == "error"}
        assert live
        trial = file.with_name("trial.jsonl")
        shutil.copy(file, trial)
        copy = ItemsFile(trial)
        copy.save(entry.key, wrong)
        said = {(p.field, p.message) for p in check(trial) if p.item == wrong["id"] and p.severity == "error"}
        # Of an id that is there twice the command names the line where it was before.
        assert {field for field, _ in live} == {field for field, _ in said}, (wrong, live, said)


def test_an_empty_id_is_called_so(items: ItemsFile) -> None:
    entry = items.entries()[0]
    found = items.check(entry.key, _as_fields(entry.data or {}) | {"id": ""})
    assert [(each.field, each.message) for each in found if each.severity == "error"] == [("id", "is empty")]


def test_an_item_and_its_partner_are_made_from_nothing_but_images(tmp_path: Path) -> None:
    scenes = copy_scenes(tmp_path / "scenes").parent / "images"
    items = ItemsFile(tmp_path / "mine.jsonl", images=scenes)
    first, second = items.unused()[:2]
    choice = {"A": "a", "B": "b", "C": "c", "D": "d", "answer": "B"}
    boxes = {letter: [n, n, n + 10, n + 10] for n, letter in enumerate("ABCD")}
    fields = {"id": "one", "image": first, "split": "art_pg", "pair_id": "p", "artifact_type": "count"}
    fields |= {"q1": "yes", "q2": choice, "q3": boxes | {"answer": "B"}, "q4": choice, "draft": False}  # type: ignore[dict-item]
    entry = items.save(None, fields)
    assert [problem.field for problem in items.problems(entry)] == ["pair_id"]
    partner = _as_fields(items.partner(entry))
    assert (partner["split"], partner["q1"], partner["q2"]["answer"]) == ("ref_pg", "", "E")
    items.save(None, partner | {"image": second})
    assert check(tmp_path / "mine.jsonl") == ()
    assert first not in items.unused()
    items.remove(items.entries()[1].key)
    assert len(items.entries()) == 1


def test_a_stored_drawing_of_other_boxes_is_let_go(file: Path) -> None:
    lines = file.read_bytes().splitlines()
    file.write_bytes(orjson.dumps(orjson.loads(lines[1]) | {"overlay": "images/drawn.png"}) + b"\n")
    items = ItemsFile(file)
    items.save(items.entries()[0].key, fields_of(items) | {"pair_id": "x"})
    assert orjson.loads(file.read_bytes())["overlay"] == "images/drawn.png"
    fields = fields_of(items)
    fields["q3"]["A"] = [0, 0, 9, 9]
    items.save(items.entries()[0].key, fields)
    assert "overlay" not in orjson.loads(file.read_bytes())


def test_images_are_those_that_were_offered_and_no_others(
    file: Path, items: ItemsFile, client: TestClient
) -> None:
    assert client.get("/image", params={"image": items.images[0]}).status_code == 200
    for image in ("/etc/passwd", "../set/items.jsonl", "images/../items.jsonl", "", "images/nothing.png"):
        assert client.get("/image", params={"image": image}).status_code == 404
        assert client.get("/size", params={"image": image}).json() is None
    body = {"key": items.entries()[0].key, "fields": fields_of(items) | {"image": "/etc/passwd"}}
    before = file.read_bytes()
    assert client.post("/save", json=body, headers=OURS).status_code == 400
    assert file.read_bytes() == before


def test_the_page_and_its_requests(file: Path, items: ItemsFile, client: TestClient) -> None:
    page = client.get("/").text
    assert "c01-ball-on-thread" in page
    assert client.get("/?new").status_code == 200
    key = items.entries()[0].key
    assert client.get(f"/?partner={key}").status_code == 200
    fields = fields_of(items)
    body: dict[str, Any] = {"key": key, "fields": fields | {"q1": ""}}
    problems = client.post("/check", json=body, headers=OURS).json()["problems"]
    assert ("q1", "error") in {(each["field"], each["severity"]) for each in problems}
    assert client.post("/save", json=body).status_code == 403
    saved = client.post("/save", json=body, headers=OURS).json()
    assert items.find(saved["key"]) is not None
    again = client.post("/save", json=body, headers=OURS)
    assert (again.status_code, "Someone else" in again.text) == (400, True)
    for wrong in ({"split": "other"}, {"q3": {"A": [1, 1, 0, 0]}}, {"more": 1}, {"id": "x" * 300}):
        odd = {"key": saved["key"], "fields": fields | wrong}
        assert client.post("/save", json=odd, headers=OURS).status_code == 422
    assert client.post("/remove", json={"key": saved["key"]}, headers=OURS).status_code == 200
    assert len(load(file)) == 33


@pytest.mark.slow
def test_what_an_item_says_is_never_obeyed(file: Path) -> None:
    script = "</script><script>document.title='owned'</script>"
    line = orjson.loads(file.read_bytes().splitlines()[0])
    line |= {"id": script, "q2": {"options": {"A": script, "B": 7}, "answer": script}, "image": script}
    file.write_bytes(orjson.dumps(line) + b"\n")
    with TestClient(Guard(mcq_author_app(ItemsFile(file))), base_url=ADDRESS) as client:
        page = client.get("/")
        assert page.status_code == 200
        assert "<script>document" not in page.text


def test_without_file_and_images_there_is_nothing_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        ItemsFile(tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match="cannot be an item file"):
        ItemsFile(tmp_path)


@pytest.mark.slow
def test_the_command_says_where_it_listens(file: Path) -> None:
    with serving("mcq", "author", str(file)) as address, urlopen(address) as page:
        assert b"c01-ball-on-thread" in page.read()
