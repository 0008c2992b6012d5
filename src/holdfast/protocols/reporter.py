"""A reporter renders a run, for `-o FILE` and `output.format`. For example:

    class OneWord:
        "`report.txt`: one word."

        suffix: ClassVar[str] = ".txt"

        def render(self, run: Run) -> Mapping[str, Iterable[bytes]]:
            return {"report.txt": [b"passed" if run.score.passed else b"failed"]}

`docs/extending.md` shows how to install such a plug-in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Protocol

from holdfast.model.run import Run


class Reporter(Protocol):
    """Renders a run. Pure, so a golden test is one comparison; in pieces, so a run may be large."""

    suffix: ClassVar[str]
    """The suffix of its files, with the dot, by which `-o FILE` selects it."""

    def render(self, run: Run) -> Mapping[str, Iterable[bytes]]:
        """Return the content of every file by its name, produced while it is written.

        The first file is the report itself.
        """
