"""Boxes as models give them, each in the form it was trained on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uncanny.answers.boxes import (
    BOX_FORMATS,
    BoxFormat,
    BoxFormatName,
    GivenBox,
    box_format,
    given_box,
    overlap,
    pixels,
)
from uncanny.schema import Box

WIDE = (1600, 800)


def read(
    value: object, form: BoxFormatName, *, key: str | None = None, sent: tuple[int, int] = WIDE
) -> Box | None:
    box = given_box(value, BOX_FORMATS[form].key if key is None else key)
    return None if box is None else pixels(box, BOX_FORMATS[form], sent=sent, original=WIDE)


@pytest.mark.parametrize(
    ("model", "form"),
    [
        ("openai/gpt-4o", "xyxy-1000"),
        ("openai/gpt-5.4-mini", "pixels"),
        ("openai/o3", "xyxy-1000"),
        ("anthropic/claude-sonnet-5-5", "pixels"),
        ("openai-compatible/google/gemini-3-flash", "yxyx-1000"),
        ("vllm/Qwen/Qwen3-VL-8B-Instruct", "xyxy-1000"),
        ("vllm/Qwen/Qwen2-VL-7B-Instruct", "xyxy-1000"),
        ("vllm/Qwen/Qwen2.5-VL-7B-Instruct", "pixels"),
        ("vllm/OpenGVLab/InternVL3-8B", "xyxy-1000"),
        ("vllm/zai-org/GLM-4.5V", "xyxy-1000"),
        ("vllm/deepseek-ai/deepseek-vl2-small", "xyxy-999"),
        ("vllm/moonshotai/Kimi-VL-A3B", "xyxy-1"),
        ("demo", "xyxy-1000"),
        ("mine/some-model", "xyxy-1000"),
    ],
)
def test_the_form_is_known_by_the_model_s_name(model: str, form: BoxFormatName) -> None:
    assert box_format(model).name == form


@pytest.mark.parametrize(
    ("form", "numbers"),
    [
        ("xyxy-1000", [100, 250, 500, 1000]),
        ("yxyx-1000", [250, 100, 1000, 500]),
        ("xyxy-999", [99.9, 249.75, 499.5, 999]),
        ("xyxy-1", [0.1, 0.25, 0.5, 1]),
        ("pixels", [160, 200, 800, 800]),
    ],
)
def test_each_form_gives_the_same_pixels(form: BoxFormatName, numbers: list[float]) -> None:
    assert read(numbers, form) == (160, 200, 800, 800)


def test_pixels_are_those_of_the_image_as_sent() -> None:
    assert read([80, 100, 400, 400], "pixels", sent=(800, 400)) == (160, 200, 800, 800)


@pytest.mark.parametrize(
    "value",
    [
        [100, 250, 500, 1000],
        [100.0, 250.0, 500.0, 1000.0],
        ["100", "250", " 500", "1000"],
        [[100, 250], [500, 1000]],
        [[100, 250, 500, 1000]],
        "[100, 250, 500, 1000]",
        "<box>(100,250),(500,1000)</box>",
        "<|box_start|>(100,250),(500,1000)<|box_end|>",
        {"x0": 100, "y0": 250, "x1": 500, "y1": 1000},
        {"x1": 100, "y1": 250, "x2": 500, "y2": 1000},
        {"xmin": 100, "ymin": 250, "xmax": 500, "ymax": 1000},
        {"Left": 100, "Top": 250, "Right": 500, "Bottom": 1000},
        {"x": 100, "y": 250, "width": 400, "height": 750},
        {"x": "100", "y": "250", "w": "400", "h": "750"},
    ],
)
def test_four_numbers_are_found_however_they_are_written(value: object) -> None:
    assert read(value, "xyxy-1000") == (160, 200, 800, 800)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "",
        "none",
        [1, 2, 3],
        [1, 2, 3, 4, 5],
        [[1, 2, 3, 4], [5, 6, 7, 8]],
        [1, 2, 3, None],
        [True, 0, 5, 5],
        [float("nan"), 0, 5, 5],
        [float("inf"), 0, 5, 5],
        [500, 250, 100, 1000],
        [100, 250, 100, 1000],
        [100, 250, 500, 1100],
        [-30, 250, 500, 900],
        {"x0": 1, "y0": 2},
        "1" * 5000,
        7,
    ],
)
def test_what_cannot_be_a_box_is_none(value: object) -> None:
    assert read(value, "xyxy-1000") is None


def test_a_little_beyond_the_picture_is_clipped() -> None:
    assert read([-15, 0, 1015, 1020], "xyxy-1000") == (0, 0, 1600, 800)
    assert read([-15, 0, 1021, 1000], "xyxy-1000") is None


def test_the_key_goes_before_the_form_where_it_says_the_order() -> None:
    assert read([250, 100, 1000, 500], "xyxy-1000", key="box_2d") == (160, 200, 800, 800)
    assert read([100, 250, 500, 1000], "yxyx-1000", key="bbox_2d") == (160, 200, 800, 800)
    assert read([250, 100, 1000, 500], "yxyx-1000", key="box") == (160, 200, 800, 800)


def test_named_corners_are_what_they_are_called() -> None:
    assert read({"x0": 100, "y0": 250, "x1": 500, "y1": 1000}, "yxyx-1000") == (160, 200, 800, 800)


def test_shares_are_read_where_thousandths_were_asked_for() -> None:
    assert read([0.1, 0.25, 0.5, 1.0], "xyxy-1000") == (160, 200, 800, 800)
    assert read([0, 0, 1, 1], "xyxy-1000") == (0, 0, 2, 1)


def test_overlap_is_intersection_over_union() -> None:
    assert overlap((0, 0, 10, 10), (0, 0, 10, 10)) == 1
    assert overlap((0, 0, 10, 10), (10, 0, 20, 10)) == 0
    assert overlap((0, 0, 10, 10), (5, 0, 15, 10)) == pytest.approx(1 / 3)


sizes = st.tuples(st.integers(1, 5000), st.integers(1, 5000))
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=12,
)


@given(anything, st.sampled_from(list(BOX_FORMATS.values())), sizes, sizes)
def test_whatever_stands_there_is_a_box_within_the_picture_or_none(
    value: object, form: BoxFormat, sent: tuple[int, int], original: tuple[int, int]
) -> None:
    box = given_box(value, form.key)
    if box is None:
        return
    found = pixels(box, form, sent=sent, original=original)
    if found is not None:
        assert 0 <= found[0] < found[2] <= original[0]
        assert 0 <= found[1] < found[3] <= original[1]


@given(st.data(), st.sampled_from(list(BOX_FORMATS.values())), sizes, sizes)
@settings(max_examples=200)
def test_a_box_comes_back_from_every_form(
    data: st.DataObject, form: BoxFormat, sent: tuple[int, int], original: tuple[int, int]
) -> None:
    width, height = original
    x0, y0 = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    x1, y1 = data.draw(st.integers(x0 + 1, width)), data.draw(st.integers(y0 + 1, height))
    across, down = sent if form.side is None else (form.side, form.side)
    numbers = [x0 / width * across, y0 / height * down, x1 / width * across, y1 / height * down]
    if form.y_first:
        numbers = [numbers[1], numbers[0], numbers[3], numbers[2]]
    if form.side not in (None, 1) and max(numbers) <= 1:
        return  # smaller than a thousandth: read as shares, and nothing anybody could mean
    box = GivenBox((numbers[0], numbers[1], numbers[2], numbers[3]), form.key)
    assert pixels(box, form, sent=sent, original=original) == (x0, y0, x1, y1)
