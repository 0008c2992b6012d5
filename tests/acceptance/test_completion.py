"""TAB in a real bash: commands, options, and what this folder has."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from cli import HOLDFAST, MakeProject, contract, rule

HOSTILE = [{"name": "$(touch owned)"}, {"name": "a\n`id`"}]
SCENARIOS = [{"name": "calm"}, {"name": "search-down", "tool_faults": []}, *HOSTILE]
SPEC = contract([rule("cites"), rule("calm-answer"), rule("x;id")], SCENARIOS)
TYPED = {
    "holdfast com": ["compare", "completion"],
    "holdfast contract v": ["validate"],
    "holdfast contract run --sce": ["--scenario"],
    "holdfast show ''": ["latest", "0010", "0002"],
    "holdfast view 00": ["0010", "0002"],
    "holdfast contract run --resume 00": ["0010", "0002"],
    "holdfast faults lost": ["lost_reply"],
    "holdfast checks side": ["side_effect_once"],
    "holdfast contract run --scenario ''": ["calm", "search-down"],
    "holdfast contract run -c holdfast.yaml --invariant ci": ["cites"],
    "holdfast contract run -c ''": ["binary.yaml", "broken.yaml", "deep.yaml", "holdfast.yaml", "specs/"],
    "holdfast contract run -c broken.yaml --scenario ''": [],
    "holdfast contract run -c binary.yaml --scenario ''": [],
    "holdfast contract run -c deep.yaml --scenario ''": [],
    "holdfast contract run --invariant x": [],
    "holdfast contract run --profile hos": ["hostile_tools"],
    "holdfast init --from lang": ["langgraph"],
}
PRESSED = """
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); COMPREPLY=()
_holdfast_completion holdfast
echo "${{COMPREPLY[@]}}"
"""


def test_tab_offers_what_fits(project: MakeProject) -> None:
    made = project(SPEC)
    for name in (".holdfast/runs/0002", ".holdfast/runs/0010", ".holdfast/runs/notes", "specs"):
        (made.folder / name).mkdir(parents=True)
    made.write("contract: [", "broken.yaml")
    made.write("\x00", "binary.yaml")
    made.write("a: " + "[" * 20_000, "deep.yaml")
    env = {**os.environ, "PATH": f"{Path(HOLDFAST).parent}:{os.environ['PATH']}"}
    script = 'eval "$(holdfast completion bash)"\n' + "".join(PRESSED.format(words=words) for words in TYPED)
    shell = ["bash", "--norc", "-c", script]
    done = subprocess.run(shell, cwd=made.folder, env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    offered = dict(zip(TYPED, map(str.split, done.stdout.split("\n")), strict=False))
    assert offered == TYPED


@pytest.mark.parametrize("option", ["--scenario", "--invariant"])
def test_tab_offers_nothing_where_there_is_no_spec(tmp_path: Path, option: str) -> None:
    env = {**os.environ, "_HOLDFAST_COMPLETE": "bash_complete", "COMP_CWORD": "4"}
    env["COMP_WORDS"] = f"holdfast contract run {option} "
    done = subprocess.run([HOLDFAST], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_asks_for_what_is_typed(project: MakeProject, shell: str) -> None:
    result = project({}).cli("completion", shell)
    assert (result.code, result.err) == (0, "")
    assert f"_HOLDFAST_COMPLETE={shell}_complete" in result.out


def test_another_shell_is_a_usage_error(project: MakeProject) -> None:
    made = project({})
    assert made.cli("completion", "tcsh").code == 4
    told = made.cli("completion").err
    assert ("\\x" in told, ": bash, zsh, fish" in told) == (False, True), told


def test_tab_on_a_run_loads_no_engine(project: MakeProject) -> None:
    """Quick enough to be pressed without thinking: neither plans nor planes nor the reader of specs are imported."""
    made = project(SPEC)
    env = {**os.environ, "_HOLDFAST_COMPLETE": "bash_complete", "COMP_CWORD": "4", "PYTHONPROFILEIMPORTTIME": "1"}
    env["COMP_WORDS"] = "holdfast contract run --scenario "
    done = subprocess.run([HOLDFAST], cwd=made.folder, env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["plain,calm", "plain,search-down"]
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "holdfast.cli.option_values" in loaded
    heavy = ("holdfast.plan", "holdfast.planes", "holdfast.spec", "holdfast.report", "holdfast.world", "msgspec")
    assert [name for name in loaded if name.startswith(heavy)] == []
