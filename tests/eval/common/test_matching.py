"""Images of two files that name them differently: paired by clear rules, or refused."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from uncanny.errors import UsageError
from uncanny.eval.common.matching import pair_images

Images = list[str | tuple[str, str]]


@dataclass(frozen=True)
class Image:
    image: str
    sha256: str | None = None


def images(names: Images) -> list[Image]:
    """Images by name, some with a digest."""
    return [Image(name) if isinstance(name, str) else Image(*name) for name in names]


def paired(predictions: Images, truth: Images) -> dict[str, str]:
    mine, theirs = images(predictions), images(truth)
    pairing = pair_images(mine, theirs)
    assert pairing.by.total() + len(pairing.surplus) == len(mine)
    return {
        image.image: mine[place].image
        for image, place in zip(theirs, pairing.predicted, strict=True)
        if place is not None
    }


@pytest.mark.parametrize(
    ("prediction", "true"),
    [
        ("cat.png", "cat.png"),
        ("../../photos/cat.png", "cat.png"),
        ("cat.png", "/data/set/photos/cat.png"),
        ("../photos/cat.png", "photos/cat.png"),
        ("photos\\cat.png", "./photos/cat.png"),
        ("../photos/1258408636611432498.png", "1258408636611432498"),
        ("a/cat.PNG", "cat.webp"),
        ("cafe\u0301.png", "caf\u00e9.png"),
    ],
)
def test_one_image_under_two_names(prediction: str, true: str) -> None:
    assert paired([prediction, "other.png"], [true, "third.png"]) == {true: prediction}


def test_the_end_of_a_path_is_whole_steps() -> None:
    with pytest.raises(UsageError, match=r"'bobcat\.png' here, 'cat\.png' there"):
        paired(["bobcat.png"], ["cat.png"])
    with pytest.raises(UsageError, match="no image"):
        paired(["v1.5"], ["v1", "v1.txt"])


def test_the_same_name_goes_before_the_same_end() -> None:
    assert paired(["cat.png", "a/cat.png"], ["cat.png"]) == {"cat.png": "cat.png"}
    assert paired(["a/cat.png", "b/cat.png"], ["b/cat.png", "a/cat.png"]) == {
        "a/cat.png": "a/cat.png",
        "b/cat.png": "b/cat.png",
    }


def test_bytes_tell_what_names_do_not() -> None:
    assert paired([("a/1.png", "f0"), ("b/1.png", "f1")], [("1.png", "f1")]) == {"1.png": "b/1.png"}
    assert paired([("x.png", "f0"), "y.png"], [("cat.png", "f0"), "y.png"])["cat.png"] == "x.png"


def test_other_bytes_are_another_image() -> None:
    assert paired([("cat.png", "f0"), "dog.png"], [("cat.png", "f1"), "dog.png"]) == {"dog.png": "dog.png"}


def test_copies_are_told_apart_by_their_names() -> None:
    assert paired([("../p/cat.png", "f0"), ("../p/copy.png", "f0")], [("cat.png", "f0")]) == {
        "cat.png": "../p/cat.png"
    }


@pytest.mark.parametrize(
    ("predictions", "truth"),
    [
        (["a/cat.png", "b/cat.png"], ["cat.png"]),
        (["cat.png"], ["real/cat.png", "generated/cat.png"]),
        (["cat.png", "cat.jpg"], ["cat"]),
    ],
)
def test_what_is_not_clear_is_refused(predictions: list[str], truth: list[str]) -> None:
    with pytest.raises(UsageError) as error:
        paired([*predictions], [*truth])
    assert all(repr(name) in str(error.value) for name in [*predictions, *truth])


def test_the_file_name_alone_where_nothing_else_pairs_anything() -> None:
    assert paired(["out/cat.png", "out/x.png"], ["photos/cat.jpg", "photos/y.png"]) == {
        "photos/cat.jpg": "out/cat.png"
    }
    assert paired(["out/cat.png", "dog.png"], ["photos/cat.png", "dog.png"]) == {"dog.png": "dog.png"}
    with pytest.raises(UsageError, match="not clear"):
        paired(["out/cat.png"], ["real/cat.png", "fake/cat.png"])


def test_what_only_one_file_has() -> None:
    pairing = pair_images(images(["a.png", "b.png", "c.png"]), images(["z.png", "b.png"]))
    assert (pairing.predicted, pairing.surplus, dict(pairing.by)) == ((None, 1), (0, 2), {"name": 1})


def test_many_images_take_no_time() -> None:
    names = [f"folder/{index:05d}.png" for index in range(20_000)]
    pairing = pair_images([Image(f"../../{name}") for name in names], [Image(name) for name in names[::-1]])
    assert pairing.by == {"path": 20_000}
