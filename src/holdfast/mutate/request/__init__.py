"""Request-level mutations: the prompt stays the same, the HTTP request around it does not."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.mutate.mutator import Mutator
from holdfast.mutate.request.heads import (
    CONTENT_TYPE_CONFUSION,
    HTTP_HEADER_INJECTION,
    PROTOCOL_LEVEL_ATTACK,
    QUERY_PARAMETER_POISONING,
    REQUEST_METHOD_ATTACK,
)
from holdfast.mutate.request.loads import (
    CONCURRENT_REQUEST_PATTERN,
    PAYLOAD_SIZE_ATTACK,
    RESOURCE_EXHAUSTION,
    TIMEOUT_MANIPULATION,
)
from holdfast.mutate.request.variants import RequestMutator

_ALL: tuple[RequestMutator, ...] = (
    HTTP_HEADER_INJECTION,
    PAYLOAD_SIZE_ATTACK,
    CONTENT_TYPE_CONFUSION,
    QUERY_PARAMETER_POISONING,
    REQUEST_METHOD_ATTACK,
    PROTOCOL_LEVEL_ATTACK,
    RESOURCE_EXHAUSTION,
    CONCURRENT_REQUEST_PATTERN,
    TIMEOUT_MANIPULATION,
)

REQUEST_MUTATORS: Mapping[str, Mutator] = {mutator.kind: mutator for mutator in _ALL}
"""By the name of the type, in the order of the types. They need an HTTP agent."""
