"""A set that is published: read by others, asked with the same requests, scored with the same figures."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
import yaml

from tests.bundled_runs import some_items
from tests.eval.mcq.recording import McqRun, RecordingServer, recording, rewritten
from tests.eval.mcq.test_items_table import parquet, release
from tests.runs.e2e import uncanny_here
from uncanny import mcq
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.mcq.data import export
from uncanny.eval.mcq.data.items import QUESTIONS, Item
from uncanny.eval.mcq.data.texts import carried_set, question_text, whose_texts
from uncanny.prompts import prompt_set

OURS = prompt_set("mcq").id


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any-key")


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight bundled items, a pair among them, and one picture that is used twice under one name."""
    return some_items(tmp_path_factory.mktemp("set"), 8)


@pytest.fixture(scope="module")
def published(items: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("published") / "scenes"
    return mcq.export_table(items, out=out, to="hf", license="cc-by-4.0", title="Scenes: eight")


def own_prompts(item: Item) -> dict[str, Any]:
    """Prompts as a release brings them, with white space and signs that must not change."""
    texts = {question: f' ${{x}} {item.id} {question}?\n\tA. é "b"\n' for question in item.questions()}
    return {"prompts": texts, "system": " Look. \n", "answer_form": "json"}


def digests(server: RecordingServer) -> Counter[str]:
    """What was sent, body by body, in any order."""
    return Counter(hashlib.sha256(body).hexdigest() for body in server.bodies)


def asked(items: object, run: Path, *options: object) -> tuple[Counter[str], dict[str, Any], list[str]]:
    """Digests of the requests of a run, its figures, and whose prompts its records name."""
    with recording() as server:
        command = ("mcq", "run", items, *server.asked(), "-o", run, "-q", *options)
        assert uncanny_here(*command).code == 0
        sent = digests(server)
    done = uncanny_here("mcq", "score", items, run, "--resamples", 0, "--json", "-", "--no-report")
    prompts = [str((answer.model_extra or {})["prompts"]) for answer in McqRun(run).answers_list()]
    return sent, done.json(), prompts


def as_parquet(items: Path, folder: Path) -> Path:
    return mcq.export_table(items, out=folder / "t.parquet")


def as_folder(items: Path, folder: Path) -> Path:
    return mcq.export_table(items, out=folder / "hub", to="hf")


def imported(items: Path, folder: Path) -> Path:
    table = mcq.export_table(items, out=folder / "t.parquet")
    return mcq.import_table(table, out=folder / "imported").file


def imported_csv(items: Path, folder: Path) -> Path:
    return mcq.import_table(mcq.export_table(items, out=folder / "t.csv"), out=folder / "imported").file


def saved(items: Path, folder: Path) -> Path:
    """As `datasets` writes again what it has read."""
    from datasets import load_dataset

    out = mcq.export_table(items, out=folder / "hub", to="hf")
    load_dataset(str(out), cache_dir=str(folder / "cache"))["test"].save_to_disk(str(folder / "saved"))
    return folder / "saved"


@pytest.mark.parametrize(
    "form",
    [
        as_folder,
        *(pytest.param(form, marks=pytest.mark.slow) for form in (as_parquet, imported, imported_csv, saved)),
    ],
)
@pytest.mark.parametrize("own", [False, True], ids=["uncanny's prompts", "own prompts"])
def test_what_was_published_is_asked_the_same_and_scores_the_same(
    form: Callable[[Path, Path], Path], own: bool, tmp_path: Path
) -> None:
    source = some_items(tmp_path / "set", 8)
    if own:
        rewritten(source, own_prompts)
    theirs = form(source, tmp_path)
    options = ("--blind", "--control")
    sent, figures, prompts = asked(source, tmp_path / "mine", *options)
    assert asked(theirs, tmp_path / "theirs", *options)[:2] == (sent, figures)
    assert sent.total() > 31
    assert McqRun(tmp_path / "theirs").manifest()["prompts"]["whose"] == ("the set's" if own else "ours")
    again = [str((each.model_extra or {})["prompts"]) for each in McqRun(tmp_path / "theirs").answers_list()]
    assert sorted(again) == sorted(prompts)
    # Answers to the one are answers to the other, where pictures keep their names.
    kept = form not in (imported, imported_csv)
    for answered, against in ((tmp_path / "mine", theirs), (tmp_path / "theirs", source)) if kept else ():
        crossed = uncanny_here(
            "mcq", "score", against, answered, "--resamples", 0, "--json", "-", "--no-report"
        ).json()
        assert crossed == figures


@pytest.mark.slow
def test_prompts_of_a_user_go_along_and_are_the_sets_own_to_everybody_else(
    items: Path, tmp_path: Path
) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "q1.md").write_text("Is anything wrong here? yes or no.")
    out = mcq.export_table(items, out=tmp_path / "set", to="hf", prompts=tmp_path / "texts")
    sent, figures, _ = asked(items, tmp_path / "mine", "--prompts", tmp_path / "texts")
    theirs, same, prompts = asked(out, tmp_path / "theirs")
    # The published set has prompts of its own, so that it is another one than this was.
    assert same.pop("about")["digests"] != figures.pop("about")["digests"]
    assert (theirs, same) == (sent, figures)
    assert {each.partition("@")[0] for each in prompts} == {f"own:{question}" for question in QUESTIONS}
    assert {item.prompts_id for item in mcq.load(out)} == {None}


@pytest.mark.parametrize(
    ("change", "whose", "warned"),
    [
        ({}, "ours", False),
        ({"prompts_id": "mcq@00000000"}, "set", False),  # of a version to come
        ({"prompts_id": prompt_set("detect").id}, "set", True),
        ({"prompts_id": "../mcq"}, "set", False),
        ({"system": "Look."}, "set", True),
    ],
)
def test_an_item_is_not_believed_whose_prompts_it_has(
    change: dict[str, Any], whose: str, warned: bool, published: Path
) -> None:
    loaded = mcq.load(published)
    changed = [item.model_copy(update=change) for item in loaded]
    assert whose_texts(changed) == whose
    assert {carried_set(item) is None for item in changed} == {whose == "set"}
    problems = [each for each in mcq.check(changed, images=False) if each.field == "prompts_id"]
    assert bool(problems) == warned
    assert {each.severity for each in problems} <= {"warning"}


def card_of(folder: Path) -> tuple[dict[str, Any], str]:
    _, head, body = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(head), body


def test_datasets_reads_the_folder(published: Path, items: Path, tmp_path: Path) -> None:
    from datasets import Image, load_dataset

    told = load_dataset(str(published), cache_dir=str(tmp_path))
    rows = told["test"]
    assert len(rows) == 8
    assert {name for name, kind in rows.features.items() if isinstance(kind, Image)} == {
        "image",
        "q3_overlay_image",
    }
    plain = rows.cast_column("image", Image(decode=False))
    loaded = mcq.load(items)
    for row, item in zip(plain, loaded, strict=True):
        assert row["row_id"] == item.id
        assert row["image"]["bytes"] == loaded.image_path(item).read_bytes()
        assert row["split"] == item.split
        assert [row[f"{q}_prompt"] for q in QUESTIONS] == [
            question_text(item, q) if q in item.questions() else None for q in QUESTIONS
        ]
        assert row["prompts_id"] == OURS
    assert rows[0]["q3_overlay_image"].size == rows[0]["image"].size


def test_the_card_says_what_is_in_it_and_how_to_ask_it(published: Path) -> None:
    head, body = card_of(published)
    assert (head["license"], head["pretty_name"]) == ("cc-by-4.0", "Scenes: eight")
    assert head["configs"] == [
        {"config_name": "default", "data_files": [{"split": "test", "path": "data/test-*.parquet"}]}
    ]
    (split,) = head["dataset_info"]["splits"]
    table = pq.read_table(published / "data")
    assert (split["name"], split["num_examples"]) == ("test", table.num_rows)
    assert [each["name"] for each in head["dataset_info"]["features"]] == table.schema.names
    assert head["dataset_info"]["download_size"] == sum(
        file.stat().st_size for file in (published / "data").iterdir()
    )
    for words in (
        "8 images, 31 questions",
        "| `ref_pg` | 1 |",
        "Q1 7, Q2 8, Q3 8, Q4 8",
        f"8 images with uncanny's prompts `{OURS}`",
        "uncanny mcq run . --model",
        "uncanny mcq score . runs/",
        "`cc-by-4.0`",
    ):
        assert words in body
    schema = orjson.loads(table.schema.metadata[b"uncanny"])
    assert (schema["protocol"], schema["prompts"]["ids"]) == ("mcq", [OURS])
    assert schema["prompts"]["files"] == prompt_set("mcq").hashes()
    assert schema["version"]


def test_the_commands_of_the_card_work_in_its_folder(
    items: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = mcq.export_table(items, out=tmp_path / "set", to="hf")
    monkeypatch.chdir(out)
    run = uncanny_here("mcq", "run", ".", "--model", "demo", "-o", "runs/demo", "-q")
    assert run.code == 0, run.err
    assert uncanny_here("mcq", "score", ".", "runs/demo", "--resamples", 0).code == 0
    _, body = card_of(out)
    assert '`{"row_id": "…", "q1": "yes", "q2": "B", "q3": "B", "q4": "B"}`' in body
    rows = [{"row_id": item.id, **{q: item.right(q) for q in item.questions()}} for item in mcq.load(out)]
    (out / "predictions.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    done = uncanny_here(
        "mcq", "score", ".", "predictions.jsonl", "--resamples", 0, "--json", "-", "--no-report"
    )
    assert done.json()["splits"]["overall"]["all_q1_4"] == 1


MORE: dict[str, list[Any]] = {
    "generator": ["sdxl", "flux", None, "sdxl", "flux", "sdxl", "flux", "é: #"],
    "group": list(range(8)),
    "steps": [1, 2.5, *([None] * 6)],
    "seen by": [["ann", "bo"], [], *([["cy"]] * 6)],
    "checked": [True, False] * 4,
    # No column has these, but as text.
    "mixed": ["a", 1, *([None] * 6)],
    "made": [{"by": "us", "in": [1]}] * 8,
    "large": [2**70, *([1] * 7)],
}
AS_TEXT = {"mixed": ["a", "1"], "made": ['{"by": "us", "in": [1]}'] * 8, "large": [str(2**70), *("1" * 7)]}


def with_more(items: Path, folder: Path) -> Path:
    """The same items with further keys."""
    folder.mkdir()
    lines = [orjson.loads(line) for line in items.read_bytes().splitlines()]
    for number, line in enumerate(lines):
        line |= {key: values[number] for key, values in MORE.items() if values[number] is not None}
        line["image"] = os.path.relpath(items.parent / line["image"], folder)
    (folder / "items.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder / "items.jsonl"


def more_of(items: object) -> dict[str, list[Any]]:
    """Values by further key, without trailing nulls."""
    extras = [item.model_extra or {} for item in mcq.load(items)]  # type: ignore[arg-type]
    found = {key: [extra.get(key) for extra in extras] for key in dict.fromkeys(k for e in extras for k in e)}
    for values in found.values():
        while values[-1] is None:
            values.pop()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("form", [as_folder, as_parquet, imported, imported_csv, saved])
def test_further_keys_are_columns_and_come_back(
    form: Callable[[Path, Path], Path], items: Path, tmp_path: Path
) -> None:
    source = with_more(items, tmp_path / "set")
    expected = more_of(source) | AS_TEXT
    if form is imported_csv:
        expected = {
            key: [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
            for key, values in expected.items()
        }
    theirs = form(source, tmp_path)
    assert more_of(theirs) == expected
    assert mcq.check(theirs) == ()


def test_the_hub_is_told_of_further_columns(items: Path, tmp_path: Path) -> None:
    from datasets import Image, List, Value, load_dataset

    source = with_more(items, tmp_path / "set")
    out = mcq.export_table(source, out=tmp_path / "hub", to="hf")
    table = mcq.export_table(source, out=tmp_path / "t.parquet")
    head, body = card_of(out)
    assert "| `generator`, `group`, `steps`, `seen by`, `checked`, `mixed`" in body
    for rows in (
        load_dataset(str(out), split="test", cache_dir=str(tmp_path / "1")),
        load_dataset("parquet", data_files=str(table), split="train", cache_dir=str(tmp_path / "2")),
    ):
        assert rows.features["group"] == Value("int64")
        assert rows.features["steps"] == Value("float64")
        assert rows.features["seen by"] == List(Value("string"))
        assert rows.features["q3_overlay_image"] == Image()
        assert rows["generator"][:] == MORE["generator"]
    named = {each["name"]: each for each in head["dataset_info"]["features"]}
    assert (named["group"]["dtype"], named["seen by"]["list"]) == ("int64", "string")


def test_a_key_that_is_called_as_a_column_is_refused(items: Path, tmp_path: Path) -> None:
    loaded = mcq.load(items)
    named = mcq.ItemSet((Item.model_validate({**loaded[0].model_dump(), "q1_answer": "no"}),), loaded.file)
    for name, to in (("hub", "hf"), ("t.parquet", None), ("t.csv", None)):
        with pytest.raises(UsageError, match="'q1_answer', which is a reserved column of the table"):
            mcq.export_table(named, out=tmp_path / name, to=to)  # type: ignore[arg-type]
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("key", ["", "scene\0"])
def test_a_key_that_no_column_can_have_is_refused(items: Path, tmp_path: Path, key: str) -> None:
    loaded = mcq.load(items)
    named = mcq.ItemSet((Item.model_validate({**loaded[0].model_dump(), key: "x"}),), loaded.file)
    with pytest.raises(UsageError, match="cannot name a column"):
        mcq.export_table(named, out=tmp_path / "hub", to="hf")
    assert not any(tmp_path.iterdir())


def test_columns_of_a_release_beyond_its_own_are_kept_but_for_pictures(tmp_path: Path) -> None:
    rows = [each | {"model": "sdxl", "id": 7, "thumbnail": each["image"], "hash": b"x"} for each in release()]
    table = parquet(tmp_path / "t.parquet", rows)
    copied, there = mcq.import_table(table, out=tmp_path / "out"), mcq.load(table)
    assert [item.model_extra for item in copied] == [{"model": "sdxl"}] * len(rows)
    assert [item.id for item in copied] == [item.id for item in there] == [each["row_id"] for each in rows]
    assert {tuple((item.model_extra or {}).items()) for item in there} == {(("model", "sdxl"),)}


@pytest.mark.parametrize("title", ["---\nlicense: mit", 'a "b" # {c}: - d', "Ä\u2028ö", "{size}"])
def test_a_title_is_a_title_whatever_is_in_it(title: str, items: Path, tmp_path: Path) -> None:
    out = mcq.export_table(mcq.load(items)[:1], out=tmp_path / "set", to="hf", title=title, license="x\ny: z")
    head, body = card_of(out)
    assert head["pretty_name"] == " ".join(title.split())
    assert head["license"] == "x y: z"
    assert f"# {' '.join(title.split())}" in body.splitlines()


# The folder


@pytest.mark.slow
def test_an_export_is_written_over_and_nothing_else_is(items: Path, tmp_path: Path) -> None:
    out = tmp_path / "set"
    mcq.export_table(items, out=out, to="hf")
    (out / ".git").mkdir()
    (out / "LICENSE").write_text("mine")
    mcq.export_table(mcq.load(items)[:3], out=out, to="hf")
    assert len(mcq.load(out)) == 3
    assert sorted(each.name for each in out.iterdir()) == [".git", "LICENSE", "README.md", "data"]
    card = out / "README.md"
    card.write_text(card.read_text() + "\nWe thank our annotators.\n")
    with pytest.raises(UsageError, match="was written or edited by hand"):
        mcq.export_table(items, out=out, to="hf")
    assert len(mcq.load(out)) == 3
    refused = uncanny_here("mcq", "export", items, "-o", out, "--to", "hf")
    assert (refused.code, refused.out) == (2, "")
    assert "--force" in refused.told
    forced = uncanny_here("mcq", "export", items, "-o", out, "--to", "hf", "--force", "--license", "mit")
    assert (forced.code, forced.told) == (0, "")
    assert "thank" not in card.read_text()
    assert len(mcq.load(out)) == 8


def test_data_of_somebody_else_is_never_mixed_in(items: Path, tmp_path: Path) -> None:
    out = tmp_path / "set"
    (out / "data").mkdir(parents=True)
    pq.write_table(pa.table({"x": [1]}), out / "data" / "train.parquet")
    for force in (False, True):
        with pytest.raises(UsageError, match=r"train\.parquet is not an export of items"):
            mcq.export_table(items, out=out, to="hf", force=force)
    assert [each.name for each in out.rglob("*") if each.is_file()] == ["train.parquet"]


@pytest.mark.slow
def test_a_failed_export_leaves_the_earlier_one(items: Path, tmp_path: Path) -> None:
    out = tmp_path / "set"
    mcq.export_table(mcq.load(items)[:2], out=out, to="hf")
    before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    loaded = mcq.load(items)
    last = loaded[-1].model_dump()
    wrong = [{**last, "id": "gone", "image": "no.png"}, {**last, "id": "bare", "overlay": "no_q3.png"}]
    broken = mcq.ItemSet((*map(Item.model_validate, wrong), *loaded), loaded.file)
    for place, to in ((out, "hf"), (tmp_path / "new", "hf"), (tmp_path / "t.csv", None)):
        with pytest.raises(ItemsError, match="does not exist") as caught:
            mcq.export_table(broken, out=place, to=to)  # type: ignore[arg-type]
        assert [(each.item, each.field) for each in caught.value.problems] == [
            ("gone", "image"),
            ("bare", "overlay"),
        ]
        assert "'no.png'" in caught.value.problems[0].message
    assert {file: file.read_bytes() for file in out.rglob("*") if file.is_file()} == before
    assert [each.name for each in tmp_path.iterdir()] == ["set"]


def test_what_does_not_fit_is_refused_before_anything_is_written(
    items: Path, published: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    wrong: list[tuple[Path, dict[str, Any], str]] = [
        (tmp_path / "file", {"to": "hf"}, "is a file"),
        (tmp_path / "x", {}, "does not end in"),
        (tmp_path / "x.parquet", {"license": "mit"}, "apply only to"),
        (tmp_path / "x", {"to": "json"}, "`to` must be 'hf', 'parquet' or 'csv', not 'json'"),
        (published, {"to": "hf"}, "is the folder of the items themselves"),
        (tmp_path / "x", {"to": "hf", "prompts": tmp_path / "none"}, "does not exist"),
    ]
    for out, options, words in wrong:
        with pytest.raises(UsageError, match=words):
            mcq.export_table(published if out == published else items, out=out, **options)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


def test_without_a_license_the_card_and_the_command_say_so(items: Path, tmp_path: Path) -> None:
    done = uncanny_here("mcq", "export", items, "-o", tmp_path / "set", "--to", "hf")
    assert done.code == 0
    assert "No license is stated" in done.err
    assert done.out.splitlines()[0] == str(tmp_path / "set")
    head, body = card_of(tmp_path / "set")
    assert head["license"] == "unknown"
    assert "Not stated. Set `license`" in body


def test_a_large_set_is_several_files_in_order(
    items: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_SHARD_BYTES", 400_000)
    monkeypatch.setattr(export, "_ROWS_AT_ONCE", 2)
    out = mcq.export_table(items, out=tmp_path / "set", to="hf")
    names = sorted(file.name for file in (out / "data").iterdir())
    assert len(names) > 1
    assert names[0] == f"test-00000-of-{len(names):05d}.parquet"
    assert [item.id for item in mcq.load(out)] == [item.id for item in mcq.load(items)]
    assert mcq.check(out) == ()


# Reading tables where they lie


def test_pictures_of_one_name_keep_it_and_overlays_may_be_missing(items: Path, tmp_path: Path) -> None:
    loaded = mcq.load(items)
    folders = []
    for number, item in enumerate(loaded):
        place = tmp_path / "set" / str(number) / f"image{loaded.image_path(item).suffix}"
        place.parent.mkdir(parents=True)
        place.write_bytes(loaded.image_path(item).read_bytes())
        folders.append(item.model_copy(update={"image": os.path.relpath(place, tmp_path / "set")}))
    same = mcq.ItemSet(tuple(folders), tmp_path / "set" / "items.jsonl")
    table = mcq.export_table(same, out=tmp_path / "t.parquet", overlays=False)
    again = mcq.load(table)
    for before, after in zip(same, again, strict=True):
        assert after.image.rpartition("/")[2] == before.image.rpartition("/")[2]
        assert after.overlay is None
    assert mcq.check(again) == mcq.check(table) == ()


def test_the_release_is_read_where_it_lies_as_it_is_imported(tmp_path: Path) -> None:
    table = parquet(tmp_path / "t.parquet", release())
    copied, there = mcq.import_table(table, out=tmp_path / "out"), mcq.load(table)
    for before, after in zip(copied, there, strict=True):
        left = before.model_dump(exclude={"image", "overlay"})
        assert after.model_dump(exclude={"image", "overlay"}) == left
    # Nothing says that their pictures have paths: which overlays there are is read from the bytes.
    rows = [each | {"image": {"bytes": each["image"]["bytes"]}} for each in release()]
    rows[1]["q3_overlay_image"] = None
    without = mcq.load(parquet(tmp_path / "u.parquet", rows))
    assert [item.overlay is None for item in without] == [False, True, False, False]
    assert without.image_path(without[0]).name == "000000"


def test_everything_wrong_with_a_table_is_named_by_row(tmp_path: Path) -> None:
    rows = release()
    rows[0]["q2_answer"] = "G"
    rows[2] |= {"image_role": "model"}
    rows[3] |= {"row_id": "real"}
    rows.append({**release()[1], "row_id": "dg"})
    rows.append({**release()[1], "row_id": None})
    with pytest.raises(ItemsError) as caught:
        mcq.load(parquet(tmp_path / "t.parquet", rows))
    assert [(each.line, each.item, each.field) for each in caught.value.problems] == [
        (1, "dg", "q2_answer"),
        (3, "pg", "image_role"),
        (4, "real", "id"),
        (5, "dg", "id"),
        (6, None, "row_id"),
    ]
    few = parquet(tmp_path / "few.parquet", [{"row_id": "a", "image_role": "artifact"}])
    with pytest.raises(ItemsError, match="the table has no such column"):
        mcq.load(few)


def test_splits_that_a_table_has_are_taken_and_checked(tmp_path: Path) -> None:
    rows = release()
    for each, split in zip(rows, ("art_pg", "ref_real", "art_dg", "ref_pg"), strict=True):
        each["split"] = split
    # Only a pair would have made the first one `art_pg`.
    assert [item.split for item in mcq.load(parquet(tmp_path / "t.parquet", rows))] == [
        each["split"] for each in rows
    ]
    rows[0]["split"] = "ref_real"
    with pytest.raises(ItemsError, match="'ref_real' is not a split of images of the role artifact"):
        mcq.load(parquet(tmp_path / "u.parquet", rows))
