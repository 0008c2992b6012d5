"""The viewer's server over real sockets: every route, who is let in, and that it writes nothing into runs."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from web_kit import GUESS, HOSTILE, ViewerClient, holdfast, make_project, tree_digest, viewing

from holdfast.web import viewer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("web") / "desk")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[ViewerClient]:
    with viewing(folder) as found:
        yield found


def trial_of(client: ViewerClient, run: str, rule: str, column: str) -> Any:
    found = client.get(f"runs/{run}/cell?rule={rule}&column={column}")["trials"][0]
    return client.get(f"runs/{run}/trial/{found['id']}")


def tour(client: ViewerClient) -> list[str]:
    """Every route that there is, asked once."""
    trial = trial_of(client, "0002", "cites", "down")["id"]
    return [
        "runs?offset=0&limit=10&q=desk&spec=&verdict=&mark=",
        "trend?spec=",
        "runs/0001",
        "runs/0002/matrix",
        "runs/0002/causes",
        "runs/0002/cell?rule=cites&column=down",
        f"runs/0002/trial/{trial}",
        "compare?a=0001&b=0002",
        "search?q=source&run=&limit=10",
        "search?q=source&run=0001",
        "notes",
    ]


# -- what it shows ----------------------------------------------------------------------------------------------------
def test_the_list_has_every_run_the_newest_first(client: ViewerClient) -> None:
    found = client.get("runs")
    assert (found["project"], found["total"], found["matching"], found["indexing"]) == ("desk", 2, 2, 0)
    newest, oldest = found["runs"]
    assert [newest["id"], oldest["id"]] == ["0002", "0001"]
    assert (newest["state"], newest["verdict"], newest["exit_code"]) == ("ended", "FAIL", 1)
    assert (oldest["verdict"], oldest["score"]) == ("PASS", 100.0)
    assert (oldest["low"], oldest["high"]) == (None, None), "of two prompts an interval says nothing"
    assert newest["counts"] == {"pass": 3, "fail": 1, "error": 0, "unproven": 0, "n/a": 0}
    assert newest["calls"] == oldest["calls"] > 0


def test_the_list_is_cut_and_filtered(client: ViewerClient) -> None:
    assert [run["id"] for run in client.get("runs?limit=1")["runs"]] == ["0002"]
    assert [run["id"] for run in client.get("runs?offset=1&limit=5")["runs"]] == ["0001"]
    assert client.get("runs?verdict=PASS")["matching"] == 1
    assert client.get("runs?q=CITES")["matching"] == 1, "a critical cell that failed is named"
    assert client.get("runs?q=nothing-of-the-kind")["runs"] == []
    assert client.get("runs?spec=/elsewhere.yaml")["matching"] == 0


def test_the_trend_is_the_scores_the_oldest_first(client: ViewerClient) -> None:
    (found,) = client.get("trend")["parts"]
    points = found["points"]
    assert [(point["id"], point["verdict"]) for point in points] == [("0001", "PASS"), ("0002", "FAIL")]
    assert points[0]["score"] > points[1]["score"]


def test_a_run_says_what_it_came_to(client: ViewerClient) -> None:
    found = client.get("runs/0002")
    assert (found["name"], found["verdict"], found["has_matrix"], found["complete"]) == ("Small", "FAIL", True, True)
    assert found["reasons"] == ["1 critical cell failed"]
    assert found["number"] == found["run"]["score"]
    assert [rule["id"] for rule in found["rules"]] == ["cites", "quick"]
    assert found["rules"][0]["severity"] == "critical"
    assert found["rules"][0]["where"].endswith("holdfast.yaml:8")
    assert [(column["name"], "search" in column["faults"]) for column in found["columns"]] == [
        ("calm", False),
        ("down", True),
    ]


def test_the_matrix_is_columns_of_numbers(client: ViewerClient) -> None:
    found, run = client.get("runs/0002/matrix"), client.get("runs/0002")
    cells = {
        (run["rules"][r]["id"], run["columns"][c]["name"]): (found["outcomes"][o], found["strings"][tally])
        for r, c, o, tally in zip(found["rule"], found["column"], found["outcome"], found["tally"], strict=True)
    }
    assert cells[("cites", "down")] == ("fail", "0/2")
    assert [outcome for outcome, _ in cells.values()].count("pass") == 3
    assert found["cells"] == 4


def test_failures_come_by_their_cause_with_one_answer(client: ViewerClient) -> None:
    found = client.get("runs/0002/causes")
    (cause,) = found["causes"]
    assert (found["total"], cause["rule"], cause["outcome"], cause["count"]) == (1, "cites", "fail", 1)
    run = client.get("runs/0002")
    assert [(run["rules"][rule]["id"], run["columns"][column]["name"]) for rule, column in cause["cells"]] == [
        ("cites", "down")
    ]
    assert cause["answered"] == GUESS
    assert "search, call 1: error" in cause["fault"]
    assert cause["again"].endswith(f"--trial {cause['trial']}")


def test_a_cell_has_its_trials(client: ViewerClient) -> None:
    found = client.get("runs/0002/cell?rule=cites&column=down")
    assert (found["cell"]["outcome"], found["cell"]["tally"], len(found["trials"])) == ("fail", "0/2", 2)
    assert {trial["prompt"] for trial in found["trials"]} == {"What is it?", "How much?"}
    assert found["trials"][0]["again"].startswith("holdfast contract run ")


def test_a_trial_has_its_conversation_calls_with_outputs_and_verdicts(client: ViewerClient) -> None:
    found = trial_of(client, "0002", "cites", "down")
    assert found["turns"][0]["text"] == GUESS
    assert [(call["tool"], call["status"], call["fault"]) for call in found["trace"]] == [("search", 503, "error")]
    assert [met["mode"] for met in found["faults"]] == ["error"]
    assert (found["outcome"], found["verdicts"][0]["rule"]) == ("fail", "cites")
    assert found["promote"].startswith(f"holdfast promote {found['id']} ")
    assert found["promote"].endswith(".holdfast/runs/0002")
    calm = trial_of(client, "0002", "cites", "calm")
    assert calm["trace"][0]["output"].startswith("a source says ")
    assert (calm["outcome"], calm["promote"]) == ("pass", "")
    start, end = calm["verdicts"][0]["marks"][0]
    assert calm["turns"][0]["text"][start:end] == "source"


def test_what_an_agent_says_is_data_whatever_it_is(client: ViewerClient) -> None:
    got = client.ask(f"api/runs/0001/trial/{trial_of(client, '0001', 'cites', 'calm')['id']}")
    assert got.headers["content-type"] == "application/json; charset=utf-8"
    assert HOSTILE in got.json["turns"][0]["text"]


def test_two_runs_are_compared_rule_by_rule_and_cell_by_cell(client: ViewerClient) -> None:
    found = client.get("compare?a=0001&b=0002")
    assert (found["a"]["id"], found["b"]["id"], found["note"]) == ("0001", "0002", "")
    assert {rule["rule"]: rule["verdict"] for rule in found["rules"]} == {"cites": "cannot tell", "quick": "same"}
    assert found["cells"] == [{"part": "", "rule": "cites", "column": "down", "a": "pass", "b": "fail"}]
    assert (found["same"], found["differ"], found["new"], found["gone"]) == (3, 1, 0, 0)


def test_search_finds_answers_reasons_and_prompts(client: ViewerClient) -> None:
    found = client.get("search?q=TRUST%20me")
    hit = found["hits"][0]
    assert (hit["run"], hit["where"], hit["column"]) == ("0002", "answer", "down")
    assert hit["text"][slice(*hit["at"])] == "trust me"
    assert {hit["where"] for hit in client.get("search?q=How%20much")["hits"]} >= {"prompt"}
    assert {hit["where"] for hit in client.get("search?q=does%20not%20contain&run=0002")["hits"]} <= {"reason"}
    assert client.get("search?q=source&run=0001")["searched"] == 1
    assert client.get("search?q=nowhere-at-all")["hits"] == []


def test_marks_and_notes_are_kept_next_to_the_runs(client: ViewerClient, folder: Path) -> None:
    kept = client.ask("api/notes/0002", "PUT", json.dumps({"mark": "star", "note": "look at <b>this</b>"}).encode())
    assert (kept.status, kept.json["mark"]) == (200, "star")
    trial = trial_of(client, "0002", "cites", "down")["id"]
    client.ask(f"api/notes/0002/trial/{trial}", "PUT", b'{"mark":"todo","note":""}')
    assert set(client.get("notes")) == {"0002", f"0002/trial/{trial}"}
    row = client.get("runs?mark=star")["runs"][0]
    assert (row["id"], row["mark"], row["has_note"]) == ("0002", "star", True)
    assert client.get("search?q=look%20at")["hits"][0]["where"] == "note"
    assert (folder / ".holdfast" / "notes.jsonl").stat().st_mode & 0o777 == 0o600
    client.ask("api/notes/0002", "PUT", b"{}")
    client.ask(f"api/notes/0002/trial/{trial}", "PUT", b"{}")
    assert client.get("notes") == {}


# -- who is let in ----------------------------------------------------------------------------------------------------
def test_without_the_token_there_is_nothing(client: ViewerClient) -> None:
    for path in ("/", "/api/runs", "/static/page.js", f"/{client.token[:-1]}/", f"/{client.token}"):
        got = client.ask(path, outside=True)
        assert (got.status, got.body) == (404, b"not found\n")
        assert client.token not in str(got.headers)


def test_another_host_origin_or_method_is_refused(client: ViewerClient) -> None:
    assert client.ask("", Host="evil.example").status == 403
    assert client.ask("api/runs", Origin="http://evil.example").status == 403
    assert client.ask("api/notes/0002", "PUT", b'{"mark":"ok"}', Origin="http://evil.example").status == 403
    assert client.ask("api/runs", "POST", b"x").status == 405
    assert client.get("notes") == {}


def test_every_reply_forbids_what_is_not_its_own(client: ViewerClient) -> None:
    for got in (client.ask(""), client.ask("api/runs"), client.ask("api/nothing"), client.ask("/", outside=True)):
        policy = got.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'" in policy
        assert "unsafe" not in policy
        assert got.headers["x-content-type-options"] == "nosniff"
        assert got.headers["referrer-policy"] == "no-referrer"
    assert client.ask("api/runs").headers["cache-control"] == "no-store"


def test_files_of_the_page_are_known_by_name_and_asked_for_once(client: ViewerClient) -> None:
    page = client.ask("")
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert client.ask("", If_None_Match=page.headers["etag"]).status == 304
    assert client.ask("static/page.js").headers["content-type"] == "text/javascript; charset=utf-8"
    for name in (
        "static/",
        "static/../api.py",
        "static/%2e%2e/api.py",
        "static/page.html",
        "static/report/page.js",
        "api.py",
        "static/..",
    ):
        assert client.ask(name).status == 404


@pytest.mark.parametrize(
    "path",
    [
        "runs/../../etc",
        "runs/0002/trial/..%2f..%2frun",
        "runs/%2e%2e/matrix",
        "runs/0002%2f..%2f0001",
        "runs/0002/contract",
        "runs/9",
        "runs/0002/trial/abcdef",
        "runs/0002/trial/" + "a" * 65,
        "runs/0002/nothing",
        "runs/0002/cell?rule=cites&column=nowhere",
        "compare?a=0002&b=../0001",
        "search?q=source&run=..",
        "nothing",
        "",
    ],
)
def test_an_address_that_leads_nowhere_is_told_so(client: ViewerClient, path: str) -> None:
    status, error = client.refused(path)
    assert status == 404
    assert error


@pytest.mark.parametrize(
    "path", ["runs?limit=x", "runs?offset=-1", "runs?q=%ff", "%ff", "search?q=a", "trend?" + "a=1&" * 30]
)
def test_a_question_that_cannot_be_read_is_told_so(client: ViewerClient, path: str) -> None:
    assert client.refused(path)[0] == 400


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"mark":"no such"}', b'{"note":1}', b'{"other":1}', b"\xff", b"[" * 5000]
)
def test_a_note_that_is_none_is_refused(client: ViewerClient, body: bytes) -> None:
    assert client.ask("api/notes/0002", "PUT", body).status == 400
    assert client.get("notes") == {}


def test_notes_have_their_bounds(client: ViewerClient) -> None:
    long = json.dumps({"note": "x" * 10_001}).encode()
    assert client.ask("api/notes/0002", "PUT", long).status == 400
    assert client.ask("api/notes/0002", "PUT", b"x" * 200_000).status == 413
    for name in ("0099", "0002/trial/zz", "0002/elsewhere", "..", "0002/trial/ab/cd"):
        assert client.ask(f"api/notes/{name}", "PUT", b'{"mark":"ok"}').status == 404
    assert client.get("notes") == {}


def test_large_answers_are_packed_where_the_client_can_read_that(client: ViewerClient) -> None:
    plain, packed = (client.ask("api/runs/0002", Accept_Encoding=how) for how in ("identity", "gzip"))
    assert plain.json == packed.json
    assert "content-encoding" not in plain.headers
    assert client.ask("static/page.css", Accept_Encoding="gzip").headers["content-encoding"] == "gzip"


def test_a_head_is_answered_without_a_body(client: ViewerClient) -> None:
    got = client.ask("api/runs", "HEAD")
    assert (got.status, got.body) == (200, b"")


# -- what it leaves alone ---------------------------------------------------------------------------------------------
def test_a_tour_of_every_route_changes_nothing_in_the_runs(client: ViewerClient, folder: Path) -> None:
    before = tree_digest(folder / ".holdfast" / "runs")
    for path in tour(client):
        client.get(path)
    with client.listening("?run=0002"):
        pass
    client.ask("api/notes/0001", "PUT", b'{"mark":"ok"}')
    client.ask("api/notes/0001", "PUT", b"{}")
    assert tree_digest(folder / ".holdfast" / "runs") == before


# -- runs that are not as they should be ------------------------------------------------------------------------------
@pytest.fixture
def worn(folder: Path, tmp_path: Path) -> Path:
    """A copy of the project, to be damaged."""
    shutil.copytree(folder, tmp_path / "worn")
    return tmp_path / "worn"


def damage(run: Path, how: str) -> None:
    if how == "later format":
        known = json.loads((run / "run.json").read_bytes())
        (run / "run.json").write_text(json.dumps({**known, "format": 9}))
    elif how == "half deleted":
        for name in ("spec.yaml", "trials.jsonl", "verdicts-1.jsonl"):
            (run / name).unlink()
    elif how == "not JSON":
        (run / "run.json").write_bytes(b"\xff\xfe")
    elif how == "a line changed":
        path = run / "verdicts-1.jsonl"
        path.write_bytes(path.read_bytes().replace(b"fail", b"pass"))
    elif how == "folders for files":
        (run / "observations-0.jsonl").unlink()
        (run / "observations-0.jsonl").mkdir()
    elif how == "no reading":
        (run / "run.json").write_text("{}")


@pytest.mark.parametrize(
    "how", ["later format", "half deleted", "not JSON", "a line changed", "folders for files", "no reading"]
)
def test_a_run_that_cannot_be_read_is_one_row_with_its_reason(worn: Path, how: str) -> None:
    damage(worn / ".holdfast" / "runs" / "0002", how)
    shutil.rmtree(worn / ".holdfast" / "history", ignore_errors=True)
    with viewing(worn) as client:
        bad, good = client.get("runs")["runs"]
        assert (bad["id"], bad["state"], good["state"]) == ("0002", "unreadable", "ended")
        assert bad["note"]
        for path in ("runs/0002", "runs/0002/matrix", "runs/0002/causes", "compare?a=0001&b=0002"):
            got = client.ask(f"api/{path}")
            assert got.status == 409, (path, got.body)
            assert got.json["error"]
        assert client.get("search?q=source")["hits"]
        assert client.get("runs/0001")["verdict"] == "PASS"


def test_a_run_that_is_deleted_while_it_is_looked_at_is_gone(worn: Path) -> None:
    with viewing(worn) as client:
        assert client.get("runs/0002")["verdict"] == "FAIL"
        with client.listening() as wait:
            shutil.rmtree(worn / ".holdfast" / "runs" / "0002")
            assert wait("runs") == {"ids": ["0002"]}
        assert client.refused("runs/0002")[0] == 404
        assert [run["id"] for run in client.get("runs")["runs"]] == ["0001"]


def test_a_project_without_runs_has_an_empty_list_until_one_begins(tmp_path: Path) -> None:
    with viewing(tmp_path) as client:
        assert client.get("runs")["runs"] == client.get("trend")["parts"] == []
        with client.listening() as wait:
            make_project(tmp_path)
            assert wait("runs")["ids"]


def test_a_run_of_several_parts_is_one_row_with_its_parts(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "parts", ignore=shutil.ignore_patterns(".holdfast"))
    holdfast(tmp_path / "parts", "ci", "--no-report", "-q")
    with viewing(tmp_path / "parts") as client:
        (row,) = client.get("runs")["runs"]
        assert (row["part"], [part["id"] for part in row["parts"]]) == ("ci", ["0001/contract"])
        found = client.get("runs/0001")
        assert [part["run"] for part in found["weights"] if not part["skipped"]] == ["0001/contract"]
        assert client.get("runs/0001/contract/matrix")["cells"] == 4
        assert client.get("runs/0001/contract")["run"]["id"] == "0001/contract"
        trial = trial_of(client, "0001/contract", "cites", "down")
        assert trial["promote"].endswith("runs/0001/parts/contract")
        assert client.ask("api/notes/0001/contract", "PUT", b'{"mark":"ok"}').status == 200
        assert client.get("compare?a=0001&b=0001")["same"] == 4
        assert client.get("search?q=trust&run=0001")["hits"][0]["run"] == "0001/contract"


TASK = """
id: how-much
version: 1
agent: {type: python, endpoint: "agent:careless", tools: ["agent:search"], isolation: inline}
task: {prompt: "How much?"}
invariants:
  cites: {type: contains, value: source, description: "Names its source"}
  polite: {type: contains, value: please, description: "Is polite"}
chaos_matrix: [{name: calm}, {name: down, tool_faults: [{tool: search, mode: error, error_code: 503}]}]
"""


def test_cases_that_failed_come_by_their_cause(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text((folder / "agent.py").read_text())
    (tmp_path / "holdfast.yaml").write_text(TASK)
    holdfast(tmp_path, "run", "--no-report", "-q")
    with viewing(tmp_path) as client:
        run = client.get("runs/0001")
        assert {case["name"]: case["status"] for case in run["cases"]} == {"calm": "fail", "down": "fail"}
        told = [(one["rule"], one["cases"]) for one in client.get("runs/0001/causes")["causes"] if one["cases"]]
        assert sorted(told) == [("cites, polite", ["down"]), ("polite", ["calm"])]
        trial = client.get(f"runs/0001/trial/{run['cases'][0]['replicas'][0]['trial']}")
        assert {one["rule"]: one["outcome"] for one in trial["verdicts"]}["polite"] == "fail"
        assert client.get("compare?a=0001&b=0001")["differ"] == 0


# -- slow and many clients --------------------------------------------------------------------------------------------
def test_who_does_not_ask_is_let_go_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewer, "IDLE_S", 0.2)
    monkeypatch.setattr(viewer, "SWEEP_S", 0.05)
    monkeypatch.setattr(viewer, "COMMENT_S", 0.1)
    with viewing(folder) as client, client.listening() as wait:
        with socket.create_connection(("127.0.0.1", client.port)) as slow:
            slow.sendall(b"GET / HTTP/1.1\r\nHost: ")
            slow.settimeout(10)
            assert slow.recv(10) == b""
        shutil.copytree(folder / ".holdfast/runs/0002", folder / ".holdfast/runs/0003")
        try:
            assert wait("runs") == {"ids": ["0003"]}, "who listens stays"
        finally:
            shutil.rmtree(folder / ".holdfast/runs/0003")


def test_a_body_that_does_not_come_is_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewer, "BODY_S", 0.1)
    with viewing(folder) as client, socket.create_connection(("127.0.0.1", client.port)) as slow:
        head = f"PUT /{client.token}/api/notes/0002 HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n"
        slow.sendall(head.encode() + b'Content-Length: 50\r\n\r\n{"mark"')
        slow.settimeout(10)
        assert slow.recv(100).startswith(b"HTTP/1.1 408 ")


def test_listeners_have_a_bound(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.web.event_hub.LISTENERS", 2)
    with viewing(folder) as client, client.listening(), client.listening("?run=0002"):
        assert client.ask("api/events").status == 503
        assert client.ask("api/events?run=0099").status == 404


def test_it_listens_on_the_loopback_address_alone(client: ViewerClient) -> None:
    with socket.socket() as other:
        other.settimeout(5)
        with pytest.raises(OSError, match="refused"):
            other.connect(("127.0.0.2", client.port))
