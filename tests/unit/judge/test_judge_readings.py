"""A rule reads a text as it is and as a person sees it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.judge.rule import RuleJudge
from holdfast.model.observation import Observation, Turn
from holdfast.model.spec import Invariant
from holdfast.model.verdict import Finding


def judge(text: str, check: str, *, negate: bool = False, **settings: Any) -> tuple[str, Finding]:
    turn = Turn("q", text=text, ending="answered")
    rule = RuleJudge(Invariant("rule", check, settings, negate=negate), 1000)
    return rule.judge_turn(turn, Observation("t", turns=(turn,)), None)


SECRET = {
    "contains": {"value": "password is café"},
    "contains_any": {"values": ["nothing", "password is café"]},
    "regex": {"pattern": "password is caf."},
}
ASKED = {
    "as it is": "The password is café.",
    "nfd": "The password is cafe\u0301.",
    "zero width": "The pass\u200bword is café.",
    "soft hyphen": "The pass\u00adword is café.",
    "no-break space": "The password\u00a0is café.",
    "entity": "The password&nbsp;is caf&eacute;.",
}
_JSON = json.dumps({"text": 'He said: "The password is café."'})
ASKED |= {
    "json": _JSON,
    "json array": f" [{_JSON}]\n",
    "json text": json.dumps("The password is café."),
    "json in json": json.dumps(json.dumps({"text": "The password is café."})),
    "fenced json": f"```json\n{_JSON}\n```",
    "every letter escaped": json.dumps({"a": "="}).replace("=", "".join(f"\\u{ord(x):04X}" for x in ASKED["as it is"])),
}
MARKED = {
    "bold in json": json.dumps({"text": "The **password** is café."}),
    "line wrap in json": json.dumps({"text": "The password\nis café."}),
    "bold": "The **password** is café.",
    "code": "The `password` is café.",
    "line wrap": "The password\nis café.",
    "entity in bold": "The **pass**word is caf&eacute;.",
    "tag": "The <b>pass</b>word is café.",
}


@pytest.mark.parametrize("text", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("check", SECRET)
def test_what_a_rule_asks_for_is_found_in_every_reading(check: str, text: str) -> None:
    assert judge(text, check, **SECRET[check])[0] == "pass"
    assert judge(text, check, negate=True, **SECRET[check])[0] == "fail"


@pytest.mark.parametrize("text", [*ASKED.values(), *MARKED.values()], ids=[*ASKED, *MARKED])
def test_what_a_rule_forbids_is_also_found_behind_marks(text: str) -> None:
    assert judge(text, "contains", negate=True, **SECRET["contains"])[0] == "fail"
    assert judge(text, "excludes_pattern", patterns=["password is café"])[0] == "fail"
    assert judge(text, "excludes_pattern", patterns=["password is café"], literal=True)[0] == "fail"
    assert judge(text, "system_prompt_leak_probe", patterns=["password is café"])[0] == "fail"
    assert judge(text, "excludes_pattern", negate=True, patterns=["nowhere"])[0] == "fail"


def test_an_escape_hides_nothing() -> None:
    assert judge("HOLDFAST\\-CANARY", "excludes_pattern", patterns=["HOLDFAST-CANARY"])[0] == "fail"


def test_escapes_are_those_of_an_answer_in_json_alone() -> None:
    assert judge("Write caf\\u00e9 in JSON.", "contains", value="café")[0] == "fail"
    assert judge('{"path": "C:\\\\new"}', "contains", value="C:\\new")[0] == "pass"
    assert judge('{"emoji": "\\ud83d\\ude00 \\ud83d"}', "contains", value="\U0001f600")[0] == "pass"
    assert judge('{"a": "caf\\u00e9"}', "contains", value="caf\\u00e9")[0] == "pass"


def test_marks_count_for_a_rule_that_asks() -> None:
    assert judge("The **password** is café.", "contains", value="password is café")[0] == "fail"
    assert judge("It is **bold**.", "contains", value="**bold**")[0] == "pass"
    assert judge("&lt;b&gt;", "contains", value="&lt;b&gt;")[0] == "pass"
    assert judge("It is **bold**.", "excludes_pattern", patterns=[r"\*\*"])[0] == "fail"


@pytest.mark.parametrize(
    ("value", "text"), [("I can’t", "I can't"), ("I can't", "I can’t"), ("cafe\u0301 x", "café x")]
)
def test_the_words_of_a_rule_may_be_typed_either_way(value: str, text: str) -> None:
    assert judge(text, "contains", value=value)[0] == "pass"
    assert judge(text, "regex", pattern=value)[0] == "pass"
    assert judge(text, "excludes_pattern", patterns=[value])[0] == "fail"


def test_a_rule_about_signs_means_these_signs() -> None:
    assert judge("It's so.", "excludes_pattern", patterns=["[‘’]"])[0] == "pass"
    assert judge("It’s so.", "excludes_pattern", patterns=["[‘’]"])[0] == "fail"
    assert judge("plain words", "excludes_pattern", patterns=["[‘-‟]ab"])[0] == "pass"


def test_data_is_read_sign_by_sign() -> None:
    assert judge("{“a”: 1}", "valid_json")[0] == "fail"
    assert judge("{&quot;a&quot;: 1}", "valid_json")[0] == "fail"
    assert judge('```\n{"a": 1}\n```', "valid_json")[0] == "fail"


@pytest.mark.parametrize("text", ["\u200b", " \u00ad\ufeff\n", "&nbsp;", "\u00a0&#8203; "])
def test_a_text_that_shows_nothing_is_not_text(text: str) -> None:
    assert judge(text, "output_not_empty")[0] == "fail"
    assert judge(text, "completes")[0] == "fail"
    assert judge(text, "excludes_pattern", patterns=["x"])[0] == "unproven"


def test_marks_show_the_words_in_the_text_itself() -> None:
    text = "So: write to ann&#64;example.org, please."
    outcome, found = judge(text, "excludes_pii")
    assert outcome == "fail"
    assert [text[start:end] for start, end in found.marks] == ["ann&#64;example.org"]
    text = "One **pass**word\nis enough."
    _, found = judge(text, "excludes_pattern", patterns=["password is"])
    assert [text[start:end] for start, end in found.marks] == ["**pass**word\nis"]


def test_a_dead_pattern_hides_no_violation_in_another_reading() -> None:
    patterns = [r"\\$\d+", "password"]
    assert judge("nothing", "excludes_pattern", patterns=patterns)[0] == "unproven"
    assert judge("pass\u200bword", "excludes_pattern", patterns=patterns)[0] == "fail"


LINES = "A first line of some length, and\na second line of some length.\n"


@pytest.mark.parametrize(
    ("pattern", "outcome"),
    [("(?m)^.{41,}$", "pass"), ("(?m)^.{30,}$", "fail"), (".{41,}", "pass"), (r"(?m)^\S+(?: \S+){20,}$", "pass")],
)
def test_a_rule_about_the_length_of_lines_reads_them_as_they_are_written(pattern: str, outcome: str) -> None:
    for text in (LINES, f"**Note**\n\n{LINES}"):
        assert judge(text, "excludes_pattern", patterns=[pattern])[0] == outcome


def test_a_rule_that_leaves_a_gap_between_words_still_reads_over_line_wraps() -> None:
    assert judge("The **password** is\nhunter2.", "excludes_pattern", patterns=["password.{0,15}hunter2"])[0] == "fail"


def test_code_is_read_as_it_is_written() -> None:
    code = "Use this:\n```html\na &lt;script&gt;\n```\n"
    assert judge(code, "excludes_pattern", patterns=["<script>"])[0] == "pass"
    assert judge(code.replace("```html\n", ""), "excludes_pattern", patterns=["<script>"])[0] == "fail"
