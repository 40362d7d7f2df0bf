"""Reading annotations: what counts, what is left out, and what is refused."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.eval.audit.annotation_sets import anomaly, left_out, loaded, record, run_folder, written
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.common.inputs.sources import LeftOut, read_sources
from uncanny.schema import Annotation


def test_only_whole_annotations_count(tmp_path: Path) -> None:
    records = [
        record("a.png", [20, 50]),
        record("b.png"),
        left_out("c.png", "failed"),
        left_out("d.png", "partial"),
        left_out("e.png", "partial"),
        left_out("f.png", "unreadable"),
    ]
    (generator,) = loaded({"a": written(tmp_path / "a.jsonl", records)})
    assert list(generator.aggregate.counts) == [2, 0]
    assert list(generator.aggregate.severity_sums) == [70, 0]
    assert generator.aggregate.left_out == LeftOut(failed=1, partial=2, unreadable=1)
    assert sum(generator.aggregate.severities) == 2
    assert generator.aggregate.severities[20] == generator.aggregate.severities[50] == 1


def test_without_a_verdict_no_anomalies_were_asked_for(tmp_path: Path) -> None:
    records = [
        record("a.png", [20], source="generated"),
        record("b.png", source="real"),
        record("c.png", source=None),
    ]
    (generator,) = loaded({"a": written(tmp_path / "a.jsonl", records)})
    assert list(generator.aggregate.counts) == [1, 0]
    assert generator.aggregate.left_out == LeftOut(unclear=1)


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    without = anomaly(5)
    del without["severity"]
    first = [
        record("a.png", [101]),
        record("b.png", anomalies=[without]),
        record("c.png", anomalies=[anomaly(5) | {"severity": "20"}]),
        record("d.png"),
        record("d.png"),
        record("e.png", anomalies=[anomaly(5) | {"severity": 20.5}]),
    ]
    second = [record("a.png", [-1])]
    places = {"x": written(tmp_path / "x.jsonl", first), "y": written(tmp_path / "y.jsonl", second)}
    with places["y"].open("ab") as file:
        file.write(b"not json\n")
    with pytest.raises(ItemsError) as refused:
        loaded(places)
    message = str(refused.value)
    assert len(refused.value.problems) == 7
    for line, image, field, words in (
        (1, "a.png", "anomalies.0.severity", "less than or equal to 100"),
        (2, "b.png", "anomalies.0.severity", "is missing"),
        (3, "c.png", "anomalies.0.severity", "valid integer"),
        (5, "d.png", "image", "line 4"),
        (6, "e.png", "anomalies.0.severity", "valid integer"),
    ):
        (problem,) = [
            row for row in message.splitlines() if f"line {line}, item '{image}'" in row and "x.jsonl" in row
        ]
        assert field in problem
        assert words in problem
    assert "greater than or equal to 0" in message
    assert "line 2: " + str(places["y"]) in message


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_a_file_without_annotations_is_no_flawless_generator(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(UsageError, match="contains no annotations"):
        loaded({"a": tmp_path / "a.jsonl"})


def test_byte_order_mark_and_missing_last_newline_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + orjson.dumps(record("a.png", [7])))
    (generator,) = loaded({"a": file})
    assert list(generator.aggregate.counts) == [1]


def test_a_run_that_goes_on_is_read_as_far_as_it_is(tmp_path: Path) -> None:
    """The last of several records of an image stands, a line that is being written is left out."""
    records = [left_out("a.png", "failed"), record("b.png", [3]), record("a.png", [10])]
    run = run_folder(tmp_path / "run", records, state="running", totals={"images": 9, "pending": 7})
    with (run / "annotations.jsonl").open("ab") as file:
        file.write(b'{"image": "c.png", "sta')
    (generator,) = loaded({"a": run})
    assert list(generator.aggregate.severity_sums) == [3, 10]
    assert generator.aggregate.left_out.total == 0
    assert generator.notices == ("a: its run is not finished (running), 7 images are missing.",)


def test_a_finished_run_has_each_image_once(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run", [record("a.png"), record("a.png")])
    with pytest.raises(ItemsError, match="was there before, at line 1"):
        loaded({"a": run})


def test_an_image_twice_is_named_whatever_else_is_wrong_with_it(tmp_path: Path) -> None:
    wrong = record("a.png") | {"width": "wide"}
    file = tmp_path / "x.jsonl"
    lines = [wrong, record("b.png"), record("b.png") | {"status": "?"}, record("a.png")]
    file.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    with pytest.raises(ItemsError) as caught:
        loaded({"a": file})
    again = [
        (each.line, each.message.split(";")[0]) for each in caught.value.problems if each.field == "image"
    ]
    assert again == [
        (3, "the image was there before, at line 2"),
        (4, "the image was there before, at line 1"),
    ]


def test_a_runs_file_is_the_run(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run", [record("a.png")], root=str(tmp_path / "pictures"))
    (folder,), (file,) = loaded({"a": run}), loaded({"a": run / "annotations.jsonl"})
    assert folder.provenance == file.provenance
    assert file.source.kind == "run"
    assert file.aggregate.locate("a.png") == tmp_path / "pictures" / "a.png"


def test_pictures_of_a_file_are_beside_it_or_under_root(tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", [record("x/a.png", [9])])
    (generator,) = loaded({"a": file})
    assert [image.path for image in generator.aggregate.worst] == [tmp_path / "x/a.png"]
    (generator,) = loaded({"a": file}, root=tmp_path / "root")
    assert [image.path for image in generator.aggregate.worst] == [tmp_path / "root/x/a.png"]


def test_worst_images_and_frequent_names(tmp_path: Path) -> None:
    records = [
        record("mild.png", [90]),
        record("many.png", [50, 50, 50]),
        record("b.png", [0]),
        record("a.png", [0]),
        record("none.png"),
        record(
            "names.png",
            anomalies=[anomaly(99, "Six  Fingers"), anomaly(90, "odd knee"), anomaly(80, "odd knee")],
        ),
    ]
    (generator,) = loaded({"g": written(tmp_path / "a.jsonl", records)}, worst=3)
    assert [(image.image, image.u) for image in generator.aggregate.worst] == [
        ("many.png", 1.5),
        ("a.png", 1.0),
        ("b.png", 1.0),
    ]
    first, second = generator.aggregate.names
    assert (first.name, first.anomalies, first.images) == ("six fingers", 7, 5)
    assert (second.name, second.anomalies, second.images) == ("odd knee", 2, 1)
    assert second.u_mean == pytest.approx(0.15)
    (generator,) = loaded({"g": tmp_path / "a.jsonl"}, worst=0)
    assert generator.aggregate.worst == ()


def test_worst_first_within_an_image(tmp_path: Path) -> None:
    (generator,) = loaded({"g": written(tmp_path / "a.jsonl", [record("a.png", [70, 10, 40])])})
    assert [each.severity for each in generator.aggregate.worst[0].anomalies] == [10, 40, 70]


def test_pairing_by_file_name_or_column(tmp_path: Path) -> None:
    records = [record("s1/0001.png", [5], prompt=7), record("s2/0001.webp", prompt="7")]
    file = written(tmp_path / "a.jsonl", records)
    assert loaded({"g": file}, pair_by="stem")[0].aggregate.prompt_keys == ["0001", "0001"]
    assert loaded({"g": file}, pair_by="prompt")[0].aggregate.prompt_keys == ["7", "7"]
    written(file, [*records, record("c.png"), record("d.png", prompt=[1]), left_out("e.png", "failed")])
    with pytest.raises(ItemsError) as refused:
        loaded({"g": file}, pair_by="prompt")
    assert [problem.line for problem in refused.value.problems] == [3, 4]
    assert "line 3, item 'c.png', field prompt: is missing" in str(refused.value)


def test_a_place_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a: .*nowhere does not exist"):
        read_sources({"a": tmp_path / "nowhere"})
    with pytest.raises(UsageError, match="no bundled set 'painted'"):
        read_sources({"a": "scenes:painted"})


def test_kinds_of_sources(tmp_path: Path) -> None:
    file, run = written(tmp_path / "a.jsonl", []), run_folder(tmp_path / "run", [])
    (tmp_path / "images").mkdir()
    (tmp_path / "one.png").write_bytes(b"")
    sources = read_sources(
        {
            "a": file,
            "b": str(run),
            "c": tmp_path / "images",
            "d": "scenes",
            "FLUX.1 [dev]": "scenes:drawn",
            "e": [],
        }
    )
    kinds = ["file", "run", "images", "images", "images", "annotations"]
    assert [source.kind for source in sources] == kinds
    assert [source.style for source in sources] == [None, None, None, "scenes", "drawn", None]
    with pytest.raises(UsageError, match="single image"):
        read_sources({"a": tmp_path / "one.png"})


def test_annotations_in_memory_are_as_those_of_a_file(tmp_path: Path) -> None:
    records = [record("a.png", [20, 50], sha256="1" * 64), record("b.png"), left_out("c.png", "failed")]
    annotations = [Annotation.model_validate(each) for each in records]
    file = written(tmp_path / "a.jsonl", records)
    (of_file,), (in_memory,) = loaded({"a": file}, root=tmp_path), loaded({"a": annotations}, root=tmp_path)
    assert in_memory.source.path is None
    assert in_memory.aggregate.worst == of_file.aggregate.worst
    assert in_memory.aggregate.counts == of_file.aggregate.counts
    assert in_memory.provenance == of_file.provenance
    with pytest.raises(ItemsError, match=r"'b\.png', field image: the image was there before; keep one"):
        loaded({"a": [*annotations, annotations[1]]})
    with pytest.raises(UsageError, match="list 'a' contains no annotations"):
        loaded({"a": []})
