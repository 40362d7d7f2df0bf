"""`uncanny serve` and `uncanny token` as processes: from an upload to records, and what they refuse."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from tests.service.api.conftest import API
from tests.service.running import serving_process

SCENES = Path(__file__).parents[2] / "src" / "uncanny" / "demo" / "data" / "images"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "uncanny", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def serving(data: Path, *arguments: str) -> AbstractContextManager[tuple[subprocess.Popen[str], str]]:
    command = ("serve", "--port", "0", "--data", str(data), *arguments)
    return serving_process(*command, stderr=subprocess.PIPE)


def follow(client: httpx2.Client, job: str) -> list[tuple[str, Any]]:
    with client.stream("GET", f"{API}/jobs/{job}/events", timeout=60) as answer:
        return [(event.event, orjson.loads(event.data)) for event in httpx2.EventSource(answer)]


@pytest.mark.slow
def test_from_an_upload_to_records(tmp_path: Path) -> None:
    images = sorted(SCENES.glob("*.jpg"))[:2]
    assert len(images) == 2
    with serving(tmp_path) as (_, address), httpx2.Client(base_url=address, timeout=60) as client:
        assert client.get("/healthz").json()["worker"] is True
        files = [("files", (path.name, path.read_bytes(), "image/jpeg")) for path in images]
        uploaded = client.post(f"{API}/images", files=files).json()["id"]
        new = {"kind": "detect", "params": {"images": f"upload:{uploaded}", "model": "demo"}}
        job = client.post(f"{API}/jobs", json=new).json()["id"]
        events = follow(client, job)
        assert events[-1][0] == "state"
        assert events[-1][1]["state"] == "finished", events[-1]
        assert len([name for name, _ in events if name == "record"]) == 2
        assert len(client.get(f"{API}/jobs/{job}/records").json()["records"]) == 2
        assert client.get(f"{API}/jobs/{job}/result").json()["totals"]["ok"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_while_somebody_listens(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path, "--jobs", "0") as (process, address), httpx2.Client(base_url=address) as client:
        new = {"kind": "detect", "params": {"images": "scenes", "model": "demo"}}
        job = client.post(f"{API}/jobs", json=new).json()["id"]
        with client.stream("GET", f"{API}/jobs/{job}/events", timeout=60) as answer:
            lines = answer.iter_lines()
            assert next(lines) == "event: state"
            process.send_signal(number)
            assert not [line for line in lines if line.startswith("event: ")]
        assert process.wait(30) == 0
        assert process.stderr is not None
        # With a token it says nothing; without one, who can use it.
        assert process.stderr.read().splitlines() == [without_token(tmp_path)]


def without_token(data: Path) -> str:
    return (
        "There is no token: everyone with an account on this machine can use this service as an "
        f"operator. If other people have accounts, make a token: "
        f"uncanny token add NAME --role operator --data {data}."
    )


@pytest.mark.slow
def test_with_a_token_it_has_nothing_to_say_at_its_start(tmp_path: Path) -> None:
    assert run("token", "add", "ann", "--role", "operator", "--data", str(tmp_path)).returncode == 0
    with serving(tmp_path, "--jobs", "0") as (process, _):
        process.terminate()
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.slow
def test_tokens_are_made_listed_and_revoked_beside_it(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    with serving(tmp_path) as (_, address), httpx2.Client(base_url=address) as client:
        made = run("token", "add", "ann", "--role", "reader", *data)
        assert made.returncode == 0
        token = made.stdout.strip()
        assert re.fullmatch(r"unc_[\w-]{43}", token)
        assert token not in made.stderr
        assert client.get(f"{API}/me").status_code == 401
        bearer = {"Authorization": f"Bearer {token}"}
        assert client.get(f"{API}/me", headers=bearer).json()["name"] == "ann"
        listed = run("token", "list", "--json", *data)
        assert [(each["name"], each["role"]) for each in orjson.loads(listed.stdout)] == [("ann", "reader")]
        assert token not in listed.stdout
        assert run("token", "revoke", "ann", *data).returncode == 0
        assert client.get(f"{API}/me", headers=bearer).status_code == 401
        again = run("token", "revoke", "ann", *data)
        assert (again.returncode, "no token 'ann'" in again.stderr) == (2, True)
    assert "revoked" in run("token", "list", *data).stdout


@pytest.mark.slow
def test_beyond_this_machine_it_wants_a_token_first(tmp_path: Path) -> None:
    refused = run("serve", "--host", "0.0.0.0", "--port", "0", "--data", str(tmp_path))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"uncanny token add NAME --role operator --data {tmp_path}" in refused.stderr
    for option in (("--name", "lab.example.org"), ("--proxy", "127.0.0.1")):
        refused = run("serve", "--port", "0", "--data", str(tmp_path), *option)
        assert (refused.returncode, "By a proxy others can reach" in refused.stderr) == (2, True)
    token = run("token", "add", "ann", "--role", "operator", "--data", str(tmp_path)).stdout.strip()
    with serving(tmp_path, "--host", "0.0.0.0", "--jobs", "0") as (_, address):
        here = address.replace("0.0.0.0", "127.0.0.1")
        assert httpx2.get(f"{here}{API}/me").status_code == 401
        bearer = {"Authorization": f"Bearer {token}"}
        assert httpx2.get(f"{here}{API}/me", headers=bearer).json()["role"] == "operator"
        assert httpx2.get(f"{here}/healthz", headers={"Host": "evil.example"}).status_code == 400


@pytest.mark.slow
def test_wrong_use_is_refused_in_a_line(tmp_path: Path) -> None:
    cases = {
        "Is a variable unset": ("--data", ""),
        "is not a folder": ("--root", str(tmp_path / "nothing")),
        f"--role operator --data {tmp_path / 'data'}": ("--host", "203.0.113.1"),
        "cannot be used": ("--database", "postgresql://u:hunter2@127.0.0.1:1/d"),
    }
    for words, arguments in cases.items():
        refused = run("serve", "--port", "0", "--data", str(tmp_path / "data"), *arguments)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert words in refused.stderr, refused.stderr
        assert "Traceback" not in refused.stderr
        assert "hunter2" not in refused.stderr
    with serving(tmp_path / "other") as (_, address):
        taken = run("serve", "--port", address.rsplit(":", 1)[1], "--data", str(tmp_path / "data"))
        assert "cannot listen on port" in taken.stderr
        twice = run("serve", "--port", "0", "--data", str(tmp_path / "other"))
        assert "Another process is using" in twice.stderr


@pytest.mark.slow
def test_it_says_what_to_install(tmp_path: Path) -> None:
    for package in ("fastapi", "sqlalchemy", "limits", "prometheus_client", "python_multipart"):
        code = f"import sys; sys.modules[{package!r}] = None; from uncanny.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code, "serve", "--data", str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, "pip install -e '.[service]'" in done.stderr) == (2, True), done.stderr
