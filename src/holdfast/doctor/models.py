"""Checks who answers the agent's model calls. Keys are looked up but never shown."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from errno import errorcode
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.errors import UserError
from holdfast.execute.resolved_spec import ModelOptions
from holdfast.model.model_spec import ModelSpec
from holdfast.model.spec import AgentSpec, Spec
from holdfast.planes.llm.sources.cassette import Cassette
from holdfast.planes.llm.sources.provider_hosts import HOSTS, find_named_base, find_own_key
from holdfast.planes.llm.sources.script_file import load_script
from holdfast.planes.llm.sources.source import REMEDY
from holdfast.report.terminal.diagnosis import DoctorFinding
from holdfast.spec.references import find_names, resolve

CONNECT_S = 3.0


async def check_models(
    spec: Spec, agent: AgentSpec, environ: Mapping[str, str], models: ModelOptions
) -> tuple[DoctorFinding, ...]:
    """Return a finding for each entry of `models:`, or for each provider that has a key or an address."""
    if models.replay is not None:
        return (_check_recording(models.replay),)
    root = Path(spec.path).resolve().parent
    variables = {**environ, **agent.env}
    findings = [await _check_entry(f"model {name}", model, root, variables) for name, model in spec.models.items()]
    if "*" in spec.models or (agent.is_python and agent.llm):
        return tuple(findings)
    return (*findings, *await _check_providers(variables, others=bool(findings)))


async def check_server(route: str, url: str, fix: str, where: str = "") -> DoctorFinding:
    """Return whether the host and port of a URL accept a connection; `where` describes it, if the address does not."""
    where = where or format_address(url)
    if refused := await _find_refusal(url):
        return DoctorFinding(route, "not", "server-unreachable", f"{where}: {refused}", fix, 3)
    return DoctorFinding(route, "ok", "server-reachable", f"{where} accepts connections")


async def _find_refusal(url: str) -> str:
    parts = urlsplit(url)
    try:
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        return f"no connection within {CONNECT_S:g} s"
    except OSError as refused:
        number = refused.errno or 0
        return os.strerror(number).lower() if number in errorcode else str(refused)
    except ValueError as wrong:
        return str(wrong)
    writer.transport.abort()
    return ""


def format_address(url: str) -> str:
    """Return the scheme, host and port of a URL, without credentials, path and query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _check_recording(path: Path) -> DoctorFinding:
    try:
        Cassette(path, str)
    except UserError as wrong:
        fix = wrong.hint or "record again: --record FILE"
        return DoctorFinding("every model", "not", wrong.code, str(wrong), fix, 4)
    return DoctorFinding("every model", "ok", "model-recorded", f"recording {path}")


async def _check_entry(name: str, model: ModelSpec, root: Path, environ: Mapping[str, str]) -> DoctorFinding:
    if model.script is not None:
        return _check_script(name, resolve(model.script, environ), root)
    as_named = f" as {model.name}" if model.name else ""
    if model.base_url is None:
        return await _check_provider(f"{name}{as_named}", model.provider, environ, _find_key_variables(model, environ))
    url = resolve(model.base_url, environ)
    fix = "start that server, or fix its address in models:"
    return await check_server(name, url, fix, f"{format_address(url)}{as_named}")


def _check_script(name: str, script: str, root: Path) -> DoctorFinding:
    try:
        load_script(root / script, label=script)
    except UserError as wrong:
        fix = wrong.hint or "holdfast validate shows where"
        return DoctorFinding(name, "not", wrong.code, f"script {wrong}", fix, 4)
    return DoctorFinding(name, "ok", "model-scripted", f"script {script}")


def _find_key_variables(model: ModelSpec, environ: Mapping[str, str]) -> str:
    """Return the variables that an entry's own key refers to; empty unless all are set."""
    referred = find_names(model.api_key or "").variables
    return ", ".join(referred) if referred and all(environ.get(one) for one in referred) else ""


async def _check_provider(name: str, provider: str, environ: Mapping[str, str], own_key: str) -> DoctorFinding:
    base = find_named_base(provider, environ) or HOSTS[provider].public
    where = f"{provider} at {format_address(base)}"
    key = own_key or _find_key_variable(provider, environ)
    if key:
        return DoctorFinding(name, "ok", "model-key-set", f"{where}: {key} is set")
    if provider == "ollama":
        return await check_server(name, base, "start Ollama, or set OLLAMA_HOST to its address", where)
    variable = HOSTS[provider].key_variables[0][0]
    fix = f"export {variable}=…, unless the agent sets it itself"
    return DoctorFinding(name, "unproven", "model-key-missing", f"{where}: {variable} is not set", fix)


async def _check_providers(environ: Mapping[str, str], *, others: bool) -> list[DoctorFinding]:
    """Return findings for the models that `models:` does not list: their providers answer them."""
    rest = "other models" if others else "every model"
    findings = list(_check_keys(rest, environ))
    if findings or others:
        return findings
    why = "no provider's key is set: model calls get an error unless the agent brings its own key"
    return [DoctorFinding(rest, "unproven", "model-key-missing", why, REMEDY)]


def _check_keys(rest: str, environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    for provider in HOSTS:
        key, base = _find_key_variable(provider, environ), find_named_base(provider, environ)
        if key or base:
            where = format_address(base or HOSTS[provider].public)
            key_state = f"{key} is set" if key else "no key is set"
            code = "model-key-set" if key else "model-key-missing"
            yield DoctorFinding(f"{rest} of {provider}", "ok", code, f"{where}: {key_state}")


def _find_key_variable(provider: str, environ: Mapping[str, str]) -> str:
    """Return the variable that holds a key for the provider; empty if none does."""
    if find_own_key(provider, environ) is None:
        return ""
    return next(name for name, _, _ in HOSTS[provider].key_variables if environ.get(name))
