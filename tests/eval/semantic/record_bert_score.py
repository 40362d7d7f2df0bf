"""Writes `bert_score_figures.json`: what bert-score says pair by pair under transformers 4.

In an environment with transformers==4.57.6, torch==2.13.0 and bert-score==0.3.13, from this folder:
`python record_bert_score.py`. bert-score runs as it is, with its own tokenizer and its defaults.
"""

from __future__ import annotations

import json
import tempfile
from importlib.metadata import version
from pathlib import Path

from awkward_texts import PAIRS  # type: ignore[import-not-found,unused-ignore]
from bert_score import score
from made_backbones import make, weights_hash  # type: ignore[import-not-found,unused-ignore]

LAYERS = {"bert": 3, "distilbert": 2, "roberta": 3}


def main() -> None:
    figures: dict[str, object] = {
        "versions": {name: version(name) for name in ("bert-score", "transformers", "torch", "tokenizers")}
    }
    with tempfile.TemporaryDirectory(prefix="made-") as folder:
        for kind, layer in LAYERS.items():
            path = make(Path(folder) / kind, kind)
            f1 = [score([p], [t], model_type=str(path), num_layers=layer)[2].item() for p, t in PAIRS]
            figures[kind] = {
                "num_layers": layer,
                "weights": weights_hash(path),
                "f1": [round(x, 7) for x in f1],
            }
    text = json.dumps(figures, indent=1) + "\n"
    (Path(__file__).parent / "bert_score_figures.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
