"""`--record FILE` keeps every model call; `--replay FILE` answers from it, with no provider and no key."""

from __future__ import annotations

import json
import stat
from typing import Any

from cli import CALM, Asked, MakeProject, Project, Reply, Serve, contract, facts, rule, unseal
from plane_agents import ASKS, ECHO, MARKET, SCRIPTED, TRADES, command, equip, holding, ledger, quick, run
from test_launched_models import KEY, LIMIT, NO_KEYS, completion

RULES = [rule("numbered", "regex", pattern=r"reply \d+")]


def counted(serve: Serve) -> Any:
    """A provider that never answers the same twice."""

    def answer(asked: Asked) -> Reply:
        return completion(f"reply {len(server.requests)} to {json.loads(asked.body)['messages'][-1]['content']}")

    server = serve(answer)
    return server


def made(project: MakeProject, **more: Any) -> Project:
    spec = contract(RULES, more.pop("matrix", [CALM]), prompts=("one", "two"), agent=command(), **more)
    return equip(project(spec, more.pop("source", ASKS)))


def answers(result: Any) -> list[str]:
    return [trial["answer"] for trial in result.trials]


def test_a_recorded_run_is_repeated_without_the_provider_and_gives_the_same(project: MakeProject, serve: Serve) -> None:
    provider = counted(serve)
    found = made(project)
    env = {**NO_KEYS, "OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": KEY}
    first = run(found, "--record", "calls.jsonl", env=env)
    assert first.code == 0, first.err
    asked = len(provider.requests)
    again = run(found, "--replay", "calls.jsonl", env=NO_KEYS)
    assert answers(again) == answers(first)
    assert facts(again) == facts(first)
    assert len(provider.requests) == asked
    assert holding(found.folder, KEY) == []
    assert stat.S_IMODE((found.folder / "calls.jsonl").stat().st_mode) & 0o077 == 0


def test_faults_act_on_a_replay_as_they_do_on_a_provider(project: MakeProject, serve: Serve) -> None:
    provider = counted(serve)
    found = made(project)
    env = {**NO_KEYS, "OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": KEY}
    quick(found, "--record", "calls.jsonl", env=env)
    found.write(contract(RULES, [LIMIT], prompts=("one", "two"), agent=command()))
    result = quick(found, "--replay", "calls.jsonl", "--no-preflight", env=NO_KEYS)
    assert set(answers(result)) == {"model failed: 429"}
    assert {entry[4:] for entry in ledger(found, "0002")} == {("rate_limit", "met")}


def test_a_request_that_was_not_recorded_is_an_error_with_the_nearest_one(project: MakeProject, serve: Serve) -> None:
    provider = counted(serve)
    found = made(project)
    env = {**NO_KEYS, "OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": KEY}
    quick(found, "--record", "calls.jsonl", env=env)
    found.write(contract(RULES, [CALM], prompts=("tow",), agent=command()))
    result = quick(found, "--replay", "calls.jsonl", "--no-preflight", env=NO_KEYS)
    assert (result.code, result.cell["outcome"]) == (3, "error")
    assert " 'two'" in result.trial["reason"]


def test_a_conversation_with_tools_is_recorded_from_a_script_and_repeated(project: MakeProject) -> None:
    spec = contract([rule("price", value="12.5")], [CALM], agent=command(), models=SCRIPTED)
    found = equip(project(spec, TRADES), MARKET)
    assert quick(found, "--record", "calls.jsonl").code == 0
    del spec["models"]
    found.write(spec)
    (found.folder / "model.yaml").unlink()
    again = quick(found, "--replay", "calls.jsonl", env=NO_KEYS)
    assert (again.code, again.trial["answer"].strip()) == (0, "the price is 12.5")


def test_recording_and_replaying_at_once_or_from_nowhere_is_refused(project: MakeProject) -> None:
    found = made(project)
    both = found.cli("contract", "run", "--record", "a", "--replay", "b")
    assert (both.code, "--record" in both.err and "--replay" in both.err) == (4, True)
    missing = found.cli("contract", "run", "--replay", "nowhere.jsonl")
    assert (missing.code, "nowhere.jsonl" in missing.err) == (4, True)
    (found.folder / "bad.jsonl").write_text("{}\n")
    bad = found.cli("contract", "run", "--replay", "bad.jsonl")
    assert (bad.code, "bad.jsonl:1" in bad.err) == (4, True)


def test_a_run_of_a_recording_is_taken_up_with_it_and_says_what_answered(project: MakeProject) -> None:
    spec = contract([rule("echoes", value="you said")], [CALM], prompts=tuple("abc"), agent=command(), models=SCRIPTED)
    found = equip(project(spec, ASKS), ECHO)
    whole = quick(found, "--record", "calls.jsonl")
    del spec["models"]
    found.write(spec)
    replayed = quick(found, "--replay", "calls.jsonl", env=NO_KEYS)
    assert any("calls.jsonl" in note for note in replayed.json["notes"])
    assert " --replay calls.jsonl " in replayed.trials[0]["again"]
    file = found.folder / ".holdfast" / "runs" / "0002" / "observations-0.jsonl"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:2]))
    unseal(found, "0002")
    again = quick(found, "--resume", "2", env=NO_KEYS)
    assert (again.code, answers(again)) == (0, answers(whole))
    other = found.cli("contract", "run", "--resume", "2", "--replay", "other.jsonl")
    assert (other.code, "--replay cannot be changed" in other.err) == (4, True)


def test_a_call_that_is_recorded_again_is_answered_with_the_newer_reply(project: MakeProject, serve: Serve) -> None:
    provider = counted(serve)
    found = made(project)
    env = {**NO_KEYS, "OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": KEY}
    quick(found, "--record", "calls.jsonl", env=env)
    newer = quick(found, "--record", "calls.jsonl", env=env)
    assert answers(quick(found, "--replay", "calls.jsonl", env=NO_KEYS)) == answers(newer)
