"""What of the spec's folder a sandboxed agent sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import AgentUnavailable
from holdfast.model.spec import AgentSpec
from holdfast.world.mounted_agent import mount


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
        ("python agent.py --config=spec.yaml", "python /agent/agent.py --config=/agent/spec.yaml"),
        (
            "sh tools/run.sh 'agent.py' && echo agent.python",
            "sh /agent/tools/run.sh '/agent/agent.py' && echo agent.python",
        ),
        ("./agent.py {prompt}", "/agent/agent.py {prompt}"),
        ("cat ../secret /etc/passwd missing.py", "cat ../secret /etc/passwd missing.py"),
    ],
)
def test_files_that_the_command_names_are_placed(command: str, inside: str, root: Path) -> None:
    assert mount(AgentSpec(type="command", command=command), root).agent.command == inside


def test_only_those_files_are_seen(root: Path) -> None:
    found = mount(AgentSpec(type="command", command="python agent.py"), root)
    assert found.mounts.visible == {"/agent/agent.py": root / "agent.py"}


def test_a_binary_and_its_arguments(root: Path) -> None:
    found = mount(AgentSpec(type="command", binary="tools/run.sh", args=("helper.py", "-v")), root)
    assert (found.agent.binary, found.agent.args) == ("/agent/tools/run.sh", ("/agent/helper.py", "-v"))


def test_a_folder_is_seen_whole(root: Path) -> None:
    found = mount(AgentSpec(type="command", command="sh run.sh agent.py", dir="tools"), root)
    assert found.mounts.visible == {"/agent": root / "tools"}
    assert found.agent.command == "sh /agent/run.sh agent.py"


def test_a_folder_outside_is_refused(root: Path) -> None:
    with pytest.raises(AgentUnavailable, match="no folder beside the spec"):
        mount(AgentSpec(type="command", command="x", dir=".."), root / "tools")


def test_a_python_agents_modules_are_seen(root: Path) -> None:
    found = mount(AgentSpec(type="python", endpoint="pkg.inner:agent", tool_registry="helper:TOOLS"), root)
    assert found.mounts.visible == {"/agent/pkg": root / "pkg", "/agent/helper.py": root / "helper.py"}
