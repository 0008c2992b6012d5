"""Recorded results on their way to the model, for tools that an agent's framework runs itself."""

from __future__ import annotations

from typing import Any

import pytest
from results_kit import Talk, Trial, every_format

from golden_words import Golden
from holdfast.planes.llm import tool_results
from holdfast.planes.llm.codecs.codec import Codec
from planes_kit import answer, replay, uses


@every_format
def test_the_model_reads_what_was_recorded_and_the_same_ever_after(codec: Codec) -> None:
    trial, talk = Trial(task=replay(answer("search", {"left": 7}), answer("search", "none left"))), Talk(codec)
    talk.user("How many kettles are left?")
    trial.asks(talk, "c1")
    talk.round("c1")
    assert trial.reads(talk) == ['{"left": 7}']
    trial.asks(talk, "c2", "pot")
    talk.round("c2", "pot")
    assert trial.reads(talk) == ['{"left": 7}', "none left"]
    assert uses(trial.context.recorded) == [("search", 1, 200), ("search", 2, 200)]
    assert trial.context.recorded[0].plane == "tool_result"
    assert [(e.n, e.failed) for e in trial.context.trace] == [(1, False), (2, False)]


def asked_once(*responses: Any, live: bool = False) -> tuple[Trial, list[str]]:
    """A trial in which the model asked for one call, and what it read of the result."""
    from holdfast.planes.llm.codecs.openai_chat import OPENAI_CHAT

    trial, talk = Trial(task=replay(*responses, live=live)), Talk(OPENAI_CHAT)
    talk.user("How many kettles are left?")
    trial.asks(talk, "c1")
    talk.round("c1")
    return trial, trial.reads(talk)


@pytest.mark.parametrize(
    ("status", "body", "read"),
    [
        (0, None, "Error: search: connection error"),
        (429, None, "Error: 429 Too Many Requests"),
        (500, "it broke", "Error: 500 Internal Server Error: it broke"),
    ],
)
def test_a_recorded_failure_is_an_error_that_the_model_reads(status: int, body: Any, read: str) -> None:
    trial, got = asked_once(answer("search", body, status))
    assert got == [read]
    assert [event.error_type for event in trial.context.trace] == ["tool_error"]


def test_an_unknown_tool_reads_as_a_connection_error_unless_it_is_let_through(golden: Golden) -> None:
    trial, got = asked_once(answer("weather", 1))
    golden(got)
    assert [(u.is_known, u.call) for u in trial.context.recorded] == [(False, "search(q=kettle)")]
    trial, got = asked_once(answer("weather", 1), live=True)
    assert got == ["-"]
    assert [(u.is_known, u.passed) for u in trial.context.recorded] == [(False, True)]


def test_where_only_urls_were_recorded_results_pass() -> None:
    trial, got = asked_once(answer("https://api.test/*", 1))
    assert (got, trial.context.recorded) == (["-"], [])


def test_the_latency_is_waited_less_the_time_that_the_tool_took(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(tool_results.asyncio, "sleep", sleep)
    _, got = asked_once(answer("search", "late", latency_ms=60_000))
    assert got == ["late"]
    (seconds,) = waited
    assert 50 < seconds < 60


def test_the_observation_says_that_the_tool_itself_had_run(golden: Golden) -> None:
    from holdfast.model.observation import Answer

    trial, _ = asked_once(answer("search", "recorded"))
    seen = trial.context.observe(Answer(()))
    golden(seen.notes)
    assert uses(seen.recorded) == [("search", 1, 200)]
