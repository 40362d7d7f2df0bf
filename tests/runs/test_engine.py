"""Models opened, guarded and routed as the options say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import uncanny
from tests.client.scripted import CAPABILITIES, ScriptedProvider, guarded, in_turn
from uncanny.agents.steps import ROLES
from uncanny.client.budget import Budget
from uncanny.client.endpoint import Endpoint
from uncanny.demo.model import DemoProvider
from uncanny.demo.scenes import scenes
from uncanny.errors import ModelUnusableError, UsageError
from uncanny.models.base import Sampling
from uncanny.models.registry import ModelOptions, parse_model
from uncanny.runs.engine import Engine, check_roles, common_limits, open_engine
from uncanny.runs.parameters import RunOptions

LOCAL = {"openai": "http://127.0.0.1:9/v1", "vllm": "http://127.0.0.1:9/v1"}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any-key")
    monkeypatch.delenv("VLLM_BASE_URL", raising=False)


def options(model: str, *, fallback: str | None = None, **roles: str) -> ModelOptions:
    return ModelOptions(
        parse_model(model),
        roles={role: parse_model(name) for role, name in roles.items()},
        fallback=None if fallback is None else parse_model(fallback),
        base_urls=LOCAL,
    )


def opened(models: ModelOptions, answers: Path | None = None, **run: Any) -> Any:
    return open_engine(
        models,
        RunOptions(**run),
        answers=answers,
        budget=Budget(),
        agents=ROLES,
        on_call=lambda _: None,
        on_fallback=lambda _lane, _error: None,
        warn=lambda _: None,
    )


def names(endpoints: tuple[Endpoint, ...]) -> list[str]:
    return [endpoint.name for endpoint in endpoints]


async def test_each_role_has_its_model_and_everyone_the_fallback() -> None:
    models = options("openai/gpt-4o", fallback="demo", formatter="openai/gpt-5", scanner="demo")
    async with opened(models) as engine:
        model_client = engine.model_client
        assert names(model_client.endpoints("AnomalyFormatter")) == ["openai/gpt-5", "demo"]
        assert names(model_client.endpoints("ObjectPerceiver")) == ["openai/gpt-4o", "demo"]
        assert model_client.endpoints("SceneScanner")[0] is model_client.endpoints("ObjectPerceiver")[1]
        assert {str(model) for model in engine.endpoints} == {"openai/gpt-4o", "openai/gpt-5", "demo"}


async def test_a_role_that_is_none_is_explained() -> None:
    with pytest.raises(UsageError, match=r"no role 'painter'\. Roles are perceiver, "):
        check_roles(options("demo", painter="demo"), ROLES)


def _any_lane() -> Endpoint:
    return guarded(ScriptedProvider(in_turn()))


async def test_models_are_closed_whatever_happens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    closed: list[str] = []

    async def close(self: DemoProvider) -> None:
        closed.append(self.name)

    monkeypatch.setattr(DemoProvider, "close", close)
    with pytest.raises(ZeroDivisionError):
        async with opened(options("demo")):
            raise ZeroDivisionError
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ModelUnusableError, match="OPENAI_API_KEY"):
        async with opened(options("demo", fallback="openai/gpt-4o")):
            pass
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="cannot be opened"):
        async with opened(options("demo"), answers=tmp_path / "file"):
            pass
    assert closed == ["demo", "demo", "demo"]


async def test_a_budget_in_dollars_needs_a_price() -> None:
    with pytest.raises(UsageError, match=r"`max_cost_usd` needs the price of openai/none"):
        async with opened(options("openai/none"), max_cost_usd=1.0):
            pass
    async with opened(options("openai/gpt-4o", fallback="vllm/any"), max_cost_usd=1.0):
        pass
    with pytest.raises(UsageError, match="vllm/any"):
        async with opened(options("vllm/any"), max_cost_usd=1.0):
            pass


async def test_concurrency_is_that_of_the_options_for_each_model() -> None:
    async with opened(options("openai/gpt-4o", fallback="vllm/any"), concurrency=5) as engine:
        assert [endpoint.limiter.ceiling for endpoint in engine.endpoints.values()] == [5, 5]
        assert [endpoint.limiter.fixed for endpoint in engine.endpoints.values()] == [False, True]
        assert [endpoint.address for endpoint in engine.endpoints.values()] == [
            endpoint.provider.endpoint for endpoint in engine.endpoints.values()
        ]


async def test_what_is_sent_is_what_each_model_takes() -> None:
    async with opened(options("demo", fallback="openai/gpt-4o")) as engine:
        found: Engine = engine
        sent: Mapping[str, Mapping[str, Any]] = found.sent(Sampling(0.3, None, 2_000))
    assert sent["demo"] == {"temperature": 0.3, "max_output_tokens": 2_000}
    assert sent["openai/gpt-4o"]["temperature"] == 0.3
    assert "top_p" not in sent["openai/gpt-4o"]


def test_all_models_together_are_sent_what_the_narrowest_takes() -> None:
    wide = replace(CAPABILITIES, media_types=frozenset({"image/png", "image/bmp"}), max_image_bytes=10)
    narrow = replace(CAPABILITIES, media_types=frozenset({"image/png", "image/gif"}), max_image_side=100)
    limits = common_limits([wide, narrow, replace(narrow, max_image_side=50, max_image_bytes=20)])
    assert limits.media_types == {"image/png"}
    assert (limits.max_bytes, limits.max_side) == (10, 50)
    free = common_limits([CAPABILITIES])
    assert (free.max_bytes, free.max_side) == (None, None)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (None, "Ray cannot be started on this machine: a node timed out. Run the same again"),
        ("auto", "The Ray cluster at auto cannot be reached: a node timed out. Check `ray_address`"),
    ],
)
def test_what_ray_says_of_a_start_that_fails_is_an_error_of_use(
    address: str | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray")

    def init(**_: object) -> None:
        raise Exception("a node timed out")  # as Ray does

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    image = scenes()[0].image_path
    with pytest.raises(UsageError) as raised:
        uncanny.annotate(image, model="noop", out=tmp_path / "run", engine="ray", ray_address=address)
    assert words in str(raised.value)
