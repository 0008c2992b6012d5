"""What the page of a plug-in says beyond its class: when a fault counts as met, and what to read next."""

from __future__ import annotations

from collections.abc import Mapping

_REPLY = "The changed reply, or the failure, was written while the caller was there for it."
_WAIT = "The wait has begun with the caller there. A caller that gives up has met it."
_LOST = "The caller was connected when the connection was lost."
_SIZE = "A byte of the reply was held back for a millisecond or more, cut off, or sent apart from the others."
_PLANTED = "A canary of the attack, or a piece of its text, has arrived at the agent."
_INPUT = "The agent was asked with the changed input."
_CLOCK = "A program of the agent read the clock after the change."
_SQL = "The statement was sent in a transaction that the fault fires on, and the client was there for the answer."

MET_BY_SECTION: Mapping[str, str] = {
    "tool_faults": f"{_REPLY} In a result on its way to the model: a model has answered the request that carries it.",
    "llm_faults": _REPLY,
    "mcp_faults": _REPLY,
    "http_faults": _REPLY,
    "service_faults": "It changed what passed on the connection, and a client was there to feel it.",
    "world_faults": "The agent ran into it: what the fault did was seen to stop or change something that it did.",
    "context_attacks": _INPUT,
}
MET: Mapping[str, str] = {
    **dict.fromkeys(("tool_faults.slow", "tool_faults.timeout", "llm_faults.timeout", "llm_faults.slow_tokens"), _WAIT),
    **dict.fromkeys(("mcp_faults.hang", "http_faults.latency", "http_faults.partition", "http_faults.timeout"), _WAIT),
    **dict.fromkeys(("service_faults.partition", "service_faults.timeout"), _WAIT),
    "tool_faults.lost_reply": "The other side has answered, and the caller was connected when the reply was lost.",
    **dict.fromkeys(("llm_faults.stream_cut", "mcp_faults.crash_mid_call", "http_faults.down"), _LOST),
    **dict.fromkeys(("http_faults.reset_peer", "http_faults.tls_error"), _LOST),
    **dict.fromkeys(("service_faults.down", "service_faults.reset_peer", "service_faults.tls_error"), _LOST),
    **dict.fromkeys(("http_faults.bandwidth", "http_faults.limit_data", "http_faults.slicer"), _SIZE),
    "tool_faults.malicious_response": _PLANTED,
    "mcp_faults.tool_poisoning": _PLANTED,
    "context_attacks.indirect_injection": _PLANTED,
    "service_faults.dns_failure": "The service's name was looked up, and did not resolve.",
    "service_faults.killed_mid_transaction": "The connection died inside a transaction while the client was there. "
    "At a commit: of a transaction that wrote.",
    **dict.fromkeys(("service_faults.lock_wait", "service_faults.read_only", "service_faults.slow_query"), _SQL),
    "service_faults.serialization_failure": f"{_SQL} At a commit: of a transaction that wrote.",
    "world_faults.cpu_throttle": "The control group counts a period in which the agent was held back.",
    "world_faults.memory_limit": "The control group counts a refusal, or a program was ended for having more.",
    "world_faults.killed": "A process of the agent died.",
    **dict.fromkeys(("world_faults.skew", "world_faults.jump", "world_faults.frozen"), _CLOCK),
    "world_faults.vanished": "A system call of the agent's programs failed because what it wanted is gone.",
    "world_faults.permission": "A system call of the agent's programs was refused: opened, listed or entered.",
    "world_faults.read_only": "A system call of the agent's programs was refused: opened for writing, made, moved, "
    "removed.",
    "world_faults.disk_full": "A write of the agent's programs found no room.",
}
"""By section and mode; a fault without an entry has its section's."""

CHECKS_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(
        ("not_contains", "does_not_contain", "excludes"), "write excludes_pattern, or contains with negate: true"
    ),
    "not_contains_any": "write excludes_pattern, or contains_any with negate: true",
    **dict.fromkeys(("not_regex", "not_matches"), "write excludes_pattern, or regex with negate: true"),
}
"""Names of checks in other tools, and what to write here."""

_RETRY = ("invariants.retries_within", "invariants.recovers_within_ms", "invariants.latency")
_TWICE = ("invariants.side_effect_once",)
_HONEST = ("invariants.claim_matches_state", "invariants.contains_any")
_OBEYS = ("invariants.excludes_pattern", "invariants.tool_not_called")

SEE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("tool_faults.error", "tool_faults.flapping", "tool_faults.rate_limit"), _RETRY),
    **dict.fromkeys(("llm_faults.overloaded", "llm_faults.rate_limit", "llm_faults.server_error"), _RETRY),
    **dict.fromkeys(("tool_faults.timeout", "llm_faults.timeout", "http_faults.timeout"), _RETRY),
    "llm_faults.quota": ("llm_faults.rate_limit", "invariants.retries_within"),
    "tool_faults.lost_reply": (*_TWICE, "service_faults.killed_mid_transaction"),
    "service_faults.killed_mid_transaction": (*_TWICE, "tool_faults.lost_reply", "invariants.sql"),
    "mcp_faults.crash_mid_call": _TWICE,
    "mcp_faults.hang": _TWICE,
    "tool_faults.phantom_success": _HONEST,
    "tool_faults.error_in_body": _HONEST,
    "tool_faults.wrong_value": (*_HONEST, "tool_faults.stale"),
    "tool_faults.empty": _HONEST,
    "tool_faults.partial": _HONEST,
    "tool_faults.stale": ("tool_faults.wrong_value",),
    "tool_faults.malformed": ("tool_faults.schema_drift",),
    "tool_faults.schema_drift": ("tool_faults.malformed",),
    "tool_faults.oversized": ("context_attacks.overflow", "llm_faults.context_length"),
    "tool_faults.malicious_response": ("context_attacks.indirect_injection", *_OBEYS),
    "mcp_faults.tool_poisoning": ("context_attacks.indirect_injection", *_OBEYS),
    "context_attacks.indirect_injection": ("tool_faults.malicious_response", "mcp_faults.tool_poisoning", *_OBEYS),
    "context_attacks.injection_via_context": ("context_attacks.indirect_injection", *_OBEYS),
    "context_attacks.memory_poisoning": ("context_attacks.conflicting_context", *_OBEYS),
    "context_attacks.conflicting_context": ("context_attacks.memory_poisoning",),
    "context_attacks.overflow": ("llm_faults.context_length", "invariants.max_tokens"),
    "llm_faults.repeat_tool_call": ("invariants.max_calls",),
    "llm_faults.truncated_response": ("llm_faults.stream_cut",),
    "llm_faults.stream_cut": ("llm_faults.truncated_response",),
    "llm_faults.response_drift": ("invariants.behavior_unchanged",),
    "service_faults.down_at_start": ("invariants.recovers_within_ms",),
    "service_faults.serialization_failure": _TWICE,
    "world_faults.killed": _TWICE,
    "invariants.side_effect_once": ("tool_faults.lost_reply", "service_faults.killed_mid_transaction"),
    "invariants.claim_matches_state": ("tool_faults.phantom_success", "invariants.sql", "invariants.file_content"),
    "invariants.retries_within": ("llm_faults.rate_limit", "invariants.recovers_within_ms"),
    "invariants.recovers_within_ms": ("tool_faults.flapping", "invariants.retries_within"),
    "invariants.excludes_pattern": ("context_attacks.indirect_injection", "invariants.excludes_pii"),
    "invariants.tool_not_called": ("context_attacks.indirect_injection", "invariants.tool_called"),
    "invariants.json_field": ("invariants.valid_json",),
    "invariants.valid_json": ("invariants.json_field",),
    "invariants.only_after": ("invariants.tool_order", "tool_faults.error"),
    "invariants.tool_order": ("invariants.only_after",),
    "invariants.tool_called": ("invariants.tool_not_called", "invariants.tool_order", "invariants.max_calls"),
    "invariants.system_prompt_leak_probe": ("invariants.refusal_check",),
    "invariants.behavior_unchanged": ("invariants.similarity", "llm_faults.response_drift"),
    "invariants.similarity": ("invariants.behavior_unchanged", "invariants.llm_as_judge"),
    "invariants.completes": ("invariants.ending", "invariants.output_not_empty"),
    "invariants.ending": ("invariants.completes",),
    "invariants.custom": ("invariants.command_exit",),
    "invariants.command_exit": ("invariants.custom", "invariants.file_content"),
    "invariants.sql": ("invariants.db_unchanged_except",),
    "invariants.db_unchanged_except": ("invariants.sql", "invariants.files_changed_only"),
    "invariants.files_changed_only": ("invariants.file_absent", "invariants.db_unchanged_except"),
    "invariants.max_cost": ("invariants.max_tokens", "invariants.max_calls"),
    "invariants.max_tokens": ("invariants.max_cost", "invariants.max_calls"),
    "invariants.contains": ("invariants.contains_any", "invariants.regex"),
    "invariants.contains_any": ("invariants.contains", "invariants.regex"),
    "invariants.regex": ("invariants.contains", "invariants.excludes_pattern"),
}
"""By section and name: what else is worth reading, beside what has the same name in another section."""
