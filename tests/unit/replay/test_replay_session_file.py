"""A session written to a file is the same when it is read; files stay in their folder and are not overwritten."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_kit import answered, session

from error_code import has_code
from holdfast import plugins
from holdfast.errors import SpecError, UsageError
from holdfast.model.codec import encode
from holdfast.model.session import RecordedSession
from holdfast.model.task import DialogueMessage, RecordedResponse
from holdfast.replay.session_file import add_session, build_file_name, dump_session, is_too_deep, write_sessions
from holdfast.spec.rules.fault_entry import FAMILIES
from holdfast.spec.rules.replays import read_sessions

TEXT = st.text(min_size=1)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["1e5", "0x1f", "no", "~", "- a", "a: b", "<<", "12:30", "2026-01-01", " x ", "a\n\nb\n"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
MESSAGES = st.builds(DialogueMessage, st.sampled_from(["user", "assistant", "system", "tool"]), st.text())


@settings(deadline=None)
@given(TEXT, st.lists(TEXT, min_size=1, max_size=3), st.lists(MESSAGES, max_size=3), VALUES, st.text())
def test_what_is_read_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    id: str,
    turns: list[str],
    context: list[DialogueMessage],
    value: Any,
    failure: str,
) -> None:
    responses = (RecordedResponse("search", encode(value).decode(), 503, 1.5), RecordedResponse("other"))
    made = RecordedSession(
        id,
        tuple(turns),
        context=tuple(context),
        responses=responses,
        expected_failure=failure,
        failed_rules=(failure,) if failure else (),
        name="a: name",
    )
    path = tmp_path_factory.mktemp("sessions") / "one.yaml"
    path.write_bytes(dump_session(made).encode())
    (read,) = read_sessions(path)
    assert (read.id, read.turns, read.context) == (made.id, made.turns, made.context)
    assert (read.responses, read.expected_failure, read.name) == (made.responses, failure, "a: name")
    assert read.failed_rules == made.failed_rules


@given(st.text(min_size=1))
def test_a_files_name_stays_in_its_folder(id: str) -> None:
    name = build_file_name(id)
    assert Path(name).name == name
    assert not name.startswith(".")
    assert len(name) < 100
    assert build_file_name(id) == name


def test_ids_that_would_share_a_name_do_not() -> None:
    assert build_file_name("a/b") != build_file_name("a-b") != build_file_name("../a/b")
    assert build_file_name("incident-42") == "incident-42.yaml"


def test_keys_are_masked() -> None:
    key = "sk-" + "a1B2" * 8
    text = dump_session(session("one", f"my key is {key}", responses=(answered("t", {"token": key, key: 1}),)))
    assert key not in text
    assert text.count("[masked]") == 3


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    first, second = session("a", "one"), session("b", "two")
    assert len(write_sessions((first,), tmp_path, force=False).written) == 1
    again = write_sessions((first,), tmp_path, force=False)
    assert (len(again.written), len(again.unchanged)) == (0, 1)
    with pytest.raises(UsageError, check=has_code("session-unusable")):
        write_sessions((second, session("a", "changed")), tmp_path, force=False)
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]
    write_sessions((second, session("a", "changed")), tmp_path, force=True)
    assert [one.turns for path in sorted(tmp_path.iterdir()) for one in read_sessions(path)] == [("changed",), ("two",)]


def test_an_answer_is_too_deep_where_no_file_could_hold_it(tmp_path: Path) -> None:
    def nested(levels: int) -> RecordedResponse:
        return RecordedResponse("t", "[" * levels + "]" * levels)

    assert not is_too_deep(nested(90))
    assert is_too_deep(nested(91))
    assert is_too_deep(nested(100_000))
    write_sessions((session("a", responses=(nested(90),)),), tmp_path, force=False)
    assert read_sessions(tmp_path / "a.yaml")[0].responses == (nested(90),)


PAGE = (Path(__file__).parents[3] / "docs/faults.md").read_text()
DOCUMENTED = [yaml.safe_load(block) for block in re.findall(r"```yaml scenario[^\n]*\n(.*?)```", PAGE, re.S)]
NEEDED = {"permission": {"path": "a"}, "vanished": {"path": "a"}, "indirect_injection": {"tool": "x"}}
TARGETS = {"tool_faults": "tool", "mcp_faults": "tool", "http_faults": "match_url", "service_faults": "service"}
EVERY_FAULT = [
    {name: [{family.selector: mode, **({TARGETS[name]: "x"} if name in TARGETS else {}), **NEEDED.get(mode, {})}]}
    for name, family in FAMILIES.items()
    for mode in plugins.BUILT_IN[family.registry]
]
BY_URL = [
    {name: [{family.selector: mode, "match_url": "http://shop/*", **({"tool": "*"} if name == "tool_faults" else {})}]}
    for name, family in FAMILIES.items()
    if "match_url" in family.keys.__struct_fields__
    for mode in plugins.BUILT_IN[family.registry]
    if name != "context_attacks" or hasattr(plugins.find(family.registry, mode), "apply")
]
ON_ALL_TOOLS = [
    {name: [{family.selector: mode, "tool": "*"}]}
    for name, family in FAMILIES.items()
    if family.target == "tool"
    for mode in plugins.BUILT_IN[family.registry]
    if name != "context_attacks" or hasattr(plugins.find(family.registry, mode), "apply")
]


def read_back(tmp_path: Path, text: str) -> RecordedSession:
    (tmp_path / "one.yaml").write_text(text)
    (read,) = read_sessions(tmp_path / "one.yaml")
    return read


@pytest.mark.slow
def test_the_faults_of_a_session_are_read_as_they_were_written(tmp_path: Path) -> None:
    for lists in [*EVERY_FAULT, *BY_URL, *ON_ALL_TOOLS, *(one for one in DOCUMENTED if "profile" not in one)]:
        written = yaml.safe_dump({"id": "a", "input": "hi", "seed": 7, "scenario": {"name": "storm", **lists}})
        first = read_back(tmp_path, written)
        assert first.scenario is not None, lists
        assert first.scenario.injections, lists
        again = read_back(tmp_path, dump_session(first))
        assert (again.scenario, again.seed) == (first.scenario, 7), lists


@pytest.mark.parametrize("key", ["profile: api_outage", "tool_faults: [{tool: a, mode: errror}]", "unknown: 1"])
def test_what_no_session_can_have_as_its_scenario_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(SpecError):
        read_back(tmp_path, f"id: a\ninput: hi\nscenario:\n  name: storm\n  {key}\n")


def test_the_exception_of_a_tool_is_read_as_it_was_written_and_is_a_failure(tmp_path: Path) -> None:
    raised = RecordedResponse("search", '"no such item"', 500, 0.0, "builtins:KeyError")
    assert read_back(tmp_path, dump_session(session("a", responses=(raised,)))).responses == (raised,)
    (short,) = read_back(tmp_path, "id: a\ninput: hi\ntool_responses: [{tool: t, raises: 'm:E'}]\n").responses
    assert (short.failed, short.status) == (True, 500)


# -- its name in a spec -------------------------------------------------------------------------------
FILE = "replays/a.yaml"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("agent: {}  # mine\n", "agent: {}  # mine\n\nreplays:\n  sessions:\n    - file: replays/a.yaml\n"),
        ("agent: {}", "agent: {}\n\nreplays:\n  sessions:\n    - file: replays/a.yaml\n"),
        (
            "replays:\n  # old ones\n  sources:\n    - x\nagent: {}\n",
            "replays:\n  # old ones\n  sessions:\n    - file: replays/a.yaml\n  sources:\n    - x\nagent: {}\n",
        ),
        (
            "replays:\n  sessions:\n    - file: b.yaml  # first\n\n# the agent\nagent: {}\n",
            "replays:\n  sessions:\n    - file: b.yaml  # first\n    - file: replays/a.yaml\n"
            "\n# the agent\nagent: {}\n",
        ),
        (
            "replays:\n  sessions:\n  - id: x\n    input: |\n      one\n\n      two\n  sources: []\n",
            "replays:\n  sessions:\n  - id: x\n    input: |\n      one\n\n      two\n  - file: replays/a.yaml\n"
            "  sources: []\n",
        ),
        (
            "agent: {}\r\nreplays:\r\n  sessions:\r\n    - file: b.yaml\r\n",
            "agent: {}\r\nreplays:\r\n  sessions:\r\n    - file: b.yaml\r\n    - file: replays/a.yaml\r\n",
        ),
    ],
)  # fmt: skip
def test_lines_are_added_and_the_rest_stays(before: str, after: str) -> None:
    assert add_session(before, FILE) == after
    assert add_session(after, FILE) == after


@pytest.mark.parametrize(
    "text",
    [
        "{agent: {}}\n",
        "replays: {sessions: [{file: b.yaml}]}\nagent: {}\n",
        "replays:\n  sessions: []\nagent: {}\n",
        "replays:\nagent: {}\n",
        "replays:\n  sessions:\n    - &x\n      file: b.yaml\n    - *x\n  a: b: c\n",
        "- a\n",
        "agent: [",
        "",
    ],
)
def test_where_lines_alone_cannot_do_it_nothing_is_changed(text: str) -> None:
    assert add_session(text, FILE) is None


def test_an_odd_name_is_quoted() -> None:
    made = add_session("agent: {}\n", "replays/a: #b.yaml")
    assert made is not None
    assert "- file: 'replays/a: #b.yaml'" in made
