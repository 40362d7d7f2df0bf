"""Whether a text is in the language that was asked for, as far as its letters tell."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Final

# The first words of the Unicode names of the letters that languages are written in, by their English and own
# names. Languages in Latin letters are not told apart.
_LETTERS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("english", "french", "français", "german", "deutsch", "spanish", "español"), ("LATIN",)),
    **dict.fromkeys(("italian", "italiano", "portuguese", "português", "dutch", "nederlands"), ("LATIN",)),
    **dict.fromkeys(("polish", "czech", "swedish", "turkish", "vietnamese", "indonesian"), ("LATIN",)),
    **dict.fromkeys(("chinese", "mandarin", "cantonese", "中文", "汉语", "漢語"), ("CJK",)),
    **dict.fromkeys(("japanese", "日本語"), ("HIRAGANA", "KATAKANA", "CJK")),
    **dict.fromkeys(("korean", "한국어"), ("HANGUL",)),
    **dict.fromkeys(("russian", "ukrainian", "bulgarian", "serbian", "русский", "українська"), ("CYRILLIC",)),
    **dict.fromkeys(("greek", "ελληνικά"), ("GREEK",)),
    **dict.fromkeys(("arabic", "persian", "farsi", "urdu", "العربية", "فارسی"), ("ARABIC",)),
    **dict.fromkeys(("hebrew", "עברית"), ("HEBREW",)),
    **dict.fromkeys(("hindi", "marathi", "nepali", "हिन्दी"), ("DEVANAGARI",)),
    **dict.fromkeys(("bengali", "বাংলা"), ("BENGALI",)),
    **dict.fromkeys(("tamil", "தமிழ்"), ("TAMIL",)),
    **dict.fromkeys(("thai", "ไทย"), ("THAI",)),
}
# Names and numbers stay as they are in any language.
_LEAST: Final = 0.3
# So many letters tell, and a text may be long.
_READ: Final = 500


def is_in_language(text: str, language: str) -> bool:
    """False only where more than two thirds of the letters of `text` are not those of `language`.

    True where the letters do not tell: of a language that is not known, and of a text without letters.
    """
    words = language.casefold().replace("(", " ").split()
    letters = next((_LETTERS[word] for word in words if word in _LETTERS), None)
    names = [unicodedata.name(each, "") for each in text[:_READ] if each.isalpha()]
    if letters is None or not names:
        return True
    return sum(name.startswith(letters) for name in names) >= _LEAST * len(names)
