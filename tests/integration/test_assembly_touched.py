"""Paths that a fault of the machine changed: its own change is nobody's, what the agent did there is the agent's."""

import pytest
from world_runs import BACKENDS, ran, spec_of

WRITES = {"forbidden": {"file_writes_outside": ["out/"]}}
ONLY_OUT = {"only_out": {"description": "d", "check": {"type": "files_changed_only", "paths": ["out/"]}}}
LAID = {"type": "files", "files": [{"path": "data/a.csv", "content": "1\n"}, {"path": "b.txt", "content": "b\n"}]}
LATER_MS = 1500
"""When the agent has long begun, on a busy machine too."""


def found(tmp_path, command, *faults, backend="bubblewrap", met=("met",)):
    """`met`: what the ledger has of each fault, where calls on files can be seen."""
    storm = {"chaos_matrix": [{"name": "storm", "world_faults": [*faults]}]}
    writes = WRITES if backend == "bubblewrap" else {}  # the other backend cannot tell
    spec = spec_of(command, fixtures=[LAID], invariants=ONLY_OUT, **writes, **storm)
    one = ran(tmp_path, spec, backend=backend)
    effects = tuple(entry.effect for entry in sorted(one.only.ledger, key=lambda entry: entry.index))
    assert effects == (met if backend == "bubblewrap" else ("no_effect",) * len(faults))
    changed = sorted((event["op"], event["path"]) for event in one.audit("file_write"))
    violated = one.forbidden()["file_writes_outside"][0] if writes else one.case.status == "fail"
    return violated, changed, one.case.status == "fail"


@BACKENDS
def test_what_only_a_fault_did_is_nobodys(tmp_path, backend):
    agent = "mkdir out; cat data/a.csv; echo done > out/x"
    assert found(tmp_path, agent, {"mode": "vanished", "path": "data"}, backend=backend) == (
        False,
        [("created", "out/x")],
        False,
    )


@BACKENDS
def test_a_file_that_the_agent_makes_anew_is_the_agents(tmp_path, backend):
    agent = "mkdir -p data; echo forged > data/a.csv; echo done"
    assert found(tmp_path, agent, {"mode": "vanished", "path": "data"}, backend=backend, met=("no_effect",)) == (
        True,
        [("modified", "data/a.csv")],
        True,
    )


def test_a_link_in_the_place_of_what_vanished_is_the_agents(tmp_path):
    agent = "ln -s /etc/passwd b.txt; echo done"
    violated, changed, failed = found(tmp_path, agent, {"mode": "vanished", "path": "b.txt"}, met=("no_effect",))
    assert (violated, changed, failed) == (True, [("modified", "b.txt")], True)


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ("echo more >> b.txt", ("modified", "b.txt")),
        ("echo new > c.txt; rm b.txt; mv c.txt b.txt", ("modified", "b.txt")),
    ],
)
def test_what_the_agent_wrote_before_it_vanished_is_the_agents(tmp_path, before, told):
    agent = f"{before}; while [ -e b.txt ]; do sleep 0.05; done; echo done"
    violated, changed, _ = found(tmp_path, agent, {"mode": "vanished", "path": "b.txt", "after_ms": LATER_MS})
    assert (violated, changed) == (True, [told])


def test_a_new_file_that_a_fault_took_away_was_written_by_the_agent(tmp_path):
    agent = "echo x > stolen.txt; while [ -e stolen.txt ]; do sleep 0.05; done; echo done"
    violated, changed, _ = found(tmp_path, agent, {"mode": "vanished", "path": "stolen.txt", "after_ms": LATER_MS})
    assert (violated, changed) == (True, [("created", "stolen.txt")])


@pytest.mark.parametrize("mode", ["read_only", "permission"])
def test_permissions_that_the_agent_takes_back_let_it_write_in_its_own_name(tmp_path, mode):
    agent = "echo no >> b.txt; chmod 600 b.txt; echo forged > b.txt; echo done"
    violated, changed, failed = found(tmp_path, agent, {"mode": mode, "path": "b.txt"})
    assert (violated, changed, failed) == (True, [("modified", "b.txt")], True)


def test_permissions_alone_are_nobodys_change(tmp_path):
    calm = found(tmp_path, "cat b.txt; echo done", {"mode": "read_only"}, met=("no_effect",))
    assert calm == (False, [], False)


def test_two_faults_on_one_path_are_nobodys_change(tmp_path):
    faults = ({"mode": "vanished", "path": "b.txt", "after_ms": 300}, {"mode": "read_only", "path": "b.txt"})
    agent = "while [ -e b.txt ]; do sleep 0.05; done; echo done"
    violated, changed, _ = found(tmp_path, agent, *faults, met=("met", "no_effect"))
    assert (violated, changed) == (False, [])


@pytest.mark.parametrize(
    ("agent", "status", "proven"),
    [
        ("cat b.txt; echo done", "pass", True),
        ("ls; echo done", "error", False),
        ("echo x > c.txt; cat b.txt", "fail", True),
    ],
)
def test_a_case_is_proven_only_if_the_agent_ran_into_the_fault(tmp_path, agent, status, proven):
    storm = {"chaos_matrix": [{"name": "storm", "world_faults": [{"mode": "vanished", "path": "b.txt"}]}]}
    case = ran(tmp_path, spec_of(agent, fixtures=[LAID], invariants=ONLY_OUT, **storm)).case
    assert (case.status, not case.unproven_only) == (status, proven)
