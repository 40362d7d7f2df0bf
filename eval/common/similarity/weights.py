"""Which backbone, and where its files are: names, layers, folders, the hub, and a hash of the content."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from uncanny.errors import UsageError, first_line
from uncanny.wording import option

_KEYS = {"from": "weights from", "num_layers": "layer", "signature": "signature by bert-score"}
DEFAULT_BACKBONE = "distilbert-base-uncased"
# Backbones with a published table (eval/published/semantic_scores.json), at the layer bert-score gives them.
PUBLISHED = {"distilbert-base-uncased": 5, "roberta-large-mnli": 19, "google/mt5-large": 19}
# The hub has moved these under an organisation; bert-score knows them by their first names.
_MOVED_TO = ("distilbert/", "FacebookAI/", "google-bert/", "google-t5/", "albert/", "xlnet/")


def first_name(backbone: str) -> str:
    """The name under which bert-score knows a backbone: `distilbert/distilbert-base-uncased` has two."""
    for organisation in _MOVED_TO:
        if backbone.startswith(organisation):
            return backbone.removeprefix(organisation)
    return backbone


def local_folder(backbone: str) -> Path | None:
    """The folder that `backbone` names, or None where it is a name on the hub.

    A folder that happens to have the name of a known backbone is not meant by it: `./name` means the folder.
    Raises UsageError where it can only be a path, and nothing is there.
    """
    path = Path(backbone).expanduser()
    looks_like_path = path.is_absolute() or backbone.startswith(("./", "../", "~", ".\\", "..\\"))
    if not looks_like_path and (first_name(backbone) in known_layers() or not path.is_dir()):
        if backbone.count("/") > 1 or not backbone.strip():
            raise UsageError(f"Backbone {backbone!r}: neither a folder nor the name of a model")
        return None
    if not path.is_dir():
        raise UsageError(
            f"Backbone {backbone!r}: no such folder",
            remedy="Pass a folder with config.json, the weights and the tokenizer of a transformers model.",
        )
    return path.resolve()


def known_layers() -> dict[str, int]:
    """The layer bert-score takes for each backbone it knows."""
    from bert_score.utils import model2layers

    return dict(model2layers)


def layer_of(backbone: str, num_layers: int | None, *, is_path: bool) -> int:
    """The layer whose hidden states are compared, counted from 1, 0 for the bare word embeddings.

    Raises UsageError where none is given and bert-score does not know one.
    """
    if num_layers is not None:
        return num_layers
    default = None if is_path else known_layers().get(first_name(backbone))
    if default is None:
        raise UsageError(
            f"Backbone {backbone!r}: set its layer",
            remedy=f"Add {option('num_layers')}; bert-score knows the layer only for the backbones it "
            "lists by name.",
        )
    return default


def published_table(backbone: str, layer: int, *, is_path: bool) -> str | None:
    """The published table that scores may stand beside, or None: a folder's weights can be any."""
    name = first_name(backbone)
    return name if not is_path and PUBLISHED.get(name) == layer else None


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
    weights = next((files for names in _WEIGHTS if (files := _complete(folder, names))), None)
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
            remedy="Pass a folder made by `save_pretrained` (model and tokenizer) or `hf download`.",
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
        raise UsageError(f"Backbone {name!r}: {first_line(error)}") from error
    return folder


def _download(name: str, layer: int) -> Path:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    remedy = (
        "Run once with a connection to huggingface.co, or get the model elsewhere with "
        f"`hf download {name}` and give its folder: {option('backbone', 'FOLDER')} "
        f"and {option('num_layers', layer)}. Without any weights, compare texts with chrf."
    )
    try:
        known = HfApi().model_info(name, timeout=HUB_TIMEOUT_S)
        offered = [file.rfilename for file in known.siblings or []]
        with _bars_on_terminals_only():
            # Not of the commit: by the branch's name it is found again without the hub.
            folder = snapshot_download(name, allow_patterns=_wanted(offered), etag_timeout=HUB_TIMEOUT_S)
    except (GatedRepoError, RepositoryNotFoundError) as error:
        raise UsageError(
            f"Backbone {name!r}: the hub has no such model, or you have no access to it"
        ) from error
    except Exception as error:  # of httpx, requests, the OS, or the client's own, as its version has it
        raise UsageError(
            f"Backbone {name!r}: its weights are not on this machine and the hub cannot be reached "
            f"({first_line(error)})",
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


def measure_words(measure: Mapping[str, Any]) -> str:
    """What similarities are, in a few words."""
    if measure.get("measure") == "chrf":
        return "chrF"
    if measure.get("measure") != "bertscore":
        return str(measure.get("measure", "not recorded"))
    return f"BERTScore F1, {measure.get('backbone')}, layer {measure.get('num_layers')}"


def measure_rows(measure: Mapping[str, Any]) -> list[tuple[str, str]]:
    """All that scores depend on, as names and values in words."""
    rows = []
    for key, value in measure.items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{name} {part}" for name, part in value.items())
        rows.append((_KEYS.get(key, key.replace("_", " ")), str(value)))
    return rows
