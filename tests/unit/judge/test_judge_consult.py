"""Asking judges: every provider's format over a real connection, what is kept, and what goes wrong."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.checks.state.judging import is_vote
from holdfast.errors import HarnessError
from holdfast.judge import consult
from holdfast.judge.consult import AdviceCache, Consultation, add_printed_answers, consult_model
from holdfast.model.model_spec import ModelSpec
from holdfast.model.observation import Observation, Turn
from holdfast.model.spec import AgentSpec
from holdfast.model.world import Evidence
from holdfast.protocols.check import Advice
from judge_kit import Got, JudgeServer, Reply, judging, rating

GOOD = rating(0.9)


class Waits:
    """Waiting that takes no time."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


def consulting(
    folder: Path,
    models: Mapping[str, ModelSpec],
    work: Callable[[Callable[..., Awaitable[Advice]]], Awaitable[Any]],
    *,
    environ: Mapping[str, str] | None = None,
    **more: Any,
) -> Any:
    """Runs `work` with an ask; `ask(model, prompt, **how)`."""

    async def go() -> Any:
        made = Consultation(models, environ or {}, folder, AdviceCache(folder / "cache"), **more)

        async def ask(model: str = "judge", prompt: str = "p", **how: Any) -> Advice:
            settings: dict[str, Any] = {"temperature": None, "vote": 0, "fits": is_vote, **how}
            return await made(model, "be a judge", prompt, **settings)

        try:
            return await work(ask)
        finally:
            await made.close()

    return asyncio.run(go())


def once(folder: Path, server: JudgeServer, provider: str = "openai", **more: Any) -> Advice:
    models = {"judge": ModelSpec(provider, name="m-1", base_url=server.url, api_key="sk-1")}  # type: ignore[arg-type]
    return consulting(folder, models, lambda ask: ask(), **more)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("provider", "path", "key", "json_mode"),
    [
        ("openai", "/v1/chat/completions", ("authorization", "Bearer sk-1"), "response_format"),
        ("anthropic", "/v1/messages", ("x-api-key", "sk-1"), "max_tokens"),
        ("google", "/v1beta/models/m-1:generateContent", ("x-goog-api-key", "sk-1"), "generationConfig"),
        ("ollama", "/api/chat", ("authorization", "Bearer sk-1"), "format"),
    ],
)
def test_every_provider_is_asked_in_its_own_format(
    tmp_path: Path, provider: str, path: str, key: tuple[str, str], json_mode: str
) -> None:
    with judging(lambda got: GOOD) as server:
        advice = once(tmp_path, server, provider)
    assert advice == Advice(GOOD, f"{provider}/m-1")
    (got,) = server.seen
    assert (got.path, got.headers[key[0]]) == (path, key[1])
    assert (got.system, got.prompt, got.temperature) == ("be a judge", "p", 0)
    assert json_mode in got.body
    assert "tools" not in got.body
    assert got.body.get("model", "m-1") == "m-1"
    assert (provider == "anthropic") == ("anthropic-version" in got.headers)


@pytest.mark.parametrize(
    ("model", "variables", "path", "name"),
    [
        ("gpt-4o-mini", {"OPENAI_BASE_URL": "{}/v1", "OPENAI_API_KEY": "sk"}, "/v1/chat/completions", "gpt-4o-mini"),
        ("o3-mini", {"OPENAI_BASE_URL": "{}/v1", "OPENAI_API_KEY": "sk"}, "/v1/chat/completions", "o3-mini"),
        ("openai/any", {"OPENAI_BASE_URL": "{}/v1", "OPENAI_API_KEY": "sk"}, "/v1/chat/completions", "any"),
        ("claude-x", {"ANTHROPIC_BASE_URL": "{}", "ANTHROPIC_API_KEY": "sk"}, "/v1/messages", "claude-x"),
        ("anthropic/c/2", {"ANTHROPIC_BASE_URL": "{}", "ANTHROPIC_API_KEY": "sk"}, "/v1/messages", "c/2"),
        ("ollama/qwen:3b", {"OLLAMA_HOST": "{}"}, "/api/chat", "qwen:3b"),
    ],
)
def test_a_known_name_goes_to_its_provider_with_the_key_of_its_variable(
    tmp_path: Path, model: str, variables: Mapping[str, str], path: str, name: str
) -> None:
    with judging(lambda got: GOOD) as server:
        environ = {key: value.format(server.url) for key, value in variables.items()}
        other = {"any": ModelSpec(base_url="http://127.0.0.1:1"), "c/2": ModelSpec(base_url="http://127.0.0.1:1")}
        consulting(tmp_path, other, lambda ask: ask(model), environ=environ)
    (got,) = server.seen
    assert (got.path, got.body["model"]) == (path, name)
    assert ("sk" in str(got.headers)) == any("KEY" in variable for variable in variables)


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("gpt-4o", "OPENAI_API_KEY"),
        ("claude-3", "ANTHROPIC_API_KEY"),
        ("gemini-2", "GOOGLE_API_KEY"),
        ("paragon-fast", "models:"),
        ("mystery", "'mystery'"),
        ("acme/x", "'acme/x'"),
    ],
)
def test_a_model_that_nobody_answers_for_is_an_error_that_says_what_to_do(
    tmp_path: Path, model: str, names: str
) -> None:
    with pytest.raises(HarnessError) as raised:
        consulting(tmp_path, {}, lambda ask: ask(model), sleep=Waits())
    assert (raised.value.code, names in str(raised.value)) == ("model-missing", True)


def test_the_judges_own_temperature_wins_over_the_models_over_0(tmp_path: Path) -> None:
    async def all_three(ask: Any) -> None:
        await ask("warm")
        await ask("warm", temperature=0.2)
        await ask("plain")

    with judging(lambda got: GOOD) as server:
        models = {
            "warm": ModelSpec(name="w", base_url=server.url, temperature=0.7),
            "plain": ModelSpec(name="p", base_url=server.url),
        }
        consulting(tmp_path, models, all_three)
    assert [got.temperature for got in server.seen] == [0.7, 0.2, 0]


def test_what_a_model_refuses_is_left_out_and_noted(tmp_path: Path) -> None:
    def picky(got: Got) -> str | Reply:
        for word, there in (
            ("temperature", "temperature" in got.body),
            ("response_format", "response_format" in got.body),
            ("system", bool(got.system)),
        ):
            if there:
                return Reply(400, f'{{"error": {{"message": "Unsupported value: {word}"}}}}')
        return GOOD

    async def twice(ask: Any) -> list[Advice]:
        return [await ask(), await ask(prompt="another")]

    with judging(picky) as server:
        models = {"judge": ModelSpec(name="o1", base_url=server.url)}
        first, second = consulting(tmp_path, models, twice)
    assert first.text == GOOD
    assert len(first.notes) == 3
    assert "temperature" in first.notes[0]
    assert second.notes == first.notes
    assert len(server.seen) == 5, "what is known is not tried again"
    assert server.seen[-1].prompt == "be a judge\n\nanother"


def test_a_reply_is_kept_by_all_that_it_depends_on(tmp_path: Path) -> None:
    async def asks(ask: Any) -> None:
        for how in ({}, {}, {"vote": 1}, {"prompt": "q"}, {"temperature": 1.0}, {"model": "other"}):
            await ask(**how)

    with judging(lambda got: GOOD) as server:
        models = {"judge": ModelSpec(name="a", base_url=server.url), "other": ModelSpec(name="b", base_url=server.url)}
        consulting(tmp_path, models, asks)
        assert len(server.seen) == 5
        time.sleep(0.02)  # a file's time is as coarse as the kernel's tick
        consulting(tmp_path, models, asks)
        assert len(server.seen) == 5
        moved = {**models, "judge": ModelSpec(name="a2", base_url=server.url)}
        consulting(tmp_path, moved, lambda ask: ask())
        assert len(server.seen) == 6
    for file in (tmp_path / "cache").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
        assert b"be a judge" not in file.read_bytes(), "only the reply is kept"


def test_a_malformed_reply_is_not_kept(tmp_path: Path) -> None:
    said = ["well…", GOOD]

    async def twice(ask: Any) -> list[str]:
        return [(await ask()).text for _ in range(3)]

    with judging(lambda got: said.pop(0)) as server:
        models = {"judge": ModelSpec(name="m", base_url=server.url)}
        assert consulting(tmp_path, models, twice) == ["well…", GOOD, GOOD]


def test_the_same_question_at_the_same_time_is_asked_once(tmp_path: Path) -> None:
    async def together(ask: Any) -> list[Advice]:
        return await asyncio.gather(*(ask() for _ in range(20)))

    with judging(lambda got: GOOD) as server:
        found = consulting(tmp_path, {"judge": ModelSpec(name="m", base_url=server.url)}, together)
    assert len(server.seen) == 1
    assert found == [Advice(GOOD, "openai/m")] * 20


@pytest.mark.parametrize(
    ("reply", "why", "asked"),
    [
        (Reply(429, '{"error": {"message": "slow down"}}', {"retry-after": "7"}), "status 429: slow down", 3),
        (Reply(503, "busy"), "status 503: busy", 3),
        (Reply(401, '{"error": {"message": "bad key"}}'), "status 401: bad key", 1),
        (Reply(404, "<html>not here</html>"), "status 404: <html>not here", 1),
        (Reply(200, "<html>welcome</html>"), "is not JSON: <html>welcome", 1),
        (Reply(200, '{"error": {"message": "overloaded"}}'), "overloaded", 1),
    ],
)
def test_a_failed_call_is_an_error_after_its_retries(tmp_path: Path, reply: Reply, why: str, asked: int) -> None:
    waits = Waits()
    with judging(lambda got: reply) as server, pytest.raises(HarnessError, match=why):
        once(tmp_path, server, sleep=waits)
    assert len(server.seen) == asked
    assert waits.waits == ([] if asked == 1 else [7.0, 7.0] if reply.status == 429 else [0.5, 1.0])
    assert not (tmp_path / "cache").exists()


def test_a_server_that_comes_back_is_asked_again(tmp_path: Path) -> None:
    replies: list[str | Reply] = [Reply(500), GOOD]
    with judging(lambda got: replies.pop(0)) as server:
        assert once(tmp_path, server, sleep=Waits()).text == GOOD


def test_a_server_that_is_down_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        models = {"judge": ModelSpec(name="m", base_url=url, api_key="sk-secret")}
        with pytest.raises(HarnessError) as failed:
            consulting(tmp_path, models, lambda ask: ask(), sleep=Waits())
        assert failed.value.code == "model-unavailable"
    assert url in str(failed.value)
    assert "sk-secret" not in str(failed.value)


def test_a_scripted_model_judges_too_and_its_text_is_part_of_the_question(tmp_path: Path) -> None:
    script = tmp_path / "judge.yaml"
    script.write_text("replies:\n  - {times: 1, text: hm}\n  - {text: '{\"score\": 0.4}'}\n")
    models = {"judge": ModelSpec("script", script="judge.yaml")}

    async def twice(ask: Any) -> list[Advice]:
        return [await ask(), await ask()]

    assert consulting(tmp_path, models, twice) == [
        Advice("hm", "script judge.yaml:2"),
        Advice('{"score": 0.4}', "script judge.yaml:3"),
    ]
    time.sleep(0.02)
    script.write_text("replies:\n  - {text: '{\"score\": 1}'}\n")
    assert consulting(tmp_path, models, lambda ask: ask()).text == '{"score": 1}'


def test_the_votes_of_one_judgement_share_the_times_of_a_scripts_rules(tmp_path: Path) -> None:
    rules = "".join(f"  - {{times: 1, text: '{{\"score\": {score}}}'}}\n" for score in (0.1, 0.9, 0.8))
    (tmp_path / "judge.yaml").write_text(f"replies:\n{rules}")
    models = {"judge": ModelSpec("script", script="judge.yaml")}

    async def votes(ask: Any, count: int = 3, **how: Any) -> list[str]:
        return [(await ask(vote=n, **how)).text for n in range(count)]

    async def judgements(ask: Any) -> list[list[str]]:
        return [await votes(ask), await votes(ask), await votes(ask, prompt="another")]

    ratings = ['{"score": 0.1}', '{"score": 0.9}', '{"score": 0.8}']
    assert consulting(tmp_path, models, lambda ask: votes(ask, 1)) == ratings[:1]
    time.sleep(0.02)  # a file's time is as coarse as the kernel's tick
    assert consulting(tmp_path, models, judgements) == [ratings] * 3, "a vote of an earlier run uses up nothing"

    with pytest.raises(HarnessError) as raised:
        consulting(tmp_path, models, lambda ask: votes(ask, 4))
    assert raised.value.code == "script-no-rule"


def test_what_a_command_answers_it_has_printed() -> None:
    seen = Observation("t", (Turn("q", "one"), Turn("q", None), Turn("q", "two")), output="on stderr")
    assert add_printed_answers(AgentSpec("command", command="x"), seen).output == "one\ntwo\non stderr"
    for other in (AgentSpec("python"), AgentSpec("command", command="x", answer_file="a"), AgentSpec(command="x")):
        assert add_printed_answers(other, seen).output == "on stderr"


@pytest.mark.parametrize(
    ("broken", "told"),
    [(HarnessError("the judge is down"), "the judge is down"), (KeyError("score"), "KeyError: 'score'")],
)
def test_a_check_that_breaks_while_it_asks_says_whose_failure_it_is(broken: Exception, told: str) -> None:
    class Breaks:
        async def consult(self, *_: Any) -> Evidence:
            raise broken

    nobody: Any = None
    check: Any = Breaks()
    error = asyncio.run(consult_model(check, Observation("t", ()), None, None, nobody)).error
    place = f" ({__file__}:{Breaks.consult.__code__.co_firstlineno + 1})"
    assert error == told + (place if isinstance(broken, KeyError) else "")


# Kept replies: small private files, believed only if they were there before.


KEY = "ab" * 16
SAID = Advice("text", "m", ("note",))


def later(folder: Path) -> AdviceCache:
    time.sleep(0.02)  # a file's time is as coarse as the kernel's tick
    return AdviceCache(folder)


def test_what_is_put_is_got_now_and_later(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "cache"
    cache = AdviceCache(folder)
    assert cache.get(KEY) is None
    cache.put(KEY, SAID)
    assert cache.get(KEY) == SAID
    assert later(folder).get(KEY) == SAID
    assert [file.name for file in folder.iterdir()] == [f"{KEY}.json"]
    assert (folder.stat().st_mode & 0o777, (folder / f"{KEY}.json").stat().st_mode & 0o777) == (0o700, 0o600)


def test_what_others_put_there_meanwhile_is_not_believed(tmp_path: Path) -> None:
    cache = AdviceCache(tmp_path)
    file = tmp_path / f"{KEY}.json"
    time.sleep(0.02)
    file.write_text('{"text": "planted"}')
    os.utime(file, (0, 0))
    assert cache.get(KEY) is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"model": "m"}', b"\xff", b'{"text": "' + b"x" * 70_000 + b'"}']
)
def test_a_file_that_is_not_a_reply_is_asked_for_again(tmp_path: Path, content: bytes) -> None:
    (tmp_path / f"{KEY}.json").write_bytes(content)
    cache = later(tmp_path)
    assert cache.get(KEY) is None
    cache.put(KEY, SAID)
    assert later(tmp_path).get(KEY) == SAID


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_not_a_file_is_passed_over_at_once(tmp_path: Path, kind: str) -> None:
    place = tmp_path / f"{KEY}.json"
    if kind == "link":
        (tmp_path / "target").write_text('{"text": "planted"}')
        place.symlink_to("target")
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()
    assert later(tmp_path).get(KEY) is None


def test_a_folder_that_cannot_be_written_costs_only_the_keeping(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = AdviceCache(tmp_path / "file" / "cache")
    cache.put(KEY, SAID)
    assert cache.get(KEY) == SAID


def test_a_large_reply_is_not_stored(tmp_path: Path) -> None:
    AdviceCache(tmp_path / "c").put(KEY, Advice("x" * 100_000))
    assert not (tmp_path / "c").exists()


def test_the_oldest_make_room_and_half_written_ones_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consult, "FILES_KEPT", 20)
    for n in range(30):
        file = tmp_path / f"{n:032x}.json"
        file.write_text('{"text": "old"}')
        os.utime(file, (n, n))
    (tmp_path / "torn.1-1.new").write_text("{")
    os.utime(tmp_path / "torn.1-1.new", (0, 0))
    AdviceCache(tmp_path).put(KEY, SAID)
    left = sorted(file.name for file in tmp_path.iterdir())
    assert len(left) == 17
    assert f"{KEY}.json" in left
    assert f"{29:032x}.json" in left
    assert "torn.1-1.new" not in left


@pytest.mark.parametrize(("there", "left"), [(18, 19), (19, 17)])
def test_room_is_made_once_nine_tenths_are_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: int, left: int
) -> None:
    monkeypatch.setattr(consult, "FILES_KEPT", 20)
    for n in range(there):
        (tmp_path / f"{n:032x}.json").write_text('{"text": "old"}')
    AdviceCache(tmp_path).put(KEY, SAID)
    assert len(list(tmp_path.iterdir())) == left
