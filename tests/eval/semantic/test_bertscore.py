"""BERTScore against bert-score itself, pair by pair."""

from __future__ import annotations

import json
import random
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.eval.semantic.awkward_texts import LONG, PAIRS
from tests.eval.semantic.conftest import Made
from uncanny.errors import UsageError
from uncanny.eval.common.parameters import MeasureParameters
from uncanny.eval.common.similarity.base import TextPairs, open_measure

# A backbone is made and loaded, which takes torch seconds.
pytestmark = pytest.mark.slow

RECORDED = json.loads((Path(__file__).parent / "bert_score_figures.json").read_text())
TEXTS = sorted({text for pair in PAIRS for text in pair})


def opened(folder: Path, layer: int, **more: Any) -> Any:
    return open_measure(
        "bertscore", MeasureParameters(backbone=str(folder), num_layers=layer, device="cpu", **more)
    )


def one_by_one(measure: Any, pairs: list[tuple[str, str]]) -> list[float]:
    return [cells[0, 0] for cells in measure.matrices(TextPairs([p], [t]) for p, t in pairs)]


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta"])
def test_figures_are_those_of_bert_score_under_transformers_4(kind: str, backbone_folder: Made) -> None:
    from tests.eval.semantic.made_backbones import weights_hash

    recorded = RECORDED[kind]
    assert RECORDED["versions"]["transformers"].startswith("4.57")
    assert int(version("transformers").split(".")[0]) >= 5
    folder = backbone_folder(kind)
    assert weights_hash(folder) == recorded["weights"]
    measure = opened(folder, recorded["num_layers"])
    assert max(recorded["f1"]) - min(recorded["f1"]) > 0.15  # or agreeing would show nothing
    assert one_by_one(measure, PAIRS) == pytest.approx(recorded["f1"], abs=1e-5)
    # The second time true texts come from disk.
    assert one_by_one(opened(folder, recorded["num_layers"]), PAIRS) == pytest.approx(
        recorded["f1"], abs=1e-5
    )


def test_all_pairs_at_once_are_bert_score_pair_by_pair(backbone_folder: Made) -> None:
    from bert_score import BERTScorer

    library = BERTScorer(str(backbone_folder("bert")), num_layers=2, device="cpu")
    rng = random.Random(3)
    some = [text for text in TEXTS if text != LONG]
    wanted = [TextPairs(rng.sample(some, 5), rng.sample(TEXTS, 4)) for _ in range(4)]
    measure = opened(backbone_folder("bert"), 2)
    for pairs, cells in zip(wanted, measure.matrices(wanted), strict=True):
        theirs = [[library.score([p], [t])[2].item() for t in pairs.true] for p in pairs.predicted]
        np.testing.assert_allclose(cells, theirs, atol=1e-5)


def test_mt5_is_the_encoder_that_bert_score_takes(backbone_folder: Made, tmp_path: Path) -> None:
    from bert_score import BERTScorer

    # Only by t5 in its name does bert-score load it as T5. Ours has another.
    named = tmp_path / "t5"
    named.symlink_to(backbone_folder("mt5"))
    other = tmp_path / "encoder"
    other.symlink_to(backbone_folder("mt5"))
    library = BERTScorer(str(named), num_layers=3, device="cpu")
    pairs = [(p, t) for p, t in PAIRS if p != LONG and t != LONG]
    theirs = [max(0.0, library.score([p], [t])[2].item()) for p, t in pairs]
    assert one_by_one(opened(other, 3), pairs) == pytest.approx(theirs, abs=1e-5)


def test_a_folder_with_t5_in_its_name_is_no_t5(backbone_folder: Made, tmp_path: Path) -> None:
    named = tmp_path / "not-t5-but-bert"
    named.symlink_to(backbone_folder("bert"))
    assert one_by_one(opened(named, 3), PAIRS[:4]) == pytest.approx(RECORDED["bert"]["f1"][:4], abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "head"),
    [
        ("distilbert", "AutoModelForMaskedLM"),
        ("roberta", "AutoModelForSequenceClassification"),
        ("mt5", "AutoModelForSeq2SeqLM"),
    ],
)
def test_released_weights_with_a_head_and_without_a_pooler(
    kind: str, head: str, backbone_folder: Made, tmp_path: Path
) -> None:
    import transformers

    folder = Path(shutil.copytree(backbone_folder(kind), tmp_path / "headed"))
    getattr(transformers, head).from_pretrained(folder).save_pretrained(folder)
    bare = one_by_one(opened(backbone_folder(kind), 3), PAIRS[:6])
    assert one_by_one(opened(folder, 3), PAIRS[:6]) == pytest.approx(bare, abs=1e-5)


@pytest.mark.parametrize("kind", ["bert", "roberta", "mt5"])
def test_a_text_without_a_word_is_0_to_everything(kind: str, backbone_folder: Made) -> None:
    blank = ["", "   ", "\n\t", "\u3000"]
    cells = next(
        opened(backbone_folder(kind), 2).matrices([TextPairs(["a hand", *blank], ["a hand", *blank])])
    )
    assert cells[0, 0] == pytest.approx(1, abs=1e-6)
    assert cells.sum() == cells[0, 0]


def test_what_a_tokenizer_leaves_nothing_of_is_0_as_in_bert_score(backbone_folder: Made) -> None:
    from bert_score import BERTScorer

    library = BERTScorer(str(backbone_folder("bert")), num_layers=2, device="cpu")
    invisible = ["\u200b\u200d", "\ufffd", "[SEP]", "\x07"]
    wanted = TextPairs([*invisible, "a hand"], [*invisible, "a hand"])
    cells = next(opened(backbone_folder("bert"), 2).matrices([wanted]))
    theirs = [[library.score([p], [t])[2].item() for t in wanted.true] for p in wanted.predicted]
    np.testing.assert_allclose(cells, theirs, atol=1e-5)
    assert np.count_nonzero(cells) == 1


def test_empty_sides_and_half_an_emoji(backbone_folder: Made) -> None:
    wanted = [
        TextPairs([], ["x"]),
        TextPairs(["x"], []),
        TextPairs([], []),
        TextPairs(["\ud83d six"], ["six"]),
    ]
    shapes = [cells.shape for cells in opened(backbone_folder("bert"), 2).matrices(wanted)]
    assert shapes == [(0, 1), (1, 0), (0, 0), (1, 1)]
    assert list(opened(backbone_folder("bert"), 2).matrices([])) == []


def test_a_text_is_embedded_once_in_a_chunk_and_a_true_one_once_for_all(backbone_folder: Made) -> None:
    true = ["the hand has six fingers", "the shadow falls toward the lamp"]
    wanted = [TextPairs([f"the clock has {n} hours", true[0]], true) for n in ("five", "six", "five")]
    measure = opened(backbone_folder("bert"), 2)
    first = list(measure.matrices(wanted))
    assert (measure.counts.embedded, measure.counts.from_disk) == (4, 0)
    again = opened(backbone_folder("bert"), 2)
    np.testing.assert_allclose(np.array(first), np.array(list(again.matrices(wanted))), atol=1e-6)
    assert (again.counts.embedded, again.counts.from_disk) == (2, 2)
    keeping = opened(backbone_folder("bert"), 2, keep_all=True)
    list(keeping.matrices(wanted))
    everything = opened(backbone_folder("bert"), 2, keep_all=True)
    list(everything.matrices(wanted))
    assert (everything.counts.embedded, everything.counts.from_disk) == (0, 4)


def test_reads_ahead_no_more_than_a_chunk(backbone_folder: Made) -> None:
    read = 0

    def endless() -> Any:
        nonlocal read
        while True:
            read += 1
            yield TextPairs([f"the clock has {read} hours " * 40], ["the clock"])

    matrices = opened(backbone_folder("bert"), 1).matrices(endless())
    for returned in range(100):
        next(matrices)
        assert read - returned < 160
    matrices.close()


def test_scores_do_not_depend_on_chunks_batches_and_neighbours(backbone_folder: Made) -> None:
    pairs = [TextPairs([p, "six"], [t, LONG]) for p, t in PAIRS]
    whole = list(opened(backbone_folder("roberta"), 3).matrices(pairs))
    small = opened(backbone_folder("roberta"), 3, batch_tokens=1)
    small._chunk_tokens = 1
    np.testing.assert_allclose(np.array(whole), np.array(list(small.matrices(pairs))), atol=1e-5)


def test_a_batch_that_does_not_fit_goes_in_parts(
    backbone_folder: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    pairs = [TextPairs([p], [t]) for p, t in PAIRS]
    whole = list(opened(backbone_folder("bert"), 3).matrices(pairs))
    small = opened(backbone_folder("bert"), 3, batch_tokens=50_000)
    forward = small._backbone.model.forward
    most = 700

    def tight(ids: Any, **more: Any) -> Any:
        if ids.numel() > most:
            raise torch.OutOfMemoryError("as of a small GPU")
        return forward(ids, **more)

    monkeypatch.setattr(small._backbone.model, "forward", tight)
    monkeypatch.setattr(small, "_store", None)
    np.testing.assert_allclose(np.array(list(small.matrices(pairs))), np.array(whole), atol=1e-5)
    most = 100
    with pytest.raises(UsageError, match="too little memory for a text of 512 tokens"):
        list(small.matrices(pairs))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "layer"), [("distilbert", 5), ("bert", 9), ("roberta", 10)])
def test_real_sizes_are_bert_score_pair_by_pair(kind: str, layer: int, backbone_folder: Made) -> None:
    from bert_score import BERTScorer
    from transformers import AutoTokenizer

    folder = backbone_folder(kind, real_size=True)
    library = BERTScorer(str(folder), num_layers=layer, device="cpu")
    # What transformers 5 ignores at the call, given where it heeds it.
    library._tokenizer = AutoTokenizer.from_pretrained(folder, add_prefix_space=True)
    pairs = [pair for pair in PAIRS if "<mask>" not in pair[0]]
    theirs = [library.score([p], [t])[2].item() for p, t in pairs]
    assert max(theirs) - min(theirs) > 0.05
    assert one_by_one(opened(folder, layer), pairs) == pytest.approx(theirs, abs=1e-4)
    assert one_by_one(opened(folder, layer), pairs) == pytest.approx(theirs, abs=1e-4)
