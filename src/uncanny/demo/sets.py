"""The words by which commands and functions take a bundled set, where no file is called so."""

from __future__ import annotations

from typing import Final

SCENES: Final = "scenes"
LARGE_SCENES: Final = "large-scenes"
BUNDLED: Final = (SCENES, LARGE_SCENES)
