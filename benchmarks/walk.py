"""How often a walk through the code changes the file: two commands, counted in Holdfast's own process.

    python benchmarks/walk.py [REPLICAS]

A call counts that enters another file than its caller's. Modules being imported are left out. Told are all of them,
those that enter a file of Holdfast's, and how many such files there are. Waiting makes the numbers vary by a few: the
least of three is told.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree

from measure import project

MODEL = {
    "bot.py": """
import json, os, sys, urllib.request
asked = {"model": "m", "messages": [{"role": "user", "content": sys.stdin.read()}]}
for attempt in range(3):
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(asked).encode(),
                                     {"content-type": "application/json", "authorization": "Bearer x"})
    try:
        print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
        break
    except OSError:
        pass
""",
    "script.yaml": "replies: [{text: 'source: the report'}]\n",
    "holdfast.yaml": f"""
agent: {{type: command, command: "{sys.executable} bot.py"}}
golden_prompts: ["What was revenue?"]
models: {{m: {{script: script.yaml}}}}
contract: {{name: walk, invariants: [{{id: r, type: contains, value: source, description: x}}]}}
chaos_matrix: [{{name: busy, llm_faults: [{{mode: rate_limit, times: 1}}]}}]
""",
}
WALKS = {
    "contract run, a command agent, one model fault": ["contract", "run", "--no-preflight"],
    "run, PostgreSQL killed in mid-transaction": ["run", "-c", "careful.yaml", "--scenario", "killed-mid-transaction"],
}
COUNTED = """
import sys, threading
files, ours, every = set(), 0, 0
def enters(frame, event, arg):
    global ours, every
    if event != "call" or frame.f_code.co_name == "<module>" or frame.f_back is None:
        return
    name = frame.f_code.co_filename
    if name != frame.f_back.f_code.co_filename and not name.startswith("<frozen"):
        every += 1
        if HOME in name:
            ours += 1
            files.add(name)
import holdfast.cli.main
HOME = holdfast.__path__[0]
threading.setprofile(enters)
sys.setprofile(enters)
code = holdfast.cli.main.run(sys.argv[1:])
sys.setprofile(None)
print(every, ours, len(files), code, file=sys.stderr)
"""


def walked(words: list[str], folder: Path) -> tuple[int, int, int]:
    """All changes of file, those into Holdfast's, and Holdfast's files that were entered."""
    script = folder / "counted"
    script.write_text(COUNTED)
    done = subprocess.run(
        [sys.executable, str(script), *words], cwd=folder, capture_output=True, text=True, env={**os.environ}
    )
    *numbers, code = map(int, done.stderr.split()[-4:])
    assert code == 0, done.stdout + done.stderr
    return numbers[0], numbers[1], numbers[2]


def main(replicas: str) -> None:
    with project(MODEL) as folder:
        copytree(Path(__file__).parents[1] / "examples/renewals", folder, dirs_exist_ok=True)
        for name, words in WALKS.items():
            every, ours, files = min(walked([*words, "--replicas", replicas], folder) for _ in range(3))
            print(f"{name}: {every} changes of file, {ours} of them into {files} files of Holdfast's")


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["1"]))
