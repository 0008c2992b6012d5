"""Repetitions of a client library are told apart from the agent's own calls."""

from __future__ import annotations

from holdfast.model.codec import digest
from holdfast.planes.llm.earlier_requests import Attempts

OPENAI = {"x-stainless-lang": "python"}
GOOGLE = {"x-goog-api-client": "google-genai-sdk/1.50 gl-python/3.11"}


def attempt(
    attempts: Attempts, body: bytes, told: str | None = None, *, by: dict[str, str] | None = None, ends: str = "well"
) -> int:
    headers = {**(by or {}), **({} if told is None else {"x-stainless-retry-count": told})}
    key = digest(body)
    retry = attempts.find_retry_number(headers.get, key)
    attempts.record_end(key, retry, well=ends == "well", lost=ends == "lost")
    return retry


def test_a_library_that_counts_is_believed() -> None:
    attempts = Attempts()
    assert [attempt(attempts, b"x", told, ends="failed") for told in ("0", "1", "2")] == [0, 1, 2]
    assert attempt(attempts, b"x", "0") == 0  # the same again, by the agent itself


def test_a_counter_is_believed_as_far_as_failures_were_seen() -> None:
    attempts = Attempts()
    assert attempt(attempts, b"x", "2") == 0
    assert attempt(attempts, b"x", "99999999999", ends="failed") == 0
    assert attempt(attempts, b"x", "7", ends="failed") == 1
    assert attempt(attempts, b"x", "0", ends="failed") == 0
    assert attempt(attempts, b"x", "7") == 1
    assert attempt(attempts, b"x", "1") == 0  # after a success there is nothing to repeat


def test_the_same_body_after_a_failure_is_the_agents_own_call_where_no_library_is_known_to_repeat() -> None:
    attempts = Attempts()
    assert [attempt(attempts, b"x", ends="failed") for _ in range(3)] == [0, 0, 0]
    assert [attempt(attempts, b"y", ends="lost") for _ in range(3)] == [0, 0, 0]


def test_an_old_library_that_repeats_and_does_not_count_is_known_by_its_headers() -> None:
    attempts = Attempts()
    assert [attempt(attempts, b"x", by=OPENAI, ends="failed") for _ in range(2)] == [0, 1]
    assert attempt(attempts, b"x", by=OPENAI) == 2
    assert attempt(attempts, b"x", by=OPENAI) == 0


def test_googles_library_repeats_a_lost_connection_once_and_nothing_else() -> None:
    attempts = Attempts()
    assert [attempt(attempts, b"x", by=GOOGLE, ends="failed") for _ in range(2)] == [0, 0]
    assert [attempt(attempts, b"y", by=GOOGLE, ends="lost") for _ in range(3)] == [0, 1, 0]


def test_another_body_is_another_call() -> None:
    attempts = Attempts()
    assert [attempt(attempts, b"x", by=OPENAI, ends="failed"), attempt(attempts, b"y", by=OPENAI)] == [0, 0]


def test_a_counter_that_is_not_one_is_not_believed() -> None:
    attempts = Attempts()
    assert attempt(attempts, b"x", "many", ends="failed") == 0
    assert attempt(attempts, b"x", "many", ends="failed") == 0
