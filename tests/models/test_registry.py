"""Model names, and that no provider is forgotten."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import uncanny.demo
import uncanny.detectors
import uncanny.models
from uncanny.errors import ModelUnusableError, UsageError
from uncanny.models.base import ModelProvider, Provider
from uncanny.models.presets import ALL
from uncanny.models.registry import (
    PROVIDERS,
    WITHOUT_NAME,
    WITHOUT_SERVER,
    Access,
    ModelId,
    open_model,
    parse_model,
)
from uncanny.runs.forecast import CACHED_PREFIX

KEYS = tuple(name for preset in ALL.values() for name in preset.key_variables)
LOCAL = Access("http://127.0.0.1:9/v1", 5.0)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, "any-key")
    monkeypatch.syspath_prepend(Path(__file__).parent / "vllm" / "fake_vllm")


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("openai/gpt-4o", ModelId("openai", "gpt-4o")),
        (" vllm/Qwen/Qwen3-VL-8B-Instruct ", ModelId("vllm", "Qwen/Qwen3-VL-8B-Instruct")),
        ("openai-compatible/a/b:free", ModelId("openai-compatible", "a/b:free")),
        ("demo", ModelId("demo", "")),
        ("demo/", ModelId("demo", "")),
    ],
)
def test_names_are_taken_apart_at_the_first_slash(text: str, model: ModelId) -> None:
    assert parse_model(text) == model
    assert parse_model(str(model)) == model


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' does not name a provider. Write PROVIDER/MODEL, such as openai/gpt-4o; "),
        ("gpt-4o", "'gpt-4o' does not name a provider. Did you mean openai/gpt-4o?"),
        ("OpenAI/gpt-4o", "'OpenAI/gpt-4o' does not name a provider. Did you mean openai/gpt-4o?"),
        ("antropic/claude", "'antropic/claude' does not name a provider. Did you mean anthropic/claude?"),
        ("xyzzy/any", "'xyzzy/any' does not name a provider. Write PROVIDER/MODEL, such as "),
        ("openai", "'openai' does not name a model. Write openai/ and the model's name"),
        ("openai/", "'openai/' does not name a model"),
        ("demo/large", "'demo/large': demo has only one model. Write demo"),
    ],
)
def test_other_names_are_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_model(text)
    assert message in str(caught.value)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.usefixtures("keys")
async def test_every_provider_opens_under_the_name_the_user_wrote(provider: str) -> None:
    model = ModelId(provider, "" if provider in WITHOUT_NAME else "any/model:1")
    opened = open_model(model, LOCAL)
    try:
        assert opened.name == str(model)
        assert opened.capabilities.media_types >= {"image/png", "image/jpeg"}
        assert (opened.endpoint is None) == (provider in WITHOUT_SERVER)
        assert inspect.iscoroutinefunction(opened.generate)
        if provider in CACHED_PREFIX:  # what forecasts know of it
            assert opened.capabilities.prefix_cache
            assert opened.capabilities.schema_in_prefix == CACHED_PREFIX[provider]
    finally:
        await opened.close()


@pytest.mark.parametrize(("provider", "key"), [("openai", KEYS[0]), ("anthropic", KEYS[1])])
def test_a_missing_key_is_named(provider: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(key, raising=False)
    with pytest.raises(ModelUnusableError, match=key):
        open_model(ModelId(provider, "any"), Access())


@pytest.mark.parametrize("line", ["{}=sk-secret", "export {} = 'sk-secret'", "A=b\n  {}=sk-secret\r\n"])
def test_a_key_in_dotenv_is_pointed_to_and_not_read(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEYS[0], raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(line.format(KEYS[0]))
    with pytest.raises(ModelUnusableError) as caught:
        open_model(ModelId("openai", "any"), Access())
    assert str(caught.value).endswith("load it with `set -a; . ./.env; set +a`.")
    assert "secret" not in str(caught.value)
    for other in ("# a file\nOTHER_KEY=1", f"NOT_{KEYS[0]}=1", ""):
        (tmp_path / ".env").write_text(other)
        with pytest.raises(ModelUnusableError, match="Set the environment variable"):
            open_model(ModelId("openai", "any"), Access())


@pytest.mark.usefixtures("keys")
async def test_every_provider_class_there_is_can_be_chosen() -> None:
    defined = {
        value
        for package in (uncanny.models, uncanny.demo, uncanny.detectors)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        for name, value in vars(import_module(module.name)).items()
        if inspect.isclass(value) and name.endswith("Provider") and value not in (Provider, ModelProvider)
    }
    chosen = set()
    for provider in PROVIDERS:
        opened = open_model(ModelId(provider, "" if provider in WITHOUT_NAME else "any"), LOCAL)
        chosen.add(type(opened))
        await opened.close()
    assert chosen == defined
