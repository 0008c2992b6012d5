"""How a replayed trial and its recording differ, in words."""

from __future__ import annotations

from golden_words import Golden
from holdfast.model.task import RecordedUse, Task
from holdfast.planes.recorded_tools import USES_KEPT, write_replay_notes
from planes_kit import answer, replay

SEARCH, WEATHER = answer("search", 1), answer("weather", 2)


def given(tool: str, n: int, plane: str = "tool") -> RecordedUse:
    return RecordedUse(tool, n, plane, 200, f"{tool}()")


def unknown(tool: str, call: str, *, passed: bool = False) -> RecordedUse:
    return RecordedUse(tool, 0, "tool", 0, call, passed=passed)


def test_a_task_without_a_recording_has_none() -> None:
    assert write_replay_notes(Task(("hello",)), ()) == ()


def test_a_trial_that_did_what_was_recorded_has_none() -> None:
    assert write_replay_notes(replay(SEARCH, WEATHER), [given("search", 1), given("weather", 1)]) == ()
    assert write_replay_notes(replay(), ()) == ()


def test_unknown_calls_are_shown_each_once(golden: Golden) -> None:
    seen = [given("search", 1), unknown("book", "book(seat=4)"), unknown("book", "book(seat=4)"), unknown("x", "x()")]
    golden(write_replay_notes(replay(SEARCH), seen))


def test_a_tool_whose_responses_are_used_up_is_reported_as_such(golden: Golden) -> None:
    golden(write_replay_notes(replay(SEARCH), [given("search", 1), unknown("search", "search(q=more)")]))


def test_what_was_let_through_is_reported(golden: Golden) -> None:
    seen = [given("search", 1), unknown("book", "book()", passed=True)]
    golden(write_replay_notes(replay(SEARCH, live=True), seen))


def test_a_tool_that_no_longer_exists_and_one_that_is_called_less_are_reported(golden: Golden) -> None:
    task = replay(SEARCH, SEARCH, SEARCH, WEATHER, WEATHER)
    golden(write_replay_notes(task, [given("search", 1)]))


def test_a_session_of_which_no_tool_was_called_is_judged_and_says_so(golden: Golden) -> None:
    golden(write_replay_notes(replay(SEARCH), ()))


def test_a_result_that_was_changed_on_its_way_to_the_model_says_that_the_tool_ran(golden: Golden) -> None:
    golden(write_replay_notes(replay(SEARCH), [given("search", 1, "tool_result")]))


def test_what_an_agent_can_make_us_say_is_bounded(golden: Golden) -> None:
    notes = write_replay_notes(replay(), [unknown("t", f"t({n})") for n in range(USES_KEPT)])
    assert len(notes) == 12
    golden(notes[10])
    golden(notes[11])
