"""The tests lie where CONTRIBUTING.md says, and each of them is run."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py"))
TEST_FILES = [path for path in TESTS if path.name.startswith("test_") or path.name.endswith("_test.py")]
IMPORT = re.compile(r"^(?:from|import) (\w+)", re.MULTILINE)
HOLDS_TESTS = re.compile(r"^(?:async )?def test_", re.MULTILINE)


def table() -> dict[str, str]:
    """Folders of tests and what each holds, as CONTRIBUTING.md tells them."""
    text = (ROOT / "CONTRIBUTING.md").read_text().split("## Where tests go\n")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `(tests/[\w/]+)` \| (.+) \|$", text, re.MULTILINE))


def test_the_table_names_every_folder_of_tests_and_no_other() -> None:
    used = {f"tests/{path.parts[1]}" for path in TESTS if len(path.parts) > 2}
    assert used == set(table())


def test_every_test_file_lies_in_a_folder_of_the_table() -> None:
    outside = [str(path) for path in TEST_FILES if not any(path.is_relative_to(folder) for folder in table())]
    assert outside == []


def test_no_test_file_lies_next_to_the_product_or_the_examples() -> None:
    shown = ROOT / "examples/pytest/test_desk.py"  # tests are what this example shows
    made = {"build", "dist", "site"}  # by make, from the others
    tops = [path for path in ROOT.iterdir() if path.is_dir() and path.name not in {"tests", *made}]
    tops = [path for path in tops if not path.name.startswith(".")]
    assert "src" in {top.name for top in tops}
    assert [path for top in [ROOT, *tops] for path in top.glob("**/test_*.py" if top != ROOT else "test_*.py")] == [
        shown
    ]


def test_unit_tests_mirror_the_product() -> None:
    rooms = {path.parent.relative_to("tests/unit") for path in TESTS if path.is_relative_to("tests/unit")}
    assert len(rooms) > 20
    assert [str(room) for room in sorted(rooms) if not (ROOT / "src/holdfast" / room).is_dir()] == []


def test_no_two_test_files_share_a_name() -> None:
    shared = [name for name, times in Counter(path.name for path in TEST_FILES).items() if times > 1]
    assert shared == []


def test_a_file_of_tests_that_pytest_does_not_collect_is_run_by_name() -> None:
    imported = {name for path in TEST_FILES for name in IMPORT.findall((ROOT / path).read_text())}
    makefile = (ROOT / "Makefile").read_text()
    kits = [
        path for path in TESTS if path not in TEST_FILES and path.stem not in imported and str(path) not in makefile
    ]
    assert kits, "conftest.py is one"
    assert [str(path) for path in kits if HOLDS_TESTS.search((ROOT / path).read_text())] == []


POSSESSIVE = re.compile(r"[)\]}\w.][*+?]\+|\(\?>")
"""`a*+`, `(?:ab)?+`, `(?>a)`. Python before 3.11.5, such as Debian 12's, matches groups of them wrongly."""


def test_no_pattern_is_possessive() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "src").rglob("*.py")
        if POSSESSIVE.search(path.read_text())
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
        if POSSESSIVE.search(node.value if isinstance(node.value, str) else node.value.decode("latin-1"))
    ]
    assert found == []
