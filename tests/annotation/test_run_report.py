"""The report of a synthetic run, read the way a browser and a person would."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from uncanny.annotation.report.page import write_report
from uncanny.errors import RecordError, UsageError
from uncanny.schema import KINDS

WriteRun = Callable[..., Path]
MakeRecord = Callable[..., dict[str, Any]]


class Page(HTMLParser):
    """What the tests ask of the page: tags with attributes, the JSON inside, the words people read."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data: dict[str, Any] = {}
        self.blocks: list[str] = []
        self.words = ""
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.tags[-1] if self.tags else ("", {})
        if (
            attributes.get("type") == "application/json"
            and (name := attributes["id"])
            and name not in self.data
        ):
            self.blocks.append(data)
            self.data[name] = json.loads(data)
        elif tag not in ("script", "style"):
            self.words += " " + " ".join(data.split())

    @property
    def text(self) -> str:
        return " ".join(self.words.split())

    def calls(self, place: int) -> list[dict[str, Any]]:
        calls = json.loads(gzip.decompress(base64.b64decode(self.data[f"d{place}"]["packed"])))["calls"]
        assert isinstance(calls, list)
        return calls


@pytest.fixture(scope="module")
def page(shared_run: Path) -> Page:
    return Page(write_report(shared_run))


def test_one_file_that_asks_nothing_of_the_network(page: Page) -> None:
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "object", "embed", "img"), tag
        assert not {"src", "srcset", "action", "style"} & attributes.keys(), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data: 'self' file:;")
    assert "unsafe" not in policy
    assert not re.search(r"@import|url\(|\bfetch\(|XMLHttpRequest|innerHTML", page.source)


def test_counts_are_those_of_the_records(page: Page) -> None:
    assert "images 9 6 ok, 1 partial, 1 failed, 1 unreadable" in page.text
    records = page.data["data"]["images"]
    assert f"anomalies {sum(len(record['anomalies']) for record in records)} " in page.text
    for words in (
        "590 answered 98.3 %",
        "4 unparseable answer 0.7 %",
        "1 refused by the model 0.2 %",
        "5 infrastructure error 0.8 %",
        "65 % of input cached",
        "12 min 34 s",
        "12 replayed",
    ):
        assert words in page.text


def test_unknown_cost_is_not_free(page: Page) -> None:
    assert "cost not priced" in page.text
    assert "$0" not in page.text


def test_a_call_without_figures_leaves_those_of_the_others(
    tmp_path: Path, write_run: WriteRun, record: MakeRecord
) -> None:
    measured = {"input_tokens": 9_000, "cached_tokens": 900, "output_tokens": 1_000, "cost_usd": 1.5}
    totals = {"images": 1, "calls": 8, "sums": measured, "unmeasured": dict.fromkeys(measured, 2)}
    page = Page(write_report(write_run(tmp_path, [record(1)], totals=totals)))
    assert "tokens at least 10,000 9,000 in, 1,000 out 10 % of input cached" in page.text
    assert "cost at least $1.50 2 calls did not say what they used" in page.text


def test_the_least_realistic_come_first_and_failures_last(page: Page) -> None:
    records = page.data["data"]["images"]
    assert {record["status"] for record in records[-2:]} == {"failed", "unreadable"}
    worst = [min((a["severity"] for a in record["anomalies"]), default=101) for record in records[:-2]]
    assert worst == sorted(worst)


def test_the_title_is_the_result(page: Page) -> None:
    records = page.data["data"]["images"]
    anomalies = sum(len(record["anomalies"]) for record in records)
    assert page.text.startswith(f"{anomalies} anomalies in ")
    assert page.text.index("Search") < page.text.index("How calls ended")


def test_kinds_are_counted_and_only_recurring_names_listed(
    tmp_path: Path, write_run: WriteRun, record: MakeRecord
) -> None:
    records = [record(number) for number in range(3)]
    kinds = ["contact", "contact", "anatomy", None]
    for number, anomaly in enumerate(each for one in records for each in one["anomalies"]):
        anomaly |= {"kind": kinds[number % 4], "name": f"name {number}"}
    counted = Counter(each["kind"] for one in records for each in one["anomalies"] if each["kind"])
    page = Page(write_report(write_run(tmp_path, records)))
    others = [(kind, 0) for kind in KINDS if kind not in counted]
    listed = " ".join(f"{kind} {count}" for kind, count in [*counted.most_common(), *others])
    assert f"Kinds of anomalies n = {counted.total()} anomalies {listed}" in page.text
    assert "Names that recur" not in page.text


def test_what_models_wrote_is_inert_and_whole(page: Page, shared_run: Path) -> None:
    assert "onerror=alert" in page.source
    assert "<img src=x" not in page.source
    assert not any(mark in block for block in page.blocks for mark in ("<", ">", "\u2028"))
    assert page.source.count("</script>") == page.source.count("<script")
    record = next(r for r in page.data["data"]["images"] if r["image"].endswith("00007.png"))
    written = json.loads((shared_run / "annotations.jsonl").read_text(encoding="utf-8").split("\n")[7])
    shown = record["anomalies"]
    assert len(shown) == len(written["anomalies"])
    for anomaly, kept in zip(shown, written["anomalies"], strict=True):
        assert {key: anomaly[key] for key in kept} == kept
    assert "</script>" in record["anomalies"][0]["phenomenon"]
    assert "𝕏" in record["anomalies"][0]["reasoning"]
    assert "kitchen &lt;b&gt;" in page.source


def test_every_call_is_there_with_its_texts(page: Page) -> None:
    for place, record in enumerate(page.data["data"]["images"], 1):
        calls = page.calls(place)
        assert len(calls) == record["usage"].get("calls", 0), record["image"]
        for call in calls:
            assert call["asked"] == f"Look at the {call['agent']} task. Report what is wrong."
            assert (call["answer"] is None) == (call["outcome"] == "error")
            assert call["answer"] is None or record["image"] in call["answer"]


def test_pictures_travel_with_the_page(page: Page) -> None:
    for place, record in enumerate(page.data["data"]["images"], 1):
        readable = record["status"] != "unreadable"
        assert (record["thumbs"][0] or "").startswith("data:image/webp;base64,UklGR") == readable
        (layer,) = page.data["views"][place - 1]["layers"]
        assert bool(layer["copy"]) == bool(layer["src"]) == readable
        assert not readable or page.data[layer["copy"]].startswith("data:image/webp;base64,UklGR")


def test_findings_bring_their_part_of_the_picture(
    tmp_path: Path, write_run: WriteRun, record: MakeRecord
) -> None:
    image = record(1)
    found = image["anomalies"][0] | {"objects": ["lamp"], "severity": 30}
    image["objects"] = [{"name": "lamp", "description": "d", "box": [300, 200, 340, 260]}]
    image["anomalies"] = [
        found | {"name": "without a place", "objects": []},
        found | {"name": "by its object"},
        found | {"name": "not sure", "confidence": 0.2, "box": [0, 0, 40, 40], "severity": 1},
        found | {"name": "worst", "box": [600, 440, 640, 480], "severity": 2},
    ]
    page = Page(write_report(write_run(tmp_path, [image])))
    (shown,) = page.data["data"]["images"]
    parts = {each["name"]: each["part"] for each in shown["anomalies"] + shown["doubtful"]}
    assert list(parts) == ["worst", "without a place", "by its object", "not sure"]
    assert parts["without a place"] is None
    assert [parts[name]["number"] for name in ("worst", "by its object", "not sure")] == [0, 1, 2]
    assert [parts[name]["box"] for name in ("worst", "by its object", "not sure")] == [
        [512, 384, 640, 480],
        [252, 179, 388, 281],
        [0, 0, 128, 96],
    ]
    uris = page.data[page.data["views"][0]["parts"]]
    assert len(uris) == 3
    assert all(uri.startswith("data:image/webp;base64,UklGR") for uri in uris)


def test_a_large_run_says_what_it_leaves_out(tmp_path: Path, write_run: WriteRun, record: MakeRecord) -> None:
    records = [record(number, "failed" if number == 999 else "ok") for number in range(1000)]
    page = Page(write_report(write_run(tmp_path, records, pictures=False), max_images=50))
    assert "Showing 50 of 1,000 images" in page.text
    assert "images 1,000 999 ok, 1 failed" in page.text
    assert len(page.data["data"]["images"]) == 50
    assert page.data["data"]["images"][-1]["status"] == "failed"
    assert "d50" in page.data
    assert "d51" not in page.data


def test_a_page_too_small_for_the_texts_says_so(small_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncanny.annotation.report.page.CALL_BYTES", 2_500)
    page = Page(write_report(small_run))
    kept = [all(call["kept"] for call in page.calls(place)) for place in range(1, 10)]
    assert f"the prompts and answers of {kept.count(False)} of these images are left out" in page.text
    assert kept[0]
    assert all(len(page.calls(place)) in (0, 22) for place in range(1, 10))


def test_without_calls(small_run: Path) -> None:
    (small_run / "calls.jsonl").unlink()
    page = Page(write_report(small_run))
    assert page.data["data"]["calls_present"] is False
    assert page.calls(1) == []


def test_a_damaged_line_of_calls_is_counted(small_run: Path) -> None:
    with (small_run / "calls.jsonl").open("a") as file:
        file.write('{"image": \n')
    assert "could not be read and are not counted: 1." in Page(write_report(small_run)).text


def test_unfinished_run_with_a_line_being_written(
    tmp_path: Path, write_run: WriteRun, record: MakeRecord
) -> None:
    run = write_run(tmp_path, [record(1, "failed"), record(1)], state="running", totals={"images": 5})
    with (run / "annotations.jsonl").open("a") as file:
        file.write('{"image": "rooms/0000')
    page = Page(write_report(run))
    assert "This run is not finished" in page.text
    assert "images recorded 1 of 5 1 ok" in page.text
    assert "tokens not reported" in page.text
    assert "wall time not recorded" in page.text


def test_nothing_but_records(small_run: Path, tmp_path: Path) -> None:
    (small_run / "run.json").unlink()
    page = Page(write_report(small_run, out=tmp_path / "elsewhere.html"))
    assert "no run.json" in page.text
    assert "calls 176" in page.text
    assert "cost not priced" in page.text
    assert not (small_run / "report.html").exists()


def test_a_file_of_annotations_has_a_page_beside_it(small_run: Path) -> None:
    """Without a run nothing is known of calls; a picture is shown unless the record has another digest."""
    records = [json.loads(line) for line in (small_run / "annotations.jsonl").open(encoding="utf-8")]
    records[0]["sha256"] = "0" * 64
    records[1]["sha256"] = None
    file = small_run / "other.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert write_report(file) == small_run / "other.html"
    page = Page(small_run / "other.html")
    assert "no run.json" in page.text
    assert page.data["data"]["calls_present"] is False
    thumbs = {image["image"]: image["thumbs"][0] for image in page.data["data"]["images"]}
    assert thumbs[records[0]["image"]] is None
    assert thumbs[records[1]["image"]].startswith("data:image/webp")
    assert not (small_run / "report.html").exists()
    assert write_report(small_run / "annotations.jsonl") == small_run / "report.html"


def test_a_page_never_replaces_what_it_is_of(small_run: Path) -> None:
    file = (small_run / "annotations.jsonl").rename(small_run / "annotations.html")
    with pytest.raises(UsageError, match="would be overwritten"):
        write_report(file)


def test_an_empty_run_has_a_page(tmp_path: Path, write_run: WriteRun) -> None:
    page = Page(write_report(write_run(tmp_path, [], totals=None, state="running")))
    assert "No image has been recorded yet" in page.text


def test_images_lie_under_the_root(tmp_path: Path, write_run: WriteRun, record: MakeRecord) -> None:
    run = write_run(tmp_path / "run", [record(1)], root="../pictures")
    assert Page(write_report(run)).data["data"]["images"][0]["thumbs"][0] is None
    (tmp_path / "pictures").mkdir()
    (run / "rooms").rename(tmp_path / "pictures" / "rooms")
    assert Page(write_report(run)).data["data"]["images"][0]["thumbs"][0]


def test_not_a_run_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a run folder"):
        write_report(tmp_path)


def test_a_wrong_field_of_the_manifest_is_named(tmp_path: Path, write_run: WriteRun) -> None:
    with pytest.raises(UsageError, match=r"run\.json, field 'totals\.calls'"):
        write_report(write_run(tmp_path, [], totals={"calls": "many"}))


def test_an_invalid_record_is_named_and_the_old_page_stays(
    tmp_path: Path, write_run: WriteRun, record: MakeRecord
) -> None:
    records = [record(0), record(1, anomalies=[{"name": "x", "severity": 101}])]
    run = write_run(tmp_path, records, pictures=False)
    (run / "report.html").write_text("old")
    with pytest.raises(RecordError, match=r"annotations\.jsonl:2, field 'anomalies\.0"):
        write_report(run)
    assert (run / "report.html").read_text() == "old"
    assert not list(run.glob("*.tmp"))
