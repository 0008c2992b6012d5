"""What a strict user is refused: promises that are not kept, of those that were asked for."""

from __future__ import annotations

import pytest

from holdfast.model.world import AuditSettings, Isolation, Resources, WorldSpec
from holdfast.world.site_worlds import refuse_lacking, select_lacking
from refused import refused

MACHINE = (Isolation("network", True), Isolation("cpu limit", False, "no cgroup"), Isolation("ipc", False, "shared"))


def test_a_limit_that_nobody_set_is_not_lacking() -> None:
    assert [one.feature for one in select_lacking(WorldSpec(), MACHINE)] == ["ipc"]
    asked = WorldSpec(resources=Resources(cpu=2))
    assert [one.feature for one in select_lacking(asked, MACHINE)] == ["cpu limit", "ipc"]


@pytest.mark.parametrize("audit", [AuditSettings(file_writes=True), AuditSettings(file_writes=False)])
def test_a_log_that_nobody_wants_is_not_lacking(audit: AuditSettings) -> None:
    unseen = (Isolation("file audit", False, "not seen"),)
    assert bool(select_lacking(WorldSpec(audit=audit), unseen)) is audit.file_writes


def test_the_refusal_names_all_of_it_and_the_backend() -> None:
    with refused("world-not-enforced"):
        refuse_lacking(WorldSpec(resources=Resources(cpu=2)), MACHINE, "process")
    refuse_lacking(WorldSpec(), MACHINE[:2], "process")
