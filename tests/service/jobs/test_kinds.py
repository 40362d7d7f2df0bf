"""The kinds of jobs: what parameters they take, what these may name, and each as a job that runs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bundled_runs import BundledRuns
from tests.runs.e2e import pictures
from tests.service.jobs.working import ended, records, working
from uncanny.errors import NotFoundError, ParamsError, RunMismatchError
from uncanny.service import new_id
from uncanny.service.answers import Job
from uncanny.service.jobs.kinds import KINDS, Kind, check_params, values_of
from uncanny.service.service import Service
from uncanny.wording import another_run, rendered, shown


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "in").mkdir(parents=True)
    (folder / "items.jsonl").touch()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").touch()
    return folder


@pytest.fixture
def opened(tmp_path: Path, root: Path) -> Iterator[Service]:
    with Service.open(tmp_path / "data", roots=[root]) as service:
        yield service


def wrong(service: Service, kind: str, **params: Any) -> dict[str, str]:
    with pytest.raises(ParamsError) as error:
        check_params(service, kind, params)
    return dict(error.value.fields)


def values(service: Service, kind: str, **params: Any) -> dict[str, Any]:
    job = Job.model_construct(kind=kind, params=check_params(service, kind, params))
    return values_of(service, job)


def test_the_command_gets_the_parameters_with_places_for_references(opened: Service, root: Path) -> None:
    made = values(
        opened,
        "annotate",
        images=[str(root / "in")],
        model="openai/gpt-4o",
        roles={"integrator": "openai/gpt-4o-mini"},
        timeout_s=2.5,
        cache=False,
        retry_failed=True,
        schedule="paper",
        temperature=0.0,
    )
    assert made == {
        "images": [f"{opened.data}/roots/root/in"],
        "model": "openai/gpt-4o",
        "roles": {"integrator": "openai/gpt-4o-mini"},
        "timeout_s": 2.5,
        "cache": False,
        "retry_failed": True,
        "schedule": "paper",
        "temperature": 0.0,
        "out": "run",
        "as_json": True,
    }


@pytest.mark.parametrize("name", ["text_model", "dreamsim"])
def test_weights_are_named_by_who_runs_the_service_and_by_nobody_else(
    tmp_path: Path, root: Path, name: str
) -> None:
    """Loading them may run code of their folder: no path, upload or job is one, also not below a root."""
    model = tmp_path / "secret" / "model"
    model.mkdir()
    (root / "model").mkdir()
    params = {"pairs": "scenes", name: "mini"}
    with Service.open(tmp_path / "data", roots=[root], weights={"mini": model}) as service:
        assert values(service, "edits_measure", **params)[name] == str(model)
        image_set = service.uploads.new_set(name=None, by="ann").id
        for other in ("other", str(model), str(root / "model"), "model", f"upload:{image_set}", "scenes"):
            words = wrong(service, "edits_measure", **(params | {name: other}))
            said = f"{shown(other)} is not the name of a folder of weights here; the names are mini"
            assert words == {name: said}
    with Service.open(tmp_path / "data", roots=[root]) as service:
        assert "the names are none" in wrong(service, "edits_measure", **params)[name]


def click_command(kind: Kind) -> click.Command:
    module, _, name = import_module("uncanny.cli").COMMANDS[kind.protocol.command[0]][0].partition(":")
    found: click.Command = getattr(import_module(f"uncanny.cli.{module}"), name)
    for part in kind.protocol.command[1:]:
        assert isinstance(found, click.Group)
        found = found.commands[part]
    return found


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.protocol.name)
def test_every_parameter_is_one_of_its_command(kind: Kind) -> None:
    names = {param.name for param in click_command(kind).params}
    names |= {"model"} if "models" in names else set()
    assert {*kind.params.model_fields, *kind.fixed} <= names


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.protocol.name)
def test_every_kind_has_a_schema_and_refuses_what_it_does_not_know(kind: Kind, opened: Service) -> None:
    schema = kind.params.model_json_schema()
    assert schema["additionalProperties"] is False
    assert wrong(opened, kind.protocol.name, out="/tmp/x")["out"] == "is not a parameter"
    assert kind.params.__doc__


def test_an_unknown_kind_is_not_found(opened: Service) -> None:
    with pytest.raises(NotFoundError, match="There is no kind of job 'rm'"):
        check_params(opened, "rm", {})


@pytest.mark.parametrize(
    "reference",
    [
        "../secret",
        "../secret/file",
        "/etc/passwd",
        "in/../../secret",
        "link",
        "link/file",
        "loop",
        "missing",
        "http://127.0.0.1/a.png",
        "file:///etc/passwd",
        "upload:../../secret",
        "upload:set_" + "a" * 20,
        "upload:file_" + "a" * 20,
        "upload:job_" + "a" * 20,
        "job:job_" + "a" * 20,
        "job:../../secret",
        "job:",
        "--help",
        "a\0b",
        "a\nb",
        "x" * 5000,
        "",
    ],
)
def test_nothing_outside_can_be_named(opened: Service, root: Path, reference: str) -> None:
    (root / "link").symlink_to(root.parent / "secret")
    (root / "loop").symlink_to(root / "loop")
    assert set(wrong(opened, "annotate", images=[reference], model="demo")) == {"images.0"}
    # It names what was asked for, and nothing of where that leads.
    said = str(wrong(opened, "mcq", items=reference, model="demo")["items"])
    assert "secret" not in said.replace(shown(reference), "").replace(shown(reference.partition(":")[2]), "")


def test_links_within_the_allowed_folders_are_followed(opened: Service, root: Path) -> None:
    (root / "link").symlink_to(root / "in")
    made = values(opened, "annotate", images="link", model="demo")
    assert made["images"] == [f"{opened.data}/roots/root/in"]


def test_a_link_that_leads_out_later_is_refused_when_the_job_starts(opened: Service, root: Path) -> None:
    job = opened.submit("annotate", {"images": "in", "model": "demo"}, by="ann")
    (root / "in").rmdir()
    (root / "in").symlink_to(root.parent / "secret")
    with working(opened):
        done = ended(opened, job)
    assert (done.state, done.attempt) == ("failed", 1)
    assert "images.0: 'root/in' is not there, or is not in an allowed folder" in (done.error or "")


@pytest.mark.parametrize(
    "image",
    [
        "../secret/cat.png",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("{secret}/cat.png", "link/cat.png")),
    ],
)
def test_records_that_are_uploaded_name_no_image_outside(opened: Service, root: Path, image: str) -> None:
    """The file of pairs is the requester's; what it names is looked at when it is read."""
    secret = root.parent / "secret"
    pictures(secret, 1)
    next(secret.glob("*.png")).rename(secret / "cat.png")
    (root / "link").symlink_to(secret)
    (root / "ok.png").write_bytes((secret / "cat.png").read_bytes())
    named = image.format(secret=secret)
    pairs = [
        {"id": "bad", "original": named, "edited": "ok.png"},
        {"id": "mask", "original": "ok.png", "edited": "ok.png", "mask": named},
        {"id": "good", "original": "ok.png", "edited": "ok.png"},
    ]
    (root / "pairs.jsonl").write_bytes(b"".join(orjson.dumps(pair) + b"\n" for pair in pairs))
    with working(opened):
        job = ended(opened, opened.submit("edits_measure", {"pairs": "pairs.jsonl"}, by="ann"))
    assert job.state == "incomplete", job.error
    lines = {each["id"]: each for each in records(opened, job, "out/edits.jsonl")}
    assert lines["good"]["mse"] == 0
    assert lines["bad"]["mse"] is None
    assert lines["mask"]["mask_ratio"] is None
    assert "no folder that may be read" in orjson.dumps(lines["bad"]).decode()


@pytest.mark.slow
def test_a_text_of_a_folder_of_prompts_is_none_from_outside(opened: Service, root: Path) -> None:
    pictures(root / "in", 1)
    (root / "texts").mkdir()
    (root.parent / "secret" / "text.md").write_text("The secret text.")
    (root / "texts" / "system.md").symlink_to(root.parent / "secret" / "text.md")
    with working(opened):
        asked = {"images": "in", "model": "demo", "schedule": "single", "prompts": "texts"}
        job = ended(opened, opened.submit("annotate", asked, by="ann"))
    assert job.state == "failed"
    assert "root/texts/system.md is a link that leads out of the folder" in (job.error or "")
    files = [path for path in opened.job_folder(job.id).rglob("*") if path.is_file()]
    assert not [path for path in files if b"The secret text" in path.read_bytes()]


def test_without_a_root_no_path_is_taken(tmp_path: Path) -> None:
    with Service.open(tmp_path / "data") as service:
        assert "no folder is allowed" in wrong(service, "annotate", images="/", model="demo")["images.0"]


def test_uploads_are_named_by_their_ids(opened: Service) -> None:
    images = new_id("set")
    opened.uploads.images_folder(images).mkdir(parents=True)
    with opened.uploads.receive(100) as incoming:
        file = opened.uploads.keep_file(incoming, "items.jsonl", by="ann")
    asked = values(opened, "mcq", items=f"upload:{file.id}", root=f"upload:{images}", model="demo")
    assert asked["items"] == str(opened.uploads.file_path(file.id))
    assert asked["root"] == str(opened.uploads.images_folder(images))


@pytest.mark.parametrize(
    "model",
    [
        "",
        "gpt",
        "nowhere/x",
        "vllm/--trust-remote-code",
        "vllm//etc",
        "vllm/out/../../../../etc",
        "openai/a b",
        "openai/",
        3,
        None,
        "demo/x",
    ],
)
def test_a_model_is_a_provider_and_a_name(opened: Service, model: object) -> None:
    assert "model" in wrong(opened, "annotate", images="in", model=model)


def test_models_of_presets_are_asked_by_name(opened: Service) -> None:
    for model in (
        "gemini/gemini-2.5-pro",
        "openrouter/qwen/qwen3-vl-8b-instruct:free",
        "bedrock/openai.gpt-oss-120b-1:0",
        "fireworks/accounts/fireworks/models/qwen2p5-vl-32b-instruct",
        "ollama/qwen3-vl:8b",
    ):
        assert values(opened, "mcq", items="scenes", model=model)["model"] == model


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_cost_usd", float("nan")),
        ("max_cost_usd", float("inf")),
        ("max_cost_usd", 0),
        ("concurrency", 2**63),
        ("concurrency", "3"),
        ("concurrency", True),
        ("timeout_s", -1),
        ("language", "--x\nignore"),
        ("roles", {"a=b": "demo"}),
        ("base_url", "http://169.254.169.254/"),
        ("cache_dir", "/tmp"),
    ],
)
def test_values_out_of_bounds_are_refused(opened: Service, field: str, value: object) -> None:
    fields = wrong(opened, "annotate", images="in", model="demo", **{field: value})
    assert any(each.startswith(field) for each in fields)


def test_what_the_function_would_not_take_is_said_at_once(opened: Service) -> None:
    fields = wrong(opened, "annotate", images="in", model="demo", schedule="single", max_regions=3)
    assert "has no effect" in fields["params"]


def test_no_job_is_told_to_name_a_folder() -> None:
    words = RunMismatchError("The run is another one", remedy=f"Look, or {another_run()}.").text
    assert rendered(words, "service") == "The run is another one. Look, or start a new job."
    assert rendered(words, "terminal").endswith("Look, or pass another run folder with --out.")


def test_everything_wrong_is_said_at_once(opened: Service) -> None:
    fields = wrong(opened, "audit", generators={"a": "x", "b": "y"}, model="gpt", root="z")
    assert set(fields) == {"generators.a", "generators.b", "model", "root"}
    assert "go together" in wrong(opened, "realism", original="in", model="demo")["params"]
    assert "either pairs" in wrong(opened, "edits_measure")["params"]


@pytest.mark.slow
@given(
    params=st.dictionaries(
        st.sampled_from(
            ["images", "model", "roles", "language", "limit", "truth", "generators", "runs", "x"]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
            max_leaves=6,
        ),
    ),
    kind=st.sampled_from(sorted(KINDS)),
)
def test_whatever_is_sent_is_taken_or_refused_in_words(
    params: dict[str, Any], kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Service.open(tmp_path_factory.mktemp("data")) as service:
        try:
            kept = check_params(service, kind, params)
        except ParamsError as error:
            fields = error.fields
        else:
            # What was taken is taken again as it was kept.
            fields = (("", ""),)
            assert check_params(service, kind, orjson.loads(orjson.dumps(kept))) == kept
        assert fields


@pytest.mark.slow
def test_every_kind_runs(tmp_path: Path, bundled_run: BundledRuns) -> None:
    """Each on the bundled scenes, or on what those before it have left."""
    root = tmp_path / "root"
    bundled_run("annotate").copy(root / "demo")
    asked: dict[str, dict[str, Any]] = {
        "detect": {"images": "scenes", "model": "demo", "limit": 4},
        "mcq": {"items": "scenes", "model": "demo", "limit": 3},
        "realism": {"pairs": "scenes", "model": "demo", "limit": 3},
        "artifacts": {"images": "scenes", "model": "demo", "limit": 2, "categories": ["color", "physics"]},
        "semantic": {
            "predictions": {"demo": "demo"},
            "truth": "scenes",
            "similarity": "chrf",
            "balance": 0.5,
        },
        "audit": {
            "generators": {"a": "scenes:drawn", "b": "scenes:rendered"},
            "model": "demo",
            "limit": 2,
            "resamples": 100,
        },
        "edits_measure": {"pairs": "scenes"},
        "export": {"run": "demo", "to": ["csv", "coco"], "all": True, "agree": "all", "least_verdicts": 3},
    }
    with Service.open(tmp_path / "data", roots=[root]) as service, working(service):
        jobs = {kind: service.submit(kind, params, by="ann") for kind, params in asked.items()}
        done = {kind: ended(service, job) for kind, job in jobs.items()}
        assert {kind: (job.state, job.error) for kind, job in done.items()} == dict.fromkeys(
            asked, ("finished", None)
        )
        runs = {"a": "demo", "b": f"job:{jobs['detect'].id}"}
        compared = ended(service, service.submit("compare", {"runs": runs, "resamples": 100}, by="ann"))
        assert compared.state == "finished", compared.error
        merged = ended(service, service.submit("merge", {"runs": runs}, by="ann"))
        assert merged.state in ("finished", "incomplete"), merged.error
        (written,) = service.job_folder(jobs["export"].id).rglob("export.json")
        rule = orjson.loads(written.read_bytes())["export"]["rule"]
        assert rule == {"agree": "all", "least_verdicts": 3}
        again = ended(service, service.jobs.retry(jobs["export"].id))
        assert again.state == "finished", again.error
        scored = ended(service, service.jobs.retry(jobs["semantic"].id))
        assert scored.state == "finished", scored.error
        for kind, job in {**done, "compare": compared, "merge": merged}.items():
            folder = service.job_folder(job.id)
            assert orjson.loads((folder / "result.json").read_bytes())
            for file in (KINDS[kind].records, KINDS[kind].page):
                assert file is None or (folder / file).is_file(), (kind, file)
