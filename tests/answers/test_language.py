"""Whether a text is in the language that was asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.answers.language import is_in_language


@pytest.mark.parametrize(
    ("text", "language", "is_in"),
    [
        ("The hand has six fingers.", "English", True),
        ("Die Hand hat sechs Finger.", "Chinese", False),
        ("杯子没有把手，悬在空中。", "English", False),
        ("The sign reads 咖啡 in red letters.", "English", True),
        ("这只手有六根手指。", "Chinese", True),
        ("这只手有六根手指。", "Simplified Chinese", True),
        ("这只手有六根手指。", "Chinese (simplified)", True),
        ("Рука с шестью пальцами, 6 вместо 5", "Russian", True),
        ("The hand has six fingers.", "Russian", False),
        ("На вывеске написано COFFEE SHOP", "Russian", True),
        ("手に指が六本ある", "Japanese", True),
        ("6 / 5", "Korean", True),
        ("", "Korean", True),
        # Letters do not tell these apart.
        ("The hand has six fingers.", "German", True),
        ("The hand has six fingers.", "Klingon", True),
    ],
)
def test_letters_tell_the_language(text: str, language: str, is_in: bool) -> None:
    assert is_in_language(text, language) is is_in


@given(st.text(), st.text(min_size=1))
def test_any_text_and_language_has_an_answer(text: str, language: str) -> None:
    assert is_in_language(text, language) in (True, False)
