"""The providers' own libraries in a replayed session: the model reads the recorded result of a tool that they ran."""

from __future__ import annotations

import json

import pytest
from gateway_kit import FOUND, Place
from sdk_conversations import say, use
from sdk_voices import TALKERS

from planes_kit import answer, replay, uses

OTHER = {"city": "Bern", "temperature": -3, "days": []}


@pytest.mark.parametrize("voice", TALKERS)
def test_the_model_reads_the_recorded_results_in_order(place: Place, voice: str) -> None:
    client, history = place.client(TALKERS[voice]), []
    task = replay(answer("forecast", OTHER), answer("forecast", None, 503))
    with place.sail(task=task) as served:
        first = use(client, history, say(client, history, "Will it rain?", tools=True), [FOUND])
        client.answered(history, first)
        second = use(client, history, say(client, history, "And then?", tools=True), [FOUND])
        client.answered(history, second)
        third = use(client, history, say(client, history, "And later?", tools=True), [FOUND], "streamed")
    assert json.loads(first.text) == OTHER
    assert second.text == "Error: 503 Service Unavailable"
    assert third.text.startswith("Error: forecast: ")
    assert uses(served.context.recorded) == [("forecast", 1, 200), ("forecast", 2, 503), ("forecast", 0, 0)]
    assert [event.fault for event in served.calls] == [""] * 6
    assert served.context.troubles == []


@pytest.mark.parametrize("voice", TALKERS)
def test_a_live_replay_lets_a_tool_it_does_not_know_through(place: Place, voice: str) -> None:
    client, history = place.client(TALKERS[voice]), []
    with place.sail(task=replay(answer("other", 1), live=True)) as served:
        got = use(client, history, say(client, history, "Will it rain?", tools=True), [FOUND])
    assert json.loads(got.text) == FOUND
    assert [(one.is_known, one.passed) for one in served.context.recorded] == [(False, True)]
