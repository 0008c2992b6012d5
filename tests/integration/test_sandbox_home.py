"""HOME is a folder of the trial's own: filled by the spec, written by the agent, no part of its work."""

from world_runs import BACKENDS, ran, spec_of

RULES = {
    "only_that": {"description": "d", "check": {"type": "files_changed_only", "paths": ["made.txt"]}},
    "sees_home": {"description": "d", "check": {"type": "command_exit", "command": 'grep -q said "$HOME/.bot/state"'}},
}


@BACKENDS
def test_what_an_agent_keeps_in_its_home_is_not_its_work(tmp_path, backend):
    setup = {
        "home_files": [
            {"path": ".bot/settings.json", "content": "{}", "mode": "0600"},
            {"path": ".bot/run", "source": "run.sh"},
        ],
        "commands": ["echo set up >> ~/.bot/state"],
    }
    command = 'cat ~/.bot/settings.json; sh ~/.bot/run; cd; pwd; stat -c %a .bot/settings.json; ls -A "$OLDPWD"'
    forbidden = {"file_writes_outside": ["made.txt"]} if backend == "bubblewrap" else {}  # the other cannot tell
    spec = spec_of(command, setup=setup, invariants=RULES, forbidden=forbidden)
    found = ran(tmp_path, spec, files={"run.sh": "echo said >> ~/.bot/state; echo x > made.txt"}, backend=backend)
    assert (found.case.status, found.case.reason) == ("pass", ""), found.only
    first, mode, listed = found.lines
    assert (mode, listed) == ("600", "made.txt")
    assert first == "{}/home/agent" if backend == "bubblewrap" else first.endswith("/home")
    assert [event["path"] for event in found.audit("file_write")] == ["made.txt"]


def test_a_home_is_new_for_every_trial(tmp_path):
    found = ran(tmp_path, spec_of("ls -A ~; echo x > ~/x", parallelism={"replicas": 2}))
    assert [seen.turns[0].text for seen in found.seen] == [None, None]


def test_a_home_counts_towards_the_disk(tmp_path):
    command = "head -c 20000000 /dev/zero > ~/big || echo full"
    found = ran(tmp_path, spec_of(command, resources={"disk": "8Mi"}))
    assert found.text == "full"
