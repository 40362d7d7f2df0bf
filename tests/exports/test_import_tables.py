"""Parquet and data sets of Hugging Face come back as pyarrow, pandas and `datasets` write them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas
import pytest

import uncanny
from tests.exports.made_runs import HOSTILE, findings
from uncanny.errors import ItemsError, UsageError
from uncanny.records.jsonl import read_records
from uncanny.schema import Annotation

pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
Row = dict[str, Any]
NEW = {"name": "New", "phenomenon": "It is new.", "reasoning": "It was not seen.", "severity": 3}


@pytest.fixture
def table(run: Path, tmp_path: Path) -> Path:
    return uncanny.export(run, to="parquet", out=tmp_path / "x.parquet", all=True).files["parquet"]


@pytest.fixture
def data_set(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return uncanny.export(run, to="hf", out=tmp_path / "out", all=True, test_fraction=0.5).files["hf"]


def edit(row: Row) -> Row:
    """A verdict, a text and a box, on three findings; and one that is new."""
    for anomaly in row["anomalies"]:
        if anomaly["name"] == "Bent wall":
            anomaly["decision"] = "reject"
        if anomaly["name"] == "No shadow":
            anomaly["phenomenon"] = "A better text."
        if anomaly["name"] == "Six fingers":
            anomaly["box"] = [12, 5, 32, 40]
    if row["run_image"] == "photos/c.png":
        blank = dict.fromkeys(row["anomalies"][0])
        row["anomalies"] = [*row["anomalies"], {**blank, **NEW, "kind": "light", "box": [1, 1, 5, 5]}]
    return row


def check_edited(run: Path, written: Path) -> None:
    result = uncanny.import_reviews(written, run=run, reviewer="eve")
    assert dict(result.counts) == {"verdicts": 1, "edited": 2, "added": 1, "unchanged": 2, "stale": 0}
    after = findings(run)
    assert (after[0].anomaly.box, after[0].decision) == ((12, 5, 32, 40), "accept")
    assert after[1].anomaly.phenomenon == HOSTILE
    assert (after[3].decision, after[4].anomaly.phenomenon) == ("reject", "A better text.")
    assert (after[5].anomaly.name, after[5].anomaly.box, after[5].added_by) == ("New", (1, 1, 5, 5), "eve")
    again = uncanny.import_reviews(written, run=run, reviewer="eve").counts
    assert not again["verdicts"] + again["edited"] + again["added"]


def rewrite(table: Path, change: Callable[[list[Row]], Any]) -> Path:
    """The table with other rows, of the types that pyarrow finds in them."""
    rows = parquet.read_table(table).to_pylist()
    changed = change(rows)
    parquet.write_table(pyarrow.Table.from_pylist(rows if changed is None else changed), table)
    return table


def test_parquet_edited_with_pyarrow_comes_back(run: Path, table: Path) -> None:
    check_edited(run, rewrite(table, lambda rows: [edit(row) for row in rows]))


def test_parquet_edited_with_pandas_comes_back(run: Path, table: Path) -> None:
    frame = pandas.read_parquet(table)
    frame["anomalies"] = [edit(row)["anomalies"] for row in frame.to_dict("records")]
    frame["mine"] = pandas.Timestamp("2026-01-01")
    frame["status"] = frame["status"].astype("category")
    frame["run_image"] = frame["run_image"].astype("category")
    frame["width"] = [64.0, None, 64.0]
    frame.set_index("sha256").to_parquet(table)
    check_edited(run, table)


@pytest.mark.parametrize("form", ["parquet", "saved", "saved split"])
def test_a_data_set_edited_with_datasets_comes_back(
    run: Path, tmp_path: Path, data_set: Path, form: str
) -> None:
    import datasets

    loaded = datasets.load_dataset(str(data_set), cache_dir=str(tmp_path / "cache")).map(edit)
    written = tmp_path / "edited"
    match form:
        case "parquet":
            for split, rows in loaded.items():
                (written / "data").mkdir(parents=True, exist_ok=True)
                rows.to_parquet(written / f"data/{split}-00000-of-00001.parquet")
        case "saved":
            loaded.save_to_disk(written)
        case _:
            datasets.concatenate_datasets(list(loaded.values())).save_to_disk(written)
    check_edited(run, written)


def test_a_file_of_a_data_set_is_read_by_itself(run: Path, data_set: Path) -> None:
    files = sorted((data_set / "data").iterdir())
    counts = [uncanny.import_reviews(file, run=run, reviewer="eve").counts["unchanged"] for file in files]
    assert sum(counts) == uncanny.import_reviews(data_set, run=run, reviewer="eve").counts["unchanged"] == 5
    for form in (None, "hf"):
        result = uncanny.import_reviews(data_set / "data", run=run, format=form, reviewer="eve")
        assert result.counts["unchanged"] == 5


def test_unknown_columns_are_passed_over_and_missing_ones_change_nothing(run: Path, table: Path) -> None:
    def change(rows: list[Row]) -> list[Row]:
        kept = ("index", "name", "severity", "box", "text_sha256", "decision")
        return [
            {
                "run_image": row["run_image"],
                "mine": {"a": [1]},
                "anomalies": [
                    {**{name: each[name] for name in kept}, "mine": b"\xff"} for each in row["anomalies"]
                ],
            }
            for row in rows
        ]

    assert uncanny.import_reviews(rewrite(table, change), run=run, reviewer="eve").counts["unchanged"] == 5


def test_nulls_say_nothing(run: Path, table: Path) -> None:
    def change(rows: list[Row]) -> None:
        rows[0]["anomalies"][0] |= dict.fromkeys(("name", "phenomenon", "severity", "box", "decision"))
        rows[0]["anomalies"][1] = None
        rows[1]["anomalies"] = None
        rows[2]["anomalies"][0] = dict.fromkeys(rows[2]["anomalies"][0])
        rows[2] |= {"width": None, "sha256": None, "image": None}

    result = uncanny.import_reviews(rewrite(table, change), run=run, reviewer="eve")
    assert (result.findings, result.counts["unchanged"]) == (1, 1)
    uncanny.export(run, to="parquet", out=table, all=True)
    nothing = rewrite(table, lambda rows: [row | {"anomalies": None} for row in rows])
    assert not any(uncanny.import_reviews(nothing, run=run).counts.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: [row.pop("anomalies") for row in rows] and None, "no column `anomalies`"),
        (
            lambda rows: [row.pop(n) for row in rows for n in ("image", "run_image")] and None,
            "column `image`",
        ),
        (lambda rows: [row.update(anomalies="x") for row in rows] and None, "`anomalies` contains string"),
        (lambda rows: [row.update(anomalies=["x"]) for row in rows] and None, "not lists of structures"),
        (
            lambda rows: [row.update(run_image=3) for row in rows] and None,
            "`run_image` contains int64, not text",
        ),
        (
            lambda rows: [row.update(width="3") for row in rows] and None,
            "`width` contains string, not numbers",
        ),
        (
            lambda rows: [each.update(severity="x") for row in rows for each in row["anomalies"]] and None,
            "`anomalies.severity` contains string, not numbers",
        ),
        (
            lambda rows: [each.update(box="x") for row in rows for each in row["anomalies"]] and None,
            "`anomalies.box` contains string, not lists of numbers",
        ),
        (lambda rows: rows[1]["anomalies"][1].update(index=1.5), "row 1, anomaly 1: `index` is not a whole"),
        (lambda rows: rows[1].update(image=None, run_image=None), "row 1: names no image"),
    ],
)
def test_other_columns_and_types_are_refused_in_words(
    run: Path, tmp_path: Path, table: Path, change: Any, message: str
) -> None:
    before = (run / "reviews.jsonl").read_bytes()
    rewrite(table, change)
    with pytest.raises(UsageError, match=message):
        uncanny.import_reviews(table, run=run, reviewer="eve")
    with pytest.raises(UsageError, match=message):
        uncanny.import_annotations(table, out=tmp_path / "o.jsonl")
    assert (run / "reviews.jsonl").read_bytes() == before
    assert not (tmp_path / "o.jsonl").exists()


def test_all_values_that_do_not_fit_are_listed_with_their_rows(run: Path, table: Path) -> None:
    def change(rows: list[Row]) -> None:
        rows[0]["anomalies"][0] |= {"box": [1.5, 2, 3, 4]}
        rows[1]["anomalies"][1] |= {"decision": "maybe"}
        rows[2]["anomalies"][0] |= {"index": None, "name": "N", "phenomenon": None}

    rewrite(table, change)
    with pytest.raises(ItemsError, match="3 problems") as refused:
        uncanny.import_reviews(table, run=run, reviewer="eve")
    for words in (
        "row 0, anomaly 0: field 'box",
        "row 1, anomaly 1: the decision",
        "row 2, anomaly 0: field",
    ):
        assert words in str(refused.value)


def test_an_image_is_known_by_its_digest_and_another_one_is_a_problem(run: Path, table: Path) -> None:
    rewrite(table, lambda rows: [row | {"run_image": "moved.png"} for row in rows])
    assert uncanny.import_reviews(table, run=run, reviewer="eve").counts["unchanged"] == 5
    rewrite(table, lambda rows: [row | {"sha256": "0" * 64} for row in rows[:1]])
    with pytest.raises(ItemsError, match="the run has no such image"):
        uncanny.import_reviews(table, run=run)


def test_a_text_that_was_edited_since_is_stale(run: Path, tmp_path: Path, table: Path) -> None:
    late = uncanny.export(run, to="parquet", out=tmp_path / "late.parquet", all=True).files["parquet"]
    uncanny.import_reviews(rewrite(late, lambda rows: [edit(row) for row in rows]), run=run, reviewer="eve")
    counts = uncanny.import_reviews(table, run=run, reviewer="bob").counts
    assert (counts["stale"], counts["edited"]) == (1, 1)  # the text; and the box that it moves back


def test_damaged_files_are_refused(run: Path, tmp_path: Path, table: Path, data_set: Path) -> None:
    import datasets

    whole = table.read_bytes()
    for content in (whole[:-9], whole[9:], whole[:200] + bytes(400) + whole[600:]):
        table.write_bytes(content)
        with pytest.raises(UsageError, match=r"not valid Parquet: .*[^.]\. Export it again"):
            uncanny.import_reviews(table, run=run, reviewer="eve")
    saved = tmp_path / "saved"
    loaded = datasets.load_dataset(str(data_set), cache_dir=str(tmp_path / "cache"))
    datasets.concatenate_datasets(list(loaded.values())).save_to_disk(saved)
    (rows,) = saved.glob("*.arrow")
    for size in (0, 100):
        rows.write_bytes(rows.read_bytes()[:size])
        with pytest.raises(UsageError, match="not valid Arrow"):
            uncanny.import_reviews(saved, run=run, reviewer="eve")
    rows.unlink()
    with pytest.raises(UsageError, match="is incomplete"):
        uncanny.import_reviews(saved, run=run, reviewer="eve")
    (saved / "state.json").write_text("{")
    with pytest.raises(UsageError, match="does not say which files"):
        uncanny.import_reviews(saved, run=run, reviewer="eve")


def test_a_folder_that_is_no_data_set_is_refused(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "notes.txt").write_text("x")
    with pytest.raises(UsageError, match=r"is not a dataset: .* Pass the folder"):
        uncanny.import_reviews(folder, run=run, format="hf")
    with pytest.raises(UsageError, match="nothing to import"):
        uncanny.import_reviews(folder, run=run)
    (folder / "dataset_dict.json").write_text('{"splits": ["../run"]}')
    with pytest.raises(UsageError):
        uncanny.import_reviews(folder, run=run)


def test_pictures_of_one_file_name_are_not_taken_for_one(tmp_path: Path, data_set: Path) -> None:
    (file, *others) = sorted((data_set / "data").iterdir())
    for other in others:
        other.unlink()
    picture = {"bytes": b"", "path": "1.png"}
    rewrite(file, lambda _rows: [{"image": picture, "anomalies": [NEW]}] * 2)
    with pytest.raises(UsageError, match=r"row 1: '1\.png' appears twice"):
        uncanny.import_annotations(data_set, out=tmp_path / "truth.jsonl")
    rewrite(file, lambda rows: rows[:1])
    uncanny.import_annotations(data_set, out=tmp_path / "truth.jsonl")
    (made,) = read_records(tmp_path / "truth.jsonl", Annotation)
    assert (made.image, made.anomalies[0].name) == ("1.png", "New")


@pytest.mark.parametrize("form", ["parquet", "hf"])
def test_a_missing_package_is_named(
    run: Path, table: Path, data_set: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    for module in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=r"\.\[parquet\]"):
        uncanny.import_reviews(table if form == "parquet" else data_set, run=run)
