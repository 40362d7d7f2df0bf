"""Where the files of a backbone are, fetched from the hub if need be, and a hash that tells weights apart."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from uncanny.errors import UsageError

# A hub that does not answer within this is as good as not there.
HUB_TIMEOUT_S = 10.0
_TOKENIZER = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.json", "vocab.txt", "merges.txt", "bpe.codes", "*.model",
)  # fmt: skip
# In the order in which transformers prefers them.
_WEIGHTS = (
    ("model.safetensors",), ("model.safetensors.index.json", "model-*.safetensors"),
    ("pytorch_model.bin",), ("pytorch_model.bin.index.json", "pytorch_model-*.bin"),
)  # fmt: skip
_VOCABULARY = re.compile(r"tokenizer\.json|vocab\.|bpe\.codes|.*\.model$")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def files_of(folder: Path) -> list[Path]:
    """The files a backbone is read from, weights first; raises UsageError where the folder holds no model."""
    weights = next((found for names in _WEIGHTS if (found := _complete(folder, names))), None)
    config = folder / "config.json"
    tokenizer = [path for pattern in _TOKENIZER for path in sorted(folder.glob(pattern))]
    names = [path.name for path in tokenizer]
    missing = [
        what
        for what, there in (
            ("config.json", config.is_file()),
            ("weights (model.safetensors or pytorch_model.bin)", weights),
            ("a tokenizer (tokenizer.json or its vocabulary)", any(map(_VOCABULARY.match, names))),
        )
        if not there
    ]
    if missing or weights is None:
        raise UsageError(
            f"Backbone {str(folder)!r} is not a whole model: {' and '.join(missing)} missing",
            remedy="Name a folder as `save_pretrained` of model and tokenizer, or `hf download`, makes it.",
        )
    return [*weights, config, *tokenizer]


def content_hash(folder: Path) -> str:
    """SHA-256, in hex, over the names and contents of all files that a backbone's embeddings depend on."""
    whole = hashlib.sha256()
    for path in files_of(folder):
        whole.update(f"{path.name}\0{_sha256(path)}\n".encode())
    return whole.hexdigest()


def fetch(name: str, layer: int) -> Path:
    """The folder of a backbone on the hub, downloaded unless it is there. Raises UsageError soon."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        # By one file, as for all the hub's client would want the other frameworks' weights too.
        folder = Path(snapshot_download(name, local_files_only=True, allow_patterns="config.json"))
        files_of(folder)
    except (LocalEntryNotFoundError, UsageError):
        return _download(name, layer)
    except ValueError as error:  # a name the hub's client does not take for one
        raise UsageError(f"Backbone {name!r}: {_first_line(error)}") from error
    return folder


def _download(name: str, layer: int) -> Path:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    remedy = (
        "Run once with a connection to huggingface.co, or get the model elsewhere with "
        f"`hf download {name}` and copy the folder: --backbone FOLDER --num-layers {layer}. "
        "Without any weights: --similarity chrf."
    )
    try:
        known = HfApi().model_info(name, timeout=HUB_TIMEOUT_S)
        offered = [file.rfilename for file in known.siblings or []]
        with _bars_on_terminals_only():
            # Not of the commit: by the branch's name it is found again without the hub.
            folder = snapshot_download(name, allow_patterns=_wanted(offered), etag_timeout=HUB_TIMEOUT_S)
    except (GatedRepoError, RepositoryNotFoundError) as error:
        raise UsageError(f"Backbone {name!r}: the hub has no such model, or not for you") from error
    except Exception as error:  # of httpx, requests, the OS, or the client's own, as its version has it
        raise UsageError(
            f"Backbone {name!r}: its weights are not on this machine and the hub cannot be reached "
            f"({_first_line(error)})",
            remedy=remedy,
        ) from error
    files_of(Path(folder))
    return Path(folder)


@contextlib.contextmanager
def _bars_on_terminals_only() -> Iterator[None]:
    from huggingface_hub.utils.tqdm import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    if sys.stderr.isatty() or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


def _wanted(offered: list[str]) -> list[str]:
    """What to download: not the same weights again in each framework's format."""
    for names in _WEIGHTS:
        if names[0] in offered:
            return ["config.json", *_TOKENIZER, *names]
    return ["config.json", *_TOKENIZER]


def _complete(folder: Path, names: tuple[str, ...]) -> list[Path]:
    first = folder / names[0]
    if not first.is_file():
        return []
    if len(names) == 1:
        return [first]
    try:
        shards = sorted(set(json.loads(first.read_bytes())["weight_map"].values()))
    except (ValueError, KeyError, AttributeError, TypeError):
        return []
    paths = [folder / str(shard) for shard in shards]
    return [first, *paths] if all(path.is_file() for path in paths) else []


def _sha256(path: Path) -> str:
    # In the hub's own store large files are named by their hash, and gigabytes need not be read for it.
    if path.is_symlink() and _SHA256.fullmatch(path.resolve().name):
        return path.resolve().name
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
