"""Q3 pictures: the same pixels every time, stored by what they are drawn from, readable on any ground."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageCms

from uncanny.errors import ImageError, UsageError
from uncanny.eval.mcq.data.items import Box, BoxChoice, Item, ItemSet, Option
from uncanny.eval.mcq.data.overlay import overlay_for, store_overlay
from uncanny.images.overlay import COLOURS, draw_boxes, drawing_digest

BOXES: dict[Option, Box] = {
    "A": (20, 30, 90, 80),
    "B": (110, 30, 200, 90),
    "C": (30, 110, 80, 170),
    "D": (120, 120, 230, 180),
}
WHITE = (255, 255, 255)


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    out = BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def rendered(data: bytes, boxes: Mapping[Option, Box] = BOXES) -> Image.Image:
    image = Image.open(BytesIO(draw_boxes(data, boxes)))
    image.load()
    assert image.format == "PNG"
    assert image.mode == "RGB"
    return image


def plain(size: tuple[int, int] = (256, 192), colour: str = "white") -> bytes:
    return encoded(Image.new("RGB", size, colour))


def places_of(image: Image.Image, colour: tuple[int, int, int]) -> Image.Image:
    """Gray, 255 wherever the picture has exactly this colour."""
    apart = ImageChops.difference(image, Image.new("RGB", image.size, colour))
    red, green, blue = apart.split()
    return ImageChops.lighter(ImageChops.lighter(red, green), blue).point([255] + [0] * 255)


def area(image: Image.Image, option: Option) -> tuple[int, int, int, int]:
    """The smallest box around everything of the letter's colour."""
    box = places_of(image, COLOURS[option]).getbbox()
    assert box is not None
    return box


def letter_of(option: Option) -> Image.Image:
    """Gray, 255 where the letter is solid white, as it is drawn in a small picture."""
    image = rendered(plain(colour="gray"), {option: (100, 90, 180, 150)})
    left, top, right, _ = area(image, option)
    # The badge stands on the line, and between the two lies one white edge of each.
    line = next(y for y in range(top, 90) if image.getpixel((right - 1, y)) == COLOURS[option])
    side = line - top - 2
    white = places_of(image, WHITE).crop((left, top, left + side, top + side))
    return white.crop(white.getbbox())


LETTERS = {option: letter_of(option) for option in BOXES}


def letters(image: Image.Image, option: Option) -> list[tuple[int, int]]:
    """Where exactly this letter is to be read, at the smallest size, within the area of its colour."""
    solid = LETTERS[option]
    white = places_of(image, WHITE)
    x0, y0, x1, y1 = area(image, option)
    return [
        (x, y)
        for y in range(y0, y1 - solid.height + 1)
        for x in range(x0, x1 - solid.width + 1)
        if white.crop((x, y, x + solid.width, y + solid.height)).tobytes() == solid.tobytes()
    ]


def test_the_order_of_the_boxes_does_not_count() -> None:
    data = draw_boxes(plain(), BOXES)
    assert draw_boxes(plain(), dict(reversed(BOXES.items()))) == data


def test_there_is_nothing_but_the_picture_in_the_file() -> None:
    image = Image.effect_noise((50, 40), 90).convert("RGB")
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    drawn = Image.open(BytesIO(draw_boxes(encoded(image, dpi=(72, 72), icc_profile=profile), {})))
    drawn.load()
    assert drawn.info == {}
    assert drawn.tobytes() == image.tobytes()


def test_what_lies_inside_a_box_stays_as_it_is() -> None:
    picture = Image.frombytes("RGB", (256, 192), bytes(value % 251 for value in range(256 * 192 * 3)))
    image = rendered(encoded(picture))
    for box in BOXES.values():
        whole = tuple(int(value) for value in box)
        assert image.crop(whole).tobytes() == picture.crop(whole).tobytes()  # type: ignore[arg-type]


@pytest.mark.parametrize("ground", ["white", "black", *(COLOURS[option] for option in BOXES)])
def test_a_line_stands_out_on_any_ground(ground: str | tuple[int, int, int]) -> None:
    image = rendered(encoded(Image.new("RGB", (256, 192), ground)))
    across = {image.getpixel((x, 55)) for x in range(14, 20)}
    assert {COLOURS["A"], WHITE, (0, 0, 0)} <= across


@pytest.mark.parametrize("side", [256, 768, 4096])
def test_lines_and_letters_grow_with_the_picture(side: int) -> None:
    scale = side / 256
    image = rendered(plain((side, side * 3 // 4)), {"A": (60 * scale, 60 * scale, 150 * scale, 120 * scale)})
    x0, y0, _, y1 = area(image, "A")
    line = (
        next(x for x in range(x0, image.width) if image.getpixel((x, y1 - 1 - y1 // 8)) != COLOURS["A"]) - x0
    )
    badge = y1 - y0 - (60 * scale + 2 * line)
    assert 0.005 <= line / side <= 0.009
    assert 0.03 <= badge / side <= 0.09


def test_every_letter_is_drawn_in_white_on_its_colour() -> None:
    image = rendered(plain(colour="gray"))
    for option in BOXES:
        assert len(letters(image, option)) == 1


def test_letters_differ_at_the_smallest_size() -> None:
    masks = []
    for letter in LETTERS.values():
        mask = Image.new("L", (16, 16))
        mask.paste(letter)
        masks.append(mask)
    for number, mask in enumerate(masks):
        for other in masks[number + 1 :]:
            assert ImageChops.difference(mask, other).histogram()[255] >= 8


@pytest.mark.parametrize(
    "box", [(0, 0, 40, 30), (216, 0, 256, 30), (0, 162, 40, 192), (216, 162, 256, 192), (0, 0, 256, 192)]
)
def test_at_the_border_everything_stays_inside(box: Box) -> None:
    image = rendered(plain(colour="gray"), {"D": box})
    x0, y0, x1, y1 = area(image, "D")
    assert len(letters(image, "D")) == 1
    # The badge touches its frame: together they are little more than the box.
    assert x1 - x0 <= min(256, box[2] - box[0] + 30)
    assert y1 - y0 <= min(192, box[3] - box[1] + 30)


def test_badges_of_equal_boxes_lie_side_by_side() -> None:
    same: Box = (60, 60, 160, 120)
    image = rendered(plain(colour="gray"), dict.fromkeys(BOXES, same))
    for option in BOXES:
        assert len(letters(image, option)) == 1


def test_later_lines_cover_earlier_ones() -> None:
    image = rendered(plain(), {"A": (60, 60, 160, 120), "B": (100, 40, 120, 150)})
    assert area(image, "B")[3] > 150
    crossing = [image.getpixel((x, 58)) for x in range(92, 99)]
    assert COLOURS["B"] in crossing


@given(size=st.tuples(st.integers(1, 60), st.integers(1, 60)), data=st.data())
def test_any_box_in_any_picture_can_be_drawn(size: tuple[int, int], data: st.DataObject) -> None:
    boxes: dict[Option, Box] = {}
    for option in BOXES:
        x = sorted(data.draw(st.tuples(*[st.floats(0, size[0], width=32)] * 2)))
        y = sorted(data.draw(st.tuples(*[st.floats(0, size[1], width=32)] * 2)))
        if x[0] < x[1] and y[0] < y[1]:
            boxes[option] = (x[0], y[0], x[1], y[1])
    assert rendered(plain(size), boxes).size == size


def test_it_is_upright_and_rgb_on_white() -> None:
    sideways = Image.new("L", (192, 256), 255)
    exif = Image.Exif()
    exif[0x0112] = 6
    assert draw_boxes(encoded(sideways, "TIFF", exif=exif), BOXES) == draw_boxes(plain(), BOXES)
    clear = Image.new("RGBA", (256, 192), (9, 9, 9, 0))
    assert draw_boxes(encoded(clear), BOXES) == draw_boxes(plain(), BOXES)


def test_no_boxes_leave_the_picture_alone() -> None:
    picture = Image.effect_noise((50, 40), 90).convert("RGB")
    assert rendered(encoded(picture), {}).tobytes() == picture.tobytes()


@pytest.mark.parametrize(
    "box",
    [
        (5, 5, 5, 9),
        (9, 5, 5, 9),
        (300, 5, 310, 9),
        (-9, 5, -2, 9),
        (float("nan"), 1, 5, 9),
        (1, 1, float("inf"), 9),
    ],
)
def test_a_box_that_cannot_be_drawn_is_an_error(box: Box) -> None:
    with pytest.raises(UsageError, match=r"box C .* has no area inside 256 × 192 pixels"):
        draw_boxes(plain(), {"C": box})


def test_a_file_that_is_no_picture_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"not a picture")
    with pytest.raises(ImageError, match=r"a\.png: not an image"):
        draw_boxes(tmp_path / "a.png", BOXES)


def test_a_stored_overlay_is_named_by_what_it_is_drawn_from_and_drawn_once(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "overlays"
    path = store_overlay(plain(), BOXES, folder)
    assert path.name == f"{drawing_digest(plain(), BOXES)}.png"
    assert path.read_bytes() == draw_boxes(plain(), BOXES)
    path.write_bytes(b"drawn elsewhere")
    assert store_overlay(plain(), dict(reversed(BOXES.items())), folder) == path
    assert path.read_bytes() == b"drawn elsewhere"
    names = {path, store_overlay(plain(colour="black"), BOXES, folder)}
    names.add(store_overlay(plain(), BOXES | {"A": (20, 30, 90, 81)}, folder))
    assert len(names) == len(list(folder.iterdir())) == 3


def test_a_drawing_has_the_same_name_on_every_machine() -> None:
    picture = b"the bytes of a file"
    assert drawing_digest(picture, BOXES)[:16] == "6931aedbbbba8f2e"
    whole, fractions = (
        drawing_digest(picture, {"A": (1, 2, 3, 4)}),
        drawing_digest(picture, {"A": (1.0, 2.0, 3.0, 4.0)}),
    )
    assert whole == fractions


@pytest.mark.skipif(os.name == "nt", reason="needs links")
def test_a_link_in_the_folder_is_no_stored_overlay(tmp_path: Path) -> None:
    folder = tmp_path / "overlays"
    path = store_overlay(plain(), BOXES, folder)
    drawn = path.read_bytes()
    (tmp_path / "private.png").write_bytes(plain(colour="red"))
    path.unlink()
    path.symlink_to(tmp_path / "private.png")
    assert store_overlay(plain(), BOXES, folder) == path
    assert not path.is_symlink()
    assert path.read_bytes() == drawn
    assert (tmp_path / "private.png").read_bytes() == plain(colour="red")


def test_an_items_own_overlay_is_used_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(plain())
    drawn = Item(id="a", image="a.png", split="art_dg", q3=BoxChoice(boxes=BOXES, answer="A"))
    stored = drawn.model_copy(update={"overlay": "mine.jpg"})
    items, folder = ItemSet((drawn, stored), tmp_path / "items.jsonl"), tmp_path / "overlays"
    assert overlay_for(stored, items, folder) == tmp_path / "mine.jpg"
    assert (
        overlay_for(stored, replace(items, root=tmp_path / "root"), folder) == tmp_path / "root" / "mine.jpg"
    )
    assert not folder.exists()
    path = overlay_for(drawn, items, folder)
    assert path.read_bytes() == draw_boxes(plain(), BOXES)
    assert path.parent == folder


def test_an_item_without_overlay_and_boxes_is_an_error(tmp_path: Path) -> None:
    item = Item(id="a7", image="a.png", split="art_dg", q3=BoxChoice(boxes={}, answer="A"))
    with pytest.raises(UsageError, match="'a7' has neither"):
        overlay_for(item, ItemSet((item,), tmp_path / "items.jsonl"), tmp_path)
