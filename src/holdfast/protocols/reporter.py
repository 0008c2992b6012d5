"""A reporter: a rendering of a run, for `-o FILE` and `output.format`. For example:

    class OneWord:
        "`report.txt`: one word."

        suffix: ClassVar[str] = ".txt"

        def render(self, run: Run) -> Mapping[str, Iterable[bytes]]:
            return {"report.txt": [b"passed" if run.score.passed else b"failed"]}

`docs/extending.md` tells how such a plug-in is installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Protocol

from holdfast.model.run import Run


class Reporter(Protocol):
    """A rendering of a run. Pure, so that a golden test is one comparison; in pieces, so that a run may be large."""

    suffix: ClassVar[str]
    """The end of its files' names, with the dot: what `-o FILE` is recognised by."""

    def render(self, run: Run) -> Mapping[str, Iterable[bytes]]:
        """The content of every file by its name, made while it is written. The first is the report itself."""
        ...
