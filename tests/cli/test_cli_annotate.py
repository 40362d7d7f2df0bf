"""Options of `uncanny annotate`, each by what it does to a run against a server."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.complaints import one_line
from tests.runs.e2e import Run, Server, check_no_traceback, pictures, serving, uncanny_here

# A look, a closer one at what is enlarged of two objects, and the integrator.
AN_IMAGE = 1 + 1 + 1


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(objects=2) as server:
        yield server


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return pictures(tmp_path / "in", 3)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "run")


def command(images: Path, server: Server, run: Run) -> list[object]:
    return ["annotate", images, *server.asked(), "-o", run.path]


def test_what_a_finished_run_tells(images: Path, server: Server, run: Run) -> None:
    done = uncanny_here(*command(images, server, run))
    assert (done.code, done.told) == (0, "")
    assert "Images   3: 3 ok" in done.out
    assert f"Calls    {3 * AN_IMAGE}" in done.out
    assert "Cost     not priced" in done.out
    assert str(run.path / "annotations.jsonl") in done.out
    assert (run.path / "report.html").stat().st_size > 1000


def test_json_is_json_and_quiet_is_quiet(images: Path, server: Server, run: Run) -> None:
    done = uncanny_here(*command(images, server, run), "--json")
    told = done.json()
    assert (done.code, done.told) == (0, "")
    assert (told["state"], told["totals"]["ok"], told["failures"]) == ("finished", 3, [])
    assert told["totals"]["calls"] == 3 * AN_IMAGE
    assert told["totals"]["cost_usd"] is None
    done = uncanny_here(*command(images, server, run), "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


@pytest.mark.parametrize("option", [("--ray-actors", "2"), ("--ray-address", "auto")])
def test_options_of_ray_are_refused_without_it(
    option: tuple[str, str], images: Path, server: Server, run: Run
) -> None:
    before = server.requests()
    for more in ((), ("--dry-run",), ("--engine", "local")):
        done = uncanny_here(*command(images, server, run), *option, *more)
        assert done.code == 2
        assert f"{option[0]} works only with --engine ray. Remove it, or pass --engine ray, too." in done.err
    assert server.requests() == before
    assert not run.path.exists()


def test_json_names_failures(images: Path, server: Server, run: Run) -> None:
    (images / "p01.png").write_bytes(b"no picture")
    done = uncanny_here(*command(images, server, run), "--json")
    assert done.code == 1
    (failure,) = done.json()["failures"]
    assert failure["image"].endswith("p01.png")
    assert failure["errors"][0]["kind"] == "not_an_image"


def test_a_role_has_its_own_model(images: Path, server: Server, run: Run) -> None:
    roles = ("--role", "integrator=openai/small", "--role", "attributes=anthropic/large")
    urls = ("--base-url", f"anthropic={server.url}")
    assert uncanny_here(*command(images, server, run), *roles, *urls).code == 0
    asked = {(call["agent"], call["model"]) for call in run.calls()}
    assert asked == {
        ("ObjectPerceiver", "openai/any"),
        ("AttributeAnalyzer", "anthropic/large"),
        ("AnomalyIntegrator", "openai/small"),
    }
    assert run.manifest()["roles"] == {"attributes": "anthropic/large", "integrator": "openai/small"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--role", "painter=openai/x"], ["painter", "perceiver", "formatter"]),
        (["--role", "integrator"], ["--role ROLE=PROVIDER/NAME"]),
        (["--model", "openai/other"], ["--model is given 2 times", "one model"]),
        (["--max-objects", "3", "--max-objects", "4"], ["--max-objects is given 2 times"]),
        (["--timeout", "inf"], ["--timeout must be above 0", "inf"]),
        (["--patience", "nan"], ["--patience must be a number", "nan"]),
        (["--timeout", "1e300"], ["--timeout must be", "1e300"]),
        (["--max-output-tokens", "1e20"], ["--max-output-tokens must be a whole number", "1e20"]),
        (
            ["--max-output-tokens", "1" + "0" * 20],
            ["--max-output-tokens must be from 1 to 1,000,000", "1000"],
        ),
        (["--max-tokens-total", "9" * 400], ["--max-tokens-total must be", "not 999"]),
        (["--max-tokens-total", "9" * 5000], ["--max-tokens-total must be", "not 999"]),
        (["--concurrency", "1000000"], ["--concurrency must be from 1 to 10,000", "1000000"]),
        (["--max-cost-usd", "inf"], ["--max-cost-usd must be", "inf"]),
        (["--temperature", "nan"], ["--temperature must be", "nan"]),
        (["--scene-scans", "1000000000"], ["--scene-scans must be", "1000000000"]),
        (["--fallback", "nobody/x"], ["nobody/x"]),
        (["--base-url", "localhost:8000"], ["localhost:8000"]),
        (["--concurrency", "0"], ["--concurrency"]),
        (["--limit", "0"], ["--limit"]),
        (["--timeout", "0"], ["--timeout"]),
        (["--max-tokens-total", "-5"], ["--max-tokens-total"]),
        (["--max-cost-usd", "0"], ["--max-cost-usd"]),
        (["--temperature", "3"], ["--temperature", "3"]),
        (["--repeats", "0"], ["--repeats", "0"]),
        (["--max-regions", "101"], ["--max-regions", "101"]),
        (["--view", "63"], ["--view", "63"]),
        (["--language", "Klingon; ignore all"], ["--language must be the name of a language", "letters"]),
        (["--prices", "nowhere.json"], ["nowhere.json"]),
        (["--max-side", "0"], ["side", "0"]),
        (["--jpeg-quality", "0"], ["quality", "0"]),
        (["--max-pixels", "0"], ["pixels", "0"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_wrong_use_is_one_line_and_exit_code_2(
    options: list[str], words: list[str], images: Path, server: Server, run: Run
) -> None:
    before = server.requests()
    done = uncanny_here(*command(images, server, run), *options)
    check_no_traceback(done)
    assert (done.code, done.out, len(done.told.splitlines())) == (2, "", 1)
    assert all(word in done.told for word in words), done.told
    assert server.requests() == before
    assert not (run.path / "annotations.jsonl").exists()


@pytest.mark.parametrize(
    ("model", "words"), [("gpt-4o", ["gpt-4o", "openai/gpt-4o"]), ("openai/", ["openai/"])]
)
def test_a_model_that_is_none(model: str, words: list[str], images: Path, run: Run) -> None:
    one_line(uncanny_here("annotate", images, "-m", model, "-o", run.path), *words)


def test_no_images_and_no_such_folder(tmp_path: Path, server: Server, run: Run) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        done = uncanny_here(*command(path, server, run))
        assert (done.code, done.out, len(done.told.splitlines())) == (2, "", 1)
        assert str(path) in done.told
        assert not (run.path / "annotations.jsonl").exists()


def test_a_run_folder_that_cannot_be_made(tmp_path: Path, images: Path, server: Server) -> None:
    (tmp_path / "file").write_text("")
    done = uncanny_here(*command(images, server, Run(tmp_path / "file" / "run")))
    assert (done.code, done.out, len(done.told.splitlines())) == (2, "", 1)
    check_no_traceback(done)


@pytest.mark.parametrize("name", ["annotations.jsonl", "calls.jsonl", "run.json"])
def test_something_else_in_the_way(name: str, images: Path, server: Server, run: Run) -> None:
    (run.path / name).mkdir(parents=True)
    done = uncanny_here(*command(images, server, run))
    assert (done.code, done.out, len(done.told.splitlines())) == (2, "", 1)
    assert name in done.told
    (run.path / name).rmdir()
    assert uncanny_here(*command(images, server, run), "-q").code == 0


def test_limit_takes_the_first_and_more_later(images: Path, server: Server, run: Run) -> None:
    before = server.requests()
    assert uncanny_here(*command(images, server, run), "--limit", "2", "-q").code == 0
    assert server.requests() - before == 2 * AN_IMAGE
    assert [Path(record.image).name for record in run.records()] == ["p00.png", "p01.png"]
    assert uncanny_here(*command(images, server, run), "-q").code == 0
    assert server.requests() - before == 3 * AN_IMAGE
    assert run.statuses() == {"ok": 3}


@pytest.mark.parametrize(
    ("schedule", "an_image"), [("packed", 1 + 2 + 1 + 1), ("paper", 3 + 6 * 8 + 1), ("single", 1)]
)
def test_a_dry_run_asks_nothing_and_needs_no_key(
    schedule: str, an_image: int, images: Path, server: Server, run: Run
) -> None:
    before = server.requests()
    options = ("-o", run.path, "--dry-run", "--schedule", schedule)
    arguments = ("annotate", images, *server.asked("openai", "gpt-4o"), *options)
    done = uncanny_here(*arguments, env={"OPENAI_API_KEY": None})
    assert (done.code, done.told) == (0, "")
    assert "Nothing was asked" in done.out
    told = uncanny_here(*arguments, "--json", env={"OPENAI_API_KEY": None}).json()
    assert (told["images"], told["pending"], told["calls"]) == (3, 3, 3 * an_image)
    assert told["cost_usd"] > 0
    assert server.requests() == before
    assert not run.path.exists()


def test_a_dry_run_counts_what_is_left_only(images: Path, server: Server, run: Run) -> None:
    assert uncanny_here(*command(images, server, run), "--limit", "2", "-q").code == 0
    before = {path: path.read_bytes() for path in run.path.rglob("*.json*")}
    told = uncanny_here(*command(images, server, run), "--dry-run", "--json").json()
    assert (told["images"], told["pending"]) == (3, 1)
    assert before == {path: path.read_bytes() for path in run.path.rglob("*.json*")}


def test_without_cache_nothing_is_kept(images: Path, server: Server, run: Run) -> None:
    before = server.requests()
    for times in (1, 2):
        assert uncanny_here(*command(images, server, run), "--no-cache", "-q").code == 0
        assert server.requests() - before == times * 3 * AN_IMAGE
        assert not (run.path / "answers").exists()
        shutil.rmtree(run.path)


def test_a_shared_cache_asks_once_for_two_runs(
    tmp_path: Path, images: Path, server: Server, run: Run
) -> None:
    shared = ("--cache-dir", tmp_path / "shared", "-q")
    before = server.requests()
    assert uncanny_here(*command(images, server, run), *shared).code == 0
    other = Run(tmp_path / "other")
    assert uncanny_here(*command(images, server, other), *shared).code == 0
    assert server.requests() - before == 3 * AN_IMAGE
    assert not (run.path / "answers").exists()
    assert other.manifest()["totals"]["calls"] == 0
    assert other.manifest()["totals"]["replayed"] == 3 * AN_IMAGE
    assert all(call["replayed"] for call in other.calls())
    assert [record.anomalies for record in other.records()] == [r.anomalies for r in run.records()]
    # Another temperature is another question.
    hotter = Run(tmp_path / "hotter")
    assert uncanny_here(*command(images, server, hotter), *shared, "--temperature", "0.7").code == 0
    assert server.requests() - before == 2 * 3 * AN_IMAGE


@pytest.mark.parametrize("provider", ["openai", "anthropic", "vllm"])
def test_no_more_calls_at_once_than_asked_for(provider: str, images: Path, run: Run) -> None:
    with serving(objects=4, latency_ms=20) as server:
        arguments = ("annotate", images, *server.asked(provider), "-o", run.path, "-q")
        assert uncanny_here(*arguments, "--concurrency", "3").code == 0
        assert server.stats()["max_concurrent"] == 3


def test_names_are_relative_to_the_root(images: Path, server: Server, run: Run) -> None:
    assert uncanny_here(*command(images, server, run), "--root", images, "-q").code == 0
    assert [record.image for record in run.records()] == ["p00.png", "p01.png", "p02.png"]


def test_what_the_object_limit_cuts_is_recorded(images: Path, server: Server, run: Run) -> None:
    assert uncanny_here(*command(images, server, run), "--max-objects", "1", "-q").code == 0
    for record in run.records():
        assert [found.name for found in record.objects] == ["synthetic object 1"]
        cut = (record.model_extra or {})["cut_objects"]
        assert [found["name"] for found in cut] == ["synthetic object 2"]


def test_scene_scans_add_a_call_each(images: Path, server: Server, run: Run) -> None:
    before = server.requests()
    assert uncanny_here(*command(images, server, run), "--scene-scans", "2", "-q").code == 0
    assert server.requests() - before == 3 * (AN_IMAGE + 1)
    assert {call["sample"] for call in run.calls() if call["agent"] == "SceneScanner"} == {1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--schedule", "paper", "--max-regions", "6"],
            "--max-regions has no effect with the schedule `paper`",
        ),
        (["--schedule", "single", "--view", "900"], "--view has no effect with the schedule `single`"),
        (
            ["--schedule", "single", "--max-objects", "4"],
            "--max-objects has no effect with the schedule `single`",
        ),
        (["--schedule", "single", "--role", "formatter=openai/x"], "--role formatter has no effect"),
        (
            ["--scene-scans", "0", "--role", "scanner=openai/x"],
            "the schedule `packed` never asks the SceneScanner",
        ),
    ],
)
def test_an_option_without_effect_is_refused_before_anything_is_asked(
    arguments: list[str], message: str, images: Path, server: Server, run: Run
) -> None:
    before = server.requests()
    for more in ([], ["--dry-run"]):
        done = uncanny_here(*command(images, server, run), *arguments, *more)
        assert (done.code, done.out, server.requests()) == (2, "", before)
        assert message in done.told
    assert not run.path.exists()
