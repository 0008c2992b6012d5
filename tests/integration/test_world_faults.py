"""Faults of files, met by programs in a real sandbox; of the clock and of processes, on worlds that can have them."""

import asyncio
import contextlib
import os

import pytest

from holdfast.errors import HarnessError, UserError
from holdfast.model.spec import Injection, Scenario
from holdfast.model.world import Resources
from holdfast.protocols import SandboxSpec
from holdfast.world.disturbances import Disturbances
from holdfast.world.sandbox.bubblewrap import open_backend
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
async def place(tmp_path, **resources):
    layer = tmp_path / "layer"
    (layer / "data").mkdir(parents=True)
    (layer / "notes.txt").write_text("hello\n")
    (layer / "data" / "a.csv").write_text("1,2\n")
    for path in (tmp_path, layer, layer / "data"):
        path.chmod(0o755)
    folder = tmp_path / "backend"
    folder.mkdir(mode=0o755)
    try:
        backend = await open_backend(folder)
    except UserError as refused:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"bubblewrap cannot make a sandbox here: {refused}")
    try:
        sandbox = await backend.open(SandboxSpec("t", layers=(layer,), resources=Resources(**resources)))
        try:
            await sandbox.snapshot()
            yield Place(sandbox)
        finally:
            await sandbox.close()
    finally:
        await backend.close()


def disturbances(*placed, **keys):
    context = FakeContext()
    injections = tuple(Injection("world", "*", mode, settings) for mode, settings in placed)
    return Disturbances(Scenario("s", injections), context), context


def met(context):
    return [(entry.mode, entry.effect, entry.got) for entry in context.ledger]


def test_a_vanished_folder_is_gone_and_stays_away(tmp_path):
    async def run():
        async with place(tmp_path) as world:
            faults, context = disturbances(("vanished", {"path": "data"}))
            async with faults.around(world):
                inside = await world.sh("ls -A; cat data/a.csv")
            after = await world.sh("test -e data")
            changed = [*world.changes()]
            return inside, after.exit_code, changed, [*faults.of_agent(changed)], met(context)

    inside, after, changed, of_agent, entries = asyncio.run(run())
    assert inside.stdout == b"notes.txt\n"
    assert b"No such file" in inside.stderr
    assert (after, entries) == (1, [("vanished", "no_effect", "data: gone")])
    assert [(change.path, change.op) for change in changed] == [("data/a.csv", "deleted")]
    assert of_agent == []


def test_permission_is_denied_until_the_agent_has_ended(tmp_path):
    async def run():
        async with place(tmp_path) as world:
            faults, context = disturbances(("permission", {"path": "notes.txt"}))
            async with faults.around(world):
                inside = await world.sh("cat notes.txt; echo more >> notes.txt")
            after = await world.sh("cat notes.txt; stat -c %a notes.txt")
            return inside, after, met(context)

    inside, after, entries = asyncio.run(run())
    assert inside.stderr.count(b"Permission denied") == 2
    assert after.stdout.split() == [b"hello", b"644"]
    assert entries == [("permission", "no_effect", "notes.txt: permission denied")]


def test_a_read_only_workspace_can_be_read(tmp_path):
    async def run():
        async with place(tmp_path) as world:
            faults, _ = disturbances(("read_only", {}))
            async with faults.around(world):
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
            async with faults.around(world):
                inside = await world.sh("cat notes.txt; dd if=/dev/zero of=new bs=8k count=1 conv=fsync")
            after = await world.sh("echo fine > new; cat new; ls -A")
            return inside, after, met(context), context.troubles

    inside, after, entries, troubles = asyncio.run(run())
    assert troubles == []
    assert inside.stdout == b"hello\n"
    assert b"No space left on device" in inside.stderr
    assert after.stdout.split() == [b"fine", b"data", b"new", b"notes.txt"]
    assert entries == [("disk_full", "no_effect", "no space left on the disk")]


def test_a_disk_without_a_limit_is_never_filled(tmp_path):
    async def run():
        async with place(tmp_path) as world:
            faults, context = disturbances(("disk_full", {}))
            async with faults.around(world):
                pass
            return context

    context = asyncio.run(run())
    assert "needs a limit on the workspace's disk" in context.troubles[0]
    assert context.ledger == []


def test_what_is_not_there_cannot_be_disturbed(tmp_path):
    async def run():
        async with place(tmp_path) as world:
            await world.sh("ln -s /etc outside")
            faults, context = disturbances(
                ("vanished", {"path": "nothing"}), ("permission", {"path": "none"}), ("vanished", {"path": "outside/x"})
            )
            async with faults.around(world):
                pass
            return met(context), context.troubles

    entries, troubles = asyncio.run(run())
    assert [effect for _, effect, _ in entries] == ["no_effect"] * 3
    assert troubles == []


def test_a_fault_waits_for_the_first_file_that_is_written(tmp_path):
    async def run():
        async with place(tmp_path) as world:
            faults, context = disturbances(("vanished", {"path": "notes.txt", "on_event": "file_write"}))
            async with faults.around(world):
                await asyncio.sleep(0.2)
                before = met(context)
                await world.sh("echo x > new; for i in $(seq 100); do test -e notes.txt || exit 0; sleep 0.1; done")
                await asyncio.sleep(0.1)
            return before, met(context)

    before, after = asyncio.run(run())
    assert before == []
    assert after == [("vanished", "no_effect", "notes.txt: gone")]


def test_commands_of_ours_are_told_apart(tmp_path):
    async def run():
        async with place(tmp_path) as world:
            faults, _ = disturbances(("vanished", {"path": "notes.txt"}))
            async with faults.around(world):
                pass
            ours = ["rm", "-rf", "--", "./notes.txt"]
            return faults.own(["rm", "-rf", "--", "./data"]), faults.own(ours), faults.own(ours)

    assert asyncio.run(run()) == (False, True, False)


def test_a_sandbox_that_cannot_is_an_error_of_the_trial():
    class Bare:
        isolation = ()

    async def run():
        faults, context = disturbances(("killed", {}), ("memory_limit", {}), ("skew", {}))
        async with faults.around(Place(Bare())):
            pass
        return context

    context = asyncio.run(run())
    assert len(context.troubles) == 3
    assert context.ledger == []


def test_a_full_disk_where_limits_are_unknown_is_an_error():
    class Bare:
        isolation = ()

    from holdfast import plugins

    with pytest.raises(HarnessError, match="knows of none"):
        asyncio.run(plugins.find("faults.world", "disk_full")().disturb(Place(Bare()), None))
