"""One run, told by seven reporters: the same verdict, score, counts, outcomes and causes in each of them."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from acceptance.cli import CALM, DOWN, Project, contract, python, rule, verdict_line
from page_documents import documents

Outcomes = dict[tuple[str, str], str]
Place = frozenset[tuple[str, str]]
"""The cells of a cause."""

WORDS = {0: "PASS", 1: "FAIL", 2: "INTERRUPTED", 3: "ERROR", 5: "UNPROVEN"}
SIGNS = {"✔": "pass", "✘": "fail", "!": "error", "?": "unproven", "–": "n/a"}
JUNIT = {"fail": "failure", "unproven": "skipped", "n/a": "skipped"}
FORMATS = ("json", "xml", "sarif", "md", "html")
PROMPTS = ("one", "two")
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""No shrinking: each example is a complete run, and hundreds of them would exceed the time limit."""
UNMET = {"name": "unmet", "tool_faults": [{"tool": "search", "mode": "error", "after_calls": 99}]}
RULES = [
    rule("cites", value="source", severity="critical"),
    rule("answers", "completes"),
    rule("clean", "excludes_pattern", patterns=["zzz"], severity="low"),
    rule("calm-only", value="a", when="no_chaos"),
]
AGENT = """
import json
from pathlib import Path


def reset():
    if json.loads(Path("how.json").read_text())["harness"] == "breaks":
        raise OSError("no such state")


def search(query):
    return "a source says " + query


def ask(prompt):
    how = json.loads(Path("how.json").read_text())
    try:
        found = search(prompt)
    except Exception:
        found = "nothing is known"
    for word in ("one", "two"):
        if word in prompt:
            found = {"good": found, "bad": "zzz", "silent": ""}.get(how[word], found)
            if how[word] == "raises":
                raise RuntimeError("boom")
    return found
"""
answers = st.sampled_from(("good", "good", "bad", "silent", "raises"))
harnesses = st.sampled_from((*["holds"] * 7, "breaks"))
hows = st.fixed_dictionaries({"one": answers, "two": answers, "harness": harnesses})
SECTION = python(isolation="inline", reset_function="agent:reset")
chosen = st.sets(st.sampled_from(range(len(RULES))), min_size=1).map(lambda found: [RULES[n] for n in sorted(found)])
matrices = st.sampled_from(([CALM], [CALM, DOWN], [DOWN], [CALM, DOWN, UNMET]))


def made(folder: str, how: dict[str, str], spec: dict[str, Any]) -> Project:
    project = Project(Path(folder), spec, AGENT)
    (project.folder / "how.json").write_text(json.dumps(how))
    return project


def reports(project: Project, *command: str) -> tuple[str, dict[str, str]]:
    """What the terminal shows of a run, and every file that it was reported to."""
    words = [word for ending in FORMATS for word in ("-o", f"r.{ending}")]
    project.cli(*command, "--no-preflight", "--no-report", *words)
    return project.cli("show", "latest").out, {ending: project.read(f"r.{ending}") for ending in FORMATS}


# -- what each of them says -----------------------------------------------------------------------------------------
def matrix(text: str, columns: list[str]) -> Outcomes:
    """Of a terminal or of Markdown: a row per rule, a sign per column."""
    found = (re.match(r"[| ] *(\S+) [| ]+(?:critical|high|medium|low) (.*)", line) for line in text.splitlines())
    signs = {row[1]: re.findall("[✔✘!?–]", row[2]) for row in found if row}
    return {(name, at): SIGNS[sign] for name, row in signs.items() for at, sign in zip(columns, row, strict=True)}


def junit(text: str) -> Outcomes:
    """By test case; what is skipped is unproven, or does not apply."""
    found = {}
    for suite in ElementTree.fromstring(text).iter("testsuite"):
        for case in suite.iter("testcase"):
            kinds = {child.tag for child in case}
            outcome = next((word for word in ("failure", "error", "skipped") if word in kinds), "pass")
            found[case.get("name", ""), suite.get("name", "")] = outcome
    return found


def page(html: str) -> tuple[Outcomes, list[Place]]:
    found = documents(html)
    return on_page(found["run"], found["run/matrix"], found["run/causes"])


def on_page(run: Any, grid: Any, listed: Any) -> tuple[Outcomes, list[Place]]:
    """The outcome of each cell, and the cells of each cause, from the documents of a page."""

    def place(rule: int, column: int) -> tuple[str, str]:
        return run["rules"][rule]["id"], run["columns"][column]["name"]

    places = [place(*at) for at in zip(grid["rule"], grid["column"], strict=True)]
    outcomes = dict(zip(places, (grid["outcomes"][one] for one in grid["outcome"]), strict=True))
    return outcomes, [frozenset(place(*cell) for cell in one["cells"]) for one in listed["causes"]]


def shown_causes(text: str) -> int:
    """How many causes a terminal names or counts."""
    left = re.search(r"^and (\d+) more", text, re.MULTILINE)
    return len(re.findall(r"^[✘!?] ", text, re.MULTILINE)) + (int(left[1]) if left else 0)


def cells_of(cause: Any) -> Place:
    return frozenset((cell["invariant"], cell["scenario"]) for cell in cause["cells"])


def _verdict(shown: str) -> str:
    return verdict_line(shown).split()[0]


# -- that they agree ------------------------------------------------------------------------------------------------
def check_run(project: Project, id: str, shown: str, files: dict[str, str]) -> None:
    """Everything that is told of a run of a contract is what its JSON says."""
    told = json.loads(files["json"])
    part = told["parts"]["contract"]
    outcomes = {(cell["invariant"], cell["scenario"]): cell["outcome"] for cell in part["cells"]}
    counts, columns = Counter(outcomes.values()), list(dict.fromkeys(at for _, at in outcomes))
    word, score = WORDS[told["exit_code"]], "–" if told["score"] is None else f"{told['score']:.2f}"
    assert Counter({k: n for k, n in told["counts"].items() if n}) == counts
    judged = f"{part['judged']} of {part['total']} cell"
    assert (part["judged"], part["total"]) == (counts["pass"] + counts["fail"], counts.total() - counts["n/a"])

    assert (_verdict(shown), f"resilience {score}" in shown, judged in shown) == (word, True, True)
    assert matrix(shown, columns) == outcomes
    markdown = files["md"]
    assert (markdown.splitlines()[0].split()[2], f"Resilience {score}**" in markdown) == (f"{word}:", True)
    assert matrix(markdown, columns) == outcomes

    in_junit = {key: one for key, one in junit(files["xml"]).items() if key in outcomes}
    tolerated = {key for key in outcomes if f"{key[0]} in {key[1]}" in part["tolerated"]}
    expected = {key: "skipped" if key in tolerated else JUNIT.get(one, one) for key, one in outcomes.items()}
    assert in_junit == expected, "a failure that the minimum accepts fails nobody's build"
    assert f'name="verdict" value="{word}"' in files["xml"]
    assert f'name="score" value="{score}"' in files["xml"]
    (found,) = json.loads(files["sarif"])["runs"]
    assert (found["properties"]["score"], found["properties"]["passed"]) == (told["score"], told["passed"])
    assert found["invocations"][0]["exitCode"] == told["exit_code"]
    results = {(one["ruleId"], one["properties"]["scenario"]) for one in found["results"]}
    assert results == {key for key, one in outcomes.items() if one == "fail"}
    several = sum(max(0, len(cell["causes"]) - 1) for cell in part["cells"] if cell["outcome"] == "fail")
    assert len(found["results"]) == len(results) + several, "one result for each cause"

    causes = [cells_of(one) for one in told["causes"]]
    troubled = {key for key, one in outcomes.items() if one in ("fail", "error", "unproven")}
    assert {key for one in causes for key in one} == troubled, "a cell that failed in several ways is in several causes"
    assert (shown_causes(shown), markdown.count("<details>")) == (len(causes), len(causes))
    assert page(files["html"]) == (outcomes, causes)
    assert f"<title>{word} " in files["html"]
    check_view(project, id, told, part, outcomes, causes)


def check_view(project: Project, id: str, told: Any, part: Any, outcomes: Outcomes, causes: list[Place]) -> None:
    run, grid, listed = (project.viewed(f"runs/{id}{question}") for question in ("", "/matrix", "/causes"))
    word = WORDS[told["exit_code"]]
    assert (run["verdict"], run["number"], run["counts"]) == (word, told["score"], told["counts"])
    row = run["run"]
    assert (row["verdict"], row["score"], row["passed"], row["counts"]) == (
        word, told["score"], told["passed"], told["counts"],
    )  # fmt: skip
    assert on_page(run, grid, listed) == (outcomes, causes)
    assert (listed["total"], listed["cells"]) == (len(causes), len({key for one in causes for key in one}))
    stored = {one["id"]: one for one in project.cli("runs", "--json").json["runs"]}[id]
    assert (stored["score"], stored["passed"], stored["exit_code"]) == (
        told["score"],
        told["passed"],
        told["exit_code"],
    )


@settings(max_examples=12, deadline=None, phases=PHASES)
@given(hows, chosen, matrices, st.sampled_from(((), ("--min-score", "40"), ("--replicas", "2"))))
def test_every_report_of_a_contract_says_the_same(
    how: dict[str, str], rules: list[Any], scenarios: list[Any], options: tuple[str, ...]
) -> None:
    with TemporaryDirectory() as folder:
        spec = contract(rules, scenarios, prompts=PROMPTS, agent=SECTION)
        project = made(folder, how, spec)
        shown, files = reports(project, "contract", "run", *options)
        check_run(project, "0001", shown, files)


@settings(max_examples=6, deadline=None, phases=PHASES)
@given(hows, chosen, matrices, st.sampled_from(((), ("--min-score", "40"))))
def test_every_report_of_ci_says_the_same(
    how: dict[str, str], rules: list[Any], scenarios: list[Any], options: tuple[str, ...]
) -> None:
    with TemporaryDirectory() as folder:
        spec = contract(rules, scenarios, prompts=PROMPTS, agent=SECTION)
        spec |= {
            "invariants": RULES[:2],
            "mutations": {"count": 2, "types": ["noise", "prompt_injection"]},
            "chaos": {"tool_faults": DOWN["tool_faults"]},
            "replays": {"sessions": [{"id": "s1", "input": "one", "tool_responses": [{"tool": "search"}]}]},
        }
        project = made(folder, how, spec)
        shown, files = reports(project, "ci", *options)
        check_whole(project, shown, files)


def check_whole(project: Project, shown: str, files: dict[str, str]) -> None:
    told = json.loads(files["json"])
    word, score = WORDS[told["exit_code"]], "–" if told["score"] is None else f"{told['score']:.2f}"
    parts = {name: one for name, one in told["parts"].items() if one["ran"]}
    verdicts = {name: WORDS[one["exit_code"]] for name, one in parts.items()}
    assert (_verdict(shown), f"overall {score}" in shown) == (word, True)
    signs = {name: SIGNS.get(sign) for sign, name in re.findall(r"^  (\S)  (\w+)", shown, re.MULTILINE)}
    in_words = {"PASS": "pass", "FAIL": "fail", "UNPROVEN": "unproven"}
    assert {name: signs[name] for name in parts} == {name: in_words.get(one, "error") for name, one in verdicts.items()}
    assert (files["md"].splitlines()[0].split()[2], f"**Overall {score}" in files["md"]) == (f"{word}:", True)
    assert f"<title>{word} " in files["html"]
    assert junit(files["xml"])["verdict", "overall"] == {"PASS": "pass", "FAIL": "failure"}.get(word, "error")
    found = {run["properties"]["run"]: run["properties"] for run in json.loads(files["sarif"])["runs"]}
    assert (found["0001"]["score"], found["0001"]["passed"]) == (told["score"], told["passed"])
    for name, one in parts.items():
        at = found[f"0001/{name}"]
        assert (at["score"], at["passed"]) == (one["score"], one["passed"]), name
    if "chaos" in parts and word == "FAIL":
        failed = [key for key, one in junit(files["xml"]).items() if key[1].startswith("chaos: ") and one == "failure"]
        assert {key[1] for key in failed} <= {"chaos: chaos", "chaos: calm"}
    view, stored = project.viewed("runs/0001"), project.cli("runs", "--json").json["runs"]
    assert (view["verdict"], view["number"], view["run"]["passed"]) == (word, told["score"], told["passed"])
    assert {one["part"]: (one["verdict"], one["score"]) for one in view["weights"] if one["verdict"]} == {
        name: (verdicts[name], one["score"]) for name, one in parts.items()
    }
    expected = {f"0001/{name}": (one["score"], one["passed"], one["exit_code"]) for name, one in parts.items()}
    assert {one["id"]: (one["score"], one["passed"], one["exit_code"]) for one in view["parts"]} == expected
    assert {
        one["id"]: (one["score"], one["passed"], one["exit_code"]) for one in stored if "/" in one["id"]
    } == expected
    if "contract" in parts:
        shown_part = project.cli("show", "0001/contract").out
        written = [word for ending in FORMATS for word in ("-o", f"p.{ending}")]
        project.cli("report", "0001/contract", *written)
        check_run(project, "0001/contract", shown_part, {ending: project.read(f"p.{ending}") for ending in FORMATS})
