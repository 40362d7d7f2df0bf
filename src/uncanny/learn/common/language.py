"""A vision-language model that is trained: loaded, with adapters, asked, and saved."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uncanny.detectors.folder import check_config, check_whole, loading
from uncanny.errors import UncannyError, UsageError, first_line
from uncanny.learn.common.machine import dtype_of
from uncanny.learn.common.parameters import AdapterParameters, LanguageParameters, PixelParameters
from uncanny.learn.common.session import base_folder
from uncanny.wording import option

if TYPE_CHECKING:
    from PIL import Image

# AnomReason, appendix C.1: the query, key and value projections of every fourth layer.
PROJECTIONS: Final = ("q_proj", "k_proj", "v_proj")
_LOCAL: Final = {"local_files_only": True, "trust_remote_code": False}


class LanguageModel:
    """A model and its processor. `reads_pixels`: it takes limits on pixels; else its pictures have one size.

    Raises UsageError where the folder holds no model that answers questions about images, and where a package
    that the model wants is missing.
    """

    def __init__(self, parameters: LanguageParameters, device: Any) -> None:
        from transformers import AutoModelForImageTextToText, AutoProcessor

        folder = base_folder(parameters)
        check_config(folder)
        processors: Any = AutoProcessor
        models: Any = AutoModelForImageTextToText
        remedy = "Pass a model that transformers loads with AutoModelForImageTextToText."
        try:
            with loading(folder, "a vision-language model", remedy):
                self.processor: Any = processors.from_pretrained(str(folder), **_LOCAL)
                loaded = models.from_pretrained(
                    str(folder), dtype=dtype_of(parameters, device), output_loading_info=True, **_LOCAL
                )
                self.model: Any = loaded[0]
                check_whole(folder, loaded[1])
        except ImportError as error:  # processors of Qwen-VL want torchvision, and only now say so
            raise UsageError(
                f"{folder} cannot be loaded: {str(error).strip().partition('. ')[0]}",
                remedy="Install what is missing, in the build that belongs to your torch.",
            ) from error
        if getattr(self.processor, "tokenizer", None) is None or not self.processor.chat_template:
            raise UsageError(
                f"{folder} has no processor for images with a chat template",
                remedy="Pass the instruction-tuned variant of the model.",
            )
        _check_template(folder, self.processor)
        self.reads_pixels = set_pixels(self.processor, parameters)
        self.model.to(device)

    @property
    def tokens(self) -> int | None:
        """Number of tokens that the model was made for; None where its configuration does not say it."""
        config = self.model.config.get_text_config()
        limit: int | None = getattr(config, "max_position_embeddings", None)
        return limit

    def add_adapter(self, parameters: AdapterParameters, dropout: float, seed: int) -> None:
        """Freeze the model and add low-rank adapters, the same ones for the same seed.

        Raises UsageError where none of the layers has such projections.
        """
        import torch
        from peft import LoraConfig, get_peft_model

        layers = range(0, self.model.config.get_text_config().num_hidden_layers, parameters.every_layer)
        targets = adapted_layers(layers)
        names = [name for name, _ in self.model.named_modules() if re.fullmatch(targets, name)]
        if not names:
            raise UsageError(
                f"{option('base')} has no layers called language_model.layers.N.self_attn.q_proj",
                remedy="Pass a Qwen-VL, LLaVA or other model of transformers with these names.",
            )
        torch.manual_seed(seed)
        config = LoraConfig(
            r=parameters.rank,
            lora_alpha=parameters.alpha,
            lora_dropout=dropout,
            target_modules=targets,
            bias="none",
            task_type="CAUSAL_LM",
        )
        self.model = get_peft_model(self.model, config)

    def counts(self) -> Mapping[str, int]:
        """Numbers of parameters: all, and those that are trained."""
        weights = list(self.model.parameters())
        return {
            "parameters": sum(each.numel() for each in weights),
            "trainable_parameters": sum(each.numel() for each in weights if each.requires_grad),
        }

    def answer(
        self, messages: Sequence[Mapping[str, Any]], images: Sequence[Image.Image], max_tokens: int
    ) -> str:
        """What the model says, always the likeliest token."""
        import torch
        from trl.data_utils import prepare_multimodal_messages

        asked = prepare_multimodal_messages([dict(each) for each in messages], images=list(images))
        given = self.processor.apply_chat_template(
            asked, tokenize=True, return_dict=True, add_generation_prompt=True, return_tensors="pt"
        ).to(self.model.device)
        self.model.eval()
        with torch.no_grad():
            ids = self.model.generate(**given, max_new_tokens=max_tokens, do_sample=False, use_cache=True)
        text: str = self.processor.batch_decode(
            ids[:, given["input_ids"].shape[1] :], skip_special_tokens=True
        )[0]
        return text.strip()

    def save(self, folder: Path, *, merge: bool) -> None:
        """Write the adapter, or with `merge` the whole model, and the processor into `folder`.

        Raises UncannyError where training has not changed the adapter: what is saved would be the base.
        """
        check_learned(self.model)
        if merge:
            self.model.merge_and_unload().save_pretrained(str(folder))
        else:
            # GRPO keeps a copy of the adapter as it was, where the distance from it counts.
            self.model.save_pretrained(str(folder), selected_adapters=["default"])
        self.processor.save_pretrained(str(folder))


def _check_template(folder: Path, processor: Any) -> None:
    """Raise UsageError for a chat template that cannot show a question about an image and its answer."""
    from jinja2 import TemplateError

    asked = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "?"}]}
    answered = {"role": "assistant", "content": [{"type": "text", "text": "."}]}
    try:
        processor.apply_chat_template([asked, answered], tokenize=False)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise UsageError(
            f"The chat template of {folder} cannot be used ({type(error).__name__}: {first_line(error)})",
            remedy="Take it from where the model was published.",
        ) from error


def adapted_layers(layers: Sequence[int]) -> str:
    """A regular expression for the projections of these layers of the language model, and of no other tower.

    Names would also match the layers of some vision towers.
    """
    numbers, names = "|".join(map(str, layers)), "|".join(PROJECTIONS)
    return rf".*language_model.*\.layers\.({numbers})\.self_attn\.({names})"


def set_pixels(processor: Any, parameters: PixelParameters) -> bool:
    """Set the limits on pixels; False where the model shows all pictures in sizes of its own."""
    size = getattr(processor.image_processor, "size", None)
    names = {"shortest_edge", "longest_edge"}
    if size is None or {name for name in names if size.get(name) is not None} != names:
        return False
    limits = {"shortest_edge": parameters.min_pixels, "longest_edge": parameters.max_pixels}
    processor.image_processor.size = type(size)(**limits) if not isinstance(size, dict) else limits
    return True


def check_learned(model: Any) -> None:
    """Raises UncannyError where all `lora_B` are still zero, as they are before any training."""
    learned = [weight for name, weight in model.named_parameters() if "lora_B" in name]
    if learned and not any(bool((each != 0).any()) for each in learned):
        raise UncannyError(
            "Training did not change the model: all weights of the adapter are still zero",
            remedy="Train for more steps, or with a higher learning rate.",
        )
