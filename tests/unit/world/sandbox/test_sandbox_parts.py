"""The small parts: what is asked of a machine, what is told, how programs are looked up."""

import errno
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden_words import Golden
from holdfast.errors import HarnessError
from holdfast.model.world import Isolation, Resources
from holdfast.processes.pipes import Tail
from holdfast.processes.program import split_status
from holdfast.protocols.sandbox import FileChange
from holdfast.world.sandbox import bubblewrap, isolation, limits, system
from holdfast.world.sandbox.bubblewrap_sandbox import _decode_changes
from holdfast.world.sandbox.limits import LiveLimits, format_size
from holdfast.world.sandbox.mounts import WritableLayer
from holdfast.world.sandbox.sandboxed_program import ProgramLookup, build_options
from holdfast.world.supervisors import messages as wire
from holdfast.world.supervisors.messages import find_sandbox_user
from refused import refused


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
    ],
)
def test_a_machine_that_forbids_says_what_to_type(tmp_path, name, value, line):
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(f"{value}\n")
    told = bubblewrap.explain_refusal("1 not permitted", tmp_path)
    assert told.code == "namespaces-forbidden"
    assert f"sudo sysctl -w {line}" in told.hint
    assert "or --backend process" in told.hint


def test_a_refusal_without_a_setting_names_the_container(tmp_path):
    told = bubblewrap.explain_refusal("1 not permitted", tmp_path)
    assert told.code == "sandbox-refused"
    assert "--security-opt" in told.hint
    assert "or --backend process" in told.hint


def test_limits_that_nobody_set_are_not_claimed(golden: Golden):
    machine = tuple(Isolation(f"{what} limit", True) for what in ("memory", "cpu", "disk", "pids"))
    told = {one.feature: one for one in isolation.list_sandbox_isolation(machine, Resources(memory=1), 4096)}
    assert told["memory limit"].enforced
    assert not told["cpu limit"].enforced
    disk, pids = told["disk limit"], told["pids limit"]
    assert (disk.enforced, disk.asked, disk.code, pids.enforced) == (False, False, "limit-unset", True)
    usual = {one.feature: one for one in isolation.list_sandbox_isolation(machine, Resources(), 4096, disk=6 << 30)}
    assert usual["disk limit"].enforced
    golden([disk.why, pids.why, usual["disk limit"].why])


def test_what_a_machine_cannot_keep_stays_so():
    machine = (Isolation("cpu limit", False, "no control group"),)
    assert isolation.list_sandbox_isolation(machine, Resources(cpu=1), 1) == machine


def test_control_groups_are_written_in_their_own_way(monkeypatch, tmp_path):
    (tmp_path / "unified").mkdir()
    (tmp_path / "unified" / "cgroup.controllers").write_text("")
    monkeypatch.setattr(limits, "find_parents", lambda: {"memory": tmp_path, "cpu": tmp_path / "unified"})
    assert limits.build_settings(Resources(memory=1024, cpu=0.5)) == {
        "memory": {"memory.limit_in_bytes": "1024"},
        "cpu": {"cpu.max": "50000 100000"},
    }
    assert limits.build_settings(Resources()) == {}


def test_a_group_that_cannot_be_made_is_our_failure(monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "find_parents", lambda: {"memory": tmp_path / "missing"})
    with refused("limits-failed"):
        limits.ControlGroup({"memory": {"memory.max": "1"}})


@pytest.mark.parametrize(
    ("files", "kills", "held"),
    [
        (
            {
                "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
                "memory.usage_in_bytes": "4096\n",
                "memory.failcnt": "90\n",
            },
            3,
            4096,
        ),
        (
            {
                "cgroup.controllers": "memory\n",
                "memory.events": "low 0\nmax 90\noom 4\noom_kill 3\noom_group_kill 0\n",
                "memory.current": "4096\n",
            },
            3,
            4096,
        ),
        ({"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n", "memory.failcnt": "90\n"}, 0, 0),
        ({}, 0, 0),
    ],
    ids=["v1", "v2", "an old kernel", "no files"],
)
def test_only_what_the_kernel_ended_is_counted(monkeypatch, tmp_path, files, kills, held):
    monkeypatch.setattr(limits, "find_parents", lambda: {"memory": tmp_path})
    group = limits.ControlGroup({"memory": {}})
    (folder,) = tmp_path.iterdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    assert (group.count_memory_kills(), group.measure_memory()) == (kills, held)


SIGKILLED, EXIT_137, EXIT_1 = 9, 137 << 8, 1 << 8


@pytest.mark.parametrize(
    ("status", "counted", "by_us", "out"),
    [
        (SIGKILLED, 1, False, True),
        (EXIT_137, 1, False, True),
        (EXIT_137, 0, False, False),
        (EXIT_1, 1, False, False),
        (0, 1, False, False),
        (None, 1, False, False),
        (SIGKILLED, 1, True, False),
    ],
)
def test_a_program_ran_out_of_memory_only_by_the_evidence_of_its_group(status, counted, by_us, out):
    group = limits.ControlGroup({})
    kills = iter([4, 4 + counted])
    group.count_memory_kills = lambda: next(kills)
    told = LiveLimits(group, Resources(memory=64 << 20), tuple, lambda: None).make_memory_end()
    assert ("64Mi" in told(status, by_us)) is out


@pytest.mark.parametrize(
    ("size", "words"), [(64 << 20, "64Mi"), (3 << 30, "3Gi"), (1 << 10, "1Ki"), (1_000_000, "1000000 bytes")]
)
def test_a_size_is_written_as_in_a_spec(size, words):
    assert format_size(size) == words


def test_names_share_the_line_of_their_address():
    hosts = system.build_own_files({"db": "127.0.1.1", "db.services.internal": "127.0.1.1", "api.x.com": "127.0.1.2"})
    assert hosts["/etc/hosts"].splitlines() == [
        "127.0.0.1 localhost holdfast",
        "127.0.1.1 db db.services.internal",
        "127.0.1.2 api.x.com",
        "::1 localhost",
    ]


def test_root_is_given_up_for_whoever_called_sudo(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert find_sandbox_user({"SUDO_UID": "1000", "SUDO_GID": "100"}) == (1000, 100)
    assert find_sandbox_user({"SUDO_UID": "0", "SUDO_GID": "0"}) == (65534, 65534)
    assert find_sandbox_user({}) == (65534, 65534)


def test_secrets_are_options_never_arguments():
    order = wire.StartOrder(("agent",), {"KEY": "secret"}, "/workspace/d")
    words = build_options(order, WritableLayer("/m", "/h", "/t", "/s"))
    assert words[-2:] == ["--chdir", "/workspace/d"]
    assert words[words.index("--setenv") :][:3] == ["--setenv", "KEY", "secret"]
    assert words[words.index("--bind") :][:3] == ["--bind", "/m", "/workspace"]
    assert {"--disable-userns", "--die-with-parent", "--unshare-pid", "--clearenv"} <= set(words)


listed = st.lists(st.tuples(st.text(), st.sampled_from(["created", "deleted"]), st.integers(0, 10**12)), max_size=9)


@given(changes=listed, cut=st.integers(1, 7))
def test_changes_are_read_however_they_are_cut(changes, cut):
    data = b"".join(json.dumps(change).encode() + b"\n" for change in changes) + b"."
    pieces = [data[at : at + cut] for at in range(0, len(data), cut)]
    assert [*_decode_changes(pieces)] == [FileChange(*change) for change in changes]
    with pytest.raises(HarnessError):
        [*_decode_changes([data[:-1]])]


@given(pieces=st.lists(st.binary(max_size=30)), limit=st.integers(0, 20))
def test_the_last_of_an_output_is_kept(pieces, limit):
    last = Tail(limit)
    for piece in pieces:
        last.add(piece)
    whole = b"".join(pieces)
    assert last.data == whole[max(0, len(whole) - limit) :]


def test_a_status_is_a_code_or_a_signal():
    assert split_status(3 << 8) == (3, 0)
    assert split_status(9) == (None, 9)
    assert split_status(None) == (None, 0)


@pytest.fixture
def inside(tmp_path):
    (tmp_path / "root/usr/bin").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    (tmp_path / "root/bin").symlink_to("usr/bin")
    (tmp_path / "root/usr/bin/sh").write_text("")
    (tmp_path / "root/usr/bin/sh").chmod(0o755)
    (tmp_path / "root/usr/bin/plain").write_text("")
    (tmp_path / "work/run").symlink_to("/bin/sh")
    (tmp_path / "work/loop").symlink_to("loop")
    return ProgramLookup({"/": str(tmp_path / "root"), "/workspace": str(tmp_path / "work")})


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("sh", 0),
        ("/bin/sh", 0),
        ("./run", 0),
        ("../usr/bin/sh", 0),
        ("/proc/self/exe", 0),
        ("plain", errno.EACCES),
        ("/usr/bin", errno.EACCES),
        ("missing", errno.ENOENT),
        ("./missing", errno.ENOENT),
        ("./loop", errno.ELOOP),
    ],
)
def test_a_program_is_looked_up_as_inside(inside, name, refused):
    assert inside.find_refusal(name, "/none:/bin", "/workspace") == refused


def test_without_a_path_the_usual_folders_are_searched(inside):
    assert inside.find_refusal("sh", None, "/workspace") == 0
