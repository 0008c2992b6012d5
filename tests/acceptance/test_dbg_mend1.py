import sys; sys.path.insert(0,"/work/main/tests/acceptance")
from test_http_cli import *
def test_dbg(project):
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
    source = f"""
import json, talk
print(talk.request("POST", "http://api.openai.com/v1/chat/completions", {json.dumps(body)!r},
                            {{"content-type": "application/json"}}, proxy=True))
"""
    spec = contract(ANSWERS, [CALM], agent=command(), models={"*": {"script": "model.yaml"}})
    r = quick(equip(project(spec, source), ECHO), "--no-preflight")
    print("DBG", r.out[-3000:], r.err[-500:])
    assert 0
