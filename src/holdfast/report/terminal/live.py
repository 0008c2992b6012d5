"""A listener for a terminal: shows the current state, redrawn in place and removed at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from typing import TYPE_CHECKING, TextIO

from holdfast.model.events import Event, RunEnded, RunStarted
from holdfast.report.safe import get_painter, shorten, to_one_line
from holdfast.report.terminal.matrix import draw, fits_screen
from holdfast.report.terminal.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live as RichLive
    from rich.text import Text

REDRAW_S = 0.1
"""Seconds between redraws: ten per second look alive, and more would slow the run."""
_BAR = 40
_TRIALS = 4
"""Running trials that are shown."""


class Live:
    """Listens and redraws at most ten times a second. Call `tick` regularly if events are rare."""

    def __init__(
        self,
        stream: TextIO,
        *,
        clock: Callable[[], float] = monotonic,
        color: bool = True,
    ) -> None:
        self._stream, self._clock, self._color = stream, clock, color
        self._paint = get_painter(color)
        self._progress = Progress()
        self._began = self._next = clock()
        self._screen: RichLive | None = None

    def __call__(self, event: Event) -> None:
        self._progress(event)
        kind = type(event)
        if kind is RunStarted:
            self._open()
        elif kind is RunEnded:
            self.close()
        elif self._clock() >= self._next:
            self.tick()

    def tick(self) -> None:
        """Redraw if it is time to."""
        now = self._clock()
        if self._screen is not None and now >= self._next:
            self._next = now + REDRAW_S
            self._screen.update(self._draw(now), refresh=True)

    def close(self) -> None:
        """Remove the display; the summary follows."""
        if self._screen is not None:
            self._screen.stop()
            self._screen = None

    def _open(self) -> None:
        from rich.live import Live as RichLive

        self._began = self._clock()
        console = _open_console(self._stream, self._color)
        console.print(self._build_text(to_one_line(self._progress.header)), soft_wrap=True)
        self._screen = RichLive(console=console, auto_refresh=False, transient=True, redirect_stdout=False)
        self._screen.start()
        self.tick()

    def _draw(self, now: float) -> Text:
        assert self._screen is not None
        size = self._screen.console.size
        lines = [self._draw_bar(now - self._began, size.width), *self._list_calls(size.width)]
        if fits_screen(self._progress.grid, size.width, size.height - 3 - len(lines)):
            lines += ["", *draw(self._progress.grid, size.width, self._paint)]
        return self._build_text("\n".join(lines))

    def _draw_bar(self, elapsed: float, width: int) -> str:
        progress = self._progress
        failed = f"{progress.failed} failed"
        used = "".join(f"   {words}" for words in (progress.workers, progress.used) if words)
        times = f"{_format_time(elapsed)}{self._estimate_rest(elapsed)}"
        facts = f"  {progress.done}/{progress.total}   {failed}   {times}{used}"
        room = max(0, min(_BAR, width - len(facts) - 1))
        filled = min(room, room * progress.done // progress.total) if progress.total else 0
        bar = self._paint("━" * filled, "pass") + self._paint("─" * (room - filled), "dim")
        return bar + (facts.replace(failed, self._paint(failed, "fail")) if progress.failed else facts)

    def _list_calls(self, width: int) -> Iterator[str]:
        """Yield the running trials with the most calls: how many, and the last one."""
        running = sorted(self._progress.under_way.values(), key=lambda one: -one.made)
        for one in running[:_TRIALS]:
            many = f"{one.made} call{'' if one.made == 1 else 's'}"
            yield self._paint(shorten(to_one_line(f"  {one.where}: {many}, last {one.last}"), width - 1), "dim")

    def _estimate_rest(self, elapsed: float) -> str:
        """Return an estimate of the remaining time from the pace so far; empty before there is one."""
        # Trials that an earlier session ran took no time in this one, so they say nothing about the pace.
        run, left = self._progress.done - self._progress.taken_over, self._progress.total - self._progress.done
        return f", about {_format_time(elapsed / run * left)} left" if run > 0 and left > 0 else ""

    def _build_text(self, text: str) -> Text:
        from rich.text import Text

        return Text.from_ansi(text, no_wrap=True, overflow="ellipsis")


def _open_console(stream: TextIO, color: bool) -> Console:
    from rich.console import Console

    return Console(file=stream, force_terminal=True, no_color=not color, highlight=False, markup=False, emoji=False)


def _format_time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
