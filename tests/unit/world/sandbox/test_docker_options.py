"""What an engine is asked for, and what is promised of it."""

import asyncio
import os
from itertools import pairwise
from pathlib import Path

from holdfast.model.world import Resources
from holdfast.world.sandbox.docker import read_isolation
from holdfast.world.supervisors.container import Shape, build_options, compile_first_process

SHAPE = Shape("img:1", Path("/first"), (1000, 1001), Path("/place"), {"/agent": Path('/a, "b"')}, Resources(), 7)


def asked(words, option):
    return [value for name, value in pairwise(words) if name == option]


def test_the_first_process_is_compiled_from_its_source(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert os.access(asyncio.run(compile_first_process()), os.X_OK)


def test_a_container_is_closed_off():
    words = build_options(SHAPE)
    assert asked(words, "--network") == ["none"]
    assert asked(words, "--cap-drop") == ["ALL"]
    assert asked(words, "--security-opt") == ["no-new-privileges"]
    assert asked(words, "--user") == ["1000:1001"]
    assert asked(words, "--pids-limit") == ["7"]
    assert "--read-only" in words
    assert words[-2:] == ["img:1", "/.holdfast/line/s"]
    assert asked(words, "--memory") == asked(words, "--cpus") == []


def test_only_the_workspace_the_home_and_tmp_can_be_written():
    mounts = asked(build_options(SHAPE), "--mount")
    writable = [mount for mount in mounts if "readonly" not in mount]
    assert writable == [
        '"type=bind","source=/place/workspace","target=/workspace"',
        '"type=bind","source=/place/home","target=/home/agent"',
        '"type=bind","source=/place/tmp","target=/tmp"',
    ]
    assert '"type=bind","source=/a, ""b""","target=/agent","readonly"' in mounts


def test_limits_are_asked_for():
    limited = Shape("i", Path("/d"), (1, 1), Path("/p"), {}, Resources(memory=64, cpu=1.5), 7)
    words = build_options(limited)
    assert asked(words, "--memory") == asked(words, "--memory-swap") == ["64"]
    assert asked(words, "--cpus") == ["1.5"]


def test_a_copy_shares_the_network_of_its_trial():
    beside = Shape("i", Path("/d"), (1, 1), Path("/p"), {}, Resources(), 7, network_of="abc")
    words = build_options(beside)
    assert asked(words, "--network") == ["container:abc"]
    assert "--hostname" not in words


def test_what_the_engine_lacks_is_not_promised():
    good = {"SecurityOptions": ["name=seccomp,profile=default"], "PidsLimit": True, "MemoryLimit": True}
    told = {one.feature: one for one in read_isolation(good)}
    assert told["network"].enforced
    assert told["memory limit"].enforced
    assert told["nested user namespaces"].enforced
    assert not told["cpu limit"].enforced
    assert not told["disk limit"].enforced
    assert all(one.enforced or one.why for one in told.values())
    bare = {one.feature: one for one in read_isolation({})}
    assert not bare["nested user namespaces"].enforced
