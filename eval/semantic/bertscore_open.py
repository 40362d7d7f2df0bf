"""From a user's choice to a measure that scores: backbone loaded, store opened, all of it described."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncanny.errors import UsageError
from uncanny.eval.semantic import backbone_files, backbone_names
from uncanny.eval.semantic.similarity import MeasureOptions
from uncanny.settings import settings

if TYPE_CHECKING:
    from uncanny.eval.semantic.bertscore import BertScore

_NEEDED = ("torch", "transformers", "bert_score")


def open_measure(options: MeasureOptions) -> BertScore:
    """BERTScore with the chosen backbone. Raises UsageError, with the remedy, for whatever is not there."""
    absent = [name for name in _NEEDED if find_spec(name) is None]
    if absent:
        raise UsageError(
            f"BERTScore needs {', '.join(absent)}, which is not installed",
            remedy="pip install 'uncanny[semantic]', or use --similarity chrf, which needs no model.",
        )
    from uncanny.eval.semantic.backbone import load
    from uncanny.eval.semantic.bertscore import BertScore
    from uncanny.eval.semantic.embedding_store import EmbeddingStore

    asked = options.backbone or backbone_names.DEFAULT_BACKBONE
    path = backbone_names.local_folder(asked)
    layer = backbone_names.layer_of(asked, options.num_layers, is_path=path is not None)
    device = _device(options.device)
    folder = path if path is not None else backbone_files.fetch(asked, layer)
    try:
        weights = backbone_files.content_hash(folder)
    except OSError as error:
        raise UsageError(f"Backbone {asked!r} cannot be read: {error}") from error
    name = backbone_names.first_name(asked) if path is None else folder.name
    backbone = load(folder, asked, layer, device)
    limit = int(settings().embeddings_gb * 1e9)
    store = EmbeddingStore(_embeddings(), f"{weights}\n{layer}", limit) if limit else None
    return BertScore(
        backbone,
        _described(name, weights, layer, is_path=path is not None),
        published_table=backbone_names.published_table(asked, layer, is_path=path is not None),
        batch_tokens=options.batch_tokens,
        store=store,
        keep_all=options.keep_all,
    )


def _described(name: str, weights: str, layer: int, *, is_path: bool) -> dict[str, Any]:
    from bert_score.utils import get_hash

    # bert-score's own name for what was computed; ours is always the fast tokenizer under transformers 5.
    own = get_hash(name, layer, False, False, False, False)
    return {
        "measure": "bertscore",
        "backbone": name,
        "from": "folder" if is_path else "hub",
        "weights": weights[:16],
        "num_layers": layer,
        "signature": own,
        # Without what torch was built for: scores are the same on a GPU within rounding.
        "versions": {
            package: version(package).split("+")[0] for package in ("bert-score", "transformers", "torch")
        },
    }


def _device(asked: str | None) -> str:
    import torch

    if asked is not None:
        try:
            torch.empty(0, device=torch.device(asked))
        except (RuntimeError, AssertionError) as error:
            raise UsageError(
                f"Device {asked!r} cannot be used: {str(error).splitlines()[0]}",
                remedy="cpu, cuda, cuda:1 or mps, where torch is built for it",
            ) from error
        return asked
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _embeddings() -> Path:
    chosen = settings().embeddings_dir
    return chosen.expanduser() if chosen is not None else _user_cache() / "uncanny" / "embeddings"


def _user_cache() -> Path:
    import os

    named = os.environ.get("XDG_CACHE_HOME", "")
    return Path(named) if Path(named).is_absolute() else Path.home() / ".cache"
