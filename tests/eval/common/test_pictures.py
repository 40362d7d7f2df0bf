"""Pictures on pages: links that stay relative and inert, full sizes in the page, room that is kept to."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import uncanny
from uncanny.errors import UsageError
from uncanny.eval.common.pages.pictures import (
    THUMBNAIL_SIDE,
    Layer,
    Mark,
    PageViews,
    Shot,
    View,
    record_view,
    relative_link,
)
from uncanny.schema import Annotation


def picture(path: Path, size: tuple[int, int] = (800, 600)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.effect_noise(size, 40).convert("RGB").save(path, compress_level=1)
    return path


def entry(views: PageViews, number: int = 0) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(views.data)[number]
    return content


def size_of(uri: str) -> tuple[int, int]:
    with Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))) as image:
        return image.size


def test_a_link_leads_from_the_page_to_the_file(tmp_path: Path) -> None:
    file = picture(tmp_path / "in" / "a b#?%.png")
    views = PageViews(tmp_path / "runs" / "r" / "report.html")
    (shown,) = views.add([View("a", (Layer("image", Shot(file)),))])
    (layer,) = entry(views)["layers"]
    assert layer["src"] == "../../in/a%20b%23%3F%25.png"
    assert layer["copy"] is None
    assert size_of(shown.thumbs[0] or "") == (THUMBNAIL_SIDE, 240)
    assert views.image_sources == "data: 'self' file:"


NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=30)


@given(NAMES)
def test_no_name_makes_a_link_anything_but_a_path_below(name: str) -> None:
    link = relative_link(Path("/runs/report.html"), Path("/runs") / f"{name}.png")
    assert link is not None
    assert re.fullmatch(r"[A-Za-z0-9_.~%-]+", link)
    assert not link.startswith("/")
    assert unquote(link, errors="surrogateescape") == f"{name}.png"


def test_what_browsers_do_not_show_is_not_linked_but_in_the_page(tmp_path: Path) -> None:
    file = picture(tmp_path / "a.tiff")
    views = PageViews(tmp_path / "report.html")
    views.add([View("a", (Layer("image", Shot(file)),))])
    (layer,) = entry(views)["layers"]
    assert layer["src"] is None
    ((name, content),) = views.copies
    assert name == layer["copy"]
    assert size_of(json.loads(content)) == (800, 600)
    assert relative_link(tmp_path / "report.html", tmp_path / "a.html") is None


@pytest.mark.slow
def test_embedded_pictures_are_whole_and_need_no_file(tmp_path: Path) -> None:
    views = PageViews(tmp_path / "report.html", "embed")
    files = [picture(tmp_path / f"{n}.png") for n in range(5)]
    views.add([View(file.name, (Layer("image", Shot(file)),)) for file in files])
    assert views.image_sources == "data:"
    assert [entry(views, n)["layers"][0]["src"] for n in range(5)] == [None] * 5
    assert [size_of(json.loads(content)) for _, content in views.copies] == [(800, 600)] * 5


def test_without_more_room_the_page_says_how_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncanny.eval.common.pages.pictures.EMBEDDED_BYTES", 100_000)
    views = PageViews(tmp_path / "report.html", "embed")
    files = [picture(tmp_path / f"{n}.png", (400, 300)) for n in range(9)]
    views.add([View(file.name, (Layer("image", Shot(file)),)) for file in files])
    assert sum(len(content) for _, content in views.copies) <= 100_000
    assert len(views.copies) + views.not_embedded == 9
    assert 0 < views.not_embedded < 9


def test_a_file_that_is_gone_or_was_changed_is_neither_linked_nor_shown(tmp_path: Path) -> None:
    file = picture(tmp_path / "a.png")
    views = PageViews(tmp_path / "report.html", copies=10_000_000)
    shots = [Shot(tmp_path / "gone.png"), Shot(file, "0" * 64), Shot(file, "")]
    shown = views.add([View("a", (Layer("image", shot),)) for shot in shots])
    assert [each.thumbs for each in shown] == [(None,)] * 3
    assert [entry(views, n)["layers"][0]["src"] for n in range(3)] == [None] * 3
    assert not views.copies


def test_a_record_brings_its_anomalies_and_objects_with_their_boxes() -> None:
    anomaly = {"name": "n", "phenomenon": "p", "reasoning": "r", "severity": 40, "box": [1, 2, 3, 4]}
    record = Annotation.model_validate(
        {
            "image": "a.png",
            "sha256": None,
            "width": 9,
            "height": 8,
            "status": "ok",
            "model": "m",
            "prompts": "p",
            "anomalies": [anomaly, anomaly | {"severity": 5, "box": None}],
            "objects": [{"name": "cup", "description": "white", "box": [0, 0, 5, 5]}],
        }
    )
    view = record_view(record, Shot(Path("a.png")))
    assert view.size == (9, 8)
    assert view.marks == (
        Mark("n", None, 5, "p", "anomalies"),
        Mark("n", (1, 2, 3, 4), 40, "p", "anomalies"),
        Mark("cup", (0, 0, 5, 5), None, "white", "objects"),
    )
    assert view.hidden == ("objects",)


def looked_at(**changes: Any) -> dict[str, Any]:
    return {"number": 1, "box": [0, 0, 6, 4], "why": "finding", "objects": ["cup"], "scale": 2.04} | changes


def test_regions_and_findings_that_are_not_sure_are_hidden_at_first() -> None:
    anomaly = {"name": "n", "phenomenon": "p", "reasoning": "r", "severity": 40, "box": [1, 2, 3, 4]}
    fields: dict[str, Any] = {"image": "a.png", "sha256": None, "width": 9, "height": 8, "status": "ok"}
    fields |= {"model": "m", "prompts": "p", "anomalies": [anomaly]}
    tile = looked_at(number=2, why="tile", objects=[], scale=None)
    record = Annotation.model_validate(fields | {"regions": [looked_at(), tile]})
    view = record_view(record.model_copy(update={"anomalies": ()}), Shot(Path("a.png")), record.anomalies)
    assert view.marks == (
        Mark("n", (1, 2, 3, 4), 40, "p", "unsure"),
        Mark("1", (0, 0, 6, 4), None, "around a finding: cup, seen 2 times as large", "regions", dashed=True),
        Mark("2", (0, 0, 6, 4), None, "a part of the whole image", "regions", dashed=True),
    )
    assert view.hidden == ("unsure", "regions")
    for unreadable in (3, "x", [7], [looked_at(box=[4, 4, 1, 1])], [looked_at(why="<b>")], None):
        broken = Annotation.model_validate(fields | {"regions": unreadable})
        assert record_view(broken, Shot(Path("a.png"))).hidden == ()


def parts_of(views: PageViews, number: int) -> list[str | None]:
    name = entry(views, number).get("parts")
    uris: list[str | None] = json.loads(dict(views.copies)[name]) if name else []
    return uris


@pytest.mark.slow
def test_the_page_holds_parts_while_there_is_room_those_first_that_are_seen(tmp_path: Path) -> None:
    boxes = tuple((x, 0, x + 320, 240) for x in (0, 100, 200))

    def made(room: int) -> PageViews:
        views = PageViews(tmp_path / "report.html", copies=room)
        files = [picture(tmp_path / name) for name in ("a.png", "b.png")]
        layers = [(Layer("image", Shot(file)),) for file in files]
        views.add([View("x", each, size=(800, 600), parts=boxes, n_parts=2) for each in layers])
        return views

    views = made(10_000_000)
    every = [uri for number in (0, 1) for uri in parts_of(views, number)]
    assert [size_of(uri or "") for uri in every] == [(320, 240)] * 6
    assert [bool(entry(views, n)["layers"][0]["copy"]) for n in (0, 1)] == [True, True]
    room = 4 * max(len(uri or "") for uri in every) + 50
    views = made(room)
    kept = [[bool(uri) for uri in parts_of(views, number)] for number in (0, 1)]
    assert kept == [[True, True, False]] * 2
    assert sum(len(uri or "") for number in (0, 1) for uri in parts_of(views, number)) <= room
    assert [entry(views, n)["layers"][0]["copy"] for n in (0, 1)] == [None, None]
    views = made(10)
    assert [parts_of(views, number) for number in (0, 1)] == [[], []]


def test_parts_are_of_the_picture_that_was_judged_alone(tmp_path: Path) -> None:
    views = PageViews(tmp_path / "report.html", copies=10_000_000)
    file, box = picture(tmp_path / "a.png"), (0, 0, 320, 240)
    layers = [Layer("image", Shot(file, digest)) for digest in ("0" * 64, "", None)]
    views.add([View("x", (layer,), size=(800, 600), parts=(box,), n_parts=1) for layer in layers])
    views.add([View("x", (layers[2],), size=(801, 600), parts=(box,), n_parts=1)])
    views.add([View("x", (layers[2],), parts=(box,), n_parts=1)])
    assert [len(parts_of(views, number)) for number in range(5)] == [0, 0, 1, 0, 0]


def test_hostile_words_cannot_end_the_data(tmp_path: Path) -> None:
    views = PageViews(tmp_path / "report.html")
    views.add([View("</script><b>", (Layer("<i>", None),), (Mark("</script>", text="<!--"),))])
    assert not set(views.data) & set("<>&")
    assert entry(views)["title"] == "</script><b>"


def test_another_word_for_pictures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pictures is 'inline'"):
        PageViews(tmp_path / "a.html", "inline")  # type: ignore[arg-type]


def test_boxes_refer_to_the_file_as_seen_upright_where_no_size_is_given(tmp_path: Path) -> None:
    upright = Image.Exif()
    upright[0x0112] = 6  # a quarter turn
    Image.new("RGB", (800, 600)).save(tmp_path / "turned.jpg", exif=upright)
    files = [picture(tmp_path / "plain.png"), tmp_path / "turned.jpg", tmp_path / "gone.png"]
    views = PageViews(tmp_path / "report.html")
    views.add([View(file.name, (Layer("image", Shot(file)),)) for file in files])
    sizes = [(entry(views, n)["width"], entry(views, n)["height"]) for n in range(3)]
    assert sizes == [(800, 600), (600, 800), (None, None)]


def test_a_file_that_will_not_stay_goes_into_the_page(tmp_path: Path) -> None:
    views = PageViews(tmp_path / "report.html")
    views.add([View("a", (Layer("image", Shot(picture(tmp_path / "a.png")), passing=True),))])
    (layer,) = entry(views)["layers"]
    assert layer["src"] is None
    assert size_of(json.loads(dict(views.copies)[layer["copy"]])) == (800, 600)


def test_the_page_itself_says_what_had_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncanny.eval.common.pages.pictures.EMBEDDED_BYTES", 10)
    records = tmp_path / "r.jsonl"
    record = {"image": "a.png", "sha256": None, "width": 800, "height": 600, "status": "ok"}
    records.write_text(json.dumps(record | {"model": "m", "prompts": "p"}))
    picture(tmp_path / "a.png")
    page = uncanny.report(records, pictures="embed").read_text(encoding="utf-8")
    assert "1 picture has no full size in this page" in page


def test_groups_keep_their_order_where_one_has_no_mark(tmp_path: Path) -> None:
    """So that a run has the same colour on every picture of a page."""
    views = PageViews(tmp_path / "page.html")
    layer = Layer("image", Shot(tmp_path / "gone.png"))
    views.add([View("x", (layer,), (Mark("m", group="second"),), groups=("first", "second"))])
    assert '"groups":["first","second"]' in str(views.data)
