"""Truth from a file: paired with the run's images by their names, refused whole where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from uncanny.demo.scenes import scenes
from uncanny.errors import UsageError
from uncanny.eval.detect.data import SourceTruth, find_truth
from uncanny.runs.inputs import ImageFile

GOOD = '{"image": "a.png", "source": "real"}'


def files(*names: str) -> list[ImageFile]:
    return [ImageFile(Path(name), f"../{name}") for name in names]


def written(folder: Path, *lines: str) -> str:
    path = folder / "truth.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def test_a_file_is_paired_by_the_ends_of_names(tmp_path: Path) -> None:
    name = written(
        tmp_path,
        '{"image": "real/a.png", "source": "real"}',
        '{"image": "fake/a.png", "source": "generated"}',
        '{"image": "b", "source": null}',
        '{"image": "c.png", "source": "generated"}',
    )
    found = find_truth(name, files("in/fake/a.png", "in/real/a.png", "in/b.png"), [])
    sources = {"../in/fake/a.png": "generated", "../in/real/a.png": "real"}
    assert found == SourceTruth(sources, name, has_anomalies=False, unused=1)  # type: ignore[arg-type]


def test_a_file_goes_before_folders(tmp_path: Path) -> None:
    name = written(tmp_path, '{"image": "a.png", "source": "generated"}')
    found = find_truth(name, files("real/a.png"), [Path("real")])
    assert found is not None
    assert dict(found.sources) == {"../real/a.png": "generated"}


def test_true_anomalies_are_noticed(tmp_path: Path) -> None:
    name = written(tmp_path, '{"image": "a.png", "source": "real", "anomalies": []}')
    found = find_truth(name, files("a.png"), [])
    assert found is not None
    assert found.has_anomalies


def test_without_a_file_folders_count_and_where_they_say_nothing_there_is_no_truth() -> None:
    found = find_truth(None, files("set/real/a.png", "set/b.png"), [Path("set")])
    assert found == SourceTruth({"../set/real/a.png": "real"}, "folders")
    assert find_truth(None, files("set/b.png"), [Path("set")]) is None


def test_the_bundled_scenes_by_their_word() -> None:
    found = find_truth("scenes", files(*(scene.image for scene in scenes())), [])
    assert found is not None
    assert (len(found.sources), found.unused, found.has_anomalies) == (34, 0, True)
    anomalous = {f"../{scene.image}" for scene in scenes() if scene.role == "anomalous"}
    assert {image for image, source in found.sources.items() if source == "generated"} == anomalous


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([GOOD, '{"image": "b.png", "source": "fake"}'], ["line 2", "'fake'", "generated or real"]),
        (['{"image": "a.png"}'], ["source", "missing"]),
        ([GOOD, '{"source": "real"}'], ["line 2", "image"]),
        ([GOOD, GOOD], ["line 2", "was there before", "a.png"]),
        ([GOOD, "{"], ["line 2", "not valid JSON"]),
        (['{"image": "other.png", "source": "real"}'], ["other.png", "../in/a.png"]),
        ([""], ["is empty"]),
    ],
)
def test_a_wrong_file_is_refused_and_says_why(lines: list[str], words: list[str], tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        find_truth(written(tmp_path, *lines), files("in/a.png"), [])
    assert all(word in str(refused.value) for word in words), str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        find_truth(str(tmp_path / "nowhere.jsonl"), files("a.png"), [])
