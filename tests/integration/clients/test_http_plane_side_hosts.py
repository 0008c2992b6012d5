"""Telemetry, updates and sign-in: told apart where egress refuses them, and calls like any other else."""

import pytest
import requests

from golden_words import Golden
from holdfast.model.observation import list_unread_models
from holdfast.planes.egress_policy import Policy
from holdfast.planes.http.proxy_rules import find_side_kind, find_unread_format

SENTRY = "http://o1.ingest.sentry.io/api"
DENIED = Policy(default="deny")


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ("o1.ingest.sentry.io", "telemetry"),
        ("Sentry.IO.", "telemetry"),
        ("http-intake.logs.datadoghq.com", "telemetry"),
        ("registry.npmjs.org", "update"),
        ("auth.openai.com", "sign-in"),
        ("notsentry.io", ""),
        ("github.com", ""),
        ("chatgpt.com", ""),
        ("api.example.com", ""),
    ],
)
def test_what_a_program_wants_there_is_known(host, kind):
    assert find_side_kind(host) == kind


def test_models_that_the_gateway_does_not_speak_to_are_known():
    hosts = ("bedrock-runtime.eu-west-1.amazonaws.com", "chatgpt.com", "API.cohere.com.", "eu-de.ml.cloud.ibm.com")
    assert all(map(find_unread_format, hosts))
    others = ("bucket.s3.amazonaws.com", "api.openai.com", "bedrock.eu-west-1.amazonaws.com")
    assert not any(map(find_unread_format, others))


def test_what_is_none_of_the_work_is_distinguished(bench, golden: Golden):
    with bench.trial(policy=DENIED) as trial:
        for _ in range(3):
            assert trial.ask("POST", SENTRY, data="x").status_code == 403
    assert (trial.context.trace, trial.context.notes, trial.context.troubles) == ([], [], [])
    golden(trial.context.sink.side_calls)


@pytest.mark.parametrize(
    ("intercepted", "url", "data"),
    [
        (["http://*.sentry.io/*"], SENTRY, "x"),
        ([], f"{SENTRY}/HOLDFAST-CANARY-0123abcd", "x"),
        ([], SENTRY.replace("o1", "holdfast-canary-0123abcd"), "x"),
    ],
    ids=["a rule names it", "a canary in its URL", "a canary in its host"],
)
def test_what_may_decide_something_is_a_call_like_any_other(bench, intercepted, url, data):
    with bench.trial(policy=Policy(default="deny"), intercepted=intercepted) as trial:
        assert trial.ask("POST", url, data=data).status_code == 403
        (event,) = trial.events()
    assert (event.error_type, event.times) == ("refused", 1)
    assert trial.context.sink.side_calls == ""


def test_a_host_that_egress_allows_is_a_call_like_any_other(bench, plain):
    async def resolve(host, port):
        return ["127.0.0.1"]

    policy = Policy(["sentry.io:80"], default="deny", resolve=resolve)
    with bench.trial(policy=policy, services={("sentry.io", 80): ("127.0.0.1", plain.server_port)}) as trial:
        assert trial.get("http://sentry.io/rows").status_code == 200
        assert len(trial.events()) == 1


def test_a_refused_place_is_told_once_however_often_it_is_called(bench):
    with bench.trial(policy=DENIED) as trial:
        for _ in range(5):
            assert trial.get("http://evil.example/a").status_code == 403
        assert trial.ask("POST", "http://evil.example/a", data="b").status_code == 403
    told = [(event.tool, event.times) for event in trial.context.trace]
    assert told == [("GET http://evil.example/a", 5), ("POST http://evil.example/a", 1)]


def test_an_agent_that_makes_up_urls_does_not_fill_the_trace_and_hides_no_canary(bench):
    with bench.trial(policy=DENIED) as trial:
        for n in range(30):
            trial.get(f"http://evil.example/{n}")
        trial.get("http://evil.example/HOLDFAST-CANARY-0123abcd")
    assert [event.times for event in trial.context.trace] == [1] * 20 + [11]
    assert trial.context.trace[-1].canaries == ("holdfast-canary-0123abcd",)


def test_a_place_of_models_that_was_refused_is_an_error_unless_another_was_asked(bench):
    from holdfast.model.observation import Answer
    from holdfast.model.trace import TraceEvent

    with bench.trial(policy=DENIED) as trial:
        trial.get("http://chatgpt.com/backend-api/codex")
    (why,) = trial.context.sink.find_unanswered(Answer(()))
    assert "chatgpt.com speaks ChatGPT's own API" in why
    assert list_unread_models(trial.context.sink.unread or ()) == ["chatgpt.com speaks ChatGPT's own API"]
    trial.context.sink.add(TraceEvent(1.0, "llm_call", "m"))
    assert [*trial.context.sink.find_unanswered(Answer(()))] == []


@pytest.mark.parametrize("there", [True, False])
def test_a_place_of_models_that_cannot_be_reached_is_an_error_and_one_that_answers_is_noted(bench, plain, there):
    from holdfast.model.observation import Answer

    async def resolve(host, port):
        return ["127.0.0.1"]

    place = f"bedrock-runtime.eu-west-1.amazonaws.com:{plain.server_port if there else 9}"
    with (
        bench.trial(policy=Policy([place], resolve=resolve)) as trial,
        pytest.raises(requests.exceptions.RequestException),
    ):
        trial.get(f"https://{place}/model/m/converse")
    speaks = "bedrock-runtime.eu-west-1.amazonaws.com speaks Bedrock Converse and InvokeModel"
    assert list_unread_models(trial.context.sink.unread or ()) == [speaks]
    assert [why.startswith(speaks) for why in trial.context.sink.find_unanswered(Answer(()))] == (
        [] if there else [True]
    )
    assert any(note.startswith(speaks) for note in trial.context.notes) == there
