"""Presets: their addresses, the wrong forms of them that people write, their keys, what is listed of them."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from tests.runs.e2e import uncanny_here
from uncanny.client.prices import PriceTable
from uncanny.demo.server.dialects import DIALECTS
from uncanny.errors import ModelUnusableError, UsageError
from uncanny.models.addresses import address_of
from uncanny.models.openai import CompatibleProvider
from uncanny.models.presets import ALL, PRESETS
from uncanny.models.registry import ModelId, missing_addresses
from uncanny.models.tokens import image_tokens

KEY = "sk-0123456789abcdefSECRET"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for preset in ALL.values():
        for name in (preset.url_variable, *preset.key_variables, *preset.place_variables):
            monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", PRESETS)
def test_each_has_the_path_that_is_documented_and_pictures_go_out_encrypted(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path is that of the fake server's dialect, which is written from documents and not from presets."""
    monkeypatch.setenv("AZURE_RESOURCE_NAME", "place-1")
    monkeypatch.setenv("AWS_REGION", "place-1")
    preset = PRESETS[name]
    address, notices = address_of(preset, "m")
    parts = urlsplit(address.url)
    assert (parts.path, notices) == (f"{DIALECTS[name].path}/", [])
    assert (parts.scheme, parts.hostname == "127.0.0.1") == (
        "http" if preset.local else "https",
        preset.local,
    )
    assert ("place-1" in address.url) == bool(preset.place_variables)


@pytest.mark.parametrize(
    ("preset", "given", "used", "why"),
    [
        ("openrouter", "https://openrouter.ai/api/v1/", "https://openrouter.ai/api/v1/", None),
        ("openrouter", "https://openrouter.ai/v1", "https://openrouter.ai/api/v1/", "its path is /api/v1"),
        ("openrouter", "https://openrouter.ai", "https://openrouter.ai/api/v1/", "its path is /api/v1"),
        ("groq", "http://api.groq.com/openai/v1", "https://api.groq.com/openai/v1/", "over https"),
        ("mistral", "https://api.mistral.ai/v1/chat/completions", "https://api.mistral.ai/v1/", "/v1"),
        ("mistral", "https://api.mistral.ai/v1/v1", "https://api.mistral.ai/v1/", "its path is /v1"),
        ("moonshot", "https://api.moonshot.cn/v1", "https://api.moonshot.cn/v1/", None),
        ("gemini", "http://10.0.0.7/v1beta/openai", "http://10.0.0.7/v1beta/openai/", None),
        ("vllm", "http://gpu:8000/v1/v1", "http://gpu:8000/v1/", "twice"),
        ("vllm", "http://gpu:8000/v1/models", "http://gpu:8000/v1/", "calls add their path"),
        ("ollama", "http://gpu:11434/api/chat", "http://gpu:11434/v1/", "another API of Ollama"),
        ("lmstudio", "http://gpu:1234/api/v0", "http://gpu:1234/v1/", "another API of LM Studio"),
        ("azure", "res-1", "https://res-1.openai.azure.com/openai/v1/", None),
        (
            "azure",
            "https://r.openai.azure.com/openai/deployments/m/chat/completions?api-version=2024-10-21",
            "https://r.openai.azure.com/openai/v1/",
            "its path is /openai/v1 and it takes no api-version",
        ),
        (
            "bedrock",
            "https://bedrock-runtime.us-east-1.amazonaws.com/v1",
            "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1/",
            "its path is /openai/v1",
        ),
        ("anthropic", "http://api.anthropic.com", "https://api.anthropic.com/", "over https"),
        ("openai", "https://api.openai.com", "https://api.openai.com/v1/", "its path is /v1"),
    ],
)
def test_what_is_certain_is_put_right_and_said(preset: str, given: str, used: str, why: str | None) -> None:
    address, notices = address_of(ALL[preset], "m", given)
    assert address.url == used
    assert (not address.parameters, len(notices)) == (True, why is not None)
    assert why is None or (why in notices[0] and used in notices[0] and "\n" not in notices[0])


def test_a_known_host_given_for_any_server_is_named() -> None:
    address, (notice,) = address_of(ALL["openai-compatible"], "m", "https://api.groq.com/openai/v1")
    assert address.url == "https://api.groq.com/openai/v1/"
    assert notice == "openai-compatible/m: api.groq.com is Groq; groq/m knows what it takes and its prices"


def test_a_password_is_kept_for_the_call_and_not_said() -> None:
    address, (notice,) = address_of(
        ALL["groq"], "m", "http://me:Hunter2Secret@api.groq.com/v1?api_key=Hunter3"
    )
    assert address.authorization
    assert address.parameters == {"api_key": "Hunter3"}
    assert "Hunter" not in notice


@pytest.mark.parametrize(
    ("url", "right"),
    [
        ("https://r.openai.azure.com/openai/deployments/other", "https://r.openai.azure.com/openai/v1"),
        ("https://gateway.example/openai/deployments/m?api-version=1", "https://gateway.example/openai/v1"),
    ],
)
def test_what_is_not_certain_is_named_with_the_right_form(url: str, right: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"Write {right}, and the deployment after azure/")):
        address_of(ALL["azure"], "m", url)


def test_endpoint_variable_of_azure_is_as_its_portal_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://r.cognitiveservices.azure.com/")
    address, notices = address_of(ALL["azure"], "m")
    assert (address.url, notices) == ("https://r.cognitiveservices.azure.com/openai/v1/", [])


def test_what_is_missing_is_named_before_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [ModelId(name, "m") for name in ("openai-compatible", "azure", "bedrock", "groq")]
    compatible, azure, bedrock = missing_addresses(models, {})
    assert "OPENAI_COMPATIBLE_BASE_URL" in compatible
    assert azure.endswith("or set AZURE_RESOURCE_NAME or AZURE_OPENAI_ENDPOINT.")
    assert "AWS_REGION" in bedrock
    old = "https://r.openai.azure.com/openai/deployments/other"
    assert "Write https://r.openai.azure.com/openai/v1" in missing_addresses(models, {"azure": old})[1]
    with pytest.raises(ModelUnusableError) as caught:
        CompatibleProvider("m", preset=ALL["gemini"])
    assert str(caught.value) == (
        "gemini/m needs a key and GEMINI_API_KEY or GOOGLE_API_KEY is not set. Set the environment variable "
        "GEMINI_API_KEY or GOOGLE_API_KEY. Keys come from https://aistudio.google.com/apikey."
    )
    monkeypatch.setenv("AWS_REGION", "eu west/1")
    with pytest.raises(UsageError, match="AWS_REGION"):
        address_of(ALL["bedrock"], "m")


def test_sampling_goes_where_the_model_takes_it() -> None:
    fixed = {"moonshot/kimi-k2.5", "azure/gpt-5", "openrouter/openai/o3", "openai/gpt-6-sol", "azure/gpt-51"}
    free = {"moonshot/moonshot-v1-8k-vision-preview", "azure/gpt-4o", "openrouter/qwen/qwen3-vl", "groq/m"}
    # Names of deployments at Azure.
    free |= {"azure/gpt-41", "azure/gpt-41-mini", "azure/gpt-35-turbo", "azure/gpt-45"}
    for model in fixed | free:
        provider, _, name = model.partition("/")
        assert ALL[provider].fixes_sampling(name) == (model in fixed), model


def test_prices_and_image_tokens_follow_the_names_of_makers() -> None:
    prices = PriceTable.load()
    assert prices.find("gemini/gemini-2.5-flash")
    assert prices.find("azure/gpt-4o")
    assert prices.find("openrouter/anthropic/claude-sonnet-4.5")
    assert prices.find("azure/my-deployment") is None
    assert prices.find("dashscope/qwen3-vl-plus") is None
    size = (1024, 1024)
    assert image_tokens("azure/gpt-4o", *size) == image_tokens("openai/gpt-4o", *size) == 765
    claude = image_tokens("anthropic/claude-sonnet-4-5", *size)
    assert image_tokens("openrouter/anthropic/claude-sonnet-4.5", *size) == claude
    assert image_tokens("azure/my-deployment", *size) is None
    # By hand: a tile of 540 / 1.5 = 360 pixels, three across and two down.
    assert image_tokens("gemini/gemini-2.5-flash", 960, 540) == 6 * 258
    assert image_tokens("openrouter/google/gemini-2.5-pro", 384, 300) == 258
    assert image_tokens("gemini/gemini-3-pro", 4000, 3000) == 1120


def test_the_list_shows_which_keys_are_set_and_never_a_key() -> None:
    env = {preset.key_variables[0]: KEY for preset in PRESETS.values()} | {"GROQ_API_KEY": None}
    env["XAI_BASE_URL"] = f"https://me:{KEY}@proxy.example/v1"
    listed = uncanny_here("providers", env=env)
    assert (listed.code, listed.err) == (0, "")
    assert "MISTRAL_API_KEY: set" in listed.out
    assert "GROQ_API_KEY: not set" in listed.out
    assert all(f"{name}/" in listed.out for name in ALL)
    one = uncanny_here("providers", "moonshot/", env=env)
    assert "max_completion_tokens" in one.out
    assert "Not verified" in one.out
    as_json = uncanny_here("providers", "--json", env=env)
    facts = {each["provider"]: each for each in as_json.json()}
    assert facts["ollama"]["key_needed"] is False
    assert facts["groq"]["key_set"] is False
    assert facts["azure"]["address"] is None
    unknown = uncanny_here("providers", "gemni")
    assert unknown.code == 2
    assert "Pass one of openai, " in unknown.err
    for done in (listed, one, as_json):
        assert KEY not in done.out + done.err
