"""Models with random weights, made in the test: an inpainting pipeline, and SAM 2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def tiny_pipeline(folder: Path) -> Path:
    """A Stable Diffusion inpainting pipeline of a few thousand weights."""
    import diffusers
    import torch
    from transformers import CLIPTextConfig, CLIPTextModel

    library: Any = diffusers  # its classes have no types
    torch.manual_seed(0)
    unet = library.UNet2DConditionModel(
        block_out_channels=(8, 16),
        layers_per_block=1,
        sample_size=16,
        in_channels=9,
        out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16,
        norm_num_groups=2,
        attention_head_dim=4,
    )
    vae = library.AutoencoderKL(
        block_out_channels=[8, 16],
        in_channels=3,
        out_channels=3,
        down_block_types=["DownEncoderBlock2D", "DownEncoderBlock2D"],
        up_block_types=["UpDecoderBlock2D", "UpDecoderBlock2D"],
        latent_channels=4,
        norm_num_groups=2,
        sample_size=32,
    )
    text = CLIPTextModel(
        CLIPTextConfig(
            hidden_size=16,
            intermediate_size=32,
            num_attention_heads=2,
            num_hidden_layers=1,
            vocab_size=300,
            max_position_embeddings=77,
            bos_token_id=0,
            eos_token_id=1,
            pad_token_id=1,
        )
    )
    tokenizer = tiny_tokenizer(folder)
    pipeline = library.StableDiffusionInpaintPipeline(
        vae=vae,
        text_encoder=text,
        tokenizer=tokenizer,
        unet=unet,
        scheduler=library.DDIMScheduler(steps_offset=1),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    pipeline.save_pretrained(folder / "pipeline", safe_serialization=True)
    return folder / "pipeline"


def tiny_tokenizer(folder: Path) -> Any:
    """A tokenizer of single letters, as CLIP has them."""
    from transformers import CLIPTokenizer

    letters = [chr(code) for code in range(33, 127)]
    words = ["<|startoftext|>", "<|endoftext|>", *letters, *(f"{letter}</w>" for letter in letters)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=77)


def tiny_clip(folder: Path) -> Path:
    """A CLIP model of a few thousand weights."""
    import torch
    from transformers import CLIPConfig, CLIPModel

    torch.manual_seed(0)
    layers = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "num_hidden_layers": 1}
    ends = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    config = CLIPConfig(
        text_config={**layers, "vocab_size": 300, "max_position_embeddings": 77, **ends},
        vision_config={**layers, "image_size": 32, "patch_size": 8},
        projection_dim=16,
    )
    CLIPModel(config).save_pretrained(folder, safe_serialization=True)
    tiny_tokenizer(folder).save_pretrained(folder)
    return folder


def tiny_sam2(folder: Path) -> Path:
    """A SAM 2 model of a few thousand weights, for pictures of 64 pixels a side."""
    import torch
    from transformers import (
        Sam2Config,
        Sam2HieraDetConfig,
        Sam2MaskDecoderConfig,
        Sam2Model,
        Sam2PromptEncoderConfig,
        Sam2VisionConfig,
    )

    torch.manual_seed(0)
    backbone = Sam2HieraDetConfig(
        hidden_size=8,
        num_attention_heads=1,
        blocks_per_stage=[1, 1, 2, 1],
        embed_dim_per_stage=[8, 16, 32, 64],
        num_attention_heads_per_stage=[1, 1, 2, 2],
        window_size_per_stage=[4, 4, 4, 4],
        global_attention_blocks=[3],
        image_size=[64, 64],
        window_positional_embedding_background_size=[4, 4],
    )
    vision = Sam2VisionConfig(
        backbone_config=backbone,
        backbone_channel_list=[64, 32, 16, 8],
        backbone_feature_sizes=[[16, 16], [8, 8], [4, 4]],
        fpn_hidden_size=32,
    )
    config = Sam2Config(
        vision_config=vision,
        prompt_encoder_config=Sam2PromptEncoderConfig(hidden_size=32, image_size=64, patch_size=16),
        mask_decoder_config=Sam2MaskDecoderConfig(
            hidden_size=32, mlp_dim=32, num_hidden_layers=2, num_attention_heads=2, iou_head_hidden_dim=32
        ),
    )
    Sam2Model(config).save_pretrained(folder, safe_serialization=True)
    return folder
