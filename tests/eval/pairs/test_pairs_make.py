"""Candidates are painted within their mask alone, carry all that made them, and resume."""

from __future__ import annotations

import errno
import json
import shutil
from binascii import a2b_base64
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from PIL import Image

import uncanny
from tests.eval.pairs.made_candidates import made, mask_file, picture, pictures
from uncanny.agents import prompt_writer
from uncanny.agents.common.context import step_failed
from uncanny.demo.pairs.inpaint import DISTORTIONS, distorted
from uncanny.errors import AnswerError, RunMismatchError, UsageError
from uncanny.eval.pairs.data import load_made
from uncanny.eval.pairs.make.compose import outside_painted, working
from uncanny.eval.pairs.make.given import GivenMasks
from uncanny.eval.pairs.make.outline import region_mask
from uncanny.eval.pairs.make.regions import Region
from uncanny.records.jsonl import write_named

pytest.importorskip("cv2")


def pixels(path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.asarray(Image.open(path).convert("RGB"))


@pytest.mark.parametrize("seed", range(len(DISTORTIONS)))
def test_the_demo_inpainter_changes_the_mask_and_nothing_else(seed: int) -> None:
    before = picture(seed)
    mask = np.zeros(before.shape[:2], dtype=np.bool_)
    mask[20:48, 26:58] = True
    after = distorted(before, mask, seed=seed, strength=0.8)
    assert np.array_equal(before[~mask], after[~mask])
    assert (before[mask] != after[mask]).any()
    assert np.array_equal(after, distorted(before, mask, seed=seed, strength=0.8))


def test_the_demo_inpainter_leaves_a_picture_without_a_mask() -> None:
    before = picture()
    nothing = np.zeros(before.shape[:2], dtype=np.bool_)
    assert np.array_equal(before, distorted(before, nothing, seed=0, strength=1.0))


def test_everything_outside_the_mask_is_the_original_bit_by_bit(tmp_path: Path) -> None:
    run = made(tmp_path, 2, attempts=4)
    pairs = load_made(run.path)
    assert len(pairs) == 8
    for pair in pairs:
        source = pixels(tmp_path / "pictures" / Path(pair.original.image).name)
        original, edited = pixels(pair.original_file), pixels(pair.edited_file or Path())
        mask = np.asarray(Image.open(pair.mask_file or Path())) > 0
        assert np.array_equal(source, original)
        assert np.array_equal(original[~mask], edited[~mask])
        assert (original[mask] != edited[mask]).any()


def test_a_candidate_says_all_that_it_takes_to_make_it_again(tmp_path: Path) -> None:
    run = made(tmp_path, attempts=3, seed=7, guidance_from=10, guidance_to=20, strength_from=0.6)
    candidates = run.originals[0].candidates
    assert [each.seed for each in candidates] == [7, 8, 9]
    assert [each.guidance for each in candidates] == [10, 15, 20]
    assert [each.strength for each in candidates] == [0.6, 0.75, 0.9]
    first = candidates[0]
    assert (first.model, first.revision, first.steps) == ("demo", "demo/duplicate", 20)
    assert first.sent == {"seed": 7, "strength": 0.6}
    assert (first.mask_source, first.region.source, first.dilation) == ("ellipse", "detail", 4)
    assert first.prompt == "A picture"
    assert first.sha256
    assert first.mask_share is not None
    assert 0 < first.mask_share < 0.5
    plan = json.loads((run.path / "run.json").read_text())["plan"]
    assert plan["guidance_to"] == 20


def test_captions_come_from_metadata(tmp_path: Path) -> None:
    images = pictures(tmp_path / "pictures", captions=True)
    run = uncanny.pairs.make(images, inpainter="demo", out=tmp_path / "pairs", attempts=1)
    assert run.originals[0].caption == "A tiled patch number 0 on a slope"
    assert run.originals[0].candidates[0].prompt == "A tiled patch number 0 on a slope"


def test_detail_is_where_the_patch_is(tmp_path: Path) -> None:
    run = made(tmp_path, attempts=1)
    x0, y0, x1, y1 = run.originals[0].candidates[0].region.box
    assert x0 < 40 < x1
    assert y0 < 34 < y1


def test_given_masks_are_found_by_the_name_of_the_image(tmp_path: Path) -> None:
    images = pictures(tmp_path / "pictures", 2)
    mask_file(tmp_path / "masks/picture-0.png", (10, 10, 30, 30))
    mask_file(tmp_path / "masks/picture-1.left_hand.png", (50, 40, 70, 60))
    run = uncanny.pairs.make(
        images, inpainter="demo", out=tmp_path / "pairs", masks=tmp_path / "masks", attempts=1, dilate=0
    )
    first, second = (record.candidates[0] for record in run.originals)
    assert (first.region.name, first.region.box) == ("the masked area", (10, 10, 30, 30))
    assert (second.region.name, second.region.box) == ("the left hand", (50, 40, 70, 60))
    assert (first.mask_source, first.dilation) == ("given", 0)


def test_coco_instances_are_masks(tmp_path: Path) -> None:
    images = pictures(tmp_path / "pictures")
    document = {
        "images": [{"id": 1, "file_name": "picture-0.png", "width": 96, "height": 72}],
        "categories": [{"id": 3, "name": "cup"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 3, "segmentation": [[10, 10, 30, 10, 30, 30, 10, 30]]},
            {"id": 2, "image_id": 1, "category_id": 3, "bbox": [50, 40, 20, 16]},
        ],
    }
    file = tmp_path / "instances.json"
    file.write_text(json.dumps(document))
    run = uncanny.pairs.make(
        images, inpainter="demo", out=tmp_path / "p", masks=file, attempts=1, regions_per_image=2, dilate=0
    )
    regions = [each.region for each in run.originals[0].candidates]
    assert [(each.name, each.box) for each in regions] == [
        ("the cup", (10, 10, 30, 30)),
        ("the cup", (50, 40, 70, 56)),
    ]


def test_a_mask_that_covers_too_much_is_rejected(tmp_path: Path) -> None:
    images = pictures(tmp_path / "pictures")
    mask_file(tmp_path / "masks/picture-0.png", (0, 0, 96, 60))
    run = uncanny.pairs.make(
        images, inpainter="demo", out=tmp_path / "p", masks=tmp_path / "masks", attempts=2
    )
    rejected = [each.rejected for each in run.originals[0].candidates]
    assert [each and each.step for each in rejected] == ["mask", "mask"]
    assert rejected[0] is not None
    assert "of the image" in rejected[0].why
    assert run.summary.state == "finished"


def test_an_image_without_a_region_says_so(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    Image.new("RGB", (64, 48), "navy").save(tmp_path / "pictures/flat.png")
    run = uncanny.pairs.make(tmp_path / "pictures", inpainter="demo", out=tmp_path / "pairs")
    record = run.originals[0]
    assert (record.status, record.candidates, record.no_region) == ("ok", (), "no region was found")


def test_the_same_call_paints_nothing_anew(tmp_path: Path) -> None:
    first = made(tmp_path, attempts=2)
    (first.path / "candidates.jsonl").unlink()
    again = made(tmp_path, attempts=2)
    assert again.summary.calls == 2  # of the first session
    assert [each.sha256 for each in again.originals[0].candidates] == [
        each.sha256 for each in load_made(first.path).originals[0].candidates
    ]
    calls = (again.path / "calls.jsonl").read_text().splitlines()
    assert sum(json.loads(line)["replayed"] for line in calls) == 2


def test_other_masks_are_refused_when_a_run_resumes(tmp_path: Path) -> None:
    masks, images = tmp_path / "masks", pictures(tmp_path / "pictures", 2)
    for number in range(2):
        mask_file(masks / f"picture-{number}.png", (10, 10, 30, 30))
    shutil.copy(images / "picture-0.png", images / "same.png")
    resumed = partial(
        uncanny.pairs.make, images, inpainter="demo", out=tmp_path / "pairs", masks=masks, attempts=1
    )
    resumed(limit=2)
    before = (tmp_path / "pairs/run.json").read_bytes()
    mask_file(masks / "picture-1.png", (50, 40, 70, 60))
    with pytest.raises(RunMismatchError, match=r"made with other masks of '\S*picture-1.png'\."):
        resumed()
    mask_file(masks / "picture-0.cup.png", (50, 40, 70, 60))
    with pytest.raises(RunMismatchError, match=r"other masks of '\S*picture-0.png' and 1 more image\."):
        resumed()
    assert (tmp_path / "pairs/run.json").read_bytes() == before
    (masks / "picture-0.cup.png").unlink()
    mask_file(masks / "picture-1.png", (10, 10, 30, 30))
    mask_file(masks / "picture-2.png", (50, 40, 70, 60))  # of an image that comes only now
    Image.fromarray(picture(2)).save(images / "picture-2.png")
    for _ in range(2):
        assert resumed().made() == 4
    mask_file(masks / "picture-0.png", (50, 40, 70, 60))
    with pytest.raises(RunMismatchError, match=r"other masks of '\S*picture-0.png' and 1 more image\."):
        resumed()


def test_other_instances_of_an_image_are_refused_when_a_run_resumes(tmp_path: Path) -> None:
    images, file = pictures(tmp_path / "pictures"), tmp_path / "coco.json"
    instance = {"id": 1, "image_id": 1, "bbox": [50, 40, 20, 16]}
    other = {"id": 2, "image_id": 2, "bbox": [1, 1, 5, 5]}

    def run(*instances: object) -> None:
        listed = [{"id": 1, "file_name": "picture-0.png"}, {"id": 2, "file_name": "b.png"}]
        file.write_text(json.dumps({"images": listed, "annotations": instances}))
        uncanny.pairs.make(images, inpainter="demo", out=tmp_path / "pairs", masks=file, attempts=1)

    run(instance)
    run(instance, other)
    with pytest.raises(RunMismatchError, match="other masks"):
        run({**instance, "bbox": [50, 40, 20, 17]}, other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regions": "masks"}, "needs `masks`"),
        ({"regions": "objects"}, "needs `model`"),
        ({"regions": "hands"}, "needs `landmarks`"),
        ({"prompt_from": "writer"}, "needs `model`"),
        ({"inpainter": "noop"}, "does not paint pictures"),
        ({"masks": "nowhere"}, "does not exist"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    images = pictures(tmp_path / "pictures")
    with pytest.raises(UsageError, match=message):
        uncanny.pairs.make(images, **{"inpainter": "demo", "out": tmp_path / "pairs", **options})


def test_objects_of_the_demo_model_are_regions(tmp_path: Path) -> None:
    run = uncanny.pairs.make(
        "scenes", inpainter="demo", model="demo", out=tmp_path / "pairs", attempts=1, limit=1
    )
    (record,) = run.originals
    assert record.candidates[0].region.source == "object"
    assert record.candidates[0].mask_source == "box"


@pytest.mark.parametrize("prompt_from", ["writer", "perturber"])
def test_a_model_writes_prompts(tmp_path: Path, prompt_from: Literal["writer", "perturber"]) -> None:
    run = uncanny.pairs.make(
        "scenes",
        inpainter="demo",
        model="demo",
        out=tmp_path / "pairs",
        attempts=1,
        limit=1,
        caption="A cup on a table by the window",
        prompt_from=prompt_from,
    )
    candidate = run.originals[0].candidates[0]
    assert candidate.rejected is None
    assert candidate.prompt_source == prompt_from
    assert candidate.prompt not in (None, "", "A cup on a table by the window")
    assert run.summary.calls == 3  # objects, prompt, picture


def test_a_prompt_that_failed_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: Any) -> Any:
        raise step_failed("PromptWriter", 1, "first", AnswerError("no prompt in it"))

    options: dict[str, Any] = {"model": "demo", "attempts": 1, "limit": 1, "prompt_from": "writer"}
    call: Any = partial(uncanny.pairs.make, "scenes", inpainter="demo", out=tmp_path / "pairs", **options)
    with monkeypatch.context() as patched:
        patched.setattr(prompt_writer, "write_first", fails)
        (record,) = call().originals
    assert record.status == "failed"
    assert [each.agent for each in record.errors] == ["PromptWriter"]
    assert record.candidates[0].rejected.step == "prompt"
    (record,) = call().originals
    assert (record.status, record.candidates[0].rejected) == ("ok", None)


def test_a_mask_is_compared_with_objects_that_are_not_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def recording(region: Region, others: list[Region], *rest: Any, **more: Any) -> Any:
        seen.append((region.hint.name, [each.hint.name for each in others]))
        return region_mask(region, others, *rest, **more)

    monkeypatch.setattr("uncanny.eval.pairs.make.run.region_mask", recording)
    uncanny.pairs.make("scenes", inpainter="demo", model="demo", out=tmp_path / "pairs", attempts=1, limit=1)
    ((name, others),) = seen
    assert others
    assert name not in others


def test_outside_painted_is_measured_at_the_size_that_was_sent(tmp_path: Path) -> None:
    run = made(tmp_path, attempts=1, inpaint_side=64)  # two thirds of the picture
    assert run.originals[0].candidates[0].outside_painted == 0
    before, mask = picture(), np.zeros((72, 96), dtype=np.bool_)
    mask[:, :48] = True
    inputs = working(before, mask, 48)
    sent = Image.open(BytesIO(a2b_base64(inputs.picture.base64)))
    assert outside_painted(inputs, sent) == 0
    drawn = np.asarray(sent).copy()
    drawn[:18, 24:] ^= 255  # half of what is outside, and nothing of what is inside
    assert outside_painted(inputs, Image.fromarray(drawn)) == 0.5
    assert outside_painted(working(before, np.ones_like(mask), 48), sent) is None


def test_a_mask_of_another_size_costs_its_image_alone(tmp_path: Path) -> None:
    images = pictures(tmp_path / "pictures", 2)
    mask_file(tmp_path / "masks" / "picture-0.png", (2, 2, 9, 9), (20, 20))
    mask_file(tmp_path / "masks" / "picture-1.png", (20, 20, 50, 50))
    run = uncanny.pairs.make(
        images, inpainter="demo", out=tmp_path / "pairs", masks=tmp_path / "masks", attempts=1
    )
    bad, good = run.originals
    assert (bad.status, good.status) == ("failed", "ok")
    assert "20 × 20" in bad.errors[0].message


@pytest.mark.parametrize(("key", "found"), [("id", 1), ("image_id", 0), ("category_id", 1)])
def test_coco_keys_that_are_lists_are_no_keys(tmp_path: Path, key: str, found: int) -> None:
    document: dict[str, Any] = {
        "images": [{"id": 1, "file_name": "a.png"}, {"id": [1], "file_name": "b.png"}],
        "categories": [{"id": {}, "name": "cup"}],
        "annotations": [{"image_id": 1, "category_id": 1, "bbox": [1, 1, 5, 5], key: [2]}],
    }
    (tmp_path / "coco.json").write_text(json.dumps(document))
    if not found:
        with pytest.raises(UsageError, match="contains no masks"):
            GivenMasks(tmp_path / "coco.json")
        return
    regions = GivenMasks(tmp_path / "coco.json").regions(Path("a.png"), (20, 20), 9)
    assert [each.hint.name for each in regions] == ["the masked area"]


def test_a_folder_with_links_is_not_painted_into(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs" / "edited").symlink_to(elsewhere)
    with pytest.raises(UsageError, match="edited"):
        uncanny.pairs.make(
            pictures(tmp_path / "pictures"), inpainter="demo", out=tmp_path / "pairs", attempts=1
        )
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("folder", ["painted", "edited"])
def test_a_full_disk_ends_the_run_and_loses_no_painted_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    def full(path: Path, chunks: Any) -> None:
        if path.parent.name == folder:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_named(path, chunks)

    with monkeypatch.context() as patched:
        patched.setattr("uncanny.records.jsonl.write_named", full)
        run = made(tmp_path, attempts=1)
    assert run.summary.state == "stopped"
    assert run.made() == 0
    assert made(tmp_path, attempts=1).made() == 1
