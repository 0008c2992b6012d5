"""A model's provider, asked by its own host in a world: the gateway answers there, whatever egress says."""

from world_runs import ran, spec_of

SCRIPT = "replies: [{text: the script speaks}]"
ASK = """
    curl -sS -m 10 {url} -H 'content-type: application/json' \\
        -d '{{"model": "{model}", "max_tokens": 9, "messages": [{{"role": "user", "content": "hi"}}]}}'
"""
OPENAI = ASK.format(url="https://api.openai.com/v1/chat/completions", model="gpt-4o")
GROQ = ASK.format(url="https://api.groq.com/openai/v1/chat/completions", model="llama")
NO_KEYS = {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}


def test_a_script_answers_for_a_providers_own_host(tmp_path):
    spec = spec_of(OPENAI + GROQ, models={"*": {"script": "model.yaml"}})
    found = ran(tmp_path, spec, files={"model.yaml": SCRIPT})
    assert found.text.count("the script speaks") == 2, found.text
    assert found.case.status == "pass"
    assert found.audit("http_call") == []
    assert [event.event_type for event in found.only.trace] == ["llm_call", "llm_call"]


def test_without_anybody_to_ask_the_set_up_is_at_fault_and_not_the_agent(tmp_path):
    found = ran(tmp_path, spec_of(OPENAI.replace("-sS", "-sSf")), environ=NO_KEYS)
    assert found.case.status == "error"
    assert " gpt-4o: OPENAI_API_KEY " in found.only.error
    assert "a scripted model" in found.only.error


def test_a_provider_that_egress_denies_is_an_error_that_names_the_ways_out(tmp_path):
    agent = {"type": "command", "command": GROQ.replace("-sS", "-sSf -H 'authorization: Bearer gsk-1234567'")}
    found = ran(tmp_path, spec_of(agent))
    assert found.case.status == "error"
    assert "network.egress does not allow api.groq.com:443" in found.only.error
    assert "models:" in found.only.error


def test_a_mock_that_stands_for_a_provider_is_the_mock(tmp_path):
    mock = {"name": "ai", "type": "http_mock", "record": True, "default_response": 418}
    spec = spec_of(
        f"{OPENAI.strip()} -o /dev/null -w '%{{http_code}}'",
        services=[mock],
        network={"dns_overrides": {"api.openai.com": "ai"}},
        models={"*": {"script": "model.yaml"}},
    )
    assert ran(tmp_path, spec, files={"model.yaml": SCRIPT}).text == "418"
