import json
import stat

import pytest

from holdfast.errors import UserError
from holdfast.planes.mcp.config import (
    Target,
    build_relay_command,
    read_config,
    rewrite_config,
    write_config,
)

PLACE = {"relay": ["/python", "-I", "/relay.py"], "environ": {"HOLDFAST_MCP": "http://x"}, "base_url": "http://h/t/mcp"}


@pytest.mark.parametrize("section", ["mcpServers", "servers"])
def test_a_command_is_started_by_the_relay_and_keeps_its_environment(section):
    entry = {"command": "npx", "args": ["-y", "files"], "env": {"A": "1"}, "cwd": "/x", "type": "stdio"}
    config, servers = rewrite_config({section: {"my files": entry}, "inputs": [1]}, **PLACE)
    assert servers == {}
    assert config["inputs"] == [1]
    assert config[section]["my files"] == {
        "command": "/python",
        "args": ["-I", "/relay.py", "--name", "my files", "--", "npx", "-y", "files"],
        "env": {"A": "1", "HOLDFAST_MCP": "http://x"},
        "cwd": "/x",
        "type": "stdio",
    }


@pytest.mark.parametrize("key", ["url", "httpUrl", "serverUrl"])
def test_a_url_is_replaced_and_its_headers_stay_with_holdfast(key):
    entry = {"type": "http", key: "https://a.example/mcp", "headers": {"Authorization": "Bearer k"}}
    config, servers = rewrite_config({"mcpServers": {"a/b": entry}}, **PLACE)
    assert config["mcpServers"]["a/b"] == {"type": "http", key: "http://h/t/mcp/a%2Fb"}
    assert servers == {"a/b": Target("https://a.example/mcp", {"Authorization": "Bearer k"})}


def test_references_are_filled_in_for_what_stays_on_our_side():
    place = {**PLACE, "fill_from": {"A_KEY": "k"}}
    entry = {"url": "http://h:${A_PORT:-80}/", "headers": {"a": "Bearer ${A_KEY}", "b": "${env:A_KEY}"}}
    config, servers = rewrite_config({"mcpServers": {"s": entry, "t": {"command": "${HOME}/t"}}}, **place)
    assert servers["s"] == Target("http://h:80/", {"a": "Bearer k", "b": "k"})
    assert "${HOME}/t" in config["mcpServers"]["t"]["args"]
    with pytest.raises(UserError) as raised:
        rewrite_config({"servers": {"s": {"url": "http://h:${A_PORT}/"}}}, **place)
    assert raised.value.code == "mcp-config-invalid"


def test_the_original_configuration_is_not_changed():
    given = {"mcpServers": {"a": {"command": "a", "env": {}}, "b": {"url": "http://b", "headers": {"x": "y"}}}}
    before = json.dumps(given)
    rewrite_config(given, **PLACE)
    assert json.dumps(given) == before


def test_an_invalid_server_is_rejected_by_name():
    for config, says in [
        ({}, "names no servers"),
        ({"mcpServers": {}}, "names no servers"),
        ({"mcpServers": []}, "mcpServers must be a map"),
        ({"mcpServers": {"a": 1}}, "mcpServers.a must be a map"),
        ({"mcpServers": {"a": {}}}, "'a' has neither a command nor a url"),
        ({"mcpServers": {"a": {"type": "sse", "url": "http://x"}}}, "'a' is of type sse"),
        ({"mcpServers": {"a": {"url": "ws://x"}}}, "the url of server 'a' is not an http address"),
        ({"mcpServers": {"a": {"command": "x", "args": "-y"}}}, "args (a list)"),
        ({"mcpServers": {"a": {"command": "x", "env": [1]}}}, "a.env must be a map"),
        ({"mcpServers": {"a": {"command": "x"}}, "servers": {"a": {"command": "x"}}}, "'a' is listed twice"),
    ]:
        with pytest.raises(UserError) as refused:
            rewrite_config(config, **PLACE)
        assert says in str(refused.value), (config, says)


def test_only_the_owner_can_read_the_written_file(tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text("old")
    path.chmod(0o644)
    write_config(path, {"mcpServers": {}})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_config(path) == {"mcpServers": {}}
    path.write_text("{")
    with pytest.raises(UserError) as raised:
        read_config(path)
    assert raised.value.code == "mcp-config-invalid"


def test_the_relay_is_a_file_that_needs_no_packages():
    command = build_relay_command()
    assert command[1:3] == ["-I", "-S"]
    assert command[3].endswith("planes/mcp/relay.py")
