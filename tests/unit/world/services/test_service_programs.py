"""Programs that come with a server: run next to it, limited, with their errors reported."""

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast.errors import HarnessError
from holdfast.model.world import ServiceSpec
from holdfast.world.services import programs, spares
from holdfast.world.services.confinement import find_server_user
from holdfast.world.services.programs import ServerProgram, find_sibling, refuse_unconfined
from holdfast.world.services.server import ServerSetup, SocketFolder
from holdfast.world.services.spares import ServerOfTrial
from refused import refused


def run(tmp_path, script, **files):
    user = find_server_user()
    home = SocketFolder(user)
    server = SimpleNamespace(socket_folder=home.make_socket_folder())
    (server.socket_folder / "here").write_text("socket")
    shell = ServerProgram(Path("/bin/sh"), "sh 1")
    setup = ServerSetup(ServiceSpec("db", "postgres"), shell, user, home, lambda sockets, data: [], b"")
    service = ServerOfTrial(setup, server, "s", "")
    try:
        asyncio.run(service._run_program(["sh"], ["-c", script, "sh", service._sockets], {"WORD": "said"}, **files))
    finally:
        home.close()


def test_one_reads_a_file_and_adds_to_another(tmp_path):
    given, to = tmp_path / "given", tmp_path / "to"
    given.write_text("read")
    to.write_text("a ")
    run(tmp_path, "echo $(cat) $WORD $(ls $1)", source=given, to=to)
    assert to.read_text() == "a read said here\n"


def test_one_that_fails_is_reported_with_its_last_words(tmp_path):
    with pytest.raises(HarnessError, match=r"^sh failed: 0* the reason$") as failed:
        run(tmp_path, "printf '%0999d' 0 >&2; echo >&2; echo the reason >&2; exit 3")
    assert len(str(failed.value)) < 320


def test_a_line_that_speaks_of_an_error_is_reported_before_others(tmp_path):
    with refused("service-failed"):
        run(tmp_path, "echo ERROR: no such table >&2; echo '   ^' >&2; exit 3")


def test_one_that_fails_silently_is_reported_with_its_code(tmp_path):
    with pytest.raises(HarnessError, match=r"^sh failed: exit code 3$"):
        run(tmp_path, "exit 3")


def test_one_that_writes_too_much_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(spares, "MOST_BYTES", 8192)
    with pytest.raises(HarnessError, match="sh failed"):
        run(tmp_path, "exec head -c 100000 /dev/zero", to=tmp_path / "to")
    assert (tmp_path / "to").stat().st_size == 8192


def test_one_that_does_not_end_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(spares, "LIMIT_S", 0.5)
    with pytest.raises(HarnessError, match="took longer"):
        run(tmp_path, "exec sleep 600")


def test_programs_are_found_where_a_link_to_the_server_leads(tmp_path):
    (tmp_path / "lib" / "sbin").mkdir(parents=True)
    (tmp_path / "lib" / "bin").mkdir()
    for path in ("sbin/server", "bin/dump"):
        (tmp_path / "lib" / path).write_text("")
        os.chmod(tmp_path / "lib" / path, 0o755)
    (tmp_path / "server").symlink_to(tmp_path / "lib" / "sbin" / "server")
    assert find_sibling(tmp_path / "server", "other", "dump") == tmp_path / "lib" / "bin" / "dump"
    with refused("service-failed"):
        find_sibling(tmp_path / "server", "missing")


def test_one_that_quotes_several_lines_is_reported_with_all_of_them(tmp_path):
    with refused("service-failed"):
        run(tmp_path, "echo 'a newline is in the argument: one' >&2; echo \"--'\" >&2; exit 3")


def test_one_reads_what_is_not_skipped(tmp_path):
    given, to = tmp_path / "given", tmp_path / "to"
    given.write_text("first second")
    run(tmp_path, "cat", source=given, skip=6, to=to)
    assert to.read_text() == "second"


def test_what_an_agent_left_is_not_run_without_walls(monkeypatch):
    monkeypatch.setattr(programs, "find_confinement", lambda user: (None, "bubblewrap is missing"))
    with refused("service-unconfined"):
        refuse_unconfined(None)
