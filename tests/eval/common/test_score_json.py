"""What the JSON of every score says beside its figures: version, digests, prompts, published rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from PIL import Image

import uncanny
from tests.eval.compare.made_runs import anomaly, as_records, record
from tests.eval.mcq.made_sets import answers_to, made_set
from tests.eval.realism.made_verdicts import hand_worked, written
from uncanny.eval.common.published import published
from uncanny.eval.common.score_json import digest_of
from uncanny.eval.edits.people.score import score_people
from uncanny.eval.mcq.data.items import Answer
from uncanny.eval.mcq.score.score import score as score_mcq

REGIONS = [
    {
        "image": f"{place}.png",
        "width": 9,
        "height": 9,
        "source": source,
        "regions": [],
        "prompts": "artifacts@1",
    }
    for place, source in enumerate(("generated", "real"))
]
META = [{"edited": f"e{place}.png", "original": f"o{place}.png", "method": "ab"[place]} for place in range(2)]
SEEN = [{"image": row["edited"], "score": 0.7, "prompts": "detect@1"} for row in META]
RUN = as_records([record(f"{place}.png", [anomaly("Cup")]) for place in range(3)])


def mcq(_: Path, *, reverse: bool = False, **options: Any) -> dict[str, Any]:
    items = made_set({"art_dg": 2, "ref_real": 2})
    answers = [each for item in items for each in answers_to(item, "1101")]
    answers = [Answer.model_validate({**each.model_dump(), "prompts": "mcq@1"}) for each in answers]
    return score_mcq(items[::-1] if reverse else items, answers, resamples=20, **options).to_json()


def realism(tmp_path: Path, *, reverse: bool = False, **options: Any) -> dict[str, Any]:
    lines = hand_worked(prompts="realism@1", model="m")
    path = written(tmp_path / "v.jsonl", lines[::-1] if reverse else lines)
    return uncanny.realism.score({"m": path}, resamples=20, **options).to_json()


def artifacts(_: Path, *, reverse: bool = False, **options: Any) -> dict[str, Any]:
    truth = REGIONS[::-1] if reverse else REGIONS
    return uncanny.artifacts.score({"m": REGIONS}, truth=truth, resamples=20, **options).to_json()


def stress(_: Path, *, reverse: bool = False, **options: Any) -> dict[str, Any]:
    meta = META[::-1] if reverse else META
    scores = uncanny.edits.stress({"m": SEEN}, meta=[meta], resamples=20, **options)
    return scores.to_json()


def people(tmp_path: Path, *, reverse: bool = False) -> dict[str, Any]:
    pairs = [uncanny.edits.EditPair(id=name, original=f"{name}.png", edited=f"{name}e.png") for name in "ab"]
    line = {"id": "a", "shown": "edited", "image": "", "person": "p", "judged": "real"}
    file = tmp_path / "judgements.jsonl"
    file.write_bytes(orjson.dumps(line) + b"\n")
    return score_people(pairs[::-1] if reverse else pairs, file, resamples=20).to_json()


def semantic(_: Path, *, reverse: bool = False) -> dict[str, Any]:
    truth = RUN[::-1] if reverse else RUN
    return uncanny.semantic.score({"m": RUN}, truth=truth, similarity="chrf", resamples=20).to_json()


def compare(_: Path, *, reverse: bool = False) -> dict[str, Any]:
    truth = RUN[::-1] if reverse else RUN
    return uncanny.compare({"m": RUN, "again": RUN}, truth=truth, resamples=20).to_json()


def audit(_: Path, *, reverse: bool = False, **options: Any) -> dict[str, Any]:
    return uncanny.audit({"m": RUN[::-1] if reverse else RUN}, resamples=20, **options).to_json()


ALL: list[tuple[Any, str | None, list[str]]] = [
    (mcq, "items", ["mcq@1"]),
    (realism, "pairs", ["realism@1"]),
    (artifacts, "truth", ["artifacts@1"]),
    (stress, "metadata", ["detect@1"]),
    (people, "pairs", []),
    (semantic, "truth", ["annotate@1"]),
    (compare, "truth", ["annotate@1"]),
    (audit, "images", ["annotate@1"]),
]


@pytest.mark.parametrize(("score", "digested", "prompts"), ALL, ids=[each[0].__name__ for each in ALL])
def test_every_score_says_what_it_is_of(
    score: Any, digested: str | None, prompts: list[str], tmp_path: Path
) -> None:
    about = json.loads(json.dumps(score(tmp_path)))["about"]
    assert about["uncanny"] == uncanny.__version__
    assert list(about["digests"]) == ([] if digested is None else [digested])
    assert about["prompts"].get("m", []) == prompts
    assert about["intervals"].keys() == {"level", "method", "resamples", "seed", "groups"}
    assert (about["intervals"]["level"], about["intervals"]["resamples"]) == (0.95, 20)
    # The order of records is nothing that figures depend on.
    assert score(tmp_path, reverse=True)["about"] == about


@pytest.mark.parametrize(
    ("score", "name"),
    [
        (mcq, "mcq_scores"),
        (realism, "inpainting_scores"),
        (artifacts, "artifact_scores"),
        (stress, "edit_scores"),
    ],
)
def test_published_figures_stand_in_the_json_where_they_are_wanted(
    score: Any, name: Any, tmp_path: Path
) -> None:
    """Those of edits have SAGI's tables besides."""
    assert published(name).items() <= score(tmp_path, published=True)["published"].items()
    assert "published" not in score(tmp_path)


def test_an_audit_and_a_comparison_say_what_they_draw_together() -> None:
    pairs = as_records(record(f"{n}.png", [anomaly("Cup")], columns={"pair": n // 2}) for n in range(6))
    audited = uncanny.audit({"m": pairs, "again": pairs}, resamples=20).to_json()["about"]
    assert audited["intervals"]["groups"] == {"by": "pair", "groups": 3, "images": 12}
    assert audited["digests"]["images"]["m"] == audited["digests"]["images"]["again"]
    fewer = uncanny.audit({"m": pairs[1:]}, resamples=20, pair_by="image").to_json()["about"]
    assert fewer["intervals"]["groups"] is None
    assert fewer["digests"]["images"]["m"] != audited["digests"]["images"]["m"]
    alone = [each.model_copy(update={"sha256": f"{n:064x}"}) for n, each in enumerate(pairs)]
    named = uncanny.audit({"m": alone}, resamples=20).to_json()["about"]["digests"]["images"]["m"]
    assert named != audited["digests"]["images"]["m"]

    releases = {
        name: as_records(record(f"{name}{n}.png", [], prompt_id=n // 2) for n in range(6)) for name in "ab"
    }
    compared = uncanny.compare(releases, by="prompt", resamples=20)
    groups = {"by": "prompt_id", "groups": 3, "images": 6}
    assert compared.to_json()["about"]["intervals"]["groups"] == groups
    assert "6 pairs of images come in 3 groups (by prompt_id)" in " ".join(str(compared).split())
    single = {name: records[::2] for name, records in releases.items()}
    assert (
        uncanny.compare(single, by="prompt", resamples=20).to_json()["about"]["intervals"]["groups"] is None
    )


def test_a_digest_is_of_the_content() -> None:
    entries: list[Any] = [{"a": 1, "b": [2, None]}, "c"]
    assert digest_of(entries) == digest_of([*entries[::-1]])
    assert digest_of(entries) == digest_of([{"b": [2, None], "a": 1}, "c"])
    assert len({digest_of(entries), digest_of(entries[:1]), digest_of([{"a": 1, "b": [2, 0]}, "c"])}) == 3
    # What JSON files may hold and other libraries refuse.
    assert digest_of([2**70, "\ud83d"]) != digest_of([2**70, "\ud83e"])


def artifacts_of_mask(folder: Path, name: str) -> str:
    image = {"image": "0.png", "width": 9, "height": 9, "source": "generated"}
    truth = {**image, "regions": [{"mask": name, "category": "semantics"}]}
    scores = uncanny.artifacts.score({"m": REGIONS[:1]}, truth=[truth], root=folder, resamples=0)
    return str(scores.to_json()["about"]["digests"]["truth"])


def stress_of_mask(folder: Path, name: str) -> str:
    meta = [{"edited": "e.png", "original": "o.png", "mask": name}]
    seen = [{"image": "e.png", "score": 0.7, "mask": "found.png"}]
    scores = uncanny.edits.stress({"m": seen}, meta=[meta], root=folder, resamples=0)
    return str(scores.to_json()["about"]["digests"]["metadata"])


def people_of_mask(folder: Path, name: str) -> str:
    pair = uncanny.edits.EditPair(id="a", original="a.png", edited="ae.png", mask=name)
    line = {"id": "a", "shown": "edited", "image": "", "person": "p", "judged": "real"}
    file = folder / "judgements.jsonl"
    file.write_bytes(orjson.dumps(line) + b"\n")
    return str(score_people([pair], file, root=folder, resamples=0).to_json()["about"]["digests"]["pairs"])


@pytest.mark.parametrize("digest", [artifacts_of_mask, stress_of_mask, people_of_mask])
def test_a_mask_file_counts_by_its_content(digest: Any, tmp_path: Path) -> None:
    mask = np.zeros((9, 9), dtype=np.uint8)
    mask[:3, :3] = 255
    for name, pixels in (("m", mask), ("again", mask), ("found", mask)):
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
    before = digest(tmp_path, "m.png")
    assert digest(tmp_path, "again.png") == before
    Image.fromarray(255 - mask).save(tmp_path / "m.png")
    assert digest(tmp_path, "m.png") != before


def test_a_changed_truth_has_another_digest(tmp_path: Path) -> None:
    before = artifacts(tmp_path)["about"]["digests"]["truth"]
    changed = [{**REGIONS[0], "source": "real"}, REGIONS[1]]
    after = uncanny.artifacts.score({"m": REGIONS}, truth=changed, resamples=0).to_json()["about"]
    assert before != after["digests"]["truth"]
    items = made_set({"art_dg": 2})
    answers = [each for item in items for each in answers_to(item, "1111")]
    digests = set()
    for place, q4 in (("a.png", "A"), ("elsewhere/a.png", "A"), ("a.png", "B")):
        first = items[0]
        assert first.q4 is not None
        other = first.model_copy(update={"image": place, "q4": first.q4.model_copy(update={"answer": q4})})
        scores = score_mcq([other, *items[1:]], answers, resamples=0)
        digests.add(scores.to_json()["about"]["digests"]["items"])
    assert len(digests) == 2  # where the picture is makes no difference
