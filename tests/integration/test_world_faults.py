"""Faults of files, met by programs in a real sandbox; of the clock and of processes, on worlds that can have them."""

import asyncio
import contextlib

import pytest
from sandbox_kit import sandbox_in

from holdfast.errors import HarnessError
from holdfast.model.scenario import Injection
from holdfast.model.world import Resources
from holdfast.protocols.sandbox import SandboxSpec
from holdfast.world.disturbances import Disturbances
from planes_kit import FakeContext

ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}


class Place:
    """A world of which only the sandbox is there."""

    def __init__(self, sandbox):
        self.sandbox = sandbox

    def changes(self):
        return self.sandbox.changes()

    def sh(self, command):
        return self.sandbox.run(["/bin/sh", "-c", command], ENV, timeout_s=20)


@contextlib.asynccontextmanager
async def place(tmp_path, watched=("paths", "disk"), **resources):
    layer = tmp_path / "layer"
    (layer / "data").mkdir(parents=True)
    (layer / "notes.txt").write_text("hello\n")
    (layer / "data" / "a.csv").write_text("1,2\n")
    for path in (tmp_path, layer, layer / "data"):
        path.chmod(0o755)
    folder = tmp_path / "backend"
    folder.mkdir(mode=0o755)
    spec = SandboxSpec("t", layers=(layer,), resources=Resources(**resources), watched=watched)
    async with sandbox_in(folder, spec) as sandbox:
        await sandbox.snapshot()
        yield Place(sandbox)


def disturbances(*placed, **keys):
    context = FakeContext([Injection("world", "*", mode, settings) for mode, settings in placed])
    return Disturbances(context), context


def met(context):
    return [(entry.mode, entry.effect, entry.got) for entry in context.ledger]


def test_a_vanished_folder_is_gone_and_stays_away(tmp_path):
    async def run():
        async with place(tmp_path) as world:
            faults, context = disturbances(("vanished", {"path": "data"}))
            async with faults.act_during(world):
                inside = await world.sh("ls -A; cat data/a.csv")
            after = await world.sh("test -e data")
            changed = [*world.changes()]
            return inside, after.exit_code, changed, [*faults.list_agent_changes(changed)], met(context)

    inside, after, changed, of_agent, entries = asyncio.run(run())
    assert inside.stdout == b"notes.txt\n"
    assert b"No such file" in inside.stderr
    assert (after, entries) == (1, [("vanished", "met", "data: gone")])
    assert [(change.path, change.op) for change in changed] == [("data/a.csv", "deleted")]
    assert of_agent == []


def test_permission_is_denied_until_the_agent_has_ended(tmp_path):
    async def run():
        async with place(tmp_path) as world:
            faults, context = disturbances(("permission", {"path": "notes.txt"}))
            async with faults.act_during(world):
                inside = await world.sh("cat notes.txt; echo more >> notes.txt")
            after = await world.sh("cat notes.txt; stat -c %a notes.txt")
            return inside, after, met(context)

    inside, after, entries = asyncio.run(run())
    assert inside.stderr.count(b"Permission denied") == 2
    assert after.stdout.split() == [b"hello", b"644"]
    assert entries == [("permission", "met", "notes.txt: permission denied")]


def test_a_read_only_workspace_can_be_read(tmp_path):
    async def run():
        async with place(tmp_path) as world:
            faults, _ = disturbances(("read_only", {}))
            async with faults.act_during(world):
                inside = await world.sh("cat notes.txt; echo x > new; echo x > data/a.csv; echo x > data/b.csv")
            after = await world.sh("echo x > new && echo x > data/b.csv && cat data/a.csv")
            return inside, after

    inside, after = asyncio.run(run())
    assert inside.stdout == b"hello\n"
    assert inside.stderr.count(b"Permission denied") == 3
    assert (after.exit_code, after.stdout) == (0, b"1,2\n")


def test_a_full_disk_takes_nothing_and_is_emptied_again(tmp_path):
    async def run():
        async with place(tmp_path, disk=4_000_000) as world:
            faults, context = disturbances(("disk_full", {}))
            async with faults.act_during(world):
                inside = await world.sh("cat notes.txt; dd if=/dev/zero of=new bs=8k count=1 conv=fsync")
            after = await world.sh("echo fine > new; cat new; ls -A")
            return inside, after, met(context), context.troubles

    inside, after, entries, troubles = asyncio.run(run())
    assert troubles == []
    assert inside.stdout == b"hello\n"
    assert b"No space left on device" in inside.stderr
    assert after.stdout.split() == [b"fine", b"data", b"new", b"notes.txt"]
    assert [entry[:2] for entry in entries] == [("disk_full", "met")]


def test_a_disk_without_a_limit_is_never_filled(tmp_path):
    async def run():
        async with place(tmp_path) as world:
            faults, context = disturbances(("disk_full", {}))
            async with faults.act_during(world):
                pass
            return context

    context = asyncio.run(run())
    assert "disk" in context.troubles[0]
    assert context.ledger == []


def test_what_is_not_there_cannot_be_disturbed(tmp_path):
    async def run():
        async with place(tmp_path) as world:
            await world.sh("ln -s /etc outside")
            faults, context = disturbances(
                ("vanished", {"path": "nothing"}), ("permission", {"path": "none"}), ("vanished", {"path": "outside/x"})
            )
            async with faults.act_during(world):
                pass
            return met(context), context.troubles

    entries, troubles = asyncio.run(run())
    assert [effect for _, effect, _ in entries] == ["no_effect"] * 3
    assert troubles == []


def test_a_fault_waits_for_the_first_file_that_is_written(tmp_path):
    async def run():
        async with place(tmp_path) as world:
            faults, context = disturbances(("vanished", {"path": "notes.txt", "on_event": "file_write"}))
            async with faults.act_during(world):
                await asyncio.sleep(0.2)
                before = met(context)
                await world.sh("echo x > new; for i in $(seq 100); do test -e notes.txt || exit 0; sleep 0.1; done")
                await asyncio.sleep(0.1)
            return before, met(context)

    before, after = asyncio.run(run())
    assert before == []
    assert after == [("vanished", "met", "notes.txt: gone")]


def test_commands_of_ours_are_told_apart(tmp_path):
    async def run():
        async with place(tmp_path) as world:
            faults, _ = disturbances(("vanished", {"path": "notes.txt"}))
            async with faults.act_during(world):
                pass
            ours = ["rm", "-rf", "--", "./notes.txt"]
            return (
                faults.is_own_command(["rm", "-rf", "--", "./data"]),
                faults.is_own_command(ours),
                faults.is_own_command(ours),
            )

    assert asyncio.run(run()) == (False, True, False)


def test_a_sandbox_that_cannot_is_an_error_of_the_trial():
    class Bare:
        isolation = ()

    async def run():
        faults, context = disturbances(("killed", {}), ("memory_limit", {}), ("skew", {}))
        async with faults.act_during(Place(Bare())):
            pass
        return context

    context = asyncio.run(run())
    assert len(context.troubles) == 3
    assert context.ledger == []


def test_a_full_disk_where_limits_are_unknown_is_an_error():
    class Bare:
        isolation = ()

    from holdfast import plugins

    with pytest.raises(HarnessError, match="has none"):
        asyncio.run(plugins.find("faults.world", "disk_full")().disturb(Place(Bare()), None))


def noted(tmp_path, fault, settings, command, *, before="true", spare=(), **keys):
    """What the ledger has of a fault that a command of the agent's met, or did not."""

    async def run():
        async with place(tmp_path, **keys) as world:
            await world.sh(before)
            faults, context = disturbances((fault, settings), *spare)
            async with faults.act_during(world):
                ran = await world.sh(command)
            assert context.troubles == []
            return ran, context.ledger[0]

    ran, entry = asyncio.run(run())
    return entry.effect, entry.note, ran


PYTHON = "/usr/bin/env python3 -c"
GONE = ("vanished", {"path": "data"})
NO_FILE = ("vanished", {"path": "data/a.csv"})
DENIED = ("permission", {"path": "notes.txt"})
NO_FOLDER = ("permission", {"path": "data"})
SEALED = ("read_only", {})
NOTES_ONLY = ("read_only", {"path": "notes.txt"})
FULL = ("disk_full", {})


@pytest.mark.parametrize(
    ("fault", "command"),
    [
        (GONE, "cat data/a.csv"),
        (GONE, "cat /workspace/data/a.csv"),
        (GONE, "cd /usr; cat ../workspace/./data/../data/a.csv"),
        (GONE, "test -e data"),
        (GONE, "cd data"),
        (GONE, "echo x > data/new"),
        (GONE, "rm -r data"),
        (GONE, "mv data other"),
        (GONE, "(sh -c 'exec cat data/a.csv') & wait"),
        (GONE, "setsid -f sh -c 'cat data/a.csv; touch done'; while [ ! -e done ]; do sleep 0.01; done"),
        (GONE, f'{PYTHON} \'import os; fd = os.open(".", os.O_RDONLY); os.stat("data/a.csv", dir_fd=fd)\''),
        (NO_FILE, "ln -s data/a.csv link; cat link"),
        (NO_FILE, "ln -s /workspace/data /tmp/folder; cat /tmp/folder/a.csv"),
        (NO_FILE, "env -i /bin/cat data/a.csv"),
        (DENIED, "cat notes.txt"),
        (DENIED, "echo more >> notes.txt"),
        (DENIED, "ln notes.txt other 2>/dev/null; test -r notes.txt"),
        (NO_FOLDER, "ls data"),
        (NO_FOLDER, "stat data/a.csv"),
        (NO_FOLDER, "mkdir data/more"),
        (SEALED, "echo x > new"),
        (SEALED, "echo x > data/a.csv"),
        (SEALED, "rm data/a.csv"),
        (SEALED, "mkdir data/more"),
        (SEALED, "mv notes.txt other"),
        (SEALED, f"{PYTHON} 'import os; os.truncate(\"notes.txt\", 0)'"),
        (SEALED, "ln -s notes.txt link"),
        (NOTES_ONLY, "echo x > notes.txt"),
        (FULL, "echo x > new"),
        (FULL, "echo x >> notes.txt"),
        (FULL, "cp data/a.csv new"),
        (FULL, f'{PYTHON} \'import os; os.writev(os.open("new", 65), [b"x", b"y"])\''),
        (FULL, f'{PYTHON} \'import os; os.pwrite(os.open("new", 65), b"x", 9)\''),
        (FULL, f'{PYTHON} \'import shutil; shutil.copyfile("notes.txt", "new")\''),
        (FULL, "echo x > /tmp/new"),
    ],
)
def test_a_fault_of_files_is_met_if_a_call_fails_for_it(tmp_path, fault, command):
    effect, note, _ = noted(tmp_path, *fault, f"{command} 2>/dev/null", disk=4_000_000)
    assert (effect, note) == ("met", "")


@pytest.mark.parametrize(
    ("fault", "command"),
    [
        (GONE, "ls; cat notes.txt; echo x > database"),
        (GONE, "mkdir data"),
        (GONE, "ln -s nowhere data-link; cat data-link 2>/dev/null"),
        (NO_FILE, "ls data; cat notes.txt"),
        (NO_FILE, "echo new > data/a.csv; cat data/a.csv"),
        (DENIED, "stat notes.txt; ls -l; cat data/a.csv"),
        (NO_FOLDER, "stat data; cat notes.txt"),
        (SEALED, "cat notes.txt data/a.csv; ls; echo x > /tmp/new"),
        (SEALED, "mkdir data 2>/dev/null"),
        (FULL, "cat notes.txt; echo x > /dev/null; rm data/a.csv; echo x | cat"),
        (FULL, "rm .holdfast-ballast; echo x > new"),
        (FULL, ": > new; mkdir folder"),
    ],
)
def test_a_fault_of_files_is_not_met_by_what_succeeds(tmp_path, fault, command):
    effect, note, ran = noted(tmp_path, *fault, command, disk=4_000_000)
    assert effect == "no_effect", (note, ran)


@pytest.mark.parametrize(
    ("fault", "command", "deed"),
    [
        (NOTES_ONLY, "sed -i s/hello/bye/ notes.txt", "replaced"),
        (NOTES_ONLY, "echo x > other; mv -f other notes.txt", "replaced"),
        (NOTES_ONLY, "rm -f notes.txt; echo x > other", "removed"),
        (DENIED, "rm -f notes.txt", "removed"),
        (DENIED, "chmod 600 notes.txt; cat notes.txt", "permissions"),
        (SEALED, "chmod 600 notes.txt; echo x > notes.txt", "permissions"),
    ],
)
def test_an_agent_that_gets_around_permissions_is_not_said_to_have_touched_nothing(tmp_path, fault, command, deed):
    effect, note, ran = noted(tmp_path, *fault, command)
    assert (effect, deed in note, "notes.txt" in note) == ("no_effect", True, True), (note, ran)


@pytest.mark.parametrize(
    ("fault", "before", "command"),
    [
        (SEALED, "chmod 444 notes.txt", "echo x > notes.txt"),
        (SEALED, "chmod 555 data", "echo x > data/new"),
        (DENIED, "chmod 000 notes.txt", "cat notes.txt"),
    ],
)
def test_what_would_have_failed_anyway_is_not_met(tmp_path, fault, before, command):
    effect, note, ran = noted(tmp_path, *fault, f"{command} 2>/dev/null", before=before)
    assert effect == "no_effect", (note, ran)


def test_a_write_where_there_is_room_already_is_not_met(tmp_path):
    effect, _, ran = noted(tmp_path, *FULL, "echo x >> mine && cat mine", before="echo first > mine", disk=4_000_000)
    assert (effect, ran.stdout) == ("no_effect", b"first\nx\n")


def test_a_path_through_a_link_is_met_where_it_leads(tmp_path):
    fault = ("permission", {"path": "link/a.csv"})
    assert noted(tmp_path, *fault, "cat data/a.csv", before="ln -s data link")[0] == "met"
    fault = ("vanished", {"path": "link"})
    assert noted(tmp_path / "2", *fault, "cat data/a.csv", before="ln -s data link")[0] == "no_effect"


def test_what_faults_and_evidence_read_is_not_the_agents(tmp_path):
    spare = (
        ("permission", {"path": "data/a.csv"}),
        ("read_only", {"path": "data"}),
        ("vanished", {"path": "notes.txt"}),
    )

    async def run():
        async with place(tmp_path) as world:
            faults, context = disturbances(*spare)
            async with faults.act_during(world):
                await world.sh("true")
                _ = [*world.changes()], world.sandbox.find("data/a.csv"), world.sandbox.find("notes.txt")
            return [(entry.effect, entry.note) for entry in context.ledger], context.troubles

    entries, troubles = asyncio.run(run())
    assert troubles == []
    assert [effect for effect, _ in entries] == ["no_effect"] * 3


def test_a_sandbox_that_is_not_watched_cannot_tell(tmp_path):
    effect, note, _ = noted(tmp_path, *GONE, "cat data/a.csv", watched=())
    assert effect == "no_effect"
    assert "Holdfast cannot see" in note


def test_what_the_agent_did_before_a_fault_counts_for_nothing(tmp_path):
    async def run():
        async with place(tmp_path) as world:
            faults, context = disturbances(("vanished", {"path": "notes.txt", "on_event": "command"}))
            async with faults.act_during(world):
                await world.sh("cat notes.txt; cat nothing")
                faults.handle_event("command")
                while not context.ledger:
                    await asyncio.sleep(0.01)
            return context.ledger[0].effect

    assert asyncio.run(run()) == "no_effect"
