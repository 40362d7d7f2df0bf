"""`uncanny.Client` at a real `uncanny serve`: uploads, jobs, results, roles, and a server that is killed."""

from __future__ import annotations

import doctest
import hashlib
import inspect
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import uncanny
from tests.runs.e2e import serving_process
from tests.service.running import RunningService, make_token, running
from uncanny.demo.scenes import scenes
from uncanny.errors import (
    AccessError,
    ConflictError,
    NotFoundError,
    ParamsError,
    ServiceError,
    UncannyError,
    UsageError,
)
from uncanny.models.addresses import warned_of
from uncanny.service.answers import JobProgress
from uncanny.service.client import Client, ClientJob
from uncanny.service.client import downloads as downloads_module
from uncanny.service.client.job import facts
from uncanny.service.client.uploads import batches, collect

IMAGES = [scene.image_path for scene in scenes()[:4]]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running(tmp_path_factory.mktemp("service")) as service:
        yield service


@pytest.fixture
def client(service: RunningService) -> Iterator[Client]:
    with Client(service.address) as client:
        yield client


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    (folder / "more").mkdir(parents=True)
    for number, image in enumerate(IMAGES):
        shutil.copy(image, folder / "more" if number else folder)
    return folder


@pytest.fixture(scope="module")
def finished(service: RunningService) -> ClientJob:
    """A job over four scenes that is finished."""
    return Client(service.address).annotate(IMAGES, model="demo", name="four").wait()


@pytest.mark.slow
def test_the_examples_run(service: RunningService, tmp_path: Path) -> None:
    for each in (uncanny.Client, uncanny.ClientJob):
        names = {"uncanny": uncanny, "address": service.address, "images": IMAGES[0], "out": tmp_path / "out"}
        report: list[str] = []
        (example,) = doctest.DocTestFinder(recurse=False).find(each, globs=names)
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=report.append)
        assert example.examples
        assert not report, "".join(report)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)


@pytest.mark.slow
def test_images_are_sent_once_under_their_names_and_refusals_are_told(client: Client, photos: Path) -> None:
    (photos / "broken.png").write_bytes(b"no image")
    (photos / "notes.txt").write_text("no image either")
    shutil.copy(photos / "more" / IMAGES[1].name, photos / "a-copy.webp")
    sent: list[tuple[int, int]] = []
    uploaded = client.upload(photos, on_sent=lambda done, of: sent.append((done, of)))
    names = sorted(image.name for image in uploaded.images)
    expected = ["a-copy.webp", IMAGES[0].name, *(f"more/{image.name}" for image in IMAGES[1:])]
    assert names == sorted(f"photos/{name}" for name in expected)
    assert [(each.name, each.code) for each in uploaded.refused] == [("photos/broken.png", "not_an_image")]
    # One content twice: a set has each once, so the second lies in another set.
    assert len(uploaded.sets) == 2
    assert sent[0] == (0, 6)
    assert sent[-1] == (6, 6)
    again = client.upload([photos / "more"], into=uploaded)
    assert set(again.sets) <= set(uploaded.sets)
    digests = {hashlib.sha256(image.read_bytes()).hexdigest() for image in IMAGES[1:]}
    assert {image.sha256 for image in again.images} == digests


@pytest.mark.slow
def test_the_result_of_a_failed_job_is_its_reason(client: Client) -> None:
    job = client.annotate(IMAGES[0], model="openai-compatible/nothing").wait()
    assert job.state == "failed"
    with pytest.raises(ConflictError, match=r"has failed: .*OPENAI_COMPATIBLE_BASE_URL"):
        job.result  # noqa: B018


@pytest.mark.slow
def test_bytes_are_images_too(client: Client) -> None:
    data = IMAGES[0].read_bytes()
    by_content = client.upload(data)
    assert by_content.images[0].name == hashlib.sha256(data).hexdigest()[:16] + IMAGES[0].suffix
    named = client.upload({"a/cat.jpg": data})
    assert [image.name for image in named.images] == ["a/cat.jpg"]
    job = client.annotate(data, model="demo").wait()
    assert job.state == "finished"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("images", "message"),
    [("nowhere", "nowhere"), ([], "no image"), ([3], "int"), (b"no image", "accepted no images")],
)
def test_what_is_no_image_is_refused_in_words(client: Client, images: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        client.upload(images)


def test_batches_stay_small(tmp_path: Path) -> None:
    for number in range(120):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(tmp_path / f"{number:03}.png")
    groups = list(batches(collect(tmp_path).images))
    assert [len(group) for group in groups] == [50, 50, 20]


@pytest.mark.slow
def test_a_job_from_its_start_to_its_records(client: Client, finished: ClientJob, tmp_path: Path) -> None:
    job = client.job(finished.id)
    assert (job.state, job.exit_code, job.error) == ("finished", 0, None)
    assert (job.progress.total, job.progress.done, job.progress.failed) == (4, 4, 0)
    annotations = list(job.annotations())
    assert all(type(each) is uncanny.Annotation for each in annotations)
    assert [Path(each.image).name for each in annotations] == [image.name for image in IMAGES]
    assert job.result["totals"]["ok"] == 4
    files = {file.path for file in job.files()}
    assert {"run/run.json", "run/annotations.jsonl", "result.json"} <= files
    places = job.download(tmp_path / "home")
    assert {place.relative_to(tmp_path / "home").as_posix() for place in places} == files
    for file in job.files():
        assert hashlib.sha256((tmp_path / "home" / file.path).read_bytes()).hexdigest() == file.sha256
    assert job.id in {each.id for each in client.jobs(kind="annotate", state="finished")}
    assert str(job.url).endswith(f"/jobs/{job.id}")


def test_nobody_is_told_to_wait_for_no_time() -> None:
    assert facts(JobProgress(calls=8, rate=2.0, eta_s=75.2)) == "2.0 calls/s · 1 min 15 s to go · 8 calls"
    for eta in (0.0, 0.4, None):
        assert facts(JobProgress(calls=8, eta_s=eta)) == "8 calls"


@pytest.mark.slow
def test_a_download_goes_into_no_folder_of_something_else(finished: ClientJob, tmp_path: Path) -> None:
    home = tmp_path / "home"
    finished.download(home)
    assert finished.download(home)
    (home / ".uncanny-job").write_text(f"job_{'a' * 20}\n")
    with pytest.raises(UsageError, match=r"has the files of another job, 'job_a+'"):
        finished.download(home)
    with pytest.raises(UsageError, match=r"run is the folder of another run\. Pass another folder"):
        finished.download(home / "run")
    with pytest.raises(UsageError, match=r"result\.json is a file\. Pass a folder"):
        finished.download(home / "result.json")
    other = tmp_path / "other"
    other.mkdir()
    (other / "result.json").write_text("mine")
    with pytest.raises(UsageError, match=r"result\.json already exists and differs"):
        finished.download(other)
    assert [each.name for each in other.iterdir()] == ["result.json"]
    assert (other / "result.json").read_text() == "mine"


@pytest.mark.slow
def test_events_tell_what_happens(client: Client) -> None:
    job = client.detect("scenes", model="demo", limit=5)
    events = list(job.events())
    assert {event.name for event in events} == {"record", "progress", "state"}
    assert sum(event.name == "record" for event in events) == 5
    assert job.state == "finished"
    assert list(job.events()) == []
    assert all(type(each) is uncanny.Detection for each in job.annotations())


@pytest.mark.slow
def test_the_same_key_is_the_same_job(client: Client) -> None:
    first = client.detect("scenes", model="demo", limit=1, key="mine")
    second = client.detect("scenes", model="demo", limit=1, key="mine")
    assert first.id == second.id
    assert client.detect("scenes", model="demo", limit=1).id != first.id
    with pytest.raises(ConflictError):
        client.detect("scenes", model="demo", limit=2, key="mine")


@pytest.mark.slow
def test_other_jobs_are_inputs(client: Client, finished: ClientJob) -> None:
    job = client.submit(
        "semantic", {"predictions": {"ours": finished.reference}, "truth": "scenes", "similarity": "chrf"}
    ).wait()
    assert job.state == "finished"
    assert "ours" in job.result["predictions"]
    assert client.mcq("scenes", model="demo", limit=1).wait().state == "finished"
    assert client.realism("scenes", model="demo", limit=1).wait().state == "finished"
    assert (
        client.artifacts(finished.record.params["images"], model="demo", limit=1).wait().state == "finished"
    )


@pytest.mark.slow
def test_limits_are_put_up_where_a_job_has_ended(client: Client) -> None:
    job = client.detect("scenes", model="demo", limit=1, max_tokens_total=10**9).wait()
    assert job.limits(limit=3, max_tokens_total=None).record.params["limit"] == 3
    assert job.state == "finished"
    assert job.retry().wait().progress.done == 3
    for wrong, message in (({"limit": 0}, "limit"), ({"model": "noop"}, "model")):
        with pytest.raises(ParamsError, match=message):
            job.limits(**wrong)
    assert job.retry().state in ("queued", "running")
    with pytest.raises(ConflictError):
        job.limits(limit=2)
    score = client.submit(
        "compare", {"runs": {"a": job.wait().reference, "b": job.reference}, "resamples": 5}
    )
    with pytest.raises(ParamsError, match="limit"):
        score.wait().limits(limit=2)


@pytest.mark.slow
def test_findings_are_judged(client: Client, finished: ClientJob) -> None:
    findings = list(finished.findings())
    assert findings
    judged = client.verdicts(finished, [(findings[0], "accept")])
    assert judged[0].votes == {"local": "accept"}
    assert finished.judge(findings[0], "reject").decision == "reject"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "params", "error", "message"),
    [
        ("dance", {}, UncannyError, "dance"),
        ("detect", {"images": "scenes"}, ParamsError, "model"),
        ("detect", {"images": "scenes", "model": "demo", "api_key": "x"}, ParamsError, "api_key"),
        ("detect", {"images": "upload:set_" + "a" * 20, "model": "demo"}, ParamsError, "images"),
        ("detect", {"images": "/etc", "model": "demo"}, ParamsError, "images"),
        ("detect", {"images": float("nan")}, UsageError, "images|model"),
        ("detect", {"images": object()}, UsageError, "JSON"),
    ],
)
def test_what_does_not_fit_is_told_by_its_field(
    client: Client, kind: str, params: dict[str, Any], error: type[UncannyError], message: str
) -> None:
    with pytest.raises(error, match=message):
        client.submit(kind, params)


@pytest.mark.slow
def test_errors_say_things_once(client: Client) -> None:
    with pytest.raises(ParamsError) as wrong:
        client.submit("detect", {"images": "scenes", "model": "demo", "api_key": "x"})
    assert str(wrong.value).startswith("api_key: is not a parameter")
    with pytest.raises(NotFoundError) as missing:
        client.job("job_" + "a" * 20)
    assert str(missing.value).count("may have been deleted") == 1
    with pytest.raises(UsageError, match="address of `uncanny serve`"):
        Client("lab:8765")


@pytest.mark.slow
def test_what_is_not_there_is_told(client: Client) -> None:
    with pytest.raises(NotFoundError):
        client.job("job_" + "a" * 20)
    with pytest.raises(NotFoundError, match="not the id"):
        client.job("../me")


@pytest.mark.slow
def test_a_deleted_job_is_gone(client: Client, tmp_path: Path) -> None:
    job = client.detect("scenes", model="demo", limit=1).wait()
    job.delete()
    for use in (job.refresh, lambda: job.result, job.files, lambda: list(job.records()), job.retry):
        with pytest.raises(NotFoundError):
            use()
    with pytest.raises(NotFoundError):
        job.download(tmp_path)


@pytest.mark.slow
def test_slow_jobs_are_waited_for_cancelled_and_tried_again(tmp_path: Path) -> None:
    with serving_process("--latency-ms", "400") as models:
        keys = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": models.v1}
        with running(tmp_path / "data", environment=keys) as service, Client(service.address) as client:
            job = client.annotate(IMAGES, model="openai/any", concurrency=1)
            assert job.wait(timeout_s=0.3).state in ("queued", "running")
            with pytest.raises(ConflictError, match="wait"):
                _ = job.result
            # What runs goes on by itself.
            assert job.retry().state in ("queued", "running")
            assert job.cancel().wait().state == "cancelled"
            assert job.exit_code == 130
            assert job.retry().state in ("queued", "running")
            assert job.cancel().wait().has_ended


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_server_that_is_killed_is_waited_for(photos: Path, tmp_path: Path) -> None:
    """In the middle of an upload, of waiting and of a download; nothing is started, asked or sent twice."""
    for number in range(150):
        Image.new("RGB", (64, 64), (number, 1, 2)).save(photos / f"{number:03}.png")
    with serving_process("--latency-ms", "100") as models:
        keys = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": models.v1}
        with (
            running(tmp_path / "data", environment=keys) as service,
            Client(service.address, patience_s=300) as client,
        ):

            def restart() -> None:
                service.kill()
                service.start()

            seen: list[int] = []

            def on_sent(done: int, _of: int) -> None:
                seen.append(done)
                if len(seen) == 2:
                    restart()

            uploaded = client.upload(photos, on_sent=on_sent)
            assert len(uploaded.images) == 154
            assert len({image.name for image in uploaded.images}) == 154

            job = client.annotate(uploaded, model="openai/any", limit=12)
            for event in job.events():
                if event.name == "record":
                    restart()
                    break
            again = threading.Timer(1.0, restart)
            again.start()
            job.wait()
            again.join()
            assert job.state == "finished"
            assert len(list(job.annotations())) == 12
            assert len(list(client.jobs())) == 1

            part = downloads_module._CHUNK
            try:
                downloads_module._CHUNK = 1000  # type: ignore[misc]
                killed: list[str] = []

                def on_file(file: Any, _place: Path) -> None:
                    if not killed:
                        killed.append(file.path)
                        restart()

                places = job.download(tmp_path / "home", on_file=on_file)
            finally:
                downloads_module._CHUNK = part  # type: ignore[misc]
            assert killed
            for file, place in zip(job.files(), places, strict=True):
                assert hashlib.sha256(place.read_bytes()).hexdigest() == file.sha256


@pytest.mark.slow
def test_a_server_that_stays_away_is_given_up(tmp_path: Path) -> None:
    with running(tmp_path / "data") as service, Client(service.address, patience_s=1.0) as client:
        job = client.detect("scenes", model="demo", limit=1).wait()
        service.kill()
        for use in (client.me, job.refresh, job.files):
            with pytest.raises(ServiceError, match="cannot be reached"):
                use()
        service.start()
        assert job.refresh().state == "finished"


@pytest.mark.slow
def test_roles_and_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    tokens = {role: make_token(data, role, role) for role in ("reader", "reviewer", "operator")}
    with running(data) as service:
        with Client(service.address) as nobody, pytest.raises(AccessError, match="wants a token") as wants:
            nobody.me()
        assert "UNCANNY_SERVER_TOKEN" in str(wants.value)
        with Client(service.address, "unc_" + "x" * 40) as stranger:
            with pytest.raises(AccessError, match="does not take this token") as refused:
                stranger.me()
            assert "xxx" not in f"{refused.value!r} {refused.value} {stranger!r} {vars(stranger)}"
        monkeypatch.setenv("UNCANNY_SERVER_TOKEN", tokens["operator"])
        with Client(service.address) as operator:
            assert (operator.me().name, operator.me().role) == ("operator", "operator")
            job = operator.annotate(IMAGES[:1], model="demo").wait()
        with Client(service.address, tokens["reader"]) as reader:
            theirs = reader.job(job.id)
            assert theirs.state == "finished"
            finding = next(theirs.findings())
            for act in (
                lambda: reader.upload(IMAGES[0]),
                lambda: reader.detect("scenes", model="demo"),
                theirs.cancel,
                theirs.delete,
                lambda: theirs.judge(finding, "accept"),
            ):
                with pytest.raises(AccessError, match="role"):
                    act()
        with Client(service.address, tokens["reviewer"]) as reviewer:
            judged = reviewer.job(job.id).judge(finding, "accept")
            assert judged.votes == {"reviewer": "accept"}


def test_no_token_is_shown() -> None:
    client = Client("http://127.0.0.1:9", "unc_" + "s3cret" * 6, patience_s=0)
    with pytest.raises(ServiceError) as error:
        client.me()
    shown = [repr(client), str(client), repr(client.connection), str(error.value), repr(error.value)]
    assert not any("s3cret" in each for each in shown)


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "schlüssel"])
def test_what_is_no_token_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(UsageError) as error:
        Client("http://127.0.0.1:9", token)
    assert token not in str(error.value)


def test_it_needs_nothing_of_what_serves() -> None:
    code = """
import sys
class Missing:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {"fastapi", "starlette", "uvicorn", "sqlalchemy", "alembic", "psycopg"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import uncanny
print(uncanny.Client("http://127.0.0.1:9"))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "<Client http://127.0.0.1:9>\n"


def test_every_method_has_its_words() -> None:
    for each in (Client, ClientJob):
        for name, member in inspect.getmembers(each):
            if not name.startswith("_"):
                assert inspect.getdoc(member), name


def test_a_token_over_plain_http_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    warned_of.cache_clear()
    for url in ("http://127.1:8765", "http://localhost.:8765", "https://lab.example"):
        Client(url, token="a-token-of-some-length").close()
    Client("http://lab.example:8765", token=None).close()
    assert caplog.messages == []
    Client("http://lab.example:8765", token="a-token-of-some-length").close()
    (message,) = caplog.messages
    assert "over plain http" in message
    assert "a-token" not in message
