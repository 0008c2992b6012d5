"""The files of an agent: what the spec names, and what that imports."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from golden_words import Golden
from holdfast.model.spec import AgentSpec, Spec
from holdfast.runner import agent_files
from holdfast.runner.agent_files import describe_changes, digest_file


def test_another_content_is_another_digest(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("one")
    first = digest_file(file)
    os.utime(file, (1, 1))
    assert digest_file(file) == first
    file.write_text("two")
    assert digest_file(file) != first


def test_a_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "big"
    with file.open("wb") as made:
        made.truncate(agent_files.LARGE + 1)
    monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("it was read"))
    os.utime(file, (1, 1))
    first = digest_file(file)
    os.utime(file, (2, 2))
    assert digest_file(file) != first


def test_what_cannot_be_read_stops_nothing(tmp_path: Path) -> None:
    assert digest_file(tmp_path / "gone").startswith("unreadable: ")
    assert digest_file(tmp_path).startswith("unreadable: ")


FILES = {
    "agent.py": "import os, tools.net as net\nfrom . import nothing\nfrom pack import (\n    deep,  # noqa\n)\n",
    "tools/net.py": "def go():\n    from .wire import send\n    import_module('late')\n",
    "tools/wire.py": "from ..other import x\n",
    "other.py": "",
    "late.py": "",
    "pack/__init__.py": "",
    "pack/deep.py": "import agent\n",
    "unused.py": "",
    "shared/lib.py": "",
}


def imported(folder: Path, **agent: object) -> dict[str, str]:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    made = AgentSpec(**{"type": "python", "endpoint": "agent:ask", **agent})  # type: ignore[arg-type]
    return agent_files.digest_agent_files(Spec(path=str(folder / "holdfast.yaml"), name="x", agent=made, digest=""))


def test_what_an_agent_imports_from_the_specs_folder_is_the_agent(tmp_path: Path, golden: Golden) -> None:
    found = imported(tmp_path)
    assert set(found) == {name for name in FILES if name not in ("unused.py", "shared/lib.py")}
    (tmp_path / "tools" / "wire.py").write_text("from ..other import y\n")
    (tmp_path / "late.py").unlink()
    (tmp_path / "tools" / "wire.py").write_text("import unused\n")
    later = agent_files.digest_agent_files(
        Spec(path=str(tmp_path / "holdfast.yaml"), name="x", agent=AgentSpec("python", endpoint="agent:ask"), digest="")
    )
    golden(describe_changes(found, later))


def test_modules_of_agent_dir_and_of_a_started_program_count_too(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "main.py").write_text("import lib\nimport numpy\n")
    found = imported(tmp_path, type="command", endpoint="", command="python main.py", dir="shared")
    assert set(found) == {"main.py", "shared/lib.py"}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "go.py").write_text("import helper\n")
    (tmp_path / "bin" / "helper.py").write_text("")
    assert set(imported(tmp_path, type="command", endpoint="", command="python bin/go.py")) == {
        "bin/go.py",
        "bin/helper.py",
    }


def agent_of(folder: Path, command: str, files: dict[str, str]) -> dict[str, str]:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text(text)
    agent = AgentSpec("command", command=command)
    return agent_files.digest_agent_files(Spec(path=str(folder / "holdfast.yaml"), name="x", agent=agent, digest=""))


@pytest.mark.parametrize("words", ["from lib import *", "from lib import*", "from .lib import *", "from lib import(a)"])
def test_a_module_of_which_everything_is_imported_counts(tmp_path: Path, words: str) -> None:
    before = agent_of(tmp_path, "python main.py", {"main.py": f"{words}\n", "lib.py": "a = 1\n"})
    after = agent_of(tmp_path, "python main.py", {"lib.py": "a = 2\n"})
    assert describe_changes(before, after) == ["lib.py changed"]


def test_what_a_programs_modules_import_is_looked_for_next_to_the_program_too(tmp_path: Path) -> None:
    files = {
        "src/agent.py": "import tools\n",
        "src/tools.py": "import pack.deep\n",
        "src/pack/__init__.py": "",
        "src/pack/deep.py": "from . import near\n",
        "src/pack/near.py": "import helpers\n",
        "src/helpers.py": "",
    }
    assert set(agent_of(tmp_path, "python src/agent.py", files)) == set(files)


def test_a_module_of_two_programs_has_what_it_imports_next_to_each(tmp_path: Path) -> None:
    files = {
        "one/go.py": "import shared\n",
        "two/go.py": "import shared\n",
        "shared.py": "import helpers\n",
        "one/helpers.py": "",
        "two/helpers.py": "",
    }
    assert set(agent_of(tmp_path, "run one/go.py two/go.py", files)) == set(files)
