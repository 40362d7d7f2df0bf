"""A backbone ready to embed: from texts to token ids, from token ids to one unit vector a token.

The model is cut down to its layer as bert-score does it. The tokenizer is our own: bert-score's loading gives
other scores, or none, under transformers 5, where RoBERTa's leading space is silently dropped, texts longer
than the model overflow, and an empty text raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncanny.errors import UsageError
from uncanny.eval.common.similarity.base import is_blank
from uncanny.eval.common.similarity.packages import quiet_transformers
from uncanny.eval.common.similarity.weights import first_line
from uncanny.extras import install_hint
from uncanny.wording import option

if TYPE_CHECKING:
    import torch

# Tokens of one text, special ones included.
Ids = tuple[int, ...]

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

    def ids(self, texts: Sequence[str]) -> list[Ids | None]:
        """Token ids with the special ones, cut to `max_tokens`; None for a text without a word.

        Such are also texts of which a tokenizer leaves nothing, invisible characters for instance.
        """
        stripped = [sound(text) for text in texts]
        some = [self.before + text for text in stripped if text]
        if not some:
            return [None] * len(texts)
        tokenized = iter(
            self.tokenizer(
                some,
                truncation=True,
                max_length=self.max_tokens,
                return_attention_mask=False,
                return_token_type_ids=False,
            )["input_ids"]
        )
        all_ids = [tuple(next(tokenized)) if text else () for text in stripped]
        return [ids if not self.wordless.issuperset(ids) else None for ids in all_ids]

    def weights(self, ids: Sequence[int]) -> torch.Tensor:
        """How much each token counts: as in bert-score, 1, and 0 for the special ones around a text."""
        import torch

        return torch.tensor([0.0 if i in self.weightless else 1.0 for i in ids], device=self.model.device)


def sound(text: str) -> str:
    """The text as bert-score reads it, stripped, with broken UTF-16 (half an emoji) replaced; empty where it
    is blank."""
    if is_blank(text):
        return ""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()


def load(folder: Path, name: str, num_layers: int, device: str) -> Backbone:
    """Reads model and tokenizer from `folder`. `name` is for messages. Raises UsageError, with the remedy."""
    with quiet_transformers():
        config = _config(folder, name)
        _check_layers(config, name, num_layers)
        tokenizer = _tokenizer(folder, name)
        model = _model(folder, name, config.model_type, num_layers)
    try:
        model.to(device)
    except (RuntimeError, AssertionError) as error:  # out of memory, say
        raise UsageError(f"Device {device!r} cannot be used: {first_line(error)}") from error
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
        raise UsageError(f"Backbone {name!r}: config.json cannot be used: {first_line(error)}") from error


def _tokenizer(folder: Path, name: str) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, model_max_length=MAX_TOKENS
        )
    except Exception as error:
        # Without sentencepiece transformers takes such a tokenizer for one of tiktoken's, and asks for that.
        raise UsageError(
            f"Backbone {name!r}: its tokenizer cannot be read: {first_line(error)}",
            remedy=None if find_spec("sentencepiece") else install_hint("semantic"),
        ) from error


def _model(folder: Path, name: str, model_type: str, num_layers: int) -> Any:
    import torch
    from transformers import AutoModel, T5EncoderModel, UMT5EncoderModel

    kinds: dict[str, Any] = {"t5": T5EncoderModel, "mt5": T5EncoderModel, "umt5": UMT5EncoderModel}
    try:
        model, loading = kinds.get(model_type, AutoModel).from_pretrained(
            str(folder),
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
        )
    except Exception as error:
        raise UsageError(f"Backbone {name!r}: its weights cannot be read: {first_line(error)}") from error
    made_up = sorted(key for key in loading["missing_keys"] if "pooler" not in key)
    if made_up:
        raise UsageError(
            f"Backbone {name!r}: {len(made_up)} of its tensors have no weights (first: {made_up[0]!r})",
            remedy="The scores would be random. Download the model again.",
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
            f"Backbone {name!r} has {layers} layers, so there is no layer {num_layers}",
            remedy=f"Give a layer from 0 to {layers}.",
        )


def _max_tokens(config: Any) -> int:
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None or config.model_type in _T5:
        return MAX_TOKENS
    # RoBERTa and its like count positions from behind the padding's.
    offset = (config.pad_token_id or 0) + 1 if "roberta" in config.model_type else 0
    return min(MAX_TOKENS, int(positions) - offset)


def embed(backbone: Backbone, texts: Sequence[Ids], batch_tokens: int) -> dict[Ids, torch.Tensor]:
    """Distinct token lists → (tokens, width) on the backbone's device.

    A batch has at most `batch_tokens` tokens, padding included, and at least one text.
    """
    import torch

    embedded: dict[Ids, torch.Tensor] = {}
    with torch.inference_mode():
        for batch in batches(texts, batch_tokens):
            rows = _fitting(backbone, batch)
            rows /= rows.norm(dim=-1, keepdim=True)
            # One copy without the padding; each text is a view of it.
            embedded.update(zip(batch, torch.split(rows, [len(ids) for ids in batch]), strict=True))
    return embedded


def _fitting(backbone: Backbone, batch: Sequence[Ids]) -> torch.Tensor:
    """In halves where the device has no memory for the whole; UsageError where not even for one text."""
    import torch

    try:
        return forward(backbone, batch)
    except torch.OutOfMemoryError as error:
        if len(batch) == 1:
            raise UsageError(
                f"{backbone.model.device} has too little memory for a text of {len(batch[0])} tokens",
                remedy=f"Score on another device, with {option('device', 'cpu')} for instance.",
            ) from error
    half = len(batch) // 2
    return torch.cat([_fitting(backbone, batch[:half]), _fitting(backbone, batch[half:])])


def forward(backbone: Backbone, batch: Sequence[Ids]) -> torch.Tensor:
    """Hidden states of the tokens of a batch, one after another, without padding."""
    import torch

    device = backbone.model.device
    lengths = torch.tensor([len(ids) for ids in batch])
    ids = torch.full((len(batch), int(lengths.max())), backbone.pad)
    mask = torch.arange(ids.shape[1]) < lengths.unsqueeze(1)
    ids[mask] = torch.tensor([i for ids in batch for i in ids])
    mask = mask.to(device, non_blocking=True)
    states: torch.Tensor = backbone.model(ids.to(device, non_blocking=True), attention_mask=mask.long())[0]
    return states[mask]


def batches(texts: Sequence[Ids], batch_tokens: int) -> Iterator[list[Ids]]:
    """Longest first, so that what does not fit into memory shows at once."""
    batch: list[Ids] = []
    for ids in sorted(texts, key=len, reverse=True):
        if batch and len(batch[0]) * (len(batch) + 1) > batch_tokens:
            yield batch
            batch = []
        batch.append(ids)
    if batch:
        yield batch
