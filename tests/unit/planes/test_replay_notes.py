"""How a replayed trial and its recording differ, in words."""

from __future__ import annotations

from holdfast.model.task import RecordedUse, Task
from holdfast.planes.recorded_tools import USES_KEPT, replay_notes
from planes_kit import answer, replay

SEARCH, WEATHER = answer("search", 1), answer("weather", 2)


def given(tool: str, n: int, plane: str = "tool") -> RecordedUse:
    return RecordedUse(tool, n, plane, 200, f"{tool}()")


def unknown(tool: str, call: str, *, passed: bool = False) -> RecordedUse:
    return RecordedUse(tool, 0, "tool", 0, call, passed=passed)


def test_a_task_without_a_recording_has_none() -> None:
    assert replay_notes(Task(("hello",)), ()) == ()


def test_a_trial_that_did_what_was_recorded_has_none() -> None:
    assert replay_notes(replay(SEARCH, WEATHER), [given("search", 1), given("weather", 1)]) == ()
    assert replay_notes(replay(), ()) == ()


def test_unknown_calls_are_shown_each_once() -> None:
    seen = [given("search", 1), unknown("book", "book(seat=4)"), unknown("book", "book(seat=4)"), unknown("x", "x()")]
    assert replay_notes(replay(SEARCH), seen) == (
        "the recording has no reply for: book(seat=4) (2 times)",
        "the recording has no reply for: x()",
    )


def test_a_tool_whose_responses_are_used_up_is_told_as_such() -> None:
    assert replay_notes(replay(SEARCH), [given("search", 1), unknown("search", "search(q=more)")]) == (
        "the recording has no reply for: search(q=more); all its recorded replies were used",
    )


def test_what_was_let_through_is_told() -> None:
    seen = [given("search", 1), unknown("book", "book()", passed=True)]
    assert replay_notes(replay(SEARCH, live=True), seen) == (
        "the recording has no reply for: book(); the tool was called",
    )


def test_a_tool_that_no_longer_exists_and_one_that_is_called_less_are_told() -> None:
    task = replay(SEARCH, SEARCH, SEARCH, WEATHER, WEATHER)
    assert replay_notes(task, [given("search", 1)]) == (
        "called less often than recorded: search (1 of 3 responses)",
        "never called: weather (2 responses)",
    )


def test_a_session_of_which_no_tool_was_called_is_judged_and_says_so() -> None:
    assert replay_notes(replay(SEARCH), ()) == (
        "never called: search (1 response)",
        "none of the recorded tools was called; the rules were still judged",
    )


def test_a_result_that_was_changed_on_its_way_to_the_model_says_that_the_tool_ran() -> None:
    assert replay_notes(replay(SEARCH), [given("search", 1, "tool_result")]) == (
        "the model received the recorded result, but the tool also ran: search",
    )


def test_what_an_agent_can_make_us_say_is_bounded() -> None:
    notes = replay_notes(replay(), [unknown("t", f"t({n})") for n in range(USES_KEPT)])
    assert len(notes) == 12
    assert notes[10] == "the recording has no reply for 990 more calls"
    assert notes[11].startswith("only the first 1000 tool calls")
