"""Scores worked by hand, and what is wrong in verdict files."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.realism.made_verdicts import HAND_WORKED, hand_worked, line, written
from uncanny import realism
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.realism.result import COLUMNS, RealismScore
from uncanny.eval.realism.verdicts import Verdict, label_of, verdict_sets

WORDS = st.sampled_from(["first", "second", "both", None])


def scored(*files: Path, **options: Any) -> RealismScore:
    return realism.score(files, **{"resamples": 200, **options})


def test_worked_by_hand(tmp_path: Path) -> None:
    scores = scored(written(tmp_path / "v.jsonl", hand_worked())).to_json()
    assert scores["n"] == 11
    assert scores["labels"] == {
        "deceiving": 5,
        "intermediate": 2,
        "non_deceiving": 2,
        "undetermined": 2,
    }
    assert scores["cases"] == {"1": 2, "2": 1, "3": 1, "4": 1}
    assert scores["two_way"] == {"deceiving": 5, "non_deceiving": 4, "undetermined": 2}
    # "first" 2 + 1 + 1 + 1 + 1 + 1 times, "second" 2 + 1 + 1, "both" 1 + 2 + 1, row by row.
    bias = scores["position_bias"]
    assert (bias["first"], bias["second"], bias["both"]) == (7, 4, 4)
    assert bias["p_value"] == pytest.approx(1124 / 2048)  # 2·(C(11,0)+…+C(11,4)) of 2^11
    assert bias["shares"] == {"first": 7 / 15, "second": 4 / 15, "both": 4 / 15}
    assert scores["calls"] == {"questions": 3 + 8 * 3, "saved": 4, "made": None}
    assert scores["outcomes"] == {"judged": 9, "undetermined": 2}
    shares = scores["shares"]
    assert shares["labels"]["deceiving"]["value"] == 5 / 9
    assert shares["labels"]["undetermined"]["value"] == 2 / 11
    assert shares["two_way"]["non_deceiving"]["value"] == 4 / 9
    assert shares["cases"]["1"]["value"] == 2 / 9
    assert sum(share["count"] for share in shares["cases"].values()) == 5


def test_questions_of_other_tools_are_counted_by_their_answers(tmp_path: Path) -> None:
    """They may say an outcome; only a run of our own records what it asked of each pair."""
    path = written(tmp_path / "verdicts.jsonl", hand_worked(outcome="judged"))
    calls = scored(path).to_json()["calls"]
    assert calls == {"questions": 3 + 8 * 3, "saved": 4, "made": None}
    own = written(tmp_path / "own.jsonl", hand_worked(outcome="unusable", asked="0123"))
    assert scored(own).to_json()["calls"]["questions"] == 0
    unusable = written(tmp_path / "unusable.jsonl", hand_worked()[-1:])
    unusable.write_bytes(unusable.read_bytes().replace(b"{", b'{"outcome":"unusable",', 1))
    assert scored(unusable).to_json()["calls"]["questions"] == 0


def test_groups_are_scored_like_the_whole(tmp_path: Path) -> None:
    groups = scored(written(tmp_path / "v.jsonl", hand_worked())).to_json()["groups"]
    assert list(groups) == ["a", "b"]
    assert groups["a"]["n"] == groups["b"]["n"] == 5
    assert groups["a"]["labels"] == {
        "deceiving": 1,
        "intermediate": 1,
        "non_deceiving": 2,
        "undetermined": 1,
    }
    assert groups["b"]["cases"] == {"1": 1, "2": 1, "3": 1, "4": 1}
    assert groups["b"]["shares"]["labels"]["deceiving"]["value"] == 4 / 5


def test_intervals_hold_their_share_and_the_same_seed_gives_the_same(tmp_path: Path) -> None:
    path = written(tmp_path / "v.jsonl", hand_worked())
    once, again, differently = scored(path), scored(path), scored(path, seed=1, resamples=77)
    assert once.to_json() == again.to_json()
    assert once.to_json() != differently.to_json()
    (scores,) = once.sets.values()
    for share in [*scores.overall.labels.values(), *scores.overall.cases.values()]:
        assert share.interval is not None
        assert share.value is not None
        assert 0 <= share.interval[0] <= share.value <= share.interval[1] <= 1
    (bare,) = scored(path, resamples=0).sets.values()
    assert all(share.interval is None for share in bare.overall.labels.values())


def test_a_share_of_nothing_is_null(tmp_path: Path) -> None:
    path = written(tmp_path / "v.jsonl", [line("p", (None, None, None), "undetermined", None, None)])
    scores = scored(path).to_json()
    assert scores["shares"]["labels"]["deceiving"] == {"value": None, "count": 0, "out_of": 0, "ci": None}
    assert scores["shares"]["labels"]["undetermined"]["value"] == 1
    assert scores["position_bias"]["p_value"] is None
    assert scores["groups"] == {}


def test_several_files_stand_side_by_side(tmp_path: Path) -> None:
    one = written(tmp_path / "a" / "verdicts.jsonl", hand_worked(model="m/one"))
    two = written(tmp_path / "b" / "verdicts.jsonl", hand_worked(model="m/two")[:3])
    scores = scored(one, two.parent).to_json()
    assert list(scores) == ["models", "about"]
    assert {name: each["n"] for name, each in scores["models"].items()} == {"m/one": 11, "m/two": 3}
    alone = scored(one).to_json()
    assert scores["models"]["m/one"] == {key: value for key, value in alone.items() if key != "about"}


def test_sets_without_a_model_of_their_own_go_by_their_place(tmp_path: Path) -> None:
    one = written(tmp_path / "a" / "verdicts.jsonl", hand_worked(model="same"))
    two = written(tmp_path / "b" / "verdicts.jsonl", hand_worked(model="same"))
    three = written(tmp_path / "c.jsonl", hand_worked())
    assert [each.name for each in verdict_sets([one, two, three])] == ["a", "b", "c"]
    four = written(tmp_path / "deep" / "b" / "verdicts.jsonl", hand_worked())
    assert [each.name for each in verdict_sets([two, four])] == [str(two), str(four)]


def test_the_table_has_a_row_for_every_figure(tmp_path: Path) -> None:
    score = scored(written(tmp_path / "v.jsonl", hand_worked()))
    rows = list(csv.DictReader(io.StringIO(score.to_csv())))
    assert tuple(rows[0]) == COLUMNS
    assert {(row["group"], row["table"], row["name"]) for row in rows} >= {
        ("", "labels", "deceiving"),
        ("b", "cases", "3"),
        ("a", "position", "p_value"),
    }
    deceiving = next(row for row in rows if (row["group"], row["name"]) == ("", "deceiving"))
    assert (deceiving["count"], deceiving["out_of"]) == ("5", "9")
    assert float(deceiving["value"]) == 5 / 9


def test_contradictions_name_file_line_and_record(tmp_path: Path) -> None:
    lines = hand_worked()
    lines[2] = line("p2", ("yes", "first", "first"), "deceiving", 2, None)
    lines[7] = line("p7", ("yes", "first", "second"), "non_deceiving", None, None)
    lines[8] = line("p7", ("yes", "first", "perhaps"), "intermediate", None, None)
    with pytest.raises(ItemsError) as caught:
        verdict_sets([written(tmp_path / "v.jsonl", lines)])
    message = str(caught.value)
    assert "v.jsonl: 4 problems" in message
    assert "line 3, item 'p2', field case: 2 is stored, the answers give 1" in message
    assert "line 8, item 'p7', field label: 'non_deceiving' is stored" in message
    assert "line 9, item 'p7', field edited_first" in message
    assert "line 9, item 'p7', field id: the id was used before, at line 8" in message


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b'{"id":"a"}', ["line 1, item 'a', field first: is missing"]),
        (b"nope", ["line 1: not valid JSON"]),
        (line("", ("no", None, None), "non_deceiving", None, None), ["field id"]),
        (line("a", ("maybe", None, None), "undetermined", None, None), ["field first"]),
    ],
)
def test_invalid_lines_are_named(raw: bytes, words: list[str], tmp_path: Path) -> None:
    with pytest.raises(ItemsError) as caught:
        verdict_sets([written(tmp_path / "v.jsonl", [raw])])
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_repeated_ids_empty_missing_and_doubled_files(tmp_path: Path) -> None:
    path = written(tmp_path / "v.jsonl", [*hand_worked(), *hand_worked()[:1]])
    with pytest.raises(ItemsError, match="line 12, item 'p0', field id: the id was used before, at line 1"):
        verdict_sets([path])
    with pytest.raises(UsageError, match="contains no verdicts"):
        verdict_sets([written(tmp_path / "empty.jsonl", [])])
    with pytest.raises(UsageError, match="cannot be read"):
        verdict_sets([tmp_path / "none.jsonl"])
    with pytest.raises(UsageError, match="named twice"):
        verdict_sets([path, path])


def test_a_label_left_out_is_derived_and_unknown_keys_are_kept(tmp_path: Path) -> None:
    raw = b'{"id":"a","first":"yes","original_first":"both","edited_first":"both","mine":7}'
    ((verdict,),) = (each.verdicts for each in verdict_sets([written(tmp_path / "v.jsonl", [raw])]))
    assert (verdict.label, verdict.case) == ("deceiving", 4)
    assert verdict.model_extra == {"mine": 7}


def test_hand_worked_labels_are_those_of_the_table() -> None:
    for (first, original_first, edited_first), label, case, _ in HAND_WORKED:
        assert label_of(first, original_first, edited_first) == (label, case)  # type: ignore[arg-type]


def verdict(number: int, first: str | None, one: str | None, other: str | None) -> Verdict:
    label, case = label_of(first, one, other)  # type: ignore[arg-type]
    fields: dict[str, Any] = {"first": first, "original_first": one, "edited_first": other}
    return Verdict(id=f"p{number}", label=label, case=case, **fields)


@given(st.lists(st.tuples(st.sampled_from(["yes", "no", None]), WORDS, WORDS), min_size=1, max_size=30))
def test_counts_add_up_and_do_not_depend_on_the_order_of_asking(
    rows: list[tuple[str | None, str | None, str | None]],
) -> None:
    turned = {"first": "second", "second": "first", "both": "both", None: None}
    sets = [
        [verdict(number, *row) for number, row in enumerate(rows)],
        [verdict(n, first, turned[other], turned[one]) for n, (first, one, other) in enumerate(rows)],
    ]
    asked, turned_round = [realism.score(each, resamples=0).sets["verdicts"].overall for each in sets]
    for score in (asked, turned_round):
        assert sum(share.counts for share in score.labels.values()) == score.n == len(rows)
        assert sum(share.counts for share in score.two_way.values()) == score.n
        assert sum(share.counts for share in score.cases.values()) == score.labels["deceiving"].counts
    assert asked.labels == turned_round.labels
    assert asked.cases == turned_round.cases
    assert asked.position_bias.first == turned_round.position_bias.second
    assert asked.position_bias.p_value == turned_round.position_bias.p_value


def test_json_of_a_score_is_json(tmp_path: Path) -> None:
    assert orjson.dumps(scored(written(tmp_path / "v.jsonl", hand_worked())).to_json())


def test_verdicts_of_a_program_are_scored_like_those_of_a_file(tmp_path: Path) -> None:
    path = written(tmp_path / "v.jsonl", hand_worked(model="m/one"))
    records = [Verdict.model_validate_json(row) for row in hand_worked(model="m/one")]
    scores = realism.score(records, resamples=50)
    assert list(scores.sets) == ["m/one"]
    assert scores.to_json() == scored(path, resamples=50).to_json()
    with pytest.raises(UsageError, match="Give a path for the page"):
        scores.report()
    assert scores.report(tmp_path / "page.html").is_file()
    contradicting = [records[0].model_copy(update={"label": "intermediate"}), records[0]]
    with pytest.raises(ItemsError, match="field label: 'intermediate' is stored, the answers give") as caught:
        realism.score(contradicting)
    assert "item 'p0', field id: the id was used before; keep one" in str(caught.value)
    with pytest.raises(UsageError, match="contains no verdicts"):
        realism.score([])
    with pytest.raises(UsageError, match="cannot be mixed"):
        realism.score([path, records[0]])  # type: ignore[arg-type]


def test_a_mapping_names_the_sets(tmp_path: Path) -> None:
    path = written(tmp_path / "v.jsonl", hand_worked(model="same"))
    records = [Verdict.model_validate_json(row) for row in hand_worked(model="same")]
    scores = realism.score({"file": path, "program": records}, resamples=0)
    assert list(scores.to_json()["models"]) == list(scores.sets) == ["file", "program"]
    head = str(scores).splitlines()[0]
    assert head.split() == ["file", "n", "file", "program", "n", "program"]


def test_rows_as_a_data_frame(tmp_path: Path) -> None:
    scores = scored(written(tmp_path / "v.jsonl", hand_worked()))
    frame = scores.to_pandas()
    assert tuple(frame.columns) == COLUMNS
    assert len(frame) == len(scores.to_csv().splitlines()) - 1
    row = frame[(frame["group"] == "") & (frame["table"] == "labels") & (frame["name"] == "deceiving")]
    assert (row["value"].item(), row["count"].item(), row["out_of"].item()) == (5 / 9, 5, 9)


def test_the_tables_have_every_group_and_escape_what_they_show(tmp_path: Path) -> None:
    lines = [line("p", ("yes", "both", "both"), "deceiving", 4, "<b>", model="<i>")]
    scores = scored(written(tmp_path / "v.jsonl", lines))
    overall, groups = scores.tables()
    assert ["deceiving", "1", "100.0"] in [[cell.text for cell in row] for row in overall.shown]
    assert "100.0 [20.7, 100.0]" in overall.text()
    assert ("second checks", 2, "") in overall.rows
    assert [cell.text for cell in groups.shown[0]] == ["<b>", "1", "100.0", "0.0", "0.0", "0.0", "–"]
    assert groups.shown[0][2].interval == "[20.7, 100.0]"
    assert "&lt;b&gt;" in scores._repr_html_()
    assert "<b>" not in scores._repr_html_()
