"""Request-level mutations: what is asked stays as it is, the HTTP request that asks it does not."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.mutate.mutator import Mutator
from holdfast.mutate.request.concurrent_request_pattern import CONCURRENT_REQUEST_PATTERN
from holdfast.mutate.request.content_type_confusion import CONTENT_TYPE_CONFUSION
from holdfast.mutate.request.http_header_injection import HTTP_HEADER_INJECTION
from holdfast.mutate.request.payload_size_attack import PAYLOAD_SIZE_ATTACK
from holdfast.mutate.request.protocol_level_attack import PROTOCOL_LEVEL_ATTACK
from holdfast.mutate.request.query_parameter_poisoning import QUERY_PARAMETER_POISONING
from holdfast.mutate.request.request_method_attack import REQUEST_METHOD_ATTACK
from holdfast.mutate.request.resource_exhaustion import RESOURCE_EXHAUSTION
from holdfast.mutate.request.timeout_manipulation import TIMEOUT_MANIPULATION
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
"""By the name of the type, in the order of the types. They need an agent that is asked by HTTP."""
