"""HTTP itself bent: odd chunks, other versions and targets, lengths told strangely. Safe on a connection of its own."""

from __future__ import annotations

from holdfast.mutate.request.variants import RequestMutator, fixed

PROTOCOL_LEVEL_ATTACK = RequestMutator(
    "protocol_level_attack",
    {
        "odd_chunks": fixed(framing="chunked"),
        "version_1_0": fixed(version="1.0"),
        "absolute_target": fixed(absolute=True),
        "length_and_chunks": fixed(framing="both", malformed=True),
        "expect_continue": fixed(headers=(("Expect", "100-continue"),), slow="continue", slow_ms=1_000),
        "length_with_zeros": fixed(framing="zeros"),
        "length_twice": fixed(framing="twice"),
        "trailer": fixed(framing="chunked", headers=(("Trailer", "X-Role"),), trailer="X-Role: admin"),
        "bytes_behind": fixed(after="\r\n\r\nholdfast: not a request\r\n\r\n"),
        "empty_lines_first": fixed(before="\r\n\r\n", malformed=True),
        "line_feeds": fixed(line_end="\n", malformed=True),
        "version_unknown": fixed(version="1.9"),
        "version_nonsense": fixed(version="nonsense", malformed=True),
        "no_host": fixed(without=("host",), malformed=True),
        "expect_unknown": fixed(headers=(("Expect", "a-miracle"),)),
    },
)
