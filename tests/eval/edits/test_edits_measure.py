"""Measuring sets of edits: known figures, every kind of bad input, resuming, files and frames."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import orjson
import pytest
from PIL import Image

import uncanny
from tests.eval.edits.made_pairs import bad_set, known_cases, save, squares, write_pairs
from uncanny.edits import SetCutoffs, measure
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.common.pixels.masks import encode_rle
from uncanny.eval.edits.columns import COLUMNS
from uncanny.eval.edits.score import Perceptual


def test_known_cases(tmp_path: Path) -> None:
    edits = measure(known_cases(tmp_path))
    one, two, corner = edits
    assert (one.mse, one.post_edit_ratio, one.ssim) == pytest.approx((0.024414, 0.038147, 0.969516), abs=5e-7)
    assert one.mask_ratio == 1600 / 65536
    assert (one.components, one.clusters, one.largest_centroid_distance) == (1, 1, 0)
    assert (two.mse, two.post_edit_ratio, two.ssim) == pytest.approx((0.012207, 0.027466, 0.981860), abs=5e-7)
    assert (two.components, two.clusters, two.largest_centroid_distance) == (2, 1, 70)
    assert corner.post_edit_ratio == pytest.approx(0.009537, abs=5e-7)
    assert [each.shape for each in edits] == ["localized"] * 3
    assert [each.status for each in edits] == ["ok"] * 3
    assert two.unmeasured["mask_ratio"] == "no mask is given"
    assert edits["two"].bins["mse"] == "medium"
    assert (edits.cutoffs.clusters, edits.cutoffs.distance) == (1, 0)


def test_shapes_depend_on_the_set_or_on_cutoffs_from_another(tmp_path: Path) -> None:
    apart: dict[str, Any] = {"neighbours": 60}
    first = measure(known_cases(tmp_path), **apart)
    assert [each.clusters for each in first] == [1, 2, 1]
    assert [each.shape for each in first] == ["localized", "diffused", "localized"]
    given = json.loads(json.dumps(first.to_json()))
    alone = write_pairs(tmp_path / "x.jsonl", {"id": "two", "original": "black.png", "edited": "two.png"})
    assert measure(alone, **apart)["two"].shape == "localized", "nothing to compare with"
    again = measure(alone, **apart, cutoffs=given)["two"]
    assert again.shape == "diffused"
    assert again.bins == {name: each for name, each in first["two"].bins.items() if name in again.bins}
    wide = measure(alone, diffused_ratio=0.01)
    assert wide["two"].shape == "diffused"


def test_a_bad_pair_is_a_record_with_its_reason_and_costs_no_other(tmp_path: Path) -> None:
    edits = measure(bad_set(tmp_path))
    problems = {each.id: each.problem for each in edits if each.status == "failed"}
    assert set(problems) == {"sizes", "missing", "torn", "text", "folder"}
    assert "256 × 256" in str(problems["sizes"])
    assert "100 × 100; nothing is resized" in str(problems["sizes"])
    assert "does not exist" in str(problems["missing"])
    assert str(problems["torn"]).startswith("original: ")
    partial = {each.id: each.unmeasured["mask_ratio"] for each in edits if each.status == "partial"}
    assert set(partial) == {"mask size", "mask empty", "mask missing", "mask rle"}
    assert "100 × 100" in partial["mask size"]
    assert partial["mask empty"] == "the mask is empty"
    assert all(edits[name].mse == edits["good"].mse for name in partial), "the rest is measured"
    assert all(edits[name].mask_ratio is None for name in partial), "and nothing is 0 that is not known"
    assert all(edits["missing"].figure(name) is None for name in ("ssim", "mse", "post_edit_ratio"))
    assert "Failed: sizes: the original is of 256 × 256" in str(edits)
    assert edits.to_json()["statuses"] == {"ok": 3, "partial": 4, "failed": 5}


def test_all_black_edits_are_measured_and_typical_of_nothing(tmp_path: Path) -> None:
    edits = measure(bad_set(tmp_path))
    black, good, same = edits["black"], edits["good"], edits["same"]
    assert black.all_black
    assert black.mse is not None
    assert black.notes == ("the edited image is all black",)
    assert not good.all_black
    assert edits.spread("mse")["max"] == good.mse
    assert same.notes == ("the edited image is the same, pixel by pixel",)
    assert (same.ssim, same.mse, same.shape) == (1, 0, None)
    assert same.unmeasured["shape"] == "no part of the image changed enough"


def test_alpha_grey_sixteen_bits_and_turned_images_are_read_as_they_are_seen(tmp_path: Path) -> None:
    one = squares((100, 60, 40))
    save(tmp_path / "rgb.png", one)
    save(tmp_path / "alpha.png", np.dstack([np.zeros_like(one), 255 - one[..., 0]]))  # white shows through
    save(tmp_path / "grey.png", one[..., 0])
    save(tmp_path / "deep.png", one[..., 0].astype(np.uint16) * 257)
    exif = Image.Exif()
    exif[0x0112] = 6
    save(tmp_path / "turned.png", np.ascontiguousarray(np.rot90(one)), exif=exif)
    names = ("alpha", "grey", "deep", "turned")
    pairs = ({"id": name, "original": "rgb.png", "edited": f"{name}.png"} for name in names)
    edits = measure(write_pairs(tmp_path / "e.jsonl", *pairs))
    assert [each.mse for each in edits] == [0, 0, 0, 0], [each.notes for each in edits]
    notes = {each.id: " ".join(each.notes) for each in edits}
    assert "edited alpha:flattened-white" in notes["alpha"]
    assert "edited mode:L->RGB" in notes["grey"]
    assert "edited depth:16->8" in notes["deep"]
    assert "edited orientation:6" in notes["turned"]


def test_masks_of_all_kinds_and_several_as_one(tmp_path: Path) -> None:
    known_cases(tmp_path)
    mask = np.zeros((256, 256), dtype=np.bool_)
    mask[:64, :64] = True
    np.save(tmp_path / "mask.npy", mask)
    pair = {"original": "black.png", "edited": "one.png"}
    file = write_pairs(
        tmp_path / "e.jsonl",
        {"id": "npy", **pair, "mask": "mask.npy"},
        {"id": "rle", **pair, "mask": encode_rle(mask)},
        {"id": "both", **pair, "mask": ["mask.npy", "mask.png"]},
    )
    ratios = [each.mask_ratio for each in measure(file)]
    assert ratios == [64 * 64 / 65536, 64 * 64 / 65536, (64 * 64 + 1600) / 65536]


def test_the_area_outside_the_mask(tmp_path: Path) -> None:
    edits = measure(known_cases(tmp_path), preserved=True, published=True)
    one, two = edits["one"], edits["two"]
    assert (one.preserved_mse, one.preserved_mae, one.preserved_ssim) == (0, 0, 1)
    assert one.preserved_psnr is None
    assert one.unmeasured["preserved_psnr"] == "infinite: nothing changed outside the mask"
    assert two.preserved_mse is None
    assert two.unmeasured["preserved_mse"] == "no mask is given"
    assert "SAGI-D (published)" in str(edits)
    assert "for orientation only" in str(edits)


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_files_hold_the_contracts_columns_and_are_sets_again(suffix: str, tmp_path: Path) -> None:
    out = tmp_path / "results" / f"m{suffix}"
    out.parent.mkdir()
    edits = measure(known_cases(tmp_path), out=out, preserved=True)
    assert edits.columns[: len(COLUMNS)] == COLUMNS
    again = measure(out, preserved=True)
    assert list(again) == list(edits)
    assert [files.pair.method for files in again.files] == ["squares"] * 3
    assert not list(out.parent.glob(".*")), "what was kept while it ran is gone"
    if suffix == ".jsonl":
        record = orjson.loads(out.read_bytes().splitlines()[0])
        assert tuple(record)[: len(COLUMNS)] == COLUMNS
        assert (record["original"], record["mask"]) == ("../black.png", "../mask.png")


def test_data_frames_in_and_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    edits = measure(known_cases(tmp_path))
    frame = edits.to_pandas()
    assert list(frame["id"]) == ["one", "two", "corner"]
    assert list(frame.columns)[: len(COLUMNS)] == list(COLUMNS)
    monkeypatch.chdir(tmp_path)
    cells = {"id": [1, 2], "original": ["black.png"] * 2, "edited": ["one.png", "two.png"]}
    again = measure(pandas.DataFrame({**cells, "mask": ["mask.png", None]}))
    assert [each.id for each in again] == ["1", "2"]
    assert [each.mask_ratio for each in again] == [1600 / 65536, None]
    assert [each.mse for each in measure(frame)] == [each.mse for each in edits]


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """What was measured stands beside the output until that is there."""
    pairs, out = known_cases(tmp_path), tmp_path / "m.jsonl"

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(pairs, out=out, threads=1, on_record=stop)
    kept = tmp_path / ".m.jsonl.unfinished"
    lines = [orjson.loads(line) for line in kept.read_bytes().splitlines() if line]
    assert lines
    assert not out.exists()
    for line in lines:  # to see that it is used
        line["record"]["mse"] = 0.5
    kept.write_bytes(b"\n".join(map(orjson.dumps, lines)) + b'\n{"key": "cut o')
    edits = measure(pairs, out=out, threads=1)
    assert {each.id for each in edits if each.mse == 0.5} == {line["record"]["id"] for line in lines}
    assert not kept.exists()
    known = [pytest.approx(each, abs=5e-7) for each in (0.024414, 0.012207, 0.006104)]
    assert [each.mse for each in measure(pairs, out=out)] == known


def test_what_was_kept_with_other_parameters_is_not_used(tmp_path: Path) -> None:
    pairs, out = known_cases(tmp_path), tmp_path / "m.jsonl"
    seen: list[Any] = []

    def stop(record: object) -> None:
        seen.append(record)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(pairs, out=out, threads=1, on_record=stop)
    edits = measure(pairs, out=out, window=11)
    assert edits["one"].ssim != seen[0].ssim


def test_order_and_figures_do_not_depend_on_threads(tmp_path: Path) -> None:
    pairs = bad_set(tmp_path)
    single, many = measure(pairs, threads=1), measure(pairs, threads=8)
    assert list(single) == list(many)
    assert [each.id for each in many][:3] == ["good", "sizes", "missing"]


def test_the_bundled_scenes() -> None:
    edits = uncanny.edits.measure("scenes")
    assert len(edits) == 16
    assert edits.statuses == {"ok": 16, "partial": 0, "failed": 0}
    assert all(each.mask_ratio for each in edits)
    assert {each.shape for each in edits} == {"localized", "diffused", None}
    assert edits.cutoffs.bins.keys() >= {"mask_ratio", "ssim", "mse", "scene_diversity"}


class Constant:
    """A measure of one's own: a fixed value, or an error for a chosen image."""

    described: ClassVar[dict[str, str]] = {"package": "mine"}

    def distance(self, original: Any, edited: Any) -> float:  # noqa: ARG002
        if edited[60, 60, 0] == 255:
            raise RuntimeError("too small for me")
        return 0.25

    def likeness(self, before: str, after: str) -> float:
        return float("nan") if "two" in after else len(before) / len(after)


def test_measures_by_models_fill_their_columns_or_say_why_not(tmp_path: Path) -> None:
    models = Perceptual(lpips=Constant(), text_similarity=Constant())
    edits = measure(known_cases(tmp_path), preserved=True, perceptual=models)
    one, two = edits["one"], edits["two"]
    assert (one.lpips, one.preserved_lpips, one.text_similarity) == (0.25, 0.25, 4 / len("wall with one"))
    assert one.unmeasured["dreamsim"] == "not asked for"
    assert two.status == "partial"
    assert (two.lpips, two.text_similarity) == (None, None)
    assert two.unmeasured["lpips"] == "the model failed (RuntimeError: too small for me)"
    assert two.unmeasured["text_similarity"] == "the model gave no finite number"
    assert edits.to_json()["perceptual"]["lpips"] == {"package": "mine"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": 4},
        {"dilation": 0},
        {"difference_threshold": 2},
        {"difference_threshold": float("nan")},
        {"low_percentile": 80},
        {"least_object": -1},
        {"neighbours": "far"},
    ],
)
def test_constants_without_a_meaning_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"must be|above"):
        measure("scenes", **wrong)


@pytest.mark.parametrize(
    "wrong", [{"bins": {"ssim": [1]}}, {"bins": {"beauty": [0, 1]}}, {"bins": {"ssim": [2, 1]}}, {"a": 3}]
)
def test_cutoffs_that_are_none_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="ut-offs"):
        measure("scenes", cutoffs=wrong)


def test_given_cutoffs_stand_in_for_the_sets_own(tmp_path: Path) -> None:
    cutoffs = SetCutoffs.read({"bins": {"mse": [0.01, 0.02]}})
    edits = measure(known_cases(tmp_path), cutoffs=cutoffs)
    assert [each.bins["mse"] for each in edits] == ["large", "medium", "small"]
    assert edits.cutoffs.bins["ssim"].low < 1, "what is not given is the set's own"


def test_the_protocol_is_in_every_output_and_changes_the_figures(tmp_path: Path) -> None:
    speck = np.zeros((256, 256, 3), dtype=np.uint8)
    speck[9:12, 9:12] = speck[9:12, 200:203] = 255
    save(tmp_path / "black.png", np.zeros_like(speck))
    save(tmp_path / "white.png", np.full_like(speck, 255))
    save(tmp_path / "specks.png", speck)
    pairs = write_pairs(
        tmp_path / "pairs.jsonl",
        {"id": "a", "original": "black.png", "edited": "specks.png"},
        {"id": "b", "original": "white.png", "edited": "white.png"},
    )
    ours = measure(pairs)
    paper = measure(pairs, protocol="paper", out=tmp_path / "paper.jsonl")
    assert (ours["a"].components, ours["a"].shape, ours["a"].protocol) == (0, None, "uncanny")
    assert (paper["a"].components, paper["a"].shape, paper["a"].protocol) == (2, "diffused", "paper")
    assert ours["a"].ssim is not None
    assert paper["a"].ssim == pytest.approx((1 + ours["a"].ssim) / 2)
    assert paper["a"].bins["ssim"] == ours["a"].bins["ssim"]
    assert paper.cutoffs.components == 1
    written = orjson.loads((tmp_path / "paper.jsonl").read_bytes().splitlines()[0])
    assert written["protocol"] == "paper"
    content = paper.to_json()
    assert (content["parameters"]["protocol"], content["parameters"]["least_object"]) == ("paper", 0)
    assert content["cutoffs"]["protocol"] == "paper"
    page = paper.report(tmp_path / "paper.html").read_text()
    assert "protocol <code>paper</code>" in page
    release = measure(tmp_path / "paper.jsonl", protocol="release")
    assert [each.protocol for each in release] == ["release"] * 2


def test_cutoffs_of_another_protocol_are_refused(tmp_path: Path) -> None:
    pairs = known_cases(tmp_path)
    theirs = measure(pairs, protocol="release").to_json()
    assert measure(pairs, protocol="release", cutoffs=theirs).to_json()["cutoffs"] == theirs["cutoffs"]
    with pytest.raises(UsageError, match="for the protocol release, but these edits used uncanny"):
        measure(pairs, cutoffs=theirs)
    with pytest.raises(UsageError, match=r"protocol.* is 'mine'"):
        SetCutoffs.read({"bins": {}, "protocol": "mine"})
    with pytest.raises(UsageError, match=r"protocol.* must be 'uncanny', 'paper' or 'release', not 'mine'"):
        measure(pairs, protocol="mine")  # type: ignore[call-overload]


def test_an_output_of_another_format_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must end in one of"):
        measure("scenes", out=tmp_path / "m.xlsx")


def test_invalid_records_are_named_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text(
        '{"id": "a", "original": "x.png"}\nnonsense\n{"id": "a", "original": "x", "edited": "y"}\n'
    )
    with pytest.raises(ItemsError) as caught:
        measure(file)
    wrong = [(problem.line, problem.field) for problem in caught.value.problems]
    assert wrong == [(1, "edited"), (2, None), (3, "id")]


def test_a_pipe_for_a_mask_keeps_nobody_waiting(tmp_path: Path) -> None:
    save(tmp_path / "a.png", squares())
    os.mkfifo(tmp_path / "mask.png")
    os.mkfifo(tmp_path / "mask.npy")
    pairs = write_pairs(
        tmp_path / "edits.jsonl",
        *(
            {"id": name, "original": "a.png", "edited": "a.png", "mask": name}
            for name in ("mask.png", "mask.npy")
        ),
    )
    for edit in uncanny.edits.measure(pairs):
        assert (edit.status, edit.mask_ratio) == ("partial", None)
        assert "a pipe, socket or device" in edit.unmeasured["mask_ratio"]


def test_names_and_cells_that_are_no_text_are_measured_and_written(tmp_path: Path) -> None:
    for side in ("original", "edited"):
        save(tmp_path / side / "a.png", squares())
        try:
            (tmp_path / side / "a.png").rename(os.fsdecode(os.fsencode(tmp_path / side) + b"/\xff.png"))
        except OSError:
            pytest.skip("the file system takes no such names")
    edits = uncanny.edits.measure(tmp_path, out=tmp_path / "edits.jsonl")
    assert [edit.status for edit in edits] == ["ok"]
    assert "\\\\xff" in (tmp_path / "edits.jsonl").read_text()

    save(tmp_path / "a.png", squares())
    half = '"{""size"":[256,256],""counts"":""\\ud800""}"'
    (tmp_path / "pairs.csv").write_text(f"id,original,edited,mask\n1,a.png,a.png,{half}\n")
    (edit,) = uncanny.edits.measure(tmp_path / "pairs.csv", out=tmp_path / "cells.jsonl")
    assert edit.mask_ratio is None
    assert (tmp_path / "cells.jsonl").is_file()
