"""Turns a prompt into a request to a URL.

Everything that does not depend on the prompt is computed when the agent is opened.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from msgspec import Struct

from holdfast.agents.conversation import Dialogue
from holdfast.agents.http.template import (
    RequestTemplate,
    TemplateFields,
    make_body_template,
    make_text_template,
    replace_surrogates,
)
from holdfast.errors import AgentMisconfigured
from holdfast.http1.outgoing_request import Endpoint
from holdfast.http1.outgoing_request import parse_endpoint as parse_address
from holdfast.model.spec import AgentSpec

_SPACES = re.compile(r"[\x00-\x20\x7f]")


class HttpUrl(Struct, frozen=True):
    """An http or https URL."""

    text: str
    """The URL as the user wrote it."""
    address: str
    """The URL as requested: without a fragment or spaces."""
    endpoint: Endpoint

    @property
    def path(self) -> str:
        return self.endpoint.target.partition("?")[0]

    @property
    def display_text(self) -> str:
        """The URL without parts that may be secret: user, password, query."""
        return f"{self.endpoint.scheme}://{self.endpoint.authority}{self.path}"

    @property
    def authorization(self) -> str | None:
        """The user and password of the URL as a header."""
        parts = urlsplit(self.text)
        if parts.username is None and parts.password is None:
            return None
        user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        return "Basic " + b64encode(user.encode("utf-8", "replace")).decode()


def read_url(text: str) -> HttpUrl:
    """Parse a URL; raise ValueError if HTTP cannot request it. Spaces in its path are quoted."""
    parts = urlsplit(text)
    path, query = (_SPACES.sub(lambda match: quote(match[0]), part) for part in (parts.path, parts.query))
    address = parts._replace(path=path, query=query, fragment="").geturl()
    return HttpUrl(text, address, parse_address(address))


_IN_QUERY = frozenset({"GET", "DELETE"})
_DEFAULT_TEMPLATE = '{"input": "{prompt}"}'


class HttpRequest(NamedTuple):
    """The variable part of a request; the headers belong to the agent and never change."""

    method: str
    target: str
    """Path and query, as sent."""
    body: bytes | None = None


class RequestForm(Struct, frozen=True):
    """The agent's section, prepared for prompts."""

    method: str
    url: HttpUrl
    headers: dict[str, str]
    body: RequestTemplate | None
    """The template of the body; None if everything goes into the query."""
    query: tuple[tuple[RequestTemplate, RequestTemplate], ...]
    structured: bool
    takes_messages: bool = False
    """Whether it has a placeholder for the conversation so far."""

    def fill(self, prompt: str, turn: str, dialogue: Dialogue | None = None) -> HttpRequest:
        """Return the request for `prompt`, which is `turn` or an attack's version of it, in a conversation."""
        source = (turn, prompt) if self.structured else ()
        if dialogue is None:
            fields = TemplateFields(prompt, source)
        elif self.takes_messages:
            fields = TemplateFields(prompt, source, json.dumps(dialogue.build_messages(prompt)))
        else:
            fields = TemplateFields(dialogue.build_text(prompt), source)
        target = self.url.endpoint.target
        if self.query:
            pairs = [(replace_surrogates(k.fill(fields)), v.fill(fields)) for k, v in self.query]
            target += ("&" if "?" in target else "?") + urlencode(pairs)
        body = None if self.body is None else self.body.fill(fields).encode("utf-8", "replace")
        return HttpRequest(self.method, target, body)

    def is_attack_dropped(self, prompt: str, turn: str) -> bool:
        """Return whether the template drops what an attack added to the prompt."""
        return prompt != turn and not self.takes_messages and self.fill(prompt, turn) == self.fill(turn, turn)


def build_request_form(agent: AgentSpec) -> RequestForm:
    """Return the form of an agent's requests; raise AgentUnavailable if the section is not usable."""
    method = agent.method.upper()
    headers = _check_headers(agent.headers)
    declared = next((v for k, v in headers.items() if k.lower() == "content-type"), "")
    template = make_body_template(agent.request_template or _DEFAULT_TEMPLATE, declared)
    query = [(make_text_template(k), make_text_template(v)) for k, v in agent.query_params.items()]
    if method in _IN_QUERY:
        query += _build_query(template, agent.request_template or _DEFAULT_TEMPLATE)
    elif not declared:
        headers["Content-Type"] = "application/json" if template.is_json else "text/plain; charset=utf-8"
    templates = [*(template for pair in query for template in pair), *(() if method in _IN_QUERY else (template,))]
    return RequestForm(
        method=method,
        url=parse_endpoint(agent.endpoint),
        headers=headers,
        body=None if method in _IN_QUERY else template,
        query=tuple(query),
        structured=agent.parse_structured_input,
        takes_messages=any(part.takes_messages for part in templates),
    )


def parse_endpoint(endpoint: str) -> HttpUrl:
    """Return the endpoint as a URL; raise AgentUnavailable if it is invalid."""
    try:
        return read_url(endpoint)
    except ValueError:
        raise AgentMisconfigured(
            f"agent.endpoint is not an http or https URL: {endpoint!r}", hint="write it as http://localhost:8000/invoke"
        ) from None


def _build_query(template: RequestTemplate, text: str) -> list[tuple[RequestTemplate, RequestTemplate]]:
    if template.is_json:
        return _parse_json_pairs(text)
    if "=" not in text:
        return [(make_text_template("input"), make_text_template(text.strip()))]
    pairs = parse_qsl(text.strip().removeprefix("?"), keep_blank_values=True)
    return [(make_text_template(k), make_text_template(v)) for k, v in pairs]


def _parse_json_pairs(text: str) -> list[tuple[RequestTemplate, RequestTemplate]]:
    """Turn each key of an object into a parameter; a value that is not text is sent as JSON."""
    # The template becomes JSON again: a placeholder that was outside a string is put into quotes.
    parts = (
        part if isinstance(part, str) else f'"{{{part.name}}}"' if part.sample[0] == '"' else f"{{{part.name}}}"
        for part in make_body_template(text).parts
    )
    parsed = json.loads("".join(parts))
    pairs = parsed.items() if isinstance(parsed, dict) else [("input", parsed)]
    return [
        (make_text_template(k), make_text_template(v) if isinstance(v, str) else make_body_template(json.dumps(v)))
        for k, v in pairs
    ]


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not name or any(c in "\r\n\0" for c in name + value):
            raise AgentMisconfigured(
                f"header {name!r} cannot be sent: its value is empty or contains a line break",
                hint="correct agent.headers, or the variable it takes its value from",
            )
    return dict(headers)
