"""What the shortest run imports: a module that it does not use costs every run its start-up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SPEC = """
agent: {type: python, endpoint: "fast:agent", isolation: inline}
golden_prompts: ["What was revenue?"]
contract: {name: short, invariants: [{id: r, type: contains, value: source, description: x}]}
chaos_matrix: [{name: calm}]
"""
RUN = """
import sys
from holdfast.cli import main
sys.argv = ["holdfast", "contract", "run", "-q"]
try:
    main()
except SystemExit as ended:
    assert ended.code == 0, ended.code
print(*sorted(sys.modules))
"""
UNUSED = {
    "cryptography", "jsonschema", "phonenumbers", "psycopg", "ray", "rich", "holdfast.planes.llm.gateway",
    "holdfast.planes.mcp.plane", "holdfast.planes.site_planes", "holdfast.report.formats.markdown",
    "holdfast.report.formats.sarif",
}  # fmt: skip


def test_a_run_of_one_cell_imports_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    (tmp_path / "fast.py").write_text('def agent(prompt):\n    return "source: " + prompt\n')
    (tmp_path / "holdfast.yaml").write_text(SPEC)
    (tmp_path / "elsewhere").mkdir()  # the folder of the script is importable, and must not hold the agent
    script = tmp_path / "elsewhere/script.py"
    script.write_text(RUN)
    ran = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert sorted(UNUSED & set(ran.stdout.split())) == []
