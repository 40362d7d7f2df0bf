"""The card of a reasoner: how it is served with vLLM, asked with what it was trained on, and scored."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from uncanny.files import dump_json
from uncanny.learn.common.card import write_card
from uncanny.learn.common.parameters import PixelParameters
from uncanny.learn.common.result import LearnRun

# In a run: the questions that the model was trained on, as `uncanny detect --prompts` takes them.
PROMPTS: Final = "prompts"
_NAME: Final = "reasoner"

_ABOUT = """\
Lists what cannot be so in an image: for each anomaly a name, what is visible, why it cannot be, and how real
it looks (0 to 100)."""
_USE = """\
Start a server in one terminal, and ask it in another:

```sh
{serve}
```

```sh
export VLLM_BASE_URL=http://127.0.0.1:8000/v1
{ask}
```

The prompts are those that the model was trained on.{pixels}"""
_PIXELS = """ vLLM would show pictures in the sizes of the base model:
`--mm-processor-kwargs` has those of the training."""
_LIMITS = (
    "It was measured on the held-out images above only.",
    "It overlooks anomalies and names some that are not there: have people review what matters.",
    "What it lists does not show that an image was generated.",
)


def write_reasoner_card(run: LearnRun) -> Path:
    """Write the card into the folder of the model. Raises OSError."""
    use = _USE.format(
        serve=serve_words(run),
        ask=ask_words(run, "IMAGES", "TRUTH"),
        pixels=_PIXELS if run.results["reads_pixels"] else "",
    )
    return write_card(
        run,
        title="Reasoner: lists semantic anomalies of images",
        about=_ABOUT,
        use=use,
        library="transformers" if run.manifest.plan["whole_model"] else "peft",
        limits=_LIMITS,
    )


def serve_words(run: LearnRun) -> str:
    """The command that serves the trained model with vLLM."""
    plan = run.manifest.plan
    options = [] if plan["whole_model"] else [f"--max-lora-rank {max(8, plan['rank'])}"]
    if run.results["reads_pixels"]:
        low, high = (plan[name] for name in PixelParameters.model_fields)
        size = {"shortest_edge": low, "longest_edge": high}
        options.append(f"--mm-processor-kwargs '{dump_json({'size': size}).decode()}'")
    served = f"{run.model}" if plan["whole_model"] else f"{run.manifest.model} --lora {_NAME}={run.model}"
    return " ".join(["uncanny vllm up", served, *(["--", *options] if options else [])])


def ask_words(run: LearnRun, images: str, truth: str) -> str:
    """The command line that asks the served model about images and scores what it says."""
    name = run.model if run.manifest.plan["whole_model"] else _NAME
    # A model of one turn was never asked for a verdict first.
    protocol = "" if run.results["turns"] > 1 else " --protocol independent"
    asked = f"uncanny detect {images} --model vllm/{name} --prompts {run.path / PROMPTS}{protocol} -o runs/d"
    return f"{asked} &&\n  uncanny semantic runs/d --truth {truth}"
