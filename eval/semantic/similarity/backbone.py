"""Which backbones are known by name, at which layer, and which of them have published scores.

Where the files of a backbone are, fetched from the hub if need be, and a hash that tells weights apart.

A backbone ready to embed: model cut down to its layer as bert-score does it, and a tokenizer of our own.

bert-score's own tokenizer loading gives other scores, or none, under transformers 5: RoBERTa's leading space
is silently dropped, texts longer than the model overflow, and an empty text raises."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncanny.errors import UsageError

if TYPE_CHECKING:
    import torch


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
            raise UsageError(f"Backbone {backbone!r}: no such folder, and no name of a model")
        return None
    if not path.is_dir():
        raise UsageError(
            f"Backbone {backbone!r}: no such folder",
            remedy="Name a folder with config.json, the weights and the tokenizer of a transformers model.",
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
            f"Backbone {backbone!r}: which layer?",
            remedy="Say it with --num-layers; bert-score knows the layer only of backbones it lists by name.",
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


MAX_TOKENS = 512
# To these, bert-score gives the space that a word has inside a sentence also at the beginning of a text. The
# tokenizers' own `add_prefix_space` gives it after each special token too, which the slow ones never did.
_LEADING_SPACE = frozenset({"roberta", "gpt2", "roberta-prelayernorm", "data2vec-text", "ibert"})
_T5 = frozenset({"t5", "mt5", "umt5"})


@dataclass(frozen=True, slots=True)
class Backbone:
    """`max_tokens` counts special tokens too. `before`: what goes before each text, a space or nothing.
    `weightless`: ids that match but do not count in the mean. `wordless`: ids also of a text without a word.
    """

    model: Any
    tokenizer: Any
    max_tokens: int
    pad: int
    before: str
    weightless: frozenset[int]
    wordless: frozenset[int]

    def ids(self, texts: Sequence[str]) -> list[tuple[int, ...] | None]:
        """Token ids with the special ones, cut to `max_tokens`; None for a text without a word.

        Such are also texts of which a tokenizer leaves nothing, invisible characters for instance.
        """
        stripped = [sound(text) for text in texts]
        some = [self.before + text for text in stripped if text]
        if not some:
            return [None] * len(texts)
        found = iter(
            self.tokenizer(
                some,
                truncation=True,
                max_length=self.max_tokens,
                return_attention_mask=False,
                return_token_type_ids=False,
            )["input_ids"]
        )
        all_ids = [tuple(next(found)) if text else () for text in stripped]
        return [ids if not self.wordless.issuperset(ids) else None for ids in all_ids]

    def weights(self, ids: Sequence[int]) -> torch.Tensor:
        """How much each token counts: as in bert-score, 1, and 0 for the special ones around a text."""
        import torch

        return torch.tensor([0.0 if i in self.weightless else 1.0 for i in ids], device=self.model.device)


def sound(text: str) -> str:
    """The text as bert-score reads it, stripped, with broken UTF-16 (half an emoji) replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()


def load(folder: Path, name: str, num_layers: int, device: str) -> Backbone:
    """Reads model and tokenizer from `folder`. `name` is for messages. Raises UsageError, with the remedy."""
    with _quiet():
        config = _config(folder, name)
        _check_layers(config, name, num_layers)
        tokenizer = _tokenizer(folder, name)
        model = _model(folder, name, config.model_type, num_layers)
    try:
        model.to(device)
    except (RuntimeError, AssertionError) as error:  # out of memory, say
        raise UsageError(f"Device {device!r} cannot be used: {_first_line_of(error)}") from error
    some = (tokenizer.cls_token_id, tokenizer.sep_token_id)
    ends = (*some, tokenizer.bos_token_id, tokenizer.eos_token_id)
    return Backbone(
        model=model,
        tokenizer=tokenizer,
        max_tokens=_max_tokens(config),
        pad=tokenizer.pad_token_id or 0,
        before=" " if config.model_type in _LEADING_SPACE else "",
        weightless=frozenset(i for i in some if i is not None),
        wordless=frozenset(i for i in ends if i is not None),
    )


def _config(folder: Path, name: str) -> Any:
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    except Exception as error:  # transformers raises nearly anything here
        raise UsageError(f"Backbone {name!r}: config.json cannot be used: {_first_line_of(error)}") from error


def _tokenizer(folder: Path, name: str) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, model_max_length=MAX_TOKENS
        )
    except Exception as error:
        # Without sentencepiece transformers takes such a tokenizer for one of tiktoken's, and asks for that.
        raise UsageError(
            f"Backbone {name!r}: its tokenizer cannot be read: {_first_line_of(error)}",
            remedy=None if find_spec("sentencepiece") else "pip install sentencepiece protobuf",
        ) from error


def _model(folder: Path, name: str, model_type: str, num_layers: int) -> Any:
    import torch
    from transformers import AutoModel, T5EncoderModel, UMT5EncoderModel

    kinds: dict[str, Any] = {"t5": T5EncoderModel, "mt5": T5EncoderModel, "umt5": UMT5EncoderModel}
    try:
        model, found = kinds.get(model_type, AutoModel).from_pretrained(
            str(folder),
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
        )
    except Exception as error:
        raise UsageError(f"Backbone {name!r}: its weights cannot be read: {_first_line_of(error)}") from error
    made_up = sorted(key for key in found["missing_keys"] if "pooler" not in key)
    if made_up:
        raise UsageError(
            f"Backbone {name!r}: {len(made_up)} of its tensors have no weights, {made_up[0]!r} first",
            remedy="They would be random, and so would be the scores. Fetch the model again.",
        )
    try:
        return _cut(model, num_layers)
    except (AssertionError, ValueError, AttributeError) as error:
        raise UsageError(
            f"Backbone {name!r}: bert-score cannot take layer {num_layers} of a {model_type!r} model"
        ) from error


def _cut(model: torch.nn.Module, num_layers: int) -> Any:
    """bert-score's `get_model` on a model already loaded: it would load as T5 what has t5 in its path."""
    from bert_score import utils

    class Given:
        @staticmethod
        def from_pretrained(_: str) -> torch.nn.Module:
            return model

    theirs = utils.AutoModel
    utils.AutoModel = Given
    try:
        return utils.get_model("given", num_layers)
    finally:
        utils.AutoModel = theirs


def _check_layers(config: Any, name: str, num_layers: int) -> None:
    layers = getattr(config, "encoder_layers", None) or getattr(config, "num_hidden_layers", None)
    if num_layers < 0 or (layers is not None and num_layers > layers):
        raise UsageError(
            f"Backbone {name!r} has {layers} layers, not {num_layers}", remedy=f"--num-layers 0 to {layers}"
        )


def _max_tokens(config: Any) -> int:
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None or config.model_type in _T5:
        return MAX_TOKENS
    # RoBERTa and its like count positions from behind the padding's.
    offset = (config.pad_token_id or 0) + 1 if "roberta" in config.model_type else 0
    return min(MAX_TOKENS, int(positions) - offset)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Loading without reports and progress bars on the terminal."""
    from transformers.utils import logging as theirs

    level, bars = theirs.get_verbosity(), theirs.is_progress_bar_enabled()
    theirs.set_verbosity(logging.CRITICAL)
    theirs.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        theirs.set_verbosity(level)
        if bars:
            theirs.enable_progress_bar()  # type: ignore[no-untyped-call]


def _first_line_of(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
