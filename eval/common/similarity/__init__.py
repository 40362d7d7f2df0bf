"""How close two texts are in meaning, by a measure that can be chosen."""

from typing import Literal

SimilarityName = Literal["bertscore", "chrf"]
