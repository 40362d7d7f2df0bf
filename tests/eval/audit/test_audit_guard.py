"""Annotations that were not made alike are not compared, unless that is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.eval.audit.annotation_sets import POLICY, record, run_folder, written
from uncanny.errors import UsageError
from uncanny.eval.audit.run import audit
from uncanny.eval.common.alike import Mismatch

Places = dict[str, Path]


def refused(places: Places) -> str:
    with pytest.raises(UsageError) as error:
        audit(places, resamples=0)
    return str(error.value)


def mixed(places: Places) -> tuple[Mismatch, ...]:
    return audit(places, resamples=0, allow_mixed=True).leaderboard.mixed


def files(folder: Path, **records: list[dict[str, Any]]) -> Places:
    return {name: written(folder / f"{name}.jsonl", own) for name, own in records.items()}


def runs(folder: Path, **manifests: dict[str, Any]) -> Places:
    return {
        name: run_folder(folder / name, [record("a.png")], **manifest) for name, manifest in manifests.items()
    }


def test_alike(tmp_path: Path) -> None:
    places = files(tmp_path, a=[record("a.png")], b=[record("b.png")])
    leaderboard = audit(places, resamples=0).leaderboard
    assert leaderboard.mixed == ()
    assert any("not known for a, b" in notice for notice in leaderboard.notices)
    leaderboard = audit(runs(tmp_path, c={}, d={}), resamples=0).leaderboard
    assert (leaderboard.mixed, leaderboard.notices) == ((), ())


def test_other_models_and_prompts(tmp_path: Path) -> None:
    places = files(
        tmp_path,
        a=[record("a.png")],
        b=[record("b.png", model="vllm/other")],
        c=[record("c.png", prompts="annotate@ffff")],
    )
    message = refused(places)
    assert "models: a, c: openai/any; b: vllm/other" in message
    assert "prompts: a, b: annotate@0123456789ab; c: annotate@ffff" in message
    assert "`allow_mixed=True`" in message
    assert [(one.aspect, one.what) for one in mixed(places)] == [("model", "models"), ("prompts", "prompts")]
    result = audit(places, resamples=0, allow_mixed=True)
    assert result.allow_mixed


def test_two_models_within_one_generator(tmp_path: Path) -> None:
    places = files(tmp_path, a=[record("a.png"), record("b.png", model="vllm/other")])
    assert "models: a: openai/any and vllm/other" in refused(places)


def test_a_fallback_is_another_model(tmp_path: Path) -> None:
    helped = record("b.png", models={"openai/any": 40, "vllm/other": 12})
    places = files(tmp_path, a=[record("a.png")], b=[record("a.png"), helped])
    assert "a: openai/any; b: openai/any and vllm/other" in refused(places)


def test_roles_with_models_of_their_own_are_one_way_of_annotating(tmp_path: Path) -> None:
    roles = {"integrator": "vllm/other"}
    helped = record("b.png", models={"openai/any": 40, "vllm/other": 12})
    places = {
        "a": run_folder(tmp_path / "a", [record("a.png"), helped], roles=roles),
        "b": run_folder(tmp_path / "b", [helped], roles=roles),
    }
    assert audit(places, resamples=0).leaderboard.mixed == ()
    places["c"] = run_folder(tmp_path / "c", [record("a.png")])
    message = refused(places)
    assert "models: a, b: openai/any + vllm/other; c: openai/any" in message
    assert "setting role integrator: a, b: vllm/other; c: not set" in message


def test_other_pixels_and_settings(tmp_path: Path) -> None:
    smaller = {"pixels": {"policy": POLICY | {"max_side": 512}}}
    fewer = {"plan": {"repeats": 3, "max_objects": 4}}
    message = refused(runs(tmp_path, a={}, b=smaller, c=fewer))
    assert "pixel policy max_side: a, c: none; b: 512" in message
    assert "setting max_objects: a, b: 12; c: 4" in message
    assert "jpeg_quality" not in message


def pixels(*changes: str) -> dict[str, Any]:
    return {"format": "PNG", "bytes": 10, "changes": changes}


def test_without_runs_the_records_say_what_was_done_to_pixels(tmp_path: Path) -> None:
    whole = record("a.png", pixels=pixels("convert:BMP->PNG"))
    scaled = record("a.png", pixels=pixels("downscale:2000x2000->512x512"))
    assert mixed(files(tmp_path, a=[whole], b=[record("b.png", pixels=pixels())])) == ()
    assert "changes to pixels: a: none; b: downscale" in refused(files(tmp_path, a=[whole], b=[scaled]))


def test_what_is_not_known_is_not_compared(tmp_path: Path) -> None:
    places = files(tmp_path, a=[record("a.png")]) | runs(tmp_path, b={})
    leaderboard = audit(places, resamples=0).leaderboard
    assert leaderboard.mixed == ()
    assert any("not known for a:" in notice for notice in leaderboard.notices)


def test_annotations_that_do_not_count_need_not_be_alike(tmp_path: Path) -> None:
    failed = record("b.png", status="failed", model="vllm/other")
    assert mixed(files(tmp_path, a=[record("a.png")], b=[record("a.png"), failed])) == ()


def test_other_snapshots_of_the_same_model(tmp_path: Path) -> None:
    old, new = ({"served_as": {"openai/any": [name]}} for name in ("any-2026-01-01", "any-2026-05-05"))
    places = runs(tmp_path, a=old, b=new, c=new)
    assert "version of openai/any: a: any-2026-01-01; b, c: any-2026-05-05" in refused(places)
    assert [(one.aspect, one.what) for one in mixed(places)] == [("model", "version of openai/any")]


def test_two_snapshots_within_one_generator(tmp_path: Path) -> None:
    both = {"served_as": {"openai/any": ["any-2026-01-01", "any-2026-05-05"]}}
    assert "version of openai/any: a: any-2026-01-01 and any-2026-05-05" in refused(runs(tmp_path, a=both))


@pytest.mark.parametrize(
    "unknown",
    [{"served_as": {}}, {"served_as": {"openai/any": ["any-2026-01-01"]}, "served_unnamed": ["openai/any"]}],
)
def test_snapshots_that_are_not_known_are_a_notice(tmp_path: Path, unknown: dict[str, Any]) -> None:
    leaderboard = audit(runs(tmp_path, a={}, b=unknown), resamples=0).leaderboard
    assert leaderboard.mixed == ()
    (notice,) = leaderboard.notices
    assert notice.startswith("The version of the model is not known for b:")


def test_snapshots_of_models_that_took_no_part_do_not_count(tmp_path: Path) -> None:
    more = {"served_as": {"openai/any": ["any-2026-01-01"], "vllm/other": ["one", "two"]}}
    assert mixed(runs(tmp_path, a={}, b=more)) == ()


def contents(folder: Path, name: str, images: range, severity: int) -> Path:
    anomalies = [{"name": "x", "phenomenon": "y", "reasoning": "z", "severity": severity}]
    lines = [
        {
            **{"image": f"{name}{number}.png", "sha256": f"{number:064x}", "status": "ok", "model": name},
            **{"width": 4, "height": 4, "prompts": "p", "anomalies": anomalies, "objects": []},
        }
        for number in images
    ]
    file = folder / f"{name}.jsonl"
    file.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return file


def test_generators_of_the_same_images_are_named(tmp_path: Path) -> None:
    files = {
        "a": contents(tmp_path, "a", range(12), 10),
        "b": contents(tmp_path, "b", range(12), 90),
        "c": contents(tmp_path, "c", range(11, 23), 50),
        "d": contents(tmp_path, "d", range(50, 62), 50),
    }
    result = audit(files, resamples=0, allow_mixed=True)
    same = [each for each in result.leaderboard.notices if "what generated them" in each]
    assert len(same) == 3
    assert same[0].startswith("a and b are the same 12 images: ")
    assert "`uncanny compare`" in same[0]
    assert [each[:30] for each in same[1:]] == [
        "a and c have 1 image in common",
        "b and c have 1 image in common",
    ]
    earlier = tmp_path / "before"
    earlier.mkdir()
    again = contents(earlier, "a", range(12), 10)
    released = audit({"a": files["a"]}, before={"a": again}, resamples=0, allow_mixed=True)
    assert released.leaderboard.notices[0].startswith("a and a, before are the same 12 images: ")
    many = {f"{number}": contents(tmp_path, f"{number}", range(3), 10) for number in range(5)}
    notices = audit(many, resamples=0, allow_mixed=True).leaderboard.notices
    assert len([each for each in notices if "the same 3 images" in each]) == 5
    assert "5 more pairs share images." in notices
