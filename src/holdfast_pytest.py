"""The pytest plug-in: it collects spec files, and provides the fixture `holdfast`.

It imports nothing of Holdfast until a spec is collected or a test uses the fixture.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from holdfast.api.fixture import Holdfast
    from holdfast.api.spec_file import FileItem, ItemOutcome, SpecFile

_NAME, _SUFFIX = "holdfast.yaml", ".holdfast.yaml"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("holdfast", "agents held to their contract")
    group.addoption("--holdfast-seed", type=int, metavar="N", help="Random seed. Default: the seed of the spec.")
    group.addoption("--holdfast-replicas", type=int, metavar="N", help="Ask each prompt of a spec N times.")
    group.addoption("--no-holdfast", action="store_true", help=f"Collect no {_NAME} and *{_SUFFIX} files.")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not (file_path.name == _NAME or file_path.name.endswith(_SUFFIX)) or parent.config.getoption("no_holdfast"):
        return None
    collected: pytest.Collector = HoldfastFile.from_parent(parent, path=file_path)
    return collected


class HoldfastFile(pytest.File):
    """A spec file. Its items are the cells of its contract and the cases of its task."""

    spec: SpecFile

    def collect(self) -> Iterable[pytest.Item]:
        from holdfast.api.entry_points import format_details
        from holdfast.api.spec_file import SpecFile
        from holdfast.errors import HoldfastError, SpecError
        from holdfast.folders import get_runs_folder

        config = self.config
        runs = config.invocation_params.dir / get_runs_folder()
        self.spec = SpecFile(
            Path(os.path.relpath(self.path)),
            runs,
            seed=config.getoption("holdfast_seed"),
            replicas=config.getoption("holdfast_replicas"),
        )
        try:
            items = self.spec.list_items()
        except HoldfastError as wrong:
            head = [] if isinstance(wrong, SpecError) else [str(wrong)]
            raise self.CollectError("\n".join([*head, *format_details(wrong)])) from None
        if self.spec.no_items:
            self.warn(pytest.PytestCollectionWarning(self.spec.no_items))
        for item in items:
            # With its id as text, pytest also accepts the brackets of the name on the command line and from --lf.
            yield HoldfastItem.from_parent(self, name=item.name, nodeid=f"{self.nodeid}::{item.name}", item=item)


class HoldfastItem(pytest.Item):
    """A rule in a scenario, or the task in one. A harness error fails its setup, everything else its call."""

    def __init__(self, *, item: FileItem, **settings: Any) -> None:
        super().__init__(**settings)
        self.item = item
        self.decision: ItemOutcome | None = None

    def setup(self) -> None:
        file = self.parent
        assert isinstance(file, HoldfastFile)
        stops = self.config.getoption("maxfail") == 1
        decision = self.decision = file.spec.decide(self.item, self._list_wanted(), fail_fast=stops)
        self.user_properties += [("holdfast_outcome", decision.word), ("holdfast_run", decision.run)]
        if decision.warnings:
            self.add_report_section("setup", "holdfast", "\n".join(map(str, decision.warnings)))
        if decision.word == "error":
            pytest.fail("\n".join(decision.lines), pytrace=False)

    def _list_wanted(self) -> list[FileItem]:
        """List the items that one run decides: all selected items of the file; in a worker of xdist only this one."""
        if hasattr(self.config, "workerinput"):
            return [self.item]
        items = self.session.items
        return [one.item for one in items if isinstance(one, HoldfastItem) and one.parent is self.parent]

    def runtest(self) -> None:
        assert self.decision is not None
        if self.decision.word != "pass":
            pytest.fail("\n".join(self.decision.lines), pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.item.line - 1, self.name


@pytest.fixture
def holdfast(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Holdfast:
    """Run an agent on a prompt under faults: `holdfast.run("shop:answer", "What does it cost?", faults=[…])`."""
    from holdfast.api.fixture import Holdfast

    seed = request.config.getoption("holdfast_seed")
    return Holdfast(lambda: tmp_path_factory.mktemp("holdfast") / "runs", 0 if seed is None else seed)
