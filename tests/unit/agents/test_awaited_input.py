"""What is taken for a program that waits for input, and what is not."""

from __future__ import annotations

import pytest

from holdfast.agents.command.answer import OutputEnd, find_question_line
from holdfast.agents.command.channels import find_missing_facilities


@pytest.mark.parametrize(
    "text",
    [
        "Do you trust this folder? [y/N] ",
        "Overwrite? (Y/n)",
        "Accept the terms (yes/no/always): ",
        "Press Enter to continue",
        "press any key to continue...",
        "Do you accept the licence agreement?\n",
        "Are you sure you want to delete it?",
    ],
)
def test_a_choice_is_a_question_even_after_calls(text: str) -> None:
    assert find_question_line(f"hello\n{text}", anything=False) == text.strip()


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Enter your API key: ", "Enter your API key:"),
        ("Which model?\n> ", ">"),
        ("1) small\n2) large\nYour choice [1]", "Your choice [1]"),
        ("To sign in, open https://example.org/device\nand enter ABCD-1234\n", "and enter ABCD-1234"),
        ("Waiting for authentication in your browser...\n", "Waiting for authentication in your browser..."),
    ],
)
def test_before_any_call_a_prompt_and_a_sign_in_are_questions(text: str, question: str) -> None:
    assert find_question_line(text, anything=True) == question
    assert find_question_line(text, anything=False) == ""


def test_what_asks_for_nothing() -> None:
    for text in [
        "",
        "Thinking...",
        "Loading the model 45 %",
        "Results:\n",
        "Is it so? Yes, it is.\n",
        "Shall I go on with the second part?\n",
        "The log in /tmp says nothing\n",
        "authenticated as bob\nworking\n",
        "Authenticated via https://example.org\nwaiting for the model\n",
        "press releases were read",
        "INFO [2026-11-17] started\n",
        "see options [a/b]\n",
    ]:
        assert find_question_line(text, anything=True) == "", text


def test_who_called_something_since_does_not_wait() -> None:
    calls = [0]
    last = OutputEnd(lambda: calls[0])
    last.add(b"x" * 5_000 + b"\nGo on? [y/n]")
    assert last.find_question() == "Go on? [y/n]"
    calls[0] += 1
    assert last.find_question() == ""
    last.add(b"\nmore? ")
    assert last.find_question() == ""  # it works: only a choice is a question by now
    last.add(b"[y/n]")
    assert last.find_question() == "more? [y/n]"


# What a program seems to have missed, by its own words.


@pytest.mark.parametrize(
    ("printed", "wants"),
    [
        ("OSError: [Errno 25] Inappropriate ioctl for device", "a terminal"),
        ("RuntimeError: No CUDA GPUs are available", "a GPU"),
        ("sh: 1: nvidia-smi: not found", "a GPU"),
        ("ImportError: libcuda.so.1: cannot open shared object file", "a GPU"),
        ("BrowserType.launch: Executable doesn't exist at /root/.cache/ms-playwright/chromium/chrome", "a browser"),
        ("Error: no DISPLAY: Missing X server or $DISPLAY", "a browser"),
        ("Failed to launch the browser process!", "a browser"),
        ("ValueError: prices of a GPU are unknown", ""),
        ("Traceback: KeyError: 'browser'", ""),
    ],
)
def test_the_means_are_named(printed: str, wants: str) -> None:
    found = [*find_missing_facilities(printed, sandboxed=True)]
    assert [wants in note for note in found] == ([True] if wants else [])
    if wants != "a terminal":
        assert [*find_missing_facilities(printed, sandboxed=False)] == []
