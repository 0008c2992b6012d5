"""Adding a session to a spec's text: lines are added, nothing else changes."""

from __future__ import annotations

import pytest

from holdfast.replay.spec_edit import with_session

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
    assert with_session(before, FILE) == after
    assert with_session(after, FILE) == after


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
    assert with_session(text, FILE) is None


def test_an_odd_name_is_quoted() -> None:
    made = with_session("agent: {}\n", "replays/a: #b.yaml")
    assert made is not None
    assert "- file: 'replays/a: #b.yaml'" in made
