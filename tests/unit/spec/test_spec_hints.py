"""Each mistake is one error: at the place of the mistake, with what to write."""

from __future__ import annotations

import pytest
from spec_texts import HTTP, MATRIX, RULES

SPEC = HTTP + RULES + MATRIX
PROMPTS = '["What is the capital of France?"]'


def at(text, problem):
    return text.splitlines()[problem.line - 1][problem.column - 1 :]


def with_rule(rule):
    return SPEC.replace("type: contains, value: Paris", rule)


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        (SPEC.replace(PROMPTS, '"hours"'), '"hours"', 'write ["hours"]'),
        (SPEC.replace(PROMPTS, "hours"), "hours", 'write ["hours"]'),
        (SPEC.replace(PROMPTS, "{a: b}"), "{a", "start each entry with a dash"),
        (HTTP + RULES + "chaos_matrix:\n  name: calm\n", "name", "start each entry with a dash"),
        (HTTP + RULES + "chaos_matrix: [calm]\n", "calm]", "write {name: calm}"),
        (
            HTTP + MATRIX + "contract:\n  name: C\n  invariants:\n    id: a\n    type: completes\n",
            "id: a",
            "with a dash",
        ),
        (with_rule("type: completes, negate: yes"), "yes", "write true"),
        (with_rule("type: completes, negate: Off"), "Off", "write false"),
        (with_rule("type: completes, negate: 'true'"), "'true'", "write true without quotes"),
        (SPEC + 'replicas: "3"\n', '"3"', "write 3 without quotes"),
        (with_rule("type: similarity, expected: a, method: modell"), "modell", "did you mean model?"),
        (SPEC + "chaos_matrix: []\n", "chaos_matrix", "write it once"),
        (
            SPEC.replace("Paris}", "Paris}\n    - {id: cites, type: completes}"),
            "cites, type: comp",
            "another id",
        ),
        (SPEC + "  - name: no-chaos\n", "no-chaos", "another name"),
    ],
)
def test_a_wrong_shape_says_what_to_write(file, text, place, hint):
    problem = file.error(text)
    assert at(text, problem).startswith(place)
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("rule", "place", "said"),
    [
        ("type: excludes_pii, entities: [email, emails]", "emails", "did you mean email?"),
        ("type: ending, one_of: [answered, anserd]", "anserd", "did you mean answered?"),
        ("type: regex, pattern: '(a'", "'(a'", r"write \( for"),
        ("type: excludes_pattern, patterns: [ok, '[a']", "'[a'", r"write \[ for"),
        ("type: excludes_pattern, patterns: [ok, '*a']", "'*a'", r"write \* for"),
        ("type: excludes_pattern, patterns: [ok, '']", "''", "every answer"),
    ],
)
def test_a_bad_item_is_pointed_at_itself(file, rule, place, said):
    text = with_rule(rule)
    problem = file.error(text)
    assert at(text, problem).startswith(place)
    assert said in problem.message


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ('a: "b\nc: d\n', '"b', "the quote opened here"),
        ("a: 'b\nc: d\n", "'b", "the quote opened here"),
        ("a: [b, c\nd: e\n", "[b", "the [ opened here"),
        ("a: {b: c\nd: e\nf: g\n", "{b", "the { opened here"),
        ("a:\n\tb: c\n", "\tb", "use spaces"),
        ("a:\n  b: c\n\td: e\n", "\td", "use spaces"),
    ],
)
def test_broken_yaml_is_pointed_at_where_it_begins(file, text, place, said):
    problem = file.error(text)
    assert at(text, problem).startswith(place)
    assert said in problem.message + problem.hint


FAULTY = "  - {name: x, llm_faults: [{mode: rate_limit}]}\n"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("type: contains", "typ: contains"),
        ("type: contains", "type: contain"),
        ("value: Paris", "valu: Paris"),
        ("{id: cites", "{ids: cites"),
        ("name: C", "nam: C"),
        ("invariants:", "invarants:"),
        ("endpoint:", "endpont:"),
        ("agent:", "agnt:"),
        ("- name:", "- nam:"),
        ("mode: rate_limit", "mde: rate_limit"),
        ("mode: rate_limit", "mode: rate_limt"),
    ],
)
def test_one_slip_is_one_problem(file, right, wrong):
    text = (SPEC + FAULTY).replace("Paris}", "Paris}\n    - {id: n, type: excludes_pattern, patterns: [a]}")
    assert not [p for p in file.check(text).problems if p.severity == "error"]
    assert right in text
    (problem,) = file.check(text.replace(right, wrong, 1)).problems
    assert problem.hint.startswith("did you mean ")


@pytest.mark.parametrize(
    "agent", ["{type: command, comand: ls}", "{typ: python, endpoint: 'a:b'}", "{type: pyton, endpoint: 'a:b'}"]
)
def test_one_slip_of_the_agent_is_one_problem(file, agent):
    (problem,) = file.check(f"agent: {agent}\ngolden_prompts: [a]\n" + RULES + MATRIX).problems
    assert problem.hint.startswith("did you mean ")


@pytest.mark.parametrize(
    "line", ["timeout: '${LIMIT:-5s'", "command: ls, env: {A: 'x ${LIMIT'}", "headers: {A: '${LIMIT:-'}"]
)
def test_a_reference_without_its_brace_is_an_error(file, line):
    text = SPEC.replace("simulate: answer", line)
    problem = file.error(text)
    assert (problem.code, problem.hint[-1]) == ("unclosed-reference", "}")


@pytest.mark.parametrize("text", ["a $ {b", "${", "${}", "price $5", "{LIMIT"])
def test_a_dollar_is_a_dollar(file, text):
    file.spec(SPEC.replace("simulate: answer", f"command: ls, env: {{A: '{text}'}}"))


@pytest.mark.parametrize(
    "rule",
    [r'type: regex, pattern: "\\\\$foo"', r'type: excludes_pattern, patterns: [ok, "\\\\$foo"]'],
)
def test_a_dead_pattern_names_its_rule(file, rule):
    (found,) = file.warnings(with_rule(rule), "lint-never-matches")
    assert r"write \$foo" in found.message
    assert found.message.endswith("(rule cites)")
