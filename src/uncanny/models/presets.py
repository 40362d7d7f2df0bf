"""Hosted services and local servers of the chat completions API, one entry of data each.

All of them are asked by one client, `openai_compatible.CompatibleProvider`: what differs stands here, and
nowhere else is a provider known by its name. It is what servers document and users report, put together at
the dates in `as_of`; `sources` are documents that were read for it, as stored copies of unknown age. No
hosted service was called. Of what stands in `unverified` no document was seen, or they disagree. That the
beginning of a prompt is cached is taken for granted of all: other questions about an image wait for its first
answer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

from uncanny.models.base import Capabilities, Detail

LimitName = Literal["max_tokens", "max_completion_tokens"]
Window = Literal["2h", "8h"]
"""Hours within which a call in the background is answered."""
Processing = Literal["batch", Window]
"""How requests are answered, where not at once."""

NESTED: Final = "prompt_tokens_details.cached_tokens"
_PNG_JPEG: Final = frozenset({"image/png", "image/jpeg"})
_NO_GIF: Final = _PNG_JPEG | {"image/webp"}
# Of a wrong key some say so with status 400, as of a wrong request.
_WRONG_KEY: Final = r"(?i)\bapi key (?:is )?(?:not valid|expired)|\bincorrect api key"
# Models that fix temperature and top-p: OpenAI's reasoning models, wherever they are served. Deployments at
# Azure are often named without dots: `gpt-41` is GPT-4.1, which is none.
_OPENAI_REASONING: Final = r"(?:^|[/.])(?:o\d|gpt-(?:[5-9]|1\d))(?!.*-chat)"


@dataclass(frozen=True, slots=True)
class ApiVariant:
    """How one family of servers wants the same request.

    `limit` is the field of the output limit, `detail` how closely an image is to be looked at, None where
    that is not said. `shared_schema`: the task's one schema is sent, the answer wrapped, not the step's own.
    `strict`: the schema is marked so. `image_uuid`: the image's digest goes beside its bytes. `cache_key`:
    requests about one image are routed to one cache. `cache_control`: a pattern of models that keep only such
    prefixes as are marked. `one_system`: all system texts in one message. `cached` is where usage has the
    tokens read from the cache; `reasoning_beside`: tokens of reasoning, which are billed as output, are only
    in the total; `reports_cost`: usage has what the call cost. `max_images` and
    `max_request_bytes` are limits of a request, None where there is none.
    """

    limit: LimitName = "max_tokens"
    detail: Detail | None = None
    shared_schema: bool = False
    strict: bool = True
    image_uuid: bool = False
    cache_key: bool = False
    cache_control: str | None = None
    one_system: bool = False
    cached: str = NESTED
    reasoning_beside: bool = False
    reports_cost: bool = False
    max_images: int | None = None
    max_request_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Hint:
    """What to do about an error whose message matches `pattern`: trying again does not help."""

    pattern: str
    remedy: str


# Of all of them the beginning of a prompt is cached.
_takes = partial(Capabilities, prefix_cache=True)
_USUALLY_TAKEN: Final = _takes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A provider: where it is, what key it wants, what it takes, and how it says no.

    `addresses` are its base URLs, the usual one first, none where only the user knows; `{place}` in them is
    the value of one of `place_variables`. `url_variable` replaces them. `keys_from` is where keys come from,
    None where the server may want none. `key_header` carries the key. `other_paths` are of other APIs of the
    same server, which users paste. `fixed_sampling` is a pattern of models that take neither temperature nor
    top-p. `overloaded` are statuses of its own for that. `prices` is its name in genai-prices,
    `telemetry` the one in OpenTelemetry's conventions where that is another. `made_by` is put before a
    model's name to tell how many tokens an image takes, None where names do not tell. `discounts` are other
    ways to ask, and the shares of the price that they cost. `lists_models`: an error for an unknown model
    names those that are there. `refuses` and `notes` are for people.
    """

    name: str
    title: str
    addresses: tuple[str, ...] = ()
    place_variables: tuple[str, ...] = ()
    url_variable: str
    key_variables: tuple[str, ...]
    keys_from: str | None = None
    key_header: Literal["Authorization", "api-key"] = "Authorization"
    other_paths: tuple[str, ...] = ()
    variant: ApiVariant = ApiVariant()
    takes: Capabilities = _USUALLY_TAKEN
    fixed_sampling: str | None = None
    overloaded: frozenset[int] = frozenset()
    hints: tuple[Hint, ...] = ()
    prices: str | None = None
    telemetry: str | None = None
    made_by: str | None = None
    discounts: Mapping[Processing, float] = field(default_factory=dict)
    lists_models: bool = False
    refuses: str = ""
    notes: str = ""
    unverified: str = ""
    sources: tuple[str, ...] = ()
    as_of: str = "2026-11"

    @property
    def local(self) -> bool:
        """Whether it is a server of one's own."""
        return self.keys_from is None

    @property
    def configured(self) -> bool:
        """Whether the environment has its key, or of a server of one's own its address."""
        wanted = (self.url_variable,) if self.local else self.key_variables
        return any(os.environ.get(name, "").strip() for name in wanted)

    def fixes_sampling(self, model: str) -> bool:
        """Whether `model` takes neither temperature nor top-p."""
        return self.fixed_sampling is not None and re.search(self.fixed_sampling, model) is not None


# Asked by a client of its own: another protocol. The limit of 5 MB is on the base64 text; the longest side is
# that of older models.
ANTHROPIC: Final = Preset(
    name="anthropic",
    title="Anthropic",
    addresses=("https://api.anthropic.com",),
    url_variable="ANTHROPIC_BASE_URL",
    key_variables=("ANTHROPIC_API_KEY",),
    keys_from="https://console.anthropic.com/settings/keys",
    variant=ApiVariant(shared_schema=True),
    takes=_takes(
        max_image_bytes=5 * 1024 * 1024 * 3 // 4,
        max_image_side=1568,
        schema_in_prefix=True,
        temperature=False,
        top_p=False,
    ),
    prices="anthropic",
    made_by="anthropic/",
    discounts={"batch": 0.5},
    refuses="the stop reason `refusal`, or a 400 about content filtering",
)
# Asked by a client of its own, since an account's organization and headers go along.
OPENAI: Final = Preset(
    name="openai",
    title="OpenAI",
    addresses=("https://api.openai.com/v1",),
    url_variable="OPENAI_BASE_URL",
    key_variables=("OPENAI_API_KEY",),
    keys_from="https://platform.openai.com/api-keys",
    variant=ApiVariant("max_completion_tokens", "high", shared_schema=True, cache_key=True),
    # Larger images are made smaller by the server without a word.
    takes=_takes(max_image_bytes=20_000_000, max_image_side=2048, schema_in_prefix=True),
    fixed_sampling=_OPENAI_REASONING,
    prices="openai",
    made_by="openai/",
    discounts={"batch": 0.5, "2h": 0.7, "8h": 0.6},
    refuses="a moderation's code, or `refusal` in the answer",
)
# The two that are no one's in particular: any server, and vLLM, which a run can start itself.
COMPATIBLE: Final = Preset(
    name="openai-compatible",
    title="any server with chat completions",
    url_variable="OPENAI_COMPATIBLE_BASE_URL",
    key_variables=("OPENAI_COMPATIBLE_API_KEY",),
    variant=ApiVariant(detail="high"),
)
VLLM: Final = Preset(
    name="vllm",
    title="vLLM",
    addresses=("http://127.0.0.1:8000/v1",),
    url_variable="VLLM_BASE_URL",
    key_variables=("VLLM_API_KEY",),
    variant=ApiVariant(image_uuid=True),
    takes=_takes(fixed_concurrency=True),
    lists_models=True,
)

_HOSTED: Final = (
    Preset(
        name="gemini",
        title="Google Gemini",
        telemetry="gcp.gemini",
        addresses=("https://generativelanguage.googleapis.com/v1beta/openai",),
        url_variable="GEMINI_BASE_URL",
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        keys_from="https://aistudio.google.com/apikey",
        variant=ApiVariant(reasoning_beside=True, max_request_bytes=20_000_000),
        takes=_takes(_NO_GIF, 14_000_000),
        hints=(Hint(_WRONG_KEY, "Set GEMINI_API_KEY to a key of https://aistudio.google.com/apikey."),),
        prices="google",
        refuses="200 without `choices`",
        notes="A field that it does not know is a 400, so none is sent; its wait (`RetryInfo`) is kept to. "
        "Where its total has more tokens than prompt and answer, they are counted as output.",
        unverified="that limits and formats of images are those of its own API; what it refuses, and how, is "
        "from users' reports",
    ),
    Preset(
        name="openrouter",
        title="OpenRouter",
        addresses=("https://openrouter.ai/api/v1",),
        url_variable="OPENROUTER_BASE_URL",
        key_variables=("OPENROUTER_API_KEY",),
        keys_from="https://openrouter.ai/settings/keys",
        variant=ApiVariant(cache_control=r"(?:^|/)claude", one_system=True, reports_cost=True),
        fixed_sampling=_OPENAI_REASONING,
        prices="openrouter",
        made_by="",
        refuses="403 with `metadata.reasons`, also in the body of a 200",
        notes="What it says a call cost comes before prices. With keys of your own at the models' providers, "
        "what those bill is added to its fee; where it does not say that, prices hold. For Claude, "
        "images are marked to be cached.",
        unverified="which routes constrain answers: that differs by model",
        sources=(
            "https://openrouter.ai/docs/cookbook/administration/usage-accounting",
            "https://openrouter.ai/docs/features/byok",
            "https://openrouter.ai/docs/guides/best-practices/prompt-caching",
        ),
    ),
    Preset(
        name="azure",
        title="Azure OpenAI",
        telemetry="azure.ai.openai",
        addresses=(
            "https://{place}.openai.azure.com/openai/v1",
            "https://{place}.services.ai.azure.com/openai/v1",
            "https://{place}.cognitiveservices.azure.com/openai/v1",
        ),
        place_variables=("AZURE_RESOURCE_NAME",),
        url_variable="AZURE_OPENAI_ENDPOINT",
        key_variables=("AZURE_OPENAI_API_KEY",),
        keys_from="the resource's page in https://portal.azure.com, under Keys and Endpoint",
        key_header="api-key",
        variant=ApiVariant("max_completion_tokens", "high", shared_schema=True),
        takes=_takes(max_image_bytes=20_000_000, max_image_side=2048, schema_in_prefix=True),
        fixed_sampling=_OPENAI_REASONING,
        prices="azure",
        made_by="openai/",
        refuses="400 `content_filter`",
        notes="The model is the deployment's name; where it is a model's, prices and image tokens are known.",
        unverified="which sizes of images are made smaller: OpenAI's are taken",
        sources=("https://learn.microsoft.com/azure/developer/ai/how-to/switching-endpoints",),
    ),
    Preset(
        name="bedrock",
        title="Amazon Bedrock",
        telemetry="aws.bedrock",
        addresses=(
            "https://bedrock-mantle.{place}.api.aws/v1",
            "https://bedrock-runtime.{place}.amazonaws.com/openai/v1",
        ),
        place_variables=("AWS_REGION", "AWS_DEFAULT_REGION"),
        url_variable="BEDROCK_BASE_URL",
        key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
        keys_from="https://console.aws.amazon.com/bedrock, under API keys",
        variant=ApiVariant("max_completion_tokens"),
        takes=_takes(_PNG_JPEG),
        fixed_sampling=_OPENAI_REASONING,
        prices="aws",
        unverified="which models take images there, in which formats, and whether cached tokens are reported",
        sources=("https://docs.aws.amazon.com/bedrock/latest/userguide/bedrock-mantle.html",),
    ),
    Preset(
        name="mistral",
        title="Mistral",
        telemetry="mistral_ai",
        addresses=("https://api.mistral.ai/v1",),
        url_variable="MISTRAL_BASE_URL",
        key_variables=("MISTRAL_API_KEY",),
        keys_from="https://console.mistral.ai/api-keys",
        variant=ApiVariant(cache_key=True, max_images=8),
        takes=_takes(max_image_bytes=7_500_000),
        prices="mistral",
        notes="Caches only requests with a `prompt_cache_key`; cached tokens cost a tenth.",
        unverified="8 images a request and 10 MB each",
        sources=("https://docs.mistral.ai/studio-api/conversations/advanced/prompt-caching",),
    ),
    Preset(
        name="xai",
        title="xAI",
        telemetry="x_ai",
        addresses=("https://api.x.ai/v1",),
        url_variable="XAI_BASE_URL",
        key_variables=("XAI_API_KEY",),
        keys_from="https://console.x.ai",
        variant=ApiVariant(detail="high", reasoning_beside=True),
        takes=_takes(_PNG_JPEG, 15_000_000),
        hints=(Hint(_WRONG_KEY, "Set XAI_API_KEY to a key of https://console.x.ai."),),
        prices="x-ai",
        refuses="403 «Content violates usage guidelines», `error` a string",
        notes="Other formats than JPEG and PNG are converted. Reasoning stands beside the answer's tokens in "
        "its usage, and is counted with them.",
        sources=(
            "https://docs.x.ai/developers/model-capabilities/images/understanding",
            "https://github.com/vercel/ai/pull/12425",
        ),
    ),
    Preset(
        name="together",
        title="Together AI",
        addresses=("https://api.together.xyz/v1", "https://api.together.ai/v1"),
        url_variable="TOGETHER_BASE_URL",
        key_variables=("TOGETHER_API_KEY",),
        keys_from="https://api.together.ai/settings/api-keys",
        takes=_takes(_NO_GIF),
        prices="together",
        unverified="limits and formats of images, how it refuses, and whether cached tokens are reported: no "
        "document of its own was seen",
    ),
    Preset(
        name="fireworks",
        title="Fireworks AI",
        addresses=("https://api.fireworks.ai/inference/v1",),
        url_variable="FIREWORKS_BASE_URL",
        key_variables=("FIREWORKS_API_KEY",),
        keys_from="https://app.fireworks.ai/settings/users/api-keys",
        variant=ApiVariant(max_images=30, max_request_bytes=10_000_000),
        takes=_takes(_PNG_JPEG | {"image/gif"}, 7_000_000),
        prices="fireworks",
        notes="Models are named `accounts/fireworks/models/NAME`.",
        sources=("https://docs.fireworks.ai/guides/querying-vision-language-models",),
    ),
    Preset(
        name="groq",
        title="Groq",
        addresses=("https://api.groq.com/openai/v1",),
        url_variable="GROQ_BASE_URL",
        key_variables=("GROQ_API_KEY",),
        keys_from="https://console.groq.com/keys",
        variant=ApiVariant("max_completion_tokens", max_images=5, max_request_bytes=4_000_000),
        takes=_takes(max_image_bytes=2_800_000),
        overloaded=frozenset({498}),
        prices="groq",
        notes="498 is an overload of its flex tier, and tried again.",
        unverified="5 images a request: that differed by model",
        sources=("https://console.groq.com/docs/vision", "https://console.groq.com/docs/flex-processing"),
    ),
    Preset(
        name="dashscope",
        title="Alibaba DashScope",
        addresses=(
            "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            "https://dashscope.aliyuncs.com/compatible-mode/v1",
        ),
        url_variable="DASHSCOPE_BASE_URL",
        key_variables=("DASHSCOPE_API_KEY",),
        keys_from="https://www.alibabacloud.com/help/en/model-studio/get-api-key",
        other_paths=("/api/v1",),
        takes=_takes(_NO_GIF, 7_000_000),
        refuses="400 `data_inspection_failed`",
        notes="Keys of Singapore and of Beijing differ; for the latter give its address.",
        unverified="10 MB an image, where usage has cached tokens, and which models constrain answers",
        sources=("https://www.alibabacloud.com/help/en/model-studio/vision",),
    ),
    Preset(
        name="moonshot",
        title="Moonshot (Kimi)",
        telemetry="moonshot_ai",
        addresses=("https://api.moonshot.ai/v1", "https://api.moonshot.cn/v1"),
        url_variable="MOONSHOT_BASE_URL",
        key_variables=("MOONSHOT_API_KEY",),
        keys_from="https://platform.kimi.ai/console/api-keys",
        variant=ApiVariant("max_completion_tokens", cached="cached_tokens"),
        fixed_sampling=r"thinking|kimi-k(?:2\.[5-9]|[3-9])",
        prices="moonshotai",
        refuses="400 of type `content_filter`",
        notes="Thinking models fix temperature and top-p, so neither is sent; 503 is an overload.",
        unverified="which models constrain answers",
        sources=(
            "https://platform.kimi.ai/docs/api/chat",
            "https://platform.kimi.ai/docs/api/models-overview",
        ),
    ),
)

_LOCAL_VARIANT: Final = ApiVariant(strict=False)

_LOCAL: Final = (
    Preset(
        name="ollama",
        title="Ollama",
        addresses=("http://127.0.0.1:11434/v1",),
        url_variable="OLLAMA_BASE_URL",
        key_variables=("OLLAMA_API_KEY",),
        other_paths=("/api", "/api/chat", "/api/generate"),
        variant=_LOCAL_VARIANT,
        takes=_takes(_PNG_JPEG),
        lists_models=True,
        notes="Long prompts are cut without a word: set OLLAMA_CONTEXT_LENGTH to 16384 or more.",
        unverified="which versions take more than JPEG and PNG",
        sources=(
            "https://docs.ollama.com/api/openai-compatibility",
            "https://github.com/ollama/ollama/pull/17755",
        ),
    ),
    Preset(
        name="lmstudio",
        title="LM Studio",
        addresses=("http://127.0.0.1:1234/v1",),
        url_variable="LMSTUDIO_BASE_URL",
        key_variables=("LMSTUDIO_API_KEY",),
        other_paths=("/api/v0", "/api/v1"),
        variant=_LOCAL_VARIANT,
        takes=_takes(_PNG_JPEG),
        hints=(Hint(r"(?i)model does not support images", "Load a model that does, one marked as vision."),),
        lists_models=True,
        notes="WebP fails in its interface, so it is converted.",
        unverified="that it constrains answers of every model",
        sources=("https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1839",),
    ),
    Preset(
        name="llamacpp",
        title="llama.cpp",
        addresses=("http://127.0.0.1:8080/v1",),
        url_variable="LLAMACPP_BASE_URL",
        key_variables=("LLAMA_API_KEY",),
        other_paths=("/completion",),
        variant=_LOCAL_VARIANT,
        takes=_takes(_PNG_JPEG),
        hints=(
            Hint(
                r"image input is not supported|mmproj",
                "Start llama-server with --mmproj FILE, the projector of the same model, or with -hf.",
            ),
        ),
        lists_models=True,
        notes="Wants --mmproj for images; WebP is converted.",
        unverified="which formats it takes",
        sources=("https://github.com/ggml-org/llama.cpp/issues/13566",),
    ),
    Preset(
        name="sglang",
        title="SGLang",
        addresses=("http://127.0.0.1:30000/v1",),
        url_variable="SGLANG_BASE_URL",
        key_variables=("SGLANG_API_KEY",),
        variant=ApiVariant(strict=False, one_system=True),
        takes=_takes(fixed_concurrency=True),
        lists_models=True,
        notes="Cached tokens are reported only with --enable-cache-report.",
        sources=("https://sgl-project.github.io/backend/openai_api.html",),
    ),
)

PRESETS: Final[Mapping[str, Preset]] = {preset.name: preset for preset in (*_HOSTED, *_LOCAL)}
# With the two that were there before there were presets.
SERVERS: Final[Mapping[str, Preset]] = {VLLM.name: VLLM, COMPATIBLE.name: COMPATIBLE, **PRESETS}
ALL: Final[Mapping[str, Preset]] = {OPENAI.name: OPENAI, ANTHROPIC.name: ANTHROPIC, **SERVERS}
