"""Predictions and truths in every form they come in, and everything wrong with a file at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from uncanny.errors import ItemsError, UsageError
from uncanny.eval.common.anomalies.load import load
from uncanny.eval.common.anomalies.read import AnomalySet, ScoredAnomaly, digest

ANOMALY = {"name": "Cup", "phenomenon": "A cup hangs in the air.", "reasoning": "Gravity.", "severity": 5}
READ = ScoredAnomaly("Cup", "A cup hangs in the air.", "Gravity.", 5)
RELEASED = {
    "Name": "Cup",
    "Observed Phenomenon": "A cup hangs in the air.",
    "Reasoning": "Gravity.",
    "Severity Score": "5/100 (very unreal)",
}
PLAIN = "@1. Name: Cup\nPhenomenon: A cup hangs in the air.\nReasoning: Gravity.\nSeverity Score: 5."


def write(path: Path, content: object) -> Path:
    if isinstance(content, bytes | str):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    elif isinstance(content, list):
        path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in content))
    else:
        path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    return path


def read(folder: Path, content: object, name: str = "file.jsonl") -> AnomalySet:
    return load(write(folder / name, content))


def wrong(folder: Path, content: object, name: str = "file.jsonl", role: Any = "predictions") -> list[str]:
    with pytest.raises(ItemsError) as error:
        load(write(folder / name, content), role=role)
    assert str(folder / name) in str(error.value)
    return [str(problem) for problem in error.value.problems]


SAME = [
    pytest.param(
        [{"image": "a.png", "anomalies": [ANOMALY]}, {"image": "b.png", "anomalies": []}], id="ours"
    ),
    pytest.param({"a.png": [RELEASED], "b.png": []}, id="released"),
    pytest.param(orjson.dumps({"a.png": [RELEASED], "b.png": []}), id="released, in one line"),
    pytest.param([{"a.png": [RELEASED]}, {"b.png": []}], id="released, an image a line"),
    pytest.param({"a.png": [RELEASED | {"Name": "@1. Name: Cup"}], "b.png": None}, id="released, null"),
    pytest.param({"a.png": PLAIN, "b.png": "No anomalies found."}, id="plain text by image"),
    pytest.param([{"image": "a.png", "text": PLAIN}, {"image": "b.png", "raw": "None"}], id="plain text"),
    pytest.param(
        [{"image": "a.png", "anomalies": PLAIN}, {"image": "b.png", "anomalies": "None."}], id="text as list"
    ),
    pytest.param(
        orjson.dumps([{"image": "a.png", "anomalies": [RELEASED]}, {"image": "b.png", "anomalies": []}]),
        id="a JSON list",
    ),
    pytest.param(
        b'\xef\xbb\xbf{"image": "a.png", "anomalies": [' + orjson.dumps(ANOMALY) + b"]}\r\n\r\n"
        b'{"image": "b.png", "anomalies": []}',
        id="byte order mark, CRLF, blank line, no last newline",
    ),
    pytest.param({"a.png": {"anomalies": [ANOMALY]}, "b.png": {"anomalies": []}}, id="records by image"),
]


@pytest.mark.parametrize("content", SAME)
@pytest.mark.parametrize("name", ["file.json", "file.jsonl"])
def test_all_forms_say_the_same(tmp_path: Path, content: object, name: str) -> None:
    anomalies = read(tmp_path, content, name)
    assert [(image.image, image.anomalies) for image in anomalies.images] == [
        ("a.png", (READ,)),
        ("b.png", ()),
    ]
    assert (anomalies.blank_texts, anomalies.unread_severities, anomalies.unread_answers) == (0, 0, ())
    assert not anomalies.has_source


def test_a_record_says_source_and_digest(tmp_path: Path) -> None:
    lines = [
        {"image": "a.png", "anomalies": [], "source": "real", "sha256": "AB", "model": "m", "extra": 1},
        {"image": "b.png", "anomalies": [], "source": None, "model": "m"},
    ]
    anomalies = read(tmp_path, lines)
    assert [(image.source, image.has_source, image.sha256) for image in anomalies.images] == [
        ("real", True, "ab"),
        (None, True, None),
    ]
    assert anomalies.has_source


def test_what_failed_is_no_empty_prediction(tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [
        {"image": f"{status}.png", "status": status, "anomalies": []} for status in ("ok", "failed")
    ]
    lines += [
        {"image": "partial.png", "status": "partial", "anomalies": [ANOMALY]},
        {"image": "u", "status": "unreadable"},
    ]
    anomalies = read(tmp_path, lines)
    assert [image.status for image in anomalies.images] == ["ok", "failed", "partial", "unreadable"]
    assert [len(image.anomalies) for image in anomalies.images] == [0, 0, 0, 0]


def test_blank_texts_and_severities_in_words_are_counted(tmp_path: Path) -> None:
    items = [
        RELEASED | {"Severity Score": "high"},
        {"Name": "x", "Reasoning": None, "Observed Phenomenon": " "},
    ]
    anomalies = read(tmp_path, {"a.png": items})
    assert [anomaly.severity for anomaly in anomalies.images[0].anomalies] == [None, None]
    assert (anomalies.unread_severities, anomalies.blank_texts) == (1, 2)
    text = PLAIN.replace("Score: 5.", "Score: rather high\n\nThat is all.")
    anomalies = read(tmp_path, {"a.png": text})
    assert anomalies.images[0].anomalies == (ScoredAnomaly("Cup", READ.phenomenon, READ.reasoning, None),)
    assert anomalies.unread_severities == 1


def test_an_answer_that_is_no_list_matches_nothing(tmp_path: Path) -> None:
    content = {"a.png": "The image looks fine to me.", "b.png": ""}
    anomalies = read(tmp_path, content)
    assert anomalies.unread_answers == ("a.png", "b.png")
    assert [image.anomalies for image in anomalies.images] == [(ScoredAnomaly("", "", ""),)] * 2
    assert len(wrong(tmp_path, content, role="truth")) == 2


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    lines = b"\n".join(
        [
            orjson.dumps({"image": "a.png", "anomalies": [ANOMALY]}),
            b"not json",
            b"[1]",
            orjson.dumps({"anomalies": []}),
            orjson.dumps({"image": "b.png"}),
            orjson.dumps(
                {"image": "c.png", "anomalies": [ANOMALY | {"severity": 250}, {"phenomenon": 7}, 3]}
            ),
            orjson.dumps(
                {"image": "d.png", "anomalies": [{"text": "x"}], "source": "fake", "status": "fine"}
            ),
            orjson.dumps({"image": "a.png", "anomalies": []}),
            orjson.dumps({"image": "e.png", "anomalies": 5, "sha256": 5}),
            orjson.dumps({"image": " ", "anomalies": []}),
        ]
    )
    messages = wrong(tmp_path, lines)
    starts = [
        "line 2: not valid JSON",
        "line 3: must be an object",
        "line 4, field image: is missing",
        "line 5, item 'b.png', field anomalies: is missing",
        "line 6, item 'c.png', field anomalies.0.severity: severity 250 is outside",
        "line 6, item 'c.png', field anomalies.1.phenomenon: must be a string, not 7",
        "line 6, item 'c.png', field anomalies.2: must be an object",
        "line 7, item 'd.png', field status: must be one of ok,",
        "line 7, item 'd.png', field source: must be one of generated, real, not 'fake'",
        "line 8, item 'a.png', field image: the image was there before, at line 1",
        "line 9, item 'e.png', field sha256",
        "line 9, item 'e.png', field anomalies: must be a list, not 5",
        "line 10, item ' ', field image",
    ]
    assert len(messages) == len(starts), messages
    for line, start in zip(messages, starts, strict=True):
        assert line.startswith(start), (line, start)


def test_an_image_twice_in_a_json_object_is_an_error_with_both_lines(tmp_path: Path) -> None:
    text = '{\n "a.png": [],\n "b.png": [],\n "a.png": []\n}'
    assert wrong(tmp_path, text, "file.json") == [
        "line 4, item 'a.png', field image: the image was there before, at line 2; keep one of them"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n "a.png": [,\n}', "line 2: not valid JSON"),
        ("[3]", "field 0.image: is missing"),
        ("3", "must hold images"),
        (b'{\n"a": "\xff"}', "line 2: is not UTF-8"),
        ('{"a.png": [{"phenomenon": "\\ud800"}]}', "not valid Unicode"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_documents_that_are_none(tmp_path: Path, text: str | bytes, message: str) -> None:
    assert message in wrong(tmp_path, text, "file.json")[0]


@pytest.mark.parametrize(
    ("content", "message"), [("", "is empty"), (" \n", "is empty"), ("{}", "no image"), ("[]", "no image")]
)
def test_files_without_an_image(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(tmp_path, content)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be read.*run folder"):
        load(tmp_path / "none.jsonl", role="truth")
    with pytest.raises(UsageError, match=r"contains no annotations\.jsonl"):
        load(tmp_path, role="truth")


def test_a_folder_that_is_no_such_run_says_what_it_holds(tmp_path: Path) -> None:
    for name in ("demo", "other"):
        (tmp_path / "two" / name).mkdir(parents=True)
        (tmp_path / "two" / name / "annotations.jsonl").write_text("")
    with pytest.raises(UsageError, match="is not a run, but contains 2 runs: demo, other") as refused:
        load(tmp_path / "two")
    assert f"demo={tmp_path / 'two' / 'demo'} other=" in str(refused.value.remedy)
    (tmp_path / "answers.jsonl").write_text("")
    with pytest.raises(UsageError, match=r"it contains no annotations\.jsonl"):
        load(tmp_path)


def test_a_run_that_goes_on_has_its_last_word_on_an_image(tmp_path: Path) -> None:
    lines = [
        {"image": "a", "status": "failed"},
        {"image": "b", "anomalies": []},
        {"image": "a", "anomalies": []},
    ]
    write(tmp_path / "annotations.jsonl", lines)
    with (tmp_path / "annotations.jsonl").open("ab") as file:
        file.write(b'{"image": "c", "anom')
    with pytest.raises(ItemsError):
        load(tmp_path)
    write(tmp_path / "run.json", {})
    anomalies = load(tmp_path)
    assert {image.image: image.status for image in anomalies.images} == {"a": "ok", "b": "ok"}


def test_bundled_scenes_are_a_truth() -> None:
    anomalies = load("scenes", role="truth")
    sources = [image.source for image in anomalies.images]
    assert (sources.count("generated"), sources.count("real")) == (16, 18)
    assert all(bool(image.anomalies) == (image.source == "generated") for image in anomalies.images)
    assert all(image.sha256 and "/" not in image.image for image in anomalies.images)


def test_digest_is_of_the_content(tmp_path: Path) -> None:
    lines = [{"image": "a.png", "anomalies": [ANOMALY]}, {"image": "b.png", "anomalies": []}]
    whole = digest(read(tmp_path, lines).images)
    assert digest(read(tmp_path, lines[::-1]).images) == whole
    assert digest(read(tmp_path, {"a.png": [RELEASED], "b.png": []}).images) == whole
    assert digest(read(tmp_path, lines[:1]).images) != whole
