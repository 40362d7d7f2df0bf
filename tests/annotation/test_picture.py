"""A record in a notebook: its picture with numbered boxes and its findings, and nothing that runs."""

from __future__ import annotations

import copy
import pickle
import shutil
from io import BytesIO
from pathlib import Path
from typing import Any

import PIL.Image
import PIL.ImageShow
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import uncanny
from uncanny.demo.scenes import scenes
from uncanny.errors import UsageError
from uncanny.images.overlay import NUMBERED

TABLE = next(scene.image_path for scene in scenes() if "three-legs" in scene.image_path.name)
HOSTILE = "<img src=x onerror=alert(1)></li><script>alert(2)</script>\x1b[31m\u202e"


@pytest.fixture
def run(tmp_path: Path) -> uncanny.AnnotateRun:
    (tmp_path / "in").mkdir()
    shutil.copy(TABLE, tmp_path / "in")
    return uncanny.annotate(tmp_path / "in", model="demo", out=tmp_path / "run")


def red(picture: PIL.Image.Image) -> set[tuple[int, int]]:
    return {
        (x, y)
        for x in range(picture.width)
        for y in range(picture.height)
        if picture.getpixel((x, y)) == NUMBERED
    }


def test_boxes_of_all_findings_are_drawn_where_they_are(run: uncanny.AnnotateRun) -> None:
    record = run.annotations[0]
    picture = record.picture()
    assert picture.mode == "RGB"
    assert record.width is not None
    scale = picture.width / record.width
    marked = red(picture)
    assert len(record.anomalies) == 2
    for anomaly in record.anomalies:
        assert anomaly.box is not None
        x0, y0, x1, y1 = (round(each * scale) for each in anomaly.box)
        # A line lies around the box, or within where the picture ends; the middle is free.
        assert any(abs(x - x0) < 8 and y0 < y < y1 for x, y in marked)
        assert any(abs(y - y1) < 8 and x0 < x < x1 for x, y in marked)
        assert ((x0 + x1) // 2, (y0 + y1) // 2) not in marked


def test_a_finding_is_shown_by_the_part_around_it(run: uncanny.AnnotateRun) -> None:
    record = run.annotations[0]
    leg = record.anomalies[0].picture()
    whole = record.picture()
    assert leg.size != whole.size
    assert red(leg)
    html = record.anomalies[0]._repr_html_()
    assert '<li value="1"><b>Lamp hangs from nothing</b> (realism 8 of 100, contact, 95 % sure)' in html
    assert "Table stands" not in html
    without_box = record.anomalies[0].model_copy(update={"box": None})
    assert without_box.picture().size == whole.size
    assert "no box" in without_box._repr_html_()


@pytest.mark.slow
def test_a_notebook_gets_the_picture_and_the_numbered_findings(run: uncanny.AnnotateRun) -> None:
    record = run.annotations[0]
    html = record._repr_html_()
    assert html.count("<img ") == html.count("data:image/webp;base64,") == 1
    assert '<li value="1"><b>Lamp' in html
    assert '<li value="2"><b>Table' in html
    png = record._repr_png_()
    assert png is not None
    with PIL.Image.open(BytesIO(png)) as picture:
        assert max(picture.size) == 640
        assert red(picture.convert("RGB"))


def test_no_text_of_a_record_becomes_markup(run: uncanny.AnnotateRun) -> None:
    record = run.annotations[0]
    fields = {"name": HOSTILE, "phenomenon": HOSTILE, "reasoning": HOSTILE, "kind": None}
    hostile = [each.model_copy(update=fields) for each in record.anomalies]
    error = uncanny.StepError(agent="a", step=1, kind="server", message=HOSTILE)
    changed = {"anomalies": tuple(hostile), "errors": (error,), "image": f"{HOSTILE}.png"}
    for shown in (record.model_copy(update=changed), hostile[0]):
        html = shown._repr_html_()
        assert "&lt;script&gt;" in html
        assert html.count("<img ") == 1
        for text in ("<script", "onerror=alert(1)>", "\x1b", "\u202e"):
            assert text not in html
        assert shown._repr_png_() is not None


def test_a_record_that_does_not_know_its_picture_is_told(run: uncanny.AnnotateRun) -> None:
    record = uncanny.Annotation.model_validate_json(run.annotations[0].model_dump_json())
    assert record == run.annotations[0]  # where a picture is is no part of what a record says
    assert "uncanny does not know where the image file is" in record._repr_html_()
    assert '<li value="2"><b>Table' in record._repr_html_()
    assert record._repr_png_() is None
    with pytest.raises(UsageError, match=r"Give its path, as in record.show\(image="):
        record.show()
    expected = run.annotations[0].picture()
    with PIL.Image.open(TABLE) as opened:
        for image in (TABLE, str(TABLE), TABLE.read_bytes()):
            assert record.picture(image).tobytes() == expected.tobytes()
        assert record.picture(opened).size == expected.size
    other = next(scene.image_path for scene in scenes() if scene.image_path != TABLE)
    for image in (other, other.read_bytes(), b"", b"\x89PNG", TABLE.parent, "gone.png"):
        with pytest.raises(UsageError, match="not the one that was annotated"):
            record.picture(image)
    with pytest.raises(UsageError, match="is a path, bytes or a Pillow image, not 3"):
        record.picture(3)  # type: ignore[arg-type]


def test_no_other_file_of_the_machine_gets_into_a_notebook(run: uncanny.AnnotateRun) -> None:
    record = run.annotations[0]
    secret = run.path.parent / "secret.png"
    PIL.Image.new("RGB", (50, 50), "blue").save(secret)
    for update in ({"image": "../secret.png"}, {"image": "../secret.png", "sha256": None}):
        moved = record.model_copy(update=update)
        moved.set_place(run=run.path)
        assert moved._repr_png_() is None
        assert "<img" not in moved._repr_html_()
    shutil.move(run.path.parent / "in", run.path.parent / "elsewhere")
    assert record._repr_png_() is None
    assert "cannot be shown" in record._repr_html_()


def test_boxes_outside_and_many_findings_are_no_trouble(run: uncanny.AnnotateRun) -> None:
    record = run.annotations[0]
    (first, *_) = record.anomalies
    boxes = [(5_000, 5_000, 6_000, 6_000), (0, 0, 1, 1), (700, 500, 9_000, 9_000), *[(10, 10, 90, 90)] * 120]
    many = tuple(first.model_copy(update={"box": box}) for box in boxes)
    shown = record.model_copy(update={"anomalies": many})
    shown.set_place(run=run.path)
    assert '<li value="123">' in shown._repr_html_()
    for anomaly in shown.anomalies[:4]:
        assert anomaly._repr_png_() is not None


def test_copies_and_other_processes_know_the_picture(run: uncanny.AnnotateRun) -> None:
    record = run.annotations[0]
    for each in (copy.deepcopy(record), pickle.loads(pickle.dumps(record)), record.model_copy()):
        assert each == record
        assert each.picture().tobytes() == record.picture().tobytes()
    assert "_origin" not in record.model_dump_json()
    assert pickle.loads(pickle.dumps(run.annotations))[0].picture().size == record.picture().size


def test_an_image_annotated_by_its_path_is_shown() -> None:
    record = uncanny.annotate_image(TABLE, model="demo")
    assert record._repr_png_() is not None
    assert uncanny.detect_image(str(TABLE), model="demo")._repr_png_() is not None
    assert uncanny.annotate_image(TABLE.read_bytes(), model="demo")._repr_png_() is None


def test_show_is_a_cell_in_a_notebook_and_a_viewer_elsewhere(
    run: uncanny.AnnotateRun, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[PIL.Image.Image] = []

    class Viewer(PIL.ImageShow.Viewer):
        def show(self, image: PIL.Image.Image, **_options: Any) -> int:
            seen.append(image)
            return 1

    monkeypatch.setattr(PIL.ImageShow, "_viewers", [Viewer()])
    record = run.annotations[0]
    record.show()
    assert [each.size for each in seen] == [record.picture().size]
    assert "Lamp hangs from nothing" in capsys.readouterr().out
    shell = InteractiveShell.instance()
    try:
        shell.user_ns["record"] = record
        with capture_output() as got:
            assert shell.run_cell("record.show()").success  # type: ignore[no-untyped-call]
        assert len(seen) == 1
        assert "image/png" in got.outputs[0].data
        assert '<li value="2">' in got.outputs[0].data["text/html"]
    finally:
        InteractiveShell.clear_instance()
