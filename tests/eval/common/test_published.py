"""Every published table that ships can be asked for by name, and says where it is from."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import get_args

import pytest

from uncanny.eval.common.published import Published, published


def test_names_and_files_agree() -> None:
    names = {path.name.removesuffix(".json") for path in (files("uncanny.eval") / "published").iterdir()}
    assert set(get_args(Published)) == {name for name in names if not name.startswith("__")}


# Which table of its paper each part of a file is.
TABLES: dict[Published, dict[str, int]] = {
    "artifact_scores": {
        "authenticity_and_category_agnostic": 2,
        "pixels_by_category": 3,
        "alignment": 4,
        "instances_per_generator": 7,
        "vlm_presence_f1": 9,
        "mllm_detectors": 10,
        "masks_vs_interpretation": 11,
        "vlm_instance_f1_at_0.5": 12,
        "interpretations": 13,
        "alignment_masks": 14,
    },
    "detection_scores": {"rows": 2},
    "edit_scores": {"detectors": 3, "directional": 4, "human_correlation": 5},
    "generator_audit": {"rows": 3},
    "inpainting_scores": {
        "splits": 1,
        "fidelity_fully_regenerated": 3,
        "by_times": 4,
        "by_domain_and_fill": 5,
        "by_pipeline_and_fill": 6,
        "questionnaire": 7,
        "human_vs_model": 8,
        "by_label_and_fill": 9,
    },
    "mcq_scores": {
        "main": 1,
        "hierarchy": 4,
        "q1_detection": 5,
        "by_route": 6,
        "type_and_disagreement": 7,
    },
    "semantic_scores": {"distilbert-base-uncased": 1, "roberta-large-mnli": 4, "google/mt5-large": 5},
}
PAPERS = ("X-AIGD", "Semantic Visual Anomaly Detection", "Semi-Truths", "SAGI", "SalArt-VQA")


@pytest.mark.parametrize("name", get_args(Published))
def test_each_names_its_paper_and_the_tables_that_it_holds(name: Published) -> None:
    content = published(name)
    source = content["source"]
    assert source.startswith(PAPERS)
    named = re.search(r"\btables? (\d+(?:, \d+)*)", source)
    assert named is not None
    assert [int(number) for number in named[1].split(", ")] == sorted(TABLES[name].values())
    parts = content.get("backbones", content)
    assert all(parts[part] for part in TABLES[name])
    rows = {part for part, each in parts.items() if isinstance(each, list)}
    assert rows <= TABLES[name].keys()
