"""Addresses of servers as they are given: what is secret shows nowhere, what is wrong is put right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.e2e import Run, check_no_traceback, pictures, serving, uncanny_here

PASSWORD, PARAMETER = "Hunter2Secret", "parameter-Secret-7"


@pytest.mark.slow
@pytest.mark.parametrize("model", ["vllm/x", "openai-compatible/x", "anthropic/x"])
def test_what_is_secret_in_an_address_shows_nowhere(model: str, tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 9)
    variable = model.partition("/")[0].upper().replace("-", "_") + "_API_KEY"
    env = {variable: "any" if model == "anthropic/x" else None}

    def address(url: str) -> str:
        return url.replace("://", f"://me:{PASSWORD}@") + f"?api_key={PARAMETER}&api-version=1"

    faults = {"500": 0.1, "cut": 0.1, "malformed": 0.1, "truncated-json": 0.1}
    ended = []
    with serving(objects=2, faults=faults, seed=1) as server:
        url = server.url if model == "anthropic/x" else server.v1
        asked = ("annotate", images, "-m", model, "--base-url", address(url), "-o", run.path)
        ended.append(uncanny_here(*asked, "--dry-run", env=env))
        ended.append(uncanny_here(*asked, env=env))
        assert ended[-1].code in (0, 1)
        assert server.requests() > 20
        ended.append(uncanny_here("report", run.path))
        # Of the same server with another password, kept answers are found.
        before = server.requests()
        other = address(url).replace(PASSWORD, "other-Secret").replace(PARAMETER, "new-Secret")
        again = ("annotate", images, "-m", model, "--base-url", other, "--cache-dir", run.path / "answers")
        ended.append(uncanny_here(*again, "-o", tmp_path / "again", env=env))
        assert server.requests() - before < before
    for wrong in ("http://127.0.0.1:9/v1", "http://127.0.0.1:99999/v1", "127.0.0.1:9/v1"):
        arguments = ("annotate", images, "-m", model, "--base-url", address(wrong), "-o", tmp_path / "wrong")
        ended.append(uncanny_here(*arguments, env=env))
        assert ended[-1].code == 2, ended[-1].err
    secrets = (PASSWORD, PARAMETER, "other-Secret", "new-Secret")
    for done in ended:
        check_no_traceback(done)
        assert not any(secret in done.out + done.err for secret in secrets)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "answers.db" for path in files)
    assert [path for path in files if any(secret.encode() in path.read_bytes() for secret in secrets)] == []


def test_an_address_without_v1_is_put_right_and_said(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 2)
    with serving(objects=1) as server:
        asked = ("annotate", images, "-m", "openai/any", "--base-url", server.url, "-o", run.path)
        done = uncanny_here(*asked)
    assert done.code == 0, done.err
    assert f"Warning: openai/any: nothing is at {server.url}/; {server.v1}/ was used" in done.told
    assert run.statuses() == {"ok": 2}


@pytest.mark.parametrize(
    "url",
    ["gpu:8000", "http://gpu:99999/v1", "http://[::1/v1", "http://gpu\n/v1", "http://" + "a" * 300 + "/v1"],
)
@pytest.mark.parametrize("way", ["option", "variable", "dry-run"])
def test_a_bad_address_is_one_line_before_anything_is_done(
    url: str, way: str, tmp_path: Path, run: Run
) -> None:
    images = pictures(tmp_path / "in", 1)
    arguments = ["annotate", images, "-m", "openai/any", "-o", run.path]
    if way == "variable":
        done = uncanny_here(*arguments, env={"OPENAI_BASE_URL": url})
    else:
        done = uncanny_here(*arguments, "--base-url", url, *(["--dry-run"] if way == "dry-run" else []))
    check_no_traceback(done)
    assert (done.code, done.out, len(done.told.splitlines())) == (2, "", 1)
    assert "is not a base URL" in done.told


@pytest.mark.parametrize("given", ["http://127.0.0.1:9", "http://proxy.invalid:1"])
def test_a_server_on_this_machine_is_asked_without_the_proxy(given: str, tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 1)
    env = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY"), given)
    with serving(objects=1) as server:
        done = uncanny_here("annotate", images, *server.asked(), "-o", run.path, env=env)
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    "command",
    [("annotate", "IMAGES"), ("detect", "IMAGES"), ("mcq", "run", "scenes"), ("realism", "run", "scenes")],
    ids=" ".join,
)
def test_a_dry_run_says_what_is_missing_and_what_is_not_known(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    images = pictures(tmp_path / "in", 2)
    words = [images if word == "IMAGES" else word for word in command]
    arguments = (*words, "--model", "openai-compatible/x", "--dry-run")
    env = {"OPENAI_COMPATIBLE_API_KEY": None}
    done = uncanny_here(*arguments, env=env)
    assert (done.code, done.err) == (0, "")
    assert "Give --base-url or set OPENAI_COMPATIBLE_BASE_URL" in done.out
    assert "How many tokens an image takes is not known for openai-compatible/x" in done.out
    assert "Price unknown for openai-compatible/x: give one with --prices." in done.out
    assert "images on top" in done.out
    assert "?" not in done.out
    with_address = uncanny_here(*arguments, "--base-url", "http://gpu:8000", env=env)
    assert "OPENAI_COMPATIBLE_BASE_URL" not in with_address.out
    assert "OPENAI_COMPATIBLE_BASE_URL" in uncanny_here(*arguments, "--json", env=env).json()["missing"][0]
