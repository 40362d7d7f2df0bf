"""How one model of the fake server differs from the next: by its name and the server's seed, always the same.

The demo model has no character. One that has sees less of what is wrong, now and then something that is not,
judges more or less harshly, draws its boxes worse, and errs more: more often about what is hard for all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

T = TypeVar("T")
_SCALE = 2.0**-64
DEMO: Final = "demo"


@dataclass(frozen=True, slots=True)
class Character:
    """A model name at a server with this seed. All shares are 0–1.

    Equal names and seeds draw the same about the same thing; what is drawn of one thing says nothing of
    another.
    """

    model: str
    seed: int = 0

    def draw(self, *about: object) -> float:
        """Uniform in 0–1, this model's own."""
        return _uniform(self.seed, self.model, *about)

    def shared(self, *about: object) -> float:
        """Uniform in 0–1, the same for all models at this server: how hard something is, say."""
        return _uniform(self.seed, None, *about)

    def trait(self, name: str, low: float, high: float) -> float:
        """What this model is like, between two bounds."""
        return low + (high - low) * self.draw("trait", name)

    def errs(self, *about: object) -> bool:
        """Whether it gets this wrong: between one in 20 and one in 2, more often what is hard for all."""
        return self.draw("errs", *about) < 2 * self.trait("errs", 0.05, 0.5) * self.shared("hard", *about)

    def chooses(self, options: Sequence[T], *about: object) -> T:
        """One of the options; about half of the time the one that other models choose, too."""
        alike = self.draw("alike", *about) < self.trait("alike", 0.3, 0.7)
        at = (self.shared if alike else self.draw)("chooses", *about)
        return options[int(at * len(options))]

    def other(self, options: Iterable[T], than: T, *about: object) -> T:
        """Another one of the options than this; the same where there is none."""
        others = [each for each in options if each != than]
        return self.chooses(others, "other", *about) if others else than

    def severity(self, severity: int, about: str) -> int:
        """How real it finds what others find so real, 0–100."""
        shift = self.trait("harsh", -15, 15) + 12 * (self.draw("severity", about) - 0.5)
        return min(100, max(0, round(severity + shift)))


def character_of(model: str, seed: int) -> Character | None:
    """That of a model name; one that ends in `demo` has none and answers as the demo model does."""
    return None if model.endswith(DEMO) else Character(model, seed)


def seed_of(character: Character | None, text: str) -> str:
    """A text to draw from: the text itself, or with a character this model's own."""
    return text if character is None else f"{character.seed}\0{character.model}\0{text}"


def _uniform(*about: object) -> float:
    digest = hashlib.sha256("\0".join(map(str, about)).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") * _SCALE
