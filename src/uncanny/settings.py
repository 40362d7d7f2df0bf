"""Machine-wide defaults: an argument wins over the environment, the environment over what stands here.

Nothing scientific is set this way: what changes an outcome is an argument, and stands in `run.json`. API keys
are not settings; providers read them from their own variables and nothing else ever holds them. `secrets`
knows them only so that they can be kept out of what is written and sent.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from uncanny.errors import UsageError

WEEK_S = 7 * 24 * 3600.0
SHORTEST_SECRET: Final = 12
"""Characters of a key or password. What is shorter may be a word that stands anywhere."""
_SECRETS: Final = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_BEARER_TOKEN_BEDROCK")


def _real_folders(text: object) -> object:
    """Names with `:` between them, `;` on Windows, as folders with their links followed."""
    return tuple(Path(each).resolve() for each in text.split(os.pathsep)) if isinstance(text, str) else text


class Settings(BaseSettings):
    """Read from `UNCANNY_…` variables; an empty one counts as unset.

    `concurrency`: most calls in flight at each model. `timeout_s`: seconds for one call. `patience_s`:
    seconds without one good answer before a failing model is given up. `cache_dir`: a folder of answers
    shared by all runs, None for one in each run. `prices`: a price file. `vllm_args`: more options for a
    vLLM server that a run starts itself, as on a command line; `vllm_replicas`: how many it starts of each
    model, with a GPU each; `vllm_restarts`: how often each that died is started again. `embeddings_dir`:
    where embeddings of texts stay between runs, None for the user's cache folder. `embeddings_gb`: how much
    of them, in 10⁹ bytes, 0 for none. `run_name`: what a run is called on its page, None for the name of its
    folder. `progress`: `jsonl` has runs say how far they are as JSON. `folders`: where images and masks may
    lie, links followed, None for anywhere; a file of records may name any file. `input_folders`: the same for
    every file that a command is given, as a service says it of jobs; only the configuration and the price
    file of `prices` may lie elsewhere.
    `weights`: folders of weights by name, as JSON: the only ones that `diffusers/NAME` and `detector/NAME`
    then load, None for any folder.
    `scenes`: a link to the bundled scenes, by which results name them.
    `langsmith`: whether LangGraph may send what agents see and say to LangSmith, where its own variables
    tell it to.
    """

    model_config = SettingsConfigDict(env_prefix="UNCANNY_", frozen=True, extra="ignore")

    concurrency: Annotated[int, Field(ge=1, le=10_000)] = 32
    timeout_s: Annotated[float, Field(gt=0, le=WEEK_S)] = 120.0
    patience_s: Annotated[float, Field(gt=0, le=WEEK_S)] = 120.0
    cache_dir: Path | None = None
    prices: Path | None = None
    vllm_args: str | None = None
    vllm_replicas: Annotated[int, Field(ge=1, le=64)] = 1
    vllm_restarts: Annotated[int, Field(ge=0, le=1_000)] = 3
    embeddings_dir: Path | None = None
    embeddings_gb: Annotated[float, Field(ge=0, le=1e9)] = 10.0
    progress: Literal["jsonl"] | None = None
    run_name: str | None = None
    langsmith: bool = False
    folders: Annotated[tuple[Path, ...] | None, NoDecode, BeforeValidator(_real_folders)] = None
    input_folders: Annotated[tuple[Path, ...] | None, NoDecode, BeforeValidator(_real_folders)] = None
    weights: dict[str, Path] | None = None
    scenes: Path | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_empty_ones(cls, given: dict[str, object]) -> dict[str, object]:
        return {name: value for name, value in given.items() if not isinstance(value, str) or value.strip()}


@cache
def settings() -> Settings:
    """The settings of this process, read once. Raises UsageError naming the variable that does not fit."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        variable = f"UNCANNY_{first['loc'][0]!s}".upper()
        raise UsageError(f"{variable}={first['input']!r}: {first['msg']}") from error


def secrets() -> Iterator[tuple[str, str]]:
    """Keys and passwords in the environment, of `SHORTEST_SECRET` characters or more, by their variables."""
    for name, value in os.environ.items():
        secret = value.strip() if name.upper().endswith(_SECRETS) else _password(value)
        if len(secret) >= SHORTEST_SECRET:
            yield name, secret


def _password(address: str) -> str:
    """The password in an address, as of a proxy; nothing where there is none."""
    try:
        return urlsplit(address).password or ""
    except ValueError:
        return ""
