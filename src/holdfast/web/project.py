"""A project in the viewer: its list of runs, the opened runs, and people's notes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.folders import get_own_folder_of
from holdfast.web.notes import Notes
from holdfast.web.opened_runs import OpenedRuns
from holdfast.web.run_list import RunList, TellChanged


class Project:
    """The runs of one folder, while somebody looks at them."""

    def __init__(self, runs: Path, environ: Mapping[str, str], *, changed: TellChanged = lambda ids: None) -> None:
        self.runs = runs.absolute()
        self.environ = environ
        self.notes = Notes(get_own_folder_of(self.runs))
        self.list = RunList(self.runs, changed=changed)
        self.opened = OpenedRuns(self.runs, environ)

    @property
    def name(self) -> str:
        """The name of the project's folder."""
        return get_own_folder_of(self.runs.resolve()).parent.name

    def close(self) -> None:
        self.list.close()
        self.opened.close()
