"""The release's flat table in all its versions: read, written, read again, refused."""

from __future__ import annotations

import base64
import csv
import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from PIL import Image

from uncanny.demo.scenes import scenes
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.common.inputs.table_files import rows
from uncanny.eval.mcq.data.checks import check
from uncanny.eval.mcq.data.export import export_table
from uncanny.eval.mcq.data.flat_tables import Outline, Place, places
from uncanny.eval.mcq.data.items import QUESTIONS, Item
from uncanny.eval.mcq.data.load import copy_scenes, load
from uncanny.eval.mcq.data.released import import_table
from uncanny.eval.mcq.data.released_rows import IMAGE_COLUMNS
from uncanny.eval.mcq.data.texts import question_text
from uncanny.prompts import prompt_set

Row = dict[str, Any]


PG_PAIR = next(scene.pair_id for scene in scenes() if scene.split == "art_pg")


def png(colour: int) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (8, 6), (colour, 0, 0)).save(data, "PNG")
    return data.getvalue()


def row(row_id: str, role: str, number: int = 0, **changed: Any) -> Row:
    answers = {"artifact": ("yes", "B", "A", "B"), "clean_reference": ("no", "E", "E", "E")}
    right = answers.get(role, (None, "E", "E", "E"))
    texts = {letter: f"{letter.lower()}{number}" for letter in "ABCD"}
    return {
        "row_id": row_id,
        "image_role": role,
        "image": {"bytes": png(number), "path": f"{row_id}.png"},
        "q3_overlay_image": {"bytes": png(number + 100), "path": "o.png"},
        **{f"q{q}_prompt": f"Question {q}?" if right[q - 1] else None for q in range(1, 5)},
        "q2_options": {**texts, "E": "none of these regions"},
        "q4_options": {**texts, "E": "none of these descriptions"},
        **{f"q{q}_answer": right[q - 1] for q in range(1, 5)},
        **changed,
    }


def release() -> list[Row]:
    return [
        row("dg", "artifact", 1),
        row("real", "clean_reference", 2),
        row("pg", "artifact", 3),
        row("ref", "paired_generated_counterpart", 3, image={"bytes": png(9), "path": "ref.png"}),
    ]


def parquet(path: Path, rows: list[Row], **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = dict.fromkeys(key for cells in rows for key in cells)
    pq.write_table(pa.Table.from_pylist([dict.fromkeys(columns) | cells for cells in rows]), path, **options)
    return path


def imported(path: Path, out: Path) -> list[Item]:
    return list(import_table(path, out=out))


def faults(path: Path, out: Path) -> list[tuple[str | None, str | None]]:
    with pytest.raises(ItemsError) as caught:
        import_table(path, out=out)
    assert not out.exists(), "nothing may be left behind"
    return [(problem.item, problem.field) for problem in caught.value.problems]


def test_the_release_becomes_a_good_set(tmp_path: Path) -> None:
    table = parquet(tmp_path / "t.parquet", release(), row_group_size=1)
    items = import_table(table, out=tmp_path / "out")
    assert items == load(tmp_path / "out" / "items.jsonl")
    assert [item.split for item in items] == ["art_dg", "ref_real", "art_pg", "ref_pg"]
    assert [item.pair_id for item in items] == [None, None, "pg+ref", "pg+ref"]
    assert [item.right(q) for q in ("q1", "q2", "q3", "q4") for item in items[:1]] == ["yes", "B", "A", "B"]
    assert items[3].q1 is None
    assert {problem.severity for problem in check(items)} <= {"warning"}
    assert items[2].q2 is not None
    assert items[2].q2.options == {"A": "a3", "B": "b3", "C": "c3", "D": "d3"}


def test_pictures_and_overlays_are_byte_for_byte_what_the_table_holds(tmp_path: Path) -> None:
    items = import_table(parquet(tmp_path / "t.parquet", release()), out=tmp_path / "out")
    for item, source in zip(items, release(), strict=True):
        assert items.image_path(item).read_bytes() == source["image"]["bytes"]
        stored = items.overlay_path(item)
        assert stored is not None
        assert stored.read_bytes() == source["q3_overlay_image"]["bytes"]
    # pg and ref have the same overlay, which is there once
    assert len(list((tmp_path / "out" / "images").iterdir())) == 7


def test_prompts_are_whole_and_say_how_they_want_the_answer(tmp_path: Path) -> None:
    rows = release()
    whole = "Q2?\nA) a2\nB) b2\nC) c2\nD) d2\nE) none. Answer as JSON."
    rows[1] |= {"q2_prompt": whole, "system_prompt": "Look."}
    rows[2] |= {"q2_prompt": 'Pick: {"A": "a3", "B": "b3", "C": "c3", "D": "d3"}'}
    dg, real, pg, ref = imported(parquet(tmp_path / "t.parquet", rows), tmp_path / "out")
    assert dg.prompts is not None
    assert dg.prompts["q2"] == "Question 2?\n\nOptions:\nA. a1\nB. b1\nC. c1\nD. d1\nE. none of these regions"
    assert dg.prompts["q4"].endswith("E. none of these descriptions")
    assert (dg.prompts["q1"], dg.prompts["q3"]) == ("Question 1?", "Question 3?")
    assert (dg.system, dg.answer_form) == (None, "letter")
    assert real.prompts is not None
    assert real.prompts["q2"] == whole
    assert (real.system, real.answer_form) == ("Look.", "json")
    assert pg.prompts is not None
    assert pg.prompts["q2"] == rows[2]["q2_prompt"]
    assert set(ref.prompts or {}) == {"q2", "q3", "q4"}


TEXTS = {"A": "one", "B": "two, with a comma", "C": 'three "quoted"', "D": "four"}
SHAPES: list[tuple[str, Callable[[], Any]]] = [
    ("struct", lambda: {**TEXTS, "E": "none"}),
    ("lower case", lambda: {letter.lower(): option for letter, option in TEXTS.items()}),
    ("JSON", lambda: json.dumps({**TEXTS, "E": "none"})),
    ("Python", lambda: repr({**TEXTS, "E": "none"})),
    ("list of five", lambda: [*TEXTS.values(), "none"]),
    ("list of four", lambda: list(TEXTS.values())),
    ("JSON list", lambda: json.dumps([*TEXTS.values(), "none"])),
]


@pytest.mark.parametrize("shape", [build for _, build in SHAPES], ids=[name for name, _ in SHAPES])
@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_options_in_any_shape(tmp_path: Path, shape: Callable[[], Any], kind: str) -> None:
    rows = [row("one", "artifact", q2_options=shape(), q4_options=shape())]
    if kind == "parquet":
        table = parquet(tmp_path / "t.parquet", rows)
    else:
        (tmp_path / "p.png").write_bytes(png(1))
        rows[0] |= {"image": None, "image_path": "p.png", "q3_overlay_image": None}
        rows[0] |= {"q3_overlay_image_path": "p.png"}
        table = tmp_path / "t.jsonl"
        table.write_text(json.dumps(rows[0]))
    (item,) = imported(table, tmp_path / "out")
    assert item.q2 is not None
    assert item.q2.options == TEXTS
    assert item.overlay is not None


def test_arrow_maps_and_older_columns(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.string())
    source = row("one", "artifact")
    source |= {f"q4_option_{letter.lower()}": option for letter, option in TEXTS.items()}
    source |= {"q2_option_e": "nowhere at all", "q4_option_e": "none of these descriptions"}
    del source["q4_options"]
    mapped = pa.array([list(TEXTS.items())], type=kind)
    table = pa.Table.from_pylist([source])
    table = table.set_column(table.schema.get_field_index("q2_options"), "q2_options", mapped)
    pq.write_table(table, tmp_path / "t.parquet")
    (item,) = imported(tmp_path / "t.parquet", tmp_path / "out")
    assert item.q2 is not None
    assert item.q4 is not None
    assert item.q2.options == item.q4.options == TEXTS
    assert item.q2.model_extra == {"option_e": "nowhere at all"}
    assert item.q4.model_extra == {}
    assert item.prompts is not None
    assert item.prompts["q2"].endswith("E. nowhere at all")


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ("count_anomaly", "count"),
        ("Topology anomaly", "topology"),
        ("local render/structure anomaly", "local_render"),
        ("Others", "other"),
        ("plausibility", "plausibility"),
        (None, None),
    ],
)
def test_types_go_by_our_names(tmp_path: Path, given: str | None, ours: str | None) -> None:
    rows = [row("a", "artifact", artifact_type=given), row("r", "clean_reference", artifact_type="whatever")]
    artifact, reference = imported(parquet(tmp_path / "t.parquet", rows), tmp_path / "out")
    assert (artifact.artifact_type, reference.artifact_type) == (ours, None)


def csv_table(path: Path, rows: list[Row]) -> Path:
    columns = list(dict.fromkeys(key for cells in rows for key in cells))
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_csv_with_pictures_as_paths_urls_json_or_python(tmp_path: Path) -> None:
    rows = release()
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "dg.png").write_bytes(rows[0]["image"]["bytes"])
    encoded = base64.b64encode(rows[1]["image"]["bytes"]).decode()
    rows[0]["image"] = "pictures/dg.png"
    rows[1]["image"] = f"data:image/png;base64,{encoded}"
    rows[2]["image"] = json.dumps({"bytes": base64.b64encode(png(3)).decode(), "path": "pg.png"})
    for cells in rows:
        cells["q2_options"] = json.dumps(cells["q2_options"])
        cells["q3_overlay_image"] = None
        cells["q3_boxes"] = json.dumps({letter: [0, 0, 4, 4] for letter in "ABCD"})
    items = imported(csv_table(tmp_path / "t.csv", rows), tmp_path / "out")
    assert [item.split for item in items] == ["art_dg", "ref_real", "art_pg", "ref_pg"]
    read = [(tmp_path / "out" / item.image).read_bytes() for item in items]
    assert read == [source["image"]["bytes"] for source in release()]
    assert items[0].q3 is not None
    assert items[0].q3.boxes["D"] == (0, 0, 4, 4)


def test_pair_ids_may_be_numbers_with_gaps(tmp_path: Path) -> None:
    rows = release()
    for cells, pair_id in zip(rows, (4.0, None, 7.0, 7.0), strict=True):
        cells["pair_id"] = pair_id
    items = imported(parquet(tmp_path / "t.parquet", rows), tmp_path / "out")
    assert [item.pair_id for item in items] == [None, None, "7", "7"]


def test_a_folder_of_shards_is_one_table(tmp_path: Path) -> None:
    rows = release()
    parquet(tmp_path / "set" / "data" / "test-00000-of-00002.parquet", rows[:3])
    parquet(tmp_path / "set" / "data" / "test-00001-of-00002.parquet", rows[3:])
    items = imported(tmp_path / "set", tmp_path / "out")
    assert [item.id for item in items] == ["dg", "real", "pg", "ref"]
    assert items[2].pair_id == items[3].pair_id is not None


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_what_is_exported_is_imported_again(tmp_path: Path, kind: str) -> None:
    scenes = load(copy_scenes(tmp_path / "set"))
    items = [item for item in scenes if item.pair_id in ("d01", PG_PAIR)]
    texts: Row = {"q1": "One?", "q2": "Two?", "q3": "Three? As JSON.", "q4": "Four?"}
    for number, item in enumerate(items):
        own: dict[str, Any] = {question: texts[question] for question in item.questions()}
        for question, choice in (("q2", item.q2), ("q4", item.q4)):
            assert choice is not None
            own[question] += "".join(f"\n{letter}. {option}" for letter, option in choice.options.items())
        update = {"prompts": own, "system": "Look.", "answer_form": "json"}
        items[number] = Item.model_validate(item.model_dump(exclude_unset=True) | update)
    table = tmp_path / f"t.{kind}"
    export_table(replace(scenes, items=tuple(items)), out=table)
    again = import_table(table, out=tmp_path / "out")
    for before, after in zip(items, again, strict=True):
        left = before.model_dump(exclude={"image", "overlay"})
        assert after.model_dump(exclude={"image", "overlay"}) == left
        assert again.image_path(after).read_bytes() == scenes.image_path(before).read_bytes()
        assert after.overlay is not None
    assert check(again) == ()


def test_the_exported_form_is_the_releases(tmp_path: Path) -> None:
    source = copy_scenes(tmp_path / "set")
    export_table(load(source)[:1], out=tmp_path / "t.parquet")
    first = pq.read_table(tmp_path / "t.parquet").to_pylist()[0]
    assert first["image_role"] == "clean_reference"
    assert first["q2_options"]["E"] == "none of these regions"
    assert first["q4_options"]["E"] == "none of these descriptions"
    assert first["q3_overlay_image"]["bytes"].startswith(b"\x89PNG")
    assert [first[f"q{number}_answer"] for number in range(1, 5)] == ["no", "E", "E", "E"]
    item = load(source)[0]
    assert [first[f"{q}_prompt"] for q in QUESTIONS] == [question_text(item, q) for q in QUESTIONS]
    assert first["prompts_id"] == prompt_set("mcq").id


def test_a_failed_export_leaves_the_earlier_file(tmp_path: Path) -> None:
    source = copy_scenes(tmp_path / "set")
    items = load(source)
    gone = replace(items, items=(*items, items[0].model_copy(update={"image": "no.png"})))
    for name in ("t.parquet", "t.csv"):
        (tmp_path / name).write_text("earlier")
        with pytest.raises(Exception, match="does not exist"):
            export_table(gone, out=tmp_path / name, overlays=False)
        assert (tmp_path / name).read_text() == "earlier"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["set", "t.csv", "t.parquet"]
    with pytest.raises(UsageError, match="does not end in"):
        export_table(items, out=tmp_path / "t.xlsx")
    with pytest.raises(UsageError, match="no items"):
        export_table([], out=tmp_path / "t.csv")


def test_missing_columns_are_all_named(tmp_path: Path) -> None:
    table = parquet(tmp_path / "t.parquet", [{"row_id": "x", "q1_answer": "yes", "q4_option_a": "a"}])
    assert [field for _, field in faults(table, tmp_path / "out")] == [
        "image_role",
        "q2_answer",
        "q3_answer",
        "q4_answer",
        "q2_options",
        "image",
    ]


def test_every_bad_cell_is_named(tmp_path: Path) -> None:
    rows: list[Row] = [
        {**row("role", "artifact"), "image_role": "model"},
        row("letter", "artifact", q2_answer="G"),
        row("yes", "artifact", q1_answer="perhaps"),
        row("extra", "artifact", q2_options='{"A": "a", "F": "f"}'),
        row("short", "artifact", q4_options='["a", "b"]'),
        row("number", "artifact", q4_options='{"A": 3}'),
        row("broken", "artifact", q2_options="{'A': "),
        row("deep", "artifact", q2_options="[" * 20_000),
        row("type", "artifact", artifact_type="ugly"),
        row("twice", "artifact"),
        row("twice", "artifact"),
        row("", "artifact"),
    ]
    for cells in rows:
        for key in ("q2_options", "q4_options"):
            cells[key] = json.dumps(cells[key]) if isinstance(cells[key], dict) else cells[key]
    assert faults(parquet(tmp_path / "t.parquet", rows), tmp_path / "out") == [
        ("role", "image_role"),
        ("letter", "q2_answer"),
        ("yes", "q1_answer"),
        ("extra", "q2_options"),
        ("short", "q4_options"),
        ("number", "q4_options"),
        ("broken", "q2_options"),
        ("deep", "q2_options"),
        ("type", "artifact_type"),
        ("twice", "row_id"),
        (None, "row_id"),
    ]


def test_bad_pictures_are_named_and_nothing_stays(tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(png(1))
    inside = tmp_path / "in"
    inside.mkdir()
    rows = [
        row("none", "artifact", image=None),
        row("gone", "artifact", image="no.png"),
        row("out", "artifact", image="../secret.png"),
        row("absolute", "artifact", image=str(secret)),
        row("base64", "artifact", image="data:image/png;base64,***"),
        row("nul", "artifact", image="a\0b"),
        row("good", "artifact", image=None, image_path="good.png"),
    ]
    (inside / "good.png").write_bytes(png(1))
    for cells in rows:
        cells["q3_overlay_image"] = None
    table = inside / "t.jsonl"
    table.write_text("\n".join(json.dumps(cells) for cells in rows))
    named = ["none", "gone", "out", "absolute", "base64", "nul"]
    assert faults(table, tmp_path / "out") == [(name, "image") for name in named]


def test_an_import_runs_the_checks_of_a_set(tmp_path: Path) -> None:
    rows = release()
    rows[0]["image"]["bytes"] = b"no picture"
    rows[1]["q2_answer"] = "A"
    rows[2]["q2_options"]["C"] = None
    rows[3]["q1_answer"] = "no"
    problems = faults(parquet(tmp_path / "t.parquet", rows), tmp_path / "out")
    assert set(problems) == {
        ("dg", "image"),
        ("real", "q2.answer"),
        ("pg", "q2.options"),
        ("ref", "q1"),
        ("ref", "prompts.q1"),
        ("ref", "pair_id"),
    }


def test_a_folder_with_items_is_left_alone(tmp_path: Path) -> None:
    table = parquet(tmp_path / "t.parquet", release())
    target = import_table(table, out=tmp_path / "out").file
    target.write_text("edited")
    with pytest.raises(UsageError, match="already exists"):
        import_table(table, out=tmp_path / "out")
    assert target.read_text() == "edited"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.parquet", b"PAR1 is not enough"),
        ("t.parquet", b""),
        ("t.csv", b'row_id,image\n"a\xff'),
        ("t.csv", b'row_id,"image\n'),
        ("t.jsonl", b"[1]"),
        ("t.jsonl", b"{"),
        ("t.txt", b"row_id"),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError):
        import_table(tmp_path / name, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_table_at_all(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        import_table(tmp_path / "none.parquet", out=tmp_path / "out")
    with pytest.raises(UsageError, match="contains no table"):
        import_table(tmp_path, out=tmp_path / "out")
    pq.write_table(pa.Table.from_pylist(release()).slice(0, 0), tmp_path / "t.parquet")
    with pytest.raises(UsageError, match="no rows"):
        import_table(tmp_path / "t.parquet", out=tmp_path / "out")


def test_without_pyarrow_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = parquet(tmp_path / "t.parquet", release())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(UsageError, match=r"-e '.\[parquet\]'"):
        import_table(table, out=tmp_path / "out")


def test_pictures_are_left_unread_where_they_are_not_needed(tmp_path: Path) -> None:
    table = parquet(tmp_path / "t.parquet", [row(str(number), "artifact") for number in range(20)])
    read = list(rows(table, without=IMAGE_COLUMNS))
    assert len(read) == 20
    assert not {"image", "q3_overlay_image"} & set(read[0])


def outline(row_id: str, role: str, pair_id: str | None = None, options: str | None = None) -> Outline:
    return Outline(row_id, role, pair_id, options)


def test_pairs_by_id_then_by_options_then_none() -> None:
    ref = "paired_generated_counterpart"
    where = places(
        [
            outline("a", "artifact", "p", "x"),
            outline("b", ref, "p", "y"),
            outline("c", "artifact", "q"),
            outline("d", "clean_reference", "q"),
            outline("e", "artifact", "lonely"),
            outline("f", "artifact", None, "z"),
            outline("g", "artifact", None, "z"),
            outline("h", ref, None, "z"),
            outline("i", ref, None, "z"),
            outline("j", ref, None, "other"),
            outline("k", ref, None, None),
            outline("l", ref, None, "late"),
            outline("m", "artifact", None, "late"),
        ]
    )
    assert where == [
        Place("art_pg", "p"),
        Place("ref_pg", "p"),
        Place("art_dg", "q"),
        Place("ref_real", "q"),
        Place("art_dg", None),
        Place("art_pg", "f+i"),
        Place("art_pg", "g+h"),
        Place("ref_pg", "g+h"),
        Place("ref_pg", "f+i"),
        Place("ref_pg", None),
        Place("ref_pg", None),
        Place("ref_pg", "m+l"),
        Place("art_pg", "m+l"),
    ]
