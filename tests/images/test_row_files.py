"""Pictures in the rows of Parquet and Arrow files: found, named, read, and wrong in many ways."""

from __future__ import annotations

import hashlib
import shutil
import struct
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from uncanny.demo.scenes import scenes
from uncanny.errors import ImageError, UsageError
from uncanny.images import file_bytes, row_readers
from uncanny.images.discover import discover
from uncanny.images.file_bytes import RecordedFile, changed_files, read_image_file, read_stamped
from uncanny.images.prepared import stored_size
from uncanny.images.row_files import saved_files
from uncanny.images.row_names import row_names
from uncanny.settings import Settings

FILES = [scene.image_path for scene in scenes()][:6]
PICTURES: list[dict[str, Any]] = [{"bytes": file.read_bytes(), "path": file.name} for file in FILES]
MOST = 10**9


def write(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, **options)
    return path


def save_to_disk(folder: Path, pictures: list[dict[str, Any]]) -> Path:
    """What `datasets` 5 writes, without its imports; `test_datasets_own_files` has the real one."""
    pa = import_module("pyarrow")
    folder.mkdir(parents=True)
    table = pa.table({"image": pictures, "label": list(range(len(pictures)))})
    with pa.ipc.new_stream(str(folder / "data-00000-of-00001.arrow"), table.schema) as stream:
        for batch in table.to_batches(max_chunksize=2):
            stream.write_batch(batch)
    (folder / "state.json").write_text('{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}')
    (folder / "cache-1234.arrow").write_bytes(b"of an earlier map()")
    return folder


def found(*paths: Path, column: str | None = None) -> tuple[Path, ...]:
    return discover(paths, rows=True, image_column=column).files


def fault(path: Path) -> ImageError:
    with pytest.raises(ImageError) as raised:
        read_image_file(path, MOST)
    return raised.value


def refusal(*paths: Path, column: str | None = None) -> str:
    with pytest.raises(UsageError) as raised:
        found(*paths, column=column)
    return str(raised.value)


def test_rows_are_images_in_files_folders_of_shards_and_saved_data_sets(tmp_path: Path) -> None:
    first = write(tmp_path / "hub/data/train-0.parquet", {"image": PICTURES[:4][::-1]}, row_group_size=1)
    write(tmp_path / "hub/data/train-1.parquet", {"image": PICTURES[4:]}, row_group_size=3)
    saved = save_to_disk(tmp_path / "saved/train", PICTURES)
    rows = found(tmp_path / "hub")
    names = [*(file.name for file in FILES[:4][::-1]), *(file.name for file in FILES[4:])]
    assert [path.name for path in rows] == names  # in the order of rows, not of names
    assert [path.parent.name for path in rows[3:5]] == ["train-0.parquet", "train-1.parquet"]
    assert found(first) == rows[:4] == found(first, rows[0], *rows[:4][::-1])
    assert [path.name for path in found(tmp_path / "saved")] == [file.name for file in FILES]
    for path in (*rows, *found(saved)):
        file = FILES[[each.name for each in FILES].index(path.name)]
        assert read_image_file(path, MOST) == file.read_bytes()
        assert stored_size(path) == stored_size(file)
    # Whoever does not ask for rows finds files, as before.
    assert not discover([tmp_path / "hub"]).files


def test_rows_are_read_in_any_order_and_by_many_at_once(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor
    from random import Random

    cells = [bytes([n % 251]) * (n + 1) for n in range(700)]
    file = write(tmp_path / "a.parquet", {"image": cells}, row_group_size=300)
    paths = list(found(file))
    assert [path.name for path in paths[:2]] == ["000000", "000001"]
    Random(0).shuffle(paths)
    with ThreadPoolExecutor(8) as threads:
        read = list(threads.map(lambda path: read_image_file(path, MOST), paths))
    assert read == [cells[int(path.name)] for path in paths]


def test_a_path_names_a_row_where_it_is_fit_to_and_no_other_row_is_called_so() -> None:
    own = ["a/b.png", "x.png", "x.png", None, "", "../up.png", "/home/me/z.png", "C:\\d\\w.png", "000003"]
    assert row_names(own, 9) == [
        "a/b.png", "000001", "000002", "000003", "000004", "000005", "z.png", "w.png", "000008",
    ]  # fmt: skip
    assert row_names([], 2) == ["000000", "000001"]


def test_of_several_columns_one_is_named(tmp_path: Path) -> None:
    after_bytes = [each["bytes"] for each in PICTURES[::-1]]
    columns = {"before": PICTURES, "after": after_bytes, "label": list(range(6))}
    file = write(tmp_path / "a.parquet", columns)
    assert "several columns of pictures: 'before', 'after'" in refusal(file)
    assert "'label' contains no pictures; the columns are 'before'" in refusal(file, column="label")
    assert "'x' is not there" in refusal(file, column="x")
    after = found(file, column="after")
    assert [path.relative_to(file).as_posix() for path in after[:2]] == ["after/000000", "after/000001"]
    assert read_image_file(after[0], MOST) == PICTURES[5]["bytes"]
    before = found(file, column="before")
    assert read_image_file(before[0], MOST) == PICTURES[0]["bytes"]
    assert before[0].relative_to(file).as_posix() == f"before/{FILES[0].name}"


def test_a_folder_with_image_files_is_one_of_images_and_its_tables_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "a/meta.parquet", {"image": PICTURES})
    write(tmp_path / "b/only.parquet", {"image": PICTURES[:1]})
    write(tmp_path / "b/words.parquet", {"text": ["a"]})
    shutil.copy(FILES[0], tmp_path / "a")
    both = discover([tmp_path / "a", tmp_path / "b"], rows=True)
    assert [path.name for path in both.files] == [FILES[0].name, FILES[0].name]
    assert both.skipped.counts == {"other_file": 2}


def test_a_row_says_what_is_wrong_with_it_and_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "beside.png").write_bytes(PICTURES[0]["bytes"])
    odd = [None, {"bytes": None, "path": "beside.png"}, {"bytes": None, "path": "../../etc/hosts"},
           {"bytes": None, "path": "a.parquet/000000"}, {"bytes": b""}, PICTURES[1]]  # fmt: skip
    paths = found(write(tmp_path / "a.parquet", {"image": odd}))
    assert read_image_file(paths[1], MOST) == PICTURES[0]["bytes"]
    assert read_image_file(paths[5], MOST) == PICTURES[1]["bytes"]
    assert fault(paths[0]).kind == "missing"
    assert "column 'image', contains no picture" in str(fault(paths[0]))
    assert [fault(path).kind for path in paths[2:5]] == ["missing", "missing", "empty"]
    assert fault(tmp_path / "a.parquet" / "nothing").kind == "missing"
    with pytest.raises(ImageError) as raised:
        read_image_file(paths[5], 10)
    assert raised.value.kind == "too_large"


def test_files_that_are_not_what_they_are_called(tmp_path: Path) -> None:
    whole = write(tmp_path / "in/a.parquet", {"image": PICTURES[:2]})
    cut = tmp_path / "in/cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-100])
    text = tmp_path / "text.parquet"
    text.write_bytes(b"image\nx.png\n" * 9)
    refused = refusal(Path("hf://datasets/somebody/something"))
    assert "hf://datasets/somebody/something: data sets" in refused
    assert "hf download" in refused
    nested = write(tmp_path / "nested.parquet", {"image": [[b"x"], [b"y"]], "n": [1, 2]})
    assert "cut.parquet cannot be read as Parquet" in refusal(cut)
    assert "cannot be read as Parquet" in refusal(text)
    assert "no column of pictures; the columns are 'image', 'n'" in refusal(nested)
    # In a folder the others go on, and the damaged one gets a record of its own.
    assert [path.name for path in found(tmp_path / "in")][-1] == "cut.parquet"
    assert fault(cut).kind == "damaged"
    assert "pass a row" in str(fault(whole)).lower()
    saved = save_to_disk(tmp_path / "saved", PICTURES)
    content = (saved / "data-00000-of-00001.arrow").read_bytes()
    (saved / "data-00000-of-00001.arrow").write_bytes(content[: len(content) // 2])
    assert fault(found(saved)[0]).kind == "damaged"
    (saved / "state.json").write_text(
        '{"_data_files": [{"filename": "cache-1234.arrow"}, {"filename": "b"}]}'
    )
    assert "is incomplete: b is missing" in refusal(saved)
    # Without it nothing tells rows from what an earlier call left in its cache.
    (saved / "state.json").write_text('{"_data_files": "data')
    assert "state.json does not say which files the data set has" in refusal(saved)


def test_a_damaged_page_costs_the_rows_behind_it_alone(tmp_path: Path) -> None:
    cells = [bytes([65 + n]) * 5_000 for n in range(6)]
    file = write(tmp_path / "a.parquet", {"image": cells}, row_group_size=3, compression="zstd")
    content = bytearray(file.read_bytes())
    at = content.index(b"\x28\xb5\x2f\xfd")  # the first page of the first row group
    content[at + 4 : at + 12] = b"\xff" * 8
    file.write_bytes(content)
    paths = found(file)
    assert {fault(path).kind for path in paths[:3]} == {"damaged"}
    assert read_image_file(paths[4], MOST) == cells[4]


def test_a_page_that_unpacks_to_far_more_than_pictures_do_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_readers, "_BOMB_BYTES", 2**20)
    cells = [bytes(2**20)] * 4
    file = write(tmp_path / "a.parquet", {"image": cells}, use_dictionary=False, compression="zstd")
    assert file.stat().st_size < 2**12
    assert fault(found(file)[0]).kind == "bomb"


def test_a_row_changed_where_its_bytes_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 10**10)
    file = write(tmp_path / "a.parquet", {"image": PICTURES[:3]})
    files = []
    for path in found(file):
        read = read_stamped(path, MOST)
        files.append(RecordedFile(path, hashlib.sha256(read.data).hexdigest(), read.stamp))
    assert None not in {each.stamp for each in files}
    assert not changed_files(files)
    other = {"bytes": PICTURES[4]["bytes"], "path": PICTURES[1]["path"]}
    write(file, {"image": [PICTURES[2], other]})  # in another order, one with other bytes, one gone
    assert changed_files(files) == {files[1]}


def test_without_pyarrow_it_is_asked_for_and_folders_of_images_need_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    (tmp_path / "a").mkdir()
    (tmp_path / "a/t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install -e '.[parquet]'" in refusal(tmp_path / "a")
    shutil.copy(FILES[0], tmp_path / "a")
    assert [path.name for path in found(tmp_path / "a")] == [FILES[0].name]


@pytest.mark.slow
def test_datasets_own_files(tmp_path: Path) -> None:
    import datasets

    own = datasets.Dataset.from_list([{"image": str(file), "label": 1} for file in FILES])
    own = own.cast_column("image", datasets.Image())
    own.save_to_disk(str(tmp_path / "saved"))
    datasets.DatasetDict({"train": own, "test": own.select([1])}).save_to_disk(str(tmp_path / "splits"))
    (tmp_path / "hub/data").mkdir(parents=True)
    with_bytes = own.with_format("arrow").map(datasets.table.embed_table_storage, batched=True)
    with_bytes.to_parquet(str(tmp_path / "hub/data/train-00000-of-00001.parquet"))
    own.to_parquet(str(tmp_path / "names.parquet"))
    # Which names files of this machine: whoever made it elsewhere could have any sent to a model.
    assert "`save_to_disk`" in str(fault(found(tmp_path / "names.parquet")[0]))
    for folder, count in (("saved", 6), ("splits", 7), ("hub", 6)):
        rows = found(tmp_path / folder)
        assert len(rows) == count
        for path in rows:
            assert read_image_file(path, MOST) == (FILES[0].parent / path.name).read_bytes()


def test_offsets_that_lead_out_of_an_arrow_file_are_damage_not_a_crash(tmp_path: Path) -> None:
    pa = import_module("pyarrow")
    file = tmp_path / "a.arrow"
    table = pa.table({"image": [b"x" * 1000, b"y" * 1000]})
    with pa.ipc.new_file(str(file), table.schema) as out:
        out.write_table(table)
    content, offsets = file.read_bytes(), struct.pack("<3i", 0, 1000, 2000)
    assert offsets in content
    file.write_bytes(content.replace(offsets, struct.pack("<3i", 0, 2**30, 2000)))
    assert "cannot be read as Arrow" in refusal(file)


def test_a_null_in_the_name_of_a_saved_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"_data_files": [{"filename": "a\\u0000b.arrow"}]}')
    with pytest.raises(UsageError, match="does not say which files"):
        saved_files(tmp_path)


@pytest.mark.parametrize("within", [False, True], ids=["setting", "within"])
def test_whether_a_table_lies_elsewhere_is_not_told(
    within: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    table = write(outside / "there.parquet", {"image": PICTURES})
    (outside / "damaged.parquet").write_bytes(b"PAR1")
    (outside / "damaged.arrow").write_bytes(b"ARROW1")
    (inside / "link.parquet").symlink_to(table)
    allowed = (inside.resolve(),)
    if not within:
        monkeypatch.setattr(file_bytes, "settings", lambda: Settings(folders=allowed))
        monkeypatch.setattr("uncanny.settings.settings", lambda: Settings(folders=allowed))
    names = ("there.parquet", "damaged.parquet", "damaged.arrow", "none.parquet", "none.arrow")
    errors = []
    for path in (*(outside / name for name in names), inside / "link.parquet"):
        with pytest.raises(ImageError) as caught:
            read_stamped(path / "000000", MOST, allowed if within else None)
        errors.append((caught.value.message, caught.value.kind, caught.value.remedy))
    assert set(errors) == {("the file lies in no folder that may be read", "permission", None)}
