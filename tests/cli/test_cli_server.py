"""`--server`: commands that run on a real service, with results here as if they had been made here."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.runs.e2e import Done, environment, pictures, serving_process, uncanny_here
from tests.service.running import RunningService, make_token, running
from uncanny.demo.scenes import scenes
from uncanny.service.client import Client

IMAGES = [scene.image_path for scene in scenes()[:4]]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running(tmp_path_factory.mktemp("service")) as service:
        yield service


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for image in IMAGES:
        shutil.copy(image, folder)
    return folder


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of scores go to the current folder."""
    monkeypatch.chdir(tmp_path)


def there(service: RunningService, *arguments: object) -> Done:
    return uncanny_here(*arguments, "--server", service.address)


def records(run: Path, name: str = "annotations.jsonl") -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (run / name).read_bytes().splitlines()]


def without_stamps(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in line.items() if key != "file_stamp"} for line in lines]


def jobs_of(service: RunningService) -> list[str]:
    with Client(service.address) as client:
        return [job.id for job in client.jobs()]


@pytest.mark.slow
def test_a_run_comes_home_as_if_it_had_been_made_here(
    service: RunningService, photos: Path, tmp_path: Path
) -> None:
    shutil.copy(photos / IMAGES[0].name, photos / f"copy-of-{IMAGES[0].name}")
    home, local = tmp_path / "runs" / "home", tmp_path / "runs" / "local"
    done = there(service, "annotate", photos, "-m", "demo", "-o", home, "--repeats", 2)
    assert (done.code, "Traceback" in done.told) == (0, False)
    assert f"Run      {home}" in done.out
    assert uncanny_here("annotate", photos, "-m", "demo", "-o", local, "--repeats", 2).code == 0
    by_image = {line["image"]: line for line in without_stamps(records(local))}
    brought = {line["image"]: line for line in without_stamps(records(home))}
    assert brought.keys() == by_image.keys()
    originals = {image for image, line in by_image.items() if "duplicate_of" not in line}
    both = [image for image in originals if "duplicate_of" not in brought[image]]
    assert len(both) >= 3
    assert all(brought[image] == by_image[image] for image in both)
    assert sum("duplicate_of" in line for line in brought.values()) == 1
    # Whatever works on a run works on this one.
    assert uncanny_here("report", home).code == 0
    page = (home / "report.html").read_text(encoding="utf-8")
    assert IMAGES[0].name in page
    scored = uncanny_here("semantic", home, "--truth", "scenes", "--similarity", "chrf", "--json", "-")
    assert scored.code == 0
    resumed = uncanny_here("annotate", photos, "-m", "demo", "-o", home, "--repeats", 2, "--json")
    assert (resumed.code, json.loads(resumed.out)["totals"]["replayed"]) == (0, 0)
    assert not any(path.name.startswith(".incoming") for path in home.iterdir())


@pytest.mark.slow
def test_the_same_command_finds_its_job_again(service: RunningService, photos: Path, tmp_path: Path) -> None:
    command = ("annotate", photos, "-m", "demo", "-o", tmp_path / "run")
    left = there(service, *command, "--detach", "--json")
    assert left.code == 0
    job = json.loads(left.out)["job"]
    before = jobs_of(service)
    done = there(service, *command, "--json")
    assert done.code == 0
    result = json.loads(done.out)
    assert result["run"] == str(tmp_path / "run")
    assert result["totals"]["ok"] == 4
    assert jobs_of(service) == before
    assert job in (tmp_path / "run" / "server.json").read_text()
    # With one image more only that one is sent, and asked about.
    shutil.copy(scenes()[5].image_path, photos)
    more = there(service, *command, "--json")
    assert (more.code, json.loads(more.out)["totals"]["images"]) == (0, 5)
    assert jobs_of(service) == before
    assert len(records(tmp_path / "run")) == 5


@pytest.mark.slow
def test_other_options_are_another_run(service: RunningService, photos: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert there(service, "annotate", photos, "-m", "demo", "-o", run, "--no-report").code == 0
    assert not (run / "report.html").exists()
    other = there(service, "annotate", photos, "-m", "demo", "-o", run, "--repeats", 2)
    assert (other.code, "--repeats" in other.told) == (2, True)
    before = jobs_of(service)
    fewer = there(service, "annotate", photos, "-m", "demo", "-o", run, "--no-report", "--limit", 2, "--json")
    # What was done before belongs to the run, whatever it is limited to now.
    assert (fewer.code, json.loads(fewer.out)["totals"]["images"], jobs_of(service)) == (0, 4, before)
    kind = there(service, "detect", photos, "-m", "demo", "-o", run)
    assert (kind.code, "annotate" in kind.told) == (2, True)
    local = tmp_path / "local"
    assert uncanny_here("annotate", photos, "-m", "demo", "-o", local).code == 0
    assert there(service, "annotate", photos, "-m", "demo", "-o", local).code == 2


@pytest.mark.slow
def test_every_option_that_is_not_taken_is_named(
    service: RunningService, photos: Path, tmp_path: Path
) -> None:
    before = jobs_of(service)
    refused = there(
        service,
        "annotate",
        photos,
        "-m",
        "demo",
        "-o",
        tmp_path / "run",
        "--cache-dir",
        tmp_path,
        "--base-url",
        "http://x",
    )
    assert refused.code == 2
    assert "does not take --base-url, --cache-dir" in refused.told
    prompts = there(service, "annotate", photos, "-m", "demo", "-o", tmp_path / "run", "--prompts", tmp_path)
    assert (prompts.code, "--prompts names a folder" in prompts.told) == (2, True)
    several = there(service, "detect", "scenes", "-m", "demo", "-m", "noop", "-o", tmp_path / "run")
    assert (several.code, "one model" in several.told) == (2, True)
    unnamed = there(service, "annotate", photos, "-m", "demo")
    assert (unnamed.code, "-o runs/NAME" in unnamed.told) == (2, True)
    bounds = there(service, "annotate", photos, "-m", "no/such", "-o", tmp_path / "run")
    assert (bounds.code, "model" in bounds.told) == (2, True)
    alone = uncanny_here("annotate", photos, "-m", "demo", "-o", tmp_path / "run", "--detach")
    assert (alone.code, "--server" in alone.told) == (2, True)
    assert jobs_of(service) == before


def test_a_forecast_is_made_here(photos: Path) -> None:
    done = uncanny_here(
        "annotate", photos, "-m", "demo", "--dry-run", "--json", "--server", "http://127.0.0.1:9"
    )
    assert (done.code, json.loads(done.out)["images"]) == (0, 4)


@pytest.mark.slow
def test_images_that_are_refused_are_told_and_count(
    service: RunningService, photos: Path, tmp_path: Path
) -> None:
    (photos / "broken.png").write_bytes(b"no image")
    done = there(service, "detect", photos, "-m", "demo", "-o", tmp_path / "run")
    assert done.code == 1
    assert "1 image left out" in done.told
    assert "broken.png" in done.told
    assert len(records(tmp_path / "run")) == 4


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_every_kind_of_run_and_of_score(service: RunningService, photos: Path, tmp_path: Path) -> None:
    """What lies here is sent, with the images that it names; what lies there is named."""
    from uncanny.eval.mcq.data.load import copy_scenes
    from uncanny.eval.realism.data import store_scene_pairs

    items = copy_scenes(tmp_path / "items")
    pairs = store_scene_pairs(tmp_path / "pairs")
    asked = ("--limit", 2, "-m", "demo", "-o")
    assert there(service, "mcq", "run", items, *asked, tmp_path / "m").code == 0
    assert uncanny_here("mcq", "score", items, tmp_path / "m").code == 0
    assert uncanny_here("report", tmp_path / "m").code == 0
    assert there(service, "realism", "run", pairs, *asked, tmp_path / "r").code == 0
    assert {line["outcome"] for line in records(tmp_path / "r", "verdicts.jsonl")} == {"judged"}
    assert uncanny_here("realism", "score", tmp_path / "r").code == 0
    assert there(service, "artifacts", "run", photos, *asked, tmp_path / "x").code == 0
    assert (tmp_path / "photos" / IMAGES[0].name).samefile(
        tmp_path / "x" / records(tmp_path / "x", "artifacts.jsonl")[0]["image"]
    )
    assert there(service, "annotate", photos, *asked, tmp_path / "a").code == 0
    assert uncanny_here("annotate", photos, *asked, tmp_path / "b").code == 0
    few = ("--resamples", 20)
    named = (f"one={tmp_path / 'a'}", f"two={tmp_path / 'b'}")
    tables = ("--csv", tmp_path / "c.csv", "--markdown", tmp_path / "c.md", "--latex", tmp_path / "c.tex")
    assert there(service, "compare", *named, *few, "--json", tmp_path / "c.json", *tables).code == 0
    local = uncanny_here("compare", *named, *few, "--no-report", "--csv", "-").out.splitlines()
    lines = (tmp_path / "c.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(local)
    assert lines[:5] == local[:5]
    assert "| B − A |" in (tmp_path / "c.md").read_text(encoding="utf-8")
    assert "\\begin{tabular}" in (tmp_path / "c.tex").read_text(encoding="utf-8")
    judged = there(
        service, "detect", "scenes", "--limit", 4, "-m", "demo", "-o", tmp_path / "d", "--csv", "-"
    )
    head, *classes = judged.out.splitlines()
    assert (judged.code, head.split(",")[:2], len(classes)) == (0, ["model", "source"], 3)
    (tmp_path / "c.csv").write_text("my notes")
    foreign = there(service, "compare", *named, *few, "--csv", tmp_path / "c.csv")
    assert (foreign.code, "already exists" in foreign.told) == (2, True)
    assert json.loads((tmp_path / "c.json").read_bytes())["images"]["both"] == 2
    assert (tmp_path / "compare.html").stat().st_size > 1000
    scored = there(
        service,
        "semantic",
        *named,
        "--truth",
        "scenes",
        "--similarity",
        "chrf",
        *few,
        "--per-image",
        tmp_path / "per.jsonl",
        "--json",
        "-",
        "--thresholds",
        "0.5,0.6",
    )
    assert (scored.code, list(json.loads(scored.out)["predictions"])) == (0, ["one", "two"])
    assert (tmp_path / "per.jsonl").is_file()
    audited = there(
        service, "audit", f"one={tmp_path / 'a'}", f"two={photos}", "-m", "demo", "-o", tmp_path / "u", *few
    )
    assert audited.code == 0
    assert (tmp_path / "u" / "audit.html").is_file()
    assert len(records(tmp_path / "u" / "two")) == 4
    measured = there(service, "edits", "measure", pairs, "-o", tmp_path / "e.jsonl")
    assert (measured.code, len((tmp_path / "e.jsonl").read_bytes().splitlines())) == (0, 16)
    assert (
        there(service, "export", tmp_path / "a", "--all", "--to", "csv,jsonl", "-o", tmp_path / "out").code
        == 0
    )
    assert len(list((tmp_path / "out").glob("*.csv"))) == 1
    here = there(service, "export", tmp_path / "b", "--all", "--to", "csv", "-o", tmp_path / "out2")
    assert (here.code, "is on this machine" in here.told) == (2, True)


@pytest.mark.slow
def test_reviews_that_were_written_here_stay(service: RunningService, photos: Path, tmp_path: Path) -> None:
    command = ("annotate", photos, "-m", "demo", "-o", tmp_path / "run")
    assert there(service, *command).code == 0
    with Client(service.address) as client:
        job = next(client.jobs())
        job.judge(next(job.findings()), "accept")
    assert there(service, *command).code == 0
    (reviews,) = (tmp_path / "run").glob("reviews.jsonl")
    assert len(reviews.read_bytes().splitlines()) == 1
    reviews.write_bytes(reviews.read_bytes() * 2)
    with Client(service.address) as client:
        client.verdicts(job.id, [(next(client.job(job.id).findings()), "reject")])
    done = there(service, *command)
    assert (done.code, "reviews of its own" in done.told) == (0, True)
    assert len(reviews.read_bytes().splitlines()) == 2


@pytest.mark.slow
def test_a_wrong_address_is_one_line(photos: Path, tmp_path: Path) -> None:
    command = ("annotate", photos, "-m", "demo", "-o", tmp_path / "run", "--server")
    for address in ("http://127.0.0.1:9", "nonsense", "http://ann:s3cret@127.0.0.1:9"):
        done = uncanny_here(*command, address)
        assert done.code == 2
        assert len(done.told.splitlines()) == 1
        assert "s3cret" not in done.told
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_exit_codes_are_those_of_the_command(photos: Path, tmp_path: Path) -> None:
    """Budget, failures, Ctrl-C, a role that is too low, and no key of this machine goes there."""
    with serving_process() as models, serving_process("--faults", "refusal=1") as refusing:
        keys = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": models.v1}
        keys |= {"OPENAI_COMPATIBLE_API_KEY": "any", "OPENAI_COMPATIBLE_BASE_URL": refusing.v1}
        data = tmp_path / "data"
        reader, operator = (make_token(data, role, role) for role in ("reader", "operator"))
        with running(data, environment=keys) as service:
            env = {"UNCANNY_SERVER_TOKEN": operator, "OPENAI_API_KEY": "sk-mine"}

            def run(name: str, *options: object, env: dict[str, str] = env) -> Done:
                command = ("annotate", photos, "-o", tmp_path / name, *options, "--server", service.address)
                return uncanny_here(*command, env=env)

            over = run("over", "-m", "openai/gpt-4o", "--max-tokens-total", 3000)
            assert (over.code, "over budget" in over.out) == (3, True)
            # The same run goes on with more.
            more = run("over", "-m", "openai/gpt-4o", "--max-tokens-total", 10**7)
            assert (more.code, len(records(tmp_path / "over"))) == (0, 4)
            with Client(service.address, operator) as client:
                assert len(list(client.jobs())) == 1
            failed = run("failed", "-m", "openai-compatible/any", "--patience", 5)
            assert failed.code in (1, 2)
            low = run("low", "-m", "demo", env=env | {"UNCANNY_SERVER_TOKEN": reader})
            assert (low.code, "role" in low.told) == (2, True)
            none = run("none", "-m", "demo", env={"UNCANNY_SERVER_TOKEN": ""})
            assert (none.code, "UNCANNY_SERVER_TOKEN" in none.told) == (2, True)
            everything = b"".join(path.read_bytes() for path in data.rglob("*") if path.is_file())
            assert b"sk-mine" not in everything


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_ctrl_c_leaves_the_job_running(photos: Path, tmp_path: Path) -> None:
    with serving_process("--latency-ms", "300") as models:
        keys = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": models.v1}
        with running(tmp_path / "data", environment=keys) as service, Client(service.address) as client:
            command = ["annotate", photos, "-m", "openai/any", "--concurrency", 1, "-o", tmp_path / "run"]
            arguments = [str(each) for each in (*command, "--server", service.address)]
            process = subprocess.Popen(
                [sys.executable, "-m", "uncanny", *arguments],
                stderr=subprocess.PIPE,
                text=True,
                env=environment(),
                start_new_session=True,
            )
            assert process.stderr is not None
            line = process.stderr.readline()
            while "running" not in line:
                line = process.stderr.readline()
            os.kill(process.pid, signal.SIGINT)
            _, told = process.communicate(timeout=60)
            assert process.returncode == 130
            assert "keeps running" in told
            assert "the same command brings them" in told
            (job,) = client.jobs()
            assert job.state == "running"
            # Killed and started again meanwhile, and the same command still brings the results.
            service.kill()
            service.start()
            done = uncanny_here(*arguments)
            assert done.code == 0
            assert len(records(tmp_path / "run")) == 4
            assert [each.id for each in client.jobs()] == [job.id]


def test_a_forecast_of_a_detached_run_needs_no_service(tmp_path: Path) -> None:
    images = pictures(tmp_path / "in", 1)
    asked = ("annotate", images, "-m", "openai/gpt-4o", "--dry-run", "--detach")
    with_service = uncanny_here(*asked, "--server", "http://127.0.0.1:9")
    assert with_service.code == 0, with_service.err
    assert with_service.out.startswith("Images   1, 1 to do")
    without = uncanny_here(*asked)
    assert without.code == 2
    assert "--detach works only with --server" in without.err
