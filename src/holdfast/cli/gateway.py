"""holdfast gateway: an address for agents that you start yourself, served between runs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path

import click

from holdfast.cli import options as shared
from holdfast.errors import UsageError
from holdfast.execute.resolved_spec import resolve_agent
from holdfast.folders import DEFAULT_FILES, format_path, get_own_folder
from holdfast.planes.gateway_lock import hold_gateway_lock, is_gateway_running
from holdfast.planes.handover import LOOPBACK, GatewayAddress, Standby, build_variables, format_exports, load_address
from holdfast.planes.site_planes import PlaneSettings
from holdfast.report.safe import to_one_line
from holdfast.spec import load
from holdfast.store.rundir import make_own_folder

_OPEN = "other machines may reach it: every request needs the token in these variables, so keep them to yourself"


@click.command(name="gateway")
@shared.add_config
@shared.runs_option
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="Port. Default: the same as last time.")
@click.option(
    "--bind", "host", metavar="ADDRESS", help="Address to listen on, for an agent in a container. Default: 127.0.0.1."
)
@click.option("--allow-network", is_flag=True, help="Allow a --bind address that other machines can reach.")
@click.option("--print", "only_print", is_flag=True, help="Print the variables of the running gateway and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print the variables as JSON.")
def command(
    config: Path | None, port: int | None, host: str | None, allow_network: bool, only_print: bool, as_json: bool
) -> int:
    """Serve the LLM gateway for an agent that you start yourself.

    \b
      holdfast gateway                      # leave it running while you test
      eval "$(holdfast gateway --print)"    # in the agent's own shell ...
      python my_server.py                   # ... then start the agent
      holdfast contract run                 # the spec says agent.gateway: true

    The agent's model calls, its HTTP and its MCP servers then go through the run that drives it, one trial at a time.
    Between runs every request gets 503.
    """
    spec = config or next((Path(name) for name in DEFAULT_FILES if Path(name).is_file()), None)
    folder = get_own_folder(spec).absolute()
    if only_print:
        if not (folder / "gateway.sock").exists() or not is_gateway_running(folder):
            raise UsageError(
                f"no gateway is running in {format_path(folder)}",
                hint="start one: holdfast gateway",
                code="gateway-missing",
            )
        _show(folder, load_address(folder), _read_settings(spec), as_json)
        return 0
    check_host(host or LOOPBACK, allow_network)
    make_own_folder(folder)
    with hold_gateway_lock(folder), suppress(KeyboardInterrupt):
        asyncio.run(_run_standby(folder, load_address(folder, port, host or LOOPBACK), _read_settings(spec), as_json))
    return 0


def check_host(host: str, allowed: bool) -> None:
    """Reject an address that other machines could reach by accident, and one that an agent cannot connect to."""
    try:
        address = ip_address(host)
    except ValueError:
        raise UsageError(
            f"--bind {host} is not an IP address",
            hint="such as 172.17.0.1, Docker's on this machine",
            code="argument-invalid",
        ) from None
    if address.version != 4 or address.is_unspecified:
        hint = "name the one that the agent reaches, such as 172.17.0.1"
        message = f"--bind {host} is not a single IPv4 address of this machine"
        raise UsageError(message, hint=hint, code="argument-invalid")
    if not address.is_loopback and not allowed:
        message = f"--bind {host}: other machines may reach it, and whoever has the token can spend your keys"
        raise UsageError(message, hint="to allow that, add --allow-network", code="bind-refused")


def _read_settings(path: Path | None) -> PlaneSettings | None:
    """Read the agent's settings from the spec; None if there is no spec here yet."""
    if path is None:
        return None
    spec, _ = load(path, environ=os.environ)
    agent = resolve_agent(spec.agent, os.environ, spec.params[0])
    return PlaneSettings(agent, path.resolve().parent, os.environ, scenarios=spec.scenarios)


def _show(folder: Path, place: GatewayAddress, settings: PlaneSettings | None, as_json: bool) -> None:
    variables = build_variables(folder, place, os.environ, settings)
    sys.stdout.write(json.dumps(variables, indent=2) + "\n" if as_json else format_exports(variables))
    sys.stdout.flush()


async def _run_standby(folder: Path, place: GatewayAddress, settings: PlaneSettings | None, as_json: bool) -> None:
    standby = Standby(folder, place, _log)
    done = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            asyncio.get_running_loop().add_signal_handler(number, done.set)
    await standby.open()
    try:
        _show(folder, place, settings, as_json)
        print(f"serving at {place.host}:{place.port}; Ctrl-C stops it", file=sys.stderr)
        if not ip_address(place.host).is_loopback:
            print(_OPEN, file=sys.stderr)
        await done.wait()
    finally:
        await standby.close()


def _log(what: str) -> None:
    """Print which run uses the gateway."""
    print(f"{datetime.now():%H:%M:%S} {to_one_line(what)}", file=sys.stderr)
