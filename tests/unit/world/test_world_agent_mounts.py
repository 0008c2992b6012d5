"""What of the spec's folder a sandboxed agent sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden_words import Golden
from holdfast.errors import AgentUnavailable
from holdfast.model.spec import AgentSpec
from holdfast.world.agent_mounts import mount
from holdfast.world.program_search import ProgramSearch
from refused import refused


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("agent.py", "spec.yaml", "helper.py", "tools/run.sh"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/__init__.py").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "inside"),
    [
        ("python agent.py", "python /agent/agent.py"),
        ("python -u -W ignore agent.py", "python -u -W ignore /agent/agent.py"),
        ("LANG=C exec python3.12 'agent.py'", "LANG=C exec python3.12 '/agent/agent.py'"),
        ("sh tools/run.sh", "sh /agent/tools/run.sh"),
        ("./agent.py {prompt}", "/agent/agent.py {prompt}"),
        ("uv run agent.py", "uv run /agent/agent.py"),
        ("agent.py < spec.yaml", "/agent/agent.py < spec.yaml"),
        ("python agent.py; cat spec.yaml", "python /agent/agent.py; cat spec.yaml"),
    ],
)
def test_the_program_is_placed_where_it_lies_next_to_the_spec(command: str, inside: str, root: Path) -> None:
    assert mount(AgentSpec(type="command", command=command), root).agent.command == inside


@pytest.mark.parametrize(
    "command",
    [
        "cat ../secret /etc/passwd missing.py",
        "cat spec.yaml",
        "my-agent --config=spec.yaml agent.py",
        "python -m agent spec.yaml",
        "python -c 'print(1)' agent.py",
        "sh -c agent.py",
        "cd tools && python agent.py",
        "$PYTHON agent.py",
        "",
        " ",
        "A=1",
        "python",
        "python '",
    ],
)
def test_no_other_word_is_placed_or_changed(command: str, root: Path) -> None:
    found = mount(AgentSpec(type="command", command=command), root)
    assert (found.agent.command, found.mounts.visible) == (command, {})


def test_what_stands_next_to_the_program_stays_as_written_and_unseen(root: Path) -> None:
    found = mount(AgentSpec(type="command", command="python agent.py --expect=spec.yaml helper.py"), root)
    assert found.agent.command == "python /agent/agent.py --expect=spec.yaml helper.py"
    assert found.mounts.visible == {"/agent/agent.py": root / "agent.py"}


def test_only_those_files_are_seen(root: Path) -> None:
    found = mount(AgentSpec(type="command", command="python agent.py"), root)
    assert found.mounts.visible == {"/agent/agent.py": root / "agent.py"}


def test_a_binary_and_its_arguments(root: Path) -> None:
    found = mount(AgentSpec(type="command", binary="tools/run.sh", args=("helper.py", "-v")), root)
    assert (found.agent.binary, found.agent.args) == ("/agent/tools/run.sh", ("helper.py", "-v"))
    found = mount(AgentSpec(type="command", binary="python3", args=("-u", "agent.py", "helper.py")), root)
    assert (found.agent.binary, found.agent.args) == ("python3", ("-u", "/agent/agent.py", "helper.py"))


def test_a_folder_is_seen_whole(root: Path) -> None:
    found = mount(AgentSpec(type="command", command="sh run.sh agent.py", dir="tools"), root)
    assert found.mounts.visible == {"/agent": root / "tools"}
    assert found.agent.command == "sh /agent/run.sh agent.py"


def test_a_folder_outside_is_refused(root: Path) -> None:
    with refused("agent-config-invalid"):
        mount(AgentSpec(type="command", command="x", dir=".."), root / "tools")


def test_an_absolute_folder_is_seen_where_it_lies(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "run.sh").write_text("")
    found = mount(AgentSpec(type="command", command="sh run.sh agent.py", dir=str(folder)), root)
    assert found.mounts.visible == {str(folder): folder}
    assert found.agent.command == f"sh {folder}/run.sh agent.py"
    assert found.mounts.list_notes(root) == (f"the agent sees {folder}, read-only",)


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("{root}", "holds the spec"),
        ("/", "holds the spec"),
        ("{home}", "holds your home"),
        ("/no/such", "not a folder on this"),
    ],
)
def test_a_folder_that_shows_too_much_is_refused(
    root: Path, tmp_path_factory: pytest.TempPathFactory, folder: str, why: str
) -> None:
    home = tmp_path_factory.mktemp("home")
    search = ProgramSearch("/usr/bin", root, home, Path("/usr/bin"))
    agent = AgentSpec(type="command", command="x", dir=folder.format(root=root, home=home))
    with pytest.raises(AgentUnavailable, match=why):
        mount(agent, root, search)


def test_a_python_agents_modules_are_seen(root: Path) -> None:
    found = mount(AgentSpec(type="python", endpoint="pkg.inner:agent", tool_registry="helper:TOOLS"), root)
    assert found.mounts.visible == {"/agent/pkg": root / "pkg", "/agent/helper.py": root / "helper.py"}


def test_what_was_placed_is_reported(root: Path, golden: Golden) -> None:
    one = mount(AgentSpec(type="command", command="python agent.py"), root)
    golden(one.mounts.list_notes(root))
    assert mount(AgentSpec(type="command", command="my-agent"), root).mounts.list_notes(root) == ()


def test_programs_that_others_run_are_seen(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """By name and by path; those of the setup and of checks, too, where this machine has them."""
    home = tmp_path_factory.mktemp("home")
    for name in ("bin/cargo", "bin/checker", "tools/lint"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text("#!/bin/sh\n")
        (home / name).chmod(0o755)
    other_programs = ("checker", "nowhere", "cd", "")
    search = ProgramSearch(f"{home}/bin:/usr/bin", root, home, Path("/usr/bin"), other_programs=other_programs)
    agent = AgentSpec(type="command", command="true", programs=("cargo", "~/tools/lint"))
    shown = mount(agent, root, search).programs
    assert set(shown.visible) == {f"{home}/bin/cargo", f"{home}/bin/checker", f"{home}/tools/lint"}
    assert f"{home}/bin" in shown.folders


@pytest.mark.parametrize("name", ["no-such-program", "/no/such/program", "~/no-such"])
def test_a_program_that_is_asked_for_and_not_there_is_refused(root: Path, name: str) -> None:
    search = ProgramSearch("/usr/bin", root, root / "home", Path("/usr/bin"))
    with pytest.raises(AgentUnavailable, match=r"agent\.programs") as raised:
        mount(AgentSpec(type="command", command="true", programs=(name,)), root, search)
    assert raised.value.config
