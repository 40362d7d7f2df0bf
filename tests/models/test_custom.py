"""Providers of one's own: registered or installed, used by name, refused with what is missing."""

# ruff: noqa: ARG002 - parameters have the names of the interface

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny as uncanny_library
from tests.client.scripted import generate, guarded, make_request
from tests.runs.e2e import pictures, uncanny, uncanny_here
from tests.virtual_time import virtual_time
from uncanny.cli.common.places import complete_model
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.demo.model import DemoProvider
from uncanny.demo.scenes import scenes
from uncanny.errors import (
    ModelDownError,
    ModelUnusableError,
    ProviderDefectError,
    ProviderError,
    RequestRejectedError,
    TransientError,
    TruncatedError,
    UncannyError,
    UsageError,
)
from uncanny.models import registry
from uncanny.models.base import Capabilities, ModelProvider, ModelRequest, ModelResponse, Sampling
from uncanny.models.custom import create
from uncanny.models.registry import Access, ModelId, open_model, parse_model, register_provider
from uncanny.records.answer_cache import AnswerCache

PACKAGE = """
from uncanny.models.base import Capabilities
from uncanny.models.noop import NoopProvider

class Mine:
    capabilities = Capabilities()

    def __init__(self, model):
        self.name = f"mine/{model}"
        self.noop = NoopProvider()

    async def generate(self, request):
        return await self.noop.generate(request)

no_factory = 7
"""


class Three:
    """All that a provider must have."""

    capabilities = Capabilities()

    def __init__(self, model: str) -> None:
        self.name = f"mine/{model}"
        self.requests = 0

    async def generate(self, request: ModelRequest) -> ModelResponse:
        self.requests += 1
        return ModelResponse("3")


class Full(Three):
    """With all that is optional."""

    notices = ("it is new",)
    secrets = ("a-secret-key",)

    def __init__(self, model: str, base_url: str | None, timeout_s: float) -> None:
        super().__init__(model)
        self.endpoint = f"{base_url} after {timeout_s:g} s"
        self.closed = False

    def sent(self, sampling: Sampling) -> dict[str, Any]:
        return {"limit": sampling.max_output_tokens}

    async def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry, "_REGISTERED", {})


def open_mine(name: str = "any", access: Access = Access()) -> Any:  # noqa: B008 - it is immutable
    return open_model(parse_model(f"mine/{name}"), access)


async def test_three_attributes_are_enough() -> None:
    register_provider("mine", Three)
    assert parse_model("mine/any/thing:1") == ModelId("mine", "any/thing:1")
    model = open_mine("any/thing:1")
    assert (model.name, model.endpoint, model.secrets) == ("mine/any/thing:1", None, ())
    assert (model.capabilities, list(model.notices)) == (Capabilities(), [])
    assert model.sent(Sampling(0.3, None, 10)) == {"temperature": 0.3, "max_output_tokens": 10}
    scope = CallScope("a.png")
    assert await generate(ModelClient({"": [guarded(model)]}), scope=scope) == 3
    (call,) = scope.calls
    assert (call.model, call.outcome, call.input_tokens) == ("mine/any/thing:1", "answered", None)
    await model.close()


async def test_what_else_it_has_is_used() -> None:
    made: list[Full] = []

    def factory(model: str, **options: Any) -> Full:
        made.append(Full(model, **options))
        return made[0]

    register_provider("mine", factory)
    model = open_mine(access=Access("http://here/v1", 7))
    assert model.endpoint == "http://here/v1 after 7 s"
    assert model.secrets == ("a-secret-key",)
    assert "a-secret-key" not in repr(vars(model))
    assert list(model.notices) == ["it is new"]
    assert model.sent(Sampling(max_output_tokens=10)) == {"limit": 10}
    await model.close()
    assert made[0].closed


def test_the_address_identifies_the_server_where_the_provider_names_none() -> None:
    register_provider("mine", Three)
    assert open_mine(access=Access("http://here/v1")).endpoint == "http://here/v1"


async def test_answers_are_kept_under_its_own_name(tmp_path: Path) -> None:
    opened: list[Three] = []

    def factory(model: str) -> Three:
        opened.append(Three(model))
        return opened[-1]

    register_provider("mine", factory)
    cache = AnswerCache(tmp_path / "answers")
    for name in ("a", "b", "a"):
        assert await generate(ModelClient({"": [guarded(open_mine(name))]}, cache=cache)) == 3
    cache.close()
    assert [each.requests for each in opened] == [1, 1, 0]


def test_names_that_are_taken_or_cannot_be_written_are_refused() -> None:
    with pytest.raises(UsageError, match="'openai' is built in"):
        register_provider("openai", Three)
    for name in ("", "a/b", "a=b", "http://x", "-m"):
        with pytest.raises(UsageError, match="is not a valid provider name"):
            register_provider(name, Three)
    register_provider("mine", Full)
    with pytest.raises(UsageError, match=r"'mine' is registered already.*replace=True"):
        register_provider("mine", Three)
    register_provider("mine", Three, replace=True)
    assert open_mine().endpoint is None


class Nothing:
    def __init__(self, model: str) -> None:
        pass


class OtherName(Three):
    def __init__(self, model: str) -> None:
        self.name = "openai/gpt-4o"


class NoCapabilities(Three):
    capabilities: Any = "all of them"


class NotReady(Three):
    def __init__(self, model: str) -> None:
        raise OSError("no weights here")


class OwnError(Three):
    def __init__(self, model: str) -> None:
        raise UsageError("MINE_KEY is not set")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Nothing, "mine/any cannot be used: Nothing has no name and no capabilities and no generate"),
        (OtherName, "the name of OtherName is 'openai/gpt-4o'. Set it to 'mine/any'"),
        (NoCapabilities, "the capabilities of NoCapabilities are 'all of them'"),
        (NotReady, "mine/any cannot be opened: OSError: no weights here"),
        (OwnError, "MINE_KEY is not set"),
        (lambda: Three(""), "mine/any cannot be opened: TypeError"),
    ],
)
def test_what_is_no_provider_is_refused_with_what_is_missing(kind: Any, message: str) -> None:
    register_provider("mine", kind)
    with pytest.raises(UsageError) as caught:
        open_mine()
    assert message in str(caught.value)


class LibraryError(Exception):
    """As of an SDK."""


class Failing(Three):
    """Answers with what it is made to."""

    secrets = "a-secret-key"
    outcome: Any = None

    async def generate(self, request: ModelRequest) -> ModelResponse:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome  # type: ignore[no-any-return]

    def sent(self, sampling: Sampling) -> dict[str, Any]:
        raise KeyError("top_k")

    def close(self) -> None:
        raise OSError("it hangs")


@pytest.mark.parametrize(
    ("outcome", "error", "message"),
    [
        (ConnectionError("with a-secret-key"), TransientError, r"mine/any: ConnectionError: with \[key\]"),
        (TimeoutError(), TransientError, "mine/any: TimeoutError"),
        (KeyError("answer"), ProviderDefectError, "the code of Own failed: KeyError: 'answer'"),
        (TypeError("of a-secret-key"), ProviderDefectError, r"of Own failed: TypeError: of \[key\]"),
        (RuntimeError("shapes differ"), ProviderDefectError, "of Own failed: RuntimeError: shapes differ"),
        # What a library, or a provider itself, words as an error of its own is no mistake in its code.
        (orjson.JSONDecodeError("no", "{", 0), RequestRejectedError, "mine/any: JSONDecodeError: no"),
        (LibraryError("status 400"), RequestRejectedError, "mine/any: LibraryError: status 400"),
        (TransientError("busy", kind="http_429"), TransientError, "busy"),
        (ModelDownError("it is gone"), ModelDownError, "it is gone"),
        ("text", ModelUnusableError, "its `generate` returned str. Return a `ModelResponse`"),
        (ModelResponse(None), ModelUnusableError, "returned ModelResponse"),  # type: ignore[arg-type]
    ],
)
async def test_whatever_it_raises_or_returns_is_one_of_our_errors(
    outcome: object, error: type[Exception], message: str
) -> None:
    register_provider("mine", type("Own", (Failing,), {"outcome": outcome}))
    model = open_mine()
    with pytest.raises(error, match=message):
        await model.generate(make_request())
    assert model.sent(Sampling())["max_output_tokens"] == Sampling().max_output_tokens
    await model.close()


async def test_a_generate_that_is_not_async_is_named() -> None:
    class Plain(Three):
        def generate(self, request: ModelRequest) -> ModelResponse:  # type: ignore[override]
            return ModelResponse("3")

    register_provider("mine", Plain)  # type: ignore[arg-type]
    with pytest.raises(ModelUnusableError, match="its `generate` is not async"):
        await open_mine().generate(make_request())


@virtual_time
async def test_a_class_that_fails_always_ends_the_model_and_is_no_wrong_answer() -> None:
    for outcome, kind, what in (
        (LibraryError("status 400"), RequestRejectedError, "mine/any rejected each of the first 10 requests"),
        (KeyError("answer"), ProviderDefectError, "mine/any failed on each of the first 10 requests"),
    ):
        register_provider("mine", type("Own", (Failing,), {"outcome": outcome}), replace=True)
        client, scope = ModelClient({"": [guarded(open_mine())]}), CallScope("a.png")
        for number in range(9):
            with pytest.raises(kind):
                await generate(client, make_request(str(number)), scope)
        with pytest.raises(ModelDownError, match=what):
            await generate(client, make_request("last"), scope)
        assert {call.outcome for call in scope.calls} == {"error"}


class Mistaken(Three):
    """Answers the demo model's way, with a mistake in its code for one agent."""

    secrets = ("a-secret-key",)

    async def generate(self, request: ModelRequest) -> ModelResponse:
        if request.agent == "RelationReasoner":
            raise KeyError(f"no {self.secrets[0]}")
        return await DemoProvider().generate(request)


class MistakenInFull(ModelProvider):
    """The same, of the class that uncanny's own are of."""

    capabilities = Capabilities()

    def __init__(self, model: str) -> None:
        self.name = f"mine/{model}"

    @property
    def secrets(self) -> tuple[str, ...]:
        return ("a-secret-key",)

    async def generate(self, request: ModelRequest) -> ModelResponse:
        return await Mistaken.generate(self, request)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Mistaken, MistakenInFull])
def test_a_mistake_in_its_code_is_a_defect_with_one_traceback_in_the_log(
    kind: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    register_provider("mine", kind)
    images = [scene.image_path for scene in scenes()][:2]
    run = uncanny_library.annotate(images, model="mine/any", out=tmp_path / "run", schedule="paper")
    errors = [error for record in run.annotations for error in record.errors]
    assert {record.status for record in run.annotations} <= {"partial", "failed"}
    assert {(error.agent, error.kind) for error in errors} == {("RelationReasoner", "defect")}
    assert all(kind.__name__ in error.message and "[key]" in error.message for error in errors)
    (logged,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "Traceback (most recent call last)" in logged.getMessage()
    assert "test_custom.py" in logged.getMessage()
    assert "a-secret-key" not in caplog.text
    calls = run.path.joinpath("calls.jsonl").read_bytes()
    assert b"KeyError" in calls
    assert b"a-secret-key" not in calls


def install(folder: Path, dist: str, target: str) -> None:
    """A package as pip leaves it: a module and a `.dist-info` folder."""
    (folder / f"{dist}_module.py").write_text(PACKAGE)
    info = folder / f"{dist}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[uncanny.providers]\nmine = {dist}_module{target}\n")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name in [name for name in sys.modules if name.endswith("_module")]:
        del sys.modules[name]


@pytest.mark.slow
def test_the_command_finds_an_installed_one(packages: Path, tmp_path: Path) -> None:
    install(packages, "dist_a", ":Mine")
    run = tmp_path / "run"
    images = pictures(tmp_path / "in", 2)
    done = uncanny(
        "annotate", images, "-m", "mine/anything", "-o", run, "--json", env={"PYTHONPATH": own_path(packages)}
    )
    assert (done.code, done.told) == (0, "")
    manifest = orjson.loads((run / "run.json").read_bytes())
    assert (manifest["model"], manifest["totals"]["ok"]) == ("mine/anything", 2)
    calls = [orjson.loads(line) for line in (run / "calls.jsonl").read_bytes().splitlines()]
    assert {call["model"] for call in calls} == {"mine/anything"}


def own_path(packages: Path) -> str:
    return f"{packages}:{Path(registry.__file__).parents[2]}"


def test_a_registered_one_comes_before_an_installed_one(packages: Path) -> None:
    install(packages, "dist_b", ":Mine")
    assert type(open_mine()._provider).__name__ == "Mine"
    register_provider("mine", Three)
    assert type(open_mine()._provider) is Three


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            ":Missing",
            "provider 'mine' of dist_c 1.2 cannot be loaded from dist_c_module:Missing: AttributeError",
        ),
        (".gone:Mine", "provider 'mine' of dist_c 1.2 cannot be loaded from dist_c_module.gone:Mine: Module"),
        (":no_factory", "provider 'mine' of dist_c 1.2 is not a class or function: dist_c_module:no_factory"),
    ],
)
def test_one_that_cannot_be_loaded_is_named_with_its_package(
    target: str, message: str, packages: Path
) -> None:
    install(packages, "dist_c", target)
    with pytest.raises(UsageError) as caught:
        open_mine()
    assert message in str(caught.value)
    assert str(caught.value).endswith("Update the package, or uninstall it.")


def test_a_name_that_several_packages_have_is_refused(packages: Path) -> None:
    install(packages, "dist_d", ":Mine")
    install(packages, "dist_e", ":Mine")
    with pytest.raises(UsageError, match="Several packages offer a provider 'mine': dist_d 1"):
        parse_model("mine/any")


def test_installed_ones_are_listed_without_being_imported(packages: Path) -> None:
    for dist, target in (("dist_f", ":Mine"), ("dist_g", ":Missing")):
        install(packages, dist, target)
    both = uncanny_here("providers")
    assert both.code == 0
    assert "mine/               dist_f 1.2, dist_f_module:Mine\n" in both.out
    assert both.out.count("cannot be used: several packages have this name") == 2
    shutil.rmtree(packages / "dist_g-1.2.dist-info")
    info = packages / "dist_f-1.2.dist-info" / "entry_points.txt"
    info.write_text(f"{info.read_text()}openai = dist_f_module:Mine\n")
    listed = uncanny_here("providers")
    assert "not imported yet" in listed.out
    assert "not used: uncanny has a provider of this name" in listed.out
    facts = {"provider": "mine", "package": "dist_f 1.2", "factory": "dist_f_module:Mine"}
    assert uncanny_here("providers", "mine/", "--json").json() == facts
    assert facts in uncanny_here("providers", "--json").json()
    assert uncanny_here("providers", "openai", "--json").json()["provider"] == "openai"
    assert "dist_f" in uncanny_here("providers", "mine").out
    unknown = uncanny_here("providers", "nobody")
    assert unknown.code == 2
    assert "lmstudio" in unknown.err
    assert ", mine." in unknown.err
    with pytest.raises(UsageError, match="Did you mean mine/x"):
        parse_model("mines/x")
    assert not [name for name in sys.modules if name.startswith("dist_")]
    items = complete_model(None, None, "min")  # type: ignore[arg-type]
    assert [item.value for item in items] == ["mine/"]


def test_packages_are_looked_at_for_no_name_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_name: str) -> None:
        raise AssertionError("looked up")

    monkeypatch.setattr(registry, "find_entry_point", fail)
    for text in ("demo", "openai/gpt-4o", "vllm/any"):
        parse_model(text)
    for text in ("http://127.0.0.1/v1", "", "a b"):
        assert not registry.is_provider(text)


async def test_a_call_that_is_cancelled_within_the_provider_may_be_made_again() -> None:
    class Cancelling:
        name = "mine/one"
        capabilities = Capabilities()

        def __init__(self, model: str) -> None:
            pass

        async def generate(self, request: ModelRequest) -> ModelResponse:
            inner = asyncio.ensure_future(asyncio.sleep(60))
            asyncio.get_running_loop().call_soon(inner.cancel)
            await inner
            return ModelResponse("never")

    register_provider("mine", Cancelling, replace=True)
    provider = open_model(ModelId("mine", "one"), Access(None, 5.0))
    with pytest.raises(TransientError, match="cancelled within"):
        await provider.generate(make_request("?"))


class Saying:
    """A provider that does what it is told; `secrets` are those of its model."""

    name = "mine/one"
    capabilities = Capabilities()
    secrets = ("sk-0123456789abcdef",)

    def __init__(self, outcome: object) -> None:
        self.outcome = outcome

    async def generate(self, request: ModelRequest) -> ModelResponse:
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome  # type: ignore[return-value]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


def saying(outcome: object) -> ModelProvider:
    register_provider("mine", lambda _model: Saying(outcome), replace=True)
    return open_model(ModelId("mine", "one"), Access(None, 5.0))


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (SystemExit(0), "SystemExit: 0"),
        (RuntimeError("cannot open \udcff.bin"), "cannot open \ufffd.bin"),
        (Unspeakable(), "cannot be shown"),
        (TruncatedError("cut off"), "TruncatedError: cut off"),
        (ProviderError("broken"), "broken"),
    ],
)
async def test_whatever_a_provider_raises_costs_one_call(outcome: BaseException, words: str) -> None:
    with pytest.raises((RequestRejectedError, ProviderDefectError), match=words):
        await saying(outcome).generate(make_request("?"))


@pytest.mark.parametrize("kind", [RequestRejectedError, ModelUnusableError])
async def test_keys_are_hidden_in_errors_of_ours_too_and_long_ones_cut(kind: type[UncannyError]) -> None:
    provider = saying(kind(f"refused sk-0123456789abcdef {'x' * 100_000}", remedy="Use sk-0123456789abcdef."))
    with pytest.raises(kind) as caught:
        await provider.generate(make_request("?"))
    assert "sk-0123456789abcdef" not in f"{caught.value}"
    assert len(f"{caught.value}") < 1_000


async def test_of_a_response_what_is_not_of_its_kind_was_not_told() -> None:
    fields: dict[str, Any] = {"finish": "maybe", "tokens": {}, "model": b"x", "request_id": [1], "reason": 2}
    response = await saying(ModelResponse("hello", **fields)).generate(make_request("?"))
    assert response == ModelResponse("hello")


def test_what_a_provider_says_of_itself_is_checked() -> None:
    provider = Saying("x")
    made = create(lambda: provider, "mine/one", None, base_url=None, timeout_s=5.0)
    provider.notices = None  # type: ignore[attr-defined]
    assert list(made.notices) == []
    provider.notices = [7, "a sk-0123456789abcdef b"]  # type: ignore[attr-defined]
    assert made.notices[0] == "7"
    assert "sk-0123456789abcdef" not in made.notices[1]
    for wrong in ({1}, {"a": 2**70}, "text"):
        provider.sent = lambda _sampling, wrong=wrong: wrong  # type: ignore[attr-defined]
        assert made.sent(Sampling(0.5)) == {"temperature": 0.5, "max_output_tokens": 2_000}
    provider.secrets = 5  # type: ignore[assignment]
    with pytest.raises(ModelUnusableError, match="secrets"):
        create(lambda: provider, "mine/one", None, base_url=None, timeout_s=5.0)
