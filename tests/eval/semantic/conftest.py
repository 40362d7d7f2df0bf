"""Made backbones for the tests of BERTScore, a folder for embeddings, and two scores with their pages."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.eval.common.page_text import Page
from tests.eval.semantic.made_scores import made_predictions, made_score, made_truth, page_of, twelve_models
from uncanny.eval.semantic.score.result import SemanticScore
from uncanny.settings import settings

Made = Callable[..., Path]


@pytest.fixture(scope="session")
def backbone_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """`(kind, real_size=False)` → a model folder, made once. Whoever changes it copies it first."""
    import torch

    from tests.eval.semantic.made_backbones import make

    torch.set_num_threads(1)  # small models gain nothing from more, and tests run side by side
    made: dict[tuple[str, bool], Path] = {}

    def folder(kind: str, *, real_size: bool = False) -> Path:
        if (kind, real_size) not in made:
            made[kind, real_size] = make(
                tmp_path_factory.mktemp("made") / kind,
                kind,
                real_size=real_size,
                spread=0.03 if real_size else 0.08,
            )
        return made[kind, real_size]

    yield folder
    for made_folder in made.values():  # gigabytes that pytest would keep for three runs
        shutil.rmtree(made_folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def _embeddings_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("UNCANNY_EMBEDDINGS_DIR", str(tmp_path / "embeddings"))
    settings.cache_clear()
    yield
    settings.cache_clear()


@pytest.fixture(scope="session")
def twelve() -> SemanticScore:
    """The score of twelve models, some with names that try to break a page."""
    return twelve_models()


@pytest.fixture(scope="session")
def page(twelve: SemanticScore, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Theirs, beside published rows."""
    return page_of(tmp_path_factory.mktemp("semantic"), twelve, published=True)


@pytest.fixture(scope="session")
def two() -> SemanticScore:
    """Of a good model that says the source, and a poor one that does not."""
    truth = made_truth()
    with_source, without = made_predictions(truth, 0.9), made_predictions(truth, 0.3, source=False)
    return made_score({"good": with_source, "poor": without}, truth)


@pytest.fixture(scope="session")
def page_of_two(two: SemanticScore, tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(tmp_path_factory.mktemp("semantic"), two)
