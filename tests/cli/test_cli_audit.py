"""`uncanny audit` at the terminal: the leaderboard in 80 columns, files, and refusals in a line."""

from __future__ import annotations

import csv
from importlib import import_module
from pathlib import Path

import numpy as np
import orjson
import pytest

from tests.cli.complaints import one_line, problems
from tests.eval.audit.annotation_sets import left_out, record, run_folder, written
from tests.runs.e2e import uncanny_here
from uncanny.demo.scenes import scenes
from uncanny.eval.audit.data.folder import read_generator_folder
from uncanny.eval.audit.run import audit
from uncanny.records.annotation_table import LINES, TABLE

FAST = ("--resamples", 100, "--no-report")


def generator(folder: Path, name: str, rate: float, images: int = 60, **other: object) -> str:
    rng = np.random.default_rng(int(10 * rate))
    records = [
        record(f"{index:03}.png", rng.integers(0, 60, count).tolist(), **other)
        for index, count in enumerate(rng.poisson(rate, images))
    ]
    return f"{name}={written(folder / f'{name}-{rate}.jsonl', records)}"


@pytest.fixture
def three(tmp_path: Path) -> list[str]:
    """Two that are alike, and a long name."""
    return [
        generator(tmp_path, "worse by far, and with a name that goes on and on", 9.0),
        generator(tmp_path, "good", 2.0),
        generator(tmp_path, "alike", 2.1),
    ]


def test_leaderboard(three: list[str]) -> None:
    done = uncanny_here("audit", *three, *FAST)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].split() == ["generator", "images", "MAI", "AF", "CAP"]
    assert [line[:3] for line in lines[1:4]] == [" 1 ", " 2≈", " 3 "]
    # Names are never cut, though the line gets longer than the terminal is wide; sentences are wrapped.
    assert lines[3].startswith(" 3  worse by far, and with a name that goes on and on  ")
    assert max(map(len, lines[4:])) <= 80
    assert "do not differ significantly: CAP −" in " ".join(lines[4:7])
    assert "Significantly worse than the first: worse by far, and with a name that" in done.out
    assert "Lower is better, 0 is flawless." in done.out
    assert "100 resamples of images" in done.out


def test_pairs_and_published(three: list[str]) -> None:
    done = uncanny_here("audit", *three, "--pair-by", "stem", "--published", *FAST)
    assert done.code == 0
    assert "over 60 shared prompts" in " ".join(done.out.split())
    assert "resamples of prompts (by stem)" in done.out
    assert "Janus Pro 7B 4.28 6.75 28.89 6.49 8.69 56.39" in " ".join(done.out.split())
    assert "asked with the authors' prompts" in " ".join(done.out.split())


def test_many_alike_are_told_in_one_line(tmp_path: Path) -> None:
    many = [generator(tmp_path, f"g{index}", 3 + index / 100) for index in range(7)]
    done = uncanny_here("audit", *many, *FAST)
    assert done.out.count("≈") == 7
    assert "≈ does not differ significantly from the one before." in done.out
    assert "Significantly worse than the first: none." in done.out


def test_two_assessors(tmp_path: Path) -> None:
    first = [generator(tmp_path, "a", 2.0), generator(tmp_path, "b", 6.0)]
    second = [generator(tmp_path, "a", 1.0, model="vllm/x"), generator(tmp_path, "b", 5.0, model="vllm/x")]
    against = [word for each in second for word in ("--against", each)]
    done = uncanny_here("audit", *first, *against, *FAST)
    assert done.code == 0
    assert "Assessor: openai/any" in done.out
    assert "Assessor: vllm/x" in done.out
    assert "CAP 1.00 1.00 2" in " ".join(done.out.split())


def test_left_out_is_said_and_the_exit_code_shows_it(tmp_path: Path) -> None:
    whole = [record(f"{index}.png", [40]) for index in range(200)]
    few = f"few={written(tmp_path / 'few.jsonl', [*whole, left_out('x.png', 'partial')])}"
    many = f"many={written(tmp_path / 'many.jsonl', [*whole[:9], left_out('x.png', 'failed')])}"
    done = uncanny_here("audit", few, many, *FAST)
    assert done.code == 1
    text = " ".join(done.out.split())
    assert "few: 1 of 201 images are left out." in text
    assert "Note: many: 1 of 10 images are left out (1 failed); the figures are of the others." in text


def test_files(tmp_path: Path, three: list[str]) -> None:
    json, table, page = tmp_path / "f.json", tmp_path / "f.csv", tmp_path / "f.html"
    done = uncanny_here(
        "audit", *three, "--resamples", 50, "--json", json, "--csv", table, "--report", page, "-q"
    )
    assert (done.code, done.out, done.err) == (0, "", "")
    scores = orjson.loads(json.read_bytes())
    with table.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["generator"] for row in rows] == scores["order"]
    assert [float(row["cap"]) for row in rows] == [
        scores["generators"][name]["cap"] for name in scores["order"]
    ]
    assert page.read_text().startswith("<!doctype html>")


def test_the_command_writes_what_the_function_returns(tmp_path: Path, three: list[str]) -> None:
    """JSON and CSV of all options, from the function with the same names and defaults."""
    sources = dict(argument.split("=", 1) for argument in three)
    second = dict(
        argument.split("=", 1)
        for argument in (
            generator(tmp_path, "good", 1.0, model="vllm/x"),
            generator(tmp_path, "alike", 4.0, model="vllm/x"),
        )
    )
    plain = audit(sources)
    assert uncanny_here("audit", *three, "--json", "-").json() == orjson.loads(orjson.dumps(plain.to_json()))
    assert uncanny_here("audit", *three, "--csv", "-").out == plain.to_csv()
    options = ("--pair-by", "stem", "--resamples", 50, "--seed", 3, "--worst", 2, "--published")
    against = [word for name, place in second.items() for word in ("--against", f"{name}={place}")]
    done = uncanny_here("audit", *three, *against, *options, "--json", "-")
    result = audit(sources, against=second, pair_by="stem", resamples=50, seed=3, worst=2, published=True)
    assert done.json() == orjson.loads(orjson.dumps(result.to_json()))
    assert uncanny_here("audit", *three, *against, *options, "--no-report").out == f"{result}\n"


def test_standard_output_is_for_one_thing(three: list[str]) -> None:
    assert set(uncanny_here("audit", *three, *FAST, "--json", "-").json()["order"]) == {
        each.partition("=")[0] for each in three
    }
    done = uncanny_here("audit", *three, *FAST, "--csv", "-")
    assert done.out.startswith("source,assessor,rank,generator")
    assert len(done.out.splitlines()) == 4
    one_line(uncanny_here("audit", *three, *FAST, "--csv", "-", "--json", "-"), "cannot both")


def test_refusals(tmp_path: Path) -> None:
    good = generator(tmp_path, "good", 2.0)
    folder = tmp_path / "images"
    folder.mkdir()
    one_line(uncanny_here("audit", "nothing", *FAST), "'nothing' does not name", "NAME=RUN")
    for argument in ("=a", "a=", " =a"):
        one_line(uncanny_here("audit", argument, *FAST), "lacks a name or a path", "NAME=PATH")
    one_line(uncanny_here("audit", "a=missing", *FAST), "missing does not exist")
    one_line(uncanny_here("audit", good, good, *FAST), "Two generators are called")
    one_line(uncanny_here("audit", good, f"b={folder}", *FAST), "no model is named", "--model")
    one_line(uncanny_here("audit", f"b={folder}", "--model", "demo", *FAST), "-o runs/NAME")
    one_line(uncanny_here("audit", good, "--against", f"good={folder}", *FAST), "Annotate them first")
    one_line(uncanny_here("audit", good, "--against", good, *FAST), "share 1 generator")
    one_line(
        uncanny_here("audit", f"b={folder}", "--model", "demo", "-o", tmp_path / "o", *FAST), "No images in"
    )
    problems(
        uncanny_here("audit", good, "--pair-by", "seed", *FAST),
        "field seed: is missing",
        "(60 times: line 1,",
    )
    for option in ("--resamples", "--seed", "--worst"):
        problems(uncanny_here("audit", good, option, "-1"), option)


def test_bad_records_are_refused_before_any_file_is_written(tmp_path: Path) -> None:
    bad = f"bad={written(tmp_path / 'bad.jsonl', [record('a.png', [101]), record('b.png', [-3])])}"
    done = uncanny_here("audit", bad, "--json", tmp_path / "f.json", "--report", tmp_path / "f.html")
    problems(done, "bad.jsonl: 2 problems", "line 1, item 'a.png', field anomalies.0.severity", "line 2")
    assert not (tmp_path / "f.json").exists()
    assert not (tmp_path / "f.html").exists()


def test_not_alike(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    run_folder(first, [record("a.png")])
    run_folder(second, [record("a.png", model="vllm/x")], plan={"repeats": 1, "max_objects": 12})
    command = ("audit", f"a={first}", f"b={second}", *FAST)
    problems(uncanny_here(*command), "models: a: openai/any; b: vllm/x", "setting repeats: a: 3; b: 1")
    done = uncanny_here(*command, "--allow-mixed")
    assert done.code == 0
    assert "Not made alike: models: a: openai/any; b: vllm/x" in done.out


def test_one_generator_alone(tmp_path: Path) -> None:
    done = uncanny_here("audit", generator(tmp_path, "alone", 2.0), *FAST)
    assert (done.code, done.err) == (0, "")
    assert "≈" not in done.out


def test_nothing_measured_is_a_dash(tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", [left_out("a.png", "failed")])
    done = uncanny_here("audit", f"a={file}", *FAST)
    assert done.code == 1
    assert done.out.splitlines()[1].split() == ["1", "a", "0", "–", "–", "–"]


def run_of(folder: Path, images: int = 12) -> Path:
    return run_folder(folder, [record(f"{index}.png", [20] * (index % 3)) for index in range(images)])


def test_generators_kept_as_tables_are_taken_from_a_folder(tmp_path: Path) -> None:
    pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
    image = scenes()[0].image_path.read_bytes()
    for name in ("ours", "theirs", "words"):
        (tmp_path / "all" / name / "data").mkdir(parents=True)
    for name in ("ours", "theirs"):
        pq.write_table(pa.table({"image": [image]}), tmp_path / "all" / name / "data" / "train-0.parquet")
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "all" / "words" / "data" / "train-0.parquet")
    run_of(tmp_path / "all" / "run").joinpath("run.json").unlink()
    (lines := tmp_path / "all" / "run" / LINES).unlink()
    table_only = lines.with_name(TABLE)
    pq.write_table(pa.table({"image": ["a.png"]}), table_only)
    folder = read_generator_folder(tmp_path / "all")
    assert list(folder.generators) == ["ours", "run", "theirs"]
    assert folder.skipped == {"words": "contains no images and no annotations"}
    done = uncanny_here("audit", tmp_path / "all" / "ours" / "data", *FAST)  # one generator's own folder
    assert done.code == 2
    (tmp_path / "all" / "run" / TABLE).unlink()
    done = uncanny_here("audit", tmp_path / "all", "--model", "demo", "--dry-run", *FAST)
    assert (done.code, "Images   2, 2 to do" in done.out) == (0, True)


def test_a_folder_of_generators_and_no_page_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    all_of_them = tmp_path / "runs"
    for name in ("ours", "theirs"):
        run_of(all_of_them / name)
    (all_of_them / "empty").mkdir()
    (all_of_them / "notes.txt").write_text("words")
    before = run_of(tmp_path / "v1")
    done = uncanny_here(*("audit", "runs", "--own", "ours", "--before", f"ours={before}", "--resamples", 50))
    assert (done.code, done.err) == (0, "")
    text = " ".join(done.out.split())
    assert "runs: 2 folders taken as generators: ours, theirs." in text
    assert "Skipped: empty (contains no images and no annotations), notes.txt (no folder)." in text
    assert "ours shows a visible fault in 67 % of images" in text
    assert "ours, now and before, over 12 shared prompts" in text
    assert "No page was written: name a file with --report, or a folder with -o." in done.out
    assert sorted(each.name for each in tmp_path.iterdir()) == ["runs", "v1"]
    done = uncanny_here("audit", "runs", "-o", "runs", "--title", "Release 2 <b>", "--resamples", 50)
    assert "Report   runs/audit.html" in done.out
    page = (all_of_them / "audit.html").read_text()
    assert "<title>Release 2 &lt;b&gt;" in page
    assert "runs: 2 folders taken" in page
    (all_of_them / "reports").mkdir()
    (all_of_them / "reports" / "01-ours.html").write_text("an audit's own page")
    again = uncanny_here("audit", "runs", "--resamples", 50, "--json", "-").json()
    assert again["order"] == ["ours", "theirs"]
    assert again["notices"][0].endswith(
        "Skipped: empty (contains no images and no annotations), notes.txt (no folder)."
    )


def test_folders_that_hold_no_generators_are_refused(tmp_path: Path) -> None:
    one_line(uncanny_here("audit", run_of(tmp_path / "a"), *FAST), "is a run, not a folder", "NAME=")
    empty = tmp_path / "empty"
    empty.mkdir()
    one_line(uncanny_here("audit", empty, *FAST), "contains no generators")
    (empty / "a.png").write_bytes(b"x")
    one_line(uncanny_here("audit", empty, *FAST), "images, not a folder", f"NAME={empty}")
    good = generator(tmp_path, "good", 2.0)
    one_line(uncanny_here("audit", good, "--own", "bad", *FAST), "--own names 'bad'", "Pass one of good")


def test_the_dry_run_has_one_total(tmp_path: Path) -> None:
    from PIL import Image

    for name, images in (("a", 2), ("b", 3)):
        for number in range(images):
            (tmp_path / name).mkdir(exist_ok=True)
            Image.new("RGB", (64, 64)).save(tmp_path / name / f"{number}.png")
    command = ("audit", tmp_path, "--model", "openai/gpt-4o", "--dry-run")
    done = uncanny_here(*command)
    assert done.code == 0
    parts = done.out.split("All 2 generators together\n")
    assert len(parts) == 2
    assert parts[1].startswith("Images   5")

    def costs(text: str) -> list[float]:
        return [float(line.split("$")[1].split(",")[0]) for line in text.splitlines() if "Cost" in line]

    assert sum(costs(parts[0])) == pytest.approx(costs(parts[1])[0], abs=0.0002)


@pytest.mark.slow
def test_each_generator_has_a_page_that_the_audit_leads_to(tmp_path: Path) -> None:
    """Images that are annotated get a page of their run; runs and files without one on demand."""
    file = generator(tmp_path, "a file/<b>", 2.0, images=4, model="demo", prompts=demo_texts())
    folder = tmp_path / "audit"
    command = ("audit", "drawn=scenes:drawn", file, "--model", "demo", "--limit", 2, "-o", folder)
    done = uncanny_here(*command, "--resamples", 50, "--allow-mixed")
    assert done.code == 0, done.err
    assert (folder / "drawn" / "report.html").is_file()
    page = (folder / "audit.html").read_text()
    assert 'href="drawn/report.html"' in page
    assert not (folder / "reports").exists()
    assert uncanny_here(*command, "--resamples", 50, "--allow-mixed", "--reports").code == 0
    page = (folder / "audit.html").read_text()
    (own,) = (folder / "reports").iterdir()
    assert own.name.endswith("a-file-b-.html")
    assert f'href="reports/{own.name}"' in page
    assert "000.png" in own.read_text()
    elsewhere = tmp_path / "new" / "place"
    assert uncanny_here("audit", file, "--resamples", 50, "--reports", "-o", elsewhere).code == 0
    assert (elsewhere / "reports" / own.name.replace("02-", "01-")).is_file()


def demo_texts() -> str:
    from uncanny.prompts.folders import read_prompts

    return read_prompts("annotate", None).id
