"""Which backbones are known by name, at which layer, and which of them have published scores."""

from __future__ import annotations

from pathlib import Path

from uncanny.errors import UsageError

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
