"""One line at a terminal that is drawn again in place, and says first what its readers look for.

How far, how fast and how long still are on it at any width; what else there is to say follows as far as there
is room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

# Narrower windows have room for words alone.
_WITH_BAR: Final = 70
_WIDE: Final = 100
_SHORT_BAR: Final = 8
_LONG_BAR: Final = 16
_BETWEEN: Final = " · "


@dataclass(frozen=True, slots=True)
class LineParts:
    """What a line says.

    `heads` are the same words in ever fewer characters, of which the first one that fits is shown. `rest`
    follows in its order. `share` is how much is done, 0 to 1, None where nobody knows of how much.
    """

    heads: Sequence[str]
    rest: Sequence[str] = ()
    share: float | None = None

    def whole(self) -> str:
        """All of it, as for a log."""
        return _BETWEEN.join([self.heads[0], *self.rest])

    def fitted(self, width: int) -> str:
        """As much of it as `width` characters hold."""
        line = next((head for head in self.heads if len(head) <= width), self.heads[-1][:width])
        for part in self.rest:
            if len(line) + len(_BETWEEN) + len(part) > width:
                break
            line += _BETWEEN + part
        return line


class LiveLine:
    """`parts` on standard error, as they are each time `draw` is called; gone when it is closed."""

    def __init__(self, parts: Callable[[], LineParts]) -> None:
        from rich.console import Console
        from rich.live import Live

        self._parts = parts
        self._live = Live(self, console=Console(stderr=True), transient=True, auto_refresh=False)

    def open(self) -> None:
        self._live.start()

    def draw(self) -> None:
        self._live.refresh()

    def close(self) -> None:
        self._live.stop()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        parts = self._parts()
        # A terminal that has its last column filled may begin another line.
        room = options.max_width - 1
        bar = 0 if room < _WITH_BAR else _SHORT_BAR if room < _WIDE else _LONG_BAR
        words = Text(parts.fitted(room - bar - bool(bar)), no_wrap=True, overflow="crop", end="")
        if not bar or parts.share is None:
            yield words
            return
        line = Table.grid(padding=(0, 1, 0, 0))
        line.add_row(ProgressBar(total=1.0, completed=parts.share, width=bar), words)
        yield line
