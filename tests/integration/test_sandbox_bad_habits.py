"""Agents with bad habits, in whole runs: they daemonise, fill their home, want a GPU or browser, change themselves."""

import os
import subprocess

import pytest
from world_runs import BACKENDS, ran, spec_of


@BACKENDS
def test_an_agent_that_daemonises_leaves_nothing_behind(tmp_path, backend):
    mark = f"6{os.getpid()}0{len(backend)}"
    found = ran(tmp_path, spec_of(f"setsid -f sleep {mark}; echo done"), backend=backend)
    assert (found.only.ending, found.text) == ("answered", "done")
    assert subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True).stdout == b""


def test_an_agent_that_writes_without_end_is_stopped_by_its_disk_and_leaves_nothing(tmp_path):
    command = "cat /dev/zero > ~/.cache-of-the-agent; echo $?; du -m ~ | tail -1"
    found = ran(tmp_path, spec_of(command, resources={"disk": "16Mi"}))
    code, used = found.lines
    assert (code, int(used.split()[0]) <= 17) == ("1", True)
    assert "No space left" in found.only.output
    assert not [path for path in tmp_path.rglob("*") if path.name == ".cache-of-the-agent"]


@pytest.mark.parametrize(
    ("says", "wants"), [("RuntimeError: No CUDA GPUs are available", "a GPU"), ("xdg-open: no method", "a browser")]
)
def test_what_a_sandbox_does_not_show_is_named(tmp_path, says, wants):
    spec = spec_of(f"echo '{says}' >&2; exit 1")
    found = ran(tmp_path, spec)
    assert found.only.ending == "crashed"
    assert says in found.only.turns[0].detail
    assert [f" {wants}: " in note for note in found.only.notes] == [True]
    assert ran(tmp_path, spec, backend="process").only.notes == ()


def test_a_sandbox_shows_no_device_of_the_machine(tmp_path):
    found = ran(tmp_path, spec_of("ls /dev"))
    assert set(found.lines) >= {"null", "urandom"}
    assert not {"dri", "kfd", "kvm", "nvidia0", "nvidiactl", "snd"} & set(found.lines)


def test_an_agent_that_updates_itself_cannot_in_a_sandbox_and_is_told_without_one(tmp_path):
    home, at = tmp_path / "home", tmp_path / "spec"
    at.mkdir()
    (home / "bin").mkdir(parents=True)
    bot = home / "bin/bot"
    bot.write_text(
        "#!/bin/sh\nprintf '#!/bin/sh\\necho new' > $0 2>/dev/null && mv -f $0 $0.old && cp $0.old $0; echo ran\n"
    )
    bot.chmod(0o755)
    environ = {"HOME": str(home), "PATH": f"{home}/bin:/usr/bin:/bin"}
    before = bot.read_bytes()
    found = ran(at, spec_of("bot"), environ=environ)
    assert (found.text, bot.read_bytes() == before) == ("ran", True)
    assert not [note for note in found.notes if str(bot) in note and "sees" not in note]
    found = ran(at, spec_of("bot"), environ=environ, backend="process")
    assert bot.read_bytes() != before
    assert [note for note in found.notes if str(bot) in note]
