"""Verdicts as models write them, with what each must be read as; None is no verdict."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.answers.verdicts import read_position, read_realistic
from uncanny.errors import AnswerError

# (what is special, answer, verdict)
REALISTIC: list[tuple[str, str, str | None]] = [
    ("as asked", "Assessment: all is well.\n\nVerdict: Yes", "yes"),
    ("as asked, no", "Assessment: six fingers.\n\nVerdict: No", "no"),
    ("sentence", "Verdict: Yes, it is realistic", "yes"),
    ("sentence, no", "Verdict: No, it is not realistic.", "no"),
    ("no comma", "Verdict: No it is not realistic", "no"),
    ("unrealistic", "Verdict: No, the hand is unrealistic.", "no"),
    ("nothing unrealistic", "Verdict: Yes, there is nothing unrealistic here.", "yes"),
    ("full stop", "Verdict: yes.", "yes"),
    ("exclamation", "Verdict: NO!", "no"),
    ("lower case", "verdict: no", "no"),
    ("upper case", "VERDICT: YES", "yes"),
    ("bold label", "**Verdict:** Yes", "yes"),
    ("bold label, colon outside", "**Verdict**: No", "no"),
    ("bold line", "**Verdict: Yes**", "yes"),
    ("bold both", "**Verdict:** **No.**", "no"),
    ("italic", "_Verdict:_ *yes*", "yes"),
    ("double underscore", "__Verdict__: __No__", "no"),
    ("heading", "## Assessment\nFine.\n\n## Verdict: Yes", "yes"),
    ("heading with bold", "### **Verdict:** No", "no"),
    ("bullet", "- Assessment: fine\n- Verdict: Yes", "yes"),
    ("star bullet", "* **Verdict:** no", "no"),
    ("numbered", "1. Assessment: fine\n2. Verdict: Yes", "yes"),
    ("quote", "> Verdict: No", "no"),
    ("code", "`Verdict: Yes`", "yes"),
    ("fence", "```\nAssessment: fine\nVerdict: Yes\n```", "yes"),
    ("quotation marks", 'Verdict: "No"', "no"),
    ("typographic quotation marks", "Verdict: “Yes, it is realistic”", "yes"),
    ("brackets", "Verdict: (Yes)", "yes"),
    ("square brackets", "Verdict: [No]", "no"),
    ("indented", "    Verdict:   Yes   ", "yes"),
    ("windows line ends", "Assessment: fine\r\nVerdict: No\r\n", "no"),
    ("full-width colon", "Verdict： Yes", "yes"),
    ("space before colon", "Verdict : No", "no"),
    ("dash and reason", "Verdict: No – the shadow falls towards the light", "no"),
    ("reason in brackets", "Verdict: No (six fingers on the left hand)", "no"),
    ("text after it", "Verdict: Yes\n\nI hope this helps.", "yes"),
    ("two verdicts, the last counts", "Verdict: Yes\nOn second thought:\nVerdict: No", "no"),
    ("three verdicts", "Verdict: No\nVerdict: Yes\nVerdict: Yes", "yes"),
    ("thoughts first", "<think>Verdict: No</think>\nAssessment: fine\nVerdict: Yes", "yes"),
    ("thoughts only opened in the prompt", "hm, Verdict: No\n</think>\nVerdict: Yes", "yes"),
    ("verdict on the next line", "**Verdict:**\n\nNo, it is not realistic.", "no"),
    ("heading and next line", "### Verdict:\n- Yes", "yes"),
    ("last of two is unreadable", "Verdict: Yes\nVerdict: perhaps", None),
    ("empty", "", None),
    ("blank", " \n\t\n", None),
    ("no verdict line", "It looks realistic to me. Yes.", None),
    ("label inside a line", "My verdict: Yes", None),
    ("label at the end of a sentence", "So here is the verdict: no", None),
    ("no colon", "Verdict Yes", None),
    ("empty verdict", "Assessment: fine\nVerdict:", None),
    ("empty verdict in bold", "**Verdict:** \n", None),
    ("other words", "Verdict: Realistic", None),
    ("other words, negated", "Verdict: Not realistic", None),
    ("undecided", "Verdict: Uncertain", None),
    ("no idea", "Verdict: No idea", None),
    ("no doubt", "Verdict: No doubt it is realistic", None),
    ("none", "Verdict: None", None),
    ("yes and no", "Verdict: Yes and no", None),
    ("yes or no", "Verdict: Yes or No", None),
    ("yes/no", "Verdict: Yes/No", None),
    ("yes, no", "Verdict: Yes, no", None),
    ("contradiction", "Verdict: No, it is realistic", None),
    ("contradiction the other way", "Verdict: Yes, it is not realistic", None),
    ("nothing gives it away", "Verdict: No, nothing gives a change away", None),
    ("something gives it away", "Verdict: Yes, there is something that gives it away", None),
    ("no artifacts", "Verdict: No, I see no artifacts or signs of editing.", None),
    ("a second sentence", "Verdict: No. Nothing gives a change away.", None),
    ("it could pass", "Verdict: No, it could pass as real", None),
    ("a fault after all", "Verdict: Yes, the shadow is impossible", None),
    ("in brackets", "Verdict: No (no giveaways)", None),
    ("not without faults", "Verdict: Yes, it is not without faults", None),
    ("isn't unrealistic", "Verdict: No, it isn't unrealistic", None),
    ("nothing gives it away, and so real", "Verdict: Yes, nothing gives a change away", "yes"),
    ("no artifacts, and so real", "Verdict: Yes – no visible artifacts, natural light.", "yes"),
    ("gives itself away", "Verdict: No, the sixth finger gives it away", "no"),
    ("too good", "Verdict: No, the skin is too smooth to be real", "no"),
    ("too artificial", "Verdict: No, the skin looks too artificial", "no"),
    ("real but", "Verdict: No, it looks real at first, but the hand has been altered", "no"),
    ("what would be", "Verdict: No, a real cup would stand on its saucer", "no"),
    ("a reason that says neither", "Verdict: No, the cup hangs in the air", "no"),
    ("a reason that says neither, yes", "Verdict: Yes, all five fingers are there", "yes"),
    ("unedited", "Verdict: Yes, it passes as an unedited photograph", "yes"),
    ("not unaltered", "Verdict: No: it is not an unaltered picture", "no"),
    ("far from", "Verdict: No, this is far from realistic", "no"),
    ("a whole essay", "Verdict: Yes, " + "it is real and " * 200, None),
    ("template echoed", "Verdict: (final verdict, answer Yes or No)", None),
    ("number", "Verdict: 1", None),
    ("json on one line", '{"assessment": "fine", "verdict": "Yes"}', None),
    ("json over lines", '{\n  "assessment": "fine",\n  "verdict": "Yes"\n}', None),
    ("thoughts without an end", "<think>Verdict: Yes", None),
    ("verdict in thoughts only", "<think>Verdict: Yes</think>\nI cannot say.", None),
    ("word of the other check", "Verdict: Both", None),
    ("cut off in the word", "Verdict: Y", None),
    ("yesterday", "Verdict: Yesterday's picture", None),
]
POSITION: list[tuple[str, str, str | None]] = [
    ("as asked", "Assessment: hm.\n\nVerdict: First", "first"),
    ("second", "Verdict: Second", "second"),
    ("both", "Verdict: Both", "both"),
    ("sentence", "Verdict: First is more realistic", "first"),
    ("sentence, second", "**Verdict:** Second is more realistic.", "second"),
    ("sentence, both", "### Verdict: Both look realistic", "both"),
    ("both, equally", "Verdict: Both are equally realistic", "both"),
    ("article", "Verdict: The second image is more realistic", "second"),
    ("compared by name", "Verdict: The first is more realistic than the second", "first"),
    ("lower case", "verdict: both", "both"),
    ("stop", "Verdict: FIRST.", "first"),
    ("bold", "**Verdict: Second**", "second"),
    ("list", "- Verdict: both", "both"),
    ("quote", "> **Verdict**: first", "first"),
    ("weak preference", "Verdict: Second is more realistic, but not by much", "second"),
    ("both named after both", "Verdict: Both the first and the second look realistic", "both"),
    ("several", "Verdict: First\nVerdict: Second", "second"),
    ("thoughts", "<think>first?\nVerdict: First</think>Verdict: Both", "both"),
    ("next line", "Verdict:\nFirst", "first"),
    ("first and second", "Verdict: First and second look the same", None),
    ("first image and second image", "Verdict: First image and second image are equal", None),
    ("first or second", "Verdict: First or Second", None),
    ("all three", "Verdict: First/Second/Both", None),
    ("tie in other words", "Verdict: First is equally realistic", None),
    ("neither", "Verdict: Neither", None),
    ("less", "Verdict: First is less realistic", None),
    ("denied", "Verdict: Second is not realistic", None),
    ("both denied", "Verdict: Both look unrealistic", None),
    ("both, yet one", "Verdict: Both look realistic, but the second is more so", None),
    ("the other is better", "Verdict: First, since the second looks more realistic", None),
    ("the other is worse", "Verdict: First, since the second looks more artificial", "first"),
    ("the other is not better", "Verdict: First, since the second is not more realistic", "first"),
    ("number", "Verdict: 2", None),
    ("letter", "Verdict: A", None),
    ("image 1", "Verdict: Image 1", None),
    ("word of the other check", "Verdict: Yes", None),
    ("firstly", "Verdict: Firstly, the light", None),
    ("empty", "", None),
    ("empty verdict", "Verdict:\n", None),
    ("no line", "The first one is more realistic.", None),
    ("json", '{"verdict": "first"}', None),
]


def test_the_corpus_is_large_enough() -> None:
    assert len(REALISTIC) >= 40
    assert len(POSITION) >= 30
    for corpus in (REALISTIC, POSITION):
        assert len({answer for _, answer, _ in corpus}) == len(corpus)


@pytest.mark.parametrize(
    ("answer", "verdict"), [each[1:] for each in REALISTIC], ids=[e[0] for e in REALISTIC]
)
def test_the_first_check_is_read_as(answer: str, verdict: str | None) -> None:
    if verdict is None:
        with pytest.raises(AnswerError) as caught:
            read_realistic(answer)
        assert 0 < len(caught.value.message) <= 200
    else:
        assert read_realistic(answer) == verdict


@pytest.mark.parametrize(("answer", "verdict"), [each[1:] for each in POSITION], ids=[e[0] for e in POSITION])
def test_the_second_check_is_read_as(answer: str, verdict: str | None) -> None:
    if verdict is None:
        with pytest.raises(AnswerError):
            read_position(answer)
    else:
        assert read_position(answer) == verdict


@given(st.text(), st.sampled_from(["yes", "no"]))
def test_whatever_stands_before_the_last_verdict_line_does_not_matter(before: str, word: str) -> None:
    if "think" in before or "reasoning" in before:
        return
    assert read_realistic(f"{before}\nVerdict: {word}") == word


@given(st.text())
def test_any_text_is_a_verdict_or_an_answer_error(text: str) -> None:
    for read in (read_realistic, read_position):
        for answer in (text, f"Verdict: {text}"):
            with contextlib.suppress(AnswerError):
                assert read(answer) in ("yes", "no", "first", "second", "both")
