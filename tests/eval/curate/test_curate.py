"""Filtering, matching and splitting: by hand, beside other implementations, and with X-AIGD's own numbers."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

import uncanny
from tests.eval.made_clip import write_clip
from tests.runs.e2e import uncanny_here
from uncanny.edits import DescribedImage
from uncanny.errors import UsageError
from uncanny.eval.common.published import published
from uncanny.eval.curate.cluster import clusters_of
from uncanny.eval.curate.references import matches

GENERATORS = [row["generator"] for row in published("artifact_scores")["instances_per_generator"]]
TRAINED = ["SD v1.4", "SD v1.5-realistic-vision", "PixArt-alpha", "Lumina-Next", "SD 3"]


def identities(n: int) -> list[DescribedImage]:
    return [DescribedImage(id=f"{number:04}") for number in range(n)]


def test_the_split_of_x_aigd() -> None:
    """Appendix A.3: 4,000 identities in two halves; 200 of each of 13 or 5 generators, 100 shared."""
    split = uncanny.curate.split(identities(4_000), generators=GENERATORS, train=TRAINED)
    assert len(GENERATORS) == 13
    for part, names in (("train", TRAINED), ("test", GENERATORS)):
        own = [each for each in split.identities if each.split == part]
        assert len(own) == 2_000
        shared = [each for each in own if each.shared]
        assert len(shared) == 100
        assert all(each.annotated == tuple(names) for each in shared)
        alone = [each for each in own if each.annotated and not each.shared]
        assert all(len(each.annotated) == 1 for each in alone)
        assert split.to_json()[part]["annotated"] == dict.fromkeys(names, 200)
        assert len(alone) == 100 * len(names)
    ids = {part: {each.id for each in split.identities if each.split == part} for part in ("train", "test")}
    assert not ids["train"] & ids["test"]


def test_a_split_depends_on_the_ids_and_the_seed_alone() -> None:
    texts = identities(40)
    first = uncanny.curate.split(texts, generators=["A", "B"], shared=3, own=2)
    again = uncanny.curate.split(texts[::-1], generators=["A", "B"], shared=3, own=2)
    assert {each.id: each for each in first.identities} == {each.id: each for each in again.identities}
    assert [each.id for each in again.identities] == [each.id for each in texts[::-1]]
    assert first["0007"] == first.identities[7]
    with pytest.raises(KeyError):
        first["unknown"]
    other = uncanny.curate.split(texts, generators=["A", "B"], shared=3, own=2, seed=1)
    assert first.identities != other.identities
    nobody = uncanny.curate.split(texts, generators=["A"], shared=0, own=0)
    assert not any(each.annotated or each.shared for each in nobody.identities)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"generators": ["A", "A"]}, "names a generator twice"),
        ({"generators": ["A"], "train": ["B"]}, "B is not one of the generators A"),
        ({"generators": ["A", "B"], "shared": 8, "own": 2}, "10 identities, and 12 are needed"),
    ],
)
def test_splits_that_cannot_be_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        uncanny.curate.split(identities(20), **options)  # type: ignore[arg-type]


@given(st.integers(0, 10**6), st.integers(1, 12), st.floats(-0.9, 0.95))
def test_clusters_are_those_of_scikit_learn(seed: int, n: int, threshold: float) -> None:
    vectors = np.random.default_rng(seed).normal(size=(n, 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    numbers, centers = clusters_of(vectors, threshold)
    if n > 1:
        theirs = AgglomerativeClustering(
            n_clusters=None, metric="cosine", linkage="average", distance_threshold=1 - threshold
        ).fit_predict(vectors)
        assert adjusted_rand_score(numbers, theirs) == pytest.approx(1)
    sizes = np.bincount(numbers)[1:]
    assert list(sizes) == sorted(sizes, reverse=True)
    for number, center in enumerate(centers, start=1):
        own = vectors[numbers == number]
        assert numbers[center] == number
        assert vectors[center] @ own.sum(axis=0) == pytest.approx((own @ own.sum(axis=0)).max())


def test_the_kept_prompt_is_in_the_middle_of_its_cluster() -> None:
    degrees = np.radians([0, 10, 20, 90])
    numbers, centers = clusters_of(np.stack([np.cos(degrees), np.sin(degrees)], axis=1), 0.9)
    assert numbers.tolist() == [1, 1, 1, 2]
    assert centers == [1, 3]


def test_captions_go_before_likeness_and_photographs_are_used_once() -> None:
    cosines = np.array([[0.9, 0.8, 0.1], [0.9, 0.2, 0.1], [0.95, 0.1, 0.05]])
    nothing = np.zeros((3, 3), dtype=np.bool_)
    # 0.9 + 0.8 + 0.05 is the most that three can have; the last is below the least.
    assert matches(nothing, cosines, least=0.1, once=True) == [1, 2, 0]
    assert matches(nothing, cosines, least=0.2, once=True) == [1, None, 0]
    assert matches(nothing, cosines, least=0.1, once=False) == [0, 0, 0]
    same = nothing.copy()
    same[1, 0] = True
    assert matches(same, cosines, least=0.04, once=True) == [1, 0, 2]
    unmeasured = np.full((3, 3), np.nan)
    assert matches(same, unmeasured, least=0.0, once=True) == [None, 0, None]
    assert matches(nothing[:, :0], cosines[:, :0], least=0, once=True) == [None] * 3
    # A match by caption is not given up for two by likeness.
    own = np.array([[True, False], [False, False]])
    alike = np.array([[0.3, 0.3], [0.3, -0.5]])
    assert matches(own, alike, least=0.2, once=True) == [0, None]


@given(st.integers(0, 10**6))
def test_no_other_matching_has_a_higher_sum(seed: int) -> None:
    cosines = np.random.default_rng(seed).random((4, 5))
    chosen = matches(np.zeros((4, 5), dtype=np.bool_), cosines, least=0, once=True)
    best = max(
        sum(cosines[row, column] for row, column in enumerate(each)) for each in permutations(range(5), 4)
    )
    assert sum(
        cosines[row, column] for row, column in enumerate(chosen) if column is not None
    ) == pytest.approx(best)


def write_lines(path: Path, lines: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_references_by_caption_alone(tmp_path: Path) -> None:
    made = [
        {"id": "1", "original": "made/1.png", "caption": "A dog on a  LAWN."},
        {"id": "2", "original": "made/2.png", "caption": "A cat"},
        {"id": "3", "original": "made/3.png"},
    ]
    real = [
        {"id": "a", "original": "real/a.jpg", "caption": "A cat asleep"},
        {"id": "b", "original": "real/b.jpg", "caption": "a dog on a lawn"},
    ]
    images, pool = write_lines(tmp_path / "made.jsonl", made), write_lines(tmp_path / "real.jsonl", real)
    out = tmp_path / "out/references.jsonl"
    done = uncanny_here("curate", "references", images, "--pool", pool, "-o", out)
    assert done.code == 0, done.told
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert [each["reference_id"] for each in records] == ["b", None, None]
    assert records[0]["reference"] == "../real/b.jpg"
    assert records[0]["original"] == "../made/1.png"
    assert (records[0]["by"], records[0]["similarity"]) == ("caption", None)
    assert records[1]["problem"]
    found = uncanny.curate.references(images, pool=pool)
    assert found.unused == ("a",)
    with pytest.raises(UsageError, match="None of the images has a caption"):
        uncanny.curate.references([DescribedImage(id="1", original="x.png")], pool=pool)
    with pytest.raises(UsageError, match="must end in"):
        uncanny.curate.references(images, pool=pool, out=tmp_path / "a.csv")


def test_a_folder_of_images_is_read_as_one_without_captions(tmp_path: Path) -> None:
    scenes = tmp_path / "photos"
    uncanny.curate.filter("scenes", model="demo", out=tmp_path / "first")
    (tmp_path / "first/images").rename(scenes)
    folder = uncanny_here("curate", "filter", scenes, "-m", "demo", "-o", tmp_path / "run")
    assert folder.code == 0, folder.told
    assert "Passed   0 of 16" in folder.out
    lines = [json.loads(line) for line in (tmp_path / "run/filtered.jsonl").read_text().splitlines()]
    assert [each["id"] for each in lines] == sorted(file.name for file in scenes.iterdir())
    assert {each["caption"] for each in lines} == {None}
    split = uncanny.curate.split(scenes, generators=["A"], shared=1, own=1)
    assert [each.id for each in split.identities] == [each["id"] for each in lines]
    image = DescribedImage(id="1", original="x.png", caption="A dog")
    found = uncanny.curate.references([image], pool=scenes)
    assert found.references[0].problem == "no photograph has its caption"
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="contains no images"):
        uncanny.curate.split(tmp_path / "empty", generators=["A"])


@pytest.mark.slow
def test_references_and_clusters_by_a_clip_model(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    clip = write_clip(tmp_path / "clip")
    generator = np.random.default_rng(0)
    lines: list[dict[str, str]] = []
    photographs: list[dict[str, str]] = []
    for name in "abc":
        pixels = generator.integers(0, 255, (40, 40, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
        Image.fromarray(np.clip(pixels.astype(int) + 3, 0, 255).astype(np.uint8)).save(
            tmp_path / f"{name}2.png"
        )
        lines.append({"id": name, "original": f"{name}.png"})
        photographs.insert(0, {"id": f"{name}2", "original": f"{name}2.png"})
    lines.append({"id": "gone", "original": "gone.png"})
    images, pool = write_lines(tmp_path / "i.jsonl", lines), write_lines(tmp_path / "p.jsonl", photographs)
    found = uncanny.curate.references(images, pool=pool, clip=clip, least=0.5)
    assert [each.reference_id for each in found.references] == ["a2", "b2", "c2", None]
    assert {each.by for each in found.references[:3]} == {"clip"}
    assert found.references[3].problem
    assert found.to_json()["model"]["model"] == "clip"
    prompts = [
        DescribedImage(id="1", caption="a dog with two"),
        DescribedImage(id="2", caption="cat wall corner one"),
        DescribedImage(id="3", caption="a dog with two"),
        DescribedImage(id="4"),
    ]
    clusters = uncanny.curate.cluster(prompts, clip=clip, threshold=0.9999, out=tmp_path / "c.jsonl")
    assert [each.cluster for each in clusters.prompts] == [1, 2, 1]
    assert clusters.kept() == ["1", "2"]
    assert clusters.without == ("4",)
    model = transformers.CLIPModel.from_pretrained(clip).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(clip)
    with torch.inference_mode():
        tokens = tokenizer([each.caption for each in prompts[:2]], return_tensors="pt", padding=True)
        features = model.get_text_features(
            input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"]
        )
        features = getattr(features, "pooler_output", features)
        cosine = torch.nn.functional.cosine_similarity(features[0], features[1], dim=0)
    whole = uncanny.curate.cluster(prompts, clip=clip, threshold=-1)
    assert {each.cluster for each in whole.prompts} == {1}
    assert whole.prompts[1].similarity == pytest.approx(float(cosine), abs=1e-4)


def test_the_filter_asks_its_question_and_says_what_is_fit(tmp_path: Path) -> None:
    lines = [
        {"id": "1", "caption": "A dog on a lawn, 35 mm"},
        {"id": "2", "caption": "An oil painting of a dog"},
        {"id": "3"},
    ]
    texts = write_lines(tmp_path / "prompts.jsonl", lines)
    run = tmp_path / "run"
    done = uncanny_here("curate", "filter", texts, "-m", "demo", "-o", run, "--question", "prompt", "--quiet")
    assert done.code == 1, "one line has no caption"
    records = [json.loads(line) for line in (run / "filtered.jsonl").read_text().splitlines()]
    assert [(each["id"], each["passed"], each["outcome"]) for each in records] == [
        ("1", True, "ok"),
        ("2", False, "ok"),
        ("3", None, "unusable"),
    ]
    assert records[1]["answer"].startswith("It asks for painting")
    assert records[0]["prompts"].startswith("curate@")
    again = uncanny.curate.filter(texts, model="demo", out=run, question="prompt")
    assert again.passed() == ["1"]
    assert again.summary.calls == 2, "nothing is asked again"


@pytest.mark.parametrize(("question", "passed"), [("photo", False), ("blurred", True)])
def test_bundled_scenes_are_drawings_and_not_blurred(question: str, passed: bool, tmp_path: Path) -> None:
    run = uncanny.curate.filter("scenes", model="demo", out=tmp_path, question=question, limit=2)  # type: ignore[arg-type]
    assert {record.passed for record in run.filtered} == {passed}


@pytest.mark.parametrize(("question", "unit"), [("photo", "images"), ("prompt", "texts")])
def test_what_is_filtered_is_called_what_it_is(question: str, unit: str, tmp_path: Path) -> None:
    asked = ("curate", "filter", "scenes", "-m", "demo", "--question", question, "--limit", 2)
    done = uncanny_here(*asked, "-o", tmp_path / "run")
    assert f"2 {unit} · demo" in done.err
    assert f"{unit.capitalize():<8} 2: 2 ok" in done.out
    assert f"{unit.capitalize():<8} 2, 2 to do" in uncanny_here(*asked, "--dry-run").out
    totals = json.loads((tmp_path / "run/run.json").read_text())["totals"]
    assert totals[unit] == 2
    assert not totals.keys() & {"anomalies", "duplicates", *{"images", "texts"} - {unit}}
    (tmp_path / "nothing.jsonl").touch()
    for command in ((*asked, "--dry-run"), ("curate", "split", "scenes", "--generator", "A")):
        words = uncanny_here(*command[:2], tmp_path / "nothing.jsonl", *command[3:]).err
        assert "nothing.jsonl is empty" in words


def test_no_prompt_of_the_papers_is_used() -> None:
    """X-AIGD, figure 8, in words of our own."""
    from uncanny.prompts import prompt_set

    texts = " ".join(prompt_set("curate").texts().values())
    for theirs in ("captured in a real scene", "blurred for privacy reasons", "respond with 'Yes'"):
        assert theirs not in texts


def test_a_pool_that_cannot_be_read_matches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Likeness:
        described: ClassVar = {"clip": "none"}

        def __init__(self, *_: object) -> None:
            pass

        def image(self, _: object) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
            return np.array([1.0, 0.0])

    monkeypatch.setattr("uncanny.eval.common.similarity.clip.Clip", Likeness)
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"no picture")
    for name, other in (("a", "b"), ("b", "a"), ("b", "b")):
        ours, theirs = (DescribedImage(id="1", original=f"{each}.png") for each in (name, other))
        found = uncanny.curate.references([ours], pool=[theirs], clip=tmp_path, root=tmp_path, least=0)
        assert found.references[0].reference is None
