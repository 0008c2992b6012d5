"""`--runs-dir` and HOLDFAST_DIR, for every verb that stores something or looks for it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml
from cli import HOLDFAST
from files1 import CALM, RULES, SPEC, project, tell

from holdfast.cli.main import COMMANDS, Root

STORES_NOTHING = {
    "checks",
    "completion",
    "contract validate",
    "faults",
    "import",
    "init",
    "mcp-proxy",
    "schema",
    "validate",
}
"""`init` and `schema -o` write the schema where the first line of the spec says."""
OPTION, VARIABLE = ("--runs-dir", "elsewhere/runs"), {"HOLDFAST_DIR": "elsewhere"}
SETTINGS = {"option": (OPTION, {}, "elsewhere/runs"), "variable": ((), VARIABLE, "elsewhere")}
BOXED = {
    "version": 1,
    "id": "boxed",
    "task": {"prompt": "go"},
    "agent": {"type": "command", "command": "echo hello"},
    "invariants": {"made": {"description": "it is made", "check": {"type": "file_exists", "path": "made.txt"}}},
}
GATEWAY = (
    "agent: {type: http, endpoint: 'http://127.0.0.1:9/', gateway: true}\ngolden_prompts: [Hello]\n" + RULES + CALM
)


def verbs() -> Iterator[tuple[str, click.Command]]:
    top = Root()
    context = click.Context(top)
    for name in COMMANDS:
        found = top.get_command(context, name)
        if isinstance(found, click.Group):
            yield from ((f"{name} {below}", one) for below, one in found.commands.items())
        elif found is not None:
            yield name, found


def test_every_verb_has_the_option_or_stores_nothing() -> None:
    without = {name for name, one in verbs() if all("--runs-dir" not in option.opts for option in one.params)}
    assert without == STORES_NOTHING


@pytest.fixture(params=SETTINGS)
def given(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, tuple[str, ...], dict[str, str], Path]:
    words, environ, own = SETTINGS[request.param]
    (tmp_path / "specs").mkdir()
    project(tmp_path / "specs", SPEC)
    (tmp_path / "specs/boxed.yaml").write_text(yaml.safe_dump(BOXED))
    return tmp_path, words, environ, tmp_path / own


RUNNING = (
    ("contract", "run", "specs/holdfast.yaml"),
    ("contract", "score", "specs/holdfast.yaml"),
    ("ci", "specs/holdfast.yaml"),
    ("run", "specs/boxed.yaml", "--backend", "process", "--keep"),
)
LOOKING = (
    ("show",),
    ("show", "0001", "-q"),
    ("runs", "--json"),
    ("report", "latest", "--json"),
    ("judge", "0001"),
    ("compare", "0001", "0001"),
    ("trend", "--spec", "specs/holdfast.yaml"),
    ("contract", "run", "specs/holdfast.yaml", "--lf"),
    ("replay", "import", "0001", "-o", "sessions"),
    ("replay", "export", "--from-report", "latest", "-o", "sessions"),
    ("clean",),
)


@pytest.mark.parametrize("verb", RUNNING, ids=" ".join)
def test_a_run_leaves_nothing_anywhere_else(given: tuple, verb: tuple[str, ...]) -> None:
    folder, words, environ, own = given
    before = {path.name for path in (folder / "specs").iterdir()}
    assert tell(folder, *verb, *words, **environ).code in (0, 1)
    assert (folder / "elsewhere/runs/0001/run.json").is_file()
    assert {path.name for path in folder.iterdir()} == {"specs", "elsewhere"}
    assert {path.name for path in (folder / "specs").iterdir()} - {"__pycache__"} == before
    assert (own / "kept").is_dir() is ("--keep" in verb)
    assert not (folder / "elsewhere/kept").exists() or own.name == "elsewhere"


def test_what_was_stored_is_found_again_and_only_there(given: tuple) -> None:
    folder, words, environ, _ = given
    assert tell(folder, "contract", "run", "specs/holdfast.yaml", *words, **environ).code == 0
    for verb in LOOKING:
        found = tell(folder, *verb, *words, **environ)
        assert found.code in (0, 1), (verb, found)
        assert not (folder / ".holdfast").exists(), verb
        assert not (folder / "specs/.holdfast").exists(), verb
    assert tell(folder, "show").code == 4


def test_a_kept_world_is_listed_opened_and_removed(given: tuple) -> None:
    folder, words, environ, own = given
    run = tell(folder, "run", "specs/boxed.yaml", "--backend", "process", "--keep", *words, **environ)
    (kept,) = (own / "kept").iterdir()
    opened = re.search(r"holdfast shell (\S+) opens it", run.out)
    assert opened is not None
    assert (folder / opened[1].replace("TRIAL", kept.name)).is_dir() or not words
    assert kept.name in tell(folder, "shell", *words, **environ).out
    assert not tell(folder, "shell").out
    assert kept.name not in tell(folder, "clean", "--kept").out
    assert kept.name in tell(folder, "clean", "--kept", *words, **environ).out
    assert not kept.exists()


@pytest.mark.parametrize(
    "verb", [("gateway", "--print"), ("doctor", "--json"), ("verify",), ("contract", "run")], ids=" ".join
)
def test_a_gateway_is_looked_for_there(given: tuple, verb: tuple[str, ...]) -> None:
    folder, words, environ, own = given
    (folder / "specs/holdfast.yaml").write_text(GATEWAY)
    found = tell(folder, *verb, "-c", "specs/holdfast.yaml", *words, **environ)
    assert found.code in (3, 4)
    text = found.out + found.err
    assert f" {own.relative_to(folder)}" in (text if "--json" not in verb else json.dumps(found.json))


def test_a_word_is_completed_from_there(given: tuple) -> None:
    folder, words, environ, _ = given
    assert tell(folder, "contract", "run", "specs/holdfast.yaml", *words, **environ).code == 0
    line = " ".join(("holdfast", "show", *words, "0"))
    asked = {"_HOLDFAST_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    done = subprocess.run(
        [HOLDFAST], cwd=folder, env={**os.environ, **asked, **environ}, capture_output=True, text=True
    )
    assert "plain,0001" in done.stdout
