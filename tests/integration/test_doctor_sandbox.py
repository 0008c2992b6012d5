"""The doctor's sandbox: what a world could not open or start is found, and said with a fix."""

import asyncio

from holdfast.doctor import machine as doctor_sandbox
from holdfast.doctor.machine import SANDBOX, try_route, try_sandbox
from holdfast.errors import UserError


def found():
    return asyncio.run(try_route(None, SANDBOX, try_sandbox, 3))


def test_a_sandbox_in_which_this_python_starts_is_proven():
    assert (found().outcome, found().fix) == ("ok", "")
    assert "sandbox bubblewrap: " in found().detail


def test_a_folder_that_cannot_be_shown_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor_sandbox, "list_interpreter_paths", lambda: {"/gone": tmp_path / "gone"})
    assert found().broken
    assert str(tmp_path / "gone") in found().detail
    assert "python3 -m venv" in found().fix


def test_a_folder_that_an_interpreter_lacks_is_reported_with_its_error(monkeypatch):
    monkeypatch.setattr(doctor_sandbox, "_IMPORT", "import holdfast.gone")
    assert found().code == "sandbox-broken"
    assert "'holdfast.gone'" in found().detail


def test_an_interpreter_that_is_not_there_inside_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor_sandbox.sys, "executable", str(tmp_path / "python"))
    assert found().broken
    assert str(tmp_path / "python") in found().detail


def test_a_machine_that_refuses_gives_its_own_fix(monkeypatch):
    class Refusing:
        async def open_backend(self, *_):
            raise UserError("namespaces forbidden", hint="sudo sysctl")

    monkeypatch.setattr(doctor_sandbox, "find_backend", lambda _: Refusing())
    assert (found().detail, found().fix) == ("namespaces forbidden", "sudo sysctl")
