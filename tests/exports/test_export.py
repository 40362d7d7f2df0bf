"""What goes out of a run and what does not, where it goes, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Literal, get_args

import orjson
import pytest

import uncanny
from tests.bundled_runs import BundledRuns
from tests.exports.made_runs import AT, anomaly, judge, make_run, write_records
from uncanny.cli import main
from uncanny.demo.scenes import scenes
from uncanny.errors import RecordError, UsageError
from uncanny.exports.data import split_of
from uncanny.exports.formats import FORMATS, READ_NAMES, FormatName
from uncanny.records.reviews import ReviewLog, new_review
from uncanny.schema import Annotation

PAIRS = sorted({each.pair_id for each in scenes() if each.pair_id is not None})


def names(run: Path, out: Path, **options: Any) -> list[list[str]]:
    """Names of the anomalies that go out, by image."""
    file = uncanny.export(run, to="jsonl", out=out, force=True, **options).files["jsonl"]
    return [[each["name"] for each in orjson.loads(line)["anomalies"]] for line in file.open("rb")]


def command(*arguments: object) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(each) for each in arguments])
    return int(end.value.code or 0)


def test_every_form_is_named_where_it_is_chosen() -> None:
    assert set(FORMATS) == set(get_args(FormatName))
    assert set(READ_NAMES) == {*(name for name, each in FORMATS.items() if each.reads), "reviews"}
    modules = {
        path.stem
        for path in Path(str(sys.modules["uncanny.exports.formats"].__file__)).parent.glob("[a-z]*.py")
    }
    assert modules == {each.module for each in FORMATS.values()}


def test_verified_anomalies_go_out_and_others_when_asked_for(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.jsonl"
    assert names(run, out) == [["Six fingers", "=1+1"], ["Two moons"]]
    assert names(run, out, all=True) == [["Six fingers", "=1+1"], ["Two moons", "Bent wall"], ["No shadow"]]
    record = Annotation.model_validate_json((run / "annotations.jsonl").read_bytes().splitlines()[2])
    judge(run, record, "ann", "reject")
    assert names(run, out) == [["Six fingers", "=1+1"], ["Two moons"], []]
    assert names(run, out, all=True)[2] == []
    assert names(run, out, all=True, rejected=True)[2] == ["No shadow"]
    judge(run, record, "bob", "accept")  # a tie is unsure
    assert names(run, out)[2] == []
    assert names(run, out, all=True)[2] == ["No shadow"]


def test_edits_and_added_anomalies_go_out(run: Path, tmp_path: Path) -> None:
    record = Annotation.model_validate_json((run / "annotations.jsonl").read_bytes().splitlines()[2])
    better = record.anomalies[0].model_copy(update={"name": "Better", "box": (5, 5, 9, 9)})
    ReviewLog.of_run(run).append(
        [
            new_review(record, 0, record.anomalies[0], "ann", "accept", version=better, at=AT),
            new_review(record, 1, None, "ann", "accept", version=anomaly("Missed"), at=AT),
        ]
    )
    file = uncanny.export(run, to="jsonl", out=tmp_path / "x.jsonl").files["jsonl"]
    exported = orjson.loads(file.read_bytes().splitlines()[2])["anomalies"]
    assert [(each["name"], each["box"], each["index"]) for each in exported] == [
        ("Better", [5, 5, 9, 9], 0),
        ("Missed", None, 1),
    ]
    assert [(each["review"]["edited"], each["review"]["added"]) for each in exported] == [
        (True, False),
        (False, True),
    ]


def test_what_is_left_out_is_counted_and_agreement_told(run: Path, tmp_path: Path) -> None:
    result = uncanny.export(run, to="csv", out=tmp_path / "x.csv")
    assert result.images_left_out == {"unreviewed": 1}
    assert result.anomalies_left_out == {"unreviewed": 2}
    assert (result.agreement.units, result.agreement.judgements) == (2, 6)
    assert "Left out, images: 1 unreviewed." in str(result)
    assert orjson.loads(orjson.dumps(result.to_json()))["left_out"]["images"] == {"unreviewed": 1}


def test_all_reviewers_may_have_to_agree(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.jsonl"
    record = Annotation.model_validate_json((run / "annotations.jsonl").read_bytes().splitlines()[0])
    judge(run, record, "bob", None, "accept")
    # Ann and Bob accept the first, Eve does not; all three accept the second. Too few judged another
    # image, which is left out: nobody said that it is flawless.
    assert names(run, out, agree="all", least_verdicts=3) == [["=1+1"]]
    assert names(run, out, least_verdicts=3) == [["Six fingers", "=1+1"]]
    result = uncanny.export(run, to="jsonl", out=out, agree="all", all=True)
    first = orjson.loads(result.files["jsonl"].read_bytes().splitlines()[0])["anomalies"][0]
    assert (first["review"]["decision"], first["review"]["rating"]) == ("unsure", pytest.approx(2 / 3))
    assert result.to_json()["rule"] == {"agree": "all", "least_verdicts": 1}
    assert "accepted by all of its reviewers, with 1 verdict or more" in str(result)
    agreed = result.to_json()["agreement"]
    assert agreed["mean_rating"] == pytest.approx(5 / 6)
    assert agreed["ratings"] == {"0": 0, "0 to 0.5": 0, "0.5": 0, "0.5 to 1": 1, "1": 1}
    assert "Their mean rating, from 0 (reject) to 1 (accept), is 0.83." in str(result)
    # What nobody changed is not a verdict when it comes back.
    before = (run / "reviews.jsonl").read_bytes()
    uncanny.import_reviews(out, run=run, reviewer="dan")
    assert (run / "reviews.jsonl").read_bytes() == before


def test_names_of_reviewers_stay_in_the_run(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    everything = [name for name in FORMATS if name != "hf"]
    make_calls(run)
    uncanny.export(run, to=everything, out=out, all=True, rejected=True, source="generated")
    for file in out.rglob("*"):
        if file.is_file() and file.suffix in (".jsonl", ".json", ".csv", ".xml"):
            assert not {b"ann", b"bob", b"eve"} & set(file.read_bytes().replace(b'"', b" ").split()), file


def make_calls(run: Path) -> None:
    (run / "calls.jsonl").write_bytes(
        orjson.dumps(
            {"image": "photos/b.png", "agent": "SceneScanner", "step": 1, "asked": "?", "answer": "!"}
        )
        + b"\n"
    )


def test_failed_and_unreadable_images_stay_out(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    records = make_run(run, [(f"{number}.png", [anomaly("x")]) for number in range(3)])
    broken = {"status": "unreadable", "sha256": None, "width": None, "height": None, "anomalies": ()}
    write_records(
        run,
        [
            records[0],
            records[1].model_copy(update={"status": "failed"}),
            records[2].model_copy(update=broken),
        ],
    )
    result = uncanny.export(run, to="csv", out=tmp_path / "x.csv", all=True)
    assert (result.images, result.images_left_out) == (1, {"failed": 1, "unreadable": 1})


def test_a_side_depends_on_the_picture_alone() -> None:
    digests = [f"{number:064x}" for number in range(4_000)]
    halves = [split_of(digest, 0.5) for digest in digests]
    assert 1_850 < halves.count("test") < 2_150
    assert halves[:6] == [split_of(digest, 0.5) for digest in digests[:6]]
    tenth = {digest for digest in digests if split_of(digest, 0.1) == "test"}
    assert tenth < {digest for digest, side in zip(digests, halves, strict=True) if side == "test"}
    assert {split_of(digest, 0) for digest in digests} == {"train"}
    assert {split_of(digest, 1) for digest in digests} == {"test"}
    # Data sets that are out there stay as they are: these are the sides of before.
    assert "".join(side[1] for side in halves[:12]) == "rererrrreeee"


def test_lists_over_the_limit_become_several_chats_in_an_order_of_their_own(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    many = [anomaly(f"number {number}") for number in range(20)]
    make_run(run, [("a.png", many), ("b.png", many)])

    def chats(**options: Any) -> list[dict[str, Any]]:
        options = {"chat": "tags", "test_fraction": 0, "max_tokens": 100, **options}
        uncanny.export(run, to="sft", out=tmp_path / "out", all=True, **options)
        return [orjson.loads(line) for line in (tmp_path / "out/sft/train.jsonl").open("rb")]

    first = chats()
    assert {chat["run_image"] for chat in first} == {"a.png", "b.png"}
    assert all(len(chat["messages"][1]["content"]) <= 400 for chat in first)
    titles = [
        [line.partition("Name: ")[2] for chat in first if chat["run_image"] == name
         for line in chat["messages"][1]["content"].splitlines() if line.startswith("@")]
        for name in ("a.png", "b.png")
    ]  # fmt: skip
    assert sorted(titles[0]) == sorted(titles[1]) == sorted(each.name for each in many)
    assert titles[0] != titles[1]
    assert titles[0] != [each.name for each in many]
    assert chats() == first
    assert chats(seed=1) != first
    assert len(chats(max_tokens=10**6)) == 2
    assert len(chats(max_tokens=10, count_tokens=lambda _text: 1)) == 2
    assert len(chats(max_tokens=1)) == 40


def test_detection_needs_to_know_what_images_are(run: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"all": True, "test_fraction": 0, "chat": "tags"}
    result = uncanny.export(run, to="sft-detect", out=tmp_path / "out", **options)
    assert result.notes["sft-detect"] == {"images without a `source`, left out": 3}
    sources = tmp_path / "sources.jsonl"
    sources.write_text(
        '{"image": "photos/b.png", "source": "real"}\n{"image": "photos/c.png", "source": "generated"}\n'
    )
    uncanny.export(run, to="sft-detect", out=tmp_path / "out", source=sources, **options)
    chats = [orjson.loads(line) for line in (tmp_path / "out/sft-detect/train.jsonl").open("rb")]
    answers = [[turn["content"] for turn in chat["messages"][1::2]] for chat in chats]
    assert answers[0] == ["No.", "hand: A hand."]
    assert answers[1][0] == "Yes."
    sources.write_text('{"image": "photos/b.png", "source": "fake"}\n{"image": "c", "source": "real"}\n')
    with pytest.raises(UsageError, match="generated or real"):
        uncanny.export(run, to="sft-detect", out=tmp_path / "out", source=sources, **options)


def test_a_run_of_detect_brings_its_verdicts_and_descriptions(
    bundled_run: BundledRuns, tmp_path: Path
) -> None:
    run = bundled_run("detect").path
    uncanny.export(run, to=["sft-detect", "csv"], out=tmp_path / "out", all=True, test_fraction=0)
    chats = [orjson.loads(line) for line in (tmp_path / "out/sft-detect/train.jsonl").open("rb")]
    assert chats
    assert {chat["messages"][1]["content"][0]["text"] for chat in chats} <= {"Yes.", "No."}


@pytest.mark.parametrize("name", ["annotate", "detect"])
def test_a_whole_run_is_exported_in_every_form(
    name: Literal["annotate", "detect"], bundled_run: BundledRuns, tmp_path: Path
) -> None:
    forms = list(FORMATS)
    result = uncanny.export(
        bundled_run(name).path, to=forms, out=tmp_path / "out", all=True, source="generated"
    )
    assert result.images == len(scenes())
    assert set(result.files) == set(forms)
    assert not result.warnings


def test_a_run_that_is_not_finished_is_exported_with_a_warning(
    bundled_run: BundledRuns, tmp_path: Path
) -> None:
    run = bundled_run("annotate").copy(tmp_path / "run")
    lines = (run / "annotations.jsonl").read_bytes().splitlines(keepends=True)
    (run / "annotations.jsonl").write_bytes(b"".join(lines[:3]))
    result = uncanny.export(run, to="csv", out=tmp_path / "out", all=True)
    assert result.images == 3
    assert result.warnings


def test_copies_are_named_by_their_bytes_and_only_what_was_annotated_is_copied(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    records = make_run(run, [("a.png", [anomaly("x", (1, 1, 9, 9))]), ("b.png", []), ("c.png", [])])
    secret = tmp_path / "secret"
    secret.write_text("nobody's business")
    (run / "b.png").write_bytes(b"another one")
    record = records[2].model_copy(update={"image": "../secret", "sha256": None})
    write_records(run, [records[0], records[1], record])
    result = uncanny.export(run, to=["coco", "hf"], out=tmp_path / "out", all=True, copy_pictures=True)
    assert result.missing_pictures == 2
    (copy,) = (tmp_path / "out/images").iterdir()
    assert copy.read_bytes() == (run / "a.png").read_bytes()
    content = orjson.loads((tmp_path / "out/coco/annotations.json").read_bytes())
    assert content["images"][0]["file_name"] == f"../images/{copy.name}"
    assert b"nobody" not in b"".join(
        each.read_bytes() for each in (tmp_path / "out").rglob("*") if each.is_file()
    )


def test_a_file_of_annotations_without_digests_brings_pictures_and_nothing_else(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (record, other) = make_run(run, [("a.png", []), ("b.png", [])])
    (tmp_path / "secret").write_text("nobody's business")
    file = tmp_path / "run/others.jsonl"
    lines = [
        record.model_copy(update={"sha256": None}),
        other.model_copy(update={"sha256": None, "image": "../secret"}),
    ]
    file.write_text("".join(line.model_dump_json() + "\n" for line in lines))
    result = uncanny.export(file, to="coco", out=tmp_path / "out", all=True, copy_pictures=True)
    assert (result.missing_pictures, len(list((tmp_path / "out/images").iterdir()))) == (1, 1)


def test_a_prefix_stands_before_quoted_names(run: Path, tmp_path: Path) -> None:
    file = uncanny.export(
        run, to="jsonl", out=tmp_path / "x.jsonl", image_prefix="https://x.example/d/"
    ).files["jsonl"]
    assert (
        orjson.loads(file.read_bytes().splitlines()[0])["image"] == "https://x.example/d/photos/a%20b%231.png"
    )


def test_unreviewed_runs_and_other_runs_are_refused_in_words(
    bundled_run: BundledRuns, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    make_run(run, [("a.png", [anomaly("x")])])
    with pytest.raises(UsageError, match="has no reviews"):
        uncanny.export(run, to="csv", out=tmp_path / "x.csv")
    for other in (tmp_path / "nothing", bundled_run("mcq").path, tmp_path):
        with pytest.raises(UsageError):
            uncanny.export(other, to="csv", out=tmp_path / "x.csv", all=True)
    assert not (tmp_path / "x.csv").exists()


def test_only_an_earlier_export_is_replaced(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for _ in range(2):
        uncanny.export(run, to=["csv", "coco", "hf"], out=out, all=True)
    uncanny.export(run, to="labelme", out=out, all=True)
    assert orjson.loads((out / "export.json").read_bytes())["formats"] == ["coco", "csv", "hf", "labelme"]
    (out / "sft").mkdir()
    with pytest.raises(UsageError, match="not an earlier export"):
        uncanny.export(run, to="sft", out=out, all=True)
    uncanny.export(run, to="sft", out=out, all=True, force=True)
    other = tmp_path / "mine.csv"
    other.write_text("my,own\n")
    with pytest.raises(UsageError, match="not an earlier export"):
        uncanny.export(run, to="csv", out=other, all=True)
    assert other.read_text() == "my,own\n"
    link = tmp_path / "link.csv"
    link.symlink_to(other)
    with pytest.raises(UsageError, match="link"):
        uncanny.export(run, to="csv", out=link, all=True, force=True)


def test_a_run_is_never_written_over(run: Path, tmp_path: Path) -> None:
    before = (run / "annotations.jsonl").read_bytes()
    for out in (run / "annotations.jsonl", run / "reviews.jsonl", run):
        with pytest.raises(UsageError):
            uncanny.export(run, to="jsonl", out=out, all=True, force=True)
    assert (run / "annotations.jsonl").read_bytes() == before
    assert tmp_path.is_dir()


def test_an_invalid_record_leaves_nothing_behind(run: Path, tmp_path: Path) -> None:
    with (run / "annotations.jsonl").open("ab") as file:
        file.write(b'{"image": 3}\n')
    with pytest.raises(RecordError):
        uncanny.export(run, to=["csv", "hf", "coco"], out=tmp_path / "out", all=True)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    "options",
    [
        {"to": "xls"},
        {"to": []},
        {"test_fraction": 2},
        {"test_fraction": "half"},
        {"max_tokens": 0},
        {"chat": "x"},
        {"copy_pictures": "yes"},
        {"source": "fake"},
        {"all": "yes"},
        {"seed": -1},
    ],
)
def test_wrong_values_are_refused_in_words(run: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"to": "csv", "out": tmp_path / "x.csv"}
    with pytest.raises(UsageError):
        uncanny.export(run, **(usual | options))


def test_the_commands(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert command("export", run, "--to", "csv,coco", "--to", "jsonl", "-o", out) == 0
    assert "Krippendorff" in capsys.readouterr().out
    assert command("export", run, "--to", "csv", "-o", out, "--json") == 0
    assert orjson.loads(capsys.readouterr().out)["anomalies"] == 3
    assert command("import", out / "anomalies.csv", "--run", run, "--reviewer", "x", "--json") == 0
    assert orjson.loads(capsys.readouterr().out)["unchanged"] == 3
    assert command("import", out / "coco", "-o", tmp_path / "t.jsonl", "-q") == 0
    assert capsys.readouterr().out == ""
    for wrong in (
        ("export", run, "--to", "xls", "-o", out),
        ("export", tmp_path, "--to", "csv", "-o", out),
        ("import", out / "anomalies.csv"),
        ("import", tmp_path / "nothing", "--run", run),
        ("import", run / "photos/b.png", "--run", run),
    ):
        assert command(*wrong) == 2
        captured = capsys.readouterr()
        assert "Error" in captured.err
        assert "Traceback" not in captured.err


@pytest.mark.parametrize("form", ["parquet", "hf"])
def test_a_missing_package_is_named(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: FormatName
) -> None:
    for module in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=r"\.\[parquet\]"):
        uncanny.export(run, to=["csv", form], out=tmp_path / "out", all=True)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


HOSTILE_RECORDS: dict[str, dict[str, Any]] = {
    "numbers beyond 64 bits": {"more": 10**30},
    "a name that no file has": {"image": "d/" + "n" * 5_000 + ".png"},
    "a name of characters of four bytes": {"image": "\U00020000" * 90 + ".png"},
    "a digest that leads out": {"sha256": "/../../x"},
    "keys of an export": {"run_image": 3, "split": "z", "complete": 3, "anomalies": [
        anomaly("x").model_dump() | {"index": "boo", "review": "x", "text_sha256": 9, "more": 10**30}
    ]},
    "control characters": {"image": "a\u202e\n\x07b\x00.png"},
    "paths": {"image": "../../../../etc/passwd"},
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_RECORDS)
def test_a_hostile_record_is_exported_to_all_forms(tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (record,) = make_run(run, [("a.png", [anomaly("x")])])
    (run / "calls.jsonl").write_bytes(b"")
    hostile = record.model_dump() | {"source": "generated"} | HOSTILE_RECORDS[name]
    (run / "annotations.jsonl").write_text(json.dumps(hostile) + "\n")
    for copied in (False, True):
        out = tmp_path / str(copied)
        result = uncanny.export(run, to=list(FORMATS), out=out, all=True, copy_pictures=copied)
        assert (result.images, result.anomalies) == (1, 1)
        assert all(path.resolve().is_relative_to(out) for path in out.rglob("*"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["False", "True", "run"]


def test_sides_that_no_picture_has_are_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (record,) = make_run(run, [("a.png", [anomaly("x", (1, 1, 5, 5))])])
    line = record.model_dump_json()
    for text in (
        line.replace('"width":64', '"width":5000000000'),
        line.replace("[1,1,5,5]", "[1,1,5000000000,5]"),
    ):
        (run / "annotations.jsonl").write_text(text + "\n")
        with pytest.raises(RecordError):
            uncanny.export(run, to="parquet", out=tmp_path / "out", all=True)


def exported_sides(run: Path, out: Path, **options: Any) -> dict[str, str]:
    file = uncanny.export(run, to="jsonl", out=out, all=True, force=True, **options).files["jsonl"]
    return {Path(line["run_image"]).name: line["split"] for line in map(orjson.loads, file.open("rb"))}


def test_sides_of_a_bundled_pair_are_on_one_side(bundled_run: Any, tmp_path: Path) -> None:
    run = bundled_run("annotate").path
    pairs = [{Path(each.image).name for each in scenes() if each.pair_id == pair} for pair in PAIRS]
    sides = exported_sides(run, tmp_path / "x.jsonl")
    assert set(sides.values()) == {"train", "test"}
    assert all(len({sides[name] for name in pair}) == 1 for pair in pairs)
    alone = exported_sides(run, tmp_path / "x.jsonl", group_by="image")
    assert any(len({alone[name] for name in pair}) == 2 for pair in pairs)
    by_style = exported_sides(run, tmp_path / "x.jsonl", group_by="style")
    for style in ("drawn", "rendered"):
        assert len({by_style[Path(each.image).name] for each in scenes() if each.style == style}) == 1


def test_a_split_says_how_images_are_grouped(bundled_run: Any, tmp_path: Path) -> None:
    run = bundled_run("annotate").path
    result = uncanny.export(run, to="csv", out=tmp_path / "x.csv", all=True)
    assert result.to_json()["grouping"] == {"by": None, "groups": 18, "grouped": 32, "without": 2}
    assert "18 groups, 32 images share theirs with others" in str(result)
    by_style = uncanny.export(run, to="csv", out=tmp_path / "s.csv", all=True, group_by="style")
    assert "Split by 'style': 2 groups" in str(by_style)
    with pytest.raises(UsageError, match="no image has the column 'prompt'"):
        uncanny.export(run, to="csv", out=tmp_path / "y.csv", all=True, group_by="prompt")
    assert not (tmp_path / "y.csv").exists()


@pytest.mark.parametrize("form", sorted(set(FORMATS) - {"agents", "cvat"}))
def test_groups_and_columns_go_out_in_every_form_that_has_a_place_for_them(
    bundled_run: Any, tmp_path: Path, form: FormatName
) -> None:
    result = uncanny.export(
        bundled_run("annotate").path, to=form, out=tmp_path / "out", all=True, source="generated"
    )
    files = [each for each in (tmp_path / "out").rglob("*") if each.is_file()]
    content = b"".join(each.read_bytes() for each in files)
    assert result.images
    if form in ("parquet", "hf"):
        from datasets import Dataset

        tables = [Dataset.from_parquet(str(each)) for each in files if each.suffix == ".parquet"]
        rows = [row for table in tables for row in table.remove_columns("image")]
        assert {row["group"] for row in rows} == {None, *(f"pair={pair}" for pair in PAIRS)}
        assert all(orjson.loads(row["columns"])["style"] in ("drawn", "rendered") for row in rows)
        return
    assert b"pair=d01" in content
    if not form.startswith("sft"):
        assert b'"style"' in content.replace(b'""', b'"')
