"""An agent with a sandbox of its own: refused with a note, or let, with what that weakens."""

import shutil

import pytest
from world_runs import ran, spec_of

from holdfast.world.supervisors.messages import find_bwrap

BWRAP = str(find_bwrap())
NESTED = f"{BWRAP} --ro-bind / / --dev /dev --tmpfs /tmp --unshare-pid --unshare-net sh -c 'echo nested; touch /x 2>&1'"


def agent(command, **more):
    return {"type": "command", "command": command, **more}


@pytest.mark.parametrize("command", [NESTED, f"{NESTED} 2>/dev/null || echo failed", "unshare -Ur true; exit 0"])
def test_without_the_key_a_note_says_what_to_write(tmp_path, command):
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    found = ran(tmp_path, spec_of(agent(command)))
    assert "nested" not in found.text
    (note,) = [note for note in found.only.notes if "agent.nested_sandbox: true" in note]
    assert "no sandbox" in note


def test_with_the_key_it_is_let_and_the_report_says_what_that_weakens(tmp_path):
    found = ran(tmp_path, spec_of(agent(NESTED, nested_sandbox=True)))
    assert found.lines == ["nested", "touch: cannot touch '/x': Read-only file system"], found.only
    (told,) = [one for one in found.only.isolation if one.feature == "nested user namespaces"]
    assert (told.enforced, "agent.nested_sandbox" in told.why) == (False, True)
    assert not [note for note in found.only.notes if "nested_sandbox" in note]


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed")
def test_with_the_key_a_program_has_namespaces_of_its_own(tmp_path):
    command = "unshare -Urn sh -c 'id -u; tail -n +3 /proc/net/dev | wc -l'"
    found = ran(tmp_path, spec_of(agent(command, nested_sandbox=True)))
    assert found.lines == ["0", "1"], found.only


def test_what_is_not_seen_stays_unseen_in_a_nested_sandbox(tmp_path):
    script = f"ls {tmp_path}; cat /etc/shadow; echo 1 > /proc/sys/kernel/core_pattern"
    look = f"{BWRAP} --bind / / --unshare-user sh -c '{script}'"
    found = ran(tmp_path, spec_of(agent(f"{look} 2>&1; true", nested_sandbox=True)))
    assert all("No such file" in line or "Read-only" in line or "denied" in line for line in found.lines), found.text
    assert len(found.lines) == 3
